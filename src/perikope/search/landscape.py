"""The relevance landscape of a document: the influence of a query on each of its positions.

`influence(x) = Σ_w idf(w) · max over occurrences o of w of exp(-(x - o)² / 2σ²) / Σ_w idf(w)`

over the words w of the query that some document contains. Positions are tokens, titles and stop words included. The
value is between 0 and 1, and close to 1 where all words stand side by side.

Per word, the maximum over its occurrences counts, as in the proximity model of Beigbeder et al. 2015. The positional
language model of Carmel et al. 2013 adds up all occurrences. Such a sum has no upper bound: a word that is repeated
often outweighs a place at which all words meet, and landscapes of two documents have no common scale. `1 - Π (1 - f)`
has a bound, but a word that occurs several times within σ is close to 1 on long stretches, which hides the single
occurrences. With the maximum, a word is explained at each place by its nearest occurrence.

The default σ of 85 tokens is the Gaussian that falls to a half at the same distance, 100 tokens, as the triangle of
Beigbeder et al. (k = 200).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from perikope.browse.matches import Matches, join
from perikope.core.arrays import Floats, Integers, Integers32, frozen
from perikope.core.errors import UsageError
from perikope.core.names import running_number
from perikope.core.numbers import check_whole
from perikope.fetch import Candidates
from perikope.fetch.weighting import idf
from perikope.index.ranges import ranges
from perikope.index.reader import Snapshot, Statistics, of_terms
from perikope.index.segments import Segment
from perikope.kernels.landscape import add_nearest
from perikope.query.group_terms import terms_in
from perikope.query.terms import Query
from perikope.query.topic import Topic
from perikope.search.asking import Asked, read_asked, with_options_of
from perikope.search.explaining import find_document
from perikope.search.hits import document_title
from perikope.search.options import SearchOptions
from perikope.text.analysis import word_spans

SIGMA = 85.0
"""The default width σ of the Gaussian, in tokens."""
BINS = 200
"""The default number of bins."""
LISTED = 10_000
"""The largest number of occurrences that a landscape lists by default."""
_REACH = 4.0
"""Distance in σ beyond which an occurrence has no influence; it would be below exp(-8), which is 0.0003."""


@dataclass(frozen=True, slots=True)
class LandscapeWord:
    """A word of the query."""

    word: str
    """The word as the query writes it; a term, such as `en:pump`, if the query is a patent."""
    idf: float
    """The inverse document frequency of the word, which is its weight; 0 if no document contains the word."""
    occurrences: int
    """The number of occurrences in the document, forms with the same stem included."""


@dataclass(frozen=True, slots=True)
class LandscapeBin:
    """A stretch of the document. All stretches have the same number of tokens, give or take one."""

    start: int
    """The first token of the bin."""
    end: int
    """The end of the bin in tokens (exclusive)."""
    first_character: int
    """The first character of the bin in the text of the document."""
    end_character: int
    """The end of the bin in the text of the document (exclusive)."""
    influence: float
    """The largest influence at a position of the bin, from 0 to 1. A mean would hide short peaks in long bins."""
    peak: int
    """The first token with this influence."""
    peak_character: int
    """The first character of this token in the text of the document."""
    passage: str
    """The id of the passage in which the middle of the bin lies; empty if it lies in no passage, as in a title."""


@dataclass(frozen=True, slots=True)
class LandscapeOccurrence:
    """An occurrence of a query word in the document."""

    word: str
    """The word as the document writes it."""
    words: tuple[int, ...]
    """The query words that the occurrence belongs to, as indices into `Landscape.words`; usually one."""
    position: int
    """The token of the occurrence, counted from 0."""
    start: int
    """The first character of the occurrence in the text of the document."""
    end: int
    """The end of the occurrence in the text of the document (exclusive)."""
    passage: str
    """The id of the passage that contains the occurrence; empty if it is in no passage, as in a title."""
    idf: float
    """The largest inverse document frequency of the query words that the occurrence belongs to."""


@dataclass(frozen=True, slots=True)
class Landscape:
    """The relevance landscape of a document; see `perikope.search.landscape` for the formula."""

    document: str
    """The id of the document."""
    title: str
    """The title of the document; empty if it has none."""
    tokens: int
    """The number of tokens of the document."""
    characters: int
    """The length of the text of the document, in characters."""
    sigma: float
    """The width σ of the Gaussian, in tokens."""
    words: tuple[LandscapeWord, ...]
    """The words of the query, without stop words and words under NOT."""
    bins: tuple[LandscapeBin, ...]
    """The document from its first to its last token; fewer bins than requested if it has fewer tokens."""
    occurrences: tuple[LandscapeOccurrence, ...]
    """The occurrences of the words in reading order, up to the requested number. All of them have influence."""
    all_occurrences: int
    """The number of occurrences in the document."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists, for JSON."""
        return asdict(self)


def read_landscape(
    snapshot: Snapshot,
    asked: Asked,
    document: str,
    options: SearchOptions,
    *,
    bins: int = BINS,
    sigma: float = SIGMA,
    listed: int = LISTED,
) -> Landscape:
    """The relevance landscape of a document for a query.

    `document` is an id, or the number of a patent in any spelling. `options` say how the query is read. `sigma` is the
    width of the Gaussian in tokens. At most `listed` occurrences are listed.
    """
    check_whole("bins", bins, 1)
    check_whole("listed", listed, 0)
    if isinstance(sigma, bool) or not isinstance(sigma, (int, float)) or not 0 < sigma < math.inf:
        raise UsageError(f"sigma must be a number above 0, in tokens, not {sigma!r}")
    number, segment, local = find_document(snapshot, document)
    query = read_asked(snapshot, asked, with_options_of(asked, options) if isinstance(asked, Topic) else options).scoring
    matches = join(snapshot, query, Candidates(np.array([number]), np.zeros(1))).with_negated()
    words = _QueryWords(query, matches)
    text = segment.text(local)
    starts, ends = word_spans(text)
    tokens = int(segment["document.tokens"][local])
    if starts.size != tokens or (matches.position_of_occurrence.size and int(matches.position_of_occurrence[-1]) >= tokens):
        raise segment.columns.damaged(f"has a damaged text (document {local})")
    passages = _PassageRanges(segment, local, matches)
    return Landscape(
        document=segment.document_id(local),
        title=document_title(segment, local, text),
        tokens=tokens,
        characters=len(text),
        sigma=float(sigma),
        words=tuple(map(LandscapeWord, words.written, words.idf.tolist(), np.diff(words.first).tolist())),
        bins=tuple(_bins(words.influence(float(sigma), tokens), bins, starts, ends, passages)),
        occurrences=tuple(words.listed(listed, text, starts, ends, passages)),
        all_occurrences=words.occurrences.size,
    )


class _QueryWords:
    """The words of a query with their occurrences in one document."""

    def __init__(self, query: Query, matches: Matches) -> None:
        written = _written(query)
        number_of_term = {term: number for number, term in enumerate(matches.query.terms)}
        terms_of_word = [[number_of_term[term] for term in terms if term in number_of_term] for terms in written]
        self.written = list(written.values())
        self.idf = _idf_of_words(terms_of_word, matches.statistics)
        self._term_of_occurrence = matches.term_of_occurrence
        self._words_of_term: list[list[int]] = [[] for _ in number_of_term]
        for word, terms in enumerate(terms_of_word):
            for term in terms:
                self._words_of_term[term].append(word)
        occurrence, word_of_entry = self._entries()
        by_word = np.argsort(word_of_entry, kind="stable")
        self.occurrences = np.unique(occurrence)
        """The occurrences that belong to a word, as indices into those of the matches."""
        self.position = matches.position_of_occurrence.astype(np.int64)
        self.position_by_word: Integers = self.position[occurrence[by_word]]
        """The positions of the occurrences of each word, word by word."""
        self.first: Integers = np.searchsorted(word_of_entry[by_word], np.arange(len(written) + 1)).astype(np.int64)
        """The first of `position_by_word` of each word, and the end."""

    def _entries(self) -> tuple[Integers, Integers]:
        """One entry per occurrence and word that it belongs to: the occurrence and the word, in reading order."""
        counts = np.array([len(words) for words in self._words_of_term], np.int64)
        words = np.array([word for words in self._words_of_term for word in words], np.int64)
        first = (np.cumsum(counts) - counts)[self._term_of_occurrence]
        end = first + counts[self._term_of_occurrence]
        return np.repeat(np.arange(first.size), end - first), words[ranges(first, end)]

    def influence(self, sigma: float, tokens: int) -> Floats:
        """The influence at each position, between 0 and 1."""
        reach = int(min(math.ceil(_REACH * sigma), max(tokens - 1, 0)))
        by_distance = np.exp(-0.5 * (np.arange(reach + 1) / sigma) ** 2)
        weight = self.idf / max(float(self.idf.sum()), 1e-300)
        columns = (frozen(column) for column in (self.position_by_word, self.first, weight, by_distance))
        influence: Floats = add_nearest(*columns, tokens)
        return influence

    def listed(self, most: int, text: str, starts: Integers32, ends: Integers32, passages: _PassageRanges) -> Iterator[LandscapeOccurrence]:
        """Yield the first occurrences in reading order."""
        chosen = self.occurrences[:most]
        positions = self.position[chosen]
        idf_of_word = self.idf.tolist()
        words_of_term = [(tuple(words), max((idf_of_word[word] for word in words), default=0.0)) for words in self._words_of_term]
        columns = (column.tolist() for column in (self._term_of_occurrence[chosen], positions, starts[positions], ends[positions]))
        for term, position, start, end, passage in zip(*columns, passages.at(positions), strict=True):
            words, largest = words_of_term[term]
            yield LandscapeOccurrence(text[start:end], words, position, start, end, passage, largest)


def _written(query: Query) -> dict[tuple[str, ...], str]:
    """The distinct words of a query that are not under NOT: the terms of each word, and the word as written.

    A query that was made from a patent has terms only.
    """
    words: dict[tuple[str, ...], str] = {}
    for word, negated in query.given_words():
        if word.terms and not negated:
            words.setdefault(word.terms, word.written or " or ".join(word.terms))
    return words or {terms_in(term): " or ".join(terms_in(term)) for term in query.positive.terms}


def _idf_of_words(terms_of_word: Sequence[Sequence[int]], statistics: Statistics) -> Floats:
    """The inverse document frequency of each word; 0 if no document contains the word.

    As for synonyms, the most frequent term of a word decides.
    """
    holding = statistics.document_frequency
    idf_of_term = np.where(holding > 0, idf(of_terms(statistics.documents, np.arange(holding.size)), holding), np.inf)
    least = np.array([min((idf_of_term[term] for term in terms), default=np.inf) for terms in terms_of_word])
    return np.where(np.isfinite(least), least, 0.0)


def _bins(influence: Floats, bins: int, starts: Integers32, ends: Integers32, passages: _PassageRanges) -> Iterator[LandscapeBin]:
    """Yield bins of equal size, each with its largest influence."""
    tokens = influence.size
    count = min(bins, tokens)
    edges = np.arange(count + 1) * tokens // max(count, 1)
    middles = (edges[:-1] + edges[1:]) // 2
    for first, end, passage in zip(edges[:-1].tolist(), edges[1:].tolist(), passages.at(middles), strict=True):
        peak = first + int(np.argmax(influence[first:end]))
        yield LandscapeBin(
            start=first,
            end=end,
            first_character=int(starts[first]),
            end_character=int(ends[end - 1]),
            influence=min(float(influence[peak]), 1.0),
            peak=peak,
            peak_character=int(starts[peak]),
            passage=passage,
        )


class _PassageRanges:
    """The passages of the document, to find those that contain given positions."""

    def __init__(self, segment: Segment, local: int, matches: Matches) -> None:
        self._id_of = segment.span_namer(local)
        # Passages without tokens contain no position. The others do not overlap.
        self._rows = np.flatnonzero(matches.first_token_of_passage < matches.end_token_of_passage)
        self._first, self._end = (column[self._rows] for column in (matches.first_token_of_passage, matches.end_token_of_passage))
        self._spans = matches.span_of_passage

    def at(self, positions: Integers) -> list[str]:
        """The id of the passage that contains each position; empty if none does."""
        if not self._rows.size:
            return [""] * positions.size
        found = self._first.searchsorted(positions, "right") - 1
        inside = (found >= 0) & (positions < self._end[found])
        distinct, which = np.unique(np.where(inside, self._rows[found], -1), return_inverse=True)
        names = ["" if row < 0 else self._id_of(int(self._spans[row])) or running_number(row) for row in distinct.tolist()]
        return [names[number] for number in which.tolist()]
