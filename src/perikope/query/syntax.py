"""The notation of Boolean queries: the parser, and the conversion of keywords to a Boolean query.

    query   = and { "OR" and }
    and     = same { [ "AND" ] same }                        words side by side are joined by AND
    same    = not { "SAME" not }
    not     = { "NOT" | "-" | "+" } near                     a plus sign changes nothing
    near    = primary { ( "NEAR/n" | "ADJ/n" ) primary }
    primary = "(" query ")" | '"' phrase '"' | word [ "*" | "~" [ "1" | "2" ] ] | "{" term { "|" term } "}"

Operators are written in capitals; in quotes, they are words. A word that the tokeniser splits (`self-portrait`) is a
phrase. A stop word between other words of a phrase matches any word at its position, as does `*`. Other stop words are
left out. Braces contain terms of the index, in one language (`{en:pump}`) or in all searched languages (`{pump|valv}`).

A wildcard matches the terms of the index that begin with the given letters, and the term of the word itself. Terms are
stems, unless the index was made without a stemmer. `generation*` may therefore match less than `generat*`.

A fuzzy word (`pumpp~1`) matches the terms of the index that are at most that many edits away (`query/spelling.py`). A
tilde alone allows 1 edit in words of up to four letters, and 2 edits in longer words. In scores, all terms of a fuzzy
word count as one word.

Synonyms (`query/variants.py`) apply to single words, to phrases as a whole and to the single words of other phrases.
Wildcards, fuzzy words and terms in braces have no synonyms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perikope.core.errors import UnreadableQuery, UsageError
from perikope.core.scanner import Scanner, excerpt
from perikope.query.boolean import And, Near, Not, Or, Phrase, QueryTree, Same, Word, words_of
from perikope.query.spelling import MAX_EDITS, edits_of
from perikope.query.variants import NONE, Variants, one_word, side_by_side, synonym, with_synonyms
from perikope.text.analysis import Analyzer, fold, language_code, word_spans, words

MAX_LENGTH = 100_000
"""Maximum number of characters of a query."""
MAX_DEPTH = 100
"""Maximum depth of nested operators and parentheses, so that a hostile query cannot exhaust the stack."""
MAX_WORDS = 1024
"""Maximum number of words of a query."""
MAX_EXPANSION = 500
"""Maximum number of terms that a wildcard or a fuzzy word may match, and of terms of a word with its synonyms."""
MAX_TERMS = 10_000
"""Maximum number of terms of a query, including the terms of wildcards, fuzzy words and synonyms."""
MAX_DISTANCE = 1_000_000
"""Maximum distance of NEAR and ADJ, in words."""

Expand = Callable[[str, int], tuple[int, list[str]]]
"""A function of a prefix (`en:pum`) and a maximum. It returns the number of terms with this prefix, and their names.

There are no names if the number is above the maximum.
"""

_QUOTES = '"“”„'
_SPECIAL = f"(){{}}{_QUOTES}"
_LEXEME = re.compile(rf"[^\s{re.escape(_SPECIAL)}]+")
_KEYWORD = re.compile(rf"\s*([+-]*)([{_QUOTES}]|[^\s{_QUOTES}]+)")
_TERM = re.compile(r"((?:[^|}\\]|\\.)*)([|}])", re.DOTALL)
_EDITS = re.compile(r"~([0-9]*)")
_DISTANCE = re.compile(r"(NEAR|ADJ)(?:/(.*))?")
_LEVEL = {"OR": 1, "AND": 2, "SAME": 3, "NEAR": 4, "ADJ": 4}
_JOIN: dict[str, Callable[[tuple[QueryTree, ...]], QueryTree]] = {"OR": Or, "AND": And, "SAME": Same}


def parse_tree(text: str, analyzer: Analyzer, languages: Sequence[str], expand: Expand, variants: Variants = NONE) -> QueryTree:
    """Parse a Boolean query into a tree over terms of the index.

    Each word becomes one term per language. Stop words of the first language are left out in all languages. `variants`
    finds near terms and synonyms.

    >>> def nothing(prefix, most): return 0, []
    >>> print(parse_tree('"state of the art" pumps OR NOT valve', Analyzer(), ["en"], nothing))
    ("{en:state} * * {en:art}" AND {en:pump}) OR NOT {en:valv}
    """
    if len(text) > MAX_LENGTH:
        raise UsageError(f"the query has {len(text)} characters; shorten it to at most {MAX_LENGTH}")
    if not text.strip():
        raise UsageError("the query is empty; give at least one word")
    parser = _QueryParser(text, analyzer, [language_code(language) for language in languages], expand, variants)
    parsed = parser.expression(0, 1)
    parser.end()
    if parsed.tree is None:
        raise UsageError(f"the query {excerpt(text)} contains only stop words; add another word")
    return parsed.tree


def automatic(text: str) -> str:
    """Convert keywords to a Boolean query (Beigbeder et al. 2015).

    `-x` becomes NOT x, and `+` is removed. Words and phrases are joined by AND.

    >>> automatic('opera +singer "La Scala" -soprano')
    'opera AND singer AND "La Scala" AND NOT soprano'
    """
    parts, at = [], 0
    while match := _KEYWORD.match(text, at):
        signs, start, at = match[1], match.start(2), match.end()
        if text[start : start + 1] in tuple(_QUOTES):
            at = _closing_quote(text, start) + 1
        if words_of_keyword := words(text[start:at]):
            # A keyword that is the name of an operator is quoted, so that it is read as a word.
            quoted = len(words_of_keyword) > 1 or words_of_keyword[0] in _LEVEL or words_of_keyword[0] == "NOT"
            parts.append("NOT " * ("-" in signs) + (f'"{" ".join(words_of_keyword)}"' if quoted else words_of_keyword[0]))
    if not parts:
        raise UsageError("the query is empty; give at least one word")
    return " AND ".join(parts)


def terms_of(word: str, analyzer: Analyzer, languages: Sequence[str]) -> list[str]:
    """The terms of a word, one per language in which it is not a stop word."""
    terms = ((code, analyzer.term(word, code)) for code in languages)
    return [f"{code}:{term}" for code, term in terms if term is not None]


def terms_or_fallback(word: str, analyzer: Analyzer, languages: Sequence[str], variants: Variants) -> list[str]:
    """The terms of a word in the searched languages and, if no document contains one, in the languages of the fallback.

    The latter are left out if no document contains them either.
    """
    terms = terms_of(word, analyzer, languages)
    if variants.fallback and not variants.known(terms):
        others = terms_of(word, analyzer, variants.fallback)
        terms += others if variants.known(others) else []
    return terms


def _closing_quote(text: str, opening: int, braces: bool = False) -> int:
    """The position of the closing quotation mark. With `braces`, a mark inside braces is part of a term."""
    at = opening + 1
    while at < len(text) and text[at] not in _QUOTES:
        inside = braces and text[at] == "{"
        at += 1
        while inside and at < len(text) and text[at] != "}":
            at += 1 + (text[at] == "\\")
    if at >= len(text):
        raise QueryScanner(text).error("the quotation mark is not closed", opening)
    return at


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A parsed part of the query."""

    tree: QueryTree | None
    """The tree; None if the part has only stop words."""
    depth: int
    """The depth of the tree."""
    position: int
    """The position of the part in the query, in characters."""
    negates: bool = False
    """Whether the tree contains NOT."""


class _Operator(NamedTuple):
    """An operator with its distance (of NEAR and ADJ, as written), and its start and end in the query.

    For an AND that is not written, the end equals the start.
    """

    name: str
    distance: str | None
    position: int
    end: int


class QueryScanner(Scanner):
    """A query that is read from left to right. Its errors know the characters that are wrong."""

    def error(self, message: str, position: int | None = None, advice: str = "") -> UnreadableQuery:
        """Make the error for a position: of the word that begins there, or of a single sign."""
        start = self.at if position is None else position
        lexeme = _LEXEME.match(self.text, start)
        end = lexeme.end() if lexeme else min(start + 1, len(self.text))
        return UnreadableQuery(self.complaint(message, start, advice), start, end)


class _QueryParser(QueryScanner):
    """Parses a query by the grammar in the module docstring, and counts its words and terms."""

    def __init__(self, text: str, analyzer: Analyzer, languages: Sequence[str], expand: Expand, variants: Variants) -> None:
        super().__init__(text)
        self.analyzer, self.languages, self.expand, self.variants = analyzer, languages, expand, variants
        self.words = 0
        self.terms = 0

    def expression(self, nesting: int, lowest: int) -> _Parsed:
        """Parse operands joined by operators whose level in `_LEVEL` is at least `lowest`."""
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
        """The next operator, which is not consumed; None at the end of the query and before a closing parenthesis."""
        if not self.rest() or self.peek() == ")":
            return None
        lexeme = _LEXEME.match(self.text, self.at)
        if lexeme and lexeme.group() in _JOIN:
            return _Operator(lexeme.group(), None, self.at, lexeme.end())
        if lexeme and (near := _DISTANCE.fullmatch(lexeme.group())):
            return _Operator(near[1], near[2], self.at, lexeme.end())
        return _Operator("AND", None, self.at, self.at)

    def operand(self, nesting: int) -> _Parsed:
        """Parse an operand, with its sign (NOT, minus or plus) if there is one."""
        self.space()
        start, sign = self.at, self.sign()
        if sign:
            if nesting >= MAX_DEPTH:
                raise self.error(f"simplify the query, which nests operators deeper than {MAX_DEPTH},", start)
            negated = self.expression(nesting + 1, _LEVEL["NEAR"])
            return negated if sign == "+" or negated.tree is None else _Parsed(Not(negated.tree), self.deeper(start, negated), start, True)
        following = self.operator()
        if following is None or following.end > following.position:
            raise self.error('expected a word, a phrase or "("', start)
        return self.primary(nesting)

    def sign(self) -> str:
        """Consume the next NOT, minus or plus, and return it; an empty text if there is none."""
        lexeme = _LEXEME.match(self.text, self.at)
        if lexeme and lexeme.group() == "NOT":
            self.at = lexeme.end()
            return "NOT"
        # A minus or plus followed by a space is not a sign.
        if self.peek() in ("+", "-") and self.text[self.at + 1 : self.at + 2].strip():
            self.at += 1
            return self.text[self.at - 1]
        return ""

    def primary(self, nesting: int) -> _Parsed:
        """Parse a word, a phrase, terms in braces, or a query in parentheses."""
        start = self.at
        mark = self.text[start]
        if mark == "(":
            if nesting >= MAX_DEPTH:
                raise self.error(f"simplify the query, which nests parentheses deeper than {MAX_DEPTH},", start)
            self.at += 1
            inner = self.expression(nesting + 1, 1)
            if not self.take(")"):
                raise self.error("the parenthesis is not closed", start)
            return inner
        if mark in _QUOTES:
            end = _closing_quote(self.text, start, braces=True)
            self.at = end + 1
            if distance := re.match(r"~[0-9]+", self.text[self.at :]):
                raise self.error(f"write NEAR or ADJ between words for a distance, such as pump NEAR/{distance[0][1:]} shaft,", self.at)
            if parsed := self.synonymous(start + 1, end):
                return parsed
            phrase = self.phrase(start + 1, end)
            if not phrase:
                raise self.error("the phrase contains no word", start)
            return self.side_by_side(phrase, start)
        if mark == "{":
            word, self.at = self.exact(start)
            return _Parsed(word, 1, start)
        lexeme = _LEXEME.match(self.text, start)
        if lexeme is None:
            raise self.error("unexpected character", start)
        self.at = lexeme.end()
        if parsed := self.synonymous(start, lexeme.end()):
            return parsed
        cut = self.cut(start, lexeme.end())
        if not cut:
            raise self.error("expected a word", start)
        return self.side_by_side(cut, start)

    def side_by_side(self, phrase: list[Word | None], start: int) -> _Parsed:
        """A phrase or a single word, without stop words at its ends. The tree is None if there are only stop words."""
        tree = side_by_side(phrase) if any(phrase) else None
        return _Parsed(tree, 2 if isinstance(tree, Phrase) else 1, start)

    def synonymous(self, start: int, end: int) -> _Parsed | None:
        """The words from `start` to `end` or their synonyms; None if the words together have no synonyms."""
        piece = self.text[start:end]
        if self.variants.synonyms is None or any(mark in piece for mark in "*~{"):
            return None
        written = words(piece)
        match = self.variants.synonyms.of(written) if written else None
        if match is None:
            return None
        tree = with_synonyms(written, match, self.terms_of, adjacent=True)
        for word, _ in words_of(tree) if tree is not None else ():
            self.count(word.terms, start)
        return _Parsed(tree, 3, start)

    def terms_of(self, word: str) -> list[str] | None:
        """The terms of a word in the searched languages; None for a stop word of the first language."""
        is_stop_word = self.analyzer.term(word, self.languages[0]) is None
        return None if is_stop_word else terms_or_fallback(word, self.analyzer, self.languages, self.variants)

    def phrase(self, start: int, end: int) -> list[Word | None]:
        """The words between quotation marks; None for a stop word or a separate star."""
        phrase_words: list[Word | None] = []
        while start < end:
            if self.text[start] == "{":
                word, start = self.exact(start)
                phrase_words.append(word)
            else:
                brace = self.text.find("{", start, end)
                stop = brace if brace >= 0 else end
                phrase_words += self.cut(start, stop, stars=True)
                start = stop
        return phrase_words

    def cut(self, start: int, end: int, stars: bool = False) -> list[Word | None]:
        """The words of the query from `start` to `end`; None for a stop word and, with `stars`, for a separate star."""
        piece = self.text[start:end]
        starts, ends = (column.tolist() for column in word_spans(piece))
        word_at = {first: (last, piece[first:last]) for first, last in zip(starts, ends, strict=True)}
        ended, wild = set(ends), set()
        for position in (i for i, character in enumerate(piece) if character == "*"):
            if position in ended and position + 1 not in word_at:
                wild.add(position)
            elif stars and not piece[position - 1 : position].strip() and not piece[position + 1 : position + 2].strip():
                word_at[position] = (position, "")
            else:
                raise self.error("a * must be at the end of a word", start + position)
        edits = self.edits(piece, start, word_at, ended)

        def read(first: int, last: int, word: str) -> Word | None:
            if last in wild:
                return self.wildcard(word, start + first)
            return self.fuzzy(word, edits[last], start + first) if last in edits else self.word(word, start + first)

        return [read(first, last, word) if word else None for first, (last, word) in sorted(word_at.items())]

    def edits(self, piece: str, start: int, word_at: dict[int, tuple[int, str]], ended: Collection[int]) -> dict[int, int]:
        """The numbers of edits of fuzzy words, by the ends of the words; 0 if no number is written.

        A tilde is an ordinary character, unless it follows a word and ends it. The number is removed from `word_at`.
        """
        edits: dict[int, int] = {}
        for mark in _EDITS.finditer(piece):
            if mark.start() in ended:
                end_of_next, _ = word_at.get(mark.start() + 1, (mark.end(), ""))
                if end_of_next != mark.end():  # as in "a~b", or "a~1b"
                    continue
                if mark[1] and not 1 <= int(mark[1]) <= MAX_EDITS:
                    raise self.error(f"a fuzzy word has 1 to {MAX_EDITS} edits: write ~, ~1 or ~2 after the word,", start + mark.start())
                word_at.pop(mark.start() + 1, None)
                edits[mark.start()] = int(mark[1] or 0)
        return edits

    def word(self, word: str, position: int) -> Word | None:
        """A word of a phrase or a single word, with its near terms or its synonyms of one word."""
        terms = self.terms_of(word)
        if terms is None:
            return None
        others = self.variants.stand_ins(word, terms)
        match = self.variants.synonyms.of([word]) if self.variants.synonyms is not None else None
        if match is not None:
            alone = [entry[0] for entry in match.entries if len(entry) == 1]
            replaced = {term: synonym(term, entry, word) for entry in alone for term in self.terms_of(entry) or ()}
            terms, others = ([], replaced) if replaced and not match.keeps else (terms, {**others, **replaced})
        made = one_word(terms, others, word)
        self.count(made.terms, position)
        return made

    def fuzzy(self, word: str, edits: int, position: int) -> Word:
        own = terms_of(word, self.analyzer, self.languages)
        near = [term for code in self.languages for term in self.variants.near(word, code, edits or edits_of(word) or 1)]
        if len(near) > MAX_EXPANSION:
            message = f"write ~1, or more letters of the word: {word}~ matches {len(near)} terms, more than {MAX_EXPANSION},"
            raise self.error(message, position)
        made = one_word(own, dict.fromkeys(near, f"near {word}"), word)
        self.count(made.terms, position)
        return made

    def wildcard(self, word: str, position: int) -> Word:
        terms: dict[str, None] = {}
        count = 0
        for languages in (self.languages, self.variants.fallback):
            for code in languages if not count else ():
                more, begin_so = self.expand(f"{code}:{fold(word)}", MAX_EXPANSION)
                count += more
                terms |= dict.fromkeys(begin_so)
        if count > MAX_EXPANSION:
            message = f"write more letters of the word: {word}* matches at least {count} terms, more than {MAX_EXPANSION},"
            raise self.error(message, position)
        # The term of the word itself is added, because its stem may be shorter than the given letters.
        terms |= dict.fromkeys(terms_of(word, self.analyzer, self.languages))
        return self.counted(list(terms), position, word)

    def exact(self, start: int) -> tuple[Word, int]:
        """The terms between braces as a word, and the position after the closing brace."""
        terms, at = [], start + 1
        if self.text[at : at + 1] == "}":
            return self.counted([], start), at + 1
        while match := _TERM.match(self.text, at):
            if not match[1]:
                raise self.error("the term is empty", at)
            term = re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)
            terms += [term] if ":" in term else [f"{code}:{term}" for code in self.languages]
            at = match.end()
            if match[2] == "}":
                return self.counted(terms, start, terms[0].partition(":")[2]), at
        raise self.error("the brace is not closed", start)

    def counted(self, terms: list[str], position: int, written: str = "") -> Word:
        self.count(terms, position)
        return Word(tuple(terms), written)

    def count(self, terms: Sequence[str], position: int) -> None:
        """Count a word and its terms. Too many are an error."""
        self.words += 1
        self.terms += len(terms)
        if self.words > MAX_WORDS:
            raise self.error(f"shorten the query, which has more than {MAX_WORDS} words,", position)
        if self.terms > MAX_TERMS:
            raise self.error(f"use fewer wildcards, fuzzy words or synonyms: the query matches more than {MAX_TERMS} terms", position)

    def joined(self, name: str, operands: Sequence[_Parsed]) -> _Parsed:
        """Join operands by AND, OR or SAME. Operands with only stop words are left out."""
        start = operands[0].position
        trees = tuple(operand.tree for operand in operands if operand.tree is not None)
        if len(trees) < 2:
            return next((operand for operand in operands if operand.tree is not None), operands[0])
        return _Parsed(_JOIN[name](trees), self.deeper(start, *operands), start, any(operand.negates for operand in operands))

    def near(self, left: _Parsed, right: _Parsed, name: str, distance: int) -> _Parsed:
        for operand in (left, right):
            if operand.tree is None:
                raise self.error(f"{name} needs a word that is not a stop word on each side", operand.position)
            if operand.negates:
                raise self.error(f"NOT cannot be inside {name} (a missing word has no position)", operand.position)
        assert left.tree is not None
        assert right.tree is not None
        return _Parsed(Near(left.tree, right.tree, distance, name == "ADJ"), self.deeper(left.position, left, right), left.position)

    def distance(self, operator: _Operator) -> int:
        written = operator.distance or ""
        if not re.fullmatch(r"[0-9]{1,9}", written) or not 1 <= int(written) <= MAX_DISTANCE:
            raise self.error(
                f"{operator.name} needs a distance of 1 to {MAX_DISTANCE} words, such as {operator.name}/5,", operator.position
            )
        return int(written)

    def deeper(self, position: int, *operands: _Parsed) -> int:
        depth = 1 + max(operand.depth for operand in operands)
        if depth > MAX_DEPTH:
            raise self.error(f"simplify the query, which nests operators deeper than {MAX_DEPTH},", position)
        return depth

    def end(self) -> None:
        if self.rest():
            raise self.error("unmatched closing parenthesis")
