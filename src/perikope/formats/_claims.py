"""Claims of a patent: their numbers and ids, and lists of claims in one element, which are cut apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from perikope.formats._inline import Run
from perikope.formats._profile import Profile
from perikope.formats._source import language_or_nothing
from perikope.formats._xml import whole_text
from perikope.formats._xpaths import Element, first_text
from perikope.patents.mentions import claim_starts


class ClaimSet(NamedTuple):
    """Claims in one language; a patent may have several sets in one language, for several states."""

    language: str
    """Code of the language; empty where it is the document's own."""
    rank: int
    """Number of the set among those in this language, from 1."""

    def claim(self, number: int) -> Claim:
        """The claim with a number."""
        ending = (self.language, str(self.rank) if self.rank > 1 else "")
        return Claim(number, "-".join(("claim", str(number), *filter(None, ending))), self)


class Claim(NamedTuple):
    """A claim by its number in its set."""

    number: int
    id: str
    set: ClaimSet


class ListOfClaims(NamedTuple):
    """One element that holds all claims of a set as its lines."""

    set: ClaimSet
    starts: Sequence[tuple[int, int, int]]
    """Number, line and position in the line of each claim, as `claim_starts` finds them."""


_ONLY_SET = ClaimSet("", 1)


@dataclass(slots=True)
class Claims:
    """All claims of a document."""

    of_element: dict[Element, Claim] = field(default_factory=dict)
    lists: dict[Element, ListOfClaims] = field(default_factory=dict)
    by_id: dict[str, Claim] = field(default_factory=dict)
    by_file_id: dict[str, Claim] = field(default_factory=dict)
    """The claims by the ids that their elements have in the file."""
    main_set: ClaimSet = _ONLY_SET
    """The set that the description means by a claim: the first in the document's language, else the first of all."""


def numbered_claims(profile: Profile, root: Element, language: str) -> Claims:
    """Number all claims of a document before it is read, since the last one can be mentioned before it comes."""
    claims = Claims()
    counts: dict[str, int] = {}
    sets: list[ClaimSet] = []
    for element in root.iter(*profile.patent.claim_sets):
        code = profile.language_of(element)
        code = "" if code == language_or_nothing(language) else code
        counts[code] = counts.get(code, 0) + 1
        claim_set = ClaimSet(code, counts[code])
        sets.append(claim_set)
        _add_set(claims, claim_set, profile, list(element.iter(*profile.patent.claims)))
    claims.main_set = next((claim_set for claim_set in sets if not claim_set.language), sets[0] if sets else claims.main_set)
    return claims


def _add_set(claims: Claims, claim_set: ClaimSet, profile: Profile, elements: Sequence[Element]) -> None:
    starts = claim_starts([whole_text(child) for child in elements[0]]) if len(elements) == 1 else []
    if len(starts) > 1:
        claims.lists[elements[0]] = ListOfClaims(claim_set, starts)
        for number, _, _ in starts:
            claim = claim_set.claim(number)
            claims.by_id.setdefault(claim.id, claim)
        return
    number = 0
    for element in elements:
        written = re.match(r"0*([0-9]{1,5})\b", first_text(profile.patent.claim_number, element))
        number = (int(written[1]) if written else 0) or number + 1
        claims.of_element[element] = claim = claim_set.claim(number)
        claims.by_id.setdefault(claim.id, claim)
        if file_id := profile.id_of(element):
            claims.by_file_id.setdefault(file_id, claim)


class Line(NamedTuple):
    """One line of a list of claims."""

    path: str
    """XPath of its element."""
    offset: int
    """Where it begins in the text nodes of the file, in characters."""
    raw: str
    """Its text as the file has it."""
    run: Run


class ClaimText(NamedTuple):
    """What a list of claims says between two starts."""

    number: int
    """Number of the claim; 0 for what stands before the first."""
    run: Run
    path: str
    """XPath of the only line that holds it; empty where it goes over several."""
    start: int
    end: int


def cut_claims(lines: Sequence[Line], starts: Sequence[tuple[int, int, int]]) -> Iterator[ClaimText]:
    """Cut a list of claims apart at the starts of the claims; what has no text is left out."""
    borders = [(0, 0), *((line, position) for _, line, position in starts), (len(lines), 0)]
    for number, begin, end in zip((0, *(number for number, _, _ in starts)), borders, borders[1:], strict=False):
        pieces = []
        for index in range(begin[0], min(end[0] + 1, len(lines))):
            line = lines[index]
            first = begin[1] if index == begin[0] else 0
            last = end[1] if index == end[0] else len(line.raw)
            if line.raw[first:last].strip():
                pieces.append((line, first, last))
        if pieces:
            (first_line, first, _), (last_line, _, last) = pieces[0], pieces[-1]
            run = joined([cut(line.run, line.raw, begin, end) for line, begin, end in pieces])
            path = first_line.path if first_line is last_line else ""
            yield ClaimText(number, run, path, first_line.offset + first, last_line.offset + last)


def cut(run: Run, raw: str, first: int, last: int) -> Run:
    """The part of a run that comes from the characters `first` to `last` of its raw text.

    Raw text and run differ in white space only.

    >>> cut(Run("1. A pump. 2. A rotor.", [("b", 14, 21)], []), "1. A\\n pump. 2. A rotor.", 12, 24)
    Run(text='2. A rotor.', marks=[('b', 3, 10)], refs=[])
    """
    if first <= 0 and last >= len(raw):
        return run
    start, end = (_position(run.text, sum(not character.isspace() for character in raw[:border])) for border in (first, last))
    while start < end and run.text[start].isspace():
        start += 1
    text = run.text[start:end].rstrip()
    marks = [(tag, max(begin - start, 0), min(stop - start, len(text))) for tag, begin, stop in run.marks]
    return Run(text, [mark for mark in marks if mark[1] < mark[2]], run.refs)


def _position(text: str, count: int) -> int:
    """The position of the character before which stand `count` characters that are no white space."""
    for position, character in enumerate(text):
        if not character.isspace():
            if count == 0:
                return position
            count -= 1
    return len(text)


def joined(runs: Sequence[Run]) -> Run:
    """Join runs as the lines of one run."""
    text, marks, refs = "", [], []
    for run in runs:
        shift = len(text) + 1 if text else 0
        text = f"{text}\n{run.text}" if text else run.text
        marks += [(tag, start + shift, end + shift) for tag, start, end in run.marks]
        refs += run.refs
    return Run(text, marks, list(dict.fromkeys(refs)))
