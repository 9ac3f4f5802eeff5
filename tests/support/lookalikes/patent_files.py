"""Writes a patent document in the XML of CLEF-IP."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.lookalikes.words import sentence, word, written
from tests.support.lookalikes.xml import XmlWriter

LANGUAGES = ("en", "de", "fr")
MAIN_SECTIONS, SUBSECTIONS, PASSAGES = 4, 2, 4
"""Main sections of a description, subsections of each, passages of each subsection."""
SLOTS = MAIN_SECTIONS * SUBSECTIONS * PASSAGES
"""Passages of a description."""
LENGTH = 30
"""Words of a passage."""
CLAIMS = 4
MENTIONS = 0.1
"""Share of the passages that mention a claim."""
_MAIN_HEADINGS = {
    "en": ("TECHNICAL FIELD", "BACKGROUND OF THE INVENTION", "SUMMARY OF THE INVENTION", "DETAILED DESCRIPTION"),
    "de": ("TECHNISCHES GEBIET", "STAND DER TECHNIK", "ZUSAMMENFASSUNG DER ERFINDUNG", "DETAILLIERTE BESCHREIBUNG"),
    "fr": ("DOMAINE TECHNIQUE", "ÉTAT DE LA TECHNIQUE", "EXPOSÉ DE L'INVENTION", "DESCRIPTION DÉTAILLÉE"),
}
_DEVICE = {"en": "A device with", "de": "Vorrichtung mit", "fr": "Dispositif avec"}
_DEPENDENT = {
    "en": "The device of claim {}, with",
    "de": "Vorrichtung nach Anspruch {}, mit",
    "fr": "Dispositif selon la revendication {}, avec",
}
_MENTION = {
    "en": "This is the device of claim {}.",
    "de": "Dies ist die Vorrichtung nach Anspruch {}.",
    "fr": "C'est le dispositif selon la revendication {}.",
}


@dataclass
class Slot:
    """What one passage of a description has of a topic."""

    planted: Sequence[str] = ()
    is_relevant: bool = False


@dataclass
class PatentText:
    """What a patent document says."""

    name: str
    """As its file is named: `EP-0200001-A1`."""
    family: str
    date: str
    priority: str
    language: str
    common: Sequence[str]
    """Stems that fill the text."""
    codes: Sequence[str] = ()
    title: Sequence[str] = ()
    applicant: str = ""
    inventors: Sequence[str] = ()
    cited: Sequence[tuple[str, str, str]] = ()
    """Name of a cited document, category (X, Y, A), and source: SEA for the search report, APP for the applicant."""
    abstract: Sequence[str] | None = ()
    """Topic words of the abstract; None for a document without one."""
    slots: Sequence[Slot] = field(default_factory=lambda: [Slot() for _ in range(SLOTS)])
    headings: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Topic words of headings, by number of the subsection."""
    claims: Sequence[str] = ()
    """Topic words of the first two claims."""
    claim_languages: Sequence[str] = ()
    """Languages that the claims are written in; the language of the document where empty."""


@dataclass
class WrittenPaths:
    """XPaths of a written document."""

    relevant: list[str] = field(default_factory=list)
    """Of the relevant passages of the description."""
    abstract: str = ""
    claims: list[str] = field(default_factory=list)
    """Of the first two claims, which have words of the topic."""


def folder_of(name: str) -> Path:
    """The folder of a document in the collection: of 12 digits of its number, the last six name three folders.

    >>> folder_of("EP-0200001-A1").as_posix(), folder_of("WO-2003000001-A1").as_posix()
    ('EP/000000/20/00/01', 'WO/002003/00/00/01')
    """
    country, number, _ = name.split("-")
    digits = f"{int(number):012}"
    return Path(country, digits[:6], digits[6:8], digits[8:10], digits[10:])


def write_patent(folder: Path, text: PatentText, chance: random.Random) -> WrittenPaths:
    """Write a document into a folder, as NAME.xml."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = _PatentWriter(text, chance)
    (folder / f"{text.name}.xml").write_text(writer.write(), encoding="utf-8")
    return writer.paths


class _PatentWriter:
    """Writes one document."""

    def __init__(self, text: PatentText, chance: random.Random) -> None:
        self._text, self._chance = text, chance
        self._xml = XmlWriter()
        self.paths = WrittenPaths()

    def write(self) -> str:
        """The document as XML."""
        text, xml = self._text, self._xml
        country, number, kind = text.name.split("-")
        attributes = {"ucid": text.name, "country": country, "doc_number": number, "kind": kind, "lang": text.language.upper()}
        with xml.element("patent-document", **attributes, family_id=text.family, status="new", date=text.date):
            xml.line()
            self._write_bibliography()
            if text.abstract is not None:
                self._write_abstract(text.abstract)
            self._write_description()
            for language in text.claim_languages or (text.language,):
                self._write_claims(language)
        return str(xml)

    def _write_bibliography(self) -> None:
        text, xml = self._text, self._xml
        country, number, kind = text.name.split("-")
        with xml.element("bibliographic-data"):
            xml.line()
            with xml.element("publication-reference", ucid=text.name):
                self._write_number(country, number, kind, text.date)
            xml.line()
            with xml.element("priority-claims"), xml.element("priority-claim", ucid=f"US-{number}-A"):
                self._write_number("US", number, "A", text.priority)
            xml.line()
            with xml.element("technical-data"):
                with xml.element("classifications-ipcr"):
                    for code in text.codes:
                        xml.leaf("classification-ipcr", f"{code:<19}20060101AFI20051220RMJP        ")
                for language in LANGUAGES:
                    xml.leaf("invention-title", " ".join(word(stem, language) for stem in text.title), lang=language.upper())
                if text.cited:
                    self._write_citations()
            with xml.element("parties"):
                self._write_people("applicant", [text.applicant])
                self._write_people("inventor", text.inventors)
        xml.line()

    def _write_citations(self) -> None:
        xml = self._xml
        with xml.element("citations"), xml.element("patent-citations"):
            for other, category, source in self._text.cited:
                with xml.element("patcit", ucid=other):
                    self._write_number(*other.split("-"))
                    with xml.element("sources"), xml.element("source", category=category, name=source):
                        pass

    def _write_people(self, role: str, names: Sequence[str]) -> None:
        xml = self._xml
        with xml.element(f"{role}s"):
            for sequence, name in enumerate(filter(None, names), 1):
                with xml.element(role, format="epo", sequence=str(sequence)), xml.element("addressbook"):
                    xml.leaf("name", name)

    def _write_number(self, country: str, number: str, kind: str, date: str = "") -> None:
        with self._xml.element("document-id", format="epo"):
            for tag, value in (("country", country), ("doc-number", number), ("kind", kind), ("date", date)):
                if value:
                    self._xml.leaf(tag, value)

    def _write_abstract(self, planted: Sequence[str]) -> None:
        with self._xml.element("abstract", lang=self._text.language.upper()):
            self._xml.line()
            with self._xml.element("p", num="0001"):
                self.paths.abstract = self._xml.path.removesuffix("[1]")
                self._xml.text(self._passage(planted))
            self._xml.line()
        self._xml.line()

    def _write_description(self) -> None:
        text, xml = self._text, self._xml
        with xml.element("description", lang=text.language.upper()):
            xml.line()
            for number, slot in enumerate(text.slots):
                subsection, position = divmod(number, PASSAGES)
                main, below = divmod(subsection, SUBSECTIONS)
                if position == 0 and below == 0:
                    xml.leaf("heading", _MAIN_HEADINGS[text.language][main])
                if position == 0:
                    xml.leaf("heading", f"{below + 1}. {self._heading(text.headings.get(subsection, ()))}")
                with xml.element("p", num=f"{number + 1:04}"):
                    if slot.is_relevant:
                        self.paths.relevant.append(xml.path)
                    mention = self._chance.random() < MENTIONS
                    xml.text(self._passage(slot.planted) + (f" {_MENTION[text.language].format(1)}" if mention else ""))
                xml.line()
        xml.line()

    def _heading(self, planted: Sequence[str]) -> str:
        stems = [*planted, *self._chance.sample(list(self._text.common), 2 - min(2, len(planted)))]
        return " ".join(word(stem, self._text.language) for stem in stems).capitalize()

    def _passage(self, planted: Sequence[str]) -> str:
        """Three sentences with the planted words anywhere in them."""
        words = sentence(self._text.common, planted, LENGTH, self._text.language, self._chance)
        third = len(words) // 3
        return " ".join(written(words[first : first + third + 1]) for first in range(0, len(words), third + 1))

    def _write_claims(self, language: str) -> None:
        text, xml = self._text, self._xml
        with xml.element("claims", lang=language.upper()):
            xml.line()
            for number in range(1, CLAIMS + 1):
                start = _DEVICE[language] if number == 1 else _DEPENDENT[language].format(number - 1)
                words = sentence(text.common, text.claims if number <= 2 else (), 14, language, self._chance)
                with xml.element("claim", num=str(number)):
                    if number <= 2 and language == text.language:
                        self.paths.claims.append(xml.path)
                    xml.leaf("claim-text", f"{start} {' '.join(words)}.")
                xml.line()
        xml.line()
