"""A query as weighted terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perikope.errors import UsageError
from perikope.query.boolean import Tree, Word, all_of, words_of
from perikope.text import Analyzer, language_code, words


@dataclass(frozen=True, slots=True)
class Query:
    """Distinct terms in order of first appearance, each with a weight (how often it was written), and the tree of a Boolean query."""

    text: str
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    tree: Tree | None = None
    """None for plain words. The terms of a tree are all in `terms`, those under NOT too, with weight 1."""
    words: tuple[Word, ...] = ()
    """Of plain words: the terms that are one word, in several languages."""

    @property
    def boolean(self) -> Tree:
        """The query as a tree: as it was written, or all of its words."""
        return self.tree or all_of(self.words or tuple(Word((term,)) for term in self.terms))

    @property
    def positive(self) -> Query:
        """What fetches and weighs: the terms that do not stand under NOT alone."""
        if self.tree is None:
            return self
        found = list(words_of(self.tree))
        wanted = {term for word, negated in found if not negated for term in word.terms}
        unwanted = {term for word, negated in found if negated for term in word.terms} - wanted
        if not unwanted:
            return self
        kept = [(term, weight) for term, weight in zip(self.terms, self.weights, strict=True) if term not in unwanted]
        return replace(self, terms=tuple(term for term, _ in kept), weights=tuple(weight for _, weight in kept))


def parse_query(text: str, analyzer: Analyzer, languages: Sequence[str]) -> Query:
    """Analyse a text as the index analysed its documents, in one or several languages.

    A word becomes a term in each language; a stop word of the first one, the query's own, is none in any.

    >>> query = parse_query("The pumps of a pump station", Analyzer(), ["en"])
    >>> query.terms, query.weights
    (('en:pump', 'en:station'), (2.0, 1.0))
    >>> parse_query("the pumps", Analyzer(), ["en", "fr"]).terms
    ('en:pump', 'fr:pump')
    """
    found = words(text)
    if not found:
        raise UsageError("the query is empty; give at least one word")
    codes = [language_code(language) for language in languages]
    found = [word for word in found if analyzer.term(word, codes[0]) is not None]
    terms = ((code, analyzer.term(word, code)) for code in codes for word in found)
    counts = Counter(f"{code}:{term}" for code, term in terms if term is not None)
    if not counts:
        raise UsageError(f"the query {text!r} holds only stop words; add a word that says what it is about")
    return Query(text, tuple(counts), tuple(float(count) for count in counts.values()))
