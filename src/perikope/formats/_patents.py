"""What the patent formats share: numbers in one form, headings that are only paragraphs, claims, and references made in words.

A schema gives a `Bibliography` and a profile; the walk makes of them a document with the sections bibliography, abstract, description
and claims, one claim a passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import ClassVar, NamedTuple

from perikope.document.tree import Kind
from perikope.formats._inline import Run
from perikope.formats._profile import Element, Profile, Role, Rule, text_of
from perikope.formats._source import Source, language_or_nothing
from perikope.formats._xml import XmlDocument, whole_text
from perikope.formats._xml_walk import Walk
from perikope.patents.codes import parse_code
from perikope.patents.headings import Headings
from perikope.patents.mentions import cited_patents, claim_starts, mentions, named_first
from perikope.patents.numbers import PatentNumber, patent_number


@dataclass(slots=True)
class Bibliography:
    """What a schema says about a patent, in whatever tags; all lists in the order of the file."""

    publication: PatentNumber | None = None
    application: PatentNumber | None = None
    priorities: list[PatentNumber] = field(default_factory=list)
    family: str = ""
    titles: list[tuple[str, Element]] = field(default_factory=list)
    """Language, as the file writes it, and element of each title."""
    ipc: list[str] = field(default_factory=list)
    """Classification codes as the file writes them, or in normal form."""
    cpc: list[str] = field(default_factory=list)
    ecla: list[str] = field(default_factory=list)
    uspc: list[str] = field(default_factory=list)
    """In the form 15/327.6: they are kept as they are."""
    applicants: list[tuple[str, Element]] = field(default_factory=list)
    """Name and the element that holds it."""
    inventors: list[tuple[str, Element]] = field(default_factory=list)
    assignees: list[tuple[str, Element]] = field(default_factory=list)
    cites: list[PatentNumber] = field(default_factory=list)
    literature: list[str] = field(default_factory=list)

    def metadata(self) -> dict[str, object]:
        """The metadata of the document, without what is not known."""
        publication, application = self.publication, self.application
        dated = sorted((priority for priority in self.priorities if priority.date), key=lambda priority: priority.date)
        earliest = dated[0] if dated else None
        found: dict[str, object] = {}
        if publication and publication.number:
            found |= {"publication": publication.written, "patent": publication.patent, "country": publication.country}
            found |= {"kind": publication.kind, "date": publication.date}
        if application:
            found["application_date"] = application.date
        found["priority_date"] = earliest.date if earliest else application.date if application else ""
        found["priorities"] = list(dict.fromkeys(priority.id for priority in self.priorities))
        found["family"] = self.family or (earliest.id if earliest else application.id if application else "")
        for name, codes in (("ipc", self.ipc), ("cpc", self.cpc), ("ecla", self.ecla)):
            found[name] = normal_codes(codes)
        found["uspc"] = list(dict.fromkeys(self.uspc))
        for name, people in (("applicant", self.applicants), ("inventor", self.inventors), ("assignee", self.assignees)):
            found[name] = list(dict.fromkeys(person for person, _ in people))
        found["literature"] = list(dict.fromkeys(self.literature))
        return {key: value for key, value in found.items() if value}


def normal_codes(texts: Iterable[str]) -> list[str]:
    """Classification codes in their one form, without doubles; what is none is left out.

    >>> normal_codes(["B28B   1/29        20060101A I20051008RMEP", "B28B 1/29", "B28B   5/02B2", "x"])
    ['B28B1/29', 'B28B5/02B2']
    """
    parsed = (parse_code(text) for text in texts)
    return list(dict.fromkeys(str(code) for code in parsed if code))


class _Shown(NamedTuple):
    """A passage of the bibliographic data."""

    tag: str
    text: str
    part: str = ""
    language: str = ""


class _ClaimSet(NamedTuple):
    """Claims in one language; a patent may have several sets even in one, for several states."""

    language: str
    """Nothing where it is the document's own."""
    place: int
    """Which set in this language it is, from 1."""

    def claim(self, number: int) -> _Claim:
        ending = (self.language, str(self.place) if self.place > 1 else "")
        return _Claim(number, "-".join(("claim", str(number), *filter(None, ending))), self)


class _Claim(NamedTuple):
    number: int
    id: str
    set: _ClaimSet


_PARAGRAPH = re.compile(r"\s*\[\s?([0-9]{1,5})\s?\](?!\s*[-,.;)])")
"""A number before the text of a paragraph: `[0042] The pump …`."""


_BEGINNING = 200
"""So many characters of a paragraph say which figure it describes."""


class PatentWalk(Walk):
    """The walk through a patent; a schema says where its bibliographic data are, and the walk finds what is only said in words."""

    bibliographies: ClassVar[frozenset[str]] = frozenset(("bibliographic-data",))
    """Tags of the element that holds the bibliographic data; it becomes the section `bibliography`."""
    descriptions: ClassVar[frozenset[str]] = frozenset(("description",))
    """Tags of the description, a section in the profile; only its paragraphs are numbered, and may be headings."""
    claims: ClassVar[frozenset[str]] = frozenset(("claim",))
    """Tags of a claim, a passage in the profile."""
    claim_sets: ClassVar[frozenset[str]] = frozenset(("claims",))
    """Tags of the claims in one language, a section in the profile."""
    paragraphs: ClassVar[frozenset[str]] = frozenset(("p",))
    """Tags of a paragraph of the description, a passage in the profile; one that looks like a heading is taken for one."""
    references: ClassVar[frozenset[str]] = frozenset(("claim-ref",))
    """Tags that refer to claims by ids, in `idref`."""

    def __init__(self, profile: Profile, tree: XmlDocument, source: Source) -> None:
        self.root = tree.root
        self.patent = patent = self.bibliography()
        patent.applicants, patent.inventors, patent.assignees = map(_unescaped, (patent.applicants, patent.inventors, patent.assignees))
        super().__init__(profile, tree, source)
        self._claims: dict[Element, _Claim] = {}
        self._claim_of_id: dict[str, _Claim] = {}
        self._lists_of_claims: dict[Element, tuple[_ClaimSet, list[tuple[int, int, int]]]] = {}
        """Elements that hold all claims of a set as its lines, with `claim_starts` of these."""
        self._claim_ids: dict[tuple[_ClaimSet, str], str] = {}
        self._count_claims()
        self._headings = Headings(self._is_numbered)
        self._targets: dict[tuple[str, str], str] = {}
        """Ids by what people call the thing: ("figure", "3B"), ("example", "2"), ("paragraph", "0042")."""
        self._mentions: list[tuple[int, str, tuple[str | _ClaimSet, str]]] = []
        """Passage, its own id, and what it mentions; which of these there is shows only at the end."""
        self._cited: dict[str, None] = dict.fromkeys(self.builder.cites)
        self._own_id = ""

    # What a schema does in its own way.

    def bibliography(self) -> Bibliography:
        """What the file says about the patent; `self.root` is set, nothing else."""
        raise NotImplementedError

    def claim_number(self, element: Element) -> int:
        """The number that a claim has by itself; 0 where it has none and is counted. Of `00003-00012` it is the first."""
        found = re.match(r"0*([0-9]{1,5})\b", element.get("num") or "")
        return int(found[1]) if found else 0

    def paragraph_number(self, element: Element) -> tuple[str, bool]:
        """The number of a paragraph as `0042`, and whether it is printed, so that people cite it; nothing where it has none."""
        if found := re.fullmatch("[0-9]{1,5}", element.get("num") or ""):
            return found[0].zfill(4), True
        if found := _PARAGRAPH.match(element.text or ""):
            return found[1].zfill(4), True
        return "", False

    def level_of_tag(self, element: Element) -> int:
        """The level that attributes give a heading; 0 where they do not."""
        return 0

    def patents_cited_in(self, element: Element) -> Iterator[str]:
        """Ids of patents that a passage cites, where the file marks them."""
        return iter(())

    # What all have in common.

    def document_id(self) -> str:
        publication = self.patent.publication
        return publication.id if publication and publication.number else super().document_id()

    def metadata(self) -> dict[str, object]:
        return super().metadata() | self.patent.metadata()

    def found(self, key: str) -> list[str]:
        if key == "title":
            title = self._title_element()
            return [text_of(title)] if title is not None else []
        if key == "cites":
            return [number.id for number in self.patent.cites]
        return super().found(key)

    def heading_level(self, element: Element, rule: Rule, run: Run) -> int:
        if rule.role is Role.HEADING:
            return self.level_of_tag(element) or self._headings.level(run.text)
        if element.tag in self.paragraphs and self._in_description() and self._headings.is_heading(element, run.text):
            return self._headings.level(run.text)
        return 0

    def id_of(self, element: Element) -> str:
        if element.tag in self.claims:
            return self._claims[element].id if element in self._claims else ""
        if not self._in_description() or (element.tag not in self.paragraphs and self.profile.rule(element).role is not Role.HEADING):
            return ""
        number, _ = self.paragraph_number(element)
        named = list(named_first(" ".join(whole_text(element)[:_BEGINNING].split())))
        id = f"p{number}" if number else "-".join(named[0]).replace("figure", "fig").lower() if named else ""
        if number:
            self._targets.setdefault(("paragraph", number), id)
        if id:
            for thing in named:
                self._targets.setdefault(thing, id)
        return id

    def citation_of(self, element: Element, rule: Rule, run: Run) -> str:
        if element.tag in self.claims:
            return f"claim {self._claims[element].number}" if element in self._claims else ""
        if element.tag in self.paragraphs and self._in_description():
            number, is_printed = self.paragraph_number(element)
            return f"[{number}]" if is_printed else ""
        return super().citation_of(element, rule, run)

    def passage_added(self, number: int, element: Element, run: Run) -> None:
        own, claim = self._own_id, self._claims.get(element)
        if own and not claim and self._in_description():
            # A list of figures is one passage; each of its lines may describe one.
            for thing in named_first(run.text if "\n" in run.text else run.text[:_BEGINNING]):
                if thing[0] == "figure":
                    self._targets.setdefault(thing, own)
        self._note_mentions(number, own, run.text, claim)
        for reference in element.iter(*self.references):
            target = self._claim_of_id.get(reference.get("idref") or "")
            if target and not _contradicts(reference, claim, target):
                self._mentions.append((number, own, (target.set, str(target.number))))
        for id in self.patents_cited_in(element):
            self._cited.setdefault(id)

    def finish(self) -> None:
        seen = set()
        for number, own, thing in self._mentions:
            what, which = thing
            target = self._target(what, which) if isinstance(what, str) else self._claim_ids.get((what, which), "")
            if target and target != own and (number, target) not in seen:
                seen.add((number, target))
                self.builder.refer(target, number)
        # A patent cited by number only is not cited once more where a publication of it is, and never by itself.
        known = {id.rpartition("-")[0] for id in (self.builder.id, *self._cited) if id.count("-") == 2}
        self.builder.cites[:] = [id for id in self._cited if id and id != self.builder.id and id not in known]

    def _note_mentions(self, passage: int, own: str, text: str, claim: _Claim | None) -> None:
        for what, which in mentions(text, before=claim.number if claim else 0):
            if what != "claim":
                self._mentions.append((passage, own, (what, which)))
            elif claim or self._in_description():
                self._mentions.append((passage, own, (claim.set if claim else self._main_set, which)))

    def _target(self, what: str, which: str) -> str:
        """The id of what is called so; of figure 3B that of 3 where only that is described, and of 3 that of 3A."""
        if target := self._targets.get((what, which)):
            return target
        if what != "figure":
            return ""
        whole = which.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        return self._targets.get((what, whole)) or self._targets.get((what, f"{which}A"), "")

    def _count_claims(self) -> None:
        """Number all claims, since the first may be mentioned before the last is met."""
        own = language_or_nothing(self.language)
        counts: dict[str, int] = {}
        sets: list[_ClaimSet] = []
        for claims in self.root.iter(*self.claim_sets):
            language = self._language_of(claims)
            language = "" if language == own else language
            counts[language] = counts.get(language, 0) + 1
            here = _ClaimSet(language, counts[language])
            sets.append(here)
            elements = list(claims.iter(*self.claims))
            starts = claim_starts([whole_text(child) for child in elements[0]]) if len(elements) == 1 else []
            if len(starts) > 1:
                self._lists_of_claims[elements[0]] = here, starts
                for number, _, _ in starts:
                    self._add_claim(here.claim(number))
                continue
            count = 0
            for element in elements:
                count = self.claim_number(element) or count + 1
                self._claims[element] = claim = here.claim(count)
                self._add_claim(claim)
                if id := element.get("id"):
                    self._claim_of_id.setdefault(id, claim)
        self._main_set = next((here for here in sets if not here.language), sets[0] if sets else _ClaimSet("", 1))

    def _add_claim(self, claim: _Claim) -> None:
        self._claim_ids.setdefault((claim.set, str(claim.number)), claim.id)

    def _title_element(self) -> Element | None:
        """The title in the document's language; else in English; else the first."""
        titles = [(language_or_nothing(language), element) for language, element in self.patent.titles]
        for wanted in (language_or_nothing(self.language), "en"):
            for language, element in titles:
                if language == wanted:
                    return element
        return titles[0][1] if titles else None

    def _block(self, element: Element, path: str, rule: Rule) -> None:
        if element.tag in self.bibliographies:
            self._bibliography(element, path)
        elif element in self._lists_of_claims:
            self._list_of_claims(element, path)
        else:
            super()._block(element, path, rule)

    def _list_of_claims(self, element: Element, path: str) -> None:
        """One passage a claim of an element that holds all of them, line after line, or several in one line."""
        self._flush()
        claims, starts = self._lists_of_claims[element]
        lines = []
        self._offset += len(element.text or "")
        counts: dict[str, int] = {}
        for child in element:
            tag = str(child.tag)
            counts[tag] = counts.get(tag, 0) + 1
            lines.append((f"{path}/{tag}[{counts[tag]}]", self._offset, whole_text(child), self._gathered(child, path)))
            self._offset += len(child.tail or "")
        after = self._offset
        borders = [(0, 0), *((line, position) for _, line, position in starts), (len(lines), 0)]
        for number, begin, end in zip((0, *(number for number, _, _ in starts)), borders, borders[1:], strict=False):
            pieces = []
            for index in range(begin[0], min(end[0] + 1, len(lines))):
                _, offset, raw, run = lines[index]
                first = begin[1] if index == begin[0] else 0
                last = end[1] if index == end[0] else len(raw)
                if raw[first:last].strip():
                    pieces.append((index, offset + first, offset + last, cut(run, raw, first, last)))
            if not pieces:
                continue
            run = joined([piece for *_, piece in pieces])
            claim = claims.claim(number) if number else None
            id = claim.id if claim and claim.id not in self._ids else ""
            self._ids.add(id)
            passage = self.builder.passage(run.text, "claim" if claim else "claim-statement", id=id, marks=run.marks, refs=run.refs)
            self._offset = pieces[-1][2]
            self._place(passage, lines[pieces[0][0]][0] if pieces[0][0] == pieces[-1][0] else path, pieces[0][1])
            if claim:
                self.builder.citations[passage] = f"claim {number}"
            self._note_mentions(passage, id, run.text, claim)
        self._offset = after
        for id in self.patents_cited_in(element):
            self._cited.setdefault(id)

    def _bibliography(self, element: Element, path: str) -> None:
        """A section with the titles in other languages and the names, each at its place in the file."""
        self._flush()
        main, shown = self._title_element(), self._shown()
        start, number = self._offset, 0
        if shown.keys() - {main}:
            number = self.builder.open(Kind.SECTION, "bibliography", part="bibliography")
        self._show(element, path, shown, main)
        if number:
            self.builder.close()
            self._place(number, path, start)

    def _shown(self) -> dict[Element, _Shown]:
        """What of the bibliographic data is text to be found: the elements that become passages."""
        patent = self.patent
        shown = {title: _Shown("title", text_of(title), "title", language_or_nothing(language)) for language, title in patent.titles}
        for tag, people in (("applicant", patent.applicants), ("inventor", patent.inventors), ("assignee", patent.assignees)):
            # Of a name that is there twice, the first place.
            for name, place in dict(reversed(people)).items():
                shown.setdefault(place, _Shown(tag, name))
        return shown

    def _show(self, element: Element, path: str, shown: Mapping[Element, _Shown], main: Element | None) -> None:
        start = self._offset
        if found := shown.get(element):
            self._offset += len(whole_text(element))
            # The title in the document's own language is the first span after the document itself.
            number = 1 if element is main else self.builder.passage(found.text, found.tag, part=found.part, language=found.language)
            self._place(number, path, start)
            return
        self._offset += len(element.text or "")
        counts: dict[str, int] = {}
        for child in element:
            tag = str(child.tag)
            counts[tag] = counts.get(tag, 0) + 1
            self._show(child, f"{path}/{tag}[{counts[tag]}]", shown, main)
            self._offset += len(child.tail or "")

    def _new_id(self, element: Element) -> str:
        self._own_id = super()._new_id(element)
        return self._own_id

    def _in_description(self) -> bool:
        return len(self._around) > 1 and self._around[1].tag in self.descriptions

    def _is_numbered(self, element: Element) -> bool:
        return bool(self.paragraph_number(element)[0])


def _contradicts(reference: Element, claim: _Claim | None, target: _Claim) -> bool:
    """Whether a claim is said to depend on itself or on a later one, while the words name another: then the words are right."""
    if not claim or target.set != claim.set or target.number < claim.number:
        return False
    named = [which for what, which in mentions(text_of(reference)) if what == "claim"]
    return bool(named) and str(target.number) not in named


_ESCAPED = re.compile(r"&(?:amp|lt|gt|quot|apos);")


def _unescaped(people: Iterable[tuple[str, Element]]) -> list[tuple[str, Element]]:
    """Names in which the file has escaped characters twice, as `Smith &amp;amp; Co`."""
    return [(_ESCAPED.sub(lambda found: unescape(found[0]), name), place) for name, place in people]


def marked_patents(element: Element, tags: Iterable[str]) -> Iterator[str]:
    """Ids of the patents in the references of a passage that the file marks as such."""
    for reference in element.iter(*tags):
        if "patent" in (reference.get("type"), reference.get("typ")):
            for country, number, kind in cited_patents(text_of(reference)):
                yield patent_number(country, number, kind).id


def cut(run: Run, raw: str, first: int, last: int) -> Run:
    """What of a run was made of the characters `first` to `last` of the raw text: it has the same ones but for white space.

    >>> cut(Run("1. A pump. 2. A rotor.", [("b", 14, 21)], []), "1. A\\n pump. 2. A rotor.", 12, 24)
    Run(text='2. A rotor.', marks=[('b', 3, 10)], refs=[])
    """
    if first <= 0 and last >= len(raw):
        return run
    start, end = (_position(run.text, sum(not character.isspace() for character in raw[:place])) for place in (first, last))
    while start < end and run.text[start].isspace():
        start += 1
    text = run.text[start:end].rstrip()
    marks = [(tag, max(begin - start, 0), min(stop - start, len(text))) for tag, begin, stop in run.marks]
    return Run(text, [mark for mark in marks if mark[1] < mark[2]], run.refs)


def _position(text: str, count: int) -> int:
    """Where as many characters that are no white space have gone by."""
    for position, character in enumerate(text):
        if not character.isspace():
            if count == 0:
                return position
            count -= 1
    return len(text)


def joined(runs: Sequence[Run]) -> Run:
    """Runs as lines of one."""
    text, marks, refs = "", [], []
    for run in runs:
        shift = len(text) + 1 if text else 0
        text = f"{text}\n{run.text}" if text else run.text
        marks += [(tag, start + shift, end + shift) for tag, start, end in run.marks]
        refs += run.refs
    return Run(text, marks, list(dict.fromkeys(refs)))
