"""Markdown (CommonMark with tables and strikethrough): headings open nested sections, blocks become passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.formats import Source, reader
from perikope.formats._inline import Inline, link_target
from perikope.formats._source import language_or_nothing

MAX_NESTING = 100
"""The deepest nesting of lists and quotations. The parser would drop deeper levels silently, so they are an error."""

_PARSER = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
_MARKS = {"em": "it", "strong": "b", "s": "s", "link": "link"}
_CONTAINERS = ("bullet_list", "ordered_list", "blockquote", "table")


@reader("markdown", suffixes=(".md", ".markdown"))
def read(source: Source) -> Iterator[Document]:
    """Markdown with tables and front matter; headings become nested sections."""
    front, text = front_matter(source.text())
    tokens = _PARSER.parse(text)
    if any(token.nesting == 1 and token.level >= MAX_NESTING - 1 for token in tokens):
        raise UnreadableFile(f"lists or quotations are nested deeper than {MAX_NESTING}; flatten them", path=source.path)
    yield source.finish(_MarkdownReader(source, front).build(tokens))


class _MarkdownReader:
    """Builds spans from the flat list of tokens of the Markdown parser."""

    def __init__(self, source: Source, front: dict[str, object]) -> None:
        self.source = source
        self.front_title = _taken(front, "title")
        language = language_or_nothing(str(front.get("language", "")))
        if language:
            del front["language"]
        self.builder = TreeBuilder(
            _taken(front, "id") or source.id, title=self.front_title, language=language or source.language, metadata=front
        )
        self.inline = Inline()
        self.slugs: set[str] = set()
        self.containers = 0
        self.items_opened: list[bool] = []
        self.tag = "p"
        self.cells = 0

    def build(self, tokens: Sequence[Token]) -> TreeBuilder:
        title_at = _title_at(tokens)
        for number, token in enumerate(tokens):
            match token.type:
                case "inline":
                    self.add_inline(token.children or [])
                case "heading_close" if number == title_at + 2 and self.is_title(tokens[title_at + 1]):
                    self.title()
                case "heading_close":
                    self.heading(int(token.tag[1:]))
                case "list_item_open":
                    self.open_item(_is_loose(tokens, number))
                case _:
                    self.block(token)
        return self.builder

    def block(self, token: Token) -> None:
        name, _, edge = token.type.rpartition("_")
        if name in _CONTAINERS:
            self.open_container(token.tag) if edge == "open" else self.close_container()
        match token.type:
            case "paragraph_open":
                self.tag = "li" if token.hidden else "p"
            case "paragraph_close":
                self.passage(self.tag)
            case "list_item_close":
                if self.items_opened.pop():
                    self.close_container()
            case "tr_open":
                self.cells = 0
            case "th_open" | "td_open":
                self.inline.text(" | " if self.cells else "")
                self.cells += 1
            case "tr_close":
                self.passage("tr")
            case "fence" | "code_block":
                self.inline.text(token.content, keep=True)
                self.passage("pre", keep=True)
            case "html_block":
                self.inline.text(_html_text(token.content))
                self.passage("html")

    def open_container(self, tag: str) -> None:
        self.builder.open(Kind.ELEMENT, tag)
        self.containers += 1

    def close_container(self) -> None:
        self.builder.close()
        self.containers -= 1

    def open_item(self, loose: bool) -> None:
        # An item of a tight list is one passage. Other blocks in it follow, because a passage cannot hold blocks.
        self.items_opened.append(loose)
        if loose:
            self.open_container("li")

    def passage(self, tag: str, *, keep: bool = False) -> None:
        run = self.inline.take(keep=keep)
        if run.text.strip(" |"):
            self.builder.passage(run.text, tag, marks=run.marks, refs=run.refs)

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

    def add_inline(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            name, _, edge = token.type.rpartition("_")
            if name in _MARKS:
                self.inline.open(_MARKS[name], self.link(token)) if edge == "open" else self.inline.close()
            elif token.type == "code_inline":
                self.inline.open("code")
                self.inline.text(token.content)
                self.inline.close()
            elif token.type == "image":
                self.inline.text(_alternative(token))
            elif token.type in ("softbreak", "hardbreak") or token.content.lower().startswith("<br"):
                self.inline.text(" ")
            elif token.type == "text":
                self.inline.text(token.content)

    def link(self, token: Token) -> str:
        inside, cited = link_target(str(token.attrs.get("href", "")), self.source.id)
        if cited and cited not in self.builder.cites:
            self.builder.cites.append(cited)
        return inside


def _title_at(tokens: Sequence[Token]) -> int:
    """The index of the token that opens the document's title; -3, which matches no token, if there is no title.

    The title is the only heading of level 1, if no text comes before it.
    """
    first = next((i for i, token in enumerate(tokens) if token.type != "html_block" or _html_text(token.content).strip()), -1)
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


def _alternative(image: Token) -> str:
    breaks = {"softbreak": " ", "hardbreak": " "}
    children = image.children or []
    return "".join(_alternative(child) if child.type == "image" else breaks.get(child.type, child.content) for child in children)


def front_matter(text: str) -> tuple[dict[str, object], str]:
    r"""Return the front matter (the `key: value` lines between two `---` at the top) and the text after it.

    >>> front_matter("---\ntitle: Pumps\ntags: [a, 'b c']\n---\nText")
    ({'title': 'Pumps', 'tags': ['a', 'b c']}, 'Text')
    """
    match = re.match(r"---[ \t]*\n(\s*[\w.-]+[ \t]*:.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", text, re.DOTALL)
    if match is None:
        return {}, text
    values: dict[str, object] = {}
    key = ""
    for line in match[1].splitlines():
        item = re.match(r"[ \t]*- +(.*)", line)
        pair = re.match(r"([\w.-]+)[ \t]*:(?:[ \t]+(.*))?$", line)
        if pair:
            key = pair[1]
            values[key] = _value(pair[2] or "")
        elif item and key and (values[key] == "" or isinstance(values[key], list)):
            values[key] = [*(values[key] or []), _unquoted(item[1])]  # type: ignore[misc]
    return {key: value for key, value in values.items() if value != ""}, text[match.end() :]


def _value(text: str) -> object:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_unquoted(item) for item in text[1:-1].split(",") if item.strip()]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _taken(values: dict[str, object], key: str) -> str:
    value = values.pop(key, "")
    return value if isinstance(value, str) else ", ".join(map(str, value)) if isinstance(value, list) else ""


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


def _html_text(html: str) -> str:
    stripper = _TagStripper()
    stripper.feed(html)
    stripper.close()
    return "".join(stripper.pieces)
