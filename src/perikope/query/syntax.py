"""How a Boolean query is written: the parser, and the Boolean query that keywords stand for.

    query   = and { "OR" and }
    and     = same { [ "AND" ] same }                        words side by side are joined by AND
    same    = not { "SAME" not }
    not     = { "NOT" | "-" | "+" } near                     a plus sign changes nothing
    near    = place { ( "NEAR/n" | "ADJ/n" ) place }
    place   = "(" query ")" | '"' phrase '"' | word [ "*" ] | "{" term { "|" term } "}"

Operators are in capitals; quoted, they are words. A word that is cut (`self-portrait`) is a phrase. Stop words keep their place between the
words of a phrase, where `*` stands for any word; elsewhere they are dropped. Braces hold terms as the index has them,
in one language (`{en:pump}`) or in each that is looked in (`{pump|valv}`).

A wildcard stands for the terms of the index that begin with what is written, and for the term of the word itself. Terms are stems, unless
the index was built without: `generat*` finds what `generation*` does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perikope.core.errors import UsageError
from perikope.core.scanner import Scanner, excerpt
from perikope.query.boolean import And, Near, Not, Or, Phrase, QueryTree, Same, Word
from perikope.text.analysis import Analyzer, fold, language_code, word_spans, words

MAX_LENGTH = 100_000
"""Characters of a query."""
MAX_DEPTH = 100
"""Operators and parentheses nest no deeper: nobody writes that, and a hostile query must not exhaust the stack."""
MAX_WORDS = 1024
MAX_EXPANSION = 500
"""Terms that a wildcard may stand for."""
MAX_TERMS = 10_000
MAX_DISTANCE = 1_000_000

Expand = Callable[[str, int], tuple[int, list[str]]]
"""How many terms (`en:pump`) begin with a prefix, and which; no names where they are more than the second argument."""

_QUOTES = '"“”„'
_SPECIAL = f"(){{}}{_QUOTES}"
_LEXEME = re.compile(rf"[^\s{re.escape(_SPECIAL)}]+")
_KEYWORD = re.compile(rf"\s*([+-]*)([{_QUOTES}]|[^\s{_QUOTES}]+)")
_TERM = re.compile(r"((?:[^|}\\]|\\.)*)([|}])", re.DOTALL)
_DISTANCE = re.compile(r"(NEAR|ADJ)(?:/(.*))?")
_LEVEL = {"OR": 1, "AND": 2, "SAME": 3, "NEAR": 4, "ADJ": 4}
_JOIN: dict[str, Callable[[tuple[QueryTree, ...]], QueryTree]] = {"OR": Or, "AND": And, "SAME": Same}


def parse_tree(text: str, analyzer: Analyzer, languages: Sequence[str], expand: Expand) -> QueryTree:
    """The tree of a Boolean query, in the terms of the index.

    A word becomes a term in each language; a stop word of the first one, the query's own, is none in any.

    >>> def nothing(prefix, most): return 0, []
    >>> print(parse_tree('"state of the art" pumps OR NOT valve', Analyzer(), ["en"], nothing))
    ("{en:state} * * {en:art}" AND {en:pump}) OR NOT {en:valv}
    """
    if len(text) > MAX_LENGTH:
        raise UsageError(f"the query has {len(text)} characters; {MAX_LENGTH} are the most")
    if not text.strip():
        raise UsageError("the query is empty; give at least one word")
    parser = _QueryParser(text, analyzer, [language_code(language) for language in languages], expand)
    found = parser.expression(0, 1)
    parser.end()
    if found.tree is None:
        raise UsageError(f"the query {excerpt(text)} holds only stop words; add a word that says what it is about")
    return found.tree


def automatic(text: str) -> str:
    """The Boolean query of keywords: `-x` becomes NOT x, `+` is dropped, words and phrases are joined by AND (Beigbeder et al. 2015).

    >>> automatic('opera +singer "La Scala" -soprano')
    'opera AND singer AND "La Scala" AND NOT soprano'
    """
    parts, at = [], 0
    while found := _KEYWORD.match(text, at):
        signs, start, at = found[1], found.start(2), found.end()
        if text[start : start + 1] in tuple(_QUOTES):
            at = _closing_quote(text, start) + 1
        if own := words(text[start:at]):
            # Whatever is an operator elsewhere is a word here.
            quoted = len(own) > 1 or own[0] in _LEVEL or own[0] == "NOT"
            parts.append("NOT " * ("-" in signs) + (f'"{" ".join(own)}"' if quoted else own[0]))
    if not parts:
        raise UsageError("the query is empty; give at least one word")
    return " AND ".join(parts)


def terms_of(word: str, analyzer: Analyzer, languages: Sequence[str]) -> list[str]:
    """The terms of a word, one in each language in which it is no stop word."""
    terms = ((code, analyzer.term(word, code)) for code in languages)
    return [f"{code}:{term}" for code, term in terms if term is not None]


def _closing_quote(text: str, opening: int, braces: bool = False) -> int:
    """Where a quotation ends; a mark inside braces is part of a term."""
    at = opening + 1
    while at < len(text) and text[at] not in _QUOTES:
        inside = braces and text[at] == "{"
        at += 1
        while inside and at < len(text) and text[at] != "}":
            at += 1 + (text[at] == "\\")
    if at >= len(text):
        raise Scanner(text).error("the quotation mark is not closed", opening)
    return at


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A tree, or None for stop words alone; how deep it is, where it was written, and whether it holds a NOT."""

    tree: QueryTree | None
    depth: int
    place: int
    negates: bool = False


class _Operator(NamedTuple):
    """An operator, its distance as written, where it begins and ends; an AND that is not written ends where it begins."""

    name: str
    distance: str | None
    place: int
    end: int


class _QueryParser(Scanner):
    """One method per rule of the grammar at the top of this file; counts words and terms."""

    def __init__(self, text: str, analyzer: Analyzer, languages: Sequence[str], expand: Expand) -> None:
        super().__init__(text)
        self.analyzer, self.languages, self.expand = analyzer, languages, expand
        self.words = 0
        self.terms = 0

    def expression(self, nesting: int, lowest: int) -> _Parsed:
        """Operands joined by operators that bind at least as strongly as `lowest`."""
        left = self.operand(nesting)
        while (operator := self.operator()) and (level := _LEVEL[operator.name]) >= lowest:
            name = operator.name
            if name in _JOIN:
                operands = [left]
                while operator and operator.name == name:
                    self.at = operator.end
                    operands.append(self.expression(nesting, level + 1))
                    operator = self.operator()
                left = self.joined(name, operands)
            else:
                self.at = operator.end
                distance = self.distance(operator)
                left = self.near(left, self.expression(nesting, level + 1), name, distance)
        return left

    def operator(self) -> _Operator | None:
        """The operator that comes next, not yet taken; None at the end and before a closing parenthesis."""
        if not self.rest() or self.peek() == ")":
            return None
        found = _LEXEME.match(self.text, self.at)
        if found and found.group() in _JOIN:
            return _Operator(found.group(), None, self.at, found.end())
        if found and (near := _DISTANCE.fullmatch(found.group())):
            return _Operator(near[1], near[2], self.at, found.end())
        return _Operator("AND", None, self.at, self.at)

    def operand(self, nesting: int) -> _Parsed:
        """A place, or what is negated."""
        self.space()
        start, sign = self.at, self.sign()
        if sign:
            if nesting >= MAX_DEPTH:
                raise self.error(f"nested deeper than {MAX_DEPTH}", start)
            found = self.expression(nesting + 1, _LEVEL["NEAR"])
            return found if sign == "+" or found.tree is None else _Parsed(Not(found.tree), self.deeper(start, found), start, True)
        following = self.operator()
        if following is None or following.end > following.place:
            raise self.error('expected a word, a phrase or "("', start)
        return self.place(nesting)

    def sign(self) -> str:
        """The NOT, minus or plus that comes next, taken; or nothing."""
        found = _LEXEME.match(self.text, self.at)
        if found and found.group() == "NOT":
            self.at = found.end()
            return "NOT"
        # A dash between blanks is no sign.
        if self.peek() in ("+", "-") and self.text[self.at + 1 : self.at + 2].strip():
            self.at += 1
            return self.text[self.at - 1]
        return ""

    def place(self, nesting: int) -> _Parsed:
        """What stands somewhere in a text: a word, a phrase, or a query in parentheses."""
        start = self.at
        mark = self.text[start]
        if mark == "(":
            if nesting >= MAX_DEPTH:
                raise self.error(f"nested deeper than {MAX_DEPTH}", start)
            self.at += 1
            found = self.expression(nesting + 1, 1)
            if not self.take(")"):
                raise self.error("the parenthesis is not closed", start)
            return found
        if mark in _QUOTES:
            end = _closing_quote(self.text, start, braces=True)
            phrase = self.phrase(start + 1, end)
            self.at = end + 1
            if not phrase:
                raise self.error("the phrase holds no word", start)
            return self.side_by_side(phrase, start)
        if mark == "{":
            word, self.at = self.exact(start)
            return _Parsed(word, 1, start)
        found_lexeme = _LEXEME.match(self.text, start)
        if found_lexeme is None:
            raise self.error("did not expect this", start)
        cut = self.cut(start, found_lexeme.end())
        self.at = found_lexeme.end()
        if not cut:
            raise self.error("expected a word", start)
        return self.side_by_side(cut, start)

    def side_by_side(self, found: list[Word | None], start: int) -> _Parsed:
        """A phrase, a word where it is only one, nothing where there are only stop words. Those at the ends say nothing."""
        while found and found[0] is None:
            found = found[1:]
        while found and found[-1] is None:
            found = found[:-1]
        if len(found) > 1:
            return _Parsed(Phrase(tuple(found)), 2, start)
        return _Parsed(found[0] if found else None, 1, start)

    def phrase(self, start: int, end: int) -> list[Word | None]:
        """The words between quotation marks; None for a stop word or a star that stands apart."""
        found: list[Word | None] = []
        while start < end:
            if self.text[start] == "{":
                word, start = self.exact(start)
                found.append(word)
            else:
                brace = self.text.find("{", start, end)
                stop = brace if brace >= 0 else end
                found += self.cut(start, stop, stars=True)
                start = stop
        return found

    def cut(self, start: int, end: int, stars: bool = False) -> list[Word | None]:
        """The words of a piece of the text; None for a stop word and, with `stars`, for a star that stands apart."""
        piece = self.text[start:end]
        starts, ends = (column.tolist() for column in word_spans(piece))
        found = {first: (last, piece[first:last]) for first, last in zip(starts, ends, strict=True)}
        ended, wild = set(ends), set()
        for place in (i for i, character in enumerate(piece) if character == "*"):
            if place in ended and place + 1 not in found:
                wild.add(place)
            elif stars and not piece[place - 1 : place].strip() and not piece[place + 1 : place + 2].strip():
                found[place] = (place, "")
            else:
                raise self.error("a * stands at the end of a word", start + place)
        return [self.word(word, last in wild, start + first) if word else None for first, (last, word) in sorted(found.items())]

    def word(self, word: str, wild: bool, place: int) -> Word | None:
        if wild:
            return self.wildcard(word, place)
        if self.analyzer.term(word, self.languages[0]) is None:
            return None
        return self.counted(terms_of(word, self.analyzer, self.languages), place, word)

    def wildcard(self, word: str, place: int) -> Word:
        terms: dict[str, None] = {}
        count = 0
        for code in self.languages:
            more, begin_so = self.expand(f"{code}:{fold(word)}", MAX_EXPANSION)
            count += more
            terms |= dict.fromkeys(begin_so)
        if count > MAX_EXPANSION:
            message = f"{word}* stands for at least {count} terms of the index, {MAX_EXPANSION} are the most; write more of the word"
            raise self.error(message, place)
        # The word itself must not be lost where its stem is shorter than what was written.
        terms |= dict.fromkeys(terms_of(word, self.analyzer, self.languages))
        return self.counted(list(terms), place, word)

    def exact(self, start: int) -> tuple[Word, int]:
        """The terms between braces, and where they end."""
        terms, at = [], start + 1
        if self.text[at : at + 1] == "}":
            return self.counted([], start), at + 1
        while found := _TERM.match(self.text, at):
            if not found[1]:
                raise self.error("the term is empty", at)
            term = re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL)
            terms += [term] if ":" in term else [f"{code}:{term}" for code in self.languages]
            at = found.end()
            if found[2] == "}":
                return self.counted(terms, start, terms[0].partition(":")[2]), at
        raise self.error("the brace is not closed", start)

    def counted(self, terms: list[str], place: int, written: str = "") -> Word:
        self.words += 1
        self.terms += len(terms)
        if self.words > MAX_WORDS:
            raise self.error(f"the query has more than {MAX_WORDS} words", place)
        if self.terms > MAX_TERMS:
            raise self.error(f"the query stands for more than {MAX_TERMS} terms", place)
        return Word(tuple(terms), written)

    def joined(self, name: str, operands: Sequence[_Parsed]) -> _Parsed:
        """Operands under AND, OR or SAME; stop words are dropped."""
        start = operands[0].place
        trees = tuple(operand.tree for operand in operands if operand.tree is not None)
        if len(trees) < 2:
            return next((operand for operand in operands if operand.tree is not None), operands[0])
        return _Parsed(_JOIN[name](trees), self.deeper(start, *operands), start, any(operand.negates for operand in operands))

    def near(self, left: _Parsed, right: _Parsed, name: str, distance: int) -> _Parsed:
        for operand in (left, right):
            if operand.tree is None:
                raise self.error(f"{name} needs a word that is no stop word on each side", operand.place)
            if operand.negates:
                raise self.error(f"what does not occur has no place: NOT cannot stand inside {name}", operand.place)
        assert left.tree is not None
        assert right.tree is not None
        return _Parsed(Near(left.tree, right.tree, distance, name == "ADJ"), self.deeper(left.place, left, right), left.place)

    def distance(self, operator: _Operator) -> int:
        written = operator.distance or ""
        if not re.fullmatch(r"[0-9]{1,9}", written) or not 1 <= int(written) <= MAX_DISTANCE:
            raise self.error(f"say how many words apart, 1 to {MAX_DISTANCE}, as in {operator.name}/5", operator.place)
        return int(written)

    def deeper(self, place: int, *operands: _Parsed) -> int:
        depth = 1 + max(operand.depth for operand in operands)
        if depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH}", place)
        return depth

    def end(self) -> None:
        if self.rest():
            raise self.error("the parenthesis closes nothing")
