"""Context for a reader or a language model: the text of hits within a budget of tokens, with borders and sources.

    === manual%207
    --- off…@3 · p. 3 · characters 27–78 · KX-200 heat pump › Descaling
    Switch it off.
    Every three months.
    ===

A line of `=` begins each document, and another ends the context. A line of `-` begins a piece of a document, with the
ids of its first and last passage, their citations if the format has any, its characters in the text of the document,
and its heading path. The text follows unchanged. No line of a text begins with as many `=` or `-` as a border has, so
no text can be mistaken for a border.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from perikope.browse.matches import Matches
from perikope.browse.ranking import Ranking
from perikope.browse.structure import DocumentOutline
from perikope.core.names import encode
from perikope.core.numbers import check_whole
from perikope.index.reader import Snapshot
from perikope.index.segments import Segment
from perikope.text.analysis import language_code

BUDGET = 2000
"""The default size of a context, in tokens."""
AROUND = 1
"""The default number of neighbouring passages on either side of a hit."""

TokenCounter = Callable[[str], int]
"""A function that returns the number of tokens of a text."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A continuous piece of a document that contains at least one hit."""

    document: str
    """The id of the document."""
    passages: tuple[str, ...]
    """The ids of the passages of the excerpt in reading order, or the path of its element."""
    ranks: tuple[int, ...]
    """The ranks of the hits in the excerpt, from 1."""
    path: tuple[str, ...]
    """The heading path of the excerpt: the titles from the document to the section."""
    start: int
    """The first character of the excerpt in the text of the document."""
    end: int
    """The end of the excerpt in the text of the document (exclusive)."""
    text: str
    """The text of the excerpt."""
    citation: str = ""
    """The citations of its first and last passage, such as `p. 3…p. 4` or `EP1130000B1 [0042]`; empty if there is none.
    Unlike that of a hit, it never begins with the id of the document, which stands above the excerpt."""


@dataclass(frozen=True, slots=True)
class Context:
    """A text made of excerpts from documents, in the format that the module docstring shows."""

    text: str
    """The whole text, with borders and headings."""
    pieces: tuple[Excerpt, ...]
    """The excerpts, in the order of the text."""
    tokens: int
    """The number of tokens of `text`."""
    left_out: int
    """The number of hits that did not fit."""
    needed: int = 0
    """If no hit fits into the budget, the number of tokens that the best hit alone needs; else 0."""

    def __str__(self) -> str:
        return self.text


def no_room(budget: int, needed: int, unit: str = "words") -> str:
    """What to say if no hit fits into a budget.

    >>> no_room(20, 31)
    'no hit fits into 20 words; the best hit alone needs 31'
    """
    return f"no hit fits into {budget} {unit}; the best hit alone needs {needed}"


def count_words(text: str) -> int:
    """The number of words in a text, separated by white space. `build_context` counts tokens in this way by default."""
    return len(text.split())


def build_context(
    snapshot: Snapshot,
    matches: Matches,
    ranking: Ranking,
    budget: int = BUDGET,
    tokens: TokenCounter = count_words,
    around: int = AROUND,
) -> Context:
    """Put as many hits as fit into one text, best first, then neighbouring passages, nearest first.

    A passage is included as a whole or left out, and the tokens of the text never exceed `budget`. Adjacent passages of
    one section and language become one piece. Neighbours of a hit come from its section and have its language, at most
    `around` on either side. Documents are in the order of their best hits, pieces of a document in reading order.
    """
    check_whole("the budget", budget, 1)
    check_whole("around", around, 0)
    sources = _Sources(snapshot, matches)
    draft = _Draft(sources, budget, tokens)
    rank_of = {row: rank for rank, row in enumerate(ranking.rows.tolist(), ranking.offset + 1)}
    for row, rank in rank_of.items():
        draft.add(row, rank)
    for distance in range(1, around + 1) if matches.units == "passages" else ():
        for row in rank_of:
            for step in (-1, 1):
                nearer, neighbour = row + step * (distance - 1), row + step * distance
                if draft.joins(row, nearer) and sources.are_together(row, neighbour):
                    draft.add(neighbour, rank_of.get(neighbour, 0))
    included = {rank for piece in draft.pieces for rank in piece.ranks}
    needed = 0 if included or not rank_of else tokens(render([sources.piece(sources.stretch(int(ranking.rows[0]), 1))]))
    return Context(draft.text, draft.pieces, draft.used, len(rank_of) - len(included), needed)


def titles_above(snapshot: Snapshot, matches: Matches, row: int, text: str) -> list[str]:
    """The heading path of a passage or element: the titles from the document to its section.

    `row` is its row in the matches, and `text` the whole text of its document.
    """
    segment, local = snapshot.locate(int(matches.number_of_document[matches.document_of_passage[row]]))
    return titles_of(segment, local, sections_above(matches, row), text)


def sections_above(matches: Matches, row: int) -> list[int]:
    """The sections that hold a passage or element, outermost first, by their number in the document."""
    first = int(matches.document_of_section.searchsorted(matches.document_of_passage[row]))
    # A document that is itself the result has no sections above it.
    is_document = matches.units != "passages" and matches.span_of_passage[row] == 0
    section = -1 if is_document else int(matches.section_of_passage[row])
    sections: list[int] = []
    while section >= 0:
        sections.insert(0, section - first)
        section = int(matches.parent_of_section[section])
    return sections


def titles_of(segment: Segment, local: int, sections: Iterable[int], text: str) -> list[str]:
    """The titles of sections of a document, given by their number in it; sections without a title are left out."""
    start = segment.sections_of(local).start
    spans = (segment.span_of("section.title_span", local, start + section) for section in sections)
    return [text[segment.characters(span)] for span in spans if span >= 0]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """An excerpt under construction: adjacent rows of the matches, and the characters that they cover.

    Both `first` and `last` are included; `end` is exclusive.
    """

    candidate: int
    first: int
    last: int
    start: int
    end: int
    ranks: tuple[int, ...]


class _Sources:
    """The documents of the hits. Each document is read once."""

    def __init__(self, snapshot: Snapshot, matches: Matches) -> None:
        self.snapshot, self.matches = snapshot, matches
        self._documents: dict[int, _Document] = {}

    def document(self, candidate: int) -> _Document:
        if candidate not in self._documents:
            self._documents[candidate] = _Document(self.snapshot, self.matches, candidate)
        return self._documents[candidate]

    def stretch(self, row: int, rank: int = 0) -> _Stretch:
        """The stretch of one passage or element; `rank` is the rank of a hit, or 0 if the row is not a hit."""
        candidate = int(self.matches.document_of_passage[row])
        characters = self.document(candidate).characters(int(self.matches.span_of_passage[row]))
        return _Stretch(candidate, row, row, characters.start, characters.stop, (rank,) if rank else ())

    def are_together(self, row: int, other: int) -> bool:
        """Whether two passages are in the same section and in the same language."""
        section = self.matches.section_of_passage
        if not (0 <= other < section.size and section[row] == section[other]):
            return False
        document = self.document(int(self.matches.document_of_passage[row]))
        spans = self.matches.span_of_passage
        return document.language(int(spans[row])) == document.language(int(spans[other]))

    def touch(self, stretch: _Stretch, other: _Stretch) -> bool:
        """Whether two stretches must be merged, because they overlap or are adjacent passages of one section."""
        if stretch.candidate != other.candidate:
            return False
        adjacent = stretch.first <= other.last + 1 and other.first <= stretch.last + 1
        joined = self.matches.units == "passages" and adjacent and self.are_together(stretch.first, other.first)
        # An empty passage overlaps no other.
        return joined or (stretch.start < other.end and other.start < stretch.end)

    def piece(self, stretch: _Stretch) -> Excerpt:
        """The excerpt of a stretch, with text, names and heading path."""
        document = self.document(stretch.candidate)
        return Excerpt(
            document.id,
            tuple(document.name(row) for row in range(stretch.first, stretch.last + 1)),
            stretch.ranks,
            tuple(titles_above(self.snapshot, self.matches, stretch.first, document.text)),
            stretch.start,
            stretch.end,
            document.text[stretch.start : stretch.end],
            document.citation(stretch),
        )


class _Document:
    """A document that contains hits."""

    def __init__(self, snapshot: Snapshot, matches: Matches, candidate: int) -> None:
        self._segment, self._local = snapshot.locate(int(matches.number_of_document[candidate]))
        self._matches = matches
        self._first_row = int(matches.document_of_passage.searchsorted(candidate))
        self._first_span = int(self._segment["document.first_span"][self._local])
        self.id = self._segment.document_id(self._local)
        self.text = self._segment.text(self._local)

    @cached_property
    def _outline(self) -> DocumentOutline:
        return DocumentOutline(self._segment, self._local)

    def characters(self, span: int) -> slice:
        return self._segment.characters(self._first_span + span)

    def language(self, span: int) -> str:
        return language_code(self._segment.label("language", self._first_span + span))

    @cached_property
    def _citations(self) -> tuple[str, dict[int, str]]:
        """The number of the publication, if it is one, and the citations by span."""
        record = self._segment.record(self._local)
        citations = self._segment.citations(self._local, record)
        return str(self._segment.metadata(self._local, record).get("publication", "")) if citations else "", citations

    def citation(self, stretch: _Stretch) -> str:
        """The citations of the first and the last passage of a stretch that have one."""
        publication, citations = self._citations
        if not citations:
            return ""
        if self._matches.units == "passages":
            spans = [int(span) for span in self._matches.span_of_passage[stretch.first : stretch.last + 1]]
        else:
            within = {span: self.characters(span) for span in sorted(citations)}
            spans = [span for span, place in within.items() if stretch.start <= place.start and place.stop <= stretch.end]
        cited = [citations[span] for span in spans if span in citations]
        return f"{publication} {'…'.join(dict.fromkeys((cited[0], cited[-1])))}".strip() if cited else ""

    def name(self, row: int) -> str:
        if self._matches.units != "passages":
            return self._outline.path(int(self._matches.span_of_passage[row]))
        return self._segment.passage_id(self._local, self._segment.passages_of(self._local).start + row - self._first_row)


class _Draft:
    """A context under construction, which fits the budget at any time."""

    def __init__(self, sources: _Sources, budget: int, tokens: TokenCounter) -> None:
        self._sources, self._budget, self._tokens = sources, budget, tokens
        self._stretches: tuple[_Stretch, ...] = ()
        self.pieces: tuple[Excerpt, ...] = ()
        self.text = ""
        self.used = 0

    def joins(self, row: int, other: int) -> bool:
        """Whether two passages are included in the same piece."""
        return any(stretch.first <= min(row, other) and max(row, other) <= stretch.last for stretch in self._stretches)

    def add(self, row: int, rank: int = 0) -> None:
        """Include a passage or element if it fits; `rank` is the rank of a hit, or 0 if the row is not a hit."""
        new = self._sources.stretch(row, rank)
        touching = [other for other in self._stretches if self._sources.touch(new, other)]
        if not any(other.start <= new.start and new.end <= other.end for other in touching):
            text = self._sources.document(new.candidate).text[new.start : new.end]
            if self._tokens(text) > self._budget - self.used:
                return  # the text alone does not fit, so the whole context need not be rendered
        stretches = tuple(self._merged(new))
        pieces = _in_order(stretches, self._sources)
        rendered = render(pieces)
        used = self._tokens(rendered)
        if used <= self._budget:
            self._stretches, self.pieces, self.text, self.used = stretches, pieces, rendered, used

    def _merged(self, new: _Stretch) -> Iterator[_Stretch]:
        """Yield all stretches and a new one, which is merged with the stretches that it touches."""
        for other in self._stretches:
            if self._sources.touch(new, other):
                new = replace(
                    new,
                    # An element replaces the elements inside it.
                    first=min(new.first, other.first),
                    last=max(new.last, other.last) if self._sources.matches.units == "passages" else min(new.first, other.first),
                    start=min(new.start, other.start),
                    end=max(new.end, other.end),
                    ranks=tuple(sorted({*new.ranks, *other.ranks})),
                )
            else:
                yield other
        yield new


def _in_order(stretches: Iterable[_Stretch], sources: _Sources) -> tuple[Excerpt, ...]:
    """The excerpts, with documents in the order of their best hits, and in reading order within each document."""
    in_reading_order = sorted(stretches, key=lambda stretch: (stretch.candidate, stretch.start, stretch.first))
    best: dict[int, int] = {}
    for stretch in in_reading_order:
        best[stretch.candidate] = min(best.get(stretch.candidate, stretch.ranks[0]), stretch.ranks[0])
    return tuple(sources.piece(stretch) for stretch in sorted(in_reading_order, key=lambda stretch: best[stretch.candidate]))


_BORDERS = re.compile(r"(?:^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])([=-]+)")
"""Text at the beginning of a line that could be mistaken for a border. All Unicode line ends are recognised."""


def border_length(texts: Iterable[str]) -> int:
    """The number of `=` or `-` in a border: three, or one more than any line of the texts begins with.

    >>> border_length(["no border", "a table:\\n====="])
    6
    """
    return max([2, *(len(run) for text in texts for run in _BORDERS.findall(text))]) + 1


def render(pieces: Iterable[Excerpt]) -> str:
    """Render excerpts as one text. Consecutive excerpts of one document have a common heading with its id."""
    pieces = tuple(pieces)
    if not pieces:
        return ""
    length = border_length(piece.text for piece in pieces)
    lines, document = [], None
    for piece in pieces:
        if piece.document != document:
            document = piece.document
            lines.append(f"{'=' * length} {encode(piece.document)}")
        lines += [f"{'-' * length} {_heading(piece)}", piece.text]
    return "\n".join([*lines, "=" * length])


def _heading(piece: Excerpt) -> str:
    names = [encode(piece.passages[0]), *([encode(piece.passages[-1])] if len(piece.passages) > 1 else [])]
    path = " › ".join(" ".join(title.split()) for title in piece.path)
    cited = [" ".join(piece.citation.split())] if piece.citation else []
    return " · ".join(["…".join(names), *cited, f"characters {piece.start}–{piece.end}", *([path] if path else [])])
