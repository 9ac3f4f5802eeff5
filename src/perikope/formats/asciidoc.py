"""AsciiDoc: rewritten as Markdown block by block, then read as Markdown. Included files are not read.

The lines of a paragraph, an item or a cell are rewritten together, since a macro may reach over the end of a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from perikope.document.tree import Document
from perikope.formats import Source, markdown, reader
from perikope.formats._asciidoc_inline import LONGEST_VALUE, InlineText, alternative, named
from perikope.formats._asciidoc_tables import table_rows

DEEPEST_QUOTE = 5
"""The most quotations inside each other; deeper ones are read as other blocks."""

_ATTRIBUTE = re.compile(r":(!?[\w][\w-]*!?):(?:[ \t]+(.*))?$")
_HEADING = re.compile(r"(={1,6}) (.+?)(?: \1)?$")
_UNDERLINE = re.compile(r"={2,}|-{2,}|~{2,}|\^{2,}|\+{2,}")
_DIRECTIVE = re.compile(r"(include|image|video|audio|toc|ifdef|ifndef|ifeval|endif)::([^\[]*)\[(.*)\]$")
_BLOCK_LINE = re.compile(r"\[(?:|[\w.#%{,\"'].*|\[(?:|[A-Za-z_:][\w:.-]*(?:, *.+)?)\])\]$")
_BLOCK_ID = re.compile(r"\[\[([\w:.-]+)(?:,\s*(.*))?\]\]|\[[^\]]*?(?:#|\bid=[\"']?)([\w:.-]+).*\]")
_BLOCK_TITLE = re.compile(r"\.(?![.\s])(.+)$")
_LIST = re.compile(r"\s*(-|\*{1,5}|\.{1,5})\s+(.*)$")
_CALLOUT = re.compile(r"<(?:\d{1,3}|\.)>\s+(.*)$")
_DESCRIPTION = re.compile(r"(\S.*?)(?::{2,4}|;;)(?:\s+(.*))?$")
_FENCES = {
    "----": "code", "....": "code", "====": "plain", "****": "plain", "____": "quote", "--": "plain", "////": "comment", "++++": "raw",
}  # fmt: skip
_TABLE = re.compile(r"[|,:!]={3,}$")
_LANGUAGE = re.compile(r"\[source,\s*([\w+#-]+)")
_ADMONITION = re.compile(r"\[(NOTE|TIP|IMPORTANT|CAUTION|WARNING)\b.*\]")
_CREDIT = re.compile(r"\[(?:quote|verse)[^,\]]*,(.*)\]")
_CAPTION = re.compile(r"\[caption=\"([^\"]*)\"\]\s*$")
_BREAKS = ("'''", "<<<")
_MARKDOWN = re.compile(r"(?m)^(?=\d{1,9}\)|\+ |[-=+]+$)(\d*)")
"""The beginning of a line that is text in AsciiDoc, and a list or a heading in Markdown."""
_INSIDE_ID = re.compile(r"\[\[([\w:.-]+)(?:,[^\]]*)?\]\]")


class _Pending(NamedTuple):
    """What the lines above a block say about it."""

    language: str = ""
    credit: str = ""
    """Who has said a quotation, and where."""
    label: str = ""
    """The word that stands before a note or warning."""
    attributes: Mapping[str, str] = {}


@reader("asciidoc", suffixes=(".adoc", ".asciidoc"), whole=True, contained=True)
def read(source: Source) -> Iterator[Document]:
    """AsciiDoc; included files are not read."""
    lines = source.text().split("\n")
    rewriter = _Rewriter(lines, {}, _titles(lines))
    stated = {"author": rewriter.authors, "lang": rewriter.attributes.get("lang", "")}
    front = [f"{name}: {json.dumps(value)}" for name, value in stated.items() if value]
    text = "\n".join([*(["---", *front, "---"] if front else []), *rewriter.lines])
    yield from markdown.read(replace(source, content=text.encode()))


class _Rewriter:
    """Rewrites lines of AsciiDoc as lines of Markdown."""

    def __init__(self, lines: list[str], attributes: dict[str, str], titles: Mapping[str, str], depth: int = 0) -> None:
        self.lines: list[str] = []
        self.authors: list[str] = []
        self.attributes = attributes
        self._titles, self._depth = titles, depth
        self._text = InlineText(attributes, titles)
        self._open: list[str] = []
        """The lines of the open paragraph or item."""
        self._prefix = ""
        self._awaits_text = False
        """Whether the last block is a term whose description may follow after a blank line."""
        self._pending = _Pending()
        number = 0
        while number < len(lines):
            number = self._line(lines, number)
        self._close()

    def _line(self, lines: list[str], number: int) -> int:
        """Rewrite the block or line at a number; returns the number of the next one."""
        line = lines[number].rstrip()
        if level := _underlined(lines, number, bool(self._open)):
            return self._heading(lines, number + 2, level, line)
        if fence := _fence(line):
            self._close()
            return self._fenced(lines, number, _FENCES[fence])
        if _TABLE.match(line):
            self._close()
            return self._table(lines, number)
        if heading := None if self._open else _HEADING.match(line):
            return self._heading(lines, number + 1, len(heading.group(1)), heading.group(2))
        if not line or line == "+" or line in _BREAKS:
            self._close()
            self.lines.append("")
        elif line.startswith("//"):
            pass
        elif attribute := _ATTRIBUTE.match(line):
            return self._attribute(lines, number, *attribute.groups())
        elif directive := _DIRECTIVE.match(line):
            self._directive(*directive.groups())
        elif _BLOCK_LINE.fullmatch(line):
            self._close()
            self._describe(line)
        elif not self._open and (title := _BLOCK_TITLE.match(line)):
            caption = _CAPTION.match(lines[number + 1]) if number + 1 < len(lines) else None
            self._paragraph((caption.group(1) if caption else "") + title.group(1))
        elif line[0] in " \t" and not self._open and not self._awaits_text and not _LIST.match(line):
            return self._literal(lines, number)
        else:
            self._text_line(line)
        return number + 1

    def _text_line(self, line: str) -> None:
        if item := _LIST.match(line):
            marks, text = item.groups()
            self._item(f"{'  ' * (len(marks) - 1)}{'1.' if marks[0] == '.' else '-'} ", text)
        elif callout := _CALLOUT.match(line):
            self._item("1. ", callout.group(1))
        elif (term := _DESCRIPTION.match(line)) and "://" not in term.group(1):
            self._item("- ", " ".join(filter(None, term.groups())))
            self._awaits_text = not term.group(2)
        else:
            self._open.append(line.lstrip())
            self._awaits_text = False

    def _item(self, prefix: str, text: str) -> None:
        self._close()
        self._prefix, self._open, self._awaits_text = prefix, [text], False

    def _literal(self, lines: list[str], number: int) -> int:
        """A paragraph whose first line is indented: nothing in it is markup."""
        end = next((other for other in range(number, len(lines)) if not lines[other].strip()), len(lines))
        self._code(lines[number:end])
        return end

    def _code(self, lines: Sequence[str]) -> None:
        fence = "`" * (1 + max(7, *(len(ticks) for ticks in re.findall("`+", "\n".join(lines))), 0))
        self.lines += ["", f"{fence}{self._pending.language}", *lines, fence, ""]
        self._pending = _Pending()

    def _paragraph(self, text: str) -> None:
        """Add a paragraph of its own."""
        self._close()
        self.lines += ["", self._text.markdown(text), ""]

    def _close(self) -> None:
        """End the open paragraph or item."""
        if not self._open:
            return
        text = self._text.markdown(self._pending.label + "\n".join(self._open))
        self.lines += f"{self._prefix}{_MARKDOWN.sub(_escaped, text)}".split("\n")
        self._open, self._prefix = [], ""
        self._credit()
        self._pending = _Pending()

    def _credit(self) -> None:
        if self._pending.credit:
            self.lines += ["", self._text.markdown(self._pending.credit), ""]

    def _describe(self, line: str) -> None:
        """Remember what a line in brackets says about the next block."""
        language, credit, label = _LANGUAGE.match(line), _CREDIT.match(line), _ADMONITION.match(line)
        parts = [part for one in credit.group(1).split(",") if (part := one.strip(" \"'"))] if credit else []
        stated = {**named(line[1:-1]), **({"header": "yes"} if "%header" in line else {})}
        self._pending = _Pending(
            language.group(1) if language else self._pending.language,
            f"— {', '.join(parts)}" if parts else self._pending.credit,
            f"{label.group(1)}: " if label else self._pending.label,
            {**self._pending.attributes, **stated},
        )

    def _heading(self, lines: list[str], following: int, level: int, title: str) -> int:
        self._close()
        is_first = level == 1 and not any(self.lines) and not self._depth
        self.lines += ["", f"{'#' * level} {self._text.markdown(title)}", ""]
        self._pending = _Pending()
        return self._header(lines, following) if is_first else following

    def _header(self, lines: list[str], number: int) -> int:
        """Read the lines of authors and of the version below the title of the document."""
        read = 0
        while number < len(lines) and (line := lines[number].rstrip()):
            if attribute := _ATTRIBUTE.match(line):
                number = self._attribute(lines, number, *attribute.groups())
                continue
            if not line.startswith("//"):
                if read == 2 or _BLOCK_LINE.fullmatch(line) or _DIRECTIVE.match(line):
                    break
                if read == 0:
                    names = (re.sub(r"<[^>]*>", "", name).replace("_", " ").strip() for name in line.split(";"))
                    self.authors = [name for name in names if name]
                read += 1
            number += 1
        return number

    def _attribute(self, lines: list[str], number: int, name: str, value: str | None) -> int:
        """Set an attribute; its value may go on in the next lines."""
        value, number = value or "", number + 1
        while value.endswith("\\") and number < len(lines):
            value, number = f"{value[:-1].removesuffix(' +').rstrip()} {lines[number].strip()}", number + 1
        plain = name.strip("!").lower()
        if plain != name.lower():
            self.attributes.pop(plain, None)
        else:
            value = re.sub(r"\{(\w[\w-]*)\}", lambda found: self.attributes.get(found[1].lower(), found[0]), value)
            if len(value) <= LONGEST_VALUE:
                self.attributes[plain] = value
            if plain in ("author", "authors") and value:
                self.authors = [author for one in value.split(";") if (author := one.strip())]
        return number

    def _directive(self, name: str, target: str, content: str) -> None:
        if name == "image":
            title = named(content).get("title", "")
            for text in (alternative(content), title):
                if text:
                    self._paragraph(text)
        elif name in ("ifdef", "ifndef") and content:
            # Of a whole block, both cases are read: programs set attributes that a file does not state.
            is_set = any(one.lower() in self.attributes for one in re.split("[,+]", target))
            if is_set == (name == "ifdef"):
                self._text_line(content)

    def _fenced(self, lines: list[str], number: int, kind: str) -> int:
        end = _end(lines, number)
        inside = lines[number + 1 : end]
        if kind == "code":
            self._code(inside)
        elif kind == "quote" and self._depth < DEEPEST_QUOTE:
            inner = _Rewriter(inside, self.attributes, self._titles, self._depth + 1)
            self.lines += ["", *(f"> {line}" for line in inner.lines), ""]
        elif kind == "raw":
            self.lines += ["", *_literal(markdown.html_text("\n".join(inside))), ""]
        elif kind != "comment":
            # The blocks inside are read as if they stood outside.
            lines[number], lines[end : end + 1] = "", [""]
            return number
        self._credit()
        self._pending = _Pending()
        return end + 1

    def _table(self, lines: list[str], number: int) -> int:
        attributes, self._pending = self._pending.attributes, _Pending()
        end = _end(lines, number)
        rows = [
            [" ".join(self._text.markdown(cell).split()).replace("|", "\\|") for cell in row]
            for row in table_rows([line.rstrip() for line in lines[number + 1 : end]], lines[number].strip(), attributes)
        ]
        if rows:
            is_stated = "header" in attributes or "header" in attributes.get("options", attributes.get("opts", ""))
            width = max(map(len, rows))
            header = rows.pop(0) if is_stated or all(rows[0]) else []
            rows = [row + [""] * (width - len(row)) for row in (header, *rows)]
            self.lines += ["", f"| {' | '.join(rows[0])} |", f"|{' --- |' * width}"]
            self.lines += [*(f"| {' | '.join(row)} |" for row in rows[1:]), ""]
        return end + 1


def _fence(line: str) -> str:
    """The fence of a block that a line is, in its shortest form; empty if it is none."""
    return line if line in _FENCES else line[:4] if len(set(line)) == 1 and line[:4] in _FENCES else ""


def _end(lines: Sequence[str], number: int) -> int:
    """The line that closes the block which the line at a number opens, or the end."""
    border = lines[number].rstrip()
    return next((other for other in range(number + 1, len(lines)) if lines[other].rstrip() == border), len(lines))


def _underlined(lines: Sequence[str], number: int, in_paragraph: bool) -> int:
    """The level of the heading at a line if the next line underlines it, else 0."""
    line = lines[number].rstrip()
    under = lines[number + 1].rstrip() if number + 1 < len(lines) else ""
    if in_paragraph or not _UNDERLINE.fullmatch(under) or abs(len(line) - len(under)) > 1 or line[:1] in (" ", "\t", ".", "["):
        return 0
    is_title = any(sign.isalnum() for sign in line) and not _LIST.match(line) and not line.startswith(("//", "|"))
    return "=-~^+".index(under[0]) + 1 if is_title else 0


def _escaped(start: re.Match[str]) -> str:
    return f"{start[1]}\\"


def _literal(text: str) -> list[str]:
    """Lines of a text in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<>#~|])", r"\\\1", text).split("\n")


def _titles(lines: Sequence[str]) -> dict[str, str]:
    """The titles of sections and blocks by their ids, and by the ids that AsciiDoc makes of the titles of sections."""
    titles: dict[str, str] = {}
    plain = InlineText({}, {})
    waiting: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number].rstrip()
        level = _underlined(lines, number, number > 0 and _is_text(lines[number - 1]))
        heading = None if level else _HEADING.match(line)
        if not level and _FENCES.get(_fence(line)) in ("code", "comment", "raw"):
            number, waiting = _end(lines, number) + 1, []
            continue
        number += 2 if level else 1
        if level or heading:
            title = heading.group(2) if heading else line
            waiting += _INSIDE_ID.findall(title)
            text = _read(plain.markdown(title))
            made = re.sub(r"[ .-]+", "_", re.sub(r"[^\w .-]", "", text.lower())).strip("_")
            for id in (*waiting, f"_{made}", made.replace("_", "-"), text):
                titles.setdefault(id, text)
        elif found := _BLOCK_ID.match(line):
            waiting.append(found[1] or found[3])
            if found[2]:
                titles.setdefault(found[1], _read(plain.markdown(found[2])))
            continue
        elif found := _BLOCK_TITLE.match(line):
            for id in waiting:
                titles.setdefault(id, _read(plain.markdown(found[1])))
        elif _BLOCK_LINE.fullmatch(line):
            continue
        waiting = []
    return titles


def _is_text(line: str) -> bool:
    line = line.strip()
    return bool(line) and not (_BLOCK_LINE.fullmatch(line) or _ATTRIBUTE.match(line) or line.startswith("//") or _fence(line))


def _read(text: str) -> str:
    """Short Markdown as it is read."""
    return re.sub(r"\\(.)|[*`]|\b_|_\b", r"\1", text)
