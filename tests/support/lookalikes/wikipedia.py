"""A collection in the layout of INEX 2009 and 2010: Wikipedia pages with tags, topics, and judgements of characters.

Each `Effect` plants what one paper reports:

- `positions` (Carmel and others 2013): relevant text is a run of paragraphs in which words of the topic are frequent. Single
  paragraphs of it have one word or none; pages that are not relevant have paragraphs with two. So a paragraph alone says
  little, its document more, and the positions of words around it most.
- `tags` (Beigbeder and others 2015): the words of the topic stand close together in relevant paragraphs, mostly in `b`. Other
  paragraphs of the same page have them as close, mostly in `it`, and others far apart.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.support.lookalikes.words import make_words, sentence, word
from tests.support.lookalikes.xml import XmlWriter

Effect = Literal["positions", "tags"]
TOPIC_WORDS = 3
CLOSE = 12
"""In `tags`, words of the topic stand within so many words of each other."""
MARKED, MARKED_ELSEWHERE = 0.6, 0.05
"""Probability that a word of the topic is in a tag where the effect has it, and that any other word is."""
SECTIONS, PARAGRAPHS = 5, 4
LENGTH = 45
"""Words of a paragraph."""
FREQUENT, RARE = 0.6, 0.1
"""In `positions`, probability that a paragraph has a word of the topic: in relevant text, and elsewhere on the page."""


@dataclass
class Subject:
    """What a topic is about: its number and its words."""

    qid: str
    stems: list[str]


@dataclass
class WikipediaCollection:
    """The files of the collection."""

    folder: Path
    documents: Path
    topics: Path
    judgements: Path
    training_topics: Path
    training_judgements: Path
    relevant: dict[str, dict[str, list[tuple[int, int]]]] = field(default_factory=dict)
    """Start and end of relevant text, by document by topic."""


def make_wikipedia(
    folder: Path, effect: Effect, seed: int = 1, topics: int = 30, relevant: int = 3, decoys: int = 3
) -> WikipediaCollection:
    """Write a collection with as many training topics (of 2009) as topics (of 2010).

    `relevant` pages have relevant text for each topic; `decoys` pages have some of its words.
    """
    chance, taken = random.Random(seed), set[str]()
    common = make_words(400, chance, taken)
    kinds = make_words(6, chance, taken)
    documents = folder / "documents"
    documents.mkdir(parents=True)
    collection = WikipediaCollection(
        folder,
        documents,
        folder / "topics-2010.xml",
        folder / "qrels-2010.txt",
        folder / "topics-2009.xml",
        folder / "qrels-2009.txt",
    )
    pages = iter(range(10_001, 99_999))
    lines: dict[str, list[str]] = {}
    subjects: dict[str, list[Subject]] = {}
    for year in ("2009", "2010"):
        for number in range(1, topics + 1):
            subject = Subject(f"{year}{number:03}", make_words(TOPIC_WORDS, chance, taken))
            subjects.setdefault(year, []).append(subject)
            ids = [str(next(pages)) for _ in range(relevant + decoys)]
            for position, page in enumerate(ids):
                is_relevant = position < relevant
                xml, ranges = _Page(subject, common, kinds, chance, effect, ids).write(page, relevant=is_relevant)
                (documents / f"{page}.xml").write_text(str(xml), encoding="utf-8")
                lines.setdefault(year, []).append(_judgement(subject.qid, page, ranges, xml.offset))
                if is_relevant:
                    collection.relevant.setdefault(subject.qid, {})[page] = ranges
    for path, judged, year in (
        (collection.topics, collection.judgements, "2010"),
        (collection.training_topics, collection.training_judgements, "2009"),
    ):
        path.write_text(_topics(subjects[year]), encoding="utf-8")
        judged.write_text("\n".join(lines[year]) + "\n", encoding="utf-8")
    return collection


def _judgement(qid: str, page: str, ranges: Sequence[tuple[int, int]], length: int) -> str:
    written = " ".join(f"{start}:{end - start}" for start, end in ranges)
    entry = ranges[0][0] if ranges else -1
    return f"{qid} Q0 {page} {sum(end - start for start, end in ranges)} {length} {entry} {written}".rstrip()


def _topics(subjects: Sequence[Subject]) -> str:
    xml = XmlWriter()
    with xml.element("inex-topic-file"):
        xml.line()
        for number, subject in enumerate(subjects, 1):
            words = [word(stem, "en") for stem in subject.stems]
            with xml.element("topic", id=subject.qid, ct_no=str(number)):
                xml.line()
                xml.leaf("title", " ".join(words))
                xml.leaf("castitle", f"//article[about(.//(sec|p), {' '.join(words)})]")
                xml.leaf("phrasetitle", f'"{words[0]} {words[1]}"')
                xml.leaf("description", f"What is known about {words[0]} and {words[1]}?")
                xml.leaf("narrative", f"Text about {', '.join(words)} is relevant.")
            xml.line()
    return str(xml)


@dataclass
class _Page:
    """Writes one page of a subject."""

    subject: Subject
    common: Sequence[str]
    kinds: Sequence[str]
    chance: random.Random
    effect: Effect
    links: Sequence[str]
    xml: XmlWriter = field(default_factory=XmlWriter)

    def write(self, page: str, *, relevant: bool) -> tuple[XmlWriter, list[tuple[int, int]]]:
        """The page, and the ranges of its relevant text."""
        xml, paragraphs = self.xml, self._paragraphs(relevant)
        ranges: list[tuple[int, int]] = []
        with xml.element("article"):
            xml.line()
            with xml.element("header"):
                for tag, text in (("title", self._title()), ("id", page)):
                    xml.leaf(tag, text)
                with xml.element("categories"):
                    xml.leaf("category", word(self.chance.choice(self.kinds), "en"))
            xml.line()
            with xml.element("bdy"):
                xml.line()
                for section in range(SECTIONS):
                    with xml.element("sec"):
                        xml.leaf("st", self._title())
                        for paragraph in paragraphs[section * PARAGRAPHS : (section + 1) * PARAGRAPHS]:
                            start = xml.offset
                            self._write_paragraph(paragraph)
                            if paragraph.is_relevant:
                                ranges.append((start, xml.offset))
                            xml.line()
                    xml.line()
        return xml, ranges

    def _title(self) -> str:
        return " ".join(word(stem, "en") for stem in self.chance.sample(list(self.common), 2))

    def _paragraphs(self, relevant: bool) -> list[_Paragraph]:
        """What each paragraph of the page has of the subject."""
        count = SECTIONS * PARAGRAPHS
        return self._by_position(count, relevant) if self.effect == "positions" else self._by_tags(count, relevant)

    def _by_position(self, count: int, relevant: bool) -> list[_Paragraph]:
        first = self.chance.randrange(count - 6) if relevant else count
        inside = range(first, first + 6)
        paragraphs = []
        for number in range(count):
            has_word = self.chance.random() < (FREQUENT if number in inside else RARE)
            planted = self.chance.sample(self.subject.stems, 1) if has_word else []
            paragraphs.append(_Paragraph(planted, is_relevant=number in inside))
        if not relevant:
            paragraphs[self.chance.randrange(count)].planted = self.chance.sample(self.subject.stems, 2)
        return paragraphs

    def _by_tags(self, count: int, relevant: bool) -> list[_Paragraph]:
        paragraphs = [_Paragraph(self.chance.sample(self.subject.stems, self.chance.choice((0, 1)))) for _ in range(count)]
        numbers = self.chance.sample(range(count), 6)
        if relevant:
            for number in numbers[:2]:
                paragraphs[number] = _Paragraph(self.subject.stems, is_relevant=True, tag="b", close=True)
            for number in numbers[2:]:
                paragraphs[number] = _Paragraph(self.subject.stems, tag="it", close=True)
        return paragraphs

    def _write_paragraph(self, paragraph: _Paragraph) -> None:
        words = self._words(paragraph)
        planted = {word(stem, "en") for stem in paragraph.planted}
        with self.xml.element("p"):
            for position, text in enumerate(words):
                self._write_word(text, paragraph.tag if text in planted else "")
                self.xml.text("." if position == len(words) - 1 else " ")

    def _words(self, paragraph: _Paragraph) -> list[str]:
        if not paragraph.close:
            return sentence(self.common, paragraph.planted, LENGTH, "en", self.chance)
        before = self.chance.randrange(1, LENGTH - CLOSE)
        return [
            *sentence(self.common, (), before, "en", self.chance),
            *sentence(self.common, paragraph.planted, CLOSE, "en", self.chance),
            *sentence(self.common, (), LENGTH - CLOSE - before, "en", self.chance),
        ]

    def _write_word(self, text: str, tag: str) -> None:
        """Write a word, perhaps in a tag: mostly the one that the effect has for it."""
        draw = self.chance.random()
        if tag and draw < MARKED:
            chosen, attributes = tag, {}
        elif draw < MARKED_ELSEWHERE:
            chosen, attributes = self.chance.choice(("b", "it")), {}
        elif draw < MARKED_ELSEWHERE + 0.02:
            chosen = "link"
            attributes = {"xlink:href": f"../{self.chance.choice(self.links)}.xml", "xmlns:xlink": "http://www.w3.org/1999/xlink"}
        elif draw < MARKED_ELSEWHERE + 0.03:
            chosen = word(self.chance.choice(self.kinds), "en")
            attributes = {"wordnetid": str(100_000_000 + self.chance.randrange(9_999_999)), "confidence": "0.8"}
        else:
            self.xml.text(text)
            return
        with self.xml.element(chosen, **attributes):
            self.xml.text(text)


@dataclass
class _Paragraph:
    """What a paragraph has of the subject."""

    planted: Sequence[str] = ()
    is_relevant: bool = False
    tag: str = ""
    """The tag that mostly marks the words of the subject."""
    close: bool = False
