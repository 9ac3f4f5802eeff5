"""Source: one file to be read, and the folder walk that finds files; knows nothing of formats.

Input is hostile: only regular files are opened, links do not lead out of the folder, sizes are bounded.
"""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, cast

from perikope.document import Document, TreeBuilder
from perikope.errors import InputError, UnreadableFile

MAX_BYTES = 1 << 28
"""One document may be 256 MB, decompressed; offsets are 32 bits, and a small archive must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file with the id and language that its document gets unless the file says otherwise."""

    path: str
    id: str
    language: str = "en"
    format: str = "auto"
    named: bool = True
    """Given by itself rather than found in a folder: what is wrong with it is then an error."""

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes as a stream, decompressed where the name ends in `.gz`."""
        # Not to block on a pipe; looked at when open, because a name may have come to mean another file since.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(self.path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableFile("is not a regular file; copy its content into one", path=self.path)
            if self.path.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=file) as stream:
                    yield cast(IO[bytes], stream)
            else:
                yield file

    def data(self) -> bytes:
        """All bytes of a file that holds one document."""
        with self.open() as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UnreadableFile(f"is larger than {MAX_BYTES >> 20} MB; split it into several documents", path=self.path)
        return data

    def text(self) -> str:
        """All characters of a UTF-8 file, with or without a byte order mark; lines end in a line feed."""
        data = self.data()
        if b"\0" in data:
            raise UnreadableFile("is not text: it holds zero bytes; remove it or convert it to UTF-8 text", path=self.path)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UnreadableFile(f"is not UTF-8 text (byte {error.start}); convert it to UTF-8", path=self.path) from None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def finish(self, builder: TreeBuilder) -> Document:
        """Build the one document of this file; that it is empty makes the file unreadable."""
        try:
            return builder.build()
        except InputError as error:
            raise UnreadableFile(str(error), path=self.path) from None


@lru_cache(maxsize=1024)
def language_or_nothing(tag: str) -> str:
    """The code of a language tag found in a file; nothing where the tag is none, for such tags are often careless.

    >>> language_or_nothing("de-CH"), language_or_nothing("klingon")
    ('de', '')
    """
    # Imported here because it brings numpy along, which listing the formats does not need.
    from perikope.errors import UsageError
    from perikope.text import language_code

    try:
        return language_code(tag) if tag.strip() else ""
    except UsageError:
        return ""


def walk(folder: str, on_problem: Callable[[UnreadableFile], None]) -> Iterator[str]:
    """Paths of the regular files under a folder, relative to it, in sorted order; hidden ones are left out."""
    root = os.path.realpath(folder)
    # A stack rather than recursion: folders may nest deeper than Python's calls.
    waiting = [("", True)]
    while waiting:
        relative, is_folder = waiting.pop()
        if not is_folder:
            yield relative
            continue
        path = os.path.join(folder, relative)
        try:
            with os.scandir(path) as entries:
                visible = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
        except OSError as error:
            on_problem(unreadable(path, error))
            continue
        for entry in reversed(visible):
            inside = os.path.join(relative, entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append((inside, True))
            elif entry.is_file(follow_symlinks=False) or _is_file_inside(entry, root):
                waiting.append((inside, False))


def unreadable(path: str, error: BaseException) -> UnreadableFile:
    """What the operating system or a decompressor said about a file, as our error."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UnreadableFile(f"cannot be read ({reason}); check the file and its permissions", path=path)


def document_id(path: str) -> str:
    """A relative path as an id: with forward slashes, and writable as UTF-8 whatever bytes the name holds."""
    return os.fsencode(path.replace(os.sep, "/")).decode("utf-8", "backslashreplace")


def _is_file_inside(entry: os.DirEntry[str], root: str) -> bool:
    # Links to folders are never followed: what they show is met under its own name, and they can go in circles.
    if not entry.is_symlink():
        return False
    target = os.path.realpath(entry.path)
    return target.startswith(os.path.join(root, "")) and os.path.isfile(target)
