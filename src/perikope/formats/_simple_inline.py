"""Inline Markdown that a regular expression can read: plain text, code, emphasis and links that are not nested.

The Markdown parser needs 50 µs for a paragraph with one word in bold, a third of the time for a typical page. Most
paragraphs are of the simple kind below. For them this module finds exactly what the parser finds; a test compares the
two. For all other text it finds nothing, and the parser reads it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_PLAIN = r"[^\\`*_~\[\]<&!]"
_WORD = r"[^\W_]"
# Underscores inside a word and a single tilde are plain text.
_INNER = rf"(?:{_PLAIN}++|(?<={_WORD})_++(?={_WORD}))*+"
# Emphasis begins before a letter or digit. It ends after one or, before white space, after any other character.
_CLOSED = rf"(?:(?<={_WORD})|(?<=\S)(?=\*\*?(?!\S)))"
_CODE = r"`(?!`)(?P<{name}>[^`\s](?:[^`]*[^`\s])?)`(?!`)"
_TOKEN = re.compile(
    rf"(?P<text>(?:{_PLAIN}++|\]|!(?!\[)|(?<={_WORD})_++(?={_WORD})|(?<!~)~(?!~))++)"
    rf"|{_CODE.format(name='code')}"
    rf"|\*\*(?!\*)(?={_WORD})(?P<b>{_INNER}){_CLOSED}\*\*(?!\*)"
    rf"|\*(?!\*)(?={_WORD})(?P<it>{_INNER}){_CLOSED}\*(?!\*)"
    rf"|\[(?:(?P<link>{_PLAIN}++)|{_CODE.format(name='code_link')})\]"
    r"\((?P<href>(?:https?://)?[A-Za-z0-9./#?=,+_-]+)\)"
)


class InlineToken(NamedTuple):
    """A piece of inline text."""

    kind: str
    """`text`, `code`, `b`, `it`, `link`, or `code_link` for code inside a link."""
    text: str
    href: str


def simple_inline(content: str) -> list[InlineToken] | None:
    """The pieces of an inline text; None if it is not of the simple kind.

    >>> [tuple(token) for token in simple_inline("**Note:** see [the pump](a.md), my_pump")]
    [('b', 'Note:', ''), ('text', ' see ', ''), ('link', 'the pump', 'a.md'), ('text', ', my_pump', '')]
    >>> simple_inline("a *b* **c *d* e**"), simple_inline("a * b"), simple_inline("&amp;")
    (None, None, None)
    """
    tokens: list[InlineToken] = []
    at = 0
    while at < len(content):
        match = _TOKEN.match(content, at)
        if match is None:
            return None
        kind = match.lastgroup or ""
        if kind == "href":
            kind = "link" if match["link"] else "code_link"
        tokens.append(InlineToken(kind, match[kind], match["href"] or ""))
        at = match.end()
    return tokens
