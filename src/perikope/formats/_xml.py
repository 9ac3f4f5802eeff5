"""XML without its dangers: files become trees of elements, and nothing in them makes the parser read or multiply anything.

The document type declaration is cut off before the parser sees it: what is not there declares no entities, loads no DTD and opens no
file. Named characters, which files take from DTDs, are replaced from a table of our own. Depth and the size of a text node are bounded
by the parser, the size of a document here.

One file may hold many documents one after the other, each with its own declaration, as the patent offices publish them.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, NamedTuple, cast

from lxml import etree

from perikope.errors import UnreadableFile
from perikope.formats._entities import PREDEFINED, characters
from perikope.formats._source import Source, unreadable
from perikope.formats._unpack import DAMAGE

MAX_BYTES = 1 << 26
"""One XML document may be 64 MB: its tree takes some ten times as much memory."""

_BLOCK = 1 << 20

# Each alternative begins with another character and gives nothing back, so that no input takes more than linear time.
_BEFORE_ROOT = re.compile(rb"(?>\s++|<\?(?s:.*?)\?>|<!--(?s:.*?)-->)*+")
_DOCTYPE = re.compile(
    rb"""<!DOCTYPE(?>[^\[<>"']++|"[^"]*+"|'[^']*+')*+"""
    rb"""(?>\[(?>[^\]"'<]++|"[^"]*+"|'[^']*+'|<!--(?s:.*?)-->|<\?(?s:.*?)\?>|<)*+\]\s*+)?+>"""
)
_ENCODING = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_NAME = re.compile(rb"<([^\s<>/!?]+)")
_NEXT_DOCUMENT = re.compile(rb"<\?xml\s|<!DOCTYPE\s")
_NAMED = re.compile(rb"<!\[CDATA\[(?s:.*?)\]\]>|&([A-Za-z][A-Za-z0-9._-]{0,63});")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


class Tree(NamedTuple):
    """One document of a file."""

    root: etree._Element
    first_line: int
    """The line of the file that it begins in."""
    is_alone: bool
    """Whether nothing before it says that the file holds several."""


def trees(source: Source) -> Iterator[Tree]:
    """The documents of a file, each as the tree of its elements, without comments, processing instructions and namespaces."""
    for number, (data, line) in enumerate(_pieces(source)):
        yield Tree(_parse(data, line, source.path), line, number == 0 and not source.first_line)


def chunks(source: Source, size: int) -> Iterator[Source]:
    """A file in portable pieces of whole documents, of at least `size` bytes unless it is the last, for several workers."""
    waiting: list[bytes] = []
    waiting_size, first_line = 0, 0
    try:
        for data, line in _pieces(source):
            first_line = first_line or line
            waiting.append(data)
            waiting_size += len(data)
            if waiting_size >= size:
                yield replace(source, content=b"".join(waiting), first_line=first_line)
                waiting, waiting_size, first_line = [], 0, 0
    except DAMAGE as error:
        raise unreadable(source.path, error) from error
    if waiting:
        # The only piece of a file is no piece: its document is named by the file where it has no name of its own.
        yield replace(source, content=b"".join(waiting), first_line=first_line if first_line > 1 else 0)


def whole_text(element: etree._Element) -> str:
    """All text inside an element, white space as it is."""
    # Comments and processing instructions are not there: the parser drops them.
    return "".join(cast(Iterator[str], element.itertext()))


def _pieces(source: Source) -> Iterator[tuple[bytes, int]]:
    """The bytes of each document in a file, in UTF-8 or something like it, and the line it begins in."""
    line = source.first_line or 1
    with source.open() as stream:
        data = stream.read(_BLOCK)
        if encoding := _wide_encoding(data):
            data, stream = _decoded(data, stream, encoding, source.path), io.BytesIO()
        at_end, searched = False, 0
        while True:
            found = _next_document(data, searched)
            if found:
                yield data[:found], line
                line += data.count(b"\n", 0, found)
                data, searched = data[found:], 0
                continue
            if at_end:
                break
            if len(data) > MAX_BYTES:
                raise UnreadableFile(f"holds a document of more than {MAX_BYTES >> 20} MB; split it", path=source.path, line=line)
            # The mark of a next document may be cut in two by the end of a block.
            searched = max(0, len(data) - 16)
            block = stream.read(_BLOCK)
            at_end = not block
            data += block
        if data.strip(b"\xef\xbb\xbf \t\r\n"):
            yield data, line
        elif line == 1:
            raise UnreadableFile("is empty; remove it or give it text", path=source.path)


def _wide_encoding(data: bytes) -> str:
    """The encoding of a file whose characters take two bytes and more, which is told by its first bytes; else nothing."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    return {b"<\0?\0": "utf-16-le", b"\0<\0?": "utf-16-be", b"<\0\0\0": "utf-32-le", b"\0\0\0<": "utf-32-be"}.get(data[:4], "")


def _decoded(data: bytes, stream: IO[bytes], encoding: str, path: str) -> bytes:
    pieces = [data]
    size = len(data)
    while block := stream.read(_BLOCK):
        size += len(block)
        if size > MAX_BYTES:
            raise UnreadableFile(f"holds a document of more than {MAX_BYTES >> 20} MB; split it", path=path)
        pieces.append(block)
    try:
        text = b"".join(pieces).decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"is not {encoding} text (byte {error.start}); convert it to UTF-8", path=path) from None
    declared = re.compile(r"""(<\?xml[^>]*?)\sencoding\s*=\s*["'][^"']*["']""")
    return declared.sub(r"\1", text.removeprefix("\ufeff"), count=1).encode("utf-8", "replace")


def _next_document(data: bytes, searched: int) -> int:
    """Where a second document begins: at a declaration that stands right behind the end of the first root element; else 0."""
    end_tag = b""
    for found in _NEXT_DOCUMENT.finditer(data, searched):
        end_tag = end_tag or b"</" + _root_name(data) + b">"
        before = data[max(0, found.start() - 4096) : found.start()].rstrip()
        if len(end_tag) > 3 and before.endswith(end_tag):
            return found.start()
    return 0


def _root_name(data: bytes) -> bytes:
    _, end = _without_doctype(data)
    name = _NAME.match(data, end)
    return name[1] if name else b""


def _without_doctype(data: bytes) -> tuple[int, int]:
    """From where to where the document type declaration stands, with nothing but white space and remarks after it."""
    begin = 3 if data.startswith(codecs.BOM_UTF8) else 0
    before = _BEFORE_ROOT.match(data, begin)
    start = before.end() if before else begin
    doctype = _DOCTYPE.match(data, start)
    if not doctype:
        return start, start
    after = _BEFORE_ROOT.match(data, doctype.end())
    return start, after.end() if after else doctype.end()


def _parse(data: bytes, line: int, path: str) -> etree._Element:
    declared = _ENCODING.match(data[:1024].removeprefix(codecs.BOM_UTF8))
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        name = codecs.lookup(encoding).name
        # What is not written in letters is no encoding of text, though Python has a codec for it.
        if name not in ("utf-8", "ascii"):
            data = data.decode(name).encode("utf-8", "surrogatepass")
    except (LookupError, TypeError, AssertionError):
        raise UnreadableFile(f"is in the unknown encoding {encoding!r}; convert it to UTF-8", path=path, line=line) from None
    except UnicodeError as error:
        reason = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise UnreadableFile(f"is not {encoding} text{reason}; convert it to UTF-8", path=path, line=line) from None
    start, end = _without_doctype(data)
    if data.startswith(b"<!DOCTYPE", start) and start == end:
        raise UnreadableFile("has a document type declaration that does not end; mend it", path=path, line=line)
    # Line feeds stay, so that a message names the line as the file has it.
    data = data[:start] + b"\n" * data.count(b"\n", start, end) + data[end:]
    if b"&" in data:
        data = _with_characters(data, line, path)
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, dtd_validation=False, attribute_defaults=False, no_network=True,
        huge_tree=False, remove_comments=True, remove_pis=True, collect_ids=False, ns_clean=False,
    )  # fmt: skip
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError) as error:
        raise UnreadableFile(_reason(error), path=path, line=line - 1 + max(1, getattr(error, "lineno", 1) or 1)) from None
    if root.nsmap or "}" in str(root.tag):
        for element in root.iter(etree.Element):
            tag = str(element.tag)
            if tag.startswith("{"):
                element.tag = tag.rpartition("}")[2]
    return root


def _reason(error: Exception) -> str:
    message = str(error).strip().partition("\n")[0]
    if "xcessive depth" in message or "nested too deep" in message:
        return "is nested too deeply to be read; flatten it"
    if "huge" in message.lower() or "too long" in message.lower():
        return "holds one text or name that is too long to be read; split it"
    return f"cannot be read as XML ({message}); mend it"


def _with_characters(data: bytes, line: int, path: str) -> bytes:
    known = characters()

    def character(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return found[0]
        name = found[1].decode()
        if name in PREDEFINED:
            return found[0]
        if name not in known:
            at = line + data.count(b"\n", 0, found.start())
            raise UnreadableFile(f"uses &{name};, which names no known character; write the character itself", path=path, line=at)
        # As numbers: a named character may be one that has a meaning in XML.
        return "".join(f"&#{ord(letter)};" for letter in known[name]).encode()

    return _NAMED.sub(character, data)
