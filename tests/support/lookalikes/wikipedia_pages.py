"""Writes a Wikipedia page in the XML of INEX 2009."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.lookalikes.words import sentence, word
from tests.support.lookalikes.xml import XmlWriter

LENGTH = 45
"""Words of a paragraph."""
CLOSE = 12
"""Words of a topic that stand close together are within so many words."""
PARAGRAPHS = 5
"""Paragraphs of a section; the last two stand in a subsection."""
MARKED = 0.6
"""Probability that a topic word is in the tag of its paragraph."""
SEMANTIC = 0.2
"""Probability that a topic word in relevant text is in a semantic tag instead, which learning must not use."""
LINK = {"xlink:type": "simple"}
_XLINK = "http://www.w3.org/1999/xlink"


@dataclass
class Paragraph:
    """What a paragraph has of a topic."""

    planted: Sequence[str] = ()
    is_relevant: bool = False
    tag: str = ""
    """The tag that mostly marks the words of the topic."""
    close: bool = False


@dataclass
class PageText:
    """What a page says."""

    page: str
    title: Sequence[str]
    common: Sequence[str]
    """Stems that fill the text."""
    kinds: Sequence[str]
    """Stems of categories and of semantic tags."""
    links: Sequence[str]
    """Pages that it links to."""
    paragraphs: Sequence[Paragraph]


@dataclass
class WrittenPage:
    """A page as XML."""

    xml: str
    length: int
    """Characters of all text nodes."""
    relevant: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of each range of relevant text."""


def file_of(page: str) -> str:
    """The file of a page below the folder of documents: in a folder named by the last three digits of the page's id.

    >>> file_of("10001")
    '001/10001.xml'
    """
    return f"{page[-3:]}/{page}.xml"


def write_page(text: PageText, chance: random.Random) -> WrittenPage:
    """The XML of a page."""
    return _PageWriter(text, chance).write()


class _PageWriter:
    """Writes one page."""

    def __init__(self, text: PageText, chance: random.Random) -> None:
        self._text, self._chance = text, chance
        self._xml = XmlWriter()
        self._relevant: list[tuple[int, int]] = []

    def write(self) -> WrittenPage:
        """Write the page; a third of the pages stand in a semantic tag as a whole."""
        xml = self._xml
        with xml.element("article", **{"xmlns:xlink": _XLINK}):
            xml.line()
            if self._chance.random() < 1 / 3:
                with xml.element(self._kind(), **self._semantic()):
                    xml.line()
                    self._write_parts()
            else:
                self._write_parts()
        return WrittenPage(str(xml), xml.offset, self._relevant)

    def _write_parts(self) -> None:
        xml, text = self._xml, self._text
        with xml.element("header"):
            xml.line()
            xml.leaf("title", _words(text.title))
            xml.leaf("id", text.page)
            with xml.element("revision"):
                xml.leaf("id", f"2{text.page}")
                xml.leaf("timestamp", f"2008-{self._chance.randint(1, 9):02}-17T10:00:00Z")
            with xml.element("categories"):
                xml.leaf("category", self._kind())
        xml.line()
        with xml.element("bdy"):
            xml.line()
            for first in range(0, len(text.paragraphs), PARAGRAPHS):
                self._write_section(text.paragraphs[first : first + PARAGRAPHS])
            with xml.element("reflist"):
                for number in range(3):
                    xml.leaf("entry", f"{_words(self._chance.sample(list(text.common), 6))} {1990 + number}")
            xml.line()
        xml.line()

    def _write_section(self, paragraphs: Sequence[Paragraph]) -> None:
        xml = self._xml
        with xml.element("sec"):
            xml.line()
            xml.leaf("st", _words(self._chance.sample(list(self._text.common), 2)))
            for paragraph in paragraphs[: PARAGRAPHS - 2]:
                self._write_block("p", paragraph)
            if self._chance.random() < 0.3:
                self._write_table()
            if len(paragraphs) > PARAGRAPHS - 2:
                with xml.element("ss1"):
                    xml.leaf("st", _words(self._chance.sample(list(self._text.common), 2)))
                    self._write_block("p", paragraphs[PARAGRAPHS - 2])
                    if len(paragraphs) == PARAGRAPHS:
                        with xml.element("list"):
                            self._write_block("entry", paragraphs[-1])
                xml.line()
        xml.line()

    def _write_table(self) -> None:
        """Write a table, which is never relevant."""
        xml = self._xml
        with xml.element("table"):
            xml.line()
            for _ in range(3):
                with xml.element("row"):
                    for stem in self._chance.sample(list(self._text.common), 3):
                        with xml.element("col"):
                            xml.text(word(stem, "en"))
                xml.line()
        xml.line()

    def _write_block(self, tag: str, paragraph: Paragraph) -> None:
        xml, start = self._xml, self._xml.offset
        words = self._words_of(paragraph)
        planted = {word(stem, "en") for stem in paragraph.planted}
        with xml.element(tag):
            plain: list[str] = []
            for position, text in enumerate(words):
                after = "." if position == len(words) - 1 else " "
                chosen, attributes = self._mark(text in planted, paragraph)
                if not chosen:
                    plain += (text, after)
                    continue
                xml.text("".join(plain))
                plain = [after]
                with xml.element(chosen, **attributes):
                    xml.text(text)
            xml.text("".join(plain))
        if paragraph.is_relevant:
            self._relevant.append((start, xml.offset))
        xml.line()

    def _words_of(self, paragraph: Paragraph) -> list[str]:
        common, chance = self._text.common, self._chance
        if not paragraph.close:
            return sentence(common, paragraph.planted, LENGTH, "en", chance)
        before = chance.randrange(1, LENGTH - CLOSE)
        return [
            *sentence(common, (), before, "en", chance),
            *sentence(common, paragraph.planted, CLOSE, "en", chance),
            *sentence(common, (), LENGTH - CLOSE - before, "en", chance),
        ]

    def _mark(self, is_planted: bool, paragraph: Paragraph) -> tuple[str, dict[str, str]]:
        """The tag around a word, with its attributes; an empty tag for most words."""
        draw = self._chance.random()
        if is_planted and paragraph.tag:
            if draw < MARKED:
                return paragraph.tag, {}
            if draw < MARKED + SEMANTIC and paragraph.is_relevant:
                return self._kind(), self._semantic()
            return "", {}
        if draw < 0.05:
            return "b" if draw < 0.025 else "it", {}
        if draw < 0.07:
            return "link", LINK | {"xlink:href": f"../{file_of(self._chance.choice(self._text.links))}"}
        if draw < 0.08:
            return self._kind(), self._semantic()
        # A tag that is too rare for a weight.
        return ("u", {}) if draw > 0.9998 else ("", {})

    def _kind(self) -> str:
        return word(self._chance.choice(self._text.kinds), "en")

    def _semantic(self) -> dict[str, str]:
        return {"wordnetid": str(100_000_000 + self._chance.randrange(9_999_999)), "confidence": "0.8"}


def _words(stems: Sequence[str]) -> str:
    return " ".join(word(stem, "en") for stem in stems)
