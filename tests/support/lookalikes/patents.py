"""A collection in the layout of CLEF-IP: patents, topics with query claims, and judgements of passages by XPath.

The files are as in the archives of CLEF-IP 2012 and 2013: documents in folders by number, a topics file of tagged
fields, the patents of topics in `tfiles` and earlier members of their families in `tfam-docs`, judgements for all
topics and for those of each language. Topic files do not say the language; it is the attribute `lang` of the topic's
patent.

Planted effects:

- `sections`: relevance follows the section tree (Albarede and others 2021 and 2023). The relevant passages of a
  document stand side by side in one main section of its description, some of whose headings have words of the topic.
  Each has at most as many of the topic's words as a decoy that stands alone in another section, so that only context
  tells them apart. The abstract and the first claims are often relevant too.
- `positions`: `LATE` of the relevant passages come in the last main section, and decoys before it (Gobeill and Ruch
  2012, Figure 2).
- `codes`: relevant documents share a full IPC code with the topic; most decoys do not. Documents of other topics of
  the field also share codes with it, but few words.
- `parts`: relevant documents have words of the topic in title, abstract and claims, and often its applicant and an
  inventor; decoys have more words of the topic, all of them in their descriptions. So the parts that Gobeill and Ruch
  index rank them better.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tests.support.lookalikes.patent_files import (
    LANGUAGES,
    PASSAGES,
    SLOTS,
    SUBSECTIONS,
    PatentText,
    Slot,
    WrittenPaths,
    folder_of,
    write_patent,
)
from tests.support.lookalikes.sizes import SIZES
from tests.support.lookalikes.words import make_words, word

Effect = Literal["all", "none", "sections", "positions", "codes", "parts"]
TOPIC_WORDS = 8
TERMS_OF_FIELD = 40
"""Words that the topics of a field draw theirs from: topics of one field share some."""
FIELDS = ("F04D", "G09G", "H02K", "B01J", "C07C", "A61B")
TOPIC_LANGUAGES = ("en", "en", "en", "de", "fr")
"""Languages of topics, in turn. Documents are in the language of their topic, and the second family is English."""
LATE = 0.9
RELEVANT_PASSAGES, DECOY_PASSAGES = 5, 6
"""Passages of a relevant document with words of the topic: relevant ones, and others."""
PASSAGES_OF_DECOYS = 12
"""Passages of a decoy document with four words of the topic each, where its title, abstract and claims have none."""
PLANTED, PLANTED_ALONE = (1, 2, 2, 3), (2, 2, 3)
"""Numbers of topic words in a passage that has any, and in one that stands alone; each number is as likely."""
HEADED = 0.4
"""Probability that the heading of a subsection with relevant passages has a word of the topic."""
NAMED = 0.5
"""Probability that a search report names the abstract or one of the first two claims of a relevant document."""
SHARED = 0.2
"""Probability that a decoy shares a code with the topic, where relevant documents always do."""
OTHERS = 3
"""Number of other topics of the field whose codes a document has: many documents share a code with each topic."""
SECTION_SLOTS = SUBSECTIONS * PASSAGES


@dataclass
class Idea:
    """What a topic is about: its words, its codes, its language and its people."""

    number: int
    field: str
    stems: list[str]
    field_stems: list[str]
    codes: list[str]
    other_codes: list[str]
    language: str
    applicant: str
    inventors: list[str]

    @property
    def topic(self) -> str:
        """The id of the topic."""
        return f"PSG-{self.number + 1}"

    @property
    def patent(self) -> str:
        """The name of the topic's patent."""
        return f"EP-{1_500_000 + self.number}-A1"

    @property
    def family(self) -> str:
        """The id of the family of the topic's patent."""
        return str(30_000_000 + self.number)

    @property
    def member(self) -> str:
        """The name of an earlier document of the family; empty for one topic in seven."""
        return "" if self.number % 7 == 3 else f"WO-{2001000001 + self.number}-A1"

    @property
    def has_abstract(self) -> bool:
        """Whether the topic's patent has an abstract; the others have one in an earlier document of the family."""
        return self.number % 10 != 4 or not self.member


@dataclass
class PatentCollection:
    """The files of the collection."""

    folder: Path
    documents: Path
    topics: Path
    judgements: Path
    training_topics: Path
    training_judgements: Path
    relevant: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Document and XPath of the relevant passages, by topic."""
    languages: dict[str, str] = field(default_factory=dict)
    """Language by topic."""
    document_count: int = 0

    def judgements_in(self, language: str) -> Path:
        """The judgements of the test topics in a language."""
        return self.judgements.with_name(f"{self.judgements.stem}-{language.upper()}.txt")


def make_patents(
    folder: Path,
    seed: int = 1,
    topics: int | None = None,
    relevant: int | None = None,
    decoys: int | None = None,
    *,
    background: int | None = None,
    size: str = "small",
    effect: Effect = "all",
) -> PatentCollection:
    """Write a collection with as many training topics as `topics`.

    `relevant` families are relevant to each topic (the first has two documents, A1 and B1). `decoys` documents have
    as many of its words in passages that stand alone. `size` (a key of `SIZES`) gives the numbers that are left out.
    `effect` names the one effect to plant; `none` plants no effect, so that a test can show what a system finds by
    chance.
    """
    usual = SIZES[size]
    topics, relevant, decoys, background = (
        usual_one if given is None else given
        for given, usual_one in (
            (topics, usual.topics), (relevant, usual.relevant), (decoys, usual.decoys), (background, usual.background)
        )
    )  # fmt: skip
    maker = _Maker(folder, random.Random(seed), effect)
    ideas = [maker.idea(number) for number in range(2 * topics)]
    for idea in ideas:
        maker.write_documents(idea, relevant, decoys)
    for _ in range(background):
        maker.write_background()
    collection = maker.collection
    _write_topics(collection.topics, ideas[:topics])
    _write_topics(collection.training_topics, ideas[topics:])
    _write_judgements(collection, ideas[:topics])
    # The training judgements have the columns of TREC, the others those of CLEF-IP 2013: both forms must be read.
    lines = [f"{qid} Q0 {document} {xpath} 1" for qid, document, xpath in _judged(collection, ideas[topics:])]
    collection.training_judgements.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return collection


class _Maker:
    """Draws and writes the documents of a collection."""

    def __init__(self, folder: Path, chance: random.Random, effect: Effect) -> None:
        self._chance, self._effect = chance, effect
        taken = set[str]()
        self._field_stems = {code: make_words(60, chance, taken) for code in FIELDS}
        self._terms = {code: make_words(TERMS_OF_FIELD, chance, taken) for code in FIELDS}
        self._names = [word(stem, "en").upper() for stem in make_words(120, chance, taken)]
        self._ideas: list[Idea] = []
        self._numbers = iter(range(200_001, 999_999))
        self._written: dict[str, list[str]] = {code: [] for code in FIELDS}
        """Names of the documents so far, by field: what others can cite."""
        topics = folder / "topics"
        self.collection = PatentCollection(
            folder,
            folder / "documents",
            topics / "topics.txt",
            folder / "qrels.txt",
            topics / "training-topics.txt",
            folder / "training-qrels.txt",
        )
        topics.mkdir(parents=True)

    def idea(self, number: int) -> Idea:
        """Draw what a topic is about."""
        self._ideas.append(self._drawn_idea(number))
        return self._ideas[-1]

    def _drawn_idea(self, number: int) -> Idea:
        chance, name = self._chance, FIELDS[number % len(FIELDS)]
        codes = [f"{name} {chance.randint(1, 99):3d}/{chance.randint(1, 99):02d}" for _ in range(4)]
        return Idea(
            number,
            name,
            chance.sample(self._terms[name], TOPIC_WORDS),
            self._field_stems[name],
            codes[:2],
            codes[2:],
            TOPIC_LANGUAGES[number % len(TOPIC_LANGUAGES)],
            self._applicant(),
            self._inventors(),
        )

    def write_documents(self, idea: Idea, relevant: int, decoys: int) -> None:
        """Write the patent of a topic, its relevant documents and its decoys."""
        found = self.collection.relevant.setdefault(idea.topic, set())
        self.collection.languages[idea.topic] = idea.language
        cited = []
        for number in range(relevant):
            names = [f"EP-{next(self._numbers):07}-A1"]
            names += [names[0].replace("A1", "B1")] if number == 0 else []
            for name in names:
                found |= self._write_relevant(idea, name, "en" if number == 1 else idea.language)
            cited.append((names[0], "XY"[number % 2], "SEA"))
        for number in range(decoys):
            name = f"EP-{next(self._numbers):07}-A1"
            # The last decoy appears after the priority of the topic's patent.
            self._write_decoy(idea, name, later=number == decoys - 1 > 0)
            if number == 0:
                cited.append((name, "A", "SEA"))
        self._write_topic_patent(idea, cited)

    def _codes_of_others(self, idea: Idea, name: str) -> list[str]:
        """A code of each of a few other topics of the same field, for which the document is a weak decoy.

        They have random numbers of their own, so that all other draws are the same with and without them.
        """
        chance = random.Random(f"{idea.stems} {name}")
        others = [other for other in self._ideas if other.field == idea.field and other is not idea]
        return [chance.choice(other.codes) for other in chance.sample(others, min(OTHERS, len(others)))]

    def write_background(self) -> None:
        """Write a document that belongs to no topic, with few words of topics."""
        chance, name = self._chance, self._chance.choice(FIELDS)
        number, language = next(self._numbers), chance.choice(TOPIC_LANGUAGES)
        date, priority = self._dates(1990, 2002)
        slots = [Slot(chance.sample(self._terms[name], 1) if chance.random() < 0.15 else ()) for _ in range(SLOTS)]
        self._write(
            name,
            PatentText(
                f"EP-{number:07}-A1", str(number), date, priority, language, self._field_stems[name],
                codes=[f"{name} {chance.randint(1, 99):3d}/{chance.randint(1, 99):02d}"],
                title=chance.sample(self._field_stems[name], 3), applicant=self._applicant(), inventors=self._inventors(), slots=slots,
            ),
        )  # fmt: skip

    def _has(self, effect: str) -> bool:
        return self._effect in ("all", effect)

    def _write_relevant(self, idea: Idea, name: str, language: str) -> set[tuple[str, str]]:
        """Write a relevant document; returns its name and the XPath of each relevant passage."""
        chance = self._chance
        slots, headings = self._relevant_slots(idea)
        text = self._document(idea, name, language, slots, headings, is_relevant=True)
        paths = self._write(idea.field, text)
        judged = list(paths.relevant)
        # Search reports often name the abstract and the first claims as well, which have words of the topic.
        share = NAMED if self._has("sections") else 0.1
        judged += [path for path in (paths.abstract, *paths.claims) if path and chance.random() < share]
        return {(name, path) for path in judged}

    def _write_decoy(self, idea: Idea, name: str, *, later: bool) -> None:
        slots = [Slot() for _ in range(SLOTS)]
        count = PASSAGES_OF_DECOYS if self._has("parts") else RELEVANT_PASSAGES + DECOY_PASSAGES
        end = SLOTS - SECTION_SLOTS if self._has("positions") else SLOTS
        if self._has("sections"):
            # One passage or two per subsection, never side by side.
            first = list(range(0, end, PASSAGES))
            chosen = [*first, *(number + 2 for number in self._chance.sample(first, count - len(first)))]
        else:
            chosen = self._chance.sample(range(end), count)
        for number in chosen:
            slots[number] = Slot(self._chance.sample(idea.stems, 4) if self._has("parts") else self._planted(idea, alone=True))
        self._write(idea.field, self._document(idea, name, idea.language, slots, {}, is_relevant=False, later=later))

    def _document(
        self, idea: Idea, name: str, language: str, slots: list[Slot], headings: dict[int, Sequence[str]], *,
        is_relevant: bool, later: bool = False,
    ) -> PatentText:  # fmt: skip
        chance = self._chance
        date, priority = self._dates(2003, 2005) if later else self._dates(1990, 1999)
        shares_code = is_relevant or not self._has("codes") or chance.random() < SHARED
        represents = is_relevant or not self._has("parts")
        knows_people = chance.random() < ((0.5 if is_relevant else 0.05) if self._has("parts") else 0.25)
        is_grant = name.endswith("B1")
        return PatentText(
            name,
            family=name.split("-")[1].lstrip("0"),
            date=date,
            priority=priority,
            language=language,
            common=idea.field_stems,
            codes=[
                *chance.sample(idea.codes if shares_code else idea.other_codes, chance.randint(1, 2)),
                *self._codes_of_others(idea, name),
            ],
            title=[*chance.sample(idea.stems, 2 if represents else 0), *chance.sample(idea.field_stems, 1 if represents else 3)],
            applicant=idea.applicant if knows_people else self._applicant(),
            inventors=[*(idea.inventors[:1] if knows_people else ()), *self._inventors()],
            cited=[(other, "", "APP") for other in chance.sample(self._written[idea.field], min(2, len(self._written[idea.field])))],
            # Grants of the European office have no abstract, and claims in three languages.
            abstract=None if is_grant else chance.sample(idea.stems, 2 if represents else 0),
            slots=slots,
            headings=headings,
            claims=chance.sample(idea.stems, 2 if represents else 0),
            claim_languages=[language, *(other for other in LANGUAGES if other != language)] if is_grant else (),
        )

    def _relevant_slots(self, idea: Idea) -> tuple[list[Slot], dict[int, Sequence[str]]]:
        """Draw the passages of a relevant document, and the topic words in headings of its subsections."""
        chance = self._chance
        relevant = self._together() if self._has("sections") else self._scattered()
        sections = {number // SECTION_SLOTS for number in relevant}
        if self._has("sections"):
            alone = [
                subsection * PASSAGES + chance.randrange(PASSAGES)
                for subsection in range(SLOTS // PASSAGES)
                if subsection // SUBSECTIONS not in sections
            ]
        else:
            alone = [number for number in range(SLOTS) if number not in relevant]
        decoys = chance.sample(alone, DECOY_PASSAGES)
        slots = [Slot() for _ in range(SLOTS)]
        for number in sorted(relevant):
            slots[number] = Slot(self._planted(idea), is_relevant=True)
        for number in decoys:
            slots[number] = Slot(self._planted(idea, alone=True))
        headings: dict[int, Sequence[str]] = {}
        if self._has("sections"):
            for subsection in sorted({number // PASSAGES for number in relevant}):
                if chance.random() < HEADED:
                    headings[subsection] = chance.sample(idea.stems, 1)
        return slots, headings

    def _together(self) -> set[int]:
        """Passages side by side in one main section."""
        last = SLOTS // SECTION_SLOTS - 1
        is_late = self._has("positions") and self._chance.random() < LATE
        section = last if is_late else self._chance.randrange(last if self._has("positions") else last + 1)
        first = section * SECTION_SLOTS + self._chance.randrange(SECTION_SLOTS - RELEVANT_PASSAGES + 1)
        return set(range(first, first + RELEVANT_PASSAGES))

    def _scattered(self) -> set[int]:
        """Passages anywhere in the description, or mostly in its last section."""
        chosen = set[int]()
        while len(chosen) < RELEVANT_PASSAGES:
            is_late = self._has("positions") and self._chance.random() < LATE
            chosen.add(self._chance.randrange(SLOTS - SECTION_SLOTS if is_late else 0, SLOTS))
        return chosen

    def _write_topic_patent(self, idea: Idea, cited: Sequence[tuple[str, str, str]]) -> None:
        """Write the patent of a topic, whose text has all of its words, and an earlier document of the family."""
        folder = self.collection.topics.parent
        slots = [Slot(self._chance.sample(idea.stems, 4)) if number % 4 == 0 else Slot() for number in range(SLOTS)]
        abstract = [*idea.stems, *idea.stems[:4]]
        patent = PatentText(
            idea.patent,
            family=idea.family,
            date="20020508",
            priority="20001103",
            language=idea.language,
            common=idea.field_stems,
            codes=idea.codes,
            title=idea.stems[:3],
            applicant=idea.applicant,
            inventors=idea.inventors,
            cited=cited,
            abstract=abstract if idea.has_abstract else None,
            slots=slots,
            claims=idea.stems,
        )
        write_patent(folder / "tfiles", patent, self._chance)
        if idea.member:
            member = replace(patent, name=idea.member, date="20010510", cited=(), abstract=abstract)
            state = self._chance.getstate()
            write_patent(folder / "tfam-docs", member, self._chance)
            self._chance.setstate(state)
            self._write(idea.field, member)

    def _write(self, field_name: str, text: PatentText) -> WrittenPaths:
        self._written[field_name].append(text.name)
        self.collection.document_count += 1
        return write_patent(self.collection.documents / folder_of(text.name), text, self._chance)

    def _planted(self, idea: Idea, *, alone: bool = False) -> list[str]:
        return self._chance.sample(idea.stems, self._chance.choice(PLANTED_ALONE if alone and self._has("sections") else PLANTED))

    def _dates(self, first: int, last: int) -> tuple[str, str]:
        """A date of publication in these years, and a priority two years earlier."""
        year, day = self._chance.randint(first, last), f"{self._chance.randint(1, 12):02}{self._chance.randint(1, 28):02}"
        return f"{year}{day}", f"{year - 2}{day}"

    def _applicant(self) -> str:
        return f"{self._chance.choice(self._names)} WORKS"

    def _inventors(self) -> list[str]:
        return [f"{self._chance.choice(self._names)} {self._chance.choice('ABCDEFGH')}" for _ in range(2)]


def _write_topics(path: Path, ideas: Sequence[Idea]) -> None:
    blocks = [
        f"<tid>{idea.topic}</tid>\n"
        f"<tfile>{idea.patent}.xml</tfile>\n"
        "<tclaims>/patent-document/claims/claim[1] /patent-document/claims/claim[2]</tclaims>\n"
        f"<tfam-docs>{idea.member and idea.member + '.xml'}</tfam-docs>\n"
        for idea in ideas
    ]
    path.write_text("\n".join(blocks), encoding="utf-8")


def _judged(collection: PatentCollection, ideas: Sequence[Idea]) -> Iterator[tuple[str, str, str]]:
    for idea in ideas:
        for document, xpath in sorted(collection.relevant[idea.topic]):
            yield idea.topic, document, xpath


def _write_judgements(collection: PatentCollection, ideas: Sequence[Idea]) -> None:
    """Write the judgements of all topics, and those of the topics in each language."""
    for path, chosen in [
        (collection.judgements, ideas),
        *((collection.judgements_in(language), [idea for idea in ideas if idea.language == language]) for language in LANGUAGES),
    ]:
        lines = [",".join(judged) for judged in _judged(collection, chosen)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
