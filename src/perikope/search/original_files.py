"""The file that a passage was read from: as text, with the line where the passage begins, or as a PDF with its page.

Only files in a given folder are read. A file is chosen by comparing names: the folder is listed, and the entry with the
name that the index has stored is opened. So neither a request nor an index can lead outside the folder.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Literal

from perikope.core.errors import InputError, NotFound, UsageError
from perikope.core.names import split_name
from perikope.document.tree import Document
from perikope.formats import Source, file_hash, sources
from perikope.formats._unpack import DAMAGE
from perikope.index.stored import stored_document
from perikope.search.explaining import find_document, find_span
from perikope.search.facade import Index
from perikope.search.originals import open_original
from perikope.text.analysis import words

SHOWN_LINES = 2000
"""The most lines of a file that are returned."""
SHOWN_CHARACTERS = 400_000
"""The most characters of a file that are returned."""
MOST_OF_PDF = 1 << 26
"""The most bytes of a PDF that are returned."""
_SIGNATURE = b"%PDF-", 1024
"""What a PDF begins with, within so many bytes."""
_BETWEEN = r"(?:<[^<>]{0,300}>|[\W_]){1,60}+"
"""What may stand between two words in a file: marks, spaces and tags. The limits bound the time for a hostile file."""
_WORDS = (8, 5, 3, 2)
"""Numbers of words at the beginning of a passage that are looked for in its file, in this order."""


@dataclass(frozen=True, slots=True)
class OriginalLines:
    """Lines of the file that a passage was read from."""

    file: str
    """The file as the index names it; in an archive, `archive.zip/member.xml`."""
    kind: Literal["text", "pdf", "other"]
    """`text`, `pdf`, or `other` for a file that is neither. Only a text has lines."""
    line: int
    """The number of the line in which the passage begins, from 1; 0 if the passage was not found in the file."""
    page: int
    """The number of the page on which the passage begins, from 1; 0 if the file has no pages."""
    first_line: int
    """The number of the first line of `text`, from 1."""
    text: str
    """Lines of the file around the passage; the whole file if it is not long."""
    lines: int
    """The number of lines of the whole file."""
    changed: bool
    """Whether the file has changed since it was indexed."""
    data: str
    """The bytes of a PDF in base64, if they were asked for; else empty."""


def original_lines(index: Index, passage: str, folder: str | PathLike[str], *, pdf: bool = False) -> OriginalLines:
    """The file of a passage or document, given by its name, in the folder that was indexed.

    With `pdf`, the bytes of a PDF are returned too. Raises `NotFound` if the folder does not have the file, or if the
    document was not read from a file, and `UsageError` if a PDF is too large to be returned.
    """
    document, span, source, data = _find_file(index, passage, folder)
    page = _page(document, span)
    is_changed = not source.member and document.source_hash != file_hash(source.path)
    if (kind := _kind(data)) != "text":
        return OriginalLines(source.id, kind, 0, page, 1, "", 0, is_changed, _encoded(source, data) if pdf and kind == "pdf" else "")
    lines = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    share = document.spans.start[span] / max(len(document.text), 1)
    line = _line_of_xml(index, passage, folder) if split_name(passage)[1] else 0
    line = line or _line_of_text(lines, document.id, document.text_of(span), share)
    first = _first_shown(lines, line)
    shown = "\n".join(lines[first : first + SHOWN_LINES])[:SHOWN_CHARACTERS]
    return OriginalLines(source.id, kind, line, page, first + 1, shown, len(lines), is_changed, "")


def _find_file(index: Index, passage: str, folder: str | PathLike[str]) -> tuple[Document, int, Source, bytes]:
    """The document and the span of a passage, their file in a folder, and its bytes."""
    id, own = split_name(passage)
    segment, local, span = find_span(index.snapshot, id, own) if own else (*find_document(index.snapshot, id)[1:], 0)
    document = stored_document(segment, local)
    if not document.source:
        raise NotFound(f"document {document.id!r} was not read from a file")
    name = document.member or document.source
    with suppress(InputError):  # the folder has become empty, or cannot be listed
        for source in sources(folder, hashes=False, on_problem=lambda _: None, select=lambda entry, _: entry.id == document.source):
            if source.id == name:
                return document, span, source, _data(source)  # a member of an archive can be read only here
    raise NotFound(f"the file {name!r} of document {document.id!r} is no longer in the folder that was indexed")


def _data(source: Source) -> bytes:
    try:
        return source.data()
    except DAMAGE as error:
        raise NotFound(f"the file {source.id!r} cannot be read: {type(error).__name__}") from None


def _encoded(source: Source, data: bytes) -> str:
    """The bytes of a PDF in base64."""
    if len(data) > MOST_OF_PDF:
        raise UsageError(f"the file {source.id!r} has {len(data) >> 20} MB; at most {MOST_OF_PDF >> 20} MB are sent")
    return base64.b64encode(data).decode()


def _kind(data: bytes) -> Literal["text", "pdf", "other"]:
    """What a browser can show of a file. A file with zero bytes is no text."""
    sign, within = _SIGNATURE
    return "pdf" if sign in data[:within] else "other" if b"\0" in data else "text"


def _page(document: Document, span: int) -> int:
    """The page on which a span begins; of a span without a place, the page of the first place in it."""
    inside = (place for number, place in sorted(document.places.items()) if span <= number and _is_in(document, number, span))
    return next((place.page for place in inside if place.page), 0)


def _is_in(document: Document, number: int, span: int) -> bool:
    return document.spans.start[span] <= document.spans.start[number] and document.spans.end[number] <= document.spans.end[span]


def _line_of_xml(index: Index, passage: str, folder: str | PathLike[str]) -> int:
    """The line of a passage whose place is recorded; 0 if it is not, as in files that are not XML."""
    with suppress(UsageError, InputError):
        return open_original(index, passage, folder).line
    return 0


def _line_of_text(lines: list[str], document: str, text: str, share: float) -> int:
    """The line where a text begins, by its first words; 0 if they are not there. Words may have markup between them.

    If the words occur several times, the place is chosen that is nearest to the share of the document before the text.
    In JSON Lines, it is the line of the document.
    """
    if lines and lines[0].startswith("{"):
        quoted = json.dumps(document, ensure_ascii=False)
        return next((number for number, line in enumerate(lines, 1) if quoted in line or json.dumps(document) in line), 0)
    everything, wanted = "\n".join(lines), words(text)
    for count in _WORDS:
        if len(wanted) < count and count != _WORDS[-1]:
            continue
        pattern = _BETWEEN.join(map(re.escape, wanted[:count]))
        found = [match.start() for match in re.finditer(pattern, everything)] if pattern else []
        if found:
            expected = share * len(everything)
            return everything.count("\n", 0, min(found, key=lambda at: abs(at - expected))) + 1
    return 0


def _first_shown(lines: list[str], line: int) -> int:
    """The number of the first line that is shown, from 0, so that the line is among those that are shown."""
    if len(lines) <= SHOWN_LINES and sum(map(len, lines)) + len(lines) <= SHOWN_CHARACTERS:
        return 0
    first, characters = max(line - 1, 0), 0
    while first > 0 and line - 1 - first < SHOWN_LINES // 4 and characters < SHOWN_CHARACTERS // 4:
        first -= 1
        characters += len(lines[first]) + 1
    return first
