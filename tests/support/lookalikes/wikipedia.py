"""A collection in the layout of INEX 2009 and 2010: Wikipedia pages with tags, topics, and judgements of characters.

Each `Effect` plants what one paper reports:

- `positions` (Carmel and others 2013): relevant text is a run of `RUN` paragraphs on a page of several thousand
  words. Words of the topic are frequent in it, although many of its paragraphs have none. Pages that are not relevant
  have paragraphs with more words of the topic. So a paragraph alone says little, its document more, and the positions
  of words within 500 and more words most.
- `tags` (Beigbeder and others 2015): the words of the topic stand close together in relevant paragraphs, mostly in
  `b`. Other paragraphs of the same page have them as close, mostly in `it`, and others have single words. `b` and
  `it` occur more than 1000 times each even in the small size; semantic tags (with `wordnetid`) mark relevant words
  too, and `u` is rare: neither may get a weight.

With `control`, the pages are alike and the effect is off: relevant paragraphs are scattered among pages that have as
many words of the topic, and the tags of paragraphs are drawn by chance.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.support.lookalikes.sizes import SIZES
from tests.support.lookalikes.wikipedia_pages import PARAGRAPHS, PageText, Paragraph, WrittenPage, file_of, write_page
from tests.support.lookalikes.words import make_words, word
from tests.support.lookalikes.xml import XmlWriter

Effect = Literal["positions", "tags"]
TOPIC_WORDS = 3
LONG, SHORT = 20 * PARAGRAPHS, 4 * PARAGRAPHS
"""Paragraphs of a long page (about 4500 words) and of a short one."""
RUN = 25
"""In `positions`, paragraphs of a run of relevant text on a long page; a fifth of it on a short one."""
FREQUENT, RARE = 0.5, 0.08
"""In `positions`, probability that a paragraph has a word of the topic: in relevant text, and elsewhere on the page."""
RELEVANT_PARAGRAPHS, CLOSE_ELSEWHERE = 2, 3
"""In `tags`, paragraphs of a relevant page with words of the topic close together: relevant ones, and others."""
SYNONYM = 0.15
"""Probability that relevant text says a word of the topic in another way, which only queries by hand ask for."""


@dataclass
class Subject:
    """What a topic is about: its number, its words, and another word for each."""

    qid: str
    stems: list[str]
    synonyms: list[str]


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
    document_count: int = 0

    def by_hand(self, topics: Path) -> Path:
        """The Boolean queries that somebody wrote for a file of topics: a TSV file."""
        return topics.with_name(f"{topics.stem}-by-hand.tsv")


def make_wikipedia(
    folder: Path,
    effect: Effect,
    seed: int = 1,
    topics: int | None = None,
    relevant: int | None = None,
    decoys: int | None = None,
    *,
    background: int | None = None,
    size: str = "small",
    control: bool = False,
) -> WikipediaCollection:
    """Write a collection with as many training topics (of 2009) as topics (of 2010).

    `relevant` pages have relevant text for each topic; `decoys` pages have some of its words. `size` (a key of
    `SIZES`) gives the numbers that are left out. `control` switches the effect off.
    """
    usual = SIZES[size]
    topics, relevant, decoys, background = (
        usual_one if given is None else given
        for given, usual_one in (
            (topics, usual.topics), (relevant, usual.relevant), (decoys, usual.decoys), (background, usual.background)
        )
    )  # fmt: skip
    maker = _Maker(folder, random.Random(seed), effect, control)
    for year in ("2009", "2010"):
        subjects = [maker.subject(f"{year}{number:03}") for number in range(1, topics + 1)]
        lines = [line for subject in subjects for line in maker.write_pages(subject, relevant, decoys)]
        path, judged = maker.files(year)
        path.write_text(_topics(subjects), encoding="utf-8")
        maker.collection.by_hand(path).write_text("".join(f"{one.qid}\t{_by_hand(one)}\n" for one in subjects), encoding="utf-8")
        judged.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for _ in range(background):
        maker.write_background()
    return maker.collection


class _Maker:
    """Draws and writes the pages of a collection."""

    def __init__(self, folder: Path, chance: random.Random, effect: Effect, control: bool) -> None:
        self._chance, self._effect, self._control = chance, effect, control
        self._taken = set[str]()
        self._common = make_words(400, chance, self._taken)
        self._kinds = make_words(6, chance, self._taken)
        self._pages = iter(range(10_001, 999_999))
        self.collection = WikipediaCollection(
            folder,
            folder / "documents",
            folder / "topics-2010.xml",
            folder / "qrels-2010.txt",
            folder / "topics-2009.xml",
            folder / "qrels-2009.txt",
        )

    def files(self, year: str) -> tuple[Path, Path]:
        """The topics and the judgements of a year."""
        found = self.collection
        return (found.topics, found.judgements) if year == "2010" else (found.training_topics, found.training_judgements)

    def subject(self, qid: str) -> Subject:
        """Draw what a topic is about."""
        stems = make_words(2 * TOPIC_WORDS, self._chance, self._taken)
        return Subject(qid, stems[:TOPIC_WORDS], stems[TOPIC_WORDS:])

    def write_pages(self, subject: Subject, relevant: int, decoys: int) -> list[str]:
        """Write the pages of a topic; returns their judgements."""
        pages = [str(next(self._pages)) for _ in range(relevant + decoys)]
        lines = []
        for number, page in enumerate(pages):
            paragraphs = self._paragraphs(subject, number, is_relevant=number < relevant)
            written = self._write(page, paragraphs, pages)
            lines.append(_judgement(subject.qid, page, written))
            if written.relevant:
                self.collection.relevant.setdefault(subject.qid, {})[page] = written.relevant
        return lines

    def write_background(self) -> None:
        """Write a page without words of topics."""
        page = str(next(self._pages))
        self._write(page, [Paragraph() for _ in range(SHORT)], [page])

    def _write(self, page: str, paragraphs: Sequence[Paragraph], links: Sequence[str]) -> WrittenPage:
        title = self._chance.sample(self._common, 2)
        written = write_page(PageText(page, title, self._common, self._kinds, links, paragraphs), self._chance)
        path = self.collection.documents / file_of(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written.xml, encoding="utf-8")
        self.collection.document_count += 1
        return written

    def _paragraphs(self, subject: Subject, number: int, *, is_relevant: bool) -> list[Paragraph]:
        """What each paragraph of a page has of the subject."""
        if self._effect == "tags":
            return self._by_tags(subject, is_relevant)
        # The first two pages are long, and so are the decoys of a control, which are to be like them.
        count = LONG if number < 2 or (self._control and not is_relevant) else SHORT
        return self._by_position(subject, count, is_relevant)

    def _by_position(self, subject: Subject, count: int, is_relevant: bool) -> list[Paragraph]:
        chance, run = self._chance, RUN if count == LONG else RUN // 5
        first = chance.randrange(count - run)
        inside = set(chance.sample(range(count), run)) if self._control else set(range(first, first + run))
        if not is_relevant and not self._control:
            inside = set()
        paragraphs = []
        for number in range(count):
            has_word = chance.random() < (FREQUENT if number in inside else RARE)
            paragraphs.append(Paragraph(chance.sample(subject.stems, 1) if has_word else (), is_relevant and number in inside))
        if not is_relevant and not self._control:
            for number in chance.sample(range(count), 2):
                paragraphs[number] = Paragraph(chance.sample(subject.stems, 2))
        return paragraphs

    def _by_tags(self, subject: Subject, is_relevant: bool) -> list[Paragraph]:
        chance = self._chance
        paragraphs = [Paragraph(chance.sample(subject.stems, chance.choice((0, 1)))) for _ in range(SHORT)]
        if is_relevant:
            for number, chosen in enumerate(chance.sample(range(SHORT), RELEVANT_PARAGRAPHS + CLOSE_ELSEWHERE)):
                tag = chance.choice(("b", "it")) if self._control else "b" if number < RELEVANT_PARAGRAPHS else "it"
                is_judged = number < RELEVANT_PARAGRAPHS
                paragraphs[chosen] = Paragraph(self._said(subject, is_judged), is_judged, tag, close=True)
        return paragraphs

    def _said(self, subject: Subject, is_relevant: bool) -> list[str]:
        """The words of the subject; in relevant text, some are said in another way."""
        share = SYNONYM if is_relevant and not self._control else 0.0
        pairs = zip(subject.stems, subject.synonyms, strict=True)
        return [synonym if self._chance.random() < share else stem for stem, synonym in pairs]


def _judgement(qid: str, page: str, written: WrittenPage) -> str:
    """A line of judgements; neighbouring relevant paragraphs are one range."""
    ranges: list[tuple[int, int]] = []
    for start, end in written.relevant:
        if ranges and start - ranges[-1][1] <= 1:
            ranges[-1] = ranges[-1][0], end
        else:
            ranges.append((start, end))
    cells = " ".join(f"{start}:{end - start}" for start, end in ranges)
    entry = ranges[0][0] if ranges else -1
    return f"{qid} Q0 {page} {sum(end - start for start, end in ranges)} {written.length} {entry} {cells}".rstrip()


def _topics(subjects: Sequence[Subject]) -> str:
    xml = XmlWriter()
    with xml.element("inex-topic-file"):
        xml.line()
        for number, subject in enumerate(subjects, 1):
            words = [word(stem, "en") for stem in subject.stems]
            others = [word(stem, "en") for stem in subject.synonyms]
            with xml.element("topic", id=subject.qid, ct_no=str(number)):
                xml.line()
                xml.leaf("title", " ".join(words))
                xml.leaf("castitle", f"//article[about(.//(sec|p), {' '.join(words)})]")
                xml.leaf("phrasetitle", f'"{words[0]} {words[1]}" {words[2]}')
                xml.leaf("description", f"I am looking for text that says how the {words[0]} and the {words[1]} depend on {words[2]}.")
                xml.leaf(
                    "narrative",
                    f"I read about {words[0]} and would like to know what {words[1]} has to do with it, and in which way it changed "
                    f"{words[2]}. Texts may also speak of {others[0]}, {others[1]} or {others[2]}. Lists of names alone are not relevant.",
                )
                xml.leaf("boolean", _by_hand(subject))
            xml.line()
    return str(xml)


def _by_hand(subject: Subject) -> str:
    """A Boolean query with the other words for what the topic is about."""
    pairs = zip(subject.stems, subject.synonyms, strict=True)
    return " AND ".join(f"({word(stem, 'en')} OR {word(synonym, 'en')})" for stem, synonym in pairs)
