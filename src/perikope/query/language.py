"""The language of a query, found in the dictionary of the index, and the languages in which a query is searched.

The index knows how frequent a word is in each of its languages. The probability of a word w in language l is
`p_l = (cf + μ p) / (T + μ)`: its occurrences in texts of this language, over all their tokens, smoothed with its
probability p in all texts. So a language with few texts says little, even if a word is frequent in them. A stop word is
not in the dictionary; its probability is `STOP_WORD`. Every word is evidence of `ln((1 - λ) p_l + λ max p)` for l, so
one word can speak for a language by at most `ln(1/λ)`. A word that no language has is no evidence. The language with
the largest sum is the language of the query if it is ahead of the next one by `MARGIN`. This is more than one word can
say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perikope.core.errors import UsageError
from perikope.index.reader import Snapshot
from perikope.query.syntax import terms_of
from perikope.text.analysis import SNOWBALL, language_code, words

ALL = "all"
"""The value of the option `language` with which all languages are searched as one collection."""
UNSTATED = ("und", "mis", "mul", "zxx")
"""The codes of text in no known language. Such text is searched together with every language."""

STOP_WORD = 1 / 200
"""The probability of one stop word, relative to the other tokens. A list has 100 to 200 stop words, about 40 % of a
text."""
SMOOTHING = 0.02
"""The weight λ of the largest probability of a word in any language: a rare word in a small language proves little."""
FEW_TOKENS = 1000
"""The strength μ of the smoothing of probabilities, in tokens. A page with foreign words has some hundred tokens."""
MARGIN = 4.0
"""How far the best language must be ahead of the next one to be the language of the query: odds of 55 to 1."""

_OPERATORS = re.compile(r"\{[^{}]*\}|\b(?:AND|OR|NOT|SAME|(?:NEAR|ADJ)(?:/\d+)?)\b|(?<!\w)\w+\*")
"""Operators, terms in braces, and wildcards of a Boolean query, which are no words of a language."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The languages in which the words of a query are looked up."""

    languages: tuple[str, ...]
    """The languages; stop words of the first one are left out in all of them."""
    by_language: bool
    """Whether the collection is counted by language."""
    fallback: tuple[str, ...] = ()
    """The other languages, in which words are looked up that no text in `languages` has; empty if there are none."""

    is_unclear: bool = False
    """Whether all languages are searched because the words of the query do not show its language."""

    @property
    def detected(self) -> str:
        """The language that the words of the query show; empty if it was given or is unclear."""
        return self.languages[0] if self.fallback else ""


def check_language(snapshot: Snapshot, language: str) -> None:
    """Raise `UsageError` if a language is given and the index has no text in it."""
    known = snapshot.languages_of_text
    if language and language != ALL and known and language_code(language) not in known:
        listed = ", ".join(code for code in snapshot.languages if code in known)
        raise UsageError(f"the index has no text in the language {language!r}; choose one of {listed}, or all (--language all)")


def searched_languages(snapshot: Snapshot, text: str, language: str = "", syntax: str = "words") -> Searched:
    """The languages in which a query is searched.

    `language` is a code, `all`, or empty: then the language of the text is searched or, if it is unclear, all
    languages, of which the most probable is the first. Text whose language is not stated is always searched.
    """
    if language == ALL or (not language and not has_several_languages(snapshot)):
        return Searched(tuple(snapshot.languages), by_language=False)
    if language:
        return Searched(with_unstated(snapshot, language_code(language)), by_language=has_several_languages(snapshot))
    evidence = evidence_of(snapshot, words(_OPERATORS.sub(" ", text) if syntax != "words" else text))
    best, found = best_of(evidence), clear_best_of(evidence)
    if not found:
        return Searched(tuple(sorted(snapshot.languages, key=lambda code: code != best)), by_language=True, is_unclear=True)
    searched = with_unstated(snapshot, found)
    return Searched(searched, by_language=True, fallback=tuple(code for code in snapshot.languages if code not in searched))


def contains_any(snapshot: Snapshot, terms: Sequence[str]) -> bool:
    """Whether a document contains one of the terms."""
    return bool(terms) and bool(snapshot.look_up(terms).counts[0].any())


def has_several_languages(snapshot: Snapshot) -> bool:
    """Whether the index has text in more than one language. Deleted documents do not count."""
    return len(snapshot.languages_of_text) > 1 and len(snapshot.totals_by_language) > 1


def best_of(evidence: Mapping[str, float]) -> str:
    """The language with the most evidence; of equal ones the first. Empty if there is no evidence or no difference."""
    return max(evidence, key=lambda code: evidence[code]) if len({*evidence.values()}) > 1 else ""


def clear_best_of(evidence: Mapping[str, float]) -> str:
    """The language whose evidence is ahead of that of all others by `MARGIN`; empty if there is none."""
    if len(evidence) < 2:
        return next(iter(evidence), "")
    best, second = sorted(evidence, key=lambda code: (-evidence[code], code))[:2]
    return best if evidence[best] - evidence[second] >= MARGIN else ""


def evidence_of(snapshot: Snapshot, query_words: Sequence[str]) -> dict[str, float]:
    """The logarithm of the probability of words in each language of the index, up to a constant."""
    tokens = {code: counts.occurrences for code, counts in snapshot.totals_by_language.items() if code not in UNSTATED}
    distinct = list(dict.fromkeys(query_words))
    terms = [[snapshot.analyzer.term(word, code) for code in tokens] for word in distinct]
    names = [f"{code}:{term}" for of_word in terms for code, term in zip(tokens, of_word, strict=True)]
    counts = snapshot.look_up(names).counts[1].reshape(len(distinct), len(tokens))
    is_stop_word = np.array([[term is None for term in of_word] for of_word in terms], bool).reshape(counts.shape)
    sizes = np.array([*tokens.values()], np.float64)
    everywhere = counts.sum(axis=1, keepdims=True) / max(sizes.sum(), 1)
    probability = np.where(is_stop_word, STOP_WORD, (counts + FEW_TOKENS * everywhere) / (sizes + FEW_TOKENS))
    largest = probability.max(axis=1, initial=0.0)
    known = largest > 0
    smoothed = (1 - SMOOTHING) * probability[known] + SMOOTHING * largest[known, None]
    return dict(zip(tokens, np.log(smoothed).sum(axis=0).tolist(), strict=True))


def note_on_language(snapshot: Snapshot, text: str, searched: Searched) -> str:
    """A sentence that says in which languages a query was searched, if several languages have some of its words."""
    if not searched.is_unclear and not searched.fallback:
        return ""
    chosen = searched.languages[0]
    content = [word for word in words(text) if snapshot.analyzer.term(word, chosen) is not None]

    def holding(codes: Sequence[str]) -> list[str]:
        return [code for code in codes if contains_any(snapshot, terms_of_words(snapshot, content, code))]

    if searched.is_unclear and len(found := holding(snapshot.languages)) > 1:
        return f"searched in {_listed(found)}, since the language of the query is unclear; language='{found[0]}' searches one of them"
    if found := holding(searched.fallback):
        return f"searched in {language_name(chosen)}; language='all' searches {_listed(found)} too"
    return ""


def _listed(codes: Sequence[str]) -> str:
    *first, last = codes
    return f"{', '.join(first)} and {last}" if first else last


def terms_of_words(snapshot: Snapshot, query_words: Sequence[str], language: str) -> list[str]:
    """The terms of words in one language, without stop words."""
    return [term for word in query_words for term in terms_of(word, snapshot.analyzer, [language])]


def language_name(code: str) -> str:
    """The English name of a language that has a stemmer; the code of any other language.

    >>> language_name("de"), language_name("ja")
    ('German', 'ja')
    """
    return SNOWBALL[code].capitalize() if code in SNOWBALL else code


def with_unstated(snapshot: Snapshot, code: str) -> tuple[str, ...]:
    """A language, and the languages of text in no known language that the index has."""
    return (code, *(other for other in UNSTATED if other in snapshot.languages and other != code))
