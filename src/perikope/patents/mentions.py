"""Finds references in the words of a patent: mentioned claims, figures, examples and paragraphs, and cited patents."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise

_MOST = 200
"""The longest range of numbers, such as `1 to 20`, that is expanded; a longer range is a misprint or hostile."""

_BETWEEN = (
    r"\s*+(?>,\s*+(?:and|or|und|oder|et|ou|y|o|e|en|of)\b|[,;&/+\u2010-\u2015-]"
    r"|(?:and/or|and|or|to|through|until|und/oder|und|oder|bis|et/ou|et|ou|à|jusqu'à|y/o|y|o|e|a|al|tot|en|of)\b)\s*+"
)
_NUMBER = r"\s*+(?:n[°ºo]s?\.?\s*+)?"
_MORE_NUMBERS = rf"(?:{_BETWEEN}[0-9]{{1,3}}(?![0-9a-z]|[.,][0-9]))*+"
_NUMBERS = rf"(?P<numbers>[0-9]{{1,3}}(?![0-9a-z]){_MORE_NUMBERS})"
_CLAIMS = rf"(?P<numbers>[0-9]{{1,3}}(?:(?=[a-z]{{2}})|(?![0-9a-z]){_MORE_NUMBERS}))"
"""Numbers of claims. The space after the first number may be missing (`claim 1further`)."""
_LETTER = "[b-df-np-xz]"
"""A letter that can stand alone for a figure (`2A and B`), because it is not a word by itself."""
_LETTERED = rf"(?P<numbers>[0-9]{{1,3}}(?:(?=[a-z]{{2}})|[a-z]?\b(?:{_BETWEEN}(?:[0-9]{{1,3}}[a-z]?|{_LETTER})\b)*+))"
"""Numbers of figures. The space after the first number may be missing, as in `_CLAIMS`."""
_ELSEWHERE = r"(?!\s+of\s+(?:u\.?s|ep\b|wo\b|jp\b|the\s+patent))"
_OTHER_EXAMPLE = "".join(
    rf"(?<!{kind}[ -]example)" for kind in ("comparative", "reference", "synthesis", "preparation", "production", "test", "formulation")
)
"""Excludes kinds of examples that are numbered separately: comparative example 1 is not example 1."""

# By the word that a mention begins with, in lower case: the kind of thing mentioned, and the pattern of the text after
# the word. Conditions on the text before the word are look-behinds after it. So a fast search for plain letters finds
# the few positions at which the pattern is tried.
_WORDS = {
    "claim": ("claim", rf"(?<!\wclaim)s?{_NUMBER}{_CLAIMS}{_ELSEWHERE}"),
    "anspr": ("claim", rf"(?:uch(?:e?s)?|üchen?)\b{_NUMBER}{_CLAIMS}"),
    "revendication": ("claim", rf"s?{_NUMBER}{_CLAIMS}"),
    "reivindica": ("claim", rf"(?:ci(?:ón|ones)|ç(?:ão|ões)){_NUMBER}{_CLAIMS}"),
    "rivendicazion": ("claim", rf"[ei]{_NUMBER}{_CLAIMS}"),
    "conclusie": ("claim", rf"(?<!\wconclusie)s?{_NUMBER}{_CLAIMS}"),
    "patentkrav": ("claim", rf"(?:en)?{_NUMBER}{_CLAIMS}"),
    "請求項": ("claim", rf"\s*+{_CLAIMS}"),
    "fig": ("figure", rf"(?<!\wfig)(?:s|ures?|uren|uras?)?\.?{_NUMBER}{_LETTERED}"),
    "abb": ("figure", rf"(?<!\wabb)(?:ildung(?:en)?|\.){_NUMBER}{_LETTERED}"),
    "example": ("example", rf"{_OTHER_EXAMPLE}s?\s{_NUMBER}{_NUMBERS}{_ELSEWHERE}"),
    "exemple": ("example", rf"s?\s{_NUMBER}{_NUMBERS}"),
    "beispiel": ("example", rf"(?:e?n?)\s{_NUMBER}{_NUMBERS}"),
    "ejemplo": ("example", rf"s?\s{_NUMBER}{_NUMBERS}"),
    "[": ("paragraph", r"(?P<numbers>[0-9]{4})\](?<!^\[[0-9]{4}\])"),
}
KINDS = ("claim", "figure", "example", "paragraph")
"""The kinds of things that are mentioned."""
_MENTIONS = {word: (what, re.compile(re.escape(word) + rest)) for word, (what, rest) in _WORDS.items()}
_BEFORE_BY_WORD = {
    "claim": (
        ("preceding", "previous", "foregoing", "above", "prior", "hereinbefore"),
        r"\b(?:preceding|previous|foregoing|above|prior)\s+claims?\b|\bclaims?\s+(?:above|hereinbefore)\b",
    ),
    "anspr": (
        ("vor", "obig"),
        r"\b(?:vorher(?:gehend|ig)|voran(?:gehend|gegangen|stehend)|vorstehend|obig)\w{0,3}\s+(?:patent)?anspr[uü]ch\w{0,3}",
    ),
    "revendication": (
        ("dessus", "préc"),
        r"\brevendications?\s+(?:ci-dessus|qui\s+précèdent?|précédentes?)|\bprécédentes?\s+revendications?",
    ),
    "reivindica": (("anterior", "precedent"), r"\breivindicaciones\s+(?:anteriores|precedentes)"),
    "rivendicazion": (("precedent",), r"\brivendicazion[ei]\s+precedent[ei]"),
    "conclusie": (("gaande",), r"\bvo(?:or|r)gaande\s+conclusies?"),
}
"""Mentions of all claims before a claim, by the word of `_WORDS` in them: parts of words, and a pattern.

A text that the pattern finds has at least one of the parts. Looking for them first takes a tenth of the time.
"""
_BEFORE = re.compile("|".join(pattern for _, pattern in _BEFORE_BY_WORD.values()))
_BEFORE_OF = {word: (parts, re.compile(pattern)) for word, (parts, pattern) in _BEFORE_BY_WORD.items()}
_PIECE = re.compile(rf"([0-9]{{1,3}})([a-z]?)(?![a-z])|(?<![0-9a-z'])({_LETTER})(?![a-z])")
_RANGE = re.compile(r"\s*(?:[\u2010-\u2015-]|to|through|until|bis|à|jusqu'à|a|al|tot)\s*")
_NAMED = re.compile(
    r"\s*+(?:\[[0-9]{1,5}\]\s*+)?(?:the\s|die\s|la\s|les\s)?\s*+"
    rf"(?:(?P<figure>fig(?:s|ures?|uren|uras?)?(?:\.|\b)|abb(?:ildung(?:en)?|\.))|[(\[<]?(?:examples?|exemples?|beispiele?|ejemplos?)\s)\s*{_LETTERED}"
)

_MAY_NAME = re.compile(r"[\W\d_]*+(?:(?:the|die|la|les)\s[\W\d_]*+)?(?:fig|abb|ex[ae]|bei|eje)", re.IGNORECASE)


def mentions(text: str, before: int = 0) -> Iterator[tuple[str, str]]:
    """Yield what a passage mentions, each thing once, as pairs such as ("claim", "3") or ("figure", "3B").

    The first item is claim, figure, example or paragraph, the second its number. The number of a paragraph has four
    digits. If the passage is a claim, `before` is its number, so that "the preceding claims" can be resolved; else 0.

    >>> list(mentions("A pump according to any of claims 1 to 3 or 5, see FIGS. 2A and 4"))
    [('claim', '1'), ('claim', '2'), ('claim', '3'), ('claim', '5'), ('figure', '2A'), ('figure', '4')]
    >>> list(mentions("The pump of claim 1further comprising what FIG. 2is"))
    [('claim', '1'), ('figure', '2')]
    >>> list(mentions("claim 1a, for example 10ml")), list(mentions("selon la revendication 2"))
    ([], [('claim', '2')])
    >>> list(mentions("Pumpe nach einem der vorhergehenden Ansprüche", before=3))
    [('claim', '1'), ('claim', '2')]
    """
    text = text.lower()
    return iter(_mentioned(text, _words_in(text), before))


def mentions_of_all(texts: Sequence[str], before: Sequence[int], kinds: Collection[str] = KINDS) -> list[Collection[tuple[str, str]]]:
    """What each of several passages mentions; `before` has a number for each passage. See `mentions`.

    Only mentions of `kinds` are found. The words are searched in all passages at once, which is faster because most
    words occur in few passages.

    >>> [list(mentioned) for mentioned in mentions_of_all(["see FIG. 2", "a pump", "the pump of claim 1"], [0, 0, 2])]
    [[('figure', '2')], [], [('claim', '1')]]
    """
    lowered = [text.lower() for text in texts]
    starts = [0, *accumulate(len(text) + 1 for text in lowered)]
    joined = "\n".join(lowered)
    words: list[list[str]] = [[] for _ in lowered]
    for word in (word for word, (kind, _) in _MENTIONS.items() if kind in kinds):
        at = joined.find(word)
        while at >= 0:
            number = bisect_right(starts, at)
            words[number - 1].append(word)
            at = joined.find(word, starts[number])
    return [_mentioned(text, found, number) if found else () for text, found, number in zip(lowered, words, before, strict=True)]


def _words_in(text: str) -> list[str]:
    return [word for word in _MENTIONS if word in text]


def _mentioned(text: str, words: Sequence[str], before: int) -> Collection[tuple[str, str]]:
    """What a text in lower case mentions, in reading order; `words` are those of `_MENTIONS` that it contains."""
    mentioned: dict[tuple[str, str], None] = {}
    for _, what, numbers in _matches(text, words):
        if what == "paragraph":
            mentioned[what, numbers] = None
        elif numbers.isdecimal():
            if number := int(numbers):
                mentioned[what, str(number)] = None
        else:
            mentioned.update(dict.fromkeys((what, which) for which in _listed(numbers)))
    if before and any(_names_before(text, word) for word in words if word in _BEFORE_OF):
        mentioned.update(dict.fromkeys(("claim", str(number)) for number in range(1, before)))
    return mentioned


def _names_before(text: str, word: str) -> bool:
    """Whether a text in lower case mentions all claims before, in the language of a word of `_BEFORE_OF`."""
    parts, pattern = _BEFORE_OF[word]
    return any(part in text for part in parts) and pattern.search(text) is not None


def _matches(text: str, words: Sequence[str]) -> list[tuple[re.Match[str], str, str]]:
    """All mentions in a text in lower case, in reading order: the match, the kind of thing, and the written numbers.

    `words` are the words of `_MENTIONS` that the text contains.
    """
    matches = [(match, _MENTIONS[word][0], match["numbers"]) for word in words for match in _MENTIONS[word][1].finditer(text)]
    return sorted(matches, key=lambda found: found[0].start()) if len(matches) > 1 else matches


def mention_places(text: str, before: int = 0) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
    """Yield where a passage mentions things: start and end of the words, the kind of thing, and numbers.

    Each written number has its own place; the first one begins with its word, such as `claim`. Its own number comes
    first. After it are those that a range leaves out, such as 2 in `1 to 3`. `before` is as in `mentions`.

    >>> list(mention_places("as in claims 1 to 3, FIG. 2A"))
    [(6, 14, 'claim', ('1',)), (18, 19, 'claim', ('3', '2')), (21, 28, 'figure', ('2A',))]
    """
    # Some capital letters become two characters; then places would be wrong.
    text = "".join(lower if len(lower := character.lower()) == 1 else character for character in text)
    for match, what, numbers in _matches(text, _words_in(text)):
        if what == "paragraph":
            yield match.start(), match.end(), what, (numbers,)
            continue
        first = match.start("numbers")
        for start, end, listed in _listed_places(numbers):
            yield (first + start if start else match.start()), first + end, what, tuple(reversed(listed))
    if before and (found := _BEFORE.search(text)):
        yield found.start(), found.end(), "claim", tuple(str(number) for number in range(1, before))


def may_name(text: str) -> bool:
    """Whether the first line of a text may name a figure or an example.

    It is faster than `named_first`, and true for some texts that name nothing.

    >>> may_name("[0001] The FIG. 3"), may_name("The pump of FIG. 3")
    (True, False)
    """
    return _MAY_NAME.match(text) is not None


def named_first(text: str) -> Iterator[tuple[str, str]]:
    """Yield the figures or examples that lines of a text begin with, as pairs such as ("figure", "3A").

    Such lines are descriptions of drawings, and headings of examples.

    >>> list(named_first("FIG. 3A is a side view;\\nFIG. 3B is a plan."))
    [('figure', '3A'), ('figure', '3B')]
    >>> list(named_first("Example 2: Glue")), list(named_first("(Example 2)")), list(named_first("In FIG. 3"))
    ([('example', '2')], [('example', '2')], [])
    """
    for line in text.lower().split("\n"):
        if match := _NAMED.match(line):
            yield from (("figure" if match["figure"] else "example", number) for number in _listed(match["numbers"]))


_START = re.compile(r"\s*+(?:\.\s*+)?([0-9]{1,3})\s?[.)](?![0-9])")
_INNER_START = re.compile(r"(?<=[.;:,]\s)\s*([0-9]{1,3})\s?[.)]\s+(?=[^\W\d_a-z])")
_MISSING = re.compile(
    r"(?:^\s*+|\n[ \t]*+|(?<=[.;:,]\s)\s*+)([0-9](?:\s?[0-9]){0,2})\s?[.)]\s+(?=[^\W\d_a-z])"
    r"|(?:^\s*+|\n[ \t]*+)([0-9]{1,3})\s+(?=[^\W\d_a-z])"
)
"""A claim number in a less regular form, for a number known to be missing.

It may stand inside a line, hold a space (`1 1.`), or lack the full stop.
"""
_CLAIM_WORD = re.compile("claim|anspr|revendi|reivindi|rivendi|conclusie|krav|請求", re.IGNORECASE)
_GAP = 6
"""The most by which the number of a claim may exceed the number of the claim before."""
_NO_NUMBER = 10**6
_LONGEST_STATEMENT = 120


def claim_starts(lines: Sequence[str]) -> list[tuple[int, int, int]]:
    """Find where claims begin in lines of text: number of the claim, index of the line, position in the line.

    The result is empty if the lines are no list of claims. A line begins a claim if it begins with a number a little
    higher than the last claim's number. Missing numbers are searched inside lines, because a claim can begin in the
    middle of a line. If the first claim has no number, it begins at the first line that does not only announce claims.

    >>> claim_starts(["I claim:", "1. A pump.", "2. The pump of claim 1. 3. A rotor.", "4. A seal."])
    [(1, 1, 0), (2, 2, 0), (3, 2, 24), (4, 3, 0)]
    >>> claim_starts(["I claim", "A pump with a rotor.", "2. The pump of claim 1.", "3. A seal."])
    [(1, 1, 0), (2, 2, 0), (3, 3, 0)]
    """
    begins: list[tuple[int, int]] = []
    last = 0
    for index, line in enumerate(lines):
        match = _START.match(line)
        if match and last < int(match[1]) <= last + _GAP:
            last = int(match[1])
            begins.append((last, index))
    starts: list[tuple[int, int, int]] = []
    expected = 1
    for (number, index), (next_number, next_index) in pairwise([(0, 0), *begins, (_NO_NUMBER, len(lines))]):
        if number:
            starts.append((number, index, 0))
            expected = number + 1
        inside = list(_inner_starts(lines, index, next_index, expected, next_number))
        if not number and not inside and next_number > 1 and _is_list(lines, begins):
            first = next((inner for inner in range(next_index) if not _announces(lines[inner])), next_index)
            if first < next_index:
                inside = [(1, first, 0), *_inner_starts(lines, first, next_index, 2, next_number)]
        starts += inside
        expected += len(inside)
    return starts


def _inner_starts(lines: Sequence[str], index: int, end: int, expected: int, following: int) -> Iterator[tuple[int, int, int]]:
    """Find claims that begin inside the lines `index` to `end` (exclusive), as `claim_starts` returns them.

    Their numbers run from `expected` to `following` (exclusive).
    """
    pattern = _INNER_START if following == _NO_NUMBER else _MISSING
    for inner in range(index, end):
        for match in pattern.finditer(lines[inner]):
            group = match.lastindex or 1
            if int("".join(match[group].split())) == expected < following:
                yield expected, inner, match.start(group)
                expected += 1


def _is_list(lines: Sequence[str], begins: Sequence[tuple[int, int]]) -> bool:
    """Whether the numbered lines are surely claims: there are several, or the only one mentions a claim.

    `begins` has the number and the index of each numbered line.
    """
    if len(begins) == 1:
        return any(what == "claim" for what, _ in mentions(lines[begins[0][1]]))
    return bool(begins)


def _announces(line: str) -> bool:
    """Whether a line only announces claims, as `I claim:` does."""
    words = line.split()
    if len(words) <= 3 or (words[0].startswith("[") and words[-1].endswith("]")):
        return not line.rstrip().endswith(".")
    return len(line.strip()) <= _LONGEST_STATEMENT and not words[-1].endswith((".", ";", ",")) and _CLAIM_WORD.search(line) is not None


def _listed(text: str) -> Iterator[str]:
    """Yield the numbers of a list with ranges, such as `1 to 3, 5`, `2a-2c` or `2a and b`; letters become capitals."""
    for _, _, numbers in _listed_places(text):
        yield from numbers


def _listed_places(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield start and end of each written number of a list, with the numbers that it adds: a range up to it, itself."""
    last, letter, end = 0, "", 0
    for piece in _PIECE.finditer(text):
        is_range = bool(last) and _RANGE.fullmatch(text, end, piece.start()) is not None
        end = piece.end()
        number, own_letter = (int(piece[1]), piece[2].upper()) if piece[1] else (last, piece[3].upper())
        if not number:
            continue
        numbers = []
        if is_range and number == last and letter and own_letter:
            numbers = [f"{number}{chr(code)}" for code in range(ord(letter) + 1, ord(own_letter))]
        elif is_range and last < number <= last + _MOST:
            numbers = [str(between) for between in range(last + 1, number)]
        yield piece.start(), end, [*numbers, f"{number}{own_letter}"]
        last, letter = number, own_letter


_COUNTRIES = "US|EP|WO|DE|FR|GB|JP|NL|BE|CH|AT|SE|IT|ES|DK|FI|NO|CA|AU|NZ|CN|KR|RU|SU|DD|PL|CZ|HU|IL|TW|ZA|BR|MX|IE|PT"
_COUNTRY = re.compile(
    rf"\b(?P<code>{_COUNTRIES})(?![a-z])|\bU\.\s?S\."
    r"|\b(?P<word>European|German|French|British|Japanese|International|PCT|UK|United States)\b"
)
_ADJECTIVES = {
    "European": "EP",
    "German": "DE",
    "French": "FR",
    "British": "GB",
    "UK": "GB",
    "Japanese": "JP",
    "International": "WO",
    "PCT": "WO",
    "United States": "US",
}
_BEFORE_COMMA = re.compile(r"\s+,")
_NO_PUBLICATION = re.compile(r"provisional|serial|ser\.|PCT\s*/\s*[A-Z]{2}|\bapplication\s+(?:no|ser)", re.IGNORECASE)
_PUBLISHED = re.compile(r"(?<![0-9/])20[0-9]{2}\s?/\s?[0-9]{7}(?![0-9])")
"""The number of a published US application, such as `2004/0248206`."""
_KIND_BEFORE = re.compile(r"\s*-?\s*([ABCU][1-9]?)\b\s*-?")
_KIND = re.compile(r"\s*-?\s*([ABCU][1-9])\b")
_INTERNATIONAL = re.compile(r"(?<![0-9])([0-9]{4}|[0-9]{2})\s*/\s*([0-9]{4,6})(?![0-9])|(?<![0-9])([0-9]{7}|[0-9]{10})(?![0-9])")
_JAPANESE = re.compile(r"(?<![0-9])([0-9]{1,2}|(?:19|20)[0-9]{2})\s*-\s*([0-9]{2,6})(?![0-9])|(?<![0-9])([0-9]{5,10})(?![0-9])")
_AMERICAN = re.compile(
    r"(?<![0-9])(20[0-9]{2})\s*/\s*([0-9]{7}|[0-9]{6})(?![0-9])"
    r"|(?<![0-9])((?:\b(?:RE|D|PP|H)\s?)?(?:[0-9]{1,2}[,. ]\s?)?[0-9]{3}[,. ]\s?[0-9]{3}|(?:\b(?:RE|D))?[0-9]{6,8}|20[0-9]{8,9})(?![0-9])"
)
_EUROPEAN = re.compile(r"(?<![0-9])([0-4]?[\s.,]?[0-9]{3}[\s.,]?[0-9]{3})(?![0-9])")
_OTHER = re.compile(r"(?<![0-9])([0-9]{1,4}(?:[\s.]?[0-9]{2,3}|,[0-9]{3}){1,4}|[0-9]{5,12})(?![0-9])")


def cited_patents(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield country, number and kind of each publication that a text cites; doubtful numbers are left out.

    The kind is empty if the text does not give it exactly. Only the first 1000 characters are read.

    >>> list(cited_patents("U.S. Pat. Nos. 5,001,116 and 4,994,443")), list(cited_patents("WO 95/11968"))
    ([('US', '5001116', ''), ('US', '4994443', '')], [('WO', '1995011968', '')])
    >>> list(cited_patents("EP-A-0 619 947")), list(cited_patents("JP-A-2-39157")), list(cited_patents("DE 2660736 C2"))
    ([('EP', '0619947', '')], [('JP', '2039157', '')], [('DE', '2660736', 'C2')])
    >>> list(cited_patents("U.S. Provisional Application No. 60/558,239"))
    []
    """
    text = text[:1000]
    if "," in text:
        text = _BEFORE_COMMA.sub(",", text)
    country = _COUNTRY.search(text)
    if not country or (_NO_PUBLICATION.search(text) and not _PUBLISHED.search(text)):
        return
    code = country["code"] or _ADJECTIVES.get(country["word"] or "", country["word"] or "US")
    start = country.end()
    rough = ""
    if letter := _KIND_BEFORE.match(text, start):
        # A single letter after the country is not an exact kind: A can be A1 or A2.
        start, rough = letter.end(), letter[1] if len(letter[1]) == 2 else ""
    pattern = {"WO": _INTERNATIONAL, "JP": _JAPANESE, "US": _AMERICAN, "EP": _EUROPEAN}.get(code, _OTHER)
    for match in pattern.finditer(text, start):
        kind = _KIND.match(text, match.end())
        if sum(map(str.isdigit, match[0])) > 4:
            yield code, _written(code, match), kind[1] if kind else rough


def _written(code: str, match: re.Match[str]) -> str:
    groups = match.groups()
    if code == "WO" and groups[0]:
        year = groups[0] if len(groups[0]) == 4 else ("19" if groups[0] >= "78" else "20") + groups[0]
        return year + groups[1].zfill(6)
    if code == "JP" and groups[0]:
        return groups[0] + groups[1].zfill(6)
    if code == "US" and groups[0]:
        return groups[0] + groups[1].zfill(7)
    return re.sub(r"[^A-Z0-9]", "", match[0])
