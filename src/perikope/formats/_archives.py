"""Archives: reads the files in a `.zip` or `.tar` one after the other, as streams, without writing to disk.

A tar is read from beginning to end, so that it can come from a decompressor. A zip is read in the order of its
directory. Archives may be hostile: this module checks names, sizes and nesting, and `Bound` limits the unpacked bytes.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import IO

from perikope.core.errors import UnreadableFile
from perikope.core.reading import open_regular
from perikope.formats._source import MAX_BYTES, document_id, unreadable
from perikope.formats._unpack import DAMAGE, Bound, BoundedStream, read_up_to, stem, unpacked

MAX_NESTING = 2
"""The deepest nesting of archives in archives. Collections of weekly deliveries have two levels, hostile ones more."""

MAX_HEADER = 1 << 20
"""The largest header in a tar, in bytes. Headers are held in memory; real ones have a few thousand bytes."""

KINDS = ("tar", "zip")

_SHORT = {".tgz": ".gz", ".tbz2": ".bz2", ".txz": ".xz"}
# `DAMAGE`, and errors that Python's tarfile raises for wrong numbers and names in the header of a tar.
_DAMAGE = (*DAMAGE, ValueError, OverflowError, IndexError, NotImplementedError, RecursionError)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive, with a stream that can be read until the next member is taken."""

    path: str
    """Path of the archive, a slash, and the name of the member; for messages."""
    id: str
    """Default id of the member's document: id of the archive, a slash, and the name of the member."""
    format: str
    stream: BoundedStream


def archive_kind(path: str) -> str:
    """The kind of archive, `tar` or `zip`, by the file name; empty if the file is no archive.

    >>> archive_kind("a.tar.gz"), archive_kind("b.tgz"), archive_kind("c.zip"), archive_kind("d.md.gz")
    ('tar', 'tar', 'zip', '')
    """
    name = path.lower()
    if name.endswith(".zip"):
        return "zip"
    return "tar" if stem(name).endswith(".tar") or name.endswith(tuple(_SHORT)) else ""


def members(
    path: str,
    id: str,
    kind: str,
    *,
    format_of: Callable[[str], str],
    on_problem: Callable[[UnreadableFile], None],
    on_ignored: Callable[[str], None],
) -> Iterator[Member]:
    """Yield the files in an archive, and in archives inside it, for which `format_of` returns a format.

    `format_of` gets the name of a member and returns its format, or "" to ignore it. `on_ignored` is called with the
    path of each ignored member, `on_problem` with the error for each member that cannot be read. If the outermost
    archive cannot be read, the error is raised.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            yield from _Reading(format_of, on_problem, on_ignored).archive(file, path, id, kind, Bound(path, lambda: size), 1)
    except OSError as error:
        raise unreadable(path, error) from error


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member as the directory or header of an archive describes it."""

    name: str
    refusal: str
    """The reason why the member is not read; empty if it is read."""
    open: Callable[[], IO[bytes] | None]
    packed: int | None = None
    """Size of the packed member in bytes; None in a tar, whose members are not packed one by one."""


@dataclass(frozen=True, slots=True)
class _Reading:
    format_of: Callable[[str], str]
    on_problem: Callable[[UnreadableFile], None]
    on_ignored: Callable[[str], None]

    def archive(self, stream: IO[bytes], path: str, id: str, kind: str, bound: Bound, depth: int) -> Iterator[Member]:
        if kind == "tar":
            stream = unpacked(stream, path, next((suffix for short, suffix in _SHORT.items() if path.lower().endswith(short)), ""))
        entries = _zip_entries if kind == "zip" else _tar_entries
        try:
            for entry in entries(stream, path):
                yield from self.member(entry, path, id, bound, depth)
                if bound.spent or (isinstance(stream, BoundedStream) and stream.bound.spent):
                    return  # the last member has reported the exceeded limit; all further members would report the same
        except _DAMAGE as error:
            raise unreadable(path, error) from error

    def member(self, entry: _Entry, path: str, id: str, bound: Bound, depth: int) -> Iterator[Member]:
        # Some Windows programs write backslashes between folders.
        parts = [part for part in entry.name.replace("\\", "/").split("/") if part not in ("", ".")]
        name = "/".join(parts)
        if any(part.startswith(".") and part != ".." for part in parts):
            return
        format = self.format_of(name)
        if not format:
            self.on_ignored(f"{path}/{name}")
            return
        path, id = f"{path}/{name}", f"{id}/{document_id(name)}"
        try:
            refusal = "has a name that leads out of the archive; pack it without '..'" if ".." in parts else entry.refusal
            if not refusal and format in KINDS and depth == MAX_NESTING:
                refusal = f"archives are nested deeper than {MAX_NESTING}; unpack the outer one first"
            if refusal:
                raise UnreadableFile(refusal, path=path)
            with closing(_opened(entry, path, bound)) as stream:
                if format in KINDS:
                    yield from self.archive(stream, path, id, format, stream.bound, depth + 1)
                else:
                    yield Member(path, id, format, stream)
        except UnreadableFile as problem:
            self.on_problem(problem)


def _opened(entry: _Entry, path: str, bound: Bound) -> BoundedStream:
    try:
        stream = entry.open()
    except _DAMAGE as error:
        raise unreadable(path, error) from error
    if stream is None:
        raise UnreadableFile("is not a regular file; pack the file itself", path=path)
    packed = entry.packed
    return BoundedStream(stream, bound if packed is None else Bound(path, lambda: packed, bound))


def _zip_entries(stream: IO[bytes], path: str) -> Iterator[_Entry]:
    if not stream.seekable():
        # The directory is at the end of a zip, so a zip inside an archive must be read into memory.
        data = read_up_to(stream, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UnreadableFile(f"is an archive of more than {MAX_BYTES >> 20} MB inside another; unpack the outer one first", path=path)
        stream = io.BytesIO(data)
    size = stream.seek(0, os.SEEK_END)
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                # A false header must not claim a packed size larger than the whole file.
                yield _Entry(info.filename, zip_refusal(info), partial(archive.open, info), min(info.compress_size, size))


def zip_refusal(info: zipfile.ZipInfo) -> str:
    """The reason why a member of a zip is not read; empty if it is read."""
    if info.flag_bits & 1:
        return "is encrypted; decrypt the archive first"
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        return "is not a regular file; pack the file itself"
    # For other methods, Python does not limit the number of bytes that one read unpacks.
    return "" if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) else "is packed by a rare method; pack it with deflate"


def _tar_entries(stream: IO[bytes], path: str) -> Iterator[_Entry]:
    onward = _Onward(stream, path)
    with tarfile.TarFile(fileobj=onward, encoding="utf-8") as archive:
        info = archive.next()
        while info is not None:
            if not info.isdir():
                refusal = "" if info.isreg() else "is a link or a device; pack the file itself"
                yield _Entry(info.name, refusal, partial(archive.extractfile, info))
            info = _next(archive, onward, path)
        _check_end(onward, path)


def _check_end(onward: _Onward, path: str) -> None:
    """Read what follows the mark at the end of a tar, and raise an error unless it is the usual padding.

    A block that was lost, as after a power failure, holds zeros, and so does the mark. Then other members follow, or
    more zeros than any program writes. Reading to the end also verifies the checksum of a packed tar.
    """
    zeros = len(onward.last)
    while piece := onward.read(MAX_HEADER):
        zeros += len(piece)
        if zeros > tarfile.RECORDSIZE + tarfile.BLOCKSIZE or piece.strip(b"\0"):
            raise UnreadableFile("has zeros where a member should be: the rest cannot be read; replace the archive", path=path)


def _next(archive: tarfile.TarFile, onward: _Onward, path: str) -> tarfile.TarInfo | None:
    # `archive.next` is not used: it keeps every member in memory, and treats a damaged header as the end.
    onward.seek(archive.offset)
    try:
        return tarfile.TarInfo.fromtarfile(archive)
    except tarfile.HeaderError as error:
        if onward.last == bytes(tarfile.BLOCKSIZE):
            return None
        raise UnreadableFile(f"is cut off or damaged ({error}): the rest cannot be read; replace the archive", path=path) from None


class _Onward(io.RawIOBase):
    """Makes a stream that can only be read from beginning to end usable as a file for tarfile."""

    def __init__(self, stream: IO[bytes], path: str) -> None:
        self._stream = stream
        self._path = path
        self._position = 0
        self.last = b""

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        # Members are read in small pieces. So a large read is a header, which tarfile would hold in memory as a whole.
        if not 0 <= size <= MAX_HEADER:
            raise UnreadableFile(
                f"holds a header of more than {MAX_HEADER >> 20} MB: it is damaged or not a tar; replace it", path=self._path
            )
        self.last = self._stream.read(size)
        self._position += len(self.last)
        return self.last

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        if position < self._position:
            raise UnreadableFile("holds a member of negative size: it is damaged or not a tar; replace it", path=self._path)
        while self._position < position and self.read(min(position - self._position, MAX_HEADER)):
            pass
        return self._position
