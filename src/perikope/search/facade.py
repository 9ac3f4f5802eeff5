"""The front door: an index that is made, filled, searched and explained."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from perikope.browse.document_ranking import parse_method, rank_documents
from perikope.browse.matches import Matches, join
from perikope.browse.models import Model, Signals, parse_model
from perikope.browse.passage_feedback import expand_from_passages
from perikope.browse.ranking import FLAT, Grouping, Presentation, Ranking, first_of_group, rank
from perikope.browse.requirements import lacking
from perikope.browse.satisfaction import satisfied
from perikope.browse.signals import Column, Node, fact, min_max
from perikope.browse.structure import Outline, Units, check_tags
from perikope.core.errors import ModelWarning, UsageError, unknown
from perikope.core.names import encode, is_element_path, passage_name, running_number, split_name
from perikope.document.tree import Document, Place
from perikope.fetch import Candidates
from perikope.fetch.expansion import expand as expand_query
from perikope.fetch.expansion import parse_expansion
from perikope.fetch.fetchers import BY_VECTORS, FETCHERS
from perikope.fetch.filters import (
    CODE_FIELDS,
    All,
    Filter,
    Ids,
    SharedCodes,
    Without,
    codes_of,
    known_fields,
    known_parts,
    known_tags,
    mask,
    parse_filter,
    passage_mask,
    unknown_fields,
)
from perikope.fetch.groups import groups_of
from perikope.fetch.models import FetchModel, parse_fetch_model
from perikope.fetch.parts import check_parts
from perikope.fetch.parts import fetch_parts as fetch_by_parts
from perikope.fetch.prior_art import PatentQuery, Restriction, patent_query
from perikope.fetch.search import fetch as fetch_documents
from perikope.fetch.search import in_order
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, create
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.patents.codes import LEVELS
from perikope.query.patent import BROWSE_FROM, BROWSE_WORDS, FETCH_FROM, FETCH_WORDS, Claims, Forms, Names
from perikope.query.syntax import automatic
from perikope.query.terms import Query, parse_boolean, parse_query
from perikope.search.context import AROUND, BUDGET, Context, TokenCounter, build_context, count_words, titles_above
from perikope.search.recipes import Recipe, RecipeWarning, load_recipe
from perikope.text.analysis import Analyzer, word_spans

if TYPE_CHECKING:
    from perikope.patents.translation import Translator

DEFAULT_MODEL = "qsf_v_title"
DEFAULT_FETCH = "bm25"
SYNTAXES = ("words", "boolean", "automatic")

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, with what surrounds it."""

    rank: int
    score: float
    document: str
    passage: str
    path: tuple[str, ...]
    """The titles above the passage, from the document's own to that of its section."""
    text: str
    highlights: tuple[tuple[int, int], ...]
    """Where the query's terms stand in the text, in characters."""
    part: str
    tag: str
    before: str
    after: str
    """The passages next to it in the document, or empty texts."""
    start: int
    end: int
    """Where it stands in the document's text, in characters."""
    metadata: dict[str, Any]
    source: str
    """The file it was read from, as the index names it; a member of an archive as `archive.zip/member.xml`."""
    place: Place | None
    """Where it stands in that file, for formats whose files can be opened at a place."""
    citation: str
    """How people cite it: `EP1130000B1 [0042]`; empty where its format does not say."""

    @property
    def name(self) -> str:
        """`document#passage`, as in run files."""
        return passage_name(self.document, self.passage)


class Results(Sequence[Hit]):
    """The hits of one search, read from the index as they are asked for."""

    def __init__(
        self,
        snapshot: Snapshot,
        matches: Matches,
        signals: Signals,
        score: Column,
        ranking: Ranking,
        eligible: NDArray[np.bool_] | None,
        group_of_document: NDArray[np.int64] | None = None,
    ) -> None:
        """`eligible` says which rows of the matches may be results; None: all of them. For `group_of_document` see `rank`."""
        self._snapshot = snapshot
        self.matches = matches
        self.score = score
        self.ranking = ranking
        self._signals = signals
        self.eligible = eligible
        self.group_of_document = group_of_document
        self.is_complete = True
        """Whether all candidates are in `matches`, not only the documents of the best passages."""

    def __len__(self) -> int:
        return len(self.ranking)

    @overload
    def __getitem__(self, number: int) -> Hit: ...
    @overload
    def __getitem__(self, number: slice) -> list[Hit]: ...
    def __getitem__(self, number: int | slice) -> Hit | list[Hit]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        number %= len(self)
        return _hit(self._snapshot, self.matches, int(self.ranking.rows[number]), number + 1, float(self.ranking.scores[number]))

    def names(self) -> list[tuple[str, float]]:
        """`document#passage` and score of each hit, as a run file has them."""
        return list(zip(self.names_of(self.ranking.rows), self.ranking.scores.tolist(), strict=True))

    def names_of(self, rows: NDArray[np.int64]) -> list[str]:
        """The names of passages by their rows in `matches`, found or not."""
        candidates = self.matches.document_of_passage[rows]
        first_row = self.matches.document_of_passage.searchsorted(candidates)
        columns = (rows - first_row, candidates, self.matches.span_of_passage[rows])
        # Of a thousand hits many are in one document: it is looked up once.
        name_of = {candidate: _names_in(self._snapshot, self.matches, candidate) for candidate in np.unique(candidates).tolist()}
        return [name_of[d](place, span) for place, d, span in zip(*(c.tolist() for c in columns), strict=True)]

    def places_of(self, rows: NDArray[np.int64]) -> list[Place | None]:
        """Where passages stand in the files they were read from, by their rows in `matches`."""
        candidates = self.matches.document_of_passage[rows].tolist()
        spans = self.matches.span_of_passage[rows].tolist()
        located = {candidate: self._snapshot.locate(int(self.matches.number_of_document[candidate])) for candidate in set(candidates)}
        places = {candidate: segment.places(local) for candidate, (segment, local) in located.items()}
        return [places[candidate].get(span) for candidate, span in zip(candidates, spans, strict=True)]

    def rows_of(self, names: Iterable[str]) -> dict[str, int]:
        """The rows in `matches` of passages, by their names; those of documents that are no candidates are left out."""
        wanted = set(names)
        documents = {document for document, _ in map(split_name, wanted)}
        numbers = np.array([self._snapshot.find_document(document) for document in documents], np.int64)
        candidates = np.flatnonzero(np.isin(self.matches.number_of_document, numbers))
        rows = np.flatnonzero(np.isin(self.matches.document_of_passage, candidates))
        return {name: row for name, row in zip(self.names_of(rows), rows.tolist(), strict=True) if name in wanted}

    def signals(self) -> dict[str, NDArray[Any]]:
        """What the model made the scores of, a value a hit, under names: ready to become a data frame.

        Document, passage, rank and score stand first, then the signals of the model by their names; one that is named as these are is
        `signal_document` and so on.
        """
        rows = self.ranking.rows
        names = [split_name(name) for name in self.names_of(rows)]
        columns: dict[str, NDArray[Any]] = {
            "document": np.array([document for document, _ in names], object),
            "passage": np.array([passage for _, passage in names], object),
            "rank": np.arange(1, rows.size + 1),
            "score": self.ranking.scores.copy(),
        }
        return columns | {f"signal_{name}" if name in columns else name: column.values[rows] for name, column in self._signals.items()}

    def document_ranking(self, method: str = "maxp", k: int = 1000) -> list[tuple[str, float]]:
        """The best `k` documents by the scores of their passages, id and score of each; see `perikope.browse.document_ranking`."""
        if not self.is_complete:
            raise UsageError("documents can be ranked by their passages only where a number of documents is looked into, not all")
        groups = self.group_of_document
        most = k if groups is None else max(k, self.matches.documents)
        best = rank_documents(self.matches, self.score, parse_method(method), most, eligible=self.eligible)
        kept = slice(None) if groups is None else first_of_group(groups[best.documents])
        numbers, scores = self.matches.number_of_document[best.documents[kept]], best.scores[kept]
        return [
            (self._snapshot.document_id(number), score) for number, score in zip(numbers.tolist()[:k], scores.tolist()[:k], strict=True)
        ]

    def context(self, budget: int = BUDGET, *, tokens: TokenCounter = count_words, around: int = AROUND) -> Context:
        """The hits as one text for a reader or a language model, of at most `budget` tokens (words, or as `tokens` counts a text).

        As many as fit, best first, then up to `around` passages beside each; see `perikope.search.context`.
        """
        return build_context(self._snapshot, self.matches, self.ranking, budget, tokens, around)

    def explain(self, number: int) -> Node:
        """Where the score of a hit comes from; numbers count from 0."""
        return self.score.explain(int(self.ranking.rows[number]))


def _following_recipe(method: Callable[P, R]) -> Callable[P, R]:
    """Let the option `recipe` fill in what is not given."""

    @wraps(method)
    def filled(*arguments: Any, **options: Any) -> R:
        recipe = options.pop("recipe", "")
        if recipe:
            chosen, index = load_recipe(recipe), arguments[0]
            has_codes = not {*CODE_FIELDS}.isdisjoint(known_fields(index._snapshot))
            given = [name for name, value in options.items() if value]
            query = options.get("query", arguments[1] if len(arguments) > 1 else "")
            given += ["shares_codes_with"] if isinstance(query, PatentQuery) and query.shares_codes else []
            for complaint in chosen.complaints(index.settings, given, has_codes):
                warnings.warn(complaint, RecipeWarning, stacklevel=2)
            options = chosen.filled(options)
        return method(*arguments, **options)

    return filled


class Index:
    """A collection that can be searched for passages; safe to search from many threads.

    >>> import tempfile
    >>> index = Index.create(tempfile.mkdtemp())
    >>> from perikope.document.tree import TreeBuilder
    >>> builder = TreeBuilder("d1", title="Pumps"); _ = builder.passage("A magnet drives the rotor.")
    >>> index.add([builder.build()]); index.commit()
    >>> [(hit.document, hit.path, hit.text) for hit in index.search("rotor of a pump")]
    [('d1', ('Pumps',), 'A magnet drives the rotor.')]
    """

    def __init__(self, folder: str | PathLike[str], *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> None:
        """Open an index; `memory` bounds what adding takes, `wait` is how long to wait for another writer, in seconds."""
        self.folder = Path(folder)
        self.memory = memory
        self.wait = wait
        self._snapshot = Snapshot.open(self.folder)
        self._writer: IndexWriter | None = None

    @classmethod
    def create(
        cls,
        folder: str | PathLike[str],
        *,
        language: str = "en",
        stemmer: str = "snowball",
        stopwords: str | Sequence[str] = "default",
        memory: int = DEFAULT_MEMORY,
    ) -> Index:
        """Make an empty index in a new or empty folder."""
        chosen = stopwords if isinstance(stopwords, str) else tuple(stopwords)
        create(Path(folder), Analyzer(stemmer, chosen), language)  # type: ignore[arg-type]
        return cls(folder, memory=memory)

    @classmethod
    def open(cls, folder: str | PathLike[str], *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> Index:
        """Open an index as its last commit left it."""
        return cls(folder, memory=memory, wait=wait)

    @property
    def snapshot(self) -> Snapshot:
        """What is read: the documents of the last commit, as columns."""
        return self._snapshot

    @property
    def languages(self) -> list[str]:
        """The languages of the documents, the index's own first."""
        return list(self._snapshot.languages)

    @property
    def settings(self) -> dict[str, Any]:
        """How text is analysed: stemmer and stop words."""
        return dict(self._snapshot.manifest.analysis)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return self._snapshot.totals.documents

    @property
    def passages(self) -> int:
        """How many passages they have."""
        return self._snapshot.totals.passages

    @property
    def fingerprint(self) -> str:
        """A short text that differs wherever the content differs."""
        return self._snapshot.manifest.fingerprint

    def add(self, documents: Document | Iterable[Document], *, replace: bool = False) -> None:
        """Take documents; they can be found after `commit`. With `replace`, one that has the same id goes."""
        self._write().add([documents] if isinstance(documents, Document) else documents, replace=replace)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by their ids; they are found until `commit`. Returns how many."""
        return self._write().delete([ids] if isinstance(ids, str) else ids)

    def commit(self) -> None:
        """Make all changes durable and visible at once."""
        if self._writer is not None:
            self._snapshot = self._writer.commit()
            self.rollback()

    def rollback(self) -> None:
        """Forget the changes since the last commit."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *details: object) -> None:
        self.rollback()

    def compact(self) -> None:
        """Commit, and merge all segments; deleted text is gone from the disk afterwards."""
        self._snapshot = self._write().compact()
        self.rollback()

    def refresh(self) -> bool:
        """See what others have committed since; returns whether anything has changed."""
        latest = Snapshot.open(self.folder)
        changed = latest.manifest.generation != self._snapshot.manifest.generation
        self._snapshot = latest if changed else self._snapshot
        return changed

    def _write(self) -> IndexWriter:
        if self._writer is None:
            self._writer = IndexWriter(self.folder, memory=self.memory, wait=self.wait)
        return self._writer

    def patent_query(
        self,
        patent: str | PathLike[str] | Document | None = None,
        claims: Claims = (),
        *,
        fetch_words: int = FETCH_WORDS,
        fetch_from: Names = FETCH_FROM,
        browse_words: int = BROWSE_WORDS,
        browse_from: Names = BROWSE_FROM,
        weighted: bool = False,
        code_filter: bool = True,
        code_level: str = "full",
        date_limit: bool = True,
        family_filter: bool = True,
        family: Iterable[str] = (),
        language: str = "",
        translator: Translator | None = None,
    ) -> PatentQuery:
        """A patent as a query for `search`: its best words by tf-idf, and which documents may be found for it.

        `patent` is a file, a publication number or id in the index, or a document; `claims` are the query claims: a text, or a list of
        those of the patent by number, id or path in the original; without a patent, a text alone. The `fetch_words` best words of
        `fetch_from` fetch documents, the `browse_words` best of `browse_from` score their passages; see `perikope.query.patent`.

        Found are documents that share a classification code with the patent (`code_filter`, `code_level`), were published before its
        priority date (`date_limit`), and are not of its family (`family_filter`), to which `family` adds ids. The patent itself is never
        found. A text in a language that is not looked in is translated by `translator`, where there is one: a function of text, source
        and target language, such as `perikope.patents.translation.LibreTranslate(url)`. The query's `notes` tell what could not be done.
        """
        if code_level not in LEVELS:
            raise unknown("level of classification codes", code_level, LEVELS)
        return patent_query(
            self._snapshot,
            patent,
            claims,
            forms=Forms(fetch_words, fetch_from, browse_words, browse_from, weighted),
            restriction=Restriction(code_filter, date_limit, family_filter, code_level),
            family=frozenset(family),
            language=language,
            translator=translator,
        )

    @_following_recipe
    def search(
        self,
        query: str | PatentQuery,
        *,
        recipe: str | Recipe = "",
        model: str | Model = DEFAULT_MODEL,
        k: int = 10,
        documents: int | Literal["all"] = 1000,
        fetch: str = DEFAULT_FETCH,
        fetch_parts: Mapping[str, float] | None = None,
        expand: str = "",
        browse_query: str = "",
        browse_expand: str = "",
        language: str = "",
        candidates: Mapping[str, float] | None = None,
        also_nearest: str = "",
        filter: str | Filter | Sequence[str | Filter] = (),
        shares_codes_with: str = "",
        code_level: str = "full",
        part: str | Sequence[str] = (),
        tag: str | Sequence[str] = (),
        syntax: str = "words",
        must_match: bool = False,
        across_passages: bool = False,
        elements: bool | str | Sequence[str] = False,
        no_overlap: bool = False,
        group_by_document: bool | Grouping = False,
        drop_unmatched: bool = False,
        one_per: str = "",
        rescore: str | Model = "",
        rescore_weight: float = 0.5,
    ) -> Results:
        """The best `k` passages of the best `documents` documents.

        `query` fetches the documents; `browse_query`, where given, scores their passages. A query is looked for in every language
        that the index holds, or in the one given. `fetch_parts` ranks documents by these parts alone, each with a weight. `expand`
        (`bo1` or `rm3`) adds words of the best documents and fetches again; passages are scored with the added words too, unless
        there is a `browse_query`; `browse_expand` adds words of the best passages to what scores them, and scores again. With
        `candidates`, documents with their scores, nothing is fetched: these are looked into; ids that the index does not hold are
        passed over. `also_nearest` names a store of vectors (`perikope encode`): as many documents whose passages are nearest to the
        query by it are looked into as well, whether they hold a word of it or not.

        `filter` (`"date<2013-04-01"`, `"ipc=G06F"`, see `perikope search --help`) says which documents may be found, and
        `shares_codes_with` names a document with which they must share a classification code, at `code_level` full, group, subclass
        or class; that document itself is not found. `part` and `tag` say which passages may be. None of them changes how anything is
        weighed.

        `syntax` says how the queries are read: `words`, `boolean` (see `perikope.query.syntax`), or `automatic`, keywords such as
        `opera +singer -soprano` that become a Boolean query. Words under NOT neither fetch nor weigh. With `must_match` only passages
        are found in which the query that scores them holds, all of its words where it is plain; with `across_passages` it may hold
        around them (see `perikope.browse.satisfaction`). This too weighs nothing: scores and order are those of the search without it.

        With `elements`, or the tags of some, sections, lists and whole documents are results as passages are. With `no_overlap` none that
        overlaps a better one is; a document in which nothing scores is then a result as a whole, unless `drop_unmatched`.
        `group_by_document` puts the results of a document side by side, documents as they were fetched, or by their best ("score").
        `one_per` names a field of metadata, such as family: of documents with the same value there only the best has results.
        `rescore` mixes the fetch score of documents with what a model gives to each as a whole, which then weighs `rescore_weight`.

        `recipe` names a paper's system (see `perikope.search.recipes`) or a file of your own: what is not given here is as it says there.

        Instead of a text, `query` may be a patent, as `patent_query` makes one: it brings both forms of the query, and conditions of its
        own, which are added to those given here.
        """
        for name, value in (("k", k), ("documents", documents)):
            if not (isinstance(value, int) and value >= 1) and (name, value) != ("documents", "all"):
                raise UsageError(f"{name} must be a whole number of at least 1{' or all' * (name == 'documents')}, not {value!r}")
        snapshot = self._snapshot
        chosen = parse_model(model)
        for one in (chosen, *([parse_model(rescore)] if rescore else [])):
            if one != _default_model():  # who chose no model need not hear that another would do
                for complaint in lacking(snapshot, one):
                    warnings.warn(complaint, ModelWarning, stacklevel=3)
        conditions = _conditions(snapshot, [*_filters(filter), *_filters_of(query)], shares_codes_with, code_level)
        step = _Fetch(snapshot, parse_fetch_model(fetch), fetch_parts or {}, conditions)
        wanted = _Wanted(snapshot, k, _listed(part), _listed(tag), must_match or across_passages, across_passages)
        wanted.choose(elements, _presentation(no_overlap, group_by_document, drop_unmatched, one_per))
        fetched = _parse(snapshot, query, language, syntax)
        browsed = _browsed(snapshot, query, browse_query, language, syntax)
        together = expand or browse_expand or rescore or group_by_document or one_per or also_nearest
        alone = chosen.context_free and candidates is None and not together
        if documents == "all" and alone:
            return _search_all(snapshot, chosen, step, browsed or fetched, wanted)
        most = max(snapshot.numbers, 1) if documents == "all" else documents
        found = step.documents(fetched, most) if candidates is None else step.foreign(candidates, most)
        if expand and fetched.positive.terms:
            fetched = fetched.expanded(expand_query(snapshot, fetched.positive, found, expand))
            found = found if candidates is not None else step.documents(fetched, most)
        if also_nearest:
            found = step.with_nearest(found, fetched, also_nearest, most)
        browsed = browsed or fetched
        if rescore:
            found = _rescored(snapshot, browsed, found, parse_model(rescore), rescore_weight)
        matches = wanted.join(browsed, found)
        if browse_expand:
            matches = wanted.join(browsed.expanded(wanted.expansion(chosen, matches, browse_expand)), found)
        return wanted.results(chosen, matches)

    @_following_recipe
    def explain(self, query: str | PatentQuery, passage: str, **options: Any) -> Node:
        """Why a passage or element, named `document#passage`, has its score; takes the options of `search`."""
        document, wanted = split_name(passage)
        if not wanted:
            raise UsageError(f"{passage!r} names no passage; write it as document#passage, as search prints it")
        self.check_query(query, language=options.get("language", ""), syntax=options.get("syntax", "words"))
        number = self._snapshot.find_document(document)
        if number < 0:
            raise UsageError(f"there is no document {document!r} in {self.folder}")
        segment, local = self._snapshot.locate(number)
        ids = [segment.passage_id(local, other) for other in segment.passages_of(local)]
        if is_element_path(wanted) and (options.get("elements") or wanted not in ids):
            return self._explain_element(query, number, wanted, options)
        if wanted not in ids:
            raise UsageError(f"document {document!r} has no passage {wanted!r}; it has {_some(ids)}")
        if options.get("documents") == "all" and parse_model(options.get("model", DEFAULT_MODEL)).context_free:
            options["candidates"] = {document: 0.0}  # no other document changes anything
        results = self.search(query, **options)
        place = (results.matches.number_of_document == number).nonzero()[0]
        if not place.size:
            raise UsageError(
                f"document {document!r} was not fetched for this query: it holds none of its words, or is not among the best documents"
            )
        row = int((results.matches.document_of_passage == place[0]).nonzero()[0][0]) + ids.index(wanted)
        return results.score.explain(row)

    def _explain_element(self, query: str | PatentQuery, document: int, path: str, options: dict[str, Any]) -> Node:
        segment, local = self._snapshot.locate(document)
        outline = Outline(segment, local)
        matches = (results := self.search(query, **{**options, "elements": options.get("elements") or True})).matches
        own = matches.number_of_document[matches.document_of_passage] == document
        rows = (own & (matches.span_of_passage == outline.find(path))).nonzero()[0]
        if not rows.size:
            known = [outline.path(span) for span in matches.span_of_passage[own].tolist()]
            why = f"it has {_some(known)}" if known else "it was not fetched for this query"
            raise UsageError(f"document {segment.document_id(local)!r} has no element {path!r} that may be found; {why}")
        return results.score.explain(int(rows[0]))

    def place(self, document: str, passage: str) -> tuple[str, Place | None]:
        """The file that a passage was read from, as the index names it, and where it stands there, if that was kept."""
        segment, local, span = self._find_span(document, passage)
        return segment.source(local)[0], segment.places(local).get(span)

    def _find_span(self, document: str, passage: str) -> tuple[Segment, int, int]:
        """The span of a passage or an element, by its number in its document."""
        number = self._snapshot.find_document(document)
        if number < 0:
            raise UsageError(f"there is no document {document!r} in {self.folder}")
        segment, local = self._snapshot.locate(number)
        ids = [segment.passage_id(local, other) for other in segment.passages_of(local)]
        if passage in ids:
            first = int(segment["document.first_span"][local])
            return segment, local, segment.span_of("passage.span", local, segment.passages_of(local).start + ids.index(passage)) - first
        if is_element_path(passage):
            return segment, local, Outline(segment, local).find(passage)
        raise UsageError(f"document {document!r} has no passage {passage!r}; it has {_some(ids)}")

    def count(self, filter: str | Filter | Sequence[str | Filter] = (), *, shares_codes_with: str = "", code_level: str = "full") -> int:
        """How many documents these conditions leave."""
        conditions = _conditions(self._snapshot, filter, shares_codes_with, code_level)
        return _Fetch(self._snapshot, parse_fetch_model(DEFAULT_FETCH), {}, conditions).count()

    def check_query(self, query: str | PatentQuery, *, language: str = "", syntax: str = "words") -> Query:
        """The query as the index reads it; an error where it holds nothing to look for."""
        return _parse(self._snapshot, query, language, syntax)

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {self.documents} documents, {self.passages} passages)"


@cache
def _default_model() -> Model:
    return parse_model(DEFAULT_MODEL)


def _parse(snapshot: Snapshot, query: str | PatentQuery, language: str, syntax: str) -> Query:
    """The query in the given language, or in every language that the index holds."""
    if isinstance(query, PatentQuery):
        return query.fetch
    if not isinstance(query, str):
        raise UsageError(f"the query must be text, not {type(query).__name__}")
    if syntax not in SYNTAXES:
        raise unknown("syntax", syntax, SYNTAXES)
    languages = [language] if language else snapshot.languages
    if syntax == "words":
        return parse_query(query, snapshot.analyzer, languages)
    written = automatic(query) if syntax == "automatic" else query
    return parse_boolean(written, snapshot.analyzer, languages, snapshot.terms_with_prefix)


def _browsed(snapshot: Snapshot, query: str | PatentQuery, browse_query: str, language: str, syntax: str) -> Query | None:
    """What scores passages, where it is another query than the one that fetches."""
    if browse_query:
        return _parse(snapshot, browse_query, language, syntax)
    return query.browse if isinstance(query, PatentQuery) else None


@dataclass(frozen=True, slots=True)
class _Fetch:
    """How documents are chosen."""

    snapshot: Snapshot
    model: FetchModel
    parts: Mapping[str, float]
    filter: Filter | None

    def __post_init__(self) -> None:
        check_parts(self.snapshot, self.parts)

    def documents(self, query: Query, most: int) -> Candidates:
        positive = query.positive
        if not positive.terms:  # wildcards that stand for nothing
            return Candidates(np.zeros(0, np.int64), np.zeros(0))
        if self.parts:
            return fetch_by_parts(self.snapshot, positive, self.model, most, self.parts, self.filter)
        return fetch_documents(self.snapshot, positive, self.model, most, self.filter)

    def with_nearest(self, found: Candidates, query: Query, store: str, most: int) -> Candidates:
        """Also the documents that are nearest by the vectors of a store. Their score is what their words give: 0 where they have none."""
        near = FETCHERS[BY_VECTORS](self.snapshot, query.plain_text, store, most, self._allowed())
        added = np.setdiff1d(near.documents, found.documents)
        if not added.size:
            return found
        own = Ids(frozenset(self.snapshot.document_id(number) for number in added.tolist()))
        with_words = replace(self, filter=own if self.filter is None else All((self.filter, own))).documents(query, added.size)
        without = np.setdiff1d(added, with_words.documents)
        documents = np.concatenate([found.documents, with_words.documents, without])
        scores = np.concatenate([found.scores, with_words.scores, np.zeros(without.size)])
        return replace(in_order(self.snapshot, documents, scores, documents.size), parts_of_score=found.parts_of_score)

    def foreign(self, candidates: Mapping[str, float], most: int) -> Candidates:
        """Somebody else's candidates: the best of those that the index holds."""
        if not isinstance(candidates, Mapping) or not all(math.isfinite(score) for score in candidates.values()):
            raise UsageError("candidates must be a mapping of document ids to their scores, finite numbers")
        numbers = {id: self.snapshot.find_document(id) for id in candidates}
        allowed = self._allowed()
        known = sorted((-float(score), id) for id, score in candidates.items() if numbers[id] >= 0 and allowed[numbers[id]])[:most]
        return Candidates(np.array([numbers[id] for _, id in known], np.int64), np.array([-score for score, _ in known], np.float64))

    def _allowed(self) -> NDArray[np.bool_]:
        masks = [segment.alive if self.filter is None else segment.alive & mask(segment, self.filter) for segment in self.snapshot.segments]
        return np.concatenate([*masks, np.zeros(0, bool)])

    def count(self) -> int:
        """How many documents may be found."""
        return int(self._allowed().sum())


def _filters(filter: str | Filter | Sequence[str | Filter] | None) -> Sequence[Any]:
    return filter if isinstance(filter, (list, tuple)) else [] if filter is None else [filter]


def _filters_of(query: str | PatentQuery) -> tuple[Filter, ...]:
    return query.filters if isinstance(query, PatentQuery) else ()


def _conditions(
    snapshot: Snapshot, filter: str | Filter | Sequence[str | Filter], shares_codes_with: str, code_level: str
) -> Filter | None:
    filters: list[Filter] = [parse_filter(item) if isinstance(item, str) else item for item in _filters(filter)]
    for condition in filters:
        if not hasattr(condition, "unknown_fields"):
            raise UsageError(f"a filter is a text such as 'date<2013-04-01', or several, not {type(condition).__name__}")
    if code_level not in LEVELS:
        raise unknown("level of classification codes", code_level, LEVELS)
    if shares_codes_with:
        number = snapshot.find_document(shares_codes_with)
        if number < 0:  # as names of passages have it
            shares_codes_with = unquote(shares_codes_with)
            number = snapshot.find_document(shares_codes_with)
        if number < 0:
            raise UsageError(f"there is no document {shares_codes_with!r} in {snapshot.folder} to share codes with")
        segment, local = snapshot.locate(number)
        codes = codes_of(segment.metadata(local))
        if not codes:
            raise UsageError(f"document {shares_codes_with!r} has no classification codes to share, in {', '.join(CODE_FIELDS)}")
        filters += [SharedCodes(CODE_FIELDS, codes, code_level), Without(frozenset([shares_codes_with]))]
    for condition in filters:
        if fields := unknown_fields(snapshot, condition):
            raise unknown("field of metadata", fields[0], known_fields(snapshot))
    return All(tuple(filters)) if filters else None


def _presentation(no_overlap: bool, group_by_document: bool | Grouping, drop_unmatched: bool, one_per: str) -> Presentation:
    grouping: Grouping = "fetch" if group_by_document is True else group_by_document or ""
    if grouping not in ("", "score", "fetch"):
        raise unknown("order of documents", str(grouping), ["score", "fetch"])
    if drop_unmatched and not no_overlap:
        raise UsageError("drop_unmatched says what becomes of documents with no_overlap (--no-overlap); add that, or leave it out")
    return Presentation(no_overlap, grouping, drop_unmatched, one_per)


def _rescored(snapshot: Snapshot, query: Query, found: Candidates, model: Model, weight: float) -> Candidates:
    """The candidates by their fetch score and what a model gives to each document as a whole, both spread over 0 to 1."""
    if not 0 <= weight <= 1:
        raise UsageError(f"rescore_weight must be in [0, 1], not {weight!r}")
    matches = join(snapshot, query, found, units="documents")
    whole, fetched = min_max(model.score(matches)), min_max(fact("fetch score", matches.score_of_document))
    return in_order(snapshot, matches.number_of_document, ((1 - weight) * fetched + weight * whole).values, len(found))


def _listed(names: str | Sequence[str]) -> frozenset[str] | None:
    given = frozenset([names] if isinstance(names, str) else names or ()) - {""}
    return given or None


class _Wanted:
    """How many passages, and which of them."""

    def __init__(
        self, snapshot: Snapshot, k: int, parts: frozenset[str] | None, tags: frozenset[str] | None, must_match: bool, across: bool
    ) -> None:
        self.snapshot, self.k, self.parts, self.tags, self.must_match, self.across = snapshot, k, parts, tags, must_match, across
        for kind, given, known in (("part", parts, known_parts), ("tag of passages", tags, known_tags)):
            for name in sorted(given or ()):
                if name not in (names := known(snapshot)):
                    raise unknown(kind, name, names) if names else UsageError(f"there is no {kind} in {snapshot.folder}")

        self.units: Units = "passages"
        self.element_tags: frozenset[str] | None = None
        self.presentation = FLAT

    def choose(self, elements: bool | str | Sequence[str], presentation: Presentation) -> None:
        """What is ranked, and how it is laid out."""
        self.presentation = presentation
        if not elements:
            return
        if self.tags is not None:
            raise UsageError("tag is about passages; name the tags of elements with them: elements=['sec', 'p'], or --elements=sec,p")
        self.units = "elements"
        if elements is not True:
            self.element_tags = _listed(elements)
            check_tags(self.snapshot, sorted(self.element_tags or ()))

    def join(self, query: Query, candidates: Candidates) -> Matches:
        return join(self.snapshot, query, candidates, units=self.units, tags=self.element_tags)

    def results(self, model: Model, matches: Matches) -> Results:
        signals = model.signals(matches)
        score, eligible = model.combine(signals), self._eligible(model, matches)
        ranking = self._rank(matches, score, eligible)
        return Results(self.snapshot, matches, signals, score, ranking, eligible, self._groups(matches))

    def best(self, model: Model, matches: Matches, score: Column) -> Ranking:
        return self._rank(matches, score, self._eligible(model, matches))

    def expansion(self, model: Model, matches: Matches, text: str) -> Query:
        """The query with words of the best passages."""
        expander = parse_expansion(text)
        eligible = self._eligible(model, matches)
        best = rank(matches, model.score(matches), expander.depth, matches.place_of_document(), allowed=eligible)
        return expand_from_passages(self.snapshot, matches, best, expander)

    def _rank(self, matches: Matches, score: Column, eligible: NDArray[np.bool_] | None) -> Ranking:
        layout, groups = self.presentation, self._groups(matches)
        return rank(matches, score, self.k, matches.place_of_document(), allowed=eligible, presentation=layout, group_of_document=groups)

    def _groups(self, matches: Matches) -> NDArray[np.int64] | None:
        """The groups of which one document each has results; None where all have."""
        field = self.presentation.one_per
        return groups_of(self.snapshot, matches.number_of_document, field) if field else None

    def _eligible(self, model: Model, matches: Matches) -> NDArray[np.bool_] | None:
        allowed = self._allowed(matches)
        if not model.matching_only:
            return allowed
        matching = np.diff(matches.in_passages.first_entry) > 0
        return matching if allowed is None else allowed & matching

    def _allowed(self, matches: Matches) -> NDArray[np.bool_] | None:
        allowed = satisfied(matches, across=self.across) if self.must_match else None
        if self.parts is None and self.tags is None:
            return allowed
        by_structure = self._allowed_by_structure(matches)
        return by_structure if allowed is None else allowed & by_structure

    def _allowed_by_structure(self, matches: Matches) -> NDArray[np.bool_]:
        if self.units != "passages":
            wanted: NDArray[np.bool_] = np.array([self.parts is None or part in self.parts for part in matches.parts], bool)
            return wanted[matches.part_of_passage]
        allowed = np.zeros(matches.passages, bool)
        row_bounds = matches.document_of_passage.searchsorted(np.arange(matches.documents + 1))
        bounds = matches.number_of_document.searchsorted(self.snapshot.first_document)
        for i, segment in enumerate(self.snapshot.segments):
            rows = slice(int(row_bounds[bounds[i]]), int(row_bounds[bounds[i + 1]]))
            candidate = matches.document_of_passage[rows]
            documents = matches.number_of_document[candidate] - self.snapshot.first_document[i]
            first = segment["document.first_passage"][documents].astype(np.int64)
            passages = first + np.arange(rows.start, rows.stop) - row_bounds[candidate]
            allowed[rows] = passage_mask(segment, documents, passages, self.parts, self.tags)
        return allowed


_AT_ONCE = 1 << 21
"""About so many tokens are looked into at a time where all documents are."""


def _search_all(snapshot: Snapshot, model: Model, step: _Fetch, query: Query, wanted: _Wanted) -> Results:
    """The best passages of all documents, some documents at a time; for models that look at each passage alone."""
    found = np.sort(step.documents(query, max(snapshot.numbers, 1)).documents)
    tokens = np.concatenate([segment["document.tokens"] for segment in snapshot.segments])[found] if found.size else found
    pieces = np.split(found, np.flatnonzero(np.diff(np.cumsum(tokens) // _AT_ONCE)) + 1)
    best: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    for piece in pieces:
        matches = wanted.join(query, Candidates(piece, np.zeros(piece.size)))
        ranking = wanted.best(model, matches, model.score(matches))
        best.append((matches.number_of_document[matches.document_of_passage[ranking.rows]], ranking.scores))
    documents, scores = (np.concatenate(column) for column in zip(*best, strict=True))
    if scores.size > wanted.k:
        documents = documents[scores >= np.partition(scores, scores.size - wanted.k)[scores.size - wanted.k]]
    # The documents that hold the best passages once more: few, and what is shown and explained comes from one join.
    winners = np.unique(documents)
    results = wanted.results(model, wanted.join(query, Candidates(winners, np.zeros(winners.size))))
    results.is_complete = False
    return results


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (f" … {ids[-1]}" if len(ids) > 5 else "") or "none"


def _names_in(snapshot: Snapshot, matches: Matches, candidate: int) -> Callable[[int, int], str]:
    """A function that names the units of a document: by their place among its units, and their span."""
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    document = encode(segment.document_id(local))
    if matches.units != "passages":
        outline = Outline(segment, local)
        return lambda place, span: f"{document}#{encode(outline.path(span))}"
    id_of = segment.span_namer(local)
    return lambda place, span: f"{document}#{encode(id_of(span) or running_number(place))}"


def _identify(snapshot: Snapshot, matches: Matches, row: int) -> tuple[str, str]:
    candidate = int(matches.document_of_passage[row])
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    if matches.units != "passages":
        return segment.document_id(local), Outline(segment, local).path(int(matches.span_of_passage[row]))
    passage = segment.passages_of(local).start + _position(matches, row, candidate)
    return segment.document_id(local), segment.passage_id(local, passage)


def _position(matches: Matches, row: int, candidate: int) -> int:
    """The number of a passage within its document."""
    return row - int(matches.document_of_passage.searchsorted(candidate))


def _hit(snapshot: Snapshot, matches: Matches, row: int, rank: int, score: float) -> Hit:
    candidate = int(matches.document_of_passage[row])
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    passages = segment.passages_of(local)
    before, after = _around(segment, local, matches, row, candidate)
    text = segment.text(local)
    own_span = int(matches.span_of_passage[row])
    span = int(segment["document.first_span"][local]) + own_span
    here = segment.characters(span)
    record = segment.record(local)
    metadata, citation = segment.metadata(local, record), segment.citations(local, record).get(own_span, "")

    def neighbour(other: int) -> str:
        return text[segment.characters(segment.span_of("passage.span", local, other))] if other in passages else ""

    return Hit(
        rank=rank,
        score=score,
        document=segment.document_id(local),
        passage=_identify(snapshot, matches, row)[1],
        path=tuple(titles_above(snapshot, matches, row, text)),
        text=text[here],
        highlights=tuple(_highlights(snapshot.analyzer, matches.query, text[here], segment.label("language", span))),
        part=segment.label("part", span),
        tag=segment.label("tag", span),
        before=neighbour(before),
        after=neighbour(after),
        start=here.start,
        end=here.stop,
        metadata=metadata,
        source=str(record.get("member") or segment.source(local)[0]),
        place=segment.places(local, record).get(own_span),
        citation=f"{metadata.get('publication', segment.document_id(local))} {citation}" if citation else "",
    )


def _around(segment: Segment, local: int, matches: Matches, row: int, candidate: int) -> tuple[int, int]:
    """The passages before and after a passage or element; there may be none of this number."""
    passages = segment.passages_of(local)
    if matches.units == "passages":
        passage = passages.start + _position(matches, row, candidate)
        return passage - 1, passage + 1
    first, end = (segment[f"passage.{name}"][passages.start : passages.stop] for name in ("first_token", "end_token"))
    before = int(np.count_nonzero(end <= matches.first_token_of_passage[row]))
    after = int(np.count_nonzero(first < matches.end_token_of_passage[row]))
    return passages.start + before - 1, passages.start + after


def _highlights(analyzer: Analyzer, query: Query, text: str, language: str) -> Iterator[tuple[int, int]]:
    wanted = set(query.terms)
    starts, ends = word_spans(text)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if f"{language}:{analyzer.term(text[start:end], language)}" in wanted:
            yield start, end
