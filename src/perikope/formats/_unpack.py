"""Unpacking of compressed files as streams. A limit is checked while reading, because headers may be false."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, cast

from perikope.core.errors import UnreadableFile

MAX_RATIO = 200
"""The most unpacked bytes per packed byte. Text has 3 to 30, tables of zeros have 100, hostile files over 1000."""

FREE_BYTES = 10 << 20
"""Bytes that may be unpacked whatever the ratio: 10 MB do no harm, and short files of blanks have high ratios."""

DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
"""Errors that the operating system and the decompressors raise for a file that cannot be read to its end."""

_BUFFER = 1 << 17


class Bound:
    """The limit on the unpacked bytes of a packed file: `MAX_RATIO` times its packed bytes.

    The limit is a ratio and not a size, because a harmless archive may have any size. `packed` returns the number of
    packed bytes; `parent` is the limit of the archive around the file.
    """

    __slots__ = ("_packed", "_parent", "_path", "_spent", "_unpacked")

    def __init__(self, path: str, packed: Callable[[], int], parent: Bound | None = None) -> None:
        self._path = path
        self._packed = packed
        # Unpacked bytes are also counted for the archive around, because hostile files are packed several times.
        self._parent = parent
        self._unpacked = 0
        self._spent = False

    @property
    def spent(self) -> bool:
        """Whether this limit, or the limit of an archive that contains the file, was exceeded.

        If so, nothing more can be read.
        """
        return self._spent or (self._parent is not None and self._parent.spent)

    def spend(self, count: int) -> None:
        """Count unpacked bytes, and raise `UnreadableFile` if the limit is exceeded."""
        self._unpacked += count
        if self._unpacked > FREE_BYTES and self._unpacked > MAX_RATIO * self._packed():
            self._spent = True
            raise UnreadableFile(
                f"unpacks to more than {MAX_RATIO} times its size, as hostile files do; if you trust it, unpack it first",
                path=self._path,
            )
        if self._parent is not None:
            self._parent.spend(count)


class BoundedStream(io.BufferedReader):
    """A stream that counts the bytes read from it against a limit."""

    def __init__(self, stream: IO[bytes], bound: Bound) -> None:
        super().__init__(_BoundedStream(stream, bound), _BUFFER)
        self.bound = bound


class _BoundedStream(io.RawIOBase):
    def __init__(self, stream: IO[bytes], bound: Bound) -> None:
        self._stream = cast(io.BufferedReader, stream)
        self._bound = bound
        self._count = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._count

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        # At most one buffer is read, however much is requested, so that little is unpacked before it is counted.
        data = self._stream.read1(min(len(buffer), _BUFFER))
        buffer[: len(data)] = data
        self._count += len(data)
        self._bound.spend(len(data))
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


_DECOMPRESSORS: dict[str, Callable[..., object]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def unpacked(stream: IO[bytes], path: str, suffix: str = "") -> IO[bytes]:
    """Return a stream of the unpacked bytes if the suffix is `.gz`, `.bz2` or `.xz`, else `stream` itself.

    By default the suffix is that of `path`.
    """
    decompress = _DECOMPRESSORS.get(suffix or path[len(stem(path)) :].lower())
    if decompress is None:
        return stream
    return BoundedStream(
        cast(IO[bytes], decompress(stream)), Bound(path, stream.tell, stream.bound if isinstance(stream, BoundedStream) else None)
    )


def is_packed(path: str) -> bool:
    """Whether the name of a file ends in `.gz`, `.bz2` or `.xz`."""
    return len(stem(path)) < len(path)


def verify_packed(stream: IO[bytes], path: str) -> None:
    """Unpack a stream to its end, which verifies its checksum; raises one of `DAMAGE` if it is wrong."""
    unpacked_stream = unpacked(stream, path)
    while unpacked_stream.read(_BUFFER):
        pass


def read_up_to(stream: IO[bytes], count: int) -> bytes:
    """Read `count` bytes of a stream, or fewer if it ends before.

    The bytes are read in pieces, because `stream.read(count)` may allocate `count` bytes at once.
    """
    pieces = []
    while count > 0 and (piece := stream.read(min(count, _BUFFER))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def stem(path: str) -> str:
    """A path without the suffix `.gz`, `.bz2` or `.xz`.

    >>> stem("a/notes.md.gz"), stem("a/notes.md")
    ('a/notes.md', 'a/notes.md')
    """
    suffix = next((suffix for suffix in _DECOMPRESSORS if path.lower().endswith(suffix)), "")
    return path[: len(path) - len(suffix)]
