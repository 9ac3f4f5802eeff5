r"""LaTeX: sections, paragraphs, lists, tables and captions. Macros are never expanded, and no other file is read.

The text is read once, from its beginning to its end. A command that takes a text, such as `\section`, puts a capture on
a stack, which the brace at the end of the text closes. So deep nesting takes no recursion and no quadratic time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document
from perikope.formats import Source, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.blocks import Extracted, FileBlock

LONGEST_ARGUMENT = 4000
"""Characters of the longest argument that is passed over, so that a missing brace costs little."""
MOST_UNCLOSED = 1000
"""The number of arguments without an end after which arguments are no longer looked for."""
DEEPEST_CAPTURE = 20
"""The most texts of commands inside each other; deeper ones belong to the text around them."""


def _names(text: str) -> list[str]:
    return text.split()


_LEVELS = {name: level for level, name in enumerate(_names("part chapter section subsection subsubsection paragraph subparagraph"), 1)}
_LEVELS["frametitle"] = _LEVELS["subsection"]
_LISTS = frozenset(_names("itemize enumerate description list compactitem compactenum inparaenum thebibliography tasks"))
_QUOTES = frozenset(_names("quote quotation verse displayquote"))
_CODE = frozenset(_names("verbatim Verbatim lstlisting minted alltt BVerbatim LVerbatim filecontents Highlighting"))
_MARKED_CODE = frozenset(_names("alltt Highlighting"))
"""Environments of code whose commands and braces are markup. Pandoc writes coloured code as `Highlighting`."""
_CODE_MARK = re.compile(r"\\(?:([A-Za-z]+)(?:\{\}|(?=\{)| ?)|\^\{\}|(.))|[{}]")
_MATH = frozenset(_names("equation align gather multline eqnarray displaymath math flalign alignat dmath subequations"))
_TABLES = {"tabular": 1, "tabularx": 2, "tabulary": 2, "longtable": 1, "supertabular": 1, "tabu": 1, "longtabu": 1, "tblr": 1}
"""Environments of tables, and the number of their arguments. A star adds one: `tabular*` has a width."""
_ENVIRONMENT_ARGUMENTS = {
    **dict.fromkeys(_names("minipage multicols thebibliography adjustbox column subfigure subtable spacing"), 1),
    **dict.fromkeys(_names("wrapfigure wraptable list"), 2),
}
_DROPPED = {
    **dict.fromkeys(_names("label index input include includeonly subfile vspace hspace usepackage documentclass thanks"), 1),
    **dict.fromkeys(_names("bibliography bibliographystyle includegraphics pagestyle thispagestyle graphicspath hypersetup"), 1),
    **dict.fromkeys(_names("href hypertarget hyperlink textcolor color colorbox hyphenation nocite lstinputlisting write"), 1),
    **dict.fromkeys(_names("raisebox parbox makebox pagenumbering bibitem cline cmidrule date tikzset lstset captionsetup"), 1),
    **dict.fromkeys(_names("usetikzlibrary DeclareOption addbibresource theoremstyle newcounter newlength selectlanguage"), 1),
    **dict.fromkeys(_names("setlength addtolength setcounter addtocounter multicolumn multirow newtheorem newcommand"), 2),
    **dict.fromkeys(_names("renewcommand providecommand DeclareMathOperator DeclareRobustCommand fcolorbox rule resizebox import"), 2),
    **dict.fromkeys(_names("newenvironment renewenvironment definecolor addcontentsline"), 3),
}
"""The number of arguments of commands that are not text. Arguments that follow them are."""
_KEYS = re.compile(r"(?:eq|auto|page|name|[cCv])?ref|[cC]refrange|(?:full|foot|text|paren|auto|no)?[cC]ite[a-zA-Z]*")
_SYMBOLS = {
    "ss": "ß", "o": "ø", "O": "Ø", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å", "l": "ł", "L": "Ł", "i": "i",
    "j": "j", "ldots": "…", "dots": "…", "textellipsis": "…", "LaTeX": "LaTeX", "TeX": "TeX", "BibTeX": "BibTeX", "S": "§", "P": "¶",
    "copyright": "©", "textregistered": "®", "texttrademark": "™", "textdegree": "°", "pounds": "£", "euro": "€", "texteuro": "€",
    "textendash": "–", "textemdash": "—", "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textbar": "|",
    "textless": "<", "textgreater": ">", "textunderscore": "_", "textbullet": "•", "textquoteright": "’", "textquoteleft": "‘",
    "glqq": "„", "grqq": "“", "quad": " ", "qquad": " ", "newline": " ", "linebreak": " ", "and": "; ", "slash": "/", "space": " ",
    "textasciigrave": "`", "textquotesingle": "'", "VerbBar": "|",
}  # fmt: skip
_ACCENTS = dict(
    zip("`'^\"~=.cvuHkrdb", "\u0300\u0301\u0302\u0308\u0303\u0304\u0307\u0327\u030c\u0306\u030b\u0328\u030a\u0323\u0331", strict=True)
)
_RULES = frozenset(_names("hline midrule toprule bottomrule cline cmidrule specialrule Xhline"))
_HEADS, _FEET = ("endfirsthead", "endhead"), ("endlastfoot", "endfoot")
"""What ends the header and the foot of a table that goes over several pages; those of the first and last page first."""
_ENDS = {"firsthead": "endfirsthead", "head": "endhead", "tail": "endfoot", "lasttail": "endlastfoot"}
_IN_BRACES = r"(?:[^{}\\]|\\.|\{(?:[^{}\\]|\\.|\{(?:[^{}\\]|\\.){0,500}+\}){0,500}+\}){0,2000}+"
_HEAD_OR_TABLE = re.compile(
    rf"\\table(?P<part>firsthead|head|tail|lasttail)[ \t]*\{{(?P<rows>{_IN_BRACES})\}}"
    r"|\\begin\{(?P<code>verbatim|Verbatim|lstlisting|minted)\}.*?\\end\{(?P=code)\}"
    rf"|\\begin\{{supertabular\}}[ \t]*(?:\[[^\]\n]*\])?[ \t]*\{{{_IN_BRACES}\}}",
    re.DOTALL,
)
"""The header or foot of the next `supertabular`, and its beginning. Longer ones than 2,000 characters stay text."""
_TOKEN = re.compile(
    r"(?P<text>[^\\%{}$&~\n]++)"
    r"|(?P<blank>\n(?:[ \t]*\n)+[ \t]*)|(?P<line>\n[ \t]*)"
    r"|(?P<comment>%[^\n]*(?:\n[ \t]*)?)"
    r"|(?P<math>\$\$(?:[^$\\\n]|\\.|\n(?![ \t]*\n))*+\$\$|\$(?:[^$\\\n]|\\.|\n(?![ \t]*\n))++\$)"
    r"|\\(?P<edge>begin|end)[ \t]*\{(?P<name>[^{}\n]{1,60})\}"
    r"|\\(?P<command>[A-Za-z@]++\*?)|\\(?P<symbol>.)|(?P<mark>.)",
    re.DOTALL,
)
_VERB = re.compile(r"(?:\[[^\]\n]*\])?(?:\{([^{}\n]*)\}|([^\sA-Za-z*])(.*?)\2)")
_ACCENTED = re.compile(r"[ \t]*(?:\{[ \t]*\\?([A-Za-z])[ \t]*\}|\\([ij])(?![A-Za-z])[ \t]?|([A-Za-z]))")
_LABEL = re.compile(r"\\label\{[^{}]*\}")
_BRACKET = re.compile(r"[\[\]{}]|\\.", re.DOTALL)
_DEFINITION = re.compile(r"[ \t]*\\?[A-Za-z@]*[#0-9 \t]*")


@reader("latex", suffixes=(".tex", ".latex"), whole=True, contained=True)
def read(source: Source) -> Iterator[Document]:
    """LaTeX; macros are not expanded and included files are not read."""
    data = source.data()
    if b"\0" in data:
        raise UnreadableFile("is not text: it holds zero bytes; remove it or convert it to UTF-8 text", path=source.path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Old sources are in the encoding of their system, which in most cases is this one or has the same letters.
        text = data.decode("latin-1")
    yield source.finish(tree_of(source, blocks_of(text.replace("\r\n", "\n").replace("\r", "\n"))))


def blocks_of(text: str) -> Extracted:
    r"""The blocks of a text in LaTeX.

    >>> [(block.kind, block.text) for block in blocks_of(r"\section{Care} Clean the \emph{filter}.").blocks]
    [('heading', 'Care'), ('p', 'Clean the filter.')]
    """
    text = _with_heads_inside(text)
    found = re.search(r"^[^%\n]*?\\begin[ \t]*\{document\}", text, re.MULTILINE)
    preamble = _Reader(text[: found.end()] if found else "")
    body = _Reader(text[found.end() :] if found else text)
    authors = body.authors or preamble.authors
    highest = min((block.level for block in body.blocks if block.kind == "heading"), default=1)
    blocks = [replace(block, level=block.level - highest + 1) if block.kind == "heading" else block for block in body.blocks]
    return Extracted(blocks, body.title or preamble.title, "", {"author": authors} if authors else {})


def _with_heads_inside(text: str) -> str:
    """The text with the header and foot of each `supertabular` inside it, written as those of a `longtable`."""
    last = text.rfind("\\begin{supertabular}")
    if last < 0:
        return text
    parts: dict[str, str] = {}

    def moved(found: re.Match[str]) -> str:
        if found["code"] or found.start() > last:
            return found[0]
        if found["part"]:
            parts[found["part"]] = found["rows"]
            return ""
        inside = "".join(f"{rows}\\{_ENDS[part]} " for part, rows in parts.items())
        parts.clear()
        return found[0] + inside

    return _HEAD_OR_TABLE.sub(moved, text)


def _without_mark(found: re.Match[str]) -> str:
    """What a command, an escaped character or a brace inside code stands for."""
    if found[1]:
        return _SYMBOLS.get(found[1], "")
    return found[2] or ("^" if found[0].startswith("\\") else "")


@dataclass(slots=True)
class _Capture:
    """A text that a command takes, until the brace that ends it; `kind` says what becomes of it."""

    kind: str
    around: list[str]
    """The text before the command."""
    level: int = 0


@dataclass(slots=True)
class _Table:
    rows: list[list[str]] = field(default_factory=lambda: [[]])
    captions: list[str] = field(default_factory=list)
    has_header: bool = False
    parts: dict[str, tuple[list[list[str]], list[str]]] = field(default_factory=dict)
    """Rows and captions of headers and feet, by the command that ends them."""

    def end_part(self, name: str) -> None:
        """Take the rows and captions read so far as a header or foot."""
        self.parts.setdefault(name, (list(filter(any, self.rows)), self.captions))
        self.rows, self.captions, self.has_header = [[]], [], False

    def first(self, names: Iterable[str], number: int) -> list[Any]:
        """The rows (0) or captions (1) of the first of several parts that has any."""
        return next((found[number] for name in names if (found := self.parts.get(name)) and found[number]), [])

    def blocks(self) -> Iterator[FileBlock]:
        """The captions, the header and the rows. A header or foot that every page repeats is read once."""
        rows = [*filter(any, self.rows), *self.first(_FEET, 0)]
        header = self.first(_HEADS, 0) or (rows[:1] if self.has_header else [])
        rows = rows[0 if self.first(_HEADS, 0) else len(header) :]
        if not rows:
            header, rows = [], header
        for caption in [*self.first(_HEADS, 1), *self.captions, *self.first(_FEET, 1)]:
            yield FileBlock("caption", caption)
        if rows:
            yield FileBlock("table", "\n".join(" | ".join(row) for row in header))
            yield from (FileBlock("tr", " | ".join(row)) for row in rows)


class _Reader:
    """Reads a text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.blocks: list[FileBlock] = []
        self.title, self.authors = "", list[str]()
        self._text, self._at = text, 0
        self._buffer: list[str] = []
        self._groups: list[_Capture | None] = []
        self._captures = 0
        self._kinds: list[tuple[str, str]] = []
        """The names of the open lists and quotes, and the kinds of their blocks."""
        self._table: _Table | None = None
        self._inner_tables = 0
        self._unclosed = 0
        self._never: set[str] = set()
        """Ends that are not in the rest of the text."""
        while self._at < len(text):
            token = _TOKEN.match(text, self._at)
            assert token is not None
            self._at = token.end()
            self._read(token)
        while self._groups:
            self._close()
        self._end_table()
        self._flush()

    def _read(self, token: re.Match[str]) -> None:
        kind = token.lastgroup
        if kind == "text":
            self._buffer.append(token[0].replace("---", "—").replace("--", "–").replace("``", "“").replace("''", "”"))
        elif kind == "line":
            self._buffer.append(" ")
        elif kind == "blank":
            self._paragraph()
        elif kind == "comment":
            if self._text.startswith("\n", self._at):
                self._paragraph()
        elif kind == "math":
            self._buffer.append(token[0])
        elif kind == "name":
            (self._begin if token["edge"] == "begin" else self._end)(token["name"].strip())
        elif kind == "command":
            self._command(token["command"].rstrip("*"), token["command"].endswith("*"))
        elif kind == "symbol":
            self._symbol(token["symbol"])
        else:
            self._mark(token["mark"])

    def _mark(self, mark: str) -> None:
        if mark == "{":
            self._groups.append(None)
        elif mark == "}":
            if self._groups:
                self._close()
            if self._text.startswith("{", self._at):
                self._buffer.append(" ")
        elif mark == "&" and self._table is not None and not self._inner_tables:
            self._cell()
        else:
            self._buffer.append(" " if mark in "~&" else "" if mark == "\\" else mark)

    # Blocks

    def _paragraph(self) -> None:
        """A blank line: the end of a paragraph, and of a heading whose brace is missing."""
        capture = next((group for group in reversed(self._groups) if group is not None), None) if self._captures else None
        if capture is not None and capture.kind in ("heading", "caption"):
            while self._groups and self._groups[-1] is not capture:
                self._close()
            self._close()
        if self._captures or self._table is not None:
            self._buffer.append(" ")
        else:
            self._flush()

    def _flush(self) -> None:
        """End the block whose text has been read."""
        if text := self._taken():
            self.blocks.append(FileBlock(self._kinds[-1][1] if self._kinds else "p", text))

    def _taken(self) -> str:
        text = " ".join("".join(self._buffer).split())
        self._buffer = []
        return text

    def _capture(self, kind: str, level: int = 0) -> None:
        """Take the argument that follows as a text of a kind."""
        self._optional()
        self._spaces()
        if self._text.startswith("{", self._at) and self._captures < DEEPEST_CAPTURE:
            self._at += 1
            self._groups.append(_Capture(kind, self._buffer, level))
            self._captures += 1
            self._buffer = []

    def _close(self) -> None:
        capture = self._groups.pop()
        if capture is None:
            return
        self._captures -= 1
        text = self._taken()
        self._buffer = capture.around
        if capture.kind == "footnote":
            self._buffer.append(f" ({text})" if text else "")
        elif capture.kind == "title":
            self.title = self.title or text
        elif capture.kind == "author":
            self.authors += [author for author in (one.strip(" ;,") for one in text.split("; ")) if author]
        elif text and capture.kind == "caption":
            if self._table is not None:
                self._table.captions.append(text)
            else:
                self.blocks.append(FileBlock("caption", text))
        elif text:
            self.blocks.append(FileBlock("heading", text, capture.level))

    # Environments

    def _begin(self, name: str) -> None:
        plain = name.rstrip("*")
        if plain in _MATH:
            inner = self._until(f"\\end{{{name}}}")
            self._buffer.append(" " if inner is None else f" {_LABEL.sub('', inner).strip()} ")
            return
        if plain in _TABLES:
            self._begin_table(name)
            return
        if not self._captures and self._table is None:
            self._flush()
        if plain in _CODE or plain == "comment":
            self._raw(name)
        elif plain in _LISTS or plain in _QUOTES:
            self._kinds.append((name, "li" if plain in _LISTS else "blockquote"))
        elif plain == "frame" and self._text.startswith("{", self._at):
            self._capture("heading", _LEVELS["frametitle"])
            return
        self._environment_options(plain)

    def _environment_options(self, name: str) -> None:
        """Pass over the options of an environment. The optional text of a theorem is its name, and stays."""
        if self._text.startswith("[", self._at):
            end = self._closing(self._at)
            option = self._text[self._at + 1 : end - 1]
            if end and (re.fullmatch(r"[htbpH!c ]*", option) or "=" in option or name in _LISTS or name in _ENVIRONMENT_ARGUMENTS):
                self._at = end
        self._skip(_ENVIRONMENT_ARGUMENTS.get(name, 0))

    def _end(self, name: str) -> None:
        if name == "document":
            self._at = len(self._text)
        elif name.rstrip("*") in _TABLES:
            if self._inner_tables:
                self._inner_tables -= 1
            else:
                self._end_table()
        elif not self._captures and self._table is None:
            self._flush()
            if self._kinds and self._kinds[-1][0] == name:
                self._kinds.pop()

    def _raw(self, name: str) -> None:
        """Text that is kept as it is, up to the end of its environment."""
        options = re.compile(r"(?:\[[^\]\n]*\])?(?:\{([^{}\n]*)\})?").match(self._text, self._at)
        language = ""
        if options and name in ("minted", "lstlisting", "Verbatim", "Highlighting", "filecontents"):
            self._at = options.end()
            stated = re.search(r"language=\{?([\w+#-]+)", options[0])
            language = (options[1] or "") if name == "minted" else stated[1] if stated else ""
        content = self._until(f"\\end{{{name}}}")
        if content is None:
            content, self._at = self._text[self._at :], len(self._text)
        if name in _MARKED_CODE or (options and "commandchars=" in options[0]):
            content = _CODE_MARK.sub(_without_mark, content)
        if name != "comment" and (content := content.strip("\n").rstrip()):
            self.blocks.append(FileBlock("code", content, note=language))

    def _until(self, end: str) -> str | None:
        """The text up to an end, which is passed over; None if there is none."""
        place = -1 if end in self._never else self._text.find(end, self._at)
        if place < 0:
            self._never.add(end)
            return None
        content = self._text[self._at : place]
        self._at = place + len(end)
        return content

    # Tables

    def _begin_table(self, name: str) -> None:
        if self._table is not None:
            self._inner_tables += 1
        elif not self._captures:
            self._flush()
            self._table = _Table()
        self._optional()
        self._skip(_TABLES[name.rstrip("*")] + (name == "tabular*"))

    def _cell(self) -> None:
        if self._table is not None:
            self._table.rows[-1].append(self._taken())

    def _row(self) -> None:
        if self._table is not None:
            self._cell()
            if any(self._table.rows[-1]):
                self._table.rows.append([])
            else:
                self._table.rows[-1] = []

    def _end_table(self) -> None:
        table = self._table
        if table is None:
            return
        self._row()
        self._table, self._inner_tables = None, 0
        self.blocks += table.blocks()

    # Commands

    def _command(self, name: str, starred: bool) -> None:
        if name in _LEVELS:
            if not self._captures and self._table is None:
                self._flush()
            self._capture("heading", _LEVELS[name])
        elif name in ("title", "author", "footnote", "footnotetext"):
            self._capture("footnote" if name.startswith("footnote") else name)
        elif name in ("caption", "captionof"):
            self._skip(name == "captionof")
            if self._table is None and not self._captures:
                self._flush()
            self._capture("caption")
        elif name in ("verb", "lstinline", "mintinline"):
            self._verb(name)
        elif name in ("item", "bibitem", "par"):
            self._item(name)
        elif _KEYS.fullmatch(name):
            self._keys()
        elif name in ("def", "gdef", "edef", "let"):
            self._definition(name)
        elif name in (*_HEADS, *_FEET) and self._table is not None and not self._captures and not self._inner_tables:
            self._row()
            self._table.end_part(name)
        elif name in _RULES and self._table is not None:
            self._rule(name)
        elif name in ("tabularnewline", "cr"):
            self._symbol("\\")
        elif len(name) == 1 and name in _ACCENTS:
            self._accent(name)
        elif name in _SYMBOLS:
            self._buffer.append(_SYMBOLS[name])
            if len(name) <= 2:
                self._spaces()
        else:
            self._other(name)

    def _other(self, name: str) -> None:
        """Any other command: its arguments are text, unless they are known to be something else."""
        self._optional()
        if dropped := _DROPPED.get(name, 0):
            self._skip(dropped)

    def _item(self, name: str) -> None:
        if self._captures or self._table is not None:
            self._buffer.append(" ")
        else:
            self._flush()
        if name == "item" and self._text.startswith("[", self._at) and (end := self._closing(self._at)):
            # The term of a description.
            term = self._text[self._at + 1 : end - 1].replace("\\item", " ")
            self._buffer.append(f"{_plain(term)} ")
            self._at = end
        elif name == "bibitem":
            self._other(name)

    def _verb(self, name: str) -> None:
        if name == "mintinline":
            self._skip(1)
        if found := _VERB.match(self._text, self._at, self._at + LONGEST_ARGUMENT):
            self._buffer.append(found[1] or found[3] or "")
            self._at = found.end()

    def _keys(self) -> None:
        """A reference or citation reads as its key in brackets."""
        self._optional()
        self._optional()
        start = self._at
        self._skip(1)
        if self._at > start:
            key = " ".join(self._text[start : self._at].strip(" \t{}").split())
            is_apart = not self._buffer or self._buffer[-1][-1:] in ("", " ", "(")
            self._buffer.append(f"[{key}]" if is_apart else f" [{key}]")

    def _definition(self, name: str) -> None:
        found = _DEFINITION.match(self._text, self._at)
        self._at = found.end() if found else self._at
        if name == "let":
            found = re.compile(r"=?[ \t]*\\?[A-Za-z@]*").match(self._text, self._at)
            self._at = found.end() if found else self._at
        else:
            self._skip(1)

    def _rule(self, name: str) -> None:
        table = self._table
        assert table is not None
        if name in ("cline", "cmidrule"):
            found = re.compile(r"(?:\[[^\]\n]*\])?(?:\([^)\n]*\))?").match(self._text, self._at)
            self._at = found.end() if found else self._at
            self._skip(1)
        elif len(table.rows) == 2 and not table.rows[1] and not "".join(self._buffer).strip():
            table.has_header = True

    def _accent(self, name: str) -> None:
        if found := _ACCENTED.match(self._text, self._at):
            self._at = found.end()
            self._buffer.append(unicodedata.normalize("NFC", (found[1] or found[2] or found[3]) + _ACCENTS[name]))

    def _symbol(self, symbol: str) -> None:
        if symbol in "([":
            closing = "\\)" if symbol == "(" else "\\]"
            inner = self._until(closing)
            self._buffer.append(f"\\{symbol}{inner}{closing}" if inner is not None else "")
        elif symbol == "\\":
            if self._text.startswith("*", self._at):
                self._at += 1
            if re.compile(r"\[[^\]\n]{0,20}\]").match(self._text, self._at):
                self._optional()
            if self._table is not None and not self._inner_tables and not self._captures:
                self._row()
            else:
                self._buffer.append(" ")
        elif symbol in _ACCENTS:
            self._accent(symbol)
        elif symbol in "-/@!)]":
            pass
        else:
            self._buffer.append(" " if symbol in " ,;:\n" else symbol)

    # Arguments

    def _spaces(self) -> None:
        while self._text.startswith((" ", "\t"), self._at):
            self._at += 1

    def _optional(self) -> None:
        """Pass over an optional argument."""
        if self._text.startswith("[", self._at) and (end := self._closing(self._at)):
            self._at = end

    def _skip(self, count: int) -> None:
        """Pass over arguments in braces, with optional ones between them."""
        for _ in range(count):
            self._optional()
            place = self._at
            self._spaces()
            end = self._closing(self._at) if self._text.startswith("{", self._at) else 0
            if not end:
                self._at = place
                return
            self._at = end
            if count > 1:
                self._optional()

    def _closing(self, place: int) -> int:
        """The place after the bracket or brace that closes the one at a place; 0 if it is missing or too far away."""
        if self._unclosed > MOST_UNCLOSED:
            return 0
        opening = self._text[place]
        closing = "]" if opening == "[" else "}"
        depth = braces = 0
        for found in _BRACKET.finditer(self._text, place, place + LONGEST_ARGUMENT):
            sign = found[0]
            if opening == "[" and sign in "{}":
                braces += 1 if sign == "{" else -1
            elif braces == 0 and sign == opening:
                depth += 1
            elif braces == 0 and sign == closing:
                depth -= 1
                if depth == 0:
                    return found.end()
        self._unclosed += 1
        return 0


def _plain(text: str) -> str:
    """The text of a short piece of LaTeX."""
    return " ".join(block.text for block in _Reader(text).blocks)
