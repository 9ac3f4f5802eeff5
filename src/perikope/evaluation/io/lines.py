"""Reads text files line by line with line numbers. Files whose names end in `.gz` are decompressed."""

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
from perikope.core.reading import check_readable, size_in_words

Number = TypeVar("Number", int, float)

MAX_LINE = 1 << 26
"""Maximum length of a line in bytes. Without it, a line of a small compressed file could fill the memory."""

MAX_FILE = 1 << 30
"""Maximum size of a file of lines, in decompressed bytes. A run of 10,000 topics with 1,000 results has half of it."""

MAX_TEXT = 1 << 26
"""Maximum number of characters of a file that is read as a whole."""

MAX_NUMBER = 1 << 53
"""Largest whole number that files may contain. Not all larger numbers have an exact float."""


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    r"""Yield the number, from 1, and the text of each line of a UTF-8 file, without line ends and blank lines.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.txt")
    ...     _ = path.write_text("one\n\nthree\n", encoding="utf-8")
    ...     list(numbered_lines(path))
    [(1, 'one'), (3, 'three')]
    """
    return ((number, line) for number, line in _lines(Path(path)) if line.strip())


def whole_text(path: str | os.PathLike[str]) -> str:
    """Read the text of a UTF-8 file of at most `MAX_TEXT` characters. Line feeds separate its lines."""
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
    """The first `size` bytes of a file, decompressed, without a byte order mark."""
    path = Path(path)
    with _reading(path) as file:
        return file.read(size).removeprefix(codecs.BOM_UTF8)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    size = 0
    with _reading(path, pipes=True) as file:
        for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), start=1):
            size += len(raw)
            if size > MAX_FILE:
                raise UnreadableFile(f"the file is longer than {size_in_words(MAX_FILE)}; split it", path=path, line=number)
            yield number, _decode(raw, path, number)


def columns(line: str, names: str, path: object, number: int) -> list[str]:
    """Split a line at white space into columns. Raises an `InputError` if there are not as many columns as `names`.

    >>> columns("q1 0 d1#p1 2", "qid iteration name grade", "qrels", 1)
    ['q1', '0', 'd1#p1', '2']
    """
    cells = line.split()
    expected = names.split()
    if len(cells) != len(expected):
        raise InputError(f"expected {len(expected)} columns ({names}), found {len(cells)}", path=path, line=number)
    return cells


def number_in(text: str, convert: Callable[[str], Number], what: str, path: object, number: int) -> Number:
    """Convert the text of a column by `int` or `float`. `what` names the column in error messages."""
    kind = "a whole number" if convert is int else "a number"
    try:
        # Python accepts underscores in numbers; other programs do not.
        if "_" not in text:
            value = convert(text)
            if convert is int and abs(value) > MAX_NUMBER:
                raise InputError(f"{what} is too large: {text[:40]!r}", path=path, line=number)
            return value
    except ValueError:
        pass
    raise InputError(f"{what} must be {kind}, not {text[:40]!r}", path=path, line=number)


@contextmanager
def _reading(path: Path, *, pipes: bool = False) -> Iterator[BinaryIO]:
    """Open a file to read its decompressed bytes. Errors of the system and of gzip become `UnreadableFile`.

    `pipes` is whether the file may be a pipe, which can be read only once.
    """
    try:
        check_readable(path, MAX_FILE, pipes=pipes)
        with cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableFile(f"cannot read: {reason}", path=path) from error


def _decode(raw: bytes, path: Path, number: int) -> str:
    if len(raw) > MAX_LINE:
        raise UnreadableFile(f"the line is longer than {MAX_LINE} bytes; split it", path=path, line=number)
    try:
        # A byte order mark at the start of a file is not part of the first column.
        return raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"not UTF-8 text (byte {error.start + 1} of the line); convert the file", path=path, line=number) from error
