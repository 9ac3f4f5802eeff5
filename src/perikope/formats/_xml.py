"""Safe reading of XML: turns files into trees of elements without loading other files or expanding entities.

The document type declaration is removed before the parser sees it, so that no entity is declared, no DTD is loaded and
no file is opened. Named characters, which DTDs define, are replaced from the table in `_entities.py`. The parser limits
the depth of elements and the size of a text node. This module limits the size of a document and the number of its tags.

One file may hold many documents one after the other, each with its own declaration, as the patent offices publish them.

A document that is not well-formed is refused, because a parser could return only half of it. Four common faults are
repaired without loss of text:

- white space before the XML declaration is ignored;
- a namespace prefix that is not declared gets a namespace;
- characters that XML does not allow (`&#0;`, `&#x1F;`, a form feed) become U+FFFD;
- a declared encoding of UTF-16 or UTF-32 is ignored if the declaration itself is written in single bytes.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import IO, NamedTuple, cast

from lxml import etree

from perikope.core.errors import UnreadableFile
from perikope.formats._entities import PREDEFINED, characters
from perikope.formats._source import Source, unreadable
from perikope.formats._unpack import DAMAGE

MAX_BYTES = 1 << 26
"""The largest XML document, in bytes: 64 MB. Its tree takes about ten times as much memory."""

MAX_TAGS = 1 << 22
"""The most tags and attributes of one document.

Each takes 120 to 250 bytes in the tree, however short it is. Real files have at most one per 20 bytes.
"""

MAX_DOCTYPE = 1 << 20
"""The longest document type declaration, in bytes: 1 MB. One that lists all entities has about 50 KB."""

MAX_REPLACEMENT = 16
"""The longest value of an entity that a document declares, in characters; so a short file cannot become a long text."""

_BLOCK = 1 << 20

# These expressions take linear time: none looks ahead further than a name, white space or the end of its own match.
_SPACE = re.compile(rb"\s*")
_IN_DOCTYPE = re.compile(rb"""<!--|<\?|["'\[\]>]""")
_CLOSING = {b"<!--": b"-->", b"<?": b"?>", b"<![CDATA[": b"]]>", b'"': b'"', b"'": b"'"}
_ENTITY = re.compile(
    rb"""<!ENTITY\s+([A-Za-z][A-Za-z0-9._-]{0,63})\s+"""
    rb"""(?:(SYSTEM|PUBLIC)\s|"((?:[^"&%%<]|&\#x?[0-9A-Fa-f]{1,7};){0,%d})"\s*>|'((?:[^'&%%<]|&\#x?[0-9A-Fa-f]{1,7};){0,%d})'\s*>)"""
    % (MAX_REPLACEMENT, MAX_REPLACEMENT)
)
_ENCODING = re.compile(rb"""\s*<\?xml\s[^>]*?\b(encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["'])""")
_DECLARATION = re.compile(rb"<(?:\?xml|!DOCTYPE)\s")
_ASIDE = re.compile(rb"<!--|<!\[CDATA\[|<\?|<!DOCTYPE\s")
_ASIDE_OR_ROOT = re.compile(rb"<!--|<\?|<!DOCTYPE\s|<[^\s!?/]")
_NO_MARKUP = rb"<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)|<!--(?s:.*?)(?:-->|\Z)|<\?(?s:.*?)(?:\?>|\Z)"
_NAMED = re.compile(_NO_MARKUP + rb"|&([A-Za-z][A-Za-z0-9._-]{0,63});")
_OTHER_NAME = re.compile(rb"&(?!(?:" + "|".join(sorted(PREDEFINED)).encode() + rb");)[A-Za-z]")
_NUMBERED = re.compile(_NO_MARKUP + rb"|&#(?:x0*+([0-9A-Fa-f]*+)|0*+([0-9]*+));")
_NOT_ALLOWED = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_PREFIX = re.compile(rb"""</?([A-Za-z_][A-Za-z0-9._-]*):|\s([A-Za-z_][A-Za-z0-9._-]*):[A-Za-z_][A-Za-z0-9._-]*\s*=\s*["']""")
_DECLARES = re.compile(rb"\sxmlns:([A-Za-z_][A-Za-z0-9._-]*)\s*=")
_TAG_NAME = re.compile(rb"<[^\s<>/!?]+")
_WITH_PREFIX = re.compile(rb"<[^\s<>/:!?]+:")
_WITH_DEFAULT = re.compile(rb"xmlns\s*=")
_TEXT = etree.XPath("string()", smart_strings=False)
_IN_NAMESPACE = etree.XPath("descendant-or-self::*[namespace-uri()]")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_EBCDIC = "<?xm".encode("cp037")
# Only these codecs of Python are allowed: others take quadratic time, or encode markup in other characters.
_BY_BYTES = re.compile(
    r"utf-8(?:-sig)?|ascii|iso8859-\d+|cp\d+|koi8-\w|mac-\w+|euc_\w+|shift_jis\w*|gbk?\d*|big5\w*|johab|tis-620|kz1048|ptcp154|hp-roman8"
)
_WIDE = re.compile(r"utf-(?:16|32)(?:-[lb]e)?")
_SHIFTED = re.compile(r"iso2022_\w+|hz")
_UNDECLARED = {b"xlink": b"http://www.w3.org/1999/xlink"}
_PLACE = re.compile(r"(?:,? line \d+(?:, column \d+)?| \(<string>[^)]*\))")
_INVALID = "\ufffd"
_ENDLESS = f"has a document type declaration that does not end or is longer than {MAX_DOCTYPE >> 20} MB; close or shorten it"


class XmlDocument(NamedTuple):
    """One XML document of a file, as a tree."""

    root: etree._Element
    first_line: int
    """The line of the file in which the document begins."""
    is_alone: bool
    """Whether the document is the first of a file; only then does the file's path serve as its id."""


class Problems:
    """Collects the errors for documents that cannot be read, while the other documents of the file are read.

    Used as `with problems:` around the reading of one document. `read` is the number of documents that were read; the
    user of this class counts them.
    """

    def __init__(self) -> None:
        self.read = 0
        self._first: UnreadableFile | None = None
        self._count = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, UnreadableFile):
            return False
        # The traceback is dropped, because its frames keep the document in memory.
        error.__cause__ = error.__context__ = None
        self._first = self._first or error.with_traceback(None)
        self._count += 1
        return True

    def report(self) -> None:
        """Raise the first error, with the number of documents that were left out; do nothing if there was no error."""
        if self._first is None:
            return
        if self._count == 1 and not self.read:
            raise self._first
        first, left_out = self._first, f"{self._count} of the {self._count + self.read} documents in this file are left out"
        problem = UnreadableFile(f"{first.reason} ({left_out})", path=first.path, line=first.line)
        problem.partly = self.read > 0
        raise problem


def trees(source: Source, problems: Problems | None = None) -> Iterator[XmlDocument]:
    """Yield the XML documents of a file as trees, without comments, processing instructions and namespaces of tags.

    Errors for documents that cannot be read are collected in `problems`. Without `problems`, they are raised as one
    error after the other documents.
    """
    collected = problems or Problems()
    for number, (data, line) in enumerate(_pieces(source)):
        begin = _begin(data)
        first_line = line + data.count(b"\n", 0, begin)
        with collected:
            root = _parse(data[begin:], first_line, source.path)
            yield XmlDocument(root, first_line, number == 0 and not source.first_line)
    if problems is None:
        collected.report()


def chunks(source: Source, size: int) -> Iterator[Source]:
    """Cut a file into portable pieces of whole documents; all pieces but the last have at least `size` bytes."""
    waiting: list[bytes] = []
    # The first piece has the line 0, as a whole file has, because its first document may get the file's id.
    waiting_size, first_line, next_line = 0, 0, 0
    try:
        for data, line in _pieces(source):
            if not waiting:
                first_line = next_line and line
            waiting.append(data)
            waiting_size += len(data)
            next_line = line
            if waiting_size >= size:
                yield replace(source, content=b"".join(waiting), first_line=first_line)
                waiting, waiting_size = [], 0
    except DAMAGE as error:
        raise unreadable(source.path, error) from error
    if waiting:
        yield replace(source, content=b"".join(waiting), first_line=first_line)


def whole_text(element: etree._Element) -> str:
    """All text inside an element, with its white space unchanged."""
    # The parser has dropped comments and processing instructions, so an element without children has one text.
    return cast(str, _TEXT(element)) if len(element) else element.text or ""


def _pieces(source: Source) -> Iterator[tuple[bytes, int]]:
    """Yield the bytes of each document in a file, and the number of its first line.

    The bytes are in an encoding that extends ASCII: other encodings are converted to UTF-8.
    """
    line, is_empty = source.first_line or 1, True
    with source.open() as stream:
        block = stream.read(_BLOCK)
        encoding = _first_encoding(block, source.path)
        if encoding:
            block, stream = _decoded(block, stream, encoding, source.path), io.BytesIO()
        cutter = _Cutter(block, source.path)
        at_end = False
        while True:
            while (data := cutter.document(at_end, line)) is not None:
                if encoding and (declared := _declared_encoding(data)):
                    # The file was converted to UTF-8, so the declared encoding is removed.
                    data = data[: declared.start(1)] + data[declared.end(1) :]
                if data[_begin(data) :]:
                    is_empty = False
                    yield data, line
                line += data.count(b"\n")
            if at_end:
                break
            block = stream.read(_BLOCK)
            at_end = not block
            cutter.add(block)
    if is_empty:
        raise UnreadableFile("is empty; remove it or give it text", path=source.path)


class _Cutter:
    """Cuts a file, which is read block by block, into its documents.

    A new document begins at an XML declaration or document type declaration that follows a root element. Inside a
    comment, processing instruction or CDATA section, such a declaration is ignored.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self._data = bytearray(data)
        self._path = path
        self._begin = self._at = self._searched = 0
        self._has_root = False

    def add(self, block: bytes) -> None:
        del self._data[: self._begin]
        self._at -= self._begin
        self._searched -= self._begin
        self._begin = 0
        self._data += block

    def document(self, at_end: bool, line: int) -> bytes | None:
        """The next document; None if the file has no further document, or if the next block must be added first.

        `at_end` says that all blocks were added. `line` is the line at which the document begins, for errors.
        """
        end = self._next(line)
        if end < 0:
            if len(self._data) - self._begin > MAX_BYTES:
                raise UnreadableFile(f"holds a document of more than {MAX_BYTES >> 20} MB; split it", path=self._path, line=line)
            if not at_end or self._begin == len(self._data):
                return None
            end = len(self._data)
        with memoryview(self._data) as view:
            document = bytes(view[self._begin : end])
        self._begin = self._at = self._searched = end
        self._has_root = False
        return document

    def _next(self, line: int) -> int:
        """The position at which the next document begins; -1 if it is not in the blocks added so far."""
        data = self._data
        while True:
            if self._has_root and not self._may_hold_next():
                return -1
            match = (_ASIDE if self._has_root else _ASIDE_OR_ROOT).search(data, self._at)
            if match is None:
                # A declaration may begin in this block and end in the next one.
                self._at = max(self._at, len(data) - 9)
                return -1
            start, opening = match.start(), match[0]
            if opening == b"<?" and len(data) < start + 6:
                self._at = start
                return -1
            if self._has_root and _DECLARATION.match(data, start):
                return start - 3 if data[start - 3 : start] == codecs.BOM_UTF8 else start
            if opening.startswith(b"<!DOCTYPE"):
                end = _doctype_end(data, start)
                if end < 0 and len(data) > start + MAX_DOCTYPE:
                    raise UnreadableFile(_ENDLESS, path=self._path, line=line + data.count(b"\n", self._begin, start))
            elif closing := _CLOSING.get(opening):
                end = data.find(closing, match.end()) + len(closing)
                end = -1 if end < len(closing) else end
            else:
                self._has_root, end = True, match.end()
            if end < 0:
                self._at = start
                return -1
            self._at = end

    def _may_hold_next(self) -> bool:
        """Whether the blocks hold a further declaration. Most files have none, so a closer search is not needed."""
        searched = max(self._at, self._searched)
        if match := _DECLARATION.search(self._data, searched):
            self._searched = match.start()
            return True
        self._searched = max(searched, len(self._data) - 9)
        return False


def _begin(data: bytes) -> int:
    """The position at which a document begins, after byte order marks and white space."""
    at = 0
    while True:
        begin = at + 3 if data.startswith(codecs.BOM_UTF8, at) else at
        begin = cast(re.Match[bytes], _SPACE.match(data, begin)).end()
        if begin == at:
            return begin
        at = begin


def _first_encoding(data: bytes, path: str) -> str:
    """The encoding of a file, if it must be decoded before it is cut into documents; else empty."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    match data[:4]:
        case b"<\0\0\0":
            return "utf-32-le"
        case b"\0\0\0<":
            return "utf-32-be"
        case head if len(head) == 4 and head[0] == ord("<") and head[1] == 0:
            return "utf-16-le"
        case head if len(head) == 4 and head[0] == 0 and head[1] == ord("<"):
            return "utf-16-be"
    if data.startswith(_EBCDIC):
        raise UnreadableFile("is in EBCDIC; convert it to UTF-8", path=path)
    declared = _codec(data)[1]
    return declared if _SHIFTED.fullmatch(declared) else ""


def _decoded(data: bytes, stream: IO[bytes], encoding: str, path: str) -> bytes:
    pieces = [data]
    size = len(data)
    while block := stream.read(_BLOCK):
        size += len(block)
        if size > MAX_BYTES:
            raise UnreadableFile(f"is {encoding} text of more than {MAX_BYTES >> 20} MB; convert it to UTF-8", path=path)
        pieces.append(block)
    try:
        return b"".join(pieces).decode(encoding).encode()
    except UnicodeError as error:
        position = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise UnreadableFile(f"is not {encoding} text{position}; convert it to UTF-8", path=path) from None


def _declared_encoding(data: bytes) -> re.Match[bytes] | None:
    return _ENCODING.match(data, 3 if data.startswith(codecs.BOM_UTF8) else 0, 1024)


def _codec(data: bytes) -> tuple[str, str]:
    """The declared encoding of a document, or UTF-8: as written, and as Python names it (empty if unknown)."""
    match = _declared_encoding(data)
    written = match[2].decode() if match else "utf-8"
    try:
        return written, codecs.lookup(written).name
    except LookupError:
        return written, ""


def _in_utf8(data: bytes, line: int, path: str) -> bytes:
    written, name = _codec(data)
    if name in ("utf-8", "ascii") or _WIDE.fullmatch(name):
        return data
    if not _BY_BYTES.fullmatch(name):
        raise UnreadableFile(f"declares the unknown encoding {written!r}; convert it to UTF-8", path=path, line=line)
    try:
        text = data.decode(name)
    except UnicodeError as error:
        position = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise UnreadableFile(f"is not {written} text{position}; convert it to UTF-8", path=path, line=line) from None
    if not text.startswith("<"):
        raise UnreadableFile(f"is not {written} text, though it declares this encoding; convert it to UTF-8", path=path, line=line)
    return text.encode("utf-8", "replace")


def _root_at(data: bytes, at: int = 0) -> int:
    """The position after white space, comments and processing instructions, from `at` on."""
    while True:
        at = cast(re.Match[bytes], _SPACE.match(data, at)).end()
        opening = next((opening for opening in (b"<?", b"<!--") if data.startswith(opening, at)), b"")
        if not opening:
            return at
        end = data.find(_CLOSING[opening], at + len(opening))
        if end < 0:
            return len(data)
        at = end + len(_CLOSING[opening])


def _doctype_end(data: bytes | bytearray, start: int) -> int:
    """The end (exclusive) of the document type declaration that begins at `start`.

    It is -1 if the declaration does not end, or is longer than `MAX_DOCTYPE`.
    """
    at, is_inside = start, False
    while match := _IN_DOCTYPE.search(data, at, start + MAX_DOCTYPE):
        token, at = match[0], match.end()
        if token in _CLOSING:
            end = data.find(_CLOSING[token], at, start + MAX_DOCTYPE)
            if end < 0:
                return -1
            at = end + len(_CLOSING[token])
        elif token == b">":
            if not is_inside:
                return at
        else:
            is_inside = token == b"["
    return -1


def _parse(data: bytes, line: int, path: str) -> etree._Element:
    data = _in_utf8(data, line, path)
    start = _root_at(data)
    doctype = b""
    if data.startswith(b"<!DOCTYPE", start):
        end = _doctype_end(data, start)
        if end < 0:
            raise UnreadableFile(_ENDLESS, path=path, line=line + data.count(b"\n", 0, start))
        doctype = data[start:end]
        # Line feeds are kept, so that messages name the right line of the file.
        data = data[:start] + b"\n" * doctype.count(b"\n") + data[end:]
    if b"&" in data:
        data = _with_characters(data, doctype, line, path)
    if len(data) > MAX_TAGS and data.count(b"<") + data.count(b'="') + data.count(b"='") > MAX_TAGS:
        raise UnreadableFile(f"has more than {MAX_TAGS:,} tags and attributes; split it", path=path, line=line)
    try:
        try:
            root = etree.fromstring(data, _parser())
        except etree.XMLSyntaxError:
            mended = _mended(data)
            if mended == data:
                raise
            data = mended
            root = etree.fromstring(data, _parser())
        # Most documents declare namespaces for attributes only.
        if b"xmlns" in data and (_WITH_DEFAULT.search(data) or _WITH_PREFIX.search(data)):
            for element in cast(list[etree._Element], _IN_NAMESPACE(root)):
                element.tag = str(element.tag).rpartition("}")[2]
    except (etree.LxmlError, ValueError) as error:
        raise UnreadableFile(_reason(error, data), path=path, line=line - 1 + max(1, getattr(error, "lineno", 1) or 1)) from None
    return root


def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, dtd_validation=False, attribute_defaults=False, no_network=True,
        huge_tree=False, remove_comments=True, remove_pis=True, collect_ids=False, ns_clean=False,
    )  # fmt: skip


def _reason(error: Exception, data: bytes) -> str:
    # The line in the parser's message is dropped: it counts from the start of the document, not of the file.
    message = _PLACE.sub("", str(error).strip().partition("\n")[0])
    lowered = message.lower()
    if "excessive depth" in lowered or "nested too deep" in lowered:
        return "is nested too deeply to be read; flatten it"
    if any(words in lowered for words in ("huge", "too long", "too big")):
        return "holds one text or name that is too long to be read; split it"
    if "invalid bytes" in lowered:
        return "is not UTF-8 text; name its encoding in the XML declaration, or convert it"
    if b"\0" in data:
        return "is not text: it holds zero bytes; remove it or convert it to UTF-8 text"
    return f"cannot be read as XML ({message}); correct the file"


def _mended(data: bytes) -> bytes:
    """A document that the parser refused, after repairs without loss of text; the same bytes if no repair applies."""
    data = _NOT_ALLOWED.sub(_INVALID.encode(), data)
    return _with_prefixes(_NUMBERED.sub(_allowed, data))


def _allowed(match: re.Match[bytes]) -> bytes:
    if match[1] is None and match[2] is None:
        return match[0]
    digits = match[1] if match[2] is None else match[2]
    code = int(digits or b"0", 16 if match[2] is None else 10) if len(digits) < 8 else -1
    if code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000:
        return match[0]
    return f"&#{ord(_INVALID)};".encode()


def _with_prefixes(data: bytes) -> bytes:
    """The document with every namespace prefix declared at its root.

    Declarations in inner elements still apply there.
    """
    root = _TAG_NAME.match(data, _root_at(data))
    if not root:
        return data
    used = {match[1] or match[2] for match in _PREFIX.finditer(data)}
    tag = data[root.start() : data.find(b">", root.end())]
    missing = sorted(used - set(_DECLARES.findall(tag)) - {b"xml", b"xmlns"})
    if len(missing) > 256:
        return data
    declared = b"".join(b' xmlns:%s="%s"' % (prefix, _UNDECLARED.get(prefix, b"urn:undeclared:" + prefix)) for prefix in missing)
    return data[: root.end()] + declared + data[root.end() :]


def _with_characters(data: bytes, doctype: bytes, line: int, path: str) -> bytes:
    # Most files use only the names that XML defines, and are returned unchanged.
    if not _OTHER_NAME.search(data):
        return data
    known = characters()
    declared = _declared_by(doctype)
    replacements = {name.encode(): b"&%s;" % name.encode() for name in PREDEFINED}
    size = len(data)

    def character(match: re.Match[bytes]) -> bytes:
        nonlocal size
        written = match[1]
        if written is None:
            return match[0]
        replacement = replacements.get(written)
        if replacement is None:
            name = written.decode()
            value = declared.get(name)
            value = known.get(name) if value is None else value
            if value is None:
                fault = (
                    "is declared in another file; write its text instead"
                    if name in declared
                    else "names no known character; write the character itself"
                )
                at = line + data.count(b"\n", 0, match.start())
                raise UnreadableFile(f"uses &{name};, which {fault}", path=path, line=at)
            # Written as character references, because the character may have a meaning in XML.
            replacement = "".join(letter if letter.isascii() and letter.isalnum() else f"&#{ord(letter)};" for letter in value).encode()
            replacements[written] = replacement
        size += len(replacement) - len(written) - 2
        if size > 2 * MAX_BYTES:
            raise UnreadableFile(f"holds a document of more than {MAX_BYTES >> 20} MB; split it", path=path, line=line)
        return replacement

    return _NAMED.sub(character, data)


def _declared_by(doctype: bytes) -> dict[str, str | None]:
    """The declared entities of a document by name: the value, or None for an entity in another file.

    Entities with longer values than `MAX_REPLACEMENT` are left out.
    """
    declared: dict[str, str | None] = {}
    for match in _ENTITY.finditer(doctype):
        value = (match[3] or match[4] or b"").decode("utf-8", "replace")
        declared.setdefault(match[1].decode(), None if match[2] else _REFERENCE.sub(_numbered, value))
    return declared


_REFERENCE = re.compile("&#(x?)([0-9A-Fa-f]+);")


def _numbered(match: re.Match[str]) -> str:
    try:
        code = int(match[2], 16 if match[1] else 10)
    except ValueError:
        return _INVALID
    return chr(code) if code < 0x110000 else _INVALID
