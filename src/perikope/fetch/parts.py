"""Ranking of documents by chosen parts, such as title and claims only. Each part has a weight.

Term frequencies and document lengths are weighted sums over the parts. The fetch model is applied once to these sums,
not once per part (Robertson, Zaragoza and Taylor, Simple BM25 extension to multiple weighted fields, CIKM 2004). The
statistics of the collection are computed from the same sums.

A metadata field with classification codes, such as `ipc`, is a part too. Its tokens are the codes of a document. The
terms of a query that occur in it are code terms (`query/code_terms.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np

from perikope.core.arrays import Floats, Integers
from perikope.core.errors import UsageError, unknown
from perikope.fetch import Candidates, Summand
from perikope.fetch.conditions import Codes, read_codes
from perikope.fetch.filters import Filter, known_parts, mask
from perikope.fetch.models import FetchModel, Terms
from perikope.fetch.search import in_order, joined_documents
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.patents.codes import CODE_FIELDS
from perikope.query.code_terms import code_fields, split_code_term
from perikope.query.group_terms import single_terms, terms_in
from perikope.query.patent import PARTS
from perikope.query.terms import Query

HELD = 1 << 24
"""The largest number of postings of a query that are kept in memory."""

Parts = Mapping[str, float]
"""Weights of parts, by the name of the part."""


def parse_parts(text: str) -> dict[str, float]:
    """Parse parts with weights; a part without a weight has weight 1.

    >>> parse_parts("title=2,abstract")
    {'title': 2.0, 'abstract': 1.0}
    """
    parts = {}
    for item in text.split(","):
        name, _, weight = (piece.strip() for piece in item.partition("="))
        try:
            parts[name] = float(weight or 1)
        except ValueError:
            parts[name] = -1.0
        if not name or not 0 < parts[name] < float("inf"):
            raise UsageError(f"{item.strip()!r} is not a part with a weight above 0; write parts as title=2,abstract,claims=0.5")
    return parts


def check_parts(snapshot: Snapshot, parts: Parts) -> None:
    """Raise `UsageError` if no document has one of the parts, or if a weight is not a positive number.

    A usual part of patents may be missing if the documents have another one of the parts.
    """
    known = [*known_parts(snapshot), *code_fields(snapshot)]
    usual = (*PARTS, *CODE_FIELDS) if not parts.keys().isdisjoint(known) else ()
    for name, weight in parts.items():
        if name not in known and name not in usual:
            raise (
                unknown("part", name, known)
                if known
                else UsageError("the documents of this index have no parts; leave out fetch_parts (--fetch-parts)")
            )
        if not 0 < weight < float("inf"):
            raise UsageError(f"the weight of part {name} must be above 0, not {weight}")


def fetch_parts(
    snapshot: Snapshot, query: Query, model: FetchModel, documents: int, parts: Parts, filter: Filter | None = None
) -> Candidates:
    """The best `documents` documents that satisfy the filter, ranked by the given parts only.

    Without parts, documents are ranked by their whole text and all codes. Codes then add nothing to the length. Equal
    scores are ordered by document id.
    """
    terms = _statistics(snapshot, query.terms, parts)
    if query.languages:
        terms = _by_language(snapshot, query.terms, terms)
    found = snapshot.ask(_best_of_shard, query, model, documents, parts, filter, terms)
    numbers, scores = joined_documents(found)
    weights = np.array(query.weights)
    candidates = in_order(snapshot, numbers, model.finish(scores, weights, terms), documents)
    if model.definition.finish is not None:
        return candidates
    return replace(candidates, parts_of_score=partial(_parts_of_score, snapshot, query, model, terms, parts))


def _statistics(snapshot: Snapshot, names: Sequence[str], parts: Parts) -> Terms:
    """The statistics of terms and of the collection in some parts. Tokens are weighted, occurrences too."""
    answers = [answer for _, answer in snapshot.ask(_count_shard, names, parts)]
    documents, occurrences = _of_groups(names, [counts for counts, _ in answers])
    return Terms(documents, occurrences, snapshot.totals.documents, sum((tokens for _, tokens in answers), ExactSum()).total)


def occurrences_in_parts(snapshot: Snapshot, names: Sequence[str], parts: Parts) -> Floats:
    """The weighted number of occurrences of each term in some parts."""
    return _of_groups(names, [counts for _, (counts, _) in snapshot.ask(_count_shard, names, parts)])[1]


def _count_shard(snapshot: Snapshot, names: Sequence[str], parts: Parts) -> tuple[PartCounts, ExactSum]:
    """The counts of the single terms of `names` in a shard, and its weighted tokens."""
    postings = _KEPT[snapshot] = PostingsOfTerms(snapshot, names, parts)
    lengths = (_lengths(segment, parts)[segment.alive] for segment in snapshot.segments)
    return postings.counts, sum((ExactSum.of(length) for length in lengths), ExactSum())


def _of_groups(names: Sequence[str], shards: Sequence[PartCounts]) -> tuple[Integers, Floats]:
    """The document frequency and the occurrences of each term, from the counts of the single terms in all shards.

    The document frequency of a group term is the largest of its single terms, see `query/group_terms.py`.
    """
    number = {single: i for i, single in enumerate(single_terms(names))}
    documents = sum((documents for documents, _ in shards), np.zeros(len(number), np.int64))
    occurrences = np.array([sum((sums[i] for _, sums in shards), ExactSum()).total for i in range(len(number))])
    singles = [[number[single] for single in terms_in(term)] for term in names]
    return (
        np.array([documents[some].max() for some in singles], np.int64),
        np.array([float(occurrences[some].sum()) for some in singles], np.float64),
    )


def _best_of_shard(
    snapshot: Snapshot, query: Query, model: FetchModel, documents: int, parts: Parts, filter: Filter | None, terms: Terms
) -> tuple[Integers, Floats]:
    """The numbers and sums of the best documents of a shard, unordered, with all that tie with the last one."""
    postings_of_terms = _KEPT.pop(snapshot, None)
    if postings_of_terms is None or not postings_of_terms.are_of(query.terms, parts):
        postings_of_terms = PostingsOfTerms(snapshot, query.terms, parts)
    weights = np.array(query.weights)
    seen = terms.document_frequency > 0
    matching: list[Integers] = []
    sums: list[Floats] = []
    for i, (base, segment) in enumerate(zip(snapshot.first_document.tolist(), snapshot.segments, strict=False)):
        length = _lengths(segment, parts)
        total, held = np.zeros(segment.documents), np.zeros(segment.documents, bool)
        # Rare terms first: the same order as in `fetch`.
        for t in np.argsort(terms.document_frequency, kind="stable").tolist():
            documents_of_term, frequency = postings_of_terms.of(i, t)
            if documents_of_term.size:
                of_posting = terms.at(np.full(frequency.size, t))
                total[documents_of_term] += weights[t] * model.contribution(frequency, length[documents_of_term], of_posting)
                held[documents_of_term] = True
        held &= True if filter is None else mask(segment, filter)
        here = np.flatnonzero(held)
        background = model.background(length[here], float(weights[seen].sum()))
        matching.append(base + here)
        sums.append(total[here] if background is None else total[here] + background)
    numbers, scores = np.concatenate([*matching, np.zeros(0, np.int64)]), np.concatenate([*sums, np.zeros(0)])
    if scores.size > documents:
        best = np.flatnonzero(scores >= np.partition(scores, scores.size - documents)[scores.size - documents])
        numbers, scores = numbers[best], scores[best]
    return numbers, scores


def _by_language(snapshot: Snapshot, names: Sequence[str], terms: Terms) -> Terms:
    """The statistics with the collection counted in the language of each term.

    Tokens of parts are not counted by language: a language has the same share of them as of the whole collection.
    """
    documents, tokens, _, _ = snapshot.totals_of(names)
    share = tokens / max(snapshot.totals.occurrences, 1)
    return replace(terms, documents=documents, tokens=share * terms.tokens, length=terms.average_length)


def _parts_of_score(snapshot: Snapshot, query: Query, model: FetchModel, terms: Terms, parts: Parts, document: int) -> list[Summand]:
    """The contributions to the score of a document.

    There is one per word and code in the document and, if the model has a background, one for the document's length.
    """
    segment, local = snapshot.locate(document)
    length = _lengths(segment, parts)[local : local + 1]
    listed = []
    for t, (name, weight) in enumerate(zip(query.terms, query.weights, strict=True)):
        frequencies: dict[str, float] = {}
        for single, number in zip(terms_in(name), _numbers(snapshot, segment, name), strict=True):
            documents, of_documents = _postings(segment, single, number, parts)
            if (frequency := of_documents[documents == local]).size:
                frequencies[single] = float(frequency[0])
        if frequencies:
            labels = {single: f"code {name}" if split_code_term(name) else query.label(single) for single in frequencies}
            added = model.contribution(np.array([sum(frequencies.values())]), length, terms.at(np.array([t])))
            occurs = ", ".join(f"{labels[single]} occurs {times:g}×" for single, times in frequencies.items())
            listed.append(Summand(occurs, float(weight * added[0]), name))
    seen = np.array(query.weights)[terms.document_frequency > 0]
    background = model.background(length, float(seen.sum()))
    return listed if background is None else [*listed, Summand("smoothing for length", float(background[0]), "")]


def _numbers(snapshot: Snapshot, segment: Segment, name: str) -> list[int]:
    """The numbers of the single terms of a term in a segment."""
    numbers: list[int] = snapshot.numbers_of_terms(terms_in(name))[snapshot.segments.index(segment)].tolist()
    return numbers


@dataclass(frozen=True, slots=True)
class ExactSum:
    """A sum of numbers that does not depend on their order, nor on how they are divided among segments and shards.

    Whole numbers are added up. Of other numbers, equal ones are counted.
    """

    whole: int = 0
    others: Mapping[float, int] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Floats) -> ExactSum:
        """The sum of an array. Frequencies and lengths have few distinct values."""
        fractions = values[values != np.floor(values)]
        distinct, counts = np.unique(fractions, return_counts=True)
        others = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
        return cls(int(values.sum() if not others else values[values == np.floor(values)].sum()), others)

    def __add__(self, other: ExactSum) -> ExactSum:
        if not other.others:
            return ExactSum(self.whole + other.whole, self.others)
        return ExactSum(self.whole + other.whole, Counter(self.others) + Counter(other.others))

    @property
    def total(self) -> float:
        """The sum, correctly rounded from the products of the distinct values and their numbers."""
        return math.fsum([float(self.whole), *(value * count for value, count in self.others.items())])


PartCounts = tuple[Integers, list[ExactSum]]
"""The number of documents, and the weighted occurrences, of each single term in some parts."""


class PostingsOfTerms:
    """The postings of terms in some parts of the documents of one shard, and their counts.

    Postings are kept in memory up to a limit, because a whole patent as a query has thousands of terms. The others are
    read again.
    """

    def __init__(self, snapshot: Snapshot, terms: Sequence[str], parts: Parts) -> None:
        self._segments, self._terms, self._parts, self._singles = snapshot.segments, tuple(terms), parts, single_terms(terms)
        self._numbers = snapshot.numbers_of_terms(self._singles)
        self._kept: dict[tuple[int, int], tuple[Integers, Floats]] = {}
        documents = np.zeros(len(self._singles), np.int64)
        occurrences = [ExactSum()] * len(self._singles)
        held = 0
        for i, single in product(range(len(self._segments)), range(len(self._singles))):
            postings = self._read(i, single)
            documents[single] += postings[0].size
            occurrences[single] += ExactSum.of(postings[1])
            held += postings[0].size
            if held <= HELD:
                self._kept[i, single] = postings
        self.counts: PartCounts = documents, occurrences
        number = {name: single for single, name in enumerate(self._singles)}
        self._singles_of_term = [[number[single] for single in terms_in(term)] for term in terms]

    def are_of(self, terms: Sequence[str], parts: Parts) -> bool:
        """Whether these are the postings of the given terms and parts."""
        return self._terms == tuple(terms) and self._parts == parts

    def of(self, segment: int, term: int) -> tuple[Integers, Floats]:
        """The documents of a segment that contain a term, and the weighted frequency of the term in each."""
        postings = [self._kept.get((segment, single)) or self._read(segment, single) for single in self._singles_of_term[term]]
        if len(postings) == 1:
            return postings[0]
        documents, position = np.unique(np.concatenate([one for one, _ in postings]), return_inverse=True)
        frequencies: Floats = np.bincount(position, np.concatenate([one for _, one in postings]), documents.size).astype(np.float64)
        return documents, frequencies

    def _read(self, segment: int, single: int) -> tuple[Integers, Floats]:
        return _postings(self._segments[segment], self._singles[single], int(self._numbers[segment][single]), self._parts)


def _postings(segment: Segment, name: str, term: int, parts: Parts) -> tuple[Integers, Floats]:
    """The documents that contain a term in one of the parts, and the weighted frequency of the term in each.

    `name` is the term, and `term` its number in the segment; -1 if it is not in the text of any document.
    """
    if code := split_code_term(name):
        field, written = code
        frequency = parts.get(field, 0.0 if parts else 1.0) * _code_frequencies(segment, field, written)
    elif term < 0:
        return np.zeros(0, np.int64), np.zeros(0)
    elif parts:
        return segment.weighted_postings(term, parts)
    else:
        documents, counts = segment.postings(term)
        return documents.astype(np.int64), counts.astype(np.float64)
    documents = np.flatnonzero(frequency)
    return documents, frequency[documents]


def _code_frequencies(segment: Segment, field: str, code: str) -> Floats:
    """How many codes of each document equal a code or are subdivisions of it, without deleted documents."""
    codes: Codes = segment.remember(read_codes, field)
    return _documents_of(segment, np.sort(codes.inside(code)))


def _code_lengths(segment: Segment, field: str) -> Floats:
    """The number of codes of each document."""
    codes: Codes = segment.remember(read_codes, field)
    return _documents_of(segment, np.sort(codes.keys))


def _documents_of(segment: Segment, keys: Integers) -> Floats:
    """How many of the facet keys, in ascending order, each live document has."""
    counts: Floats = np.bincount(segment.facets.documents(keys), minlength=segment.documents).astype(np.float64)
    counts[~segment.alive] = 0.0
    return counts


def _lengths(segment: Segment, parts: Parts) -> Floats:
    """The weighted length of each document of a segment, in tokens."""
    if not parts:
        return segment["document.length"].astype(np.float64)
    if len(segment.parts) == 1:
        length: Floats = segment["document.length"] * float(parts.get(segment.parts[0], 0.0))
    else:
        # The parts are added in the order of the query, since each segment has its own order.
        by_part = segment["document.part_length"].reshape(segment.documents, len(segment.parts))
        length = np.zeros(segment.documents)
        for part in parts:
            if part in segment.parts:
                length += parts[part] * by_part[:, segment.parts.index(part)]
    for name in parts:
        if name in CODE_FIELDS and name in segment.facets.fields:
            length = length + parts[name] * _code_lengths(segment, name)
    return length


_KEPT: WeakKeyDictionary[Snapshot, PostingsOfTerms] = WeakKeyDictionary()
"""The postings that were counted last, for the ranking that follows."""
