"""A query as weighted terms."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from perikope.errors import UsageError
from perikope.text import Analyzer, language_code, words


@dataclass(frozen=True, slots=True)
class Query:
    """Distinct terms in order of first appearance, each with a weight (how often it was written)."""

    text: str
    language: str
    terms: tuple[str, ...]
    weights: tuple[float, ...]


def parse_query(text: str, analyzer: Analyzer, language: str) -> Query:
    """Analyse a text as the index analysed its documents.

    >>> query = parse_query("The pumps of a pump station", Analyzer(), "en")
    >>> query.terms, query.weights
    (('en:pump', 'en:station'), (2.0, 1.0))
    """
    language = language_code(language)
    found = words(text)
    if not found:
        raise UsageError("the query is empty; give at least one word")
    terms = [analyzer.term(word, language) for word in found]
    counts = Counter(f"{language}:{term}" for term in terms if term is not None)
    if not counts:
        raise UsageError(f"the query {text!r} holds only stop words; add a word that says what it is about")
    return Query(text, language, tuple(counts), tuple(float(count) for count in counts.values()))
