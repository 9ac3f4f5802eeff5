"""Text files by the line: numbered lines in, whole files out; a name that ends in `.gz` is compressed."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from perikope.core.errors import InputError, UnreadableFile

Number = TypeVar("Number", int, float)

MAX_LINE = 1 << 26
"""Bytes a line may have: a small compressed file can hide a line that fills the memory."""

MAX_TEXT = 1 << 26
"""Characters of a file that is read as a whole."""

MAX_NUMBER = 1 << 53
"""Whole numbers beyond have no exact float, and no file of ours has a use for them."""


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    r"""The lines of a UTF-8 text file that are not blank, without their ends, counted from 1.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.txt")
    ...     _ = path.write_text("one\n\nthree\n", encoding="utf-8")
    ...     list(numbered_lines(path))
    [(1, 'one'), (3, 'three')]
    """
    return ((number, line) for number, line in _lines(Path(path)) if line.strip())


def whole_text(path: str | os.PathLike[str]) -> str:
    """All characters of a UTF-8 text file of bounded size; lines end in a line feed."""
    path = Path(path)
    lines: list[str] = []
    size = 0
    for number, line in _lines(path):
        size += len(line) + 1
        if size > MAX_TEXT:
            raise UnreadableFile(f"the file is longer than {MAX_TEXT} characters; split it", path=path, line=number)
        lines.append(line)
    return "\n".join(lines)


def beginning(path: str | os.PathLike[str], size: int = 1 << 16) -> bytes:
    """The first bytes of a file, unpacked, without the mark that some editors put there."""
    path = Path(path)
    with _reading(path) as file:
        return file.read(size).removeprefix(codecs.BOM_UTF8)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with _reading(path) as file:
        for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), start=1):
            yield number, _decode(raw, path, number)


def columns(line: str, names: str, path: object, number: int) -> list[str]:
    """The columns of a line, split at white space; `names` says which there must be.

    >>> columns("q1 0 d1#p1 2", "qid iteration name grade", "qrels", 1)
    ['q1', '0', 'd1#p1', '2']
    """
    found = line.split()
    expected = names.split()
    if len(found) != len(expected):
        raise InputError(f"expected {len(expected)} columns ({names}), found {len(found)}", path=path, line=number)
    return found


def number_in(text: str, convert: Callable[[str], Number], what: str, path: object, number: int) -> Number:
    """A column read by `int` or `float`, or an error that names the column."""
    kind = "a whole number" if convert is int else "a number"
    try:
        # Python's own numbers may have underscores; nobody else reads those.
        if "_" not in text:
            value = convert(text)
            if convert is int and abs(value) > MAX_NUMBER:
                raise InputError(f"{what} is too large: {text[:40]!r}", path=path, line=number)
            return value
    except ValueError:
        pass
    raise InputError(f"{what} must be {kind}, not {text[:40]!r}", path=path, line=number)


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """A file to read, unpacked; what the system or the archive says against it is our error."""
    try:
        with cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableFile(f"cannot read: {reason}", path=path) from error


def _decode(raw: bytes, path: Path, number: int) -> str:
    if len(raw) > MAX_LINE:
        raise UnreadableFile(f"the line is longer than {MAX_LINE} bytes", path=path, line=number)
    try:
        # The mark that some editors put in front of a file is no part of the first column.
        return raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"not UTF-8 text (byte {error.start + 1} of the line)", path=path, line=number) from error
