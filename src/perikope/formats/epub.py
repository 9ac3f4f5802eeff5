"""EPUB: the pages of a book in the order of its spine, read as HTML and joined to one document.

A book is a zip. `META-INF/container.xml` names the package file, which has the title, the language and the spine. A
section stays open at the end of a page, because many programs cut chapters into several pages.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from lxml import etree
from lxml import html as lxml_html

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document, TreeBuilder
from perikope.formats import Source, reader
from perikope.formats._archives import zip_refusal
from perikope.formats._source import MAX_BYTES, language_or_nothing, unreadable
from perikope.formats._unpack import DAMAGE, Bound, BoundedStream, read_up_to
from perikope.formats.html import HEADINGS, add_pages, clear_hidden, parse

MEMORY_PER_BYTE = 8
"""Bytes of memory that a byte of a page takes while the page is read; bounds the pages by `FileLimits.memory`."""

_CONTAINER = "META-INF/container.xml"
_ENCRYPTED = "META-INF/encryption.xml"
_PAGES = frozenset(("application/xhtml+xml", "text/html", "application/html+xml", "text/x-oeb1-document"))
_SELF_CLOSED = re.compile(rb"<([A-Za-z][\w:-]*+)([^<>]*?)/>")
_VOID = frozenset((b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"source", b"track", b"wbr"))
_OUTSIDE = re.compile(r"[A-Za-z][\w+.-]*:|//")
_NO_TITLE = frozenset(("nav", "ul", "ol", "dl", "table", "blockquote", "figure"))
_DAMAGE = (*DAMAGE, ValueError, NotImplementedError, RuntimeError)


@reader("epub", suffixes=(".epub",), whole=True, contained=True)
def read(source: Source) -> Iterator[Document]:
    """Electronic books: the pages in their order, read as HTML."""
    book = _Book(source)
    pages = [_parsed(source, name, data) for name in book.spine if (data := book.member(name)) is not None]
    if not pages:
        raise UnreadableFile("is a book without pages; replace it", path=source.path)
    title, heading = _title(book.title, pages)
    language = book.language or source.language
    builder = TreeBuilder(source.id, title=title, language=language, metadata=book.metadata)
    add_pages(source, builder, ((page, _language(page) or language) for page in pages), heading)
    yield source.finish(builder)
    if book.missing:
        problem = UnreadableFile(f"lacks {len(book.missing)} of its pages ({book.missing[0]}); the others were read", path=source.path)
        problem.partly = True
        raise problem


class _Book:
    """The package of a book. Only members of the zip are read, whatever a name looks like."""

    def __init__(self, source: Source) -> None:
        data = source.data()
        self._path, self._size = source.path, len(data)
        self._left = min(MAX_BYTES, source.limits.memory // MEMORY_PER_BYTE)
        self._bound = Bound(source.path, lambda: self._size)
        self.missing: list[str] = []
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except _DAMAGE as error:
            raise unreadable(source.path, error) from error
        container = self._xml(_CONTAINER)
        package = next((unquote(path) for one in _named(container, "rootfile") if (path := one.get("full-path"))), "")
        self._read_package(self._xml(package), posixpath.dirname(package))
        self._refuse_encrypted()

    def member(self, name: str) -> bytes | None:
        """The bytes of a member; None, and a note in `missing`, if the book has no such member."""
        try:
            info = self._archive.getinfo(name)
        except KeyError:
            self.missing.append(name)
            return None
        if refusal := zip_refusal(info):
            raise UnreadableFile(refusal, path=f"{self._path}/{name}")
        try:
            packed = min(info.compress_size, self._size)
            with BoundedStream(self._archive.open(info), Bound(f"{self._path}/{name}", lambda: packed, self._bound)) as stream:
                data = read_up_to(stream, self._left + 1)
        except _DAMAGE as error:
            raise unreadable(f"{self._path}/{name}", error) from error
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableFile("has pages that take too much memory; allow more (--file-memory), or split the book", path=self._path)
        return data

    def _xml(self, name: str) -> etree._Element:
        data = self.member(name)
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True)
        try:
            if data is None:
                raise UnreadableFile(f"is no book: it lacks {name or 'a package file'}; replace it", path=self._path)
            return etree.fromstring(data, parser)
        except (etree.LxmlError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise UnreadableFile(f"cannot be read as XML ({reason}); replace the book", path=f"{self._path}/{name}") from None

    def _read_package(self, package: etree._Element, folder: str) -> None:
        self.title = next(iter(_texts(package, "title")), "")
        self.language = next(filter(None, map(language_or_nothing, _texts(package, "language"))), "")
        self.metadata: dict[str, Any] = {}
        for element, name in (("creator", "author"), ("subject", "subject")):
            if values := _texts(package, element):
                self.metadata[name] = values
        if dates := _texts(package, "date"):
            self.metadata["date"] = dates[0][:10]
        items = {item.get("id"): item for item in _named(package, "item")}
        spine: dict[str, None] = {}
        for reference in _named(package, "itemref"):
            item = items.get(reference.get("idref"))
            # The table of contents repeats the headings.
            if item is not None and item.get("media-type") in _PAGES and "nav" not in (item.get("properties") or "").split():
                spine[posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "").partition("#")[0]))] = None
        self.spine = list(spine)

    def _refuse_encrypted(self) -> None:
        if _ENCRYPTED not in self._archive.NameToInfo:
            return
        encrypted = {unquote(one.get("URI") or "") for one in _named(self._xml(_ENCRYPTED), "CipherReference")}
        if not encrypted.isdisjoint(self.spine):
            raise UnreadableFile("is encrypted; a book with copy protection cannot be read", path=self._path)


def _parsed(source: Source, name: str, data: bytes) -> lxml_html.HtmlElement:
    """The body of a page. XHTML may close any element at once, which the parser of HTML does not know."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data.decode("utf-16", "replace").encode()
    data = _SELF_CLOSED.sub(lambda tag: tag[0] if tag[1].lower() in _VOID else b"<%b%b></%b>" % (tag[1], tag[2], tag[1]), data)
    if not data.strip():
        return lxml_html.Element("body")
    root = parse(replace(source, path=f"{source.path}/{name}", content=data))
    clear_hidden(root)
    body = root.find("body")
    page = root if body is None else body
    if language := _language(page) or _language(root):
        page.set("lang", language)
    for link in page.iter("a"):
        # A link to another page of the book is a reference inside the document.
        if (href := (link.get("href") or "").strip()) and not _OUTSIDE.match(href):
            link.set("href", f"#{href.partition('#')[2]}")
    return page


def _language(page: lxml_html.HtmlElement) -> str:
    return language_or_nothing(page.get("lang") or page.get("xml:lang") or "")


def _title(stated: str, pages: list[lxml_html.HtmlElement]) -> tuple[str, lxml_html.HtmlElement | None]:
    """The title of the book, or the first heading of the book if it repeats the title."""
    heading = next((heading for page in pages for heading in page.iter(*HEADINGS)), None)
    if heading is None or not stated or " ".join(str(heading.text_content()).split()).casefold() != stated.casefold():
        return stated, None
    return (stated, None) if any(parent.tag in _NO_TITLE for parent in heading.iterancestors()) else ("", heading)


def _named(root: etree._Element, name: str) -> list[etree._Element]:
    return [one for one in root.iter("{*}" + name) if isinstance(one.tag, str)]


def _texts(root: etree._Element, name: str) -> list[str]:
    return [text for one in _named(root, name) if (text := " ".join("".join(map(str, one.itertext())).split()))]
