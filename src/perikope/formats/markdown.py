"""Markdown (CommonMark with tables and strikethrough): headings open nested sections, blocks become passages.

A table is a section with the header row as its title, so that every row has the names of its columns in its heading
path. Long blocks of code are cut into several passages.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from perikope.core.errors import InputWarning, UnreadableFile
from perikope.document.pieces import CODE, natural_pieces
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.formats import Source, reader
from perikope.formats._code import CODE_LANGUAGE
from perikope.formats._front_matter import front_matter
from perikope.formats._inline import Inline, link_target
from perikope.formats._simple_inline import InlineToken, simple_inline
from perikope.formats._source import language_or_nothing

MAX_NESTING = 100
"""The deepest nesting of lists and quotations. The parser would drop deeper levels silently, so they are an error."""

_MARKUP = re.compile(r"[\\`*_~\[<&]")
"""The characters that begin inline markup. A text without them needs no parser."""
_MARKS = {"em": "it", "strong": "b", "s": "s", "link": "link"}
_CONTAINERS = {"bullet_list_open": "ul", "ordered_list_open": "ol", "blockquote_open": "blockquote"}
_CLOSED = frozenset(("bullet_list_close", "ordered_list_close", "blockquote_close", "table_close"))


def _plain_paragraph(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A rule for the parser that recognises a paragraph all of whose lines begin with a letter.

    No other rule matches such lines. Most text is of this kind, and the parser would try ten rules for each of its
    blocks, and seven for each of its lines. Returns whether the rule has matched.
    """
    source, begins, shifts, ends = state.src, state.bMarks, state.tShift, state.eMarks
    line = first
    while line < last:
        begin = begins[line] + shifts[line]
        if begin >= ends[line]:
            break
        if not source[begin].isalpha() or not 0 <= state.sCount[line] - state.blkIndent < 4:
            return False
        line += 1
    if silent or line == first:
        return False
    content = state.getLines(first, line, state.blkIndent, False).strip()
    state.line = line
    opened = state.push("paragraph_open", "p", 1)
    opened.map = [first, line]
    inline = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = content, [first, line], []
    state.push("paragraph_close", "p", -1)
    return True


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    parser.block.ruler.before("table", "plain_paragraph", _plain_paragraph)
    # The reader parses inline markup itself, and only where there is any.
    return parser.disable(["inline", "text_join"])


_PARSER = _parser()


@reader("markdown", suffixes=(".md", ".markdown"), whole=True)
def read(source: Source) -> Iterator[Document]:
    """Markdown with tables and front matter; headings become nested sections."""
    front = front_matter(source.text())
    if front.problem:
        warnings.warn(InputWarning(f"the front matter is {front.problem}", path=source.path, line=front.line), stacklevel=2)
    env: dict[str, Any] = {}
    tokens = _PARSER.parse(front.text, env)
    if any(token.nesting == 1 and token.level >= MAX_NESTING - 1 for token in tokens):
        raise UnreadableFile(f"lists or quotations are nested deeper than {MAX_NESTING}; flatten them", path=source.path)
    yield source.finish(_MarkdownReader(source, front.values, env).build(tokens))


class _MarkdownReader:
    """Builds spans from the flat list of tokens of the Markdown parser."""

    def __init__(self, source: Source, front: dict[str, Any], env: dict[str, Any]) -> None:
        self.source, self.env = source, env
        self.front_title = _taken(front, "title")
        language = next(filter(None, (language_or_nothing(str(front.get(key, ""))) for key in ("language", "lang"))), "")
        if language:
            front = {key: value for key, value in front.items() if key not in ("language", "lang")}
        self.builder = TreeBuilder(
            _taken(front, "id") or source.id, title=self.front_title, language=language or source.language, metadata=front
        )
        self.inline = Inline()
        self.slugs: set[str] = set()
        self.code_languages: dict[str, None] = {}
        self.containers = 0
        self.items_opened: list[bool] = []
        self.tag = "p"
        self.cells = 0
        self.in_header = False
        self.title_at = -3
        self.tokens: Sequence[Token] = ()

    def build(self, tokens: Sequence[Token]) -> TreeBuilder:
        self.tokens, self.title_at = tokens, _title_at(tokens)
        for number, token in enumerate(tokens):
            if add := _BLOCKS.get(token.type):
                add(self, number, token)
        if self.code_languages:
            self.builder.metadata.setdefault(CODE_LANGUAGE, list(self.code_languages))
        return self.builder

    def open_block(self, number: int, token: Token) -> None:
        self.open_container(Kind.ELEMENT, _CONTAINERS[token.type])

    def close_block(self, number: int, token: Token) -> None:
        self.close_container()

    def open_container(self, kind: Kind, tag: str) -> None:
        self.builder.open(kind, tag)
        self.containers += 1

    def close_container(self) -> None:
        self.builder.close()
        self.containers -= 1

    def open_item(self, number: int, token: Token) -> None:
        # An item of a tight list is one passage. Other blocks in it follow, because a passage cannot hold blocks.
        loose = _is_loose(self.tokens, number)
        self.items_opened.append(loose)
        if loose:
            self.open_container(Kind.ELEMENT, "li")

    def close_item(self, number: int, token: Token) -> None:
        if self.items_opened.pop():
            self.close_container()

    def open_paragraph(self, number: int, token: Token) -> None:
        self.tag = "li" if token.hidden else "p"

    def close_paragraph(self, number: int, token: Token) -> None:
        self.passage(self.tag)

    def open_table(self, number: int, token: Token) -> None:
        self.in_header = _has_header(self.tokens, number)
        self.open_container(Kind.SECTION if self.in_header else Kind.ELEMENT, "table")

    def open_row(self, number: int, token: Token) -> None:
        self.cells = 0

    def open_cell(self, number: int, token: Token) -> None:
        self.inline.text(" | " if self.cells else "")
        self.cells += 1

    def close_row(self, number: int, token: Token) -> None:
        if not self.in_header:
            self.passage("tr")
            return
        self.in_header = False
        run = self.inline.take()
        self.builder.title(run.text)
        for target in run.refs:
            self.builder.refer(target)

    def code(self, number: int, token: Token) -> None:
        self.inline.text(token.content, keep=True)
        text = self.inline.take(keep=True).text
        if text.strip():
            self.builder.divided(text, natural_pieces(text), CODE, holder="pre")
            if language := _code_language(token.info):
                self.code_languages[language] = None

    def html(self, number: int, token: Token) -> None:
        self.inline.text(html_text(token.content))
        self.passage("html")

    def passage(self, tag: str) -> None:
        run = self.inline.take()
        if run.text.strip(" |"):
            self.builder.passage(run.text, tag, marks=run.marks, refs=run.refs)

    def close_heading(self, number: int, token: Token) -> None:
        if number == self.title_at + 2 and self.is_title(self.tokens[self.title_at + 1]):
            self.title()
        else:
            self.heading(int(token.tag[1:]))

    def heading(self, level: int) -> None:
        if self.containers:
            # A section cannot begin inside a list or a quotation and continue after it.
            self.passage(f"h{level}")
            return
        run = self.inline.take()
        if run.text:
            self.builder.heading(level, run.text, id=self.slug(run.text))
            for target in run.refs:
                self.builder.refer(target)
        else:
            self.builder.close_headings(level)

    def is_title(self, heading: Token) -> bool:
        return not self.front_title or heading.content.strip().casefold() == self.front_title.casefold()

    def title(self) -> None:
        run = self.inline.take()
        self.slug(run.text)
        if run.text and not self.front_title:
            self.builder.title(run.text)

    def slug(self, heading: str) -> str:
        """The id that GitHub gives a heading; if it is taken, a number is appended."""
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        slug, count = plain, 0
        while slug in self.slugs:
            count += 1
            slug = f"{plain}-{count}"
        self.slugs.add(slug)
        return slug

    def add_inline(self, number: int, block: Token) -> None:
        content = block.content
        if not _MARKUP.search(content):
            self.inline.text(content)
        elif tokens := simple_inline(content):
            self.add_simple(tokens)
        else:
            self.add_parsed(_PARSER.inline.parse(content, _PARSER, self.env, []))

    def add_simple(self, tokens: list[InlineToken]) -> None:
        inline = self.inline
        for kind, text, href in tokens:
            if kind == "text":
                inline.text(text)
                continue
            if href:
                inline.open("link", self.link(href))
            if kind != "link":
                inline.open(kind.removesuffix("_link"))
            inline.text(text)
            if kind != "link":
                inline.close()
            if href:
                inline.close()

    def add_parsed(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            name, _, edge = token.type.rpartition("_")
            if name in _MARKS:
                href = str(token.attrs.get("href", ""))
                self.inline.open(_MARKS[name], self.link(href) if href else "") if edge == "open" else self.inline.close()
            elif token.type == "code_inline":
                self.inline.open("code")
                self.inline.text(token.content)
                self.inline.close()
            elif token.type == "image":
                self.inline.text(_alternative(token))
            elif token.type in ("softbreak", "hardbreak") or token.content.lower().startswith("<br"):
                self.inline.text(" ")
            elif token.type in ("text", "text_special"):
                self.inline.text(token.content)

    def link(self, href: str) -> str:
        inside, cited = link_target(href, self.source.id)
        if cited and cited not in self.builder.cites:
            self.builder.cites.append(cited)
        return inside


_BLOCKS: dict[str, Callable[[_MarkdownReader, int, Token], None]] = {
    "inline": _MarkdownReader.add_inline,
    "heading_close": _MarkdownReader.close_heading,
    "list_item_open": _MarkdownReader.open_item,
    "list_item_close": _MarkdownReader.close_item,
    "paragraph_open": _MarkdownReader.open_paragraph,
    "paragraph_close": _MarkdownReader.close_paragraph,
    "table_open": _MarkdownReader.open_table,
    "tr_open": _MarkdownReader.open_row,
    "th_open": _MarkdownReader.open_cell,
    "td_open": _MarkdownReader.open_cell,
    "tr_close": _MarkdownReader.close_row,
    "fence": _MarkdownReader.code,
    "code_block": _MarkdownReader.code,
    "html_block": _MarkdownReader.html,
    **dict.fromkeys(_CONTAINERS, _MarkdownReader.open_block),
    **dict.fromkeys(_CLOSED, _MarkdownReader.close_block),
}
"""The method that adds a token, by the token's type; it gets the number of the token, too."""


def _title_at(tokens: Sequence[Token]) -> int:
    """The index of the token that opens the document's title; -3, which matches no token, if there is no title.

    The title is the only heading of level 1, if no text comes before it.
    """
    first = next((i for i, token in enumerate(tokens) if token.type != "html_block" or html_text(token.content).strip()), -1)
    headings = [i for i, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h1" and token.level == 0]
    return first if headings == [first] else -3


def _is_loose(tokens: Sequence[Token], item: int) -> bool:
    level = tokens[item].level
    for number in range(item + 1, len(tokens)):
        token = tokens[number]
        if token.level <= level:
            return False
        if token.type == "paragraph_open" and token.level == level + 1:
            return not token.hidden
    return False


def _has_header(tokens: Sequence[Token], table: int) -> bool:
    """Whether a table has a row before its body that is not empty, and a body."""
    has_text = False
    for number in range(table + 1, len(tokens)):
        token = tokens[number]
        has_text = has_text or (token.type == "inline" and bool(token.content.strip()))
        if token.type == "thead_close":
            return has_text and tokens[number + 1].type == "tbody_open"
    return False


def _code_language(info: str) -> str:
    r"""The programming language in the first line of a fenced block.

    >>> [_code_language(info) for info in ("python title=a.py", "{.Rust .numberLines}", "js{1,3}", "rust,ignore", "")]
    ['python', 'rust', 'js', 'rust', '']
    """
    words = re.findall(r"[\w+#-]+", info.partition(" ")[0])
    return words[0].lower() if words else ""


def _alternative(image: Token) -> str:
    breaks = {"softbreak": " ", "hardbreak": " "}
    children = image.children or []
    return "".join(_alternative(child) if child.type == "image" else breaks.get(child.type, child.content) for child in children)


def _taken(values: dict[str, Any], key: str) -> str:
    """Remove a key and return its value as text; a list becomes its items with commas between them."""
    value = values.pop(key, "")
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if isinstance(value, dict) else str(value)


class _TagStripper(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.hidden = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.hidden = tag in ("script", "style")
        self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = False
        self.pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.pieces.append(data)


def html_text(html: str) -> str:
    """The text of a piece of HTML, without scripts."""
    stripper = _TagStripper()
    stripper.feed(html)
    stripper.close()
    return "".join(stripper.pieces)
