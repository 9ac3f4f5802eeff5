"""Matches: the occurrences of the query's terms in the candidate documents, joined with the documents' structure.

`Matches` is the only input of a lexical model. It contains *every* passage of the candidates, with or without a query
term. The name of an array says what it is aligned with: `x_of_passage` has one value per passage. Documents are in the
order of their numbers in the index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from perikope.browse.joined_columns import read_columns
from perikope.browse.listed_terms import Listed
from perikope.browse.structure import Structure, Units, read_structure
from perikope.core.arrays import Array, Floats, Integers, Integers32, Mask, frozen
from perikope.core.errors import UsageError
from perikope.fetch import Candidates, Summand
from perikope.index.reader import Snapshot, Statistics
from perikope.index.saved_tables import SavedTable, read_table
from perikope.kernels.gather import owners
from perikope.kernels.join import TermCounts, add_titles, count_terms, occurrences_of_ranges, sum_ancestors
from perikope.query.group_terms import terms_in
from perikope.query.terms import Query
from perikope.text.analysis import word_spans

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The frequency of each query term in each unit (passage, title or document), as a sparse matrix.

    There is one entry per unit and term that occurs in it.
    """

    first_entry: Integers
    """Index of each unit's first entry, and at the end the number of entries; one value more than there are units."""
    term: Integers32
    """Index of each entry's term in the query."""
    count: Integers32
    """Number of occurrences of the term in the unit, per entry."""
    single_terms_in: Callable[[int], dict[str, int]] | None = field(default=None, repr=False, compare=False)
    """Returns the single terms of group terms that occur in a unit, with their frequencies; None without groups."""
    _unit: Integers | None = field(default=None, init=False, repr=False, compare=False)
    """The result of `unit`, once it was computed."""

    def __post_init__(self) -> None:
        for values in (self.first_entry, self.term, self.count):
            frozen(values)

    @property
    def unit(self) -> Integers:
        """The index of each entry's unit."""
        if self._unit is None:
            object.__setattr__(self, "_unit", frozen(owners(self.first_entry[:-1], self.first_entry[1:])))
        assert self._unit is not None
        return self._unit

    @classmethod
    def listed(cls, listed: Listed) -> Frequencies:
        """The frequencies that were read from lists."""
        made = cls(*listed[:3])
        object.__setattr__(made, "_unit", frozen(listed.unit))
        return made


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The tokens of documents that are query terms, ordered by document and position."""

    term: Integers32
    """Index of each occurrence's term in the query."""
    position: Integers32
    """Position of each occurrence in its document, in tokens."""
    first_of_document: Integers
    """Index of each document's first occurrence, and at the end the number of occurrences."""
    first_of_passage: Integers
    """Index of the first occurrence in each passage."""
    end_of_passage: Integers
    """One more than the index of the last occurrence in each passage."""

    def __post_init__(self) -> None:
        for values in (self.term, self.position, self.first_of_document, self.first_of_passage, self.end_of_passage):
            frozen(values)

    def only(self, kept: Mask) -> Occurrences:
        """Some of the occurrences; `kept` has one flag per occurrence."""
        before = np.concatenate([[0], np.cumsum(kept)])
        bounds = (before[column] for column in (self.first_of_document, self.first_of_passage, self.end_of_passage))
        return Occurrences(self.term[kept], self.position[kept], *bounds)


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of occurrences and passages, counted from the start of their document in tokens or characters."""

    position_of_occurrence: Integers
    """Position at which each occurrence begins."""
    first_of_passage: Integers
    """First position of each passage."""
    last_of_passage: Integers
    """Last position of each passage (inclusive); less than its first position if the passage has no tokens."""

    def __post_init__(self) -> None:
        for values in (self.position_of_occurrence, self.first_of_passage, self.last_of_passage):
            values.setflags(write=False)


def _no_characters() -> Positions:
    raise UsageError("these matches have no texts, so positions in characters are unknown; use unit=token, or make them with join()")


def _no_structure() -> Structure:
    raise UsageError("these matches have no document trees, because they were not read from an index; make them with join()")


def _no_parts(document: int) -> Sequence[Summand]:
    return ()


def _no_order() -> Integers:
    raise UsageError("these matches have no document ids, because they were not read from an index; make them with join()")


@dataclass(frozen=True, slots=True)
class Matches:
    """The query, the candidate documents with their sections and passages, the occurrences, and the statistics.

    If elements or documents are ranked (`units`), the passage columns describe these elements or documents. Elements
    may overlap; parents come before their children. An occurrence is one token that is a query term.
    """

    query: Query
    statistics: Statistics
    """Statistics of the collection."""
    number_of_document: Integers
    """Number of each candidate document in the index, in ascending order."""
    score_of_document: Floats
    """Score with which each document was fetched."""
    length_of_document: Integers
    """Length of each document in indexed tokens, titles included."""
    parent_of_section: Integers
    """Index of each section's parent section, or -1 if the section is a document."""
    document_of_section: Integers
    """Index of each section's document."""
    title_length_of_section: Integers
    """Length of each section's title in indexed tokens; 0 if it has no title."""
    document_of_passage: Integers
    """Index of each passage's document."""
    section_of_passage: Integers
    """Index of the nearest section that contains each passage."""
    first_token_of_passage: Integers
    """First token of each passage, counted in its document."""
    end_token_of_passage: Integers
    """One more than the last token of each passage."""
    length_of_passage: Integers
    """Length of each passage in indexed tokens."""
    occurrences: Callable[[], Occurrences]
    """Returns the occurrences. The first call may read the token streams, which models that only count do not need."""
    in_documents: Frequencies
    """Term frequencies in documents, titles included."""
    in_passages: Frequencies
    """Term frequencies in passages."""
    in_titles: Frequencies
    """Term frequencies in the titles of sections; the units are the sections."""
    part_of_passage: Integers
    """Index in `parts` of the part that contains each passage."""
    span_of_passage: Integers
    """Number of each passage's span in its document."""
    parts: tuple[str, ...]
    """Names of document parts, such as `abstract`; empty text for text outside any part."""
    units: Units = "passages"
    """The unit that is scored and ranked, which the passage columns describe."""
    characters: Callable[[], Positions] = _no_characters
    """Returns the positions of occurrences and passages in characters; see `tokens` for positions in tokens.

    The first call reads the texts, which is slow. Few models need them.
    """
    structure: Callable[[], Structure] = _no_structure
    """Returns the spans of the candidate documents. The first call reads them from the index."""
    id_rank_of_document: Callable[[], Integers] = _no_order
    """Returns the rank of each document in the order of document ids, which breaks ties between equal scores.

    The first call computes the ranks.
    """
    table: Callable[[str, str], SavedTable] = read_table
    """Reads a table, given its name and kind, from the index or from the tables that come with the program."""
    parts_of_score: Callable[[int], Sequence[Summand]] = _no_parts
    """Returns the summands of a document's fetch score, or nothing if they are unknown.

    The argument is the index of the document.
    """
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)
    """The index that the matches were read from, for models that read more of it, such as vectors.

    None if the matches were assembled from plain columns.
    """
    all_terms: Matches | None = None
    """The matches of all single terms, if some terms occur only under NOT or are group terms; otherwise None.

    See `with_negated`.
    """
    _memo: dict[Hashable, Any] | None = field(default=None, init=False, repr=False, compare=False)
    """Results of `once` by key; None unless the matches are `shared`.

    Copies made with `replace` do not inherit it, because their columns may differ.
    """

    def __post_init__(self) -> None:
        for owner, names in ((self, _fields_of(Matches)), (self.statistics, _fields_of(Statistics))):
            for name in names:
                value = getattr(owner, name)
                if isinstance(value, np.ndarray):
                    value.setflags(write=False)

    @property
    def documents(self) -> int:
        """The number of candidate documents."""
        return int(self.number_of_document.size)

    @property
    def passages(self) -> int:
        """The number of passages (or of elements or documents, if these are ranked) in all candidate documents."""
        return int(self.document_of_passage.size)

    @property
    def term_of_occurrence(self) -> Integers32:
        """Index of each occurrence's term in the query."""
        return self.occurrences().term

    @property
    def position_of_occurrence(self) -> Integers32:
        """Position of each occurrence in its document, in tokens. Occurrences are ordered by document and position."""
        return self.occurrences().position

    @property
    def first_occurrence_of_document(self) -> Integers:
        """Index of each document's first occurrence, and at the end the number of occurrences."""
        return self.occurrences().first_of_document

    @property
    def first_occurrence_of_passage(self) -> Integers:
        """Index of the first occurrence in each passage."""
        return self.occurrences().first_of_passage

    @property
    def end_occurrence_of_passage(self) -> Integers:
        """One more than the index of the last occurrence in each passage."""
        return self.occurrences().end_of_passage

    @property
    def first_passage_of_document(self) -> Integers:
        """Index of each document's first passage, and at the end the number of passages: `documents + 1` values."""
        return np.searchsorted(self.document_of_passage, np.arange(self.documents + 1))

    @property
    def weights(self) -> Floats:
        """The weight of each query term, aligned with `query.terms`."""
        return np.array(self.query.weights)

    def shared(self) -> Matches:
        """A copy for use by several models: each column that they request with `once` is computed only once."""
        if self._memo is not None:
            return self
        copy = replace(self)
        object.__setattr__(copy, "_memo", {})
        return copy

    @contextmanager
    def sharing(self) -> Iterator[Matches]:
        """A context with `shared` matches for several models, which forget their columns at its end.

        Columns refer to the matches that they were computed from. Matches that refer to them too would be freed by the
        garbage collector only, and with them the files of an old snapshot.
        """
        shared = self.shared()
        try:
            yield shared
        finally:
            if shared is not self:
                object.__setattr__(shared, "_memo", None)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The result of `make()`.

        Shared matches call `make` only once per key and remember the result. Other matches call it every time.
        """
        if self._memo is None:
            return make()
        if key not in self._memo:
            self._memo[key] = make()
        value: Value = self._memo[key]
        return value

    def with_negated(self) -> Matches:
        """The matches of all single terms, also of those under NOT, for code that evaluates the query's tree."""
        return self if self.all_terms is None else self.all_terms

    def require_passages(self, model: str) -> None:
        """Raise `UsageError` unless passages are ranked.

        Models that read neighbouring passages or sections call this. `model` is the name of the model.
        """
        if self.units != "passages":
            raise UsageError(f"{model} ranks passages only, not {self.units}; choose another model, or rank passages")

    def tokens(self) -> Positions:
        """The positions of occurrences and passages, counted in tokens."""
        return Positions(self.position_of_occurrence.astype(np.int64), self.first_token_of_passage, self.end_token_of_passage - 1)

    def in_passages_with_titles(self) -> Frequencies:
        """Term frequencies of each passage together with the titles of all sections that contain it."""
        if not self.in_titles.term.size:
            return self.in_passages
        passages, titles = (TermCounts(own.first_entry, own.term, own.count) for own in (self.in_passages, self.in_titles))
        counts = add_titles(passages, self.section_of_passage, self.parent_of_section, titles, len(self.query.terms))
        if self.all_terms is None or self.in_titles.single_terms_in is None:
            return Frequencies(*counts)
        return replace(Frequencies(*counts), single_terms_in=_single_terms(self.all_terms.in_passages_with_titles, self.all_terms.query))

    def length_with_titles_of_passage(self) -> Integers:
        """The number of indexed tokens of each passage and of the titles of all sections that contain it."""
        titles: Integers = sum_ancestors(self.title_length_of_section, self.parent_of_section)
        return frozen(self.length_of_passage + titles[self.section_of_passage])


@cache
def _fields_of(declared: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a dataclass, since `dataclasses.fields` takes long."""
    return tuple(field.name for field in fields(declared))


def join(
    snapshot: Snapshot, query: Query, candidates: Candidates, *, units: Units = "passages", tags: Collection[str] | None = None
) -> Matches:
    """Read the query's occurrences in the candidate documents, and join them with the documents' structure.

    `units` selects the rows of the passage columns: passages, whole documents, or elements. `tags` limits elements to
    those with one of these tags; None selects all logical elements.
    """
    order = np.argsort(candidates.documents, kind="stable")
    numbers, scores = candidates.documents[order], candidates.scores[order]
    single = query.ungrouped
    terms = snapshot.look_up(single.terms)
    documents, read, listed = read_columns(snapshot, single.terms, numbers, units, tags)
    statistics = snapshot.statistics_of(terms, single.terms if query.languages else None)
    column = documents.columns
    occurrences = cache(lambda: _occurrences_in(column, read()))
    of_text = _TextColumns(*(column[name] for name in _fields_of(_TextColumns)))
    matches = _made(
        single,
        statistics,
        numbers,
        scores,
        column,
        occurrences,
        _counted(column, occurrences(), len(single.terms))
        if listed is None
        else {kind: Frequencies.listed(frequencies) for kind, frequencies in listed.items()},
        documents.parts,
        units=units,
        structure=lambda: documents.once("structure", lambda: read_structure(snapshot, numbers)),
        id_rank_of_document=lambda: documents.once("order of ids", lambda: _ranks_by_id(snapshot, numbers)),
        characters=cache(lambda: _read_characters(snapshot, numbers, of_text, occurrences())),
        table=partial(read_table, folder=snapshot.folder),
        snapshot=snapshot,
        parts_of_score=lambda document: candidates.parts_of_score(int(numbers[document])),
    )
    return for_scores(matches, query)


def _ranks_by_id(snapshot: Snapshot, numbers: Integers) -> Integers:
    rank = np.empty(numbers.size, np.int64)
    rank[snapshot.by_id(numbers, np.zeros(numbers.size, np.int64))] = np.arange(numbers.size)
    rank.setflags(write=False)
    return rank


def for_scores(matches: Matches, query: Query) -> Matches:
    """The matches of the terms that count in the scores of a query; `matches` have its single terms.

    Terms that occur only under NOT are left out, and group terms take the place of their single terms. `with_negated`
    of the result returns all single terms.
    """
    query = query.positive
    if query.terms == matches.query.terms:
        return matches
    number = {single: i for i, term in enumerate(query.terms) for single in terms_in(term)}
    has_groups = len(number) > len(query.terms)
    number_of_term = np.array([number.get(term, -1) for term in matches.query.terms], np.int32)

    def is_positive() -> Mask:
        return number_of_term[matches.term_of_occurrence] >= 0

    def occurrences() -> Occurrences:
        kept = matches.occurrences().only(is_positive())
        return replace(kept, term=number_of_term[kept.term])

    def only(frequencies: Frequencies) -> Frequencies:
        entries = number_of_term[frequencies.term] >= 0
        first_entry = np.concatenate([[0], np.cumsum(entries)])[frequencies.first_entry]
        kept = Frequencies(first_entry, number_of_term[frequencies.term[entries]], frequencies.count[entries])
        return _added_up(kept, len(query.terms), _single_terms(lambda: frequencies, matches.query)) if has_groups else kept

    def characters() -> Positions:
        positions = matches.characters()
        return Positions(positions.position_of_occurrence[is_positive()], positions.first_of_passage, positions.last_of_passage)

    return replace(
        matches,
        query=query,
        statistics=_statistics_of(matches.statistics, number_of_term, len(query.terms)),
        occurrences=cache(occurrences),
        in_documents=only(matches.in_documents),
        in_passages=only(matches.in_passages),
        in_titles=only(matches.in_titles),
        characters=cache(characters),
        all_terms=matches,
    )


def _single_terms(frequencies: Callable[[], Frequencies], query: Query) -> Callable[[int], dict[str, int]]:
    """A function that returns the terms of a query that occur in a unit, with their frequencies."""
    read = cache(frequencies)

    def in_unit(unit: int) -> dict[str, int]:
        entries = slice(*read().first_entry[unit : unit + 2].tolist())
        return {query.terms[term]: count for term, count in zip(read().term[entries], read().count[entries].tolist(), strict=True)}

    return in_unit


def _added_up(frequencies: Frequencies, terms: int, single_terms_in: Callable[[int], dict[str, int]]) -> Frequencies:
    """Frequencies in which each unit has one entry per term; the entries of one term are added up."""
    units = frequencies.first_entry.size - 1
    entry, position = np.unique(frequencies.unit * terms + frequencies.term, return_inverse=True)
    count = np.bincount(position, frequencies.count, minlength=entry.size).astype(np.int32)
    first_entry = np.searchsorted(entry, np.arange(units + 1) * terms)
    return Frequencies(first_entry, (entry % max(terms, 1)).astype(np.int32), count, single_terms_in)


_OF_LANGUAGE = ("documents", "tokens", "passages", "passage_tokens")
_IN_UNITS, _IN_ALL = ("document_frequency", "passage_frequency"), ("collection_frequency", "passage_collection_frequency")


def _statistics_of(statistics: Statistics, number_of_term: Integers32, terms: int) -> Statistics:
    """The statistics of terms, from those of their single terms. `number_of_term` has the term of each of these or -1.

    A term has the largest number of documents and passages of its single terms, and the sum of their occurrences.
    """
    single = np.flatnonzero(number_of_term >= 0)
    counts: dict[str, Any] = {name: np.zeros(terms, np.int64) for name in (*_IN_UNITS, *_IN_ALL)}
    for names, combine in ((_IN_UNITS, np.maximum), (_IN_ALL, np.add)):
        for name in names:
            combine.at(counts[name], number_of_term[single], getattr(statistics, name)[single])
    for name in _OF_LANGUAGE:
        if isinstance(of_language := getattr(statistics, name), np.ndarray):  # all single terms of a term have its language
            counts[name] = np.zeros(terms, np.int64)
            counts[name][number_of_term[single]] = of_language[single]
    return replace(statistics, **counts)


def assemble(
    query: Query,
    statistics: Statistics,
    numbers: Integers,
    scores: Floats,
    column: dict[str, Array],
    parts: Sequence[str] = ("",),
    **others: Any,
) -> Matches:
    """Make matches from plain columns: find and count the occurrences in each passage and title.

    `numbers` and `scores` have one value per document. `column` has the columns of `Matches` by name, and in addition
    `title_first_of_section`, `title_end_of_section`, `term_of_occurrence`, `position_of_occurrence` and
    `end_occurrence_of_document`. Without a column `part_of_passage`, all passages belong to the first of `parts`.
    `others` are other fields of `Matches` by name.
    """
    passages = column["document_of_passage"].size
    column = {name: np.zeros(passages, np.int64) for name in ("part_of_passage", "span_of_passage")} | column
    found = _occurrences_in(column, column)
    return _made(query, statistics, numbers, scores, column, lambda: found, _counted(column, found, len(query.terms)), parts, **others)


def _made(
    query: Query,
    statistics: Statistics,
    numbers: Integers,
    scores: Floats,
    column: Mapping[str, Array],
    occurrences: Callable[[], Occurrences],
    frequencies: Mapping[str, Frequencies],
    parts: Sequence[str],
    **others: Any,
) -> Matches:
    """Matches with these columns. `frequencies` has those in documents, passages and titles."""
    return Matches(
        query=query,
        statistics=statistics,
        number_of_document=numbers,
        score_of_document=scores,
        occurrences=occurrences,
        in_documents=frequencies["documents"],
        in_passages=frequencies["passages"],
        in_titles=frequencies["titles"],
        parts=tuple(parts),
        **{name: values for name, values in column.items() if name in _fields_of(Matches)},  # type: ignore[arg-type]
        **others,
    )


def _occurrences_in(column: Mapping[str, Array], found: Mapping[str, Array]) -> Occurrences:
    """The occurrences in each document and passage, given the columns of passages and those of occurrences."""
    first = np.concatenate([[0], found["end_occurrence_of_document"]]).astype(np.int64)
    # Columns of a join are read-only (see `CandidateSet`), so all are.
    ranges = (frozen(column[name]) for name in ("document_of_passage", "first_token_of_passage", "end_token_of_passage"))
    term, position = found["term_of_occurrence"], found["position_of_occurrence"]
    return Occurrences(term, position, first, *occurrences_of_ranges(frozen(position), frozen(first), *ranges))


def _counted(column: Mapping[str, Array], found: Occurrences, terms: int) -> dict[str, Frequencies]:
    """Count occurrences in documents, passages and titles."""
    titles = (frozen(column[name]) for name in ("document_of_section", "title_first_of_section", "title_end_of_section"))
    bounds = {
        "documents": (frozen(found.first_of_document[:-1]), frozen(found.first_of_document[1:])),
        "passages": (found.first_of_passage, found.end_of_passage),
        "titles": tuple(map(frozen, occurrences_of_ranges(found.position, found.first_of_document, *titles))),
    }
    return {kind: Frequencies(*count_terms(found.term, *inside, terms)) for kind, inside in bounds.items()}


@dataclass(frozen=True, slots=True)
class _TextColumns:
    """The columns that positions in characters are made of.

    Matches that referred to themselves for this would be freed, with the snapshot, by the garbage collector only.
    """

    document_of_passage: Integers
    first_token_of_passage: Integers
    end_token_of_passage: Integers


def _read_characters(snapshot: Snapshot, numbers: Integers, columns: _TextColumns, found: Occurrences) -> Positions:
    """Positions in characters. The index does not store word offsets, so the texts are split into words again."""
    occurrence = np.zeros(found.position.size, np.int64)
    passages_in_all = columns.document_of_passage.size
    first, last = np.zeros(passages_in_all, np.int64), np.full(passages_in_all, -1, np.int64)
    occurrences = found.first_of_document.tolist()
    passages = np.searchsorted(columns.document_of_passage, np.arange(numbers.size + 1))
    for document, number in enumerate(numbers.tolist()):
        segment, local = snapshot.locate(number)
        starts, ends = word_spans(segment.text(local))
        inside = slice(occurrences[document], occurrences[document + 1])
        positions = found.position[inside]
        if starts.size != segment["document.tokens"][local] or int(positions.max(initial=-1)) >= starts.size:
            raise segment.columns.damaged(f"has a damaged text (document {local})")
        occurrence[inside] = starts[positions]
        rows = np.arange(passages[document], passages[document + 1])
        rows = rows[columns.end_token_of_passage[rows] > columns.first_token_of_passage[rows]]
        first[rows] = starts[columns.first_token_of_passage[rows]]
        last[rows] = ends[columns.end_token_of_passage[rows] - 1] - 1
    return Positions(occurrence, first, last)
