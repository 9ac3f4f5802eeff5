"""The walk for patents. It recognises headings tagged as paragraphs, claims, and references made in words.

The table `[patent]` of the profile says where the data are. The document gets the sections bibliography, abstract,
description and claims, with one passage per claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from perikope.document.tree import Place
from perikope.formats._bibliography import bibliography, publications, publications_of
from perikope.formats._claims import Claim, Line, cut_claims, numbered_claims
from perikope.formats._inline import Run
from perikope.formats._profile import Profile, Role
from perikope.formats._source import language_or_nothing
from perikope.formats._xml import whole_text
from perikope.formats._xpaths import Element, Path, elements, text_of, texts, with_all_around
from perikope.formats.walks import Added, Block, Front, Heading, Links, Piece, Replacement, RunOf, Walk, walk
from perikope.patents.headings import DEEPEST_TAGGED, Headings, heading_level
from perikope.patents.mentions import may_name, mentions, mentions_of_all, named_first
from perikope.patents.numbers import PatentNumber

_PARAGRAPH = re.compile(r"\s*\[\s?([0-9]{1,5})\s?\](?!\s*[-,.;)])")
"""A number before the text of a paragraph: `[0042] The pump …`."""
_NUMBER = re.compile("[0-9]{1,5}")
_BEGINNING = 200
"""Characters at the beginning of a paragraph in which the figure or example that it describes is searched."""
BIBLIOGRAPHY = "bibliography"
"""Tag and part of the section with the bibliographic data."""

Thing = tuple[str, str]
"""Kind and number of a thing that a text mentions: ("figure", "3B"), ("example", "2"), ("paragraph", "0042")."""


class ParagraphNumber(NamedTuple):
    """The number of a paragraph."""

    written: str
    """The number with at least four digits, such as `0042`; empty if the paragraph has no number."""
    is_printed: bool
    """Whether the publication is printed with the number, so that people cite by it."""


NO_NUMBER = ParagraphNumber("", False)
_NO_CLAIMS: Mapping[str, str] = {}
_HEADING = Role.HEADING


@walk("patent")
class PatentWalk(Walk):
    """The walk for patents. A subclass for a schema with other rules overrides `paragraph_number` or `is_heading`."""

    def __init__(self, profile: Profile, root: Element) -> None:
        super().__init__(profile, root)
        self.keys = keys = profile.patent
        self.bibliography = bibliography(keys, root)
        self.language = next(iter(profile.found("language", root)), "")
        self.title = self.bibliography.title_in(self.language)
        self.claims = numbered_claims(profile, root, self.language)
        self.replaced = frozenset((*keys.bibliography, *keys.claims))
        self.is_printed = bool(keys.printed(root))
        self._paragraphs = frozenset(keys.paragraphs)
        self._description = frozenset(keys.description)
        self._numbers = numbers = self._numbered_paragraphs()
        self._headings = Headings(lambda element: element in numbers)
        self._levels = _tagged_levels(keys.heading_level, profile, root)

    # Rules that a subclass may override.

    def paragraph_number(self, element: Element) -> ParagraphNumber:
        """The number of a paragraph: from the profile's `paragraph_number`, else from its text (`[0042] The pump …`).

        The constructor of `PatentWalk` calls this method, so an override must not need attributes that the subclass's
        constructor sets later.
        """
        for path in self.keys.paragraph_number:
            for written in texts(path, element):
                if _NUMBER.fullmatch(written) and int(written):
                    return ParagraphNumber(f"{int(written):04d}", self.is_printed)
        if (text := element.text) and "[" in text and (match := _PARAGRAPH.match(text)):
            return ParagraphNumber(match[1].zfill(4), self.is_printed)
        return NO_NUMBER

    def is_heading(self, element: Element, text: str) -> bool:
        """Whether a paragraph of the description is a heading."""
        return self._headings.is_heading(element, text)

    # Methods of `Walk`.

    def front(self) -> Front:
        """The data of `Walk.front`, completed from the bibliographic data of the patent."""
        front, patent = super().front(), self.bibliography
        cites = [*front.cites, *(number.id for number in patent.cites)]
        return Front(
            id=patent.publication.id if patent.publication else front.id,
            title=text_of(self.title) if self.title is not None else front.title,
            language=self.language,
            metadata={**front.metadata, **patent.metadata()},
            cites=list(dict.fromkeys(cites)),
        )

    def replacement(self, element: Element, path: str, offset: int, run_of: RunOf) -> Replacement | None:
        """The passages that replace the bibliographic data, or an element that holds several claims; else None."""
        if element.tag in self.keys.bibliography:
            return self._bibliography(element, path, offset)
        if element in self.claims.lists:
            return self._list_of_claims(element, path, offset, run_of)
        return None

    def heading(self, block: Block) -> Heading | None:
        """The level of a heading element, or of a paragraph of the description that is a heading; else None."""
        element, text = block.element, block.text
        if block.rule.role is _HEADING:
            level, outline = heading_level(text, block.outline)
            tagged = self._levels.get(element.get(self.keys.heading_level) or "") if self._levels else 0
            return Heading(tagged, block.outline) if tagged else Heading(level, outline)
        if element.tag in self._paragraphs and block.within in self._description and self.is_heading(element, text):
            return Heading(*heading_level(text, block.outline))
        return None

    def id_of(self, block: Block) -> str:
        """The id of a claim (`claim-3`), or of a paragraph by its number (`p0042`), else by its figure (`fig-3`)."""
        element = block.element
        if element.tag in self.keys.claims:
            return self.claims.of_element[element].id if element in self.claims.of_element else ""
        if block.within not in self._description or (element.tag not in self._paragraphs and block.rule.role is not _HEADING):
            return ""
        if number := self._numbers.get(element):
            return f"p{number.written}"
        first = next(iter(_named_by(element)), None)
        return "-".join(first).replace("figure", "fig").lower() if first else ""

    def citation(self, block: Block) -> str:
        """The citation of a claim (`claim 3`) or of a paragraph by its printed number (`[0042]`)."""
        element = block.element
        if element.tag in self.keys.claims:
            return f"claim {self.claims.of_element[element].number}" if element in self.claims.of_element else ""
        if element.tag in self._paragraphs and block.within in self._description:
            number = self._numbers.get(element)
            return f"[{number.written}]" if number and number.is_printed else ""
        return super().citation(block)

    def links(self, front: Front, blocks: Sequence[Added]) -> Links:
        """The references that passages make in words or by ids of claims, and the ids of all cited patents."""
        blocks = [block for block in blocks if block.within != BIBLIOGRAPHY]
        targets = self._targets(blocks)
        passages = [block for block in blocks if not block.is_heading]
        claims = [self.claims.by_id.get(block.name) for block in passages]
        # Mentions of things that have no target make no references, so they are not searched.
        kinds = {what for what, _ in targets} | ({"claim"} if self.claims.by_id else set())
        mentioned = mentions_of_all([block.text for block in passages], [claim.number if claim else 0 for claim in claims], kinds)
        numbered = self.claims.by_number()
        by_id = with_all_around(self.root.iter(*self.keys.claim_references)) if self.keys.claim_references else ()
        references: dict[tuple[int, str], None] = {}
        for block, claim, things in zip(passages, claims, mentioned, strict=True):
            if things:
                knows_claims = claim is not None or block.within in self._description
                ids = numbered.get(claim.set if claim else self.claims.main_set, _NO_CLAIMS) if knows_claims else _NO_CLAIMS
                for what, which in things:
                    target = ids.get(which) if what == "claim" else _target((what, which), targets)
                    if target and target != block.id:
                        references[block.span, target] = None
            for target in self._referred(block, claim) if block.element in by_id else ():
                if target != block.id:
                    references[block.span, target] = None
        return Links(list(references), self._cites(front, passages))

    def _numbered_paragraphs(self) -> Mapping[Element, ParagraphNumber]:
        """The numbers of all paragraphs and headings that have a number, by element."""
        paragraphs = self.root.iter(*self._paragraphs, *_heading_tags(self.profile))
        numbers = ((element, self.paragraph_number(element)) for element in paragraphs)
        return {element: number for element, number in numbers if number.written}

    # References and citations.

    def _targets(self, blocks: Sequence[Added]) -> Mapping[Thing, str]:
        """Ids by figure, example and paragraph: the id of the first block of the description that describes it."""
        targets: dict[Thing, str] = {}
        for block in blocks:
            if not block.name or block.within not in self._description or block.name in self.claims.by_id:
                continue
            if number := self._numbers.get(block.element):
                targets.setdefault(("paragraph", number.written), block.name)
            for thing in _named_by(block.element):
                targets.setdefault(thing, block.name)
            if block.id and not block.is_heading:
                # A list of figures is one passage; each of its lines may describe a figure.
                text = block.text if "\n" in block.text else block.text[:_BEGINNING]
                for thing in named_first(text) if "\n" in text or may_name(text) else ():
                    if thing[0] == "figure":
                        targets.setdefault(thing, block.id)
        return targets

    def _referred(self, block: Added, claim: Claim | None) -> Iterator[str]:
        """Yield the ids of the claims that a passage refers to by their ids in the file."""
        if block.element not in self.claims.lists:
            for reference in block.element.iter(*self.keys.claim_references):
                target = self.claims.by_file_id.get(reference.get(self.keys.claim_references[str(reference.tag)]) or "")
                if target and not _contradicts(reference, claim, target):
                    yield target.id

    def _cites(self, front: Front, passages: Sequence[Added]) -> list[str]:
        """Ids of the documents that are cited in the bibliographic data and in the text, each once."""
        cited = dict.fromkeys(front.cites)
        if self.keys.cites_in_text:
            cited.update((number.id, None) for number in self._cited_in_text(passages))
        # A patent cited without a kind is left out if one of its publications is cited too, or is this document.
        known = {id.rpartition("-")[0] for id in (front.id, *cited) if id.count("-") == 2}
        return [id for id in cited if id and id != front.id and id not in known]

    def _cited_in_text(self, passages: Sequence[Added]) -> Iterator[PatentNumber]:
        """Yield the numbers of patents that passages cite, in the order of passages, then of the profile's fields."""
        fields = self.keys.cites_in_text
        order = {element: number for number, element in enumerate(dict.fromkeys(block.element for block in passages))}
        paths = [field.path for field in fields if isinstance(field.path, Path) and field.path.is_spread]
        if len(paths) < len(fields):
            for element in order:
                yield from publications(self.keys, fields, element)
            return
        # What such an XPath finds in a passage it also finds at the root, so it is evaluated once.
        found = []
        for number, path in enumerate(paths):
            for element in elements(path, self.root):
                citing = [order[finder] for finder in path.finders(element) if finder in order]
                if citing:
                    found.append((min(citing), number, element))
        for _, number, element in sorted(found, key=lambda place: place[:2]):
            yield from publications_of(self.keys, fields[number], element)

    # Replacements of elements.

    def _list_of_claims(self, element: Element, path: str, offset: int, run_of: RunOf) -> Replacement:
        """One passage per claim, for an element that holds all claims of a set in its lines."""
        claims = self.claims.lists[element]
        lines = []
        for child, child_path, start in _children(element, path, offset):
            lines.append(Line(child_path, start, whole_text(child), run_of(child, child_path, start)))
        pieces = []
        for text in cut_claims(lines, claims.starts):
            place = Place(text.path or path, text.start, text.end)
            if text.number:
                claim = claims.set.claim(text.number)
                pieces.append(Piece("claim", text.run, place, id=claim.id, citation=f"claim {text.number}"))
            else:
                pieces.append(Piece("claim-statement", text.run, place))
        return Replacement(pieces)

    def _bibliography(self, element: Element, path: str, offset: int) -> Replacement:
        """A section with the names of people and the titles in other languages, each with its place in the file."""
        shown = self._shown()
        pieces = [
            shown[holder]._replace(place=place, is_title=holder is self.title) for holder, place in _located(element, path, offset, shown)
        ]
        return Replacement(pieces, BIBLIOGRAPHY if shown.keys() - {self.title} else "")

    def _shown(self) -> Mapping[Element, Piece]:
        """The passages of the bibliographic data by element; the places are filled in later."""
        patent, nowhere = self.bibliography, Place("", 0, 0)
        shown = {
            title: Piece("title", Run(text_of(title), [], []), nowhere, part="title", language=language_or_nothing(language))
            for language, title in patent.titles
        }
        for tag, people in (("applicant", patent.applicants), ("inventor", patent.inventors), ("assignee", patent.assignees)):
            # A name that occurs twice is shown at its first place only.
            for name, element in dict(reversed(people)).items():
                shown.setdefault(element, Piece(tag, Run(name, [], []), nowhere))
        return shown


def _heading_tags(profile: Profile) -> list[str]:
    return [tag for tag, entries in profile.rules.items() if any(rule.role is Role.HEADING for _, rule in entries)]


def _tagged_levels(attribute: str, profile: Profile, root: Element) -> Mapping[str, int]:
    """The level of a heading by the value of an attribute; empty if all headings have the same value."""
    if not attribute:
        return {}
    values = {element.get(attribute) or "" for element in root.iter(*_heading_tags(profile))}
    numbers = {value: re.search("[0-9]{1,9}", value) for value in values}
    return {value: min(DEEPEST_TAGGED, int(number[0])) for value, number in numbers.items() if number} if len(values) > 1 else {}


def _named_by(element: Element) -> Iterable[Thing]:
    """The figures or examples that the beginning of an element names."""
    beginning = whole_text(element)[:_BEGINNING]
    return named_first(" ".join(beginning.split())) if may_name(beginning) else ()


def _target(thing: Thing, targets: Mapping[Thing, str]) -> str:
    """The id of the target that a text mentions, or "" if there is none.

    A mention of figure 3B falls back to figure 3, and a mention of figure 3 falls back to figure 3A.
    """
    what, which = thing
    if (target := targets.get(thing)) or what != "figure":
        return target or ""
    whole = which.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return targets.get((what, whole)) or targets.get((what, f"{which}A"), "")


def _contradicts(reference: Element, claim: Claim | None, target: Claim) -> bool:
    """Whether the id in a reference contradicts its words, so that the reference by id is ignored.

    It does if a claim refers by id to itself or a later claim, while the words of the reference name another claim.
    """
    if not claim or target.set != claim.set or target.number < claim.number:
        return False
    named = [which for what, which in mentions(text_of(reference)) if what == "claim"]
    return bool(named) and str(target.number) not in named


def _children(element: Element, path: str, offset: int) -> Iterator[tuple[Element, str, int]]:
    """Yield the children of an element, with their XPaths and their offsets in the document's text nodes.

    `path` and `offset` are those of the element.
    """
    offset += len(element.text or "")
    counts: dict[str, int] = {}
    for child in element:
        tag = str(child.tag)
        counts[tag] = counts.get(tag, 0) + 1
        yield child, f"{path}/{tag}[{counts[tag]}]", offset
        offset += len(whole_text(child)) + len(child.tail or "")


def _located(element: Element, path: str, offset: int, wanted: Mapping[Element, object]) -> Iterator[tuple[Element, Place]]:
    """Yield the wanted elements inside an element, in order, with their places in the file."""
    around = {ancestor for inner in wanted for ancestor in inner.iterancestors()}
    waiting = [(element, path, offset)]
    while waiting:
        element, path, offset = waiting.pop()
        if element in wanted:
            yield element, Place(path, offset, offset + len(whole_text(element)))
        elif element in around:
            waiting += reversed([child for child in _children(element, path, offset) if child[0] in wanted or child[0] in around])
