"""Marked-up topics: the tags of TREC and CLEF-IP files, which are no XML (no root, tags that nobody closes), and topics in XML."""

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
_REMARK = re.compile(r"<!--.*?(?:-->|\Z)|<\?[^<>]*\?>|<![A-Za-z][^<>]*>", re.DOTALL)
_CHARACTER = re.compile(r"&#?[A-Za-z0-9]{1,32};")


class TaggedText(NamedTuple):
    """A tag and the text behind it, up to the next one."""

    tag: str
    """In small letters, with a slash in front where it closes; empty for the text before the first tag."""
    text: str
    line: int

    @property
    def text_line(self) -> int:
        """The line that its text begins in, behind white space."""
        return self.line + self.text[: len(self.text) - len(self.text.lstrip())].count("\n")


def pieces(path: Path) -> Iterator[TaggedText]:
    """A file cut at its tags; remarks and declarations are left out, and what looks like no tag is text."""

    def left_out(remark: re.Match[str]) -> str:
        if remark[0].startswith("<!--") and not remark[0].endswith("-->"):
            raise InputError("a remark (<!--) does not end", path=path, line=remark.string.count("\n", 0, remark.start()) + 1)
        # Line feeds stay, so that what is behind keeps its line.
        return "\n" * remark[0].count("\n")

    text = _REMARK.sub(left_out, whole_text(path))
    tag, begin, line = "", 0, 1
    for found in _TAG.finditer(text):
        yield TaggedText(tag, text[begin : found.start()], line)
        line += text.count("\n", begin, found.start())
        tag, begin = found[1] + found[2].lower(), found.end()
        line += found[0].count("\n")
    yield TaggedText(tag, text[begin:], line)


def characters(text: str) -> str:
    """A text with named and numbered characters put in, and single spaces.

    >>> characters("R&D &amp;  sales")
    'R&D & sales'
    """
    return one_line(_CHARACTER.sub(lambda found: html.unescape(found[0]), text))


class Fields(NamedTuple):
    """A topic in XML: its id, and the text of its elements by their tags in small letters."""

    line: int
    qid: str
    texts: dict[str, str]


def topics_in_xml(path: Path) -> Iterator[Fields]:
    """The `topic` elements of an XML file, in order; nothing that a DTD declares is looked at."""
    # lxml takes a while, and most topics are no XML.
    from lxml import etree

    from perikope.formats._source import Source, unreadable
    from perikope.formats._unpack import DAMAGE
    from perikope.formats._xml import trees

    found = False
    try:
        for tree in trees(Source(str(path), path.name)):
            for element in tree.root.iter("topic", "inex_topic"):
                found = True
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
    if not found:
        raise InputError("the file has no <topic> elements", path=path, line=1)


def _text(element: object) -> str:
    return one_line("".join(element.itertext()))  # type: ignore[attr-defined]
