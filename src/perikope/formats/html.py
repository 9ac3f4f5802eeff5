"""HTML: headings open nested sections, blocks and loose text become passages, and marked boilerplate is left out.

A table with a header is a section with the header rows as its title, so that every row has the names of its columns in
its heading path. Long `pre` blocks are cut into several passages.

The section of a heading ends at the next heading of the same level or above, or with the `section`, `article`, `aside`,
`nav` or `main` around it. Hidden elements, buttons and other controls are left out.

The page is traversed by events and not by recursion, so that nesting cannot exhaust the stack. The parser refuses more
than about 250 levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, cast

from lxml import etree, html

from perikope.core.errors import UnreadableFile
from perikope.document.pieces import CODE, natural_pieces
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.formats import Source, reader
from perikope.formats._code import CODE_LANGUAGE, LONGEST_HEADER
from perikope.formats._formulas import mathml_text
from perikope.formats._inline import Inline, Run, link_target
from perikope.formats._source import is_running_number, language_or_nothing

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BOILERPLATE = frozenset(("nav", "footer", "aside"))
_SECTIONING = frozenset(("article", "aside", "main", "nav", "section"))
_CONTROLS = frozenset(("datalist", "input", "optgroup", "option", "select", "textarea"))
_SKIPPED = frozenset((
    "annotation", "annotation-xml", "canvas", "head", "iframe", "noscript", "script", "style", "svg", "template", "title", *_CONTROLS,
))  # fmt: skip
_CONTAINERS = frozenset(("ul", "ol", "dl", "table", "blockquote", "figure"))
_BLOCKS = frozenset((
    "address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dt", "fieldset", "figcaption",
    "footer", "form", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "p", "pre", "search", "section", "summary",
    "tbody", "td", "tfoot", "th", "thead", "tr", *_CONTAINERS, *HEADINGS,
))  # fmt: skip
_MARKS = {
    "b": "b", "strong": "b", "i": "it", "em": "it", "a": "link", "code": "code", "kbd": "code", "samp": "code", "sub": "sub", "sup": "sup",
}  # fmt: skip
# "descendant::x" is used, because ".//x" takes libxml2 quadratic time if x is nested in x.
_VISIBLE_TEXT = etree.XPath(f"descendant::text()[not({' or '.join(f'ancestor::{tag}' for tag in sorted(_SKIPPED))})]")
# Buttons inside headings are kept: the button that folds a section holds the section's title.
_BUTTONS = etree.XPath(f"descendant::button[not({' or '.join(f'ancestor::{tag}' for tag in HEADINGS)})]")
_PERHAPS_HIDDEN = etree.XPath("descendant::*[@hidden or @aria-hidden or @style][not(self::body or self::main)]")
_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\s*(?:[;!]|$)", re.IGNORECASE)
_MARKS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_DECLARED_UTF16 = re.compile(
    rb"<meta\b[^>]{0,1000}charset\s*=\s*[\"']?\s*(?:utf-?(?:16|32)(?:[lb]e)?|ucs-?[24]|iso-10646-ucs-[24]|(?:cs)?unicode)\b", re.IGNORECASE
)
_METADATA = frozenset(("author", "description", "keywords", "date"))
_CODE_CLASS = re.compile(r"(?:language|lang|highlight-source|highlight)-(?P<name>[\w+#-]+)", re.IGNORECASE)
_PERHAPS_NUMBERS = frozenset(("a", "div", "span", "sup"))
_LINE_NUMBER = re.compile(r"(?:^|[\s-])line-?(?:num(?:ber)?|nr|no)\b", re.IGNORECASE)
"""Classes of the numbers of lines, such as those of a poem."""
_LONGEST_NUMBER = 20
"""The most characters of the number of a page, or of an arrow that leads back."""
_NO_LANGUAGES = frozenset(("", "default", "none", "notranslate", "text", "plaintext"))


@reader("html", suffixes=(".html", ".htm", ".xhtml"), whole=True)
def read(source: Source) -> Iterator[Document]:
    """HTML pages; headings become nested sections, navigation is left out if the page marks main or article."""
    root = parse(source)
    clear_hidden(root)
    roots = _content(root)
    title, title_heading = _title(root, roots)
    language = _language(root) or source.language
    builder = TreeBuilder(source.id, title=title, language=language, metadata=_metadata(root))
    page = _HtmlReader(source, builder, title_heading, _BOILERPLATE if roots[0].tag not in ("body", "html") else frozenset())
    for element in roots:
        page.read(element, next(filter(None, map(_language, element.iterancestors())), language))
    if page.code_languages:
        builder.metadata[CODE_LANGUAGE] = list(page.code_languages)
    yield source.finish(builder)


def add_pages(source: Source, builder: TreeBuilder, pages: Iterable[tuple[html.HtmlElement, str]], title: html.HtmlElement | None) -> None:
    """Add several pages to one document, as in a book: bodies with their languages.

    A section stays open at the end of a page. `title` is the heading that is the title of the document.
    """
    reading = _HtmlReader(source, builder, title, frozenset(("nav",)))
    for page, language in pages:
        reading.read_open(page, language)
    builder.close_headings()
    if reading.code_languages:
        builder.metadata[CODE_LANGUAGE] = list(reading.code_languages)


def parse(source: Source) -> html.HtmlElement:
    """The root of a page. Raises `UnreadableFile` if it is not HTML, or nested too deeply."""
    data = source.data()
    if b"\0" in data and not data.startswith(_MARKS_OF_UTF16):
        raise UnreadableFile("is not HTML: it holds zero bytes; remove it or convert it", path=source.path)
    parser = html.HTMLParser(remove_comments=True, remove_pis=True, no_network=True, huge_tree=False, encoding=_encoding(data))
    try:
        root = html.document_fromstring(data, parser=parser)
    except (etree.LxmlError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UnreadableFile(f"cannot be read as HTML ({reason}); check the file", path=source.path) from None
    # At its limits the parser stops and returns a partial page, which must not be taken for the whole page.
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise UnreadableFile("is nested too deeply or holds one text of over 10 MB; split or flatten the page", path=source.path)
    return root


def _encoding(data: bytes) -> str | None:
    # Valid non-ASCII UTF-8 is taken as UTF-8, whatever the page declares, because the parser would guess Latin-1. The
    # parser detects other encodings. A declaration of UTF-16 that can be read in single bytes is wrong; the HTML
    # standard takes UTF-8 then (https://html.spec.whatwg.org/#prescan-a-byte-stream-to-determine-its-encoding).
    if not data.startswith(_MARKS_OF_UTF16) and _DECLARED_UTF16.search(data):
        return "utf-8"
    if data.isascii():
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "utf-8"


def clear_hidden(root: html.HtmlElement) -> None:
    """Empty hidden elements and buttons, and change their tags to tags that are skipped."""
    # Body and main count as visible: if a page hides them, a script shows them later.
    perhaps = cast(list[html.HtmlElement], _PERHAPS_HIDDEN(root))
    buttons = cast(list[html.HtmlElement], _BUTTONS(root))
    for element, tag in [*((button, "input") for button in buttons), *((hidden, "template") for hidden in filter(_is_hidden, perhaps))]:
        tail = element.tail
        element.clear()
        element.tag, element.tail = tag, tail


def _is_hidden(element: html.HtmlElement) -> bool:
    # Text with hidden="until-found" is only folded, and a search is meant to find it.
    if (element.get("hidden") or "").strip().lower() != "until-found" and "hidden" in element.attrib:
        return True
    return (element.get("aria-hidden") or "").strip().lower() == "true" or bool(_HIDING_STYLE.search(element.get("style") or ""))


def _content(root: html.HtmlElement) -> list[html.HtmlElement]:
    """The elements that hold the content: `main`, else each outermost `article`, else `body`."""
    for path in ("descendant::*[self::main or @role='main']", "descendant::article"):
        candidates: list[html.HtmlElement] = root.xpath(path)
        inside = set(candidates)
        outermost = [element for element in candidates if inside.isdisjoint(element.iterancestors())]
        if any(_has_words(element) for element in outermost):
            return outermost
    body = root.find("body")
    return [root if body is None else body]


def _title(root: html.HtmlElement, roots: list[html.HtmlElement]) -> tuple[str, html.HtmlElement | None]:
    """The title of the page, and the heading that replaces it: (title, None) or ("", heading).

    A heading replaces the title if it is the only h1 and the first heading, and if the title is missing, contains the
    heading or is contained in it.
    """
    title = _collapsed(root.findtext(".//title") or "")
    headings = [heading for element in roots for heading in element.iter(*HEADINGS)]
    if not headings or [heading.tag for heading in headings].count("h1") != 1 or headings[0].tag != "h1":
        return title, None
    outside = _CONTAINERS | _BOILERPLATE | _SKIPPED
    if not _has_words(headings[0]) or any(parent.tag in outside for parent in headings[0].iterancestors()):
        return title, None
    # The title is often the heading plus the name of the site. The heading is then the better title.
    first, second = (" ".join(["", *re.findall(r"\w+", text.casefold()), ""]) for text in (title, headings[0].text_content()))
    return ("", headings[0]) if not title or first in second or second in first else (title, None)


def _metadata(root: html.HtmlElement) -> dict[str, object]:
    values_of_name: dict[str, list[str]] = {}
    for meta in root.iter("meta"):
        name, content = (meta.get("name") or "").strip().lower(), _collapsed(meta.get("content") or "")
        if name in _METADATA and content:
            values = filter(None, map(str.strip, content.split(","))) if name == "keywords" else [content]
            values_of_name.setdefault(name, []).extend(values)
    return {name: values if len(values) > 1 or name == "keywords" else values[0] for name, values in values_of_name.items()}


def _number(element: html.HtmlElement) -> Literal["skip", "apart", "line"] | None:
    """What to do with the number that an element adds to the text: leave it out, or keep it apart from other words.

    Left out are numbers of printed pages, which may stand inside a word, and arrows that lead back from a note. Kept
    apart are numbers of notes and of lines. ARIA (`role`), EPUB (`epub:type`), raised links and classes tell them.
    """
    if element.tag == "sup":
        return "apart" if element.find("a") is not None else None
    roles = f"{element.get('role') or ''} {element.get('epub:type') or ''}".replace("doc-", "").split()
    if "pagebreak" in roles or "backlink" in roles:
        # An empty element that is not closed holds the text after it.
        return "skip" if len(str(element.text_content())) <= _LONGEST_NUMBER else None
    raised = element.find("sup") if element.tag == "a" and len(element) == 1 else None
    is_raised = raised is not None and not f"{element.text or ''}{raised.tail or ''}".strip()
    if element.tag == "span" and _LINE_NUMBER.search(element.get("class") or ""):
        return "line"
    return "apart" if is_raised or "noteref" in roles else None


def _language(element: html.HtmlElement) -> str:
    return language_or_nothing(element.get("lang") or element.get("xml:lang") or "")


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _has_words(element: html.HtmlElement) -> bool:
    texts = cast(list[str], _VISIBLE_TEXT(element))
    return any(character.isalnum() for text in texts for character in text)


def _is_layout(table: html.HtmlElement) -> bool:
    """Whether a table is used for layout: it holds headings or other tables."""
    return any(inner is not table for inner in table.iter("table", *HEADINGS))


def _header_rows(table: html.HtmlElement) -> list[html.HtmlElement]:
    """The rows at the top of a table that name its columns: those in `thead`, else those with `th` cells only.

    Empty if no row with text follows them, or if they are too long for the names of columns.
    """
    header: list[html.HtmlElement] = []
    in_head = False
    for row in filter(_has_words, table.iter("tr")):
        is_in_head = next((parent.tag for parent in row.iterancestors()), "") == "thead"
        if not is_in_head and (in_head or not _names_columns(row)):
            length = sum(len(_collapsed(str(row.text_content()))) for row in header)
            return header if length <= LONGEST_HEADER else []
        header.append(row)
        in_head = in_head or is_in_head
    return []


def _names_columns(row: html.HtmlElement) -> bool:
    """Whether a row has `th` cells, and no other cell with text."""
    cells = list(filter(_has_words, row.iterchildren("td", "th")))
    return bool(cells) and all(cell.tag == "th" for cell in cells)


def _code_language(block: html.HtmlElement) -> str:
    """The programming language in a class of a `pre`, of the `code` in it, or of one of the two elements around it."""
    parents = [parent for parent, _ in zip(block.iterancestors(), range(2), strict=False)]
    for element in (block, *block.iterchildren("code"), *parents):
        for name in (element.get("class") or "").split():
            if (match := _CODE_CLASS.fullmatch(name)) and match["name"].lower() not in _NO_LANGUAGES:
                return match["name"].lower()
    return ""


@dataclass(slots=True)
class _Frame:
    """An open block, with the tag, language and id for the passage of the text directly inside it."""

    tag: str
    language: str
    id: str = ""
    is_element: bool = False
    first_span: int = 0
    """The number of the first span inside the block; a sectioning element closes the headings from there on."""
    header: list[html.HtmlElement] = field(default_factory=list)
    """The header rows of a table that were not read yet."""
    title: list[str] = field(default_factory=list)
    """The texts of the header rows that were read."""


class _HtmlReader:
    """Builds spans from the start and end events of elements."""

    def __init__(self, source: Source, builder: TreeBuilder, title_heading: html.HtmlElement | None, boilerplate: frozenset[str]) -> None:
        self.source, self.builder, self.title_heading = source, builder, title_heading
        self.skipped = _SKIPPED | boilerplate
        self.inline = Inline()
        self.frames: list[_Frame] = []
        self.ends: list[str] = []
        self.ids: set[str] = set()
        self.section_id = ""
        self.elements = 0
        self.whole: html.HtmlElement | None = None
        """The open row, heading or preformatted block, which inner blocks do not divide; None if there is none."""
        self.cells = 0
        self.code_languages: dict[str, None] = {}

    def read(self, root: html.HtmlElement, language: str) -> None:
        """Add the content of one element of the page, whose language is `language`."""
        self.read_open(root, language)
        self.builder.close_headings()

    def read_open(self, root: html.HtmlElement, language: str) -> None:
        """The same as `read`, but the sections of the last headings stay open."""
        self.frames = [_Frame("body", language)]
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            if event == "start":
                end = self.start(element)
                self.ends.append(end)
                if end == "skip":
                    walker.skip_subtree()
                else:
                    self.text(element.text)
            else:
                self.end(element, self.ends.pop())
                if element is not root:
                    self.text(element.tail)
        self.flush()

    def start(self, element: html.HtmlElement) -> str:
        """Open the spans of an element, and return a word that tells `end` how to close it; `skip` leaves it out."""
        tag = element.tag
        number = _number(element) if tag in _PERHAPS_NUMBERS else None
        if tag in self.skipped or number == "skip" or (tag == "a" and self.is_permalink(element)):
            if tag in _CONTROLS:
                self.inline.text(" ")  # a visible control separates words; a script or a hidden element does not
            return "skip"
        if tag == "math" or tag.endswith(":math"):
            self.inline.text(mathml_text(element))
            return "skip"
        if number is not None:
            self.inline.apart()
        if tag in _MARKS:
            self.inline.open(_MARKS[tag], self.link(element))
            return "mark"
        if tag not in _BLOCKS:
            self.replaced(element)
            return "number" if number == "line" else ""
        if self.whole is not None:
            self.inner_block(tag)
            return "inner"
        return self.open_block(element)

    def end(self, element: html.HtmlElement, end: str) -> None:
        match end:
            case "mark":
                self.inline.close()
            case "number":
                self.inline.apart()
            case "inner":
                self.inline.line() if self.in_pre else self.inline.text(" ")
            case "heading":
                self.heading(element)
                self.frames.pop()
            case "block":
                self.flush()
                frame = self.frames.pop()
                if frame.is_element:
                    self.builder.close()
                    self.elements -= 1
                elif frame.tag in _SECTIONING:
                    self.builder.close_headings(since=frame.first_span)

    def open_block(self, element: html.HtmlElement) -> str:
        self.flush()
        tag, id = str(element.tag), (element.get("id") or "").strip()
        frame = _Frame(tag, _language(element) or self.frames[-1].language, id, first_span=self.builder.next_span)
        self.frames.append(frame)
        if tag in _CONTAINERS and not (tag == "table" and _is_layout(element)):
            frame.is_element, frame.id = True, ""
            frame.header = _header_rows(element) if tag == "table" else []
            self.builder.open(Kind.SECTION if frame.header else Kind.ELEMENT, tag, id=self.claim(id), language=frame.language)
            self.elements += 1
        elif tag in ("tr", "pre", *HEADINGS) and not (tag == "tr" and self.in_layout_table):
            self.whole, self.cells = element, 0
        elif id:
            self.section_id = id
        return "heading" if tag in HEADINGS and not self.elements else "block"

    def is_permalink(self, link: html.HtmlElement) -> bool:
        return self.whole is not None and self.whole.tag in HEADINGS and not _has_words(link)

    def inner_block(self, tag: str) -> None:
        if self.in_pre:
            self.inline.line()
        elif tag in ("td", "th"):
            self.inline.text(" | " if self.cells else "")
            self.cells += 1
        else:
            self.inline.text(" ")

    def replaced(self, element: html.HtmlElement) -> None:
        if element.tag == "br":
            self.text("\n")
        elif element.tag == "img":
            self.inline.text(element.get("alt"))

    def link(self, element: html.HtmlElement) -> str:
        inside, cited = link_target(element.get("href") or "", self.source.id)
        if cited and cited not in self.builder.cites:
            self.builder.cites.append(cited)
        return inside

    def heading(self, element: html.HtmlElement) -> None:
        run = self.inline.take()
        self.whole = None
        frame = self.frames[-1]
        if element is self.title_heading:
            self.builder.title(run.text)
        elif run.text:
            # Many generators set the id on the `div` around the heading.
            id = self.claim(frame.id or self.section_id)
            self.builder.heading(int(element.tag[1]), run.text, id=id, language=frame.language)
            for target in run.refs:
                self.builder.refer(target)
        else:
            self.builder.close_headings(int(element.tag[1]))
        self.section_id = ""

    def flush(self) -> None:
        """Make a passage of the text collected since the last start or end of a block, if there is any."""
        run = self.inline.take(keep=self.in_pre)
        block, self.whole = self.whole, None
        if not run.text.strip(" |"):
            return
        frame = self.frames[-1]
        id, frame.id = self.claim(frame.id), ""
        self.section_id = ""
        if block is not None and block.tag == "pre":
            pieces = natural_pieces(run.text)
            self.builder.divided(run.text, pieces, CODE, holder="pre", id=id, language=frame.language, marks=run.marks, refs=run.refs)
            if language := _code_language(block):
                self.code_languages[language] = None
        elif not (block is not None and block.tag == "tr" and self.take_header(block, run, id)):
            self.builder.passage(run.text, frame.tag, id=id, language=frame.language, marks=run.marks, refs=run.refs)

    def take_header(self, row: html.HtmlElement, run: Run, id: str) -> bool:
        """Whether a row is a header row. The last one adds the title of the table."""
        table = next((frame for frame in reversed(self.frames) if frame.tag == "table"), None)
        if table is None or row not in table.header:
            return False
        table.header.remove(row)
        table.title.append(run.text)
        if not table.header:
            self.builder.title("\n".join(table.title))
        for target in run.refs:
            self.builder.refer(target)
        if id:
            self.builder.hold(id, self.builder.innermost)
        return True

    def claim(self, id: str) -> str:
        """Reserve an id and return it; empty if another element has it, or if it has the form of a running number."""
        if id in self.ids or is_running_number(id):
            return ""
        self.ids.add(id)
        return id

    def text(self, text: str | None) -> None:
        self.inline.text(text, keep=self.in_pre)

    @property
    def in_layout_table(self) -> bool:
        return next((not frame.is_element for frame in reversed(self.frames) if frame.tag == "table"), False)

    @property
    def in_pre(self) -> bool:
        return self.whole is not None and self.whole.tag == "pre"
