"""The bytes of an RTF file as a stream of tokens, and the code pages in which its texts are written."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache

Token = tuple[str, str, int | None]
"""What a token is (`{`, `}`, `word`, `symbol`, `bytes`), its text (bytes as Latin-1), and the number after a word."""

_TOKEN = re.compile(
    rb"(?P<group>[{}])"
    rb"|\\(?P<word>[A-Za-z]{1,40})(?P<number>-?\d{1,10})?(?: |\r\n|\n)?"
    rb"|\\'(?P<hex>[0-9A-Fa-f]{2})"
    rb"|\\(?P<symbol>[^A-Za-z])"
    rb"|(?P<text>[^{}\\\r\n]+)"
)
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 255: "cp437",
}  # fmt: skip
"""The code page of each charset that a font may state."""


def tokens(data: bytes) -> Iterator[Token]:
    """The tokens of a file. The bytes that `\\bin` announces are left out."""
    position = 0
    while (found := _TOKEN.search(data, position)) is not None:
        position = found.end()
        kind = found.lastgroup
        if kind == "group":
            yield found[0].decode(), "", None
        elif kind == "hex":
            yield "bytes", bytes.fromhex(found["hex"].decode()).decode("latin-1"), None
        elif kind == "text":
            yield "bytes", found["text"].decode("latin-1"), None
        elif kind == "symbol":
            yield "symbol", found["symbol"].decode("latin-1"), None
        else:
            number = found["number"]
            value = None if number is None else int(number)
            if found["word"] == b"bin" and value is not None:
                # The bytes begin after one space, which the expression has taken.
                position += max(value, 0)
            yield "word", found["word"].decode(), value


def codec_of_charset(charset: int) -> str:
    """The codec of a charset; empty if texts in it have the code page of the file."""
    return _CHARSETS.get(charset, "")


@lru_cache(maxsize=64)
def codec_of_page(page: int) -> str:
    """The codec of the code page with a number; empty if Python has none."""
    name = {10000: "mac_roman", 65001: "utf-8", 437: "cp437", 708: "iso8859_6"}.get(page, f"cp{page}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""


def decoded(data: bytes, codec: str) -> str:
    """Bytes as text. What is no character of the code page is read as Windows does, as Latin-1."""
    if data.isascii():
        return data.decode("ascii")
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        if codec in ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1257", "cp1258", "cp874"):
            # Bytes that are no character of this code page are controls.
            return "".join(bytes((one,)).decode(codec, "ignore") for one in data)
        return data.decode(codec, "replace")
