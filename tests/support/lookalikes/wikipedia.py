"""A collection in the layout of INEX 2009 and 2010: Wikipedia pages with tags, topics, and judgements of characters.

Planted effects:

- **Relevant text has the words of the topic close together.** Each relevant paragraph has them within `CLOSE` words; other
  paragraphs of the same and of other pages have one at a time (Beigbeder and others 2015).
- **Tags mark relevant words.** A word of the topic is in `b` with probability `MARKED` in relevant text and `MARKED_ELSEWHERE`
  outside; `it` is the other way round (Beigbeder and others 2015).
- **Relevant paragraphs stand side by side**, and the paragraphs around them have words of the topic, too (Carmel and
  others 2013).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.lookalikes.words import make_words, sentence, word
from tests.support.lookalikes.xml import XmlWriter

TOPIC_WORDS = 3
CLOSE = 12
MARKED, MARKED_ELSEWHERE = 0.5, 0.05
RELEVANT_PARAGRAPHS = 2
SECTIONS, PARAGRAPHS = 4, 4
LENGTH = 45
"""Words of a paragraph."""


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


def make_wikipedia(folder: Path, seed: int = 1, topics: int = 30, relevant: int = 3, decoys: int = 3) -> WikipediaCollection:
    """Write a collection with as many training topics (of 2009) as topics (of 2010).

    `relevant` pages have relevant text for each topic; `decoys` pages have its words far apart.
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
                xml, ranges = _page(page, subject, common, kinds, chance, relevant=is_relevant, others=ids)
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


def _page(
    page: str,
    subject: Subject,
    common: Sequence[str],
    kinds: Sequence[str],
    chance: random.Random,
    *,
    relevant: bool,
    others: Sequence[str],
) -> tuple[XmlWriter, list[tuple[int, int]]]:
    """A page and the ranges of its relevant text."""
    xml = XmlWriter('<?xml version="1.0" encoding="UTF-8"?>\n')
    target = chance.randrange(SECTIONS) if relevant else -1
    ranges: list[tuple[int, int]] = []
    with xml.element("article"):
        xml.line()
        title = " ".join(word(stem, "en") for stem in chance.sample(list(common), 2))
        with xml.element("header"):
            for tag, text in (("title", title), ("id", page)):
                xml.leaf(tag, text)
            with xml.element("categories"):
                xml.leaf("category", word(chance.choice(kinds), "en"))
        xml.line()
        with xml.element("bdy"):
            xml.line()
            for section in range(SECTIONS):
                ranges += _section(xml, subject, common, kinds, chance, is_target=section == target, links=others)
    return xml, ranges


def _section(
    xml: XmlWriter,
    subject: Subject,
    common: Sequence[str],
    kinds: Sequence[str],
    chance: random.Random,
    *,
    is_target: bool,
    links: Sequence[str],
) -> list[tuple[int, int]]:
    """Write a section; returns the ranges of its relevant text."""
    ranges = []
    first = chance.randrange(PARAGRAPHS - RELEVANT_PARAGRAPHS + 1)
    with xml.element("sec"):
        xml.leaf("st", " ".join(word(stem, "en") for stem in chance.sample(list(common), 2)))
        for position in range(PARAGRAPHS):
            is_relevant = is_target and first <= position < first + RELEVANT_PARAGRAPHS
            # One word of the topic is everywhere on the page; around relevant text there are two.
            planted = subject.stems if is_relevant else chance.sample(subject.stems, 2 if is_target else 1)
            start = xml.offset
            _paragraph(xml, planted, common, kinds, chance, is_relevant=is_relevant, link=chance.choice(links))
            if is_relevant:
                ranges.append((start, xml.offset))
            xml.line()
    xml.line()
    return ranges


def _paragraph(
    xml: XmlWriter,
    planted: Sequence[str],
    common: Sequence[str],
    kinds: Sequence[str],
    chance: random.Random,
    *,
    is_relevant: bool,
    link: str,
) -> None:
    """Write a paragraph; in relevant text the planted words stand within `CLOSE` words of each other."""
    if is_relevant:
        close = sentence(common, planted, CLOSE, "en", chance)
        before = chance.randrange(LENGTH - CLOSE)
        words = [
            *sentence(common, (), before, "en", chance),
            *close,
            *sentence(common, (), LENGTH - CLOSE - before, "en", chance),
        ]
    else:
        words = sentence(common, planted, LENGTH, "en", chance)
    targets = {word(stem, "en") for stem in planted}
    with xml.element("p"):
        for position, text in enumerate(words):
            _word(xml, text, chance, is_target=text in targets, is_relevant=is_relevant, kinds=kinds, link=link)
            xml.text("." if position == len(words) - 1 else " ")


def _word(xml: XmlWriter, text: str, chance: random.Random, *, is_target: bool, is_relevant: bool, kinds: Sequence[str], link: str) -> None:
    """Write a word, perhaps in a tag."""
    bold = MARKED if is_target and is_relevant else MARKED_ELSEWHERE
    italic = MARKED if is_target and not is_relevant else MARKED_ELSEWHERE
    draw = chance.random()
    if draw < bold:
        with xml.element("b"):
            xml.text(text)
    elif draw < bold + italic:
        with xml.element("it"):
            xml.text(text)
    elif draw < bold + italic + 0.02:
        with xml.element("link", **{"xlink:href": f"../{link}.xml", "xmlns:xlink": "http://www.w3.org/1999/xlink"}):
            xml.text(text)
    elif draw < bold + italic + 0.03:
        with xml.element(word(chance.choice(kinds), "en"), wordnetid=str(100_000_000 + chance.randrange(9_999_999)), confidence="0.8"):
            xml.text(text)
    else:
        xml.text(text)
