"""Synonyms in the format of Solr, applied to the words of a query.

    # Each of these words also finds the others:
    plane, aeroplane, airplane
    # The words on the left are replaced by those on the right:
    colour => color
    nyc, big apple => nyc, new york

A backslash takes the next character literally: `a\\,b`, `a\\=>b`. Rules for the same words add up. Words are compared
as the index compares them: in lower case and by their stems, in any of the searched languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from perikope.core.access import check_access
from perikope.core.errors import InputError, UsageError
from perikope.core.reading import read_limited_text
from perikope.text.analysis import Analyzer, fold, words

MAX_BYTES = 1 << 24
"""The largest size of a file of synonyms, in bytes."""
MAX_WORDS = 20
"""The largest number of words of one entry."""

Entry = tuple[str, ...]
"""The words of one entry of a rule, such as `("new", "york")`."""

_PIECE = re.compile(r"((?:\\.|(?!=>)[^,\\]|\\$)*)(,|=>|$)")


@dataclass(frozen=True, slots=True)
class SynonymRule:
    """One rule: if a query contains the words of an entry on the left, it also means the entries on the right."""

    left: tuple[Entry, ...]
    right: tuple[Entry, ...]


def read_synonyms(path: str) -> tuple[str, ...]:
    """The rules in a UTF-8 file, one per line, without comments and empty lines.

    Raises `InputError` with file and line for a rule that cannot be read.
    """
    check_access(path, "synonyms", "as a list of rules")
    text = read_limited_text(path, MAX_BYTES, "a file of synonyms")
    numbered = {number: rule.strip() for number, rule in enumerate(text.splitlines(), 1)}
    rules = tuple(rule for rule in numbered.values() if rule and not rule.startswith("#"))
    if not rules:
        raise InputError("contains no synonyms; write rules such as plane, aeroplane, one per line", path=path)
    try:
        _parsed(rules)
    except UsageError as error:
        line = next(number for number, rule in numbered.items() if rule and not rule.startswith("#") and _is_wrong(rule))
        raise InputError(str(error), path=path, line=line) from None
    return rules


def _is_wrong(rule: str) -> bool:
    try:
        parse_rule(rule)
    except UsageError:
        return True
    return False


def check_synonyms(rules: Sequence[str]) -> None:
    """Raise `UsageError` if a rule cannot be read."""
    _parsed(tuple(rules))


def parse_rule(text: str) -> SynonymRule:
    r"""Parse one rule.

    >>> parse_rule("nyc, new york")
    SynonymRule(left=(('nyc',), ('new', 'york')), right=(('nyc',), ('new', 'york')))
    >>> parse_rule(r"a\,b => c")
    SynonymRule(left=(('a', 'b'),), right=(('c',),))
    """
    sides: list[list[str]] = [[]]
    at, mark = 0, ","
    while mark:
        piece = _PIECE.match(text, at)
        assert piece is not None
        sides[-1].append(re.sub(r"\\(.)", r"\1", piece[1]))
        at, mark = piece.end(), piece[2]
        if mark == "=>":
            sides.append([])
    if len(sides) > 2:
        raise UsageError("the rule has more than one =>; write one rule per line")
    entries = [tuple(_entry(written, text) for written in side if written.strip()) for side in sides]
    if not all(entries):
        raise UsageError(f"the rule {text.strip()[:60]!r} has a side without words; write it as plane, aeroplane or as colour => color")
    if len(sides) == 1 and len(entries[0]) < 2:
        raise UsageError(f"the rule {text.strip()[:60]!r} has only one entry; separate synonyms by commas")
    return SynonymRule(entries[0], entries[-1])


def _entry(written: str, rule: str) -> Entry:
    entry = tuple(words(written))
    if not entry:
        raise UsageError(f"{written.strip()[:60]!r} contains no word; remove it from the rule {rule.strip()[:60]!r}")
    if len(entry) > MAX_WORDS:
        raise UsageError(f"{written.strip()[:60]!r} has {len(entry)} words, more than {MAX_WORDS}; shorten it")
    return entry


@lru_cache(maxsize=8)
def _parsed(rules: tuple[str, ...]) -> tuple[SynonymRule, ...]:
    return tuple(map(parse_rule, rules))


@dataclass(frozen=True, slots=True)
class SynonymMatch:
    """Words of a query for which there are synonyms."""

    first: int
    """The number of the first of these words."""
    end: int
    """One more than the number of the last word."""
    entries: tuple[Entry, ...]
    """What these words mean. If the words themselves are not among these entries, they are replaced."""
    keeps: bool
    """Whether the words themselves are among the entries. They are left out of `entries`."""


class Synonyms:
    """The synonyms of words, in some languages of an index."""

    def __init__(self, rules: Sequence[str], analyzer: Analyzer, languages: Sequence[str]) -> None:
        self._tables = [(_keys(analyzer, language), _table(tuple(rules), analyzer, language)) for language in dict.fromkeys(languages)]

    def of(self, written: Sequence[str]) -> SynonymMatch | None:
        """The synonyms of all words together; None if there are none."""
        match = self._at([[key(word) for word in written] for key, _ in self._tables], 0, len(written))
        return match if match is not None and match.end == len(written) else None

    def matches(self, written: Sequence[str]) -> Iterator[SynonymMatch]:
        """The synonyms of words in a text, from left to right without overlap; of several, those of most words."""
        keys = [[key(word) for word in written] for key, _ in self._tables]
        at = 0
        while at < len(written):
            match = self._at(keys, at, len(written))
            if match is not None:
                yield match
            at = match.end if match is not None else at + 1

    def _at(self, keys: Sequence[Sequence[str]], first: int, end: int) -> SynonymMatch | None:
        for last in range(min(end, first + MAX_WORDS), first, -1):
            found: dict[Entry, None] = {}
            keeps = False
            for (key, table), of_language in zip(self._tables, keys, strict=True):
                asked = tuple(of_language[first:last])
                for entry in table.get(asked, ()):
                    if tuple(map(key, entry)) == asked:
                        keeps = True
                    else:
                        found[entry] = None
            if found or keeps:
                return SynonymMatch(first, last, tuple(found), keeps)
        return None


def _keys(analyzer: Analyzer, language: str) -> Callable[[str], str]:
    """The form in which the words of a language are compared: the term or, for a stop word, the word itself."""
    return lambda word: analyzer.term(word, language) or fold(word)


@lru_cache(maxsize=32)
def _table(rules: tuple[str, ...], analyzer: Analyzer, language: str) -> Mapping[Entry, Iterable[Entry]]:
    """The entries on the right, by the compared forms of the words on the left."""
    key = _keys(analyzer, language)
    table: dict[Entry, list[Sequence[Entry]]] = {}
    for rule in _parsed(rules):
        for entry in rule.left:
            rights = table.setdefault(tuple(map(key, entry)), [])
            if not rights or rights[-1] is not rule.right:  # a rule may have many entries with the same form
                rights.append(rule.right)
    # Most words are in one rule, whose right side is then shared by all its words.
    return {left: rights[0] if len(rights) == 1 else dict.fromkeys(chain.from_iterable(rights)) for left, rights in table.items()}
