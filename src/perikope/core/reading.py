"""Reads files that a user names or that the program has saved, within stated limits.

A device may never end, and a pipe may never deliver anything. So a file that is read as a whole must be a regular file
of at most a given size, and neither is read to find this out.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from perikope.core.checked_json import parse_json, parse_object
from perikope.core.errors import InputError, UnreadableFile

MAX_SAVED = 1 << 28
"""The largest file that the program saves and reads as a whole, in bytes, such as the manifest of an index."""


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file on disk as a stream of its bytes; pipes, devices and folders are refused."""
    # O_NONBLOCK: opening a pipe must not block. The type of the open file is checked, not that of the path, because the
    # path may be replaced in between.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    # `os.fdopen` would import a module, which fails while the interpreter shuts down and a forgotten writer is closed.
    with open(os.open(possible_path(path), flags), "rb", 1 << 16) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise not_regular(path)
        yield file


def possible_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path itself. If no file can have this name, raises the error that the system has for a file that is missing.

    Python raises other errors for names with NUL or with characters that cannot be encoded.
    """
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return path


def not_regular(path: str | os.PathLike[str]) -> UnreadableFile:
    """The error for a pipe, a device or a folder in place of a regular file."""
    return UnreadableFile("is not a regular file; copy its content into one", path=path)


def check_readable(path: str | os.PathLike[str], limit: int, *, pipes: bool = False) -> None:
    """Raise `UnreadableFile` if a file to be read in pieces is a device, or larger than `limit` bytes.

    A pipe is refused too, unless `pipes` allows it. Errors of the operating system are raised as they are.
    """
    status = os.stat(possible_path(path))
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not (stat.S_ISREG(status.st_mode) or (pipes and stat.S_ISFIFO(status.st_mode))):
        raise not_regular(path)
    if status.st_size > limit:
        raise UnreadableFile(f"is larger than {size_in_words(limit)}; split it", path=path)


def read_limited(path: str | os.PathLike[str], limit: int, what: str = "such a file") -> bytes:
    """The bytes of a regular file of at most `limit` bytes; `what` names the kind of file in errors ("a recipe").

    Another file raises `UnreadableFile`. Errors of the operating system are raised as they are.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # Python allocates as many bytes as are asked for. The file may grow meanwhile, so its end is checked too.
        data = file.read(size + 1) if size <= limit else b""
        if len(data) > size:
            data += file.read(limit + 1 - len(data))
    if max(size, len(data)) > limit:
        raise UnreadableFile(f"is too large for {what}: the limit is {size_in_words(limit)}", path=path)
    return data


def read_limited_text(path: str | os.PathLike[str], limit: int, what: str, advice: str = "check the path") -> str:
    """The text of a UTF-8 file of at most `limit` bytes, without byte order mark; raises `InputError` if it is not so.

    `what` names the kind of file, with its article, such as "a recipe". `advice` says what to do if it is not there.
    """
    try:
        data = read_limited(path, limit, what)
    except OSError as error:
        raise InputError(f"cannot read the {what.partition(' ')[2]}: {error.strerror or error}; {advice}", path=path) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text; save it as UTF-8", path=path, line=data.count(b"\n", 0, error.start) + 1) from None


def read_saved(path: str | os.PathLike[str]) -> Any:
    """The value in a JSON file that the program has saved, of at most `MAX_SAVED` bytes.

    Raises `OSError` or `ValueError` if the file cannot be read or holds no JSON, and `UnreadableFile` if it is no
    regular file or too large.
    """
    return parse_json(read_limited(path, MAX_SAVED))


def read_saved_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object in a JSON file that the program has saved; see `read_saved`. Another value raises a `ValueError`."""
    return parse_object(read_limited(path, MAX_SAVED))


def size_in_words(size: int) -> str:
    """A number of bytes as text.

    >>> size_in_words(1 << 20), size_in_words(3 << 30), size_in_words(40)
    ('1 MB', '3 GB', '40 bytes')
    """
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} bytes"
