"""Chunks: pieces of documents for other programs, such as a vector store, that keep the structure of the document.

A chunk is one passage, or several consecutive passages of one section, within a budget of tokens. Its `content` is what
another program embeds or shows: the heading path, then the text. A passage that is too long is cut between sentences
(code: between lines), a sentence that is too long between words, and a word that is too long between characters.

    KX-200 heat pump › Care › Descaling

    Switch the heat pump off. Wait until the display shows less than 40 °C.

The same document and the same options always give the same chunks, with the same ids.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from perikope.core.errors import UsageError
from perikope.core.names import encode, passage_name, running_number
from perikope.core.numbers import check_whole
from perikope.document.pieces import CHUNK_TOKENS, CODE
from perikope.document.placed_text import PlacedText, placed
from perikope.document.tree import Document, Kind
from perikope.text.analysis import words
from perikope.text.sentences import sentence_spans

BETWEEN_TITLES = " › "
TokenCount = Callable[[str], int]
"""A function that returns the number of tokens of a text."""
_LINE = re.compile(r"[^\S\n]*\S.*")
_WORD = re.compile(r"\S+")


def count_tokens(text: str) -> int:
    """The number of words of a text, as an index counts them. `chunks_of` counts tokens in this way by default."""
    return len(words(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk(PlacedText):
    """A piece of a document with its place in the structure of the document."""

    id: str
    """The id of the chunk: `document#start-end`, in characters of the text of the document."""
    passages: tuple[str, ...]
    """The names of the passages that the chunk has text of, as in results: `document#passage`."""
    content: str
    """The heading path, an empty line, and the text. If there is no heading path, only the text."""
    tokens: int
    """The number of tokens of `content`."""
    before: str
    """The id of the chunk before this one in the document; empty if it is the first."""
    after: str
    """The id of the chunk after this one in the document; empty if it is the last."""


def chunks_of(
    document: Document, *, budget: int = CHUNK_TOKENS, tokens: TokenCount = count_tokens, join: bool = True
) -> list[Chunk]:  # fmt: skip
    """The chunks of a document in reading order. The `content` of each has at most `budget` tokens.

    `tokens` counts the tokens of a text, by default its words. With `join`, consecutive passages of one section become
    one chunk as long as they fit. Passages of different parts or languages, and code and other text, are never joined.
    Titles of a heading path are left out, from the document down, until the path has at most half of the budget.

    >>> from perikope.document.tree import TreeBuilder
    >>> builder = TreeBuilder("d1", title="Pumps")
    >>> _ = builder.passage("A pump has a rotor."), builder.passage("A magnet drives it.")
    >>> [(chunk.id, chunk.passages, chunk.content) for chunk in chunks_of(builder.build())]
    [('d1#6-45', ('d1#@1', 'd1#@2'), 'Pumps\\n\\nA pump has a rotor.\\nA magnet drives it.')]
    """
    check_whole("the budget of a chunk", budget, 1)
    if not callable(tokens):
        raise UsageError("tokens must be a function that returns the number of tokens of a text")
    cutter = _ChunkCutter(document, budget, tokens)
    chunks = [cutter.chunk(piece) for piece in (cutter.joined() if join else cutter.pieces())]
    ids = ["", *(chunk.id for chunk in chunks), ""]
    return [replace(chunk, before=ids[number], after=ids[number + 2]) for number, chunk in enumerate(chunks)]


@dataclass(frozen=True, slots=True)
class _ChunkPiece:
    """A piece of text: characters `start` to `end` (exclusive), of the passages `first` to `last`, both included."""

    first: int
    last: int
    start: int
    end: int


class _ChunkCutter:
    """Cuts one document. Passages are numbered from 0, in reading order."""

    def __init__(self, document: Document, budget: int, tokens: TokenCount) -> None:
        self.document, self._budget, self._tokens = document, budget, tokens
        self._spans = list(document.of_kind(Kind.PASSAGE))
        self._around = _sections_around(document)
        self._titles: dict[int, str] = {}
        for title in document.of_kind(Kind.TITLE):
            self._titles.setdefault(document.spans.parent[title], " ".join(document.text_of(title).split()))
        self._paths: dict[int, tuple[str, ...]] = {-1: ()}
        self._headings: dict[int, str] = {}

    def pieces(self) -> Iterator[_ChunkPiece]:
        """Each passage that has visible text, cut if it is too long. No piece is empty to the eye."""
        spans = self.document.spans
        for number, span in enumerate(self._spans):
            inside = self.document.text_of(span)
            start, end = spans.start[span] + len(inside) - len(inside.lstrip()), spans.end[span] - len(inside) + len(inside.rstrip())
            if start < end:
                cut = self._cut(number, start, end, 0)
                yield from (_ChunkPiece(number, number, *piece) for piece in cut if _is_visible(self.document.text[slice(*piece)]))

    def joined(self) -> Iterator[_ChunkPiece]:
        """The pieces, of which consecutive ones are joined as long as they belong together and fit."""
        pending: _ChunkPiece | None = None
        for piece in self.pieces():
            if pending is not None:
                both = _ChunkPiece(pending.first, piece.last, min(pending.start, piece.start), max(pending.end, piece.end))
                if self._belong_together(pending.last, piece.first) and self._fits(both.first, both.start, both.end):
                    pending = both
                    continue
                yield pending
            pending = piece
        if pending is not None:
            yield pending

    def chunk(self, piece: _ChunkPiece) -> Chunk:
        """The chunk of a piece, without its neighbours."""
        document, span = self.document, self._spans[piece.first]
        content = self._content(piece.first, piece.start, piece.end)
        return Chunk(
            id=f"{encode(document.id)}#{piece.start}-{piece.end}",
            passages=tuple(passage_name(document.id, self._name(number)) for number in range(piece.first, piece.last + 1)),
            content=content,
            tokens=self._tokens(content),
            before="",
            after="",
            **placed(document, span, self._path(self._around[span]), piece.start, piece.end),
        )

    def _name(self, number: int) -> str:
        return self.document.span_ids.get(self._spans[number], "") or running_number(number)

    def _belong_together(self, number: int, other: int) -> bool:
        """Whether two consecutive passages are in one section, part and language, and both or neither are code."""
        spans, first, second = self.document.spans, self._spans[number], self._spans[other]
        is_code = [self.document.labels[spans.tag[span]] == CODE for span in (first, second)]
        return (
            self._around[first] == self._around[second]
            and spans.part[first] == spans.part[second]
            and spans.language[first] == spans.language[second]
            and is_code[0] == is_code[1]
        )

    def _cut(self, number: int, start: int, end: int, level: int) -> Iterator[tuple[int, int]]:
        """Cut a text into pieces that fit, as few as possible, at borders of a level: see `_units`.

        A unit that is too long is cut at the next level. A single character is never cut.
        """
        if end - start <= 1 or self._fits(number, start, end):
            yield start, end
            return
        if level == _CHARACTERS:
            while start < end:
                # Longer texts have more tokens, up to a few tokens, so a bisection finds a long piece that fits.
                size = max(1, bisect_right(range(1, end - start + 1), 0, key=lambda size: not self._fits(number, start, start + size)))
                yield start, start + size
                start += size
            return
        pending: tuple[int, int] | None = None
        for unit in self._units(number, start, end, level):
            if pending is not None and self._fits(number, pending[0], unit[1]):
                pending = (pending[0], unit[1])
                continue
            if pending is not None:
                yield pending
            *whole, pending = self._cut(number, *unit, level + 1)
            yield from whole
        if pending is not None:
            yield pending

    def _units(self, number: int, start: int, end: int, level: int) -> Sequence[tuple[int, int]]:
        """The sentences (level 0; of code, the lines) or the words (level 1) of a text."""
        text = self.document.text[start:end]
        tag = self.document.labels[self.document.spans.tag[self._spans[number]]]
        lines_or_words = _LINE if level == 0 else _WORD
        found = [match.span() for match in lines_or_words.finditer(text)] if level or tag == CODE else sentence_spans(text)
        return [(start + first, start + last) for first, last in found]

    def _fits(self, number: int, start: int, end: int) -> bool:
        return self._tokens(self._content(number, start, end)) <= self._budget

    def _content(self, number: int, start: int, end: int) -> str:
        heading, text = self._heading(self._around[self._spans[number]]), self.document.text[start:end]
        return f"{heading}\n\n{text}" if heading else text

    def _heading(self, section: int) -> str:
        """The heading path of a section as one line, of at most half of the budget."""
        if section not in self._headings:
            path = self._path(section)
            while path and self._tokens(BETWEEN_TITLES.join(path)) > self._budget // 2:
                path = path[1:]
            self._headings[section] = BETWEEN_TITLES.join(path)
        return self._headings[section]

    def _path(self, section: int) -> tuple[str, ...]:
        above = []
        while section not in self._paths:
            above.append(section)
            section = self._around[section]
        for inner in reversed(above):
            self._paths[inner] = (*self._paths[section], *filter(None, [self._titles.get(inner, "")]))
            section = inner
        return self._paths[section]


def _is_visible(text: str) -> bool:
    """Whether a text has a character that can be seen: a letter, a mark, a number, a punctuation mark or a symbol."""
    return any(unicodedata.category(character)[0] in "LMNPS" for character in text)


_CHARACTERS = 2
"""The level of cutting at which any two characters may be separated."""


def _sections_around(document: Document) -> list[int]:
    """For each span, the nearest section around it; -1 for the document itself."""
    kind, around = document.spans.kind, list[int]()
    for parent in document.spans.parent:
        around.append(parent if parent < 0 or kind[parent] == Kind.SECTION else around[parent])
    return around
