"""Document: one text and a tree of spans over it, built by appending to arrays (no object per span).

A document's `text` holds everything that can be read, titles included, in reading order; blocks are separated by
a line feed. A span says that the characters `start` to `end` of it are a section, a passage, a title, another
logical element (list, table …) or an inline mark (b, it, link …). Spans are stored parents first, in reading
order, and span 0 is the document itself, a section.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

from perikope.core.errors import InputError


class Kind(IntEnum):
    """What a span is."""

    SECTION = 0
    PASSAGE = 1
    TITLE = 2
    ELEMENT = 3
    MARK = 4


# Members of an enumeration are slow: looking one up and putting it into an array takes as long as adding a whole span.
_PASSAGE, _TITLE, _MARK = int(Kind.PASSAGE), int(Kind.TITLE), int(Kind.MARK)


@dataclass(slots=True)
class Spans:
    """The tree, with one column per property; `tag`, `part` and `language` are indices into `Document.labels`.

    `part` and `language` are inherited: every span has the value that applies to it. The class is not frozen: the
    columns grow anyway, and creating a frozen one takes a tenth of the time of creating a short document.
    """

    kind: array[int] = field(default_factory=lambda: array("B"))
    tag: array[int] = field(default_factory=lambda: array("i"))
    parent: array[int] = field(default_factory=lambda: array("i"))
    start: array[int] = field(default_factory=lambda: array("i"))
    end: array[int] = field(default_factory=lambda: array("i"))
    part: array[int] = field(default_factory=lambda: array("i"))
    language: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.kind)

    def append(self, kind: int, tag: int, parent: int, start: int, end: int, part: int, language: int) -> int:
        """Add one span and return its number."""
        number = len(self.kind)
        self.kind.append(kind)
        self.tag.append(tag)
        self.parent.append(parent)
        self.start.append(start)
        self.end.append(end)
        self.part.append(part)
        self.language.append(language)
        return number


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span stands in the file that it was read from."""

    path: str
    """The element that holds it, from the root down: `/article[1]/body[1]/sec[2]/p[3]`."""
    start: int
    end: int
    """Characters of the file's text, which is all of its text nodes one after the other, white space included."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its tree of spans, metadata and references; formats yield it, the index takes it."""

    id: str
    text: str
    spans: Spans
    labels: tuple[str, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)
    cites: tuple[str, ...] = ()
    span_ids: Mapping[int, str] = field(default_factory=dict)
    references: tuple[tuple[int, str], ...] = ()
    """Internal references: (span that refers, id of the span it refers to)."""
    places: Mapping[int, Place] = field(default_factory=dict)
    """Where spans stand in the file, for formats whose files can be opened there."""
    citations: Mapping[int, str] = field(default_factory=dict)
    """How people cite spans of this document: `[0042]`, `claim 3`."""
    source: str = ""
    """The file that the document was read from, by its default id; for a member of an archive, the archive."""
    member: str = ""
    """The member of the archive, if `source` is an archive: `patents.zip/EP-1.xml`."""
    source_hash: str = ""
    """The hash of that file's bytes, which shows whether it has changed; empty where hashes were not requested."""

    @property
    def title(self) -> str:
        """The document's own title, or an empty text."""
        return next((self.text_of(i) for i in self.of_kind(Kind.TITLE) if self.spans.parent[i] == 0), "")

    @property
    def language(self) -> str:
        """The language of the document as a whole."""
        return self.labels[self.spans.language[0]]

    def of_kind(self, kind: Kind) -> Iterator[int]:
        """The numbers of all spans of one kind, in reading order."""
        return (i for i, value in enumerate(self.spans.kind) if value == kind)

    def text_of(self, span: int) -> str:
        """The characters of a span."""
        return self.text[self.spans.start[span] : self.spans.end[span]]

    def outline(self) -> str:
        """The tree as indented lines, for golden tests and for inspecting what a format makes of a file."""
        depth = [0] * len(self.spans)
        lines = []
        for i in range(len(self.spans)):
            parent = self.spans.parent[i]
            depth[i] = depth[parent] + 1 if parent >= 0 else 0
            kind = Kind(self.spans.kind[i])
            notes = [f"#{self.span_ids[i]}"] if i in self.span_ids else []
            for name, column in (("part", self.spans.part), ("language", self.spans.language)):
                value = self.labels[column[i]]
                if value and (parent < 0 or column[i] != column[parent]):
                    notes.append(f"{name}={value}")
            notes += [f"->{target}" for source, target in self.references if source == i]
            if i in self.citations:
                notes.append(f"cited={self.citations[i]!r}")
            text = "" if kind in (Kind.SECTION, Kind.ELEMENT) else f" {self.text_of(i)!r}"
            head = " ".join([kind.name.lower(), self.labels[self.spans.tag[i]], *notes])
            lines.append("  " * depth[i] + head + text)
        return "\n".join(lines) + "\n"


class TreeBuilder:
    """Builds a document by opening and closing spans and adding text, as a parser meets them.

    >>> builder = TreeBuilder("d1", title="Pumps")
    >>> with builder.span(Kind.SECTION, "sec"):
    ...     _ = builder.title("Rotor")
    ...     _ = builder.passage("The magnet drives the rotor.", marks=[("b", 4, 10)])
    >>> print(builder.build().outline(), end="")
    section document language=en
      title title 'Pumps'
      section sec
        title title 'Rotor'
        passage p 'The magnet drives the rotor.'
          mark b 'magnet'
    """

    def __init__(
        self,
        id: str,
        *,
        title: str = "",
        tag: str = "document",
        language: str = "en",
        metadata: Mapping[str, object] | None = None,
        cites: Sequence[str] = (),
    ) -> None:
        self.id = id
        self.metadata = dict(metadata or {})
        self.cites = list(cites)
        self.source = ""
        self.member = ""
        self.source_hash = ""
        self._text: list[str] = []
        self._length = 0
        self._needs_break = False
        self._spans = Spans()
        self._labels: dict[str, int] = {"": 0}
        self._span_ids: dict[int, str] = {}
        self._references: list[tuple[int, str]] = []
        self._held: dict[str, int] = {}
        self.places: dict[int, Place] = {}
        self.citations: dict[int, str] = {}
        self._open: list[int] = []
        self._headings: list[tuple[int, int]] = []
        self._hollow = False
        self.open(Kind.SECTION, tag, language=language)
        if title:
            self.title(title)

    def open(self, kind: Kind, tag: str, *, id: str = "", part: str = "", language: str = "") -> int:
        """Open a span inside the one that is open; part and language are inherited where not given."""
        if kind != _MARK:
            self._needs_break = self._length > 0
        parent = self._open[-1] if self._open else -1
        spans = self._spans
        number = spans.append(
            kind,
            self._label(tag),
            parent,
            # Before a block the line feed is not there yet: it is written with the block's first character.
            self._length + (1 if self._needs_break else 0),
            -1,
            self._label(part) if part or parent < 0 else spans.part[parent],
            self._label(language) if language or parent < 0 else spans.language[parent],
        )
        if id:
            self._span_ids[number] = id
        self._open.append(number)
        return number

    def text(self, text: str) -> None:
        """Add characters to the open spans."""
        if text:
            if self._needs_break:
                self._text.append("\n")
                self._length += 1
                self._needs_break = False
            self._text.append(text)
            self._length += len(text)

    def close(self) -> int:
        """Close the span that was opened last and return its number."""
        number = self._open.pop()
        spans = self._spans
        if spans.start[number] > self._length:
            # A block without text starts where a line feed would have been; it is empty all the same.
            spans.start[number] = self._length
            self._hollow = True
        spans.end[number] = self._length
        if spans.kind[number] != _MARK:
            self._needs_break = self._length > 0
        return number

    @contextmanager
    def span(self, kind: Kind, tag: str, *, id: str = "", part: str = "", language: str = "") -> Iterator[int]:
        """Open a span for the length of a `with` block."""
        number = self.open(kind, tag, id=id, part=part, language=language)
        yield number
        self.close()

    def title(self, text: str, tag: str = "title") -> int:
        """Add the title of the section that is open and return its number."""
        return self._leaf(_TITLE, text, tag)

    def passage(
        self,
        text: str,
        tag: str = "p",
        *,
        id: str = "",
        part: str = "",
        language: str = "",
        marks: Sequence[tuple[str, int, int]] = (),
        refs: Sequence[str] = (),
    ) -> int:
        """Add a whole passage; marks are (tag, start, end) in characters of it."""
        number = self._leaf(_PASSAGE, text, tag, id, part, language)
        if marks:
            self._add_marks(number, self._length - len(text), marks)
        for target in refs:
            self._references.append((number, target))
        return number

    def heading(self, level: int, text: str, tag: str = "", *, id: str = "", part: str = "", language: str = "") -> int:
        """Close the sections of headings of this level or deeper, open one with this title, and return its number."""
        self.close_headings(level)
        number = self.open(Kind.SECTION, tag or f"h{level}", id=id, part=part, language=language)
        self._headings.append((level, number))
        self.title(text)
        return number

    def close_headings(self, level: int = 0, *, since: int = 0) -> None:
        """Close the sections of headings of `level` or deeper, except those with a span number below `since`."""
        while self._headings:
            opened_by, number = self._headings[-1]
            if opened_by < level or number < since:
                return
            self._headings.pop()
            self.close()

    @property
    def next_span(self) -> int:
        """The number that the next span will get."""
        return len(self._spans)

    def refer(self, target: str, span: int | None = None) -> None:
        """Note that a span (by default the open one) refers to another span of this document, by its id."""
        self._references.append((self._open[-1] if span is None else span, target))

    def hold(self, id: str, span: int) -> None:
        """Note that the element with this id is no span but lies in one; references to it then lead to that span."""
        self._held[id] = span

    def build(self) -> Document:
        """Close all open spans and return the document; a text without any letter or digit is an error."""
        self._headings.clear()
        while self._open:
            self.close()
        if self._hollow:
            self._settle_empty_spans()
        if self._held:
            # A span without an id gets that of the first element that lies in it. No span refers to itself.
            names = {id: self._span_ids.setdefault(span, id) for id, span in self._held.items()}
            others = [(span, target) for span, target in self._references if self._held.get(target) != span]
            self._references = list(dict.fromkeys((span, names.get(target, target)) for span, target in others))
        self._name_title()
        text = "".join(self._text)
        if not self.id.strip():
            raise InputError('the document has no id; give it one ("id" in JSON Lines)')
        if not any(map(str.isalnum, text)):
            raise InputError(f"document {self.id!r} is empty; remove it or give it text")
        return Document(
            self.id,
            text,
            self._spans,
            tuple(self._labels),
            self.metadata,
            tuple(self.cites),
            self._span_ids,
            tuple(self._references),
            self.places,
            self.citations,
            self.source,
            self.member,
            self.source_hash,
        )

    def _leaf(self, kind: int, text: str, tag: str, id: str = "", part: str = "", language: str = "") -> int:
        # The same as open, text and close, in one step: most spans are leaves.
        spans, parent = self._spans, self._open[-1]
        if not text:
            self._hollow = True
        else:
            if self._length:
                self._text.append("\n")
                self._length += 1
            self._text.append(text)
        start = self._length
        self._length += len(text)
        self._needs_break = self._length > 0
        number = spans.append(
            kind,
            self._label(tag),
            parent,
            start,
            self._length,
            self._label(part) if part else spans.part[parent],
            self._label(language) if language else spans.language[parent],
        )
        if id:
            self._span_ids[number] = id
        return number

    def _add_marks(self, passage: int, start: int, marks: Sequence[tuple[str, int, int]]) -> None:
        spans = self._spans
        part, language = spans.part[passage], spans.language[passage]
        enclosing = [passage]
        for tag, first, last in sorted(marks, key=lambda mark: (mark[1], -mark[2])):
            while len(enclosing) > 1 and spans.end[enclosing[-1]] < start + last:
                enclosing.pop()  # ends before this one does, so it does not hold it
            enclosing.append(spans.append(_MARK, self._label(tag), enclosing[-1], start + first, start + last, part, language))

    def _name_title(self) -> None:
        # If the document has parts, its title is one of them.
        spans = self._spans
        if any(spans.part):
            for number, (kind, parent) in enumerate(zip(spans.kind, spans.parent, strict=True)):
                if kind == _TITLE and parent == 0 and not spans.part[number]:
                    spans.part[number] = self._label("title")

    def _settle_empty_spans(self) -> None:
        # An empty block that closed before its parent's first character lies before the parent. One pass moves all of
        # them, because parents come first.
        start, end = self._spans.start, self._spans.end
        for number, parent in enumerate(self._spans.parent):
            if parent >= 0:
                start[number] = min(max(start[number], start[parent]), end[parent])
                end[number] = min(max(end[number], start[parent]), end[parent])

    def _label(self, text: str) -> int:
        return self._labels.setdefault(text, len(self._labels))
