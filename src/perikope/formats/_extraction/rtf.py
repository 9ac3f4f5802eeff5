"""Rich Text Format: the paragraphs and tables of an RTF file become blocks.

Headings are stated by styles or outline levels; in a file without them, short bold paragraphs are headings. Notes and
text boxes follow the paragraph that holds them. Hidden and deleted text, comments, headers and footers of pages,
tables of contents, pictures, and the codes of fields are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from perikope.formats._extraction.blocks import Extracted, FileBlock, Unreadable
from perikope.formats._extraction.package import described, finished, people
from perikope.formats._extraction.rtf_flow import Flow, Paragraph, Style
from perikope.formats._extraction.rtf_text import codec_of_charset, codec_of_page, decoded, tokens
from perikope.formats._extraction.symbols import symbol

MOST_GROUPS = 20_000
"""The deepest nesting of groups."""

_CHARACTERS = {
    "tab": "\t", "line": "\n", "lbr": "\n", "page": " ", "column": " ", "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ",
    "qmspace": " ", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "zwj": "\u200d", "zwnj": "\u200c",
}  # fmt: skip
_SIGNS = {"~": "\xa0", "_": "-", "\\": "\\", "{": "{", "}": "}", "\t": "\t"}
_LEFT_OUT = frozenset((
    "colortbl", "filetbl", "pict", "nonshppict", "shprslt", "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr",
    "footerf", "fldinst", "objdata", "objclass", "objname", "xe", "tc", "tcn", "rxe", "txe", "listtext", "pntext", "nonesttables",
    "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "sp", "mmathPict", "template", "nextfile", "private",
))  # fmt: skip
"""Groups that hold no text of the file. So do all that are marked as those that a program may leave out, but a few."""
_STARRED = frozenset(("shpinst", "do", "ud", "moMath", "moMathPara", "nesttableprops", "shptxt", "fldrslt", "footnote"))
_PUT_OFF = frozenset(("footnote", "shptxt", "dptxbxtext"))
_PROPERTIES = ("title", "author", "subject", "keywords")
_DATES = ("creatim", "revtim")
_MATH_PROPERTIES = re.compile(r"m\w*Pr")


def read_rtf(data: bytes) -> Extracted:
    """The blocks of an RTF file."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise Unreadable("is no RTF file; open it in its program and save it again")
    reader = _RtfReader()
    blocks = reader.read(data)
    stated = {name: " ".join("".join(texts).split()) for name, texts in reader.properties.items()}
    metadata = described(
        {
            "author": people(stated.get("author", "")),
            "subject": stated.get("subject"),
            "keywords": [word for part in re.split(r"[,;]", stated.get("keywords", "")) if (word := part.strip())],
            "date": reader.date("creatim"),
            "modified": reader.date("revtim"),
        }
    )
    title, blocks = finished(stated.get("title", ""), blocks)
    return Extracted(blocks, title, "", metadata)


@dataclass(slots=True)
class _RtfState:
    """What holds until the end of a group."""

    mode: str = ""
    """Where text goes: empty for the text of the file, `skip` for nowhere, or the name of a table or a property."""
    font: int | None = None
    after_unicode: int = 1
    """The number of characters after one that is given as Unicode, which repeat it for old programs."""
    is_hidden: bool = False
    is_bold: bool = False


@dataclass(slots=True)
class _Font:
    codec: str = ""
    name: str = ""
    has_symbols: bool = False


class _RtfReader:
    """Turns tokens into blocks."""

    def __init__(self) -> None:
        self.properties: dict[str, list[str]] = {}
        self._dates: dict[str, dict[str, int]] = {name: {} for name in _DATES}
        self._codec = "cp1252"
        self._fonts: dict[int, _Font] = {}
        self._default_font = 0
        self._styles: dict[int, Style] = {}
        self._style = Style()
        self._sheet = 0
        self._state, self._outer = _RtfState(), list[_RtfState]()
        self._flows = [Flow(self._styles)]
        self._bytes, self._units = bytearray(), list[int]()
        self._skip = 0
        self._is_first = self._is_starred = False

    def read(self, data: bytes) -> list[FileBlock]:
        """All blocks of a file."""
        for kind, text, value in tokens(data):
            if kind == "bytes":
                self._add_bytes(text)
            elif self._skip and (kind == "symbol" or text in _CHARACTERS):
                self._skip -= 1
            else:
                self._flush_bytes()
                if kind != "word" or text != "u":
                    self._flush_units()
                if kind == "{":
                    self._open()
                elif kind == "}":
                    if not self._outer:
                        break
                    self._close()
                elif kind == "symbol":
                    self._symbol(text)
                else:
                    self._word(text, value)
        self._flush_bytes()
        self._flush_units()
        while len(self._flows) > 1:
            self._end_flow()
        return self._flows[0].end()

    def date(self, name: str) -> str:
        """A date of the file: `creatim` or `revtim`; empty if it has none."""
        stated = self._dates[name]
        return f"{stated['yr']:04}-{stated.get('mo', 1):02}-{stated.get('dy', 1):02}" if stated.get("yr") else ""

    # Bytes become text, and text goes where the state says.

    def _add_bytes(self, text: str) -> None:
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        if text[skipped:]:
            self._flush_units()
            self._is_first = self._is_starred = False
            if self._state.mode != "skip":
                self._bytes += text[skipped:].encode("latin-1")

    def _flush_bytes(self) -> None:
        if self._bytes:
            data, self._bytes = bytes(self._bytes), bytearray()
            font = self._fonts.get(self._default_font if self._state.font is None else self._state.font, _Font())
            if font.has_symbols and not self._state.mode:
                self._text("".join(chr(byte) if byte == 32 else symbol(byte, font.name) for byte in data))
            else:
                self._text(decoded(data, font.codec or self._codec))

    def _flush_units(self) -> None:
        if self._units:
            units, self._units = self._units, []
            if len(units) == 1 and 0xF000 <= units[0] <= 0xF0FF:
                font = self._fonts.get(self._default_font if self._state.font is None else self._state.font, _Font())
                self._text(symbol(units[0], font.name))
            else:
                self._text(b"".join(unit.to_bytes(2, "little") for unit in units).decode("utf-16-le", "ignore"))

    def _text(self, text: str) -> None:
        mode = self._state.mode
        if not mode:
            if not self._state.is_hidden:
                self._flows[-1].add(text, self._state.is_bold)
        elif mode == "fonttbl":
            font = self._fonts.setdefault(self._state.font or 0, _Font())
            font.name += text.partition(";")[0]
        elif mode == "stylesheet":
            self._style.name += text.partition(";")[0].strip()
        elif mode in _PROPERTIES:
            self.properties.setdefault(mode, []).append(text)

    # Groups

    def _open(self) -> None:
        if len(self._outer) >= MOST_GROUPS:
            raise Unreadable("is nested too deeply to be read; flatten it")
        self._outer.append(self._state)
        self._state = replace(self._state)
        self._is_first, self._is_starred, self._skip = True, False, 0
        if self._state.mode == "stylesheet" and len(self._outer) == self._sheet + 1:
            self._style = Style()

    def _close(self) -> None:
        self._state = self._outer.pop()
        self._is_first, self._is_starred, self._skip = False, False, 0
        if self._flows[-1].depth > len(self._outer):
            self._end_flow()

    def _end_flow(self) -> None:
        ended = self._flows.pop()
        self._flows[-1].put_off(ended.end())

    def _destination(self, word: str, is_starred: bool) -> bool:
        """Begin a group whose first word is `word`; whether nothing else is to be done with the word."""
        state = self._state
        if word == "upr":
            # The group has its text twice; the second time, in `ud`, in Unicode.
            state.mode = "upr"
        elif word == "ud":
            state.mode = self._outer[-2].mode if len(self._outer) > 1 else ""
        elif word in _LEFT_OUT or (is_starred and word not in _STARRED) or _MATH_PROPERTIES.fullmatch(word):
            state.mode = "skip"
            self._flows[-1].paragraph.in_list |= word in ("listtext", "pntext")
        elif word in ("fonttbl", "stylesheet", "info"):
            state.mode = word
            self._sheet = len(self._outer)
        elif state.mode == "info":
            state.mode = word if word in (*_PROPERTIES, *_DATES) else "skip"
        elif word in _PUT_OFF and not state.mode:
            self._flows.append(Flow(self._styles, len(self._outer)))
        else:
            return False
        return True

    # Words and signs

    def _symbol(self, text: str) -> None:
        if text == "*":
            self._is_starred = True
            return
        self._is_first = self._is_starred = False
        if self._state.mode != "skip":
            if text in "\r\n":
                self._flows[-1].end_paragraph()
            elif text in _SIGNS:
                self._text(_SIGNS[text])

    def _word(self, word: str, value: int | None) -> None:
        is_first, is_starred = self._is_first, self._is_starred
        self._is_first = self._is_starred = False
        if self._state.mode == "skip" or (is_first and self._destination(word, is_starred)):
            return
        if word == "u":
            self._units.append((value or 0) & 0xFFFF)
            self._skip = self._state.after_unicode
        elif word in _CHARACTERS:
            self._text(_CHARACTERS[word])
        elif word in _STATE_WORDS:
            _STATE_WORDS[word](self, 1 if value is None else value)
        elif self._state.mode in _DATES:
            self._dates[self._state.mode][word] = min(max(value or 0, 0), 9999)
        elif self._state.mode == "stylesheet":
            self._style_word(word, value or 0)
        elif not self._state.mode and word in _FLOW_WORDS:
            _FLOW_WORDS[word](self._flows[-1], 1 if value is None else value)

    def _style_word(self, word: str, value: int) -> None:
        if word == "s":
            self._styles[value] = self._style
        elif word == "outlinelevel":
            self._style.outline = value
        elif word == "sbasedon":
            self._style.parent = value

    def set_page(self, value: int) -> None:
        """The code page of the file; of a font, inside the table of fonts."""
        codec = codec_of_page(value)
        if codec and self._state.mode == "fonttbl":
            self._fonts.setdefault(self._state.font or 0, _Font()).codec = codec
        elif codec:
            self._codec = codec

    def set_default_font(self, value: int) -> None:
        """The font of text without a stated font."""
        self._default_font = value

    def set_font(self, value: int) -> None:
        """The font of the text that follows."""
        self._state.font = value
        if self._state.mode == "fonttbl":
            self._fonts[value] = _Font()

    def set_charset(self, value: int) -> None:
        """The charset of the font in the table of fonts."""
        font = self._fonts.setdefault(self._state.font or 0, _Font())
        font.codec, font.has_symbols = codec_of_charset(value), value == 2

    def set_bold(self, value: int) -> None:
        """Whether text is bold."""
        self._state.is_bold = value != 0

    def set_hidden(self, value: int) -> None:
        """Whether text is hidden or deleted."""
        self._state.is_hidden = value != 0

    def set_plain(self, _: int) -> None:
        """Text is as the file states it, without changes."""
        self._state.is_bold = self._state.is_hidden = False
        self._state.font = None

    def set_after_unicode(self, value: int) -> None:
        """The number of characters that repeat one that is given as Unicode."""
        self._state.after_unicode = min(max(value, 0), 16)


_STATE_WORDS: dict[str, Callable[[_RtfReader, int], None]] = {
    "ansicpg": _RtfReader.set_page,
    "cpg": _RtfReader.set_page,
    "mac": lambda reader, _: reader.set_page(10000),
    "pc": lambda reader, _: reader.set_page(437),
    "pca": lambda reader, _: reader.set_page(850),
    "deff": _RtfReader.set_default_font,
    "f": _RtfReader.set_font,
    "fcharset": _RtfReader.set_charset,
    "b": _RtfReader.set_bold,
    "v": _RtfReader.set_hidden,
    "deleted": _RtfReader.set_hidden,
    "plain": _RtfReader.set_plain,
    "uc": _RtfReader.set_after_unicode,
}
"""What words change for the text that follows; the number after a word is 1 if there is none."""


def _set_back(flow: Flow, _: int) -> None:
    flow.paragraph = Paragraph()


def _set_style(flow: Flow, value: int) -> None:
    flow.paragraph.style = value


def _set_outline(flow: Flow, value: int) -> None:
    flow.paragraph.outline = value


def _set_list(flow: Flow, value: int) -> None:
    flow.paragraph.in_list = value > 0


def _set_depth(flow: Flow, value: int) -> None:
    flow.paragraph.depth = max(value, 0)


_FLOW_WORDS: dict[str, Callable[[Flow, int], None]] = {
    "par": lambda flow, _: flow.end_paragraph(),
    "sect": lambda flow, _: flow.end_paragraph(),
    "pard": _set_back,
    "s": _set_style,
    "outlinelevel": _set_outline,
    "ls": _set_list,
    "intbl": lambda flow, value: _set_depth(flow, max(flow.paragraph.depth, value)),
    "itap": _set_depth,
    "trowd": lambda flow, _: flow.begin_row(),
    "trhdr": lambda flow, _: flow.header_row(),
    "clmrg": lambda flow, _: flow.merge("left"),
    "clvmrg": lambda flow, _: flow.merge("up"),
    "cellx": lambda flow, _: flow.define_cell(),
    "cell": lambda flow, _: flow.end_cell(1),
    "nestcell": lambda flow, _: flow.end_cell(max(flow.paragraph.depth, 2)),
    "row": lambda flow, _: flow.end_row(1),
    "nestrow": lambda flow, _: flow.end_row(max(flow.paragraph.depth, 2)),
}
"""What words do to the paragraph or the table."""
