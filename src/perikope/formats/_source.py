"""Source: one file, or one member of an archive, as bytes or text. This module does not depend on formats.

Input may be hostile: only regular files are opened, and sizes are limited.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import IO

from perikope.core.errors import InputError, UnreadableFile, UsageError
from perikope.core.file_limits import FILE_LIMITS, FileLimits
from perikope.core.reading import open_regular
from perikope.document.tree import Document, TreeBuilder
from perikope.formats._unpack import DAMAGE, BoundedStream, read_up_to, unpacked, verify_packed
from perikope.text.languages import is_language, language_code

MAX_BYTES = 1 << 28
"""The largest document, in unpacked bytes: 256 MB. Offsets have 32 bits, and a small archive must not fill memory."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, with the default id and the default language of its document.

    A member of an archive is a source, too. It has an open stream, which can be read once, before the next source is
    taken. It cannot be pickled, but the result of `carried` can. All other sources are portable.
    """

    path: str
    """The path for messages; for a member of an archive, the path of the archive, a slash and the member's name."""
    id: str
    language: str = "en"
    format: str = "auto"
    named: bool = True
    """Whether the user named the file itself (not its folder or archive); then failing to read it is an error."""
    source: str = ""
    """The default id of the file on disk; for a member of an archive, the id of the archive."""
    source_hash: str = ""
    """The `file_hash` of the file on disk; empty if hashes were not requested."""
    first_line: int = 0
    """The number of the first line, for a piece of a file; 0 for a whole file."""
    limits: FileLimits = FILE_LIMITS
    """How much time and memory a format may take that is read in a process of its own."""
    content: bytes | BoundedStream | None = field(default=None, repr=False, compare=False)
    """None for the file at `path`; else its unpacked bytes, or the stream of a member, packed if its name says so."""

    @property
    def portable(self) -> bool:
        """Whether the source can be pickled, kept, and read more than once."""
        return not isinstance(self.content, BoundedStream)

    @property
    def member(self) -> str:
        """The archive and its member, as `Document.member` names them; empty for a file that is not in an archive."""
        return self.id if self.id != self.source else ""

    def carried(self) -> Source:
        """The same source in portable form: a member of an archive is read into memory.

        Raises `UnreadableFile` if the member is larger than `MAX_BYTES`.
        """
        try:
            return self if self.portable else replace(self, content=self.data())
        except DAMAGE as error:
            raise unreadable(self.path, error) from error

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the source as a stream of bytes, unpacked if the name ends in `.gz`, `.bz2` or `.xz`."""
        if isinstance(self.content, bytes):
            yield io.BytesIO(self.content)
        elif self.content is not None:
            if self.content.closed or self.content.tell():
                raise UsageError(f"{self.path} is in an archive: read it once, before the next source is taken, or use source.carried()")
            yield unpacked(self.content, self.path)
        else:
            with open_regular(self.path) as file:
                yield unpacked(file, self.path)

    def data(self) -> bytes:
        """All bytes of the source, unpacked; more than `MAX_BYTES` are an error."""
        with self.open() as stream:
            data = read_up_to(stream, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise _too_large(self.path)
        return data

    def text(self) -> str:
        """The text of a source in UTF-8, or in UTF-16 with a byte order mark; every line ending becomes a line feed."""
        data = self.data()
        is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        try:
            text = data.decode("utf-16" if is_wide else "utf-8-sig")
        except UnicodeDecodeError as error:
            if b"\0" in data:
                raise self._zero_bytes() from None
            line = data.count(b"\n", 0, error.start) + 1
            raise UnreadableFile("is not UTF-8 text; convert it to UTF-8", path=self.path, line=line) from None
        if "\0" in text:
            raise self._zero_bytes()
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _zero_bytes(self) -> UnreadableFile:
        return UnreadableFile("is not text: it holds zero bytes; remove it or convert it to UTF-8 text", path=self.path)

    def finish(self, builder: TreeBuilder) -> Document:
        """Build the only document of this source; raises `UnreadableFile` if the document is empty."""
        builder.source, builder.source_hash = self.source, self.source_hash
        builder.member = self.member
        try:
            return builder.build()
        except InputError as error:
            # If the document is named by the path of its file, the message would name the file twice.
            message = str(error).removeprefix(f"document {self.id!r} ")
            raise UnreadableFile(message, path=self.path) from None


def check_packed(path: str) -> None:
    """Unpack a packed file on disk once; raises `UnreadableFile` if it is damaged or cut short.

    The checksum of a packed file is at its end, after the last document.
    """
    try:
        with open_regular(path) as file:
            verify_packed(file, path)
    except DAMAGE as error:
        raise unreadable(path, error) from error


def check_size(path: str) -> None:
    """Raise `UnreadableFile` if a file on disk is larger than `MAX_BYTES`; its content is not read."""
    try:
        if os.stat(path).st_size > MAX_BYTES:
            raise _too_large(path)
    except OSError as error:
        raise unreadable(path, error) from error


def _too_large(path: str) -> UnreadableFile:
    return UnreadableFile(f"is larger than {MAX_BYTES >> 20} MB; split it into several documents", path=path)


def file_hash(path: str | os.PathLike[str]) -> str:
    """The 128-bit BLAKE2b hash of a file's bytes on disk, in hexadecimal."""
    path = os.fspath(path)
    try:
        digest = hashlib.blake2b(digest_size=16)
        with open_regular(path) as file:
            # `hashlib.file_digest` would first clear a large buffer, which takes longer than reading a small file.
            while piece := file.read(1 << 17):
                digest.update(piece)
        return digest.hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


@lru_cache(maxsize=1024)
def language_or_nothing(tag: str) -> str:
    """The language code of a tag in a file; empty if the tag names no known language, as is common.

    >>> language_or_nothing("de-CH"), language_or_nothing("klingon"), language_or_nothing("zz-ZZ")
    ('de', '', '')
    """
    try:
        code = language_code(tag) if tag.strip() else ""
    except UsageError:
        return ""
    return code if is_language(code) else ""


def unreadable(path: str, error: BaseException) -> UnreadableFile:
    """The `UnreadableFile` for a file, with the reason from an error of the operating system or a decompressor."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return UnreadableFile(f"cannot be read ({' '.join(reason.split())}); check the file and its permissions", path=path)


def document_id(path: str) -> str:
    """The document id for a file: its relative path with forward slashes.

    Bytes of the path that are not UTF-8 are escaped with a backslash.
    """
    return os.fsencode(path.replace(os.sep, "/")).decode("utf-8", "backslashreplace")


def is_running_number(id: str) -> bool:
    """Whether an id has the form `@3`, which stands for the number of a passage without an id.

    No span may have such an id.

    >>> is_running_number("@3"), is_running_number("@3a"), is_running_number("3")
    (True, False, False)
    """
    return re.fullmatch(r"@[0-9]+", id) is not None
