"""AsciiDoc: rewritten as Markdown line by line, then read as Markdown. Included files are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from perikope.document.tree import Document
from perikope.formats import Source, markdown, reader

_ATTRIBUTE = re.compile(r":[\w-]+!?:(?: .*)?$")
_HEADING = re.compile(r"(={1,6}) (.+)$")
_DIRECTIVE = re.compile(r"(?:include|image|video|audio|toc|ifdef|ifndef|ifeval|endif)::.*$")
_BLOCK_LINE = re.compile(r"\[.*\]$")
_BLOCK_TITLE = re.compile(r"\.(?![.\s])(.+)$")
_LIST = re.compile(r"\s*([*-]{1,5}|\.{1,5})\s+(.*)$")
_DESCRIPTION = re.compile(r"(\S.*?):{2,4}(?:\s+(.*))?$")
_FENCES = {"----": "code", "....": "code", "====": "plain", "****": "plain", "____": "quote", "--": "plain", "////": "comment"}
_CODE = re.compile(r"(`[^`]+`)")
_ANCHOR = re.compile(r"(?<!\[)\[\[[\w:.-]+(?:,[^\]]*)?\]\](?!\])\s*")
_REFERENCE = re.compile(r"<<(?!\s)([^,<>]+)(?<!\s)(?:,\s*([^<>]*))?>>")
_LANGUAGE = re.compile(r"\[source,\s*([\w+#-]+)")


@reader("asciidoc", suffixes=(".adoc", ".asciidoc"), whole=True, contained=True)
def read(source: Source) -> Iterator[Document]:
    """AsciiDoc; included files are not read."""
    text = "\n".join(_Rewriter(source.text().split("\n")).lines)
    yield from markdown.read(replace(source, content=text.encode()))


class _Rewriter:
    """Rewrites lines of AsciiDoc as lines of Markdown."""

    def __init__(self, lines: list[str]) -> None:
        self.lines: list[str] = []
        self._language, self._in_header = "", False
        number = 0
        while number < len(lines):
            number = self._line(lines, number)

    def _line(self, lines: list[str], number: int) -> int:
        """Rewrite the block or line at a number; returns the number of the next one."""
        line = lines[number].rstrip()
        fence = line if line in _FENCES else line[:4] if len(set(line)) == 1 and line[:4] in _FENCES else ""
        if fence:
            return self._fenced(lines, number, _FENCES[fence])
        if line.startswith(("|===", ",===", "!===")):
            return self._table(lines, number)
        if not line:
            self._in_header = False
            self.lines.append("")
        elif heading := _HEADING.match(line):
            self._in_header = len(heading.group(1)) == 1
            self.lines += ["", f"{'#' * len(heading.group(1))} {_inline(heading.group(2))}", ""]
        elif line.startswith("//") or _ATTRIBUTE.match(line) or _DIRECTIVE.match(line) or self._in_header:
            pass
        elif language := _LANGUAGE.match(line):
            self._language = language.group(1)
        elif _BLOCK_LINE.fullmatch(line) or line == "+":
            pass
        elif title := _BLOCK_TITLE.match(line):
            self.lines += ["", _inline(title.group(1)), ""]
        elif item := _LIST.match(line):
            marks, text = item.groups()
            self.lines.append(f"{'  ' * (len(marks) - 1)}{'1.' if marks[0] == '.' else '-'} {_inline(text)}")
        elif (term := _DESCRIPTION.match(line)) and "://" not in term.group(1):
            self.lines.append(f"- {_inline(' '.join(filter(None, term.groups())))}")
        else:
            self.lines.append(_inline(line.lstrip()))
        return number + 1

    def _fenced(self, lines: list[str], number: int, kind: str) -> int:
        border = lines[number].rstrip()
        end = next((other for other in range(number + 1, len(lines)) if lines[other].rstrip() == border), len(lines))
        inside = lines[number + 1 : end]
        if kind == "code":
            fence = "`" * 8
            self.lines += ["", f"{fence}{self._language}", *inside, fence, ""]
            self._language = ""
        elif kind == "quote":
            self.lines += ["", *(f"> {_inline(line)}" for line in inside), ""]
        elif kind == "plain":
            # The blocks inside are read as if they stood outside.
            lines[number], lines[end : end + 1] = "", [""]
            return number
        return end + 1

    def _table(self, lines: list[str], number: int) -> int:
        border = lines[number].rstrip()
        end = next((other for other in range(number + 1, len(lines)) if lines[other].rstrip() == border), len(lines))
        rows: list[list[str]] = []
        width = 0
        for line in lines[number + 1 : end]:
            cells = [_inline(cell.strip()).replace("|", "\\|") for cell in re.split(r"(?:^|\s)[\d.+*<^>]*[aehlmsv]?\|", line)[1:]]
            if not cells:
                if line.strip() and rows:
                    rows[-1][-1] += f" {_inline(line.strip())}"
                continue
            if rows and len(rows[-1]) < width and len(cells) == 1:
                rows[-1] += cells
            else:
                rows.append(cells)
            width = width or len(cells)
        if rows:
            self.lines += ["", f"| {' | '.join(rows[0])} |", f"|{' --- |' * len(rows[0])}"]
            self.lines += [*(f"| {' | '.join(row)} |" for row in rows[1:]), ""]
        return end + 1


def _inline(text: str) -> str:
    """Inline markup of AsciiDoc as that of Markdown.

    >>> _inline("*bold*, see <<care,Care>> and https://example.org[the site]")
    '**bold**, see Care and [the site](https://example.org)'
    >>> _inline("[[types]]Types: List<String>, `Map<K, V>`")
    'Types: List\\\\<String>, `Map<K, V>`'
    """
    text = re.sub(r"(?<![\w*])\*(?![\s*])([^*]+?)(?<!\s)\*(?![\w*])", r"**\1**", text)
    text = _REFERENCE.sub(lambda found: found[2] or found[1], text)
    text = re.sub(r"(?:link:)?((?:https?|ftp)://[^\s\[\]]+)\[([^\]^]+)\^?\]", r"[\2](\1)", text)
    text = re.sub(r"(?:xref|link):[^\s\[]+\[([^\]]*)\]", r"\1", text)
    text = re.sub(r"(?:footnote|kbd|btn|menu|image|icon|anchor|pass):[^\s\[]*\[([^\]]*)\]", r"\1", text)
    # AsciiDoc has no HTML in its text: outside code, what looks like a tag is text.
    pieces = enumerate(_CODE.split(text))
    return "".join(piece if number % 2 else _ANCHOR.sub("", piece).replace("<", "\\<") for number, piece in pieces)
