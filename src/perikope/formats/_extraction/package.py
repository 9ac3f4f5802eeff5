"""Files that are a zip of XML parts, such as DOCX and ODT. They may be hostile: `Bound` limits what is unpacked.

Only the parts that a reader asks for by name are read. Entities are refused, and nothing outside the file is read.
"""

from __future__ import annotations

import io
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lxml import etree

from perikope.core.errors import UnreadableFile
from perikope.formats._extraction.blocks import FileBlock, Unreadable
from perikope.formats._unpack import DAMAGE, Bound, BoundedStream, read_up_to

Element = Any
"""An element of lxml, which has no types."""

LONGEST_REPEATED = 200
"""Characters of the longest cell that is repeated in all columns and rows that it covers; a longer one is read once."""
MOST_COLUMNS = 64
"""The most columns that one cell may cover. Word allows 63; hostile files state millions."""

SEAM = "\0"
"""Stands in a text for a note, which is read elsewhere; no XML can hold it."""

_OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")
_ENTITIES = "declares entities, as hostile files do; open it in its program and save it again"
_SAFE: dict[str, Any] = {
    "resolve_entities": False, "load_dtd": False, "attribute_defaults": False, "no_network": True, "huge_tree": False,
    "remove_comments": True, "remove_pis": True, "collect_ids": False,
}  # fmt: skip
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CAPTION = re.compile(r"(?:Table|Figure) \d+[.:]")
_KINDS = (
    (re.compile(r"(?:image |table |figure )?captions?"), "caption"),
    (re.compile(r"(?:intense )?quot(?:e|ations?)|block ?(?:text|quote)"), "blockquote"),
    (re.compile(r"(?:source )?code(?: block)?|(?:html )?preformatted(?: text)?|macro text|listing|verbatim"), "code"),
)


class Package:
    """The parts of a file."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(_OLD_OFFICE):
            raise Unreadable("is encrypted or of an old version of Office; save it without a password in the new format")
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (*DAMAGE, ValueError, NotImplementedError) as error:
            raise Unreadable(_damaged(error)) from None
        self._size = len(data)
        self._bound = Bound("", lambda: self._size)

    def part(self, name: str) -> bytes | None:
        """The bytes of a part; None if the file has no such part."""
        try:
            info = self._archive.getinfo(name)
        except KeyError:
            return None
        if info.flag_bits & 1:
            raise Unreadable("is encrypted; save it without a password")
        if info.compress_type not in _METHODS:
            raise Unreadable("is packed by a rare method; open it in its program and save it again")
        # A false header must not claim a packed size larger than the whole file.
        packed = min(info.compress_size, self._size)
        try:
            with BoundedStream(self._archive.open(info), Bound("", lambda: packed, self._bound)) as stream:
                return read_up_to(stream, 1 << 40)
        except UnreadableFile as error:
            raise Unreadable(error.reason) from None
        except (*DAMAGE, ValueError, NotImplementedError) as error:
            raise Unreadable(_damaged(error)) from None

    def xml(self, name: str) -> Element | None:
        """The root element of a part; None if the file has no such part."""
        data = self.part(name)
        if data is None:
            return None
        try:
            root = etree.fromstring(data, etree.XMLParser(dtd_validation=False, **_SAFE))
        except (etree.LxmlError, ValueError) as error:
            raise Unreadable(_ENTITIES if "amplification" in str(error) else _damaged(error)) from None
        _refuse_entities(root)
        return root

    def elements(self, name: str, tags: Sequence[str]) -> Iterator[Element]:
        """The elements of a part with these tags, one after the other; each is emptied when the next one is taken."""
        parsed = etree.iterparse(io.BytesIO(self.part(name) or b"<none/>"), tag=list(tags), **_SAFE)
        try:
            for _, element in parsed:
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
        except (etree.LxmlError, ValueError) as error:
            raise Unreadable(_ENTITIES if "amplification" in str(error) else _damaged(error)) from None
        _refuse_entities(parsed.root)


def _refuse_entities(root: Element) -> None:
    declared: Any = root.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise Unreadable(_ENTITIES)


def _damaged(error: BaseException) -> str:
    return f"is damaged ({' '.join(str(error).split())[:100]}); open it in its program and save it again"


class TagNames:
    """Short names of elements, such as `w:p`, whatever prefix the file uses."""

    def __init__(self, spaces: Mapping[str, Sequence[str]]) -> None:
        self._prefixes = {uri: prefix for prefix, uris in spaces.items() for uri in uris}
        self._known: dict[str, str] = {}

    def __call__(self, element: Element) -> str:
        """The short name of an element; `?:p` in an unknown namespace, and empty for what is no element."""
        tag = element.tag
        if not isinstance(tag, str):
            return ""
        short = self._known.get(tag)
        if short is None:
            space, _, local = tag[1:].rpartition("}")
            short = self._known[tag] = f"{self._prefixes.get(space, '?')}:{local}"
        return short


def attribute(element: Element | None, name: str, default: str = "") -> str:
    """An attribute by its name without the namespace."""
    if element is not None:
        for key, value in element.items():
            if key.rpartition("}")[2] == name:
                return str(value)
    return default


def number(text: str, default: int = 0) -> int:
    """A number that a file states; `default` if it is none."""
    return int(text) if re.fullmatch(r"\d{1,9}", text) else default


def kind_of(style: str) -> str:
    """The kind of block that the name of a style means; empty if it means none.

    >>> kind_of("Caption"), kind_of("HTML Preformatted"), kind_of("Body Text")
    ('caption', 'code', '')
    """
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(style.strip().lower())), "")


def block_of(kind: str, text: str, level: int = 0) -> FileBlock:
    """A block with its text in order: code keeps its spaces, other text keeps its line breaks only."""
    if kind == "code":
        return FileBlock(kind, "\n".join(line.rstrip() for line in text.strip("\n").split("\n")))
    text = re.sub(r"[ \t]+", " ", text.replace("\r", ""))
    text = re.sub(r" ?\n[ \n]*", "\n", text).strip()
    if kind == "p" and _CAPTION.match(text):
        kind = "caption"
    return FileBlock(kind, " ".join(text.split()) if kind == "heading" else text, level)


def joined(pieces: Iterable[str]) -> str:
    """The text of pieces. A note between two words separates them, since its number stands there on the page.

    >>> joined(["a pump", SEAM, "drives", SEAM, "."])
    'a pump drives.'
    """
    return re.sub(rf"(?<=\w){SEAM}+(?=\w)", " ", "".join(pieces)).replace(SEAM, "")


class TextBody(ABC):
    """Turns the elements of a body into blocks. What is no part of a line is read after its paragraph or table."""

    def __init__(self) -> None:
        self._blocks: list[FileBlock] = []
        self._later: list[Element] = []

    @abstractmethod
    def _gather(self, element: Element, pieces: list[str]) -> None:
        """Add the text of an element to the pieces, and put off what is no part of its line."""

    @abstractmethod
    def _put_off(self, element: Element) -> None:
        """Read an element that was put off."""

    @abstractmethod
    def _frame(self, cell: Element) -> None:
        """Read the content of the only cell of a table."""

    def _flush(self) -> None:
        """Read what the last paragraph or table holds besides its own text."""
        later, self._later = self._later, []
        for element in later:
            self._put_off(element)

    def _text(self, element: Element) -> str:
        pieces: list[str] = []
        self._gather(element, pieces)
        return joined(pieces)

    def _read_frame(self, cells: Sequence[Sequence[Element]]) -> bool:
        """Read a table of one cell as a frame around its content; returns whether it is one."""
        if sum(map(len, cells)) != 1:
            return False
        self._frame(next(cell for row in cells for cell in row))
        return True


def finished(title: str, blocks: Iterable[FileBlock]) -> tuple[str, list[FileBlock]]:
    """The title of the file, and its blocks without empty ones. Paragraphs of code are joined.

    A block of level 0 has the style of a title. If it is the only one, at the beginning, and the file states no other
    title, it is the title; else it is a heading above all others.
    """
    kept: list[FileBlock] = []
    code: list[str] = []
    for block in (*blocks, FileBlock("end", "end")):
        if block.kind == "code":
            code.append(block.text)
            continue
        if any(text.strip() for text in code):
            kept.append(FileBlock("code", "\n".join(code).strip("\n")))
        code = []
        if block.text.strip() or block.kind == "table":
            kept.append(block)
    kept.pop()
    titles = [number for number, block in enumerate(kept) if block.kind == "heading" and block.level == 0]
    if titles == [0] and len(kept) > 1 and (not title or title.casefold() == kept[0].text.casefold()):
        return kept[0].text, kept[1:]
    if titles:
        kept = [replace(block, level=block.level + 1) if block.kind == "heading" else block for block in kept]
    return title, kept


def table_of(rows: Sequence[Sequence[str]], headers: int) -> list[FileBlock]:
    """The blocks of a table; `headers` is the number of rows that the file states to be the header.

    Without stated header rows, the first row is the header if none of its cells is empty.
    """
    full = [row for row in rows if any(row)]
    texts = [" | ".join(row) for row in full]
    stated = sum(any(row) for row in rows[:headers])
    if not stated and rows and all(rows[0]):
        stated = 1
    if stated >= len(texts):
        stated = 0
    header = "\n".join(texts[:stated])
    return [FileBlock("table", header), *(FileBlock("tr", text) for text in texts[stated:])] if texts else []


def people(text: str) -> list[str]:
    """The names of persons that a program has written into one text.

    >>> people("Ann Cook; Bob Day;")
    ['Ann Cook', 'Bob Day']
    """
    return [name for part in text.split(";") if (name := " ".join(part.split()))]


def described(values: Mapping[str, object]) -> dict[str, Any]:
    """Metadata without empty values, and dates without the time of day."""
    return {name: str(value)[:10] if name in ("date", "modified") else value for name, value in values.items() if value}
