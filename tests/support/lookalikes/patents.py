"""A collection in the layout of CLEF-IP: patent documents, topics with query claims, and judgements of passages by XPath.

Planted effects:

- **Relevance follows the section tree.** The relevant passages of a document stand side by side in one section of its
  description, whose heading has words of the topic. Each has as many of the topic's words as a decoy that stands alone in
  another section, so that only context tells them apart (Albarede and others 2021 and 2023).
- **Relevance depends on the position.** `LATE` of the relevant sections come last in their descriptions, where Gobeill and
  others (2012) found them.
- **Codes help.** Relevant documents share a full IPC code with the topic; documents with some of its words mostly do not.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.lookalikes.words import make_words, sentence, word, written
from tests.support.lookalikes.xml import XmlWriter

TOPIC_WORDS = 8
TERMS_OF_FIELD = 40
"""Words that the topics of a field draw theirs from: topics of one field share some."""
FIELDS = ("F04D", "G09G", "H02K", "B01J", "C07C", "A61B")
LATE = 0.7
"""Share of the relevant sections that stand last in their description."""
LANGUAGES = ("en", "en", "en", "de", "fr")
"""Languages of topics, in turn; documents are in the language of the topic that they are relevant to."""
RELEVANT_PASSAGES = 4
SECTIONS = 5
PASSAGES_OF_SECTION = 5


@dataclass
class Idea:
    """What a topic is about: its words, its code and its language."""

    number: int
    stems: list[str]
    field_stems: list[str]
    code: str
    other_code: str
    language: str


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


def make_patents(folder: Path, seed: int = 1, topics: int = 30, relevant: int = 3, decoys: int = 3) -> PatentCollection:
    """Write a collection with as many training topics as `topics`.

    `relevant` families are relevant to each topic (the first has two documents, A1 and B1); `decoys` documents have some of
    its words in passages that stand alone.
    """
    chance, taken = random.Random(seed), set[str]()
    fields = {code: make_words(60, chance, taken) for code in FIELDS}
    terms = {code: make_words(TERMS_OF_FIELD, chance, taken) for code in FIELDS}
    ideas = [_idea(number, fields, terms, chance) for number in range(2 * topics)]
    documents, patents = folder / "documents", folder / "topics" / "tfiles"
    for path in (documents, patents):
        path.mkdir(parents=True)
    collection = PatentCollection(
        folder,
        documents,
        folder / "topics" / "topics.xml",
        folder / "qrels.txt",
        folder / "topics" / "training-topics.xml",
        folder / "training-qrels.txt",
    )
    numbers = iter(range(200_001, 999_999))
    for idea in ideas:
        found = collection.relevant.setdefault(_topic_id(idea), set())
        cited = []
        for family in range(relevant):
            number = next(numbers)
            kinds = ("A1", "B1") if family == 0 else ("A1",)
            for kind in kinds:
                name = f"EP-{number:07}-{kind}"
                paths = _write_document(documents / f"{name}.xml", name, idea, chance, relevant=True)
                found |= {(name, path) for path in paths}
            cited.append(f"EP-{number:07}-A1")
        for _ in range(decoys):
            name = f"EP-{next(numbers):07}-A1"
            _write_document(documents / f"{name}.xml", name, idea, chance, relevant=False)
        family_member = f"WO-{2003000000 + idea.number}-A1"
        _write_document(documents / f"{family_member}.xml", family_member, idea, chance, relevant=False)
        _write_topic_patent(patents / f"{_patent(idea)}.xml", idea, cited, chance)
    _write_topics(collection.topics, ideas[:topics])
    _write_topics(collection.training_topics, ideas[topics:])
    _write_judgements(collection.judgements, collection, ideas[:topics])
    _write_judgements(collection.training_judgements, collection, ideas[topics:])
    return collection


def _idea(number: int, fields: dict[str, list[str]], terms: dict[str, list[str]], chance: random.Random) -> Idea:
    field_code = FIELDS[number % len(FIELDS)]
    codes = [f"{field_code} {chance.randint(1, 99):3d}/{chance.randint(1, 99):02d}" for _ in range(2)]
    stems = chance.sample(terms[field_code], TOPIC_WORDS)
    return Idea(number, stems, fields[field_code], codes[0], codes[1], LANGUAGES[number % len(LANGUAGES)])


def _topic_id(idea: Idea) -> str:
    return f"PSG-{idea.number + 1}"


def _patent(idea: Idea) -> str:
    return f"EP-{1_500_000 + idea.number}-A1"


def _family(name: str) -> str:
    return name.split("-")[1].lstrip("0")


def _write_topics(path: Path, ideas: Sequence[Idea]) -> None:
    lines = []
    for idea in ideas:
        lines += [
            "<topic>",
            f"<tid>{_topic_id(idea)}</tid>",
            f"<tfile>{_patent(idea)}.xml</tfile>",
            f"<lang>{idea.language.upper()}</lang>",
            f"<tfam-docs>WO-{2003000000 + idea.number}-A1.xml</tfam-docs>",
            "<tclaims>/patent-document/claims/claim[1] /patent-document/claims/claim[2]</tclaims>",
            "</topic>",
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_judgements(path: Path, collection: PatentCollection, ideas: Sequence[Idea]) -> None:
    lines = [
        f"{_topic_id(idea)} Q0 {document} {xpath} 1" for idea in ideas for document, xpath in sorted(collection.relevant[_topic_id(idea)])
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_document(path: Path, name: str, idea: Idea, chance: random.Random, *, relevant: bool) -> list[str]:
    """Write a patent document; returns the XPaths of its relevant passages."""
    code = idea.code if relevant or chance.random() < 0.2 else idea.other_code
    xml = XmlWriter()
    country, number, kind = name.split("-")
    attributes = {"ucid": name, "country": country, "doc_number": number, "kind": kind, "lang": idea.language.upper()}
    with xml.element("patent-document", **attributes, family_id=_family(name), date="19990512"):
        xml.line()
        words = chance.sample(idea.stems, 2)
        _write_bibliography(xml, name, "19990512", "19971103", code, idea, words, ())
        _write_text(xml, "abstract", idea, [_passage(idea, chance.sample(idea.stems, 3), chance)])
        paths = _write_description(xml, idea, chance, relevant=relevant)
        _write_claims(xml, idea, chance, chance.sample(idea.stems, 2))
    path.write_text(str(xml), encoding="utf-8")
    return paths


def _write_topic_patent(path: Path, idea: Idea, cited: Sequence[str], chance: random.Random) -> None:
    """Write the patent of a topic, whose abstract and claims have all of its words."""
    name = _patent(idea)
    country, number, kind = name.split("-")
    xml = XmlWriter()
    attributes = {"ucid": name, "country": country, "doc_number": number, "kind": kind, "lang": idea.language.upper()}
    with xml.element("patent-document", **attributes, family_id=_family(name), date="20020508"):
        xml.line()
        _write_bibliography(xml, name, "20020508", "20001103", idea.code, idea, idea.stems[:3], cited)
        _write_text(xml, "abstract", idea, [_passage(idea, [*idea.stems, *idea.stems[:4]], chance)])
        _write_text(xml, "description", idea, [_passage(idea, idea.stems, chance) for _ in range(3)])
        _write_claims(xml, idea, chance, idea.stems)
    path.write_text(str(xml), encoding="utf-8")


def _write_bibliography(
    xml: XmlWriter, name: str, date: str, priority: str, code: str, idea: Idea, title: Sequence[str], cited: Sequence[str]
) -> None:
    country, number, kind = name.split("-")
    with xml.element("bibliographic-data"):
        xml.line()
        with xml.element("publication-reference", ucid=name):
            _write_number(xml, country, number, kind, date)
        xml.line()
        with xml.element("priority-claims"), xml.element("priority-claim", ucid=f"US-{number}-A"):
            _write_number(xml, "US", number, "A", priority)
        xml.line()
        with xml.element("technical-data"):
            with xml.element("classifications-ipcr"):
                xml.leaf("classification-ipcr", f"{code:<19}20060101AFI20051220RMJP        ")
            for language in ("de", "en", "fr"):
                xml.leaf("invention-title", " ".join(word(stem, language) for stem in title), lang=language.upper())
            if cited:
                with xml.element("citations"), xml.element("patent-citations"):
                    for other in cited:
                        with xml.element("patcit", ucid=other):
                            _write_number(xml, *other.split("-"))
                            with xml.element("sources"), xml.element("source", category="X", name="SEA"):
                                pass
        with xml.element("parties"):
            for role, person in (("applicant", "WORKS"), ("inventor", "DOE JANE")):
                with xml.element(f"{role}s"), xml.element(role, format="epo"), xml.element("addressbook"):
                    xml.leaf("name", f"{person} {word(idea.field_stems[idea.number % 60], 'en').upper()}")
    xml.line()


def _write_number(xml: XmlWriter, country: str, number: str, kind: str, date: str = "") -> None:
    with xml.element("document-id", format="epo"):
        for tag, value in (("country", country), ("doc-number", number), ("kind", kind), ("date", date)):
            if value:
                xml.leaf(tag, value)


def _passage(idea: Idea, planted: Sequence[str], chance: random.Random) -> str:
    """Three sentences of the field with the planted words anywhere in them."""
    words = sentence(idea.field_stems, planted, 36 + len(planted), idea.language, chance)
    third = len(words) // 3
    return " ".join(written(words[first : first + third + 1]) for first in range(0, len(words), third + 1))


def _write_text(xml: XmlWriter, tag: str, idea: Idea, passages: Sequence[str]) -> None:
    with xml.element(tag, lang=idea.language.upper()):
        xml.line()
        for number, passage in enumerate(passages, 1):
            xml.leaf("p", passage, num=f"{number:04}")
    xml.line()


def _write_description(xml: XmlWriter, idea: Idea, chance: random.Random, *, relevant: bool) -> list[str]:
    """Write sections of passages; each decoy stands in another section than the relevant passages, alone."""
    sections = list(range(SECTIONS))
    target = SECTIONS - 1 if chance.random() < LATE else chance.randrange(SECTIONS - 1)
    decoys = {section: chance.randrange(PASSAGES_OF_SECTION) for section in sections if not relevant or section != target}
    paths: list[str] = []
    number = 0
    with xml.element("description", lang=idea.language.upper()):
        xml.line()
        for section in sections:
            is_target = relevant and section == target
            stems = chance.sample(idea.stems if is_target else idea.field_stems, 2)
            xml.leaf("heading", " ".join(word(stem, idea.language) for stem in stems).upper())
            first = chance.randrange(PASSAGES_OF_SECTION - RELEVANT_PASSAGES + 1)
            for position in range(PASSAGES_OF_SECTION):
                number += 1
                is_relevant = is_target and first <= position < first + RELEVANT_PASSAGES
                is_decoy = decoys.get(section) == position
                planted = chance.sample(idea.stems, 2) if is_relevant or is_decoy else []
                with xml.element("p", num=f"{number:04}"):
                    if is_relevant:
                        paths.append(xml.path)
                    xml.text(_passage(idea, planted, chance))
                xml.line()
    xml.line()
    return paths


_DEVICE = {"en": "A device with", "de": "Vorrichtung mit", "fr": "Dispositif avec"}
_DEPENDENT = {
    "en": "The device of claim 1, with",
    "de": "Vorrichtung nach Anspruch 1, mit",
    "fr": "Dispositif selon la revendication 1, avec",
}


def _write_claims(xml: XmlWriter, idea: Idea, chance: random.Random, planted: Sequence[str]) -> None:
    with xml.element("claims", lang=idea.language.upper()):
        xml.line()
        for number in range(1, 4):
            start = _DEVICE[idea.language] if number == 1 else _DEPENDENT[idea.language]
            words = sentence(idea.field_stems, planted if number < 3 else (), 14, idea.language, chance)
            with xml.element("claim", num=str(number)):
                xml.leaf("claim-text", f"{start} {' '.join(words)}.")
            xml.line()
    xml.line()
