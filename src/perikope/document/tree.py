"""Document: one text and a tree of spans over it, built by appending to arrays (no object per span).

A document's `text` holds all readable text, titles included, in reading order. A line feed separates blocks. A span
says that the characters `start` to `end` (exclusive) of the text are a section, a passage, a title, another logical
element (list, table …) or an inline mark (b, it, link …). Spans are stored in reading order, parents before children.
Span 0 is the document itself; its kind is section.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

from perikope.core.errors import InputError


class Kind(IntEnum):
    """The kind of a span; see the description of this module."""

    SECTION = 0
    PASSAGE = 1
    TITLE = 2
    ELEMENT = 3
    MARK = 4


# Plain integers, because enumeration members are slow: appending one to an array takes as long as adding a whole span.
_PASSAGE, _TITLE, _MARK = int(Kind.PASSAGE), int(Kind.TITLE), int(Kind.MARK)


@dataclass(slots=True)
class Spans:
    """The tree of spans as arrays, one array per property and one item per span.

    `tag`, `part` and `language` are indices into `Document.labels`. `parent` is the number of the span around, -1 for
    span 0. `part` and `language` are already inherited: a span without its own value has the value of its parent.

    The class is not frozen, because the arrays grow anyway, and because creating a frozen instance takes a tenth of the
    time of creating a short document.
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
        """Add one span and return its number. Arguments are as in the arrays of this class."""
        number = len(self.kind)
        self.kind.append(kind)
        self.tag.append(tag)
        self.parent.append(parent)
        self.start.append(start)
        self.end.append(end)
        self.part.append(part)
        self.language.append(language)
        return number


@dataclass(slots=True, unsafe_hash=True)
class Place:
    """The place of a span in the file that it was read from. A place is never changed.

    The class is not frozen, because creating a frozen instance takes three times as long, and each block of an XML file
    has a place.
    """

    path: str
    """XPath of the element that holds the span: `/article[1]/body[1]/sec[2]/p[3]`; empty if the file is not XML."""
    start: int
    end: int
    """`start` and `end` (exclusive) count characters of the document's text nodes, joined without change.

    Both are 0 if the file is not XML.
    """
    page: int = 0
    """The number of the page that the span begins on, from 1; 0 if the file has no pages."""
    box: tuple[float, ...] = ()
    """The rectangle of the span on this page: left, bottom, right and top, in points (1/72 inch).

    They are counted from the lower left corner of the page. Empty if the rectangle is not known.
    """


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A text with its tree of spans, metadata and references. Formats produce documents, and the index stores them."""

    id: str
    text: str
    spans: Spans
    labels: tuple[str, ...]
    """The texts that `Spans.tag`, `Spans.part` and `Spans.language` point to."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    cites: tuple[str, ...] = ()
    """Ids of the other documents that this document cites."""
    span_ids: Mapping[int, str] = field(default_factory=dict)
    """Ids of spans by span number; spans without an id are missing."""
    references: tuple[tuple[int, str], ...] = ()
    """References inside the document, as pairs: number of the span that refers, id of the span that it refers to."""
    places: Mapping[int, Place] = field(default_factory=dict)
    """Places of spans in the file, by span number; empty for formats that do not record places."""
    citations: Mapping[int, str] = field(default_factory=dict)
    """Texts by which people cite spans, by span number: `[0042]`, `claim 3`."""
    source: str = ""
    """The default id of the file that the document was read from; for a member of an archive, that of the archive."""
    member: str = ""
    """The archive and its member, if the document was read from an archive: `patents.zip/EP-1.xml`; else empty."""
    source_hash: str = ""
    """The hash of the file's bytes, which shows whether the file has changed; empty if hashes were not requested."""

    @property
    def title(self) -> str:
        """The title of the document; empty if it has none."""
        return next((self.text_of(i) for i in self.of_kind(Kind.TITLE) if self.spans.parent[i] == 0), "")

    @property
    def language(self) -> str:
        """The code of the document's language; single spans may have another language."""
        return self.labels[self.spans.language[0]]

    def __repr__(self) -> str:
        passages = self.spans.kind.count(_PASSAGE)
        described = [repr(self.title)] if self.title else []
        counted = [f"{passages} passage{'' if passages == 1 else 's'}", f"{len(self.text)} characters"]
        return f"Document({', '.join([repr(self.id), *described, *counted])})"

    def of_kind(self, kind: Kind) -> Iterator[int]:
        """The numbers of all spans of one kind, in reading order."""
        return (i for i, value in enumerate(self.spans.kind) if value == kind)

    def text_of(self, span: int) -> str:
        """The characters of a span."""
        return self.text[self.spans.start[span] : self.spans.end[span]]

    def outline(self) -> str:
        """The tree as text, one indented line per span; for tests, and to inspect how a format reads a file."""
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


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Control characters of Unicode, such as NUL, tab and line feed."""
_SHOWN = 80
"""The most characters of an id in a message."""


def check_id(id: str) -> None:
    """Raise `InputError` if the id of a document contains a control character.

    Such an id can end a line of a file, control a terminal, or be no argument of a command.
    """
    if not id.isprintable() and (found := _CONTROL.search(id)):
        shown = id if len(id) <= _SHOWN else id[:_SHOWN] + "…"
        raise InputError(f"document {shown!r} has the control character U+{ord(found[0]):04X} in its id (for a file: its path); remove it")


class TreeBuilder:
    """Builds a document: a parser opens spans, adds text and closes spans, in reading order.

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
        self._spans = spans = Spans()
        # Methods bound once: most of the time of adding a span is looking up the seven arrays and their methods.
        self._appends = tuple(getattr(spans, name).append for name in Spans.__slots__)
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
        """Open a span inside the innermost open span and return its number.

        Without `part` or `language` the span has the part or language of its parent.
        """
        if kind != _MARK:
            self._needs_break = self._length > 0
        parent = self._open[-1] if self._open else -1
        spans = self._spans
        number = spans.append(
            kind,
            self._label(tag),
            parent,
            # The line feed before a block is written together with the block's first character, so add 1 for it here.
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
        """Add characters at the end of the text; they belong to all open spans."""
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
            # In a block without text, `open` counted a line feed that was never written.
            spans.start[number] = self._length
            self._hollow = True
        spans.end[number] = self._length
        if spans.kind[number] != _MARK:
            self._needs_break = self._length > 0
        return number

    @contextmanager
    def span(self, kind: Kind, tag: str, *, id: str = "", part: str = "", language: str = "") -> Iterator[int]:
        """Open a span, close it at the end of the `with` block; the target of `with` is the span's number."""
        number = self.open(kind, tag, id=id, part=part, language=language)
        yield number
        self.close()

    def title(self, text: str, tag: str = "title") -> int:
        """Add the title of the open section and return the number of the title's span."""
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
        """Add a whole passage and return its span's number.

        Marks are (tag, start, end), in characters from the start of the passage; `end` is exclusive. `refs` are ids of
        spans of this document that the passage refers to.
        """
        number = self._leaf(_PASSAGE, text, tag, id, part, language)
        if marks:
            self._add_marks(number, self._length - len(text), marks)
        for target in refs:
            self._references.append((number, target))
        return number

    def divided(
        self,
        text: str,
        pieces: Sequence[tuple[int, int]],
        tag: str,
        *,
        holder: str,
        id: str = "",
        part: str = "",
        language: str = "",
        marks: Sequence[tuple[str, int, int]] = (),
        refs: Sequence[str] = (),
    ) -> list[int]:
        """Add a text as an element with the tag `holder` that holds one passage per piece.

        Returns the numbers of the element and of its passages. A text of one piece becomes a passage alone. Pieces are
        pairs of start and end (exclusive), in characters of the text. Id and references belong to the element. A mark
        that crosses a border is divided too.
        """
        if len(pieces) == 1:
            return [self.passage(text, tag, id=id, part=part, language=language, marks=marks, refs=refs)]
        spans = self._spans
        number = self.open(Kind.ELEMENT, holder, id=id, part=part, language=language)
        self.text(text)
        first, label = self._length - len(text), self._label(tag)
        numbers = [number]
        for start, end in pieces:
            piece = spans.append(_PASSAGE, label, number, first + start, first + end, spans.part[number], spans.language[number])
            numbers.append(piece)
            clipped = [(name, max(begin, start), min(last, end)) for name, begin, last in marks]
            self._add_marks(piece, first, [mark for mark in clipped if mark[1] < mark[2]])
        for target in refs:
            self.refer(target)
        self.close()
        return numbers

    def heading(self, level: int, text: str, tag: str = "", *, id: str = "", part: str = "", language: str = "") -> int:
        """Open a section with the title `text` and return the section's number.

        Sections that headings of this level or a deeper one have opened are closed first.
        """
        self.close_headings(level)
        number = self.open(Kind.SECTION, tag or f"h{level}", id=id, part=part, language=language)
        self._headings.append((level, number))
        self.title(text)
        return number

    def close_headings(self, level: int = 0, *, since: int = 0) -> None:
        """Close the sections that headings of `level` or deeper have opened, from the innermost outwards.

        A section with a span number below `since` stays open, and so do the sections around it.
        """
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

    @property
    def innermost(self) -> int:
        """The number of the innermost open span."""
        return self._open[-1]

    def refer(self, target: str, span: int | None = None) -> None:
        """Add a reference to the span with the id `target`, from `span` or else from the innermost open span."""
        self._references.append((self._open[-1] if span is None else span, target))

    def hold(self, id: str, span: int) -> None:
        """Record that the element with this id has no span and lies inside `span`; references to it go to `span`."""
        self._held[id] = span

    def build(self) -> Document:
        """Close all open spans and return the document.

        Raises `InputError` if the document has no id or one that `check_id` refuses, or if its text has no letter or
        digit.
        """
        self._headings.clear()
        while self._open:
            self.close()
        if self._hollow:
            self._settle_empty_spans()
        if self._held:
            # A span without an id gets the id of the first element that lies inside it. References of a span to itself
            # are dropped.
            names = {id: self._span_ids.setdefault(span, id) for id, span in self._held.items()}
            others = [(span, target) for span, target in self._references if self._held.get(target) != span]
            self._references = list(dict.fromkeys((span, names.get(target, target)) for span, target in others))
        self._name_title()
        text = "".join(self._text)
        if not self.id.strip():
            raise InputError('the document has no id; give it one ("id" in JSON Lines)')
        check_id(self.id)
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
        # Has the effect of `open`, `text` and `close` in one step. Most spans are leaves, so this saves time.
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
        labels, number = self._labels, len(spans.kind)
        add_kind, add_tag, add_parent, add_start, add_end, add_part, add_language = self._appends
        add_kind(kind)
        add_tag(labels[tag] if tag in labels else self._label(tag))
        add_parent(parent)
        add_start(start)
        add_end(self._length)
        add_part(self._label(part) if part else spans.part[parent])
        add_language(self._label(language) if language else spans.language[parent])
        if id:
            self._span_ids[number] = id
        return number

    def _add_marks(self, passage: int, start: int, marks: Sequence[tuple[str, int, int]]) -> None:
        spans, labels = self._spans, self._labels
        part, language = spans.part[passage], spans.language[passage]
        add_kind, add_tag, add_parent, add_start, add_end, add_part, add_language = self._appends
        enclosing = [(passage, spans.end[passage])]
        number = len(spans.kind)
        for tag, first, last in sorted(marks, key=_outer_first) if len(marks) > 1 else marks:
            end = start + last
            while len(enclosing) > 1 and enclosing[-1][1] < end:
                enclosing.pop()  # the enclosing mark ends before this mark does, so it is not the parent
            add_kind(_MARK)
            add_tag(labels[tag] if tag in labels else self._label(tag))
            add_parent(enclosing[-1][0])
            add_start(start + first)
            add_end(end)
            add_part(part)
            add_language(language)
            enclosing.append((number, end))
            number += 1

    def _name_title(self) -> None:
        # If any span has a part, the document's title gets the part `title`.
        spans = self._spans
        if any(spans.part):
            for number, (kind, parent) in enumerate(zip(spans.kind, spans.parent, strict=True)):
                if kind == _TITLE and parent == 0 and not spans.part[number]:
                    spans.part[number] = self._label("title")

    def _settle_empty_spans(self) -> None:
        # An empty block that closed before its parent's first character lies before the parent: move it inside. One
        # pass is enough, because parents come before children.
        start, end = self._spans.start, self._spans.end
        for number, parent in enumerate(self._spans.parent):
            if parent >= 0:
                start[number] = min(max(start[number], start[parent]), end[parent])
                end[number] = min(max(end[number], start[parent]), end[parent])

    def _label(self, text: str) -> int:
        return self._labels.setdefault(text, len(self._labels))


def _outer_first(mark: tuple[str, int, int]) -> tuple[int, int]:
    """The key by which marks are sorted: an outer mark comes before the marks inside it."""
    return mark[1], -mark[2]
