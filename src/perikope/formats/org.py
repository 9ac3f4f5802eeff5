"""Org mode of Emacs: headings, lists, tables and blocks become sections and passages. Included files are not read.

Comments, drawers of properties, settings, planning lines, and blocks for one kind of export are left out. Formulas
and commands of LaTeX stay as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from perikope.document.tree import Document
from perikope.formats import Source, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.blocks import Extracted, FileBlock
from perikope.formats._org_inline import plain_text

_STATES = ("TODO", "DONE", "NEXT", "WAITING", "CANCELLED", "CANCELED", "COMMENT")
_HEADING = re.compile(r"(\*+)[ \t]+(.*)$")
_COUNTER = re.compile(r"[ \t]*\[(?:\d*/\d*|\d*%)\]")
_PRIORITY = re.compile(r"\[#[A-Z0-9]{1,2}\][ \t]*")
_TAGS = re.compile(r"(?:^|[ \t]+):(?:[\w@#%]+:)+[ \t]*$")
_SETTING = re.compile(r"[ \t]*#\+([\w-]+)(?:\[[^\]]*\])?:(.*)$")
_BLOCK = re.compile(r"[ \t]*#\+begin_(\S+)[ \t]*(.*)$", re.IGNORECASE)
_MARKER = re.compile(r"[ \t]*#\+(?:begin:.*|end:?|end_\S+|header.*)[ \t]*$", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:[\w-]+:[ \t]*$")
_PROPERTY = re.compile(r"[ \t]*:[^\s:][^\s]*:(?:[ \t].*)?$")
_TIME = r"[<\[][^<>\[\]\n]*[>\]]"
_PLANNING = re.compile(rf"[ \t]*(?:(?:SCHEDULED|DEADLINE|CLOSED|CLOCK):[ \t]*{_TIME}(?:--{_TIME})?(?:[ \t]*=>[ \t]*[\d:]+)?[ \t]*)+$")
_ITEM = re.compile(r"([ \t]*)(?:[-+]|(?<=[ \t])\*|\d{1,9}[.)]|[A-Za-z][.)])(?:[ \t]+(.*)|)$")
_ITEM_MARKS = re.compile(r"(?:\[@\w+\][ \t]*)?(?:\[[ X-]\](?:[ \t]+|$))?")
_TERM = re.compile(r"(\S.*?)[ \t]+::(?:[ \t]+|$)")
_ROW = re.compile(r"[ \t]*\|")
_RULE = re.compile(r"[ \t]*\|-[-+| :]*$")
_WIDTH = re.compile(r"<[lrc]?\d*>")
_FIXED = re.compile(r"[ \t]*:(?: (.*)|)$")
_NOTE = re.compile(r"\[fn:[\w-]+\](?:[ \t]|$)")
_COMMENT = re.compile(r"[ \t]*#(?:[ \t]|$)")
_LINE = re.compile(r"[ \t]*-{5,}[ \t]*$")
_COMMA = re.compile(r"^([ \t]*),(?=[*,]|#\+)", re.MULTILINE)
_CODE = ("src", "example")
_LEFT_OUT = ("comment", "export", "html", "latex")
_FIELDS = {"author": "author", "date": "date", "keywords": "keywords", "description": "description"}


@reader("org", suffixes=(".org",), whole=True, contained=True)
def read(source: Source) -> Iterator[Document]:
    """Org mode of Emacs; included files are not read."""
    yield source.finish(tree_of(source, _OrgReader(source.text().split("\n")).extracted()))


class _OrgReader:
    """Turns lines into blocks."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._number = 0
        self._blocks: list[FileBlock] = []
        self._stated: dict[str, list[str]] = {}
        self._text: list[str] = []
        self._kind = "p"
        self._items: list[int] = []
        """The columns of the open items, from the outermost."""
        self._around = "p"
        """The kind of paragraphs in the block around them."""
        ends = [number for number, line in enumerate(lines) if line.strip().lower() == ":end:"]
        self._last_end = ends[-1] if ends else -1
        self._last_block_end = {
            line.strip()[6:].lower(): number for number, line in enumerate(lines) if line.strip()[:6].lower() == "#+end_"
        }
        self._states = re.compile(rf"(?:{'|'.join(map(re.escape, self._all_states()))})(?:[ \t]+|$)")

    def _all_states(self) -> list[str]:
        """The words before headings that are no text, with those that the file declares."""
        stated = (found for line in self._lines if (found := _SETTING.match(line)) and found[1].lower() in ("todo", "seq_todo", "typ_todo"))
        own = (re.sub(r"\(.*", "", word) for found in stated for word in found[2].split())
        return [*_STATES, *(word for word in own if word not in ("", "|"))]

    def extracted(self) -> Extracted:
        """All blocks of the file, with what it says about itself."""
        while self._number < len(self._lines):
            self._number += 1
            self._line(self._lines[self._number - 1])
        self._end()
        metadata: dict[str, object] = {}
        for key, name in _FIELDS.items():
            if values := [text for value in self._stated.get(key, []) if (text := plain_text(value).strip())]:
                metadata[name] = values if name in ("author", "keywords") else " ".join(values)
        title = " ".join(plain_text(" ".join(self._stated.get("title", []))).split())
        return Extracted(self._blocks, title, " ".join(self._stated.get("language", [])).strip(), metadata)

    def _line(self, line: str) -> None:
        if not line.strip():
            self._end()
        elif heading := _HEADING.match(line):
            self._heading(len(heading[1]), heading[2])
        elif block := _BLOCK.match(line):
            self._block(block[1].lower(), block[2])
        elif setting := _SETTING.match(line):
            self._setting(setting[1].lower(), setting[2].strip())
        elif _MARKER.match(line):
            self._end()
            self._around = "p"
        elif _COMMENT.match(line) or _PLANNING.match(line) or _LINE.match(line):
            self._end()
        elif _DRAWER.match(line) and self._number - 1 <= self._last_end:
            self._drawer(line)
        elif _ROW.match(line):
            self._table(line)
        elif _FIXED.match(line):
            self._fixed(line)
        elif item := _ITEM.match(line):
            self._item(len(item[1].expandtabs()), item[2] or "")
        else:
            self._paragraph(line)

    def _end(self) -> None:
        """End the paragraph."""
        text = plain_text("\n".join(self._text))
        self._text = []
        text = "\n".join(lines) if self._kind == "verse" and (lines := text.split("\n")) else " ".join(text.split())
        if text.strip():
            self._blocks.append(FileBlock("p" if self._kind == "verse" else self._kind, text))

    def _paragraph(self, line: str) -> None:
        if not self._text or _NOTE.match(line):
            self._end()
            # A paragraph that is indented more than an item belongs to it.
            indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
            while self._items and indent <= self._items[-1]:
                self._items.pop()
            self._kind = self._around if self._around != "p" or not self._items else "li"
            if note := _NOTE.match(line):
                self._items, self._kind, line = [], "p", line[note.end() :]
        self._text.append(line.strip())

    def _heading(self, level: int, text: str) -> None:
        self._end()
        self._items, self._around = [], "p"
        text = _PRIORITY.sub("", self._states.sub("", _TAGS.sub("", text), count=1), count=1)
        text = " ".join(plain_text(_COUNTER.sub("", text)).split())
        # A heading without text, such as one that had a state only, still begins a section.
        self._blocks.append(FileBlock("heading", text, level))

    def _setting(self, name: str, value: str) -> None:
        if name == "caption":
            self._end()
            self._blocks.append(FileBlock("caption", " ".join(plain_text(value).split())))
        else:
            self._end()
            self._stated.setdefault(name, []).append(value)

    def _block(self, name: str, rest: str) -> None:
        """A block between two markers: code, what is left out, or text of another kind."""
        if name not in (*_CODE, *_LEFT_OUT):
            self._end()
            self._around = {"quote": "blockquote", "verse": "verse"}.get(name, "p")
        elif self._number - 1 < self._last_block_end.get(name, -1):
            self._end()
            inside = self._until(lambda line: line.strip().lower() == f"#+end_{name}")
            if name in _CODE:
                language = rest.split()[0] if name == "src" and rest and not rest.startswith((":", "-", "+")) else ""
                self._code(inside, language)
        else:
            self._paragraph(self._lines[self._number - 1])

    def _until(self, is_end: Callable[[str], bool]) -> list[str]:
        """The lines before the next end, which is passed over."""
        first = self._number
        while not is_end(self._lines[self._number]):
            self._number += 1
        self._number += 1
        return self._lines[first : self._number - 1]

    def _code(self, lines: list[str], language: str = "") -> None:
        lines = [line.expandtabs() for line in lines]
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        text = _COMMA.sub(r"\1", "\n".join(line[indent:].rstrip() for line in lines)).strip("\n")
        if text.strip():
            self._blocks.append(FileBlock("code", text, note=language))

    def _drawer(self, line: str) -> None:
        """Pass over the markers of a drawer, and over properties; other drawers hold text."""
        self._end()
        if line.strip().lower() == ":properties:":
            while self._number < len(self._lines) and _PROPERTY.match(self._lines[self._number]):
                self._number += 1
                if self._lines[self._number - 1].strip().lower() == ":end:":
                    return

    def _following(self, line: str, pattern: re.Pattern[str]) -> list[str]:
        """A line and those after it that match."""
        self._end()
        lines = [line]
        while self._number < len(self._lines) and pattern.match(self._lines[self._number]):
            lines.append(self._lines[self._number])
            self._number += 1
        return lines

    def _fixed(self, line: str) -> None:
        lines = self._following(line, _FIXED)
        self._code([found[1] or "" for one in lines if (found := _FIXED.match(one))])

    def _table(self, line: str) -> None:
        rows: list[list[str]] = []
        headers = 0
        for one in self._following(line, _ROW):
            if _RULE.match(one):
                headers = headers or len(rows)
                continue
            cells = [" ".join(plain_text(cell).split()) for cell in one.strip().strip("|").split("|")]
            if any(cells) and not all(_WIDTH.fullmatch(cell) for cell in cells if cell):
                rows.append(cells)
        headers = headers if headers < len(rows) else 0
        texts = [" | ".join(row) for row in rows]
        if texts:
            self._blocks.append(FileBlock("table", "\n".join(texts[:headers])))
            self._blocks += [FileBlock("tr", text) for text in texts[headers:]]

    def _item(self, column: int, text: str) -> None:
        self._end()
        while self._items and column <= self._items[-1]:
            self._items.pop()
        self._items.append(column)
        text = _ITEM_MARKS.sub("", text, count=1)
        self._kind = "li"
        if term := _TERM.match(text):
            self._blocks.append(FileBlock("dt", " ".join(plain_text(term[1]).split())))
            self._kind, text = "dd", text[term.end() :]
        self._text.append(text)
