"""Splits topic files at their tags. TREC and CLEF-IP files are not XML (no root, unclosed tags); INEX files are XML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

from perikope.core.errors import InputError
from perikope.evaluation.io.lines import whole_text
from perikope.evaluation.io.topic import one_line

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_.-]{0,40})(?:\s[^<>]*)?>")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<\?[^<>]*\?>|<![A-Za-z][^<>]*>", re.DOTALL)
_CHARACTER = re.compile(r"&#?[A-Za-z0-9]{1,32};")


class TaggedText(NamedTuple):
    """A tag and the text between it and the next tag."""

    tag: str
    """The name in lower case, with a leading slash for a closing tag; empty for the text before the first tag."""
    text: str
    line: int
    """The line on which the tag ends."""

    @property
    def text_line(self) -> int:
        """The line on which the text begins, after leading white space."""
        return self.line + self.text[: len(self.text) - len(self.text.lstrip())].count("\n")


def pieces(path: Path) -> Iterator[TaggedText]:
    """Split a file at its tags. Comments and declarations are left out. A `<` that begins no tag is text."""

    def without(comment: re.Match[str]) -> str:
        if comment[0].startswith("<!--") and not comment[0].endswith("-->"):
            raise InputError("a comment (<!--) does not end", path=path, line=comment.string.count("\n", 0, comment.start()) + 1)
        # Line feeds stay, so that the text after the comment keeps its line number.
        return "\n" * comment[0].count("\n")

    text = _COMMENT.sub(without, whole_text(path))
    tag, begin, line = "", 0, 1
    for match in _TAG.finditer(text):
        yield TaggedText(tag, text[begin : match.start()], line)
        line += text.count("\n", begin, match.start())
        tag, begin = match[1] + match[2].lower(), match.end()
        line += match[0].count("\n")
    yield TaggedText(tag, text[begin:], line)


def characters(text: str) -> str:
    """Decode character references such as `&amp;` and `&#38;`, and replace runs of white space by single spaces.

    >>> characters("R&D &amp;  sales")
    'R&D & sales'
    """
    return one_line(_CHARACTER.sub(lambda reference: html.unescape(reference[0]), text))


class Fields(NamedTuple):
    """A topic in XML: its line, its id, and the text of its child elements by tag in lower case."""

    line: int
    qid: str
    texts: dict[str, str]


def topics_in_xml(path: Path) -> Iterator[Fields]:
    """Yield the `topic` and `inex_topic` elements of an XML file, in order. Declarations in a DTD are ignored."""
    # Importing lxml is slow, and most topic files are not XML.
    from lxml import etree

    from perikope.formats._source import Source, unreadable
    from perikope.formats._unpack import DAMAGE
    from perikope.formats._xml import trees

    any_topic = False
    try:
        for tree in trees(Source(str(path), path.name)):
            for element in tree.root.iter("topic", "inex_topic"):
                any_topic = True
                line = tree.first_line - 1 + (cast(int | None, element.sourceline) or 1)
                qid = next((value for name in ("id", "topic_id", "topic-id", "number", "num") if (value := element.get(name))), "")
                texts = {str(child.tag).lower(): _text(child) for child in element.iterchildren(etree.Element)}
                yield Fields(line, qid.strip(), texts or {"title": _text(element)})
    except DAMAGE as error:
        raise unreadable(str(path), error) from error
    except InputError as error:
        if error.line:
            raise
        raise InputError(str(error).removeprefix(f"{path}: "), path=path, line=1) from None
    if not any_topic:
        raise InputError("the file has no <topic> elements", path=path, line=1)


def _text(element: object) -> str:
    return one_line("".join(element.itertext()))  # type: ignore[attr-defined]
