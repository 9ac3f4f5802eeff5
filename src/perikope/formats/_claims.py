"""Claims of a patent: numbers and ids of claims, and cutting an element that holds several claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from perikope.formats._inline import Run
from perikope.formats._profile import Profile
from perikope.formats._source import language_or_nothing
from perikope.formats._xml import whole_text
from perikope.formats._xpaths import Element, first_text
from perikope.patents.mentions import claim_starts


class ClaimSet(NamedTuple):
    """A set of claims in one language. A language may have several sets, for different contracting states."""

    language: str
    """Code of the language; empty if it is the document's language or unknown."""
    rank: int
    """Number of the set among the sets in this language, from 1."""

    def claim(self, number: int) -> Claim:
        """The claim of this set with a number; its id is `claim-3`, or `claim-3-fr-2` in the second French set."""
        ending = (self.language, str(self.rank) if self.rank > 1 else "")
        return Claim(number, "-".join(("claim", str(number), *filter(None, ending))), self)


class Claim(NamedTuple):
    """A claim: its number in its set, its id, and the set."""

    number: int
    id: str
    set: ClaimSet


class ListOfClaims(NamedTuple):
    """The content of one element that holds all claims of a set; the children of the element are its lines."""

    set: ClaimSet
    starts: Sequence[tuple[int, int, int]]
    """For each claim its number, the index of its first line, and the position in the line; see `claim_starts`."""


_NUMBER = re.compile(r"0*([0-9]{1,5})\b")
_ONLY_SET = ClaimSet("", 1)


@dataclass(slots=True)
class Claims:
    """All claims of a document."""

    of_element: dict[Element, Claim] = field(default_factory=dict)
    """Claims by their elements, if each claim has its own element."""
    lists: dict[Element, ListOfClaims] = field(default_factory=dict)
    """Elements that hold several claims."""
    by_id: dict[str, Claim] = field(default_factory=dict)
    by_file_id: dict[str, Claim] = field(default_factory=dict)
    """Claims by the ids of their elements in the file; `by_id` has the ids of `Claim.id`."""
    main_set: ClaimSet = _ONLY_SET
    """The set that mentions of claims in the description refer to.

    This is the first set in the document's language, else the first set.
    """

    def by_number(self) -> Mapping[ClaimSet, Mapping[str, str]]:
        """By set, the ids of its claims by their numbers."""
        ids: dict[ClaimSet, dict[str, str]] = {}
        for claim in self.by_id.values():
            ids.setdefault(claim.set, {})[str(claim.number)] = claim.id
        return ids


def numbered_claims(profile: Profile, root: Element, language: str) -> Claims:
    """Find and number all claims of a document; `language` is the document's language.

    This happens before the text is read, because the text can mention a claim before the claim appears.
    """
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
        written = _NUMBER.match(first_text(profile.patent.claim_number, element))
        number = (int(written[1]) if written else 0) or number + 1
        claims.of_element[element] = claim = claim_set.claim(number)
        claims.by_id.setdefault(claim.id, claim)
        if file_id := profile.id_of(element):
            claims.by_file_id.setdefault(file_id, claim)


class Line(NamedTuple):
    """One line of an element that holds several claims."""

    path: str
    """XPath of the line's element."""
    offset: int
    """Offset of the line in the text nodes of the document, in characters."""
    raw: str
    """The text as in the file, with its white space."""
    run: Run
    """The same text with collapsed white space, and its marks."""


class ClaimText(NamedTuple):
    """The text of one claim, cut from a list of claims."""

    number: int
    """Number of the claim; 0 for the text before the first claim."""
    run: Run
    path: str
    """XPath of the line that holds the text; empty if several lines hold it."""
    start: int
    end: int
    """`start` and `end` (exclusive) are offsets in the text nodes of the document, in characters."""


def cut_claims(lines: Sequence[Line], starts: Sequence[tuple[int, int, int]]) -> Iterator[ClaimText]:
    """Cut lines at the starts of claims (see `claim_starts`) and yield the text of each claim, unless it is empty."""
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
    """The part of a run that comes from the characters `first` to `last` (exclusive) of its raw text.

    The text of the run and the raw text differ in white space only. All references of the run are kept.

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
    """The position of the character that follows `count` others, not counting white space; the end if there is none."""
    for position, character in enumerate(text):
        if not character.isspace():
            if count == 0:
                return position
            count -= 1
    return len(text)


def joined(runs: Sequence[Run]) -> Run:
    """Join runs into one run; each becomes a line of its text."""
    text, marks, refs = "", [], []
    for run in runs:
        shift = len(text) + 1 if text else 0
        text = f"{text}\n{run.text}" if text else run.text
        marks += [(tag, start + shift, end + shift) for tag, start, end in run.marks]
        refs += run.refs
    return Run(text, marks, list(dict.fromkeys(refs)))
