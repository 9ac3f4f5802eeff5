"""What was found, put together for a reader or a language model: within a budget, with its borders and where it comes from.

    === manual%207
    --- off…@3 · characters 27–78 · KX-200 heat pump › Descaling
    Switch it off.
    Every three months.
    ===

A line of `=` begins a document and ends the last one; a line of `-` begins a piece of it: its passages, where it stands in the document's
text, and the titles above it, white space in them closed up. What follows is the text as it is, nothing escaped. The lines have as many
`=` and `-` as no line of the texts begins with, so that no text can pass for a border.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from perikope.browse.matches import Matches
from perikope.browse.ranking import Ranking
from perikope.browse.structure import DocumentOutline
from perikope.core.errors import UsageError
from perikope.core.names import encode
from perikope.index.reader import Snapshot

BUDGET = 2000
AROUND = 1

TokenCounter = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A stretch of a document that holds at least one hit."""

    document: str
    passages: tuple[str, ...]
    """The ids of its passages, or the path of the element that it is, in reading order."""
    ranks: tuple[int, ...]
    """Of the hits in it, from 1."""
    path: tuple[str, ...]
    """The titles above it, from the document's own to that of its section."""
    start: int
    end: int
    """Where it stands in the document's text, in characters."""
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """Pieces of documents as one text."""

    text: str
    pieces: tuple[Excerpt, ...]
    tokens: int
    """Of the text, as they were counted."""
    left_out: int
    """Hits for which there was no room."""
    needed: int = 0
    """Where there was room for none: the tokens that the best one alone takes."""

    def __str__(self) -> str:
        return self.text


def count_words(text: str) -> int:
    """How many words there are between white space: the default measure of a budget."""
    return len(text.split())


def build_context(
    snapshot: Snapshot,
    matches: Matches,
    ranking: Ranking,
    budget: int = BUDGET,
    tokens: TokenCounter = count_words,
    around: int = AROUND,
) -> Context:
    """As many hits as fit, best first, then the passages beside them, nearest first, while there is room.

    A passage is taken whole or not at all; `tokens` of the text never exceed the budget. Passages side by side in one section become one
    piece. Only passages of the same section are put beside a hit, at most `around` on either side. Documents come in the order of their
    best hit, pieces of one in reading order.
    """
    for name, value, least in (("the budget", budget, 1), ("around", around, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")
    sources = _Sources(snapshot, matches)
    draft = _Draft(sources, budget, tokens)
    rank_of = {row: rank for rank, row in enumerate(ranking.rows.tolist(), 1)}
    for row, rank in rank_of.items():
        draft.add(row, rank)
    for distance in range(1, around + 1) if matches.units == "passages" else ():
        for row in rank_of:
            for step in (-1, 1):
                nearer, wanted = row + step * (distance - 1), row + step * distance
                if draft.joins(row, nearer) and sources.are_together(row, wanted):
                    draft.add(wanted, rank_of.get(wanted, 0))
    taken = {rank for piece in draft.pieces for rank in piece.ranks}
    needed = 0 if taken or not rank_of else tokens(render([sources.piece(sources.stretch(int(ranking.rows[0]), 1))]))
    return Context(draft.text, draft.pieces, draft.used, len(rank_of) - len(taken), needed)


def titles_above(snapshot: Snapshot, matches: Matches, row: int, text: str) -> list[str]:
    """The titles above a passage or element, from the document's own to that of its section; `text` is that of the document."""
    candidate = int(matches.document_of_passage[row])
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    first = int(matches.document_of_section.searchsorted(candidate))
    # A document that is itself the result has no titles above it.
    is_document = matches.units != "passages" and matches.span_of_passage[row] == 0
    section = -1 if is_document else int(matches.section_of_passage[row])
    titles: list[str] = []
    while section >= 0:
        title_span = segment.span_of("section.title_span", local, segment.sections_of(local).start + section - first)
        if title_span >= 0:
            titles.insert(0, text[segment.characters(title_span)])
        section = int(matches.parent_of_section[section])
    return titles


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A piece in the making: rows of the matches that lie side by side, and the characters that they cover."""

    candidate: int
    first: int
    last: int
    start: int
    end: int
    ranks: tuple[int, ...]


class _Sources:
    """The documents that hits are from, each read once."""

    def __init__(self, snapshot: Snapshot, matches: Matches) -> None:
        self.snapshot, self.matches = snapshot, matches
        self._documents: dict[int, _Document] = {}

    def document(self, candidate: int) -> _Document:
        if candidate not in self._documents:
            self._documents[candidate] = _Document(self.snapshot, self.matches, candidate)
        return self._documents[candidate]

    def stretch(self, row: int, rank: int = 0) -> _Stretch:
        """One passage or element by itself; the rank of a hit, or 0."""
        candidate = int(self.matches.document_of_passage[row])
        here = self.document(candidate).characters(int(self.matches.span_of_passage[row]))
        return _Stretch(candidate, row, row, here.start, here.stop, (rank,) if rank else ())

    def are_together(self, row: int, other: int) -> bool:
        """Whether two passages are in the same section."""
        section = self.matches.section_of_passage
        return 0 <= other < section.size and bool(section[row] == section[other])

    def touch(self, one: _Stretch, other: _Stretch) -> bool:
        """Whether two stretches become one: they overlap, or are passages side by side in one section."""
        if one.candidate != other.candidate:
            return False
        beside = one.first <= other.last + 1 and other.first <= one.last + 1
        side_by_side = self.matches.units == "passages" and beside and self.are_together(one.first, other.first)
        # A passage without a character lies in no other.
        return side_by_side or (one.start < other.end and other.start < one.end)

    def piece(self, stretch: _Stretch) -> Excerpt:
        document = self.document(stretch.candidate)
        return Excerpt(
            document.id,
            tuple(document.name(row) for row in range(stretch.first, stretch.last + 1)),
            stretch.ranks,
            tuple(titles_above(self.snapshot, self.matches, stretch.first, document.text)),
            stretch.start,
            stretch.end,
            document.text[stretch.start : stretch.end],
        )


class _Document:
    """A document that holds hits."""

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

    def name(self, row: int) -> str:
        if self._matches.units != "passages":
            return self._outline.path(int(self._matches.span_of_passage[row]))
        return self._segment.passage_id(self._local, self._segment.passages_of(self._local).start + row - self._first_row)


class _Draft:
    """A context in the making: what was taken so far, which fits the budget."""

    def __init__(self, sources: _Sources, budget: int, tokens: TokenCounter) -> None:
        self._sources, self._budget, self._tokens = sources, budget, tokens
        self._stretches: tuple[_Stretch, ...] = ()
        self.pieces: tuple[Excerpt, ...] = ()
        self.text = ""
        self.used = 0

    def joins(self, row: int, other: int) -> bool:
        """Whether two passages were taken, and are in one piece."""
        return any(stretch.first <= min(row, other) and max(row, other) <= stretch.last for stretch in self._stretches)

    def add(self, row: int, rank: int = 0) -> None:
        """Take a passage or element, a hit where it has a rank, if there is room for it."""
        new = self._sources.stretch(row, rank)
        own = [other for other in self._stretches if self._sources.touch(new, other)]
        if not any(other.start <= new.start and new.end <= other.end for other in own):
            text = self._sources.document(new.candidate).text[new.start : new.end]
            if self._tokens(text) > self._budget - self.used:
                return  # no room for the bare text: the whole need not be put together to know
        stretches = tuple(self._merged(new))
        pieces = _in_order(stretches, self._sources)
        rendered = render(pieces)
        used = self._tokens(rendered)
        if used <= self._budget:
            self._stretches, self.pieces, self.text, self.used = stretches, pieces, rendered, used

    def _merged(self, new: _Stretch) -> Iterator[_Stretch]:
        """All stretches with a new one, those that touch it made one with it."""
        for other in self._stretches:
            if self._sources.touch(new, other):
                new = replace(
                    new,
                    # An element stands for those inside it.
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
    """The pieces by document, that with the best hit first, and then in reading order."""
    by_place = sorted(stretches, key=lambda stretch: (stretch.candidate, stretch.start, stretch.first))
    best: dict[int, int] = {}
    for stretch in by_place:
        best[stretch.candidate] = min(best.get(stretch.candidate, stretch.ranks[0]), stretch.ranks[0])
    return tuple(sources.piece(stretch) for stretch in sorted(by_place, key=lambda stretch: best[stretch.candidate]))


_BORDERS = re.compile(r"(?:^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])([=-]+)")
"""What could be taken for a border, at the beginning of any kind of line."""


def border_length(texts: Iterable[str]) -> int:
    """How many characters a border has: three, or more than any line of the texts begins with.

    >>> border_length(["no border", "a table:\\n====="])
    6
    """
    return max([2, *(len(run) for text in texts for run in _BORDERS.findall(text))]) + 1


def render(pieces: Iterable[Excerpt]) -> str:
    """Pieces as one text, those of a document together under its name."""
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
    return " · ".join(["…".join(names), f"characters {piece.start}–{piece.end}", *([path] if path else [])])
