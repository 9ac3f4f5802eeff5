"""A query as weighted terms and, if it is Boolean, as a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perikope.core.errors import UsageError
from perikope.core.scanner import excerpt
from perikope.query.boolean import QueryTree, Word, all_of, words_of
from perikope.query.syntax import Expand, Fallback, parse_tree, terms_of
from perikope.text.analysis import Analyzer, language_code, words


@dataclass(frozen=True, slots=True)
class Query:
    """A query: distinct terms with weights and, if the query is Boolean, a tree."""

    text: str
    """The query as written."""
    terms: tuple[str, ...]
    """The distinct terms (`en:pump`), in order of first appearance. Terms under NOT are included."""
    weights: tuple[float, ...]
    """The weight of each term: its frequency in a query of plain words, 1 in a Boolean query, or set by expansion."""
    tree: QueryTree | None = None
    """The tree of a Boolean query; None for plain words."""
    words: tuple[Word, ...] = ()
    """For plain words: the words of the query, each with its terms in all searched languages."""
    source: str = ""
    """The text that the words were taken from, such as the claims of a patent; empty if `text` is that text."""
    languages: tuple[str, ...] = ()
    """The searched languages, if the collection is counted by language: results are passages in these languages.

    Empty if all languages are searched as one collection, or if the index has one language.
    """

    def label(self, term: str) -> str:
        """A term as explanations show it: in quotation marks, and with its language if there are several.

        >>> Query("pump", ("en:pump",), (1.0,)).label("en:pump")
        "'pump'"
        >>> Query("pump", ("en:pump", "de:pump"), (1.0, 1.0)).label("de:pump")
        "'pump' (de)"
        """
        language, _, form = term.partition(":")
        several = self.languages or len({other.partition(":")[0] for other in self.terms if ":" in other}) > 1
        return f"{form!r} ({language})" if several else repr(form)

    @property
    def boolean(self) -> QueryTree:
        """The query as a tree: the tree of a Boolean query, or the conjunction of plain words."""
        return self.tree or all_of(self.words or tuple(Word((term,)) for term in self.terms))

    @property
    def plain_text(self) -> str:
        """The query for models that read text: `source`, or the words without operators and without words under NOT."""
        if self.source:
            return self.source
        return self.text if self.tree is None else " ".join(word.written for word, negated in words_of(self.tree) if not negated)

    @property
    def negated(self) -> frozenset[str]:
        """The terms that occur under NOT only."""
        all_words = list(words_of(self.tree)) if self.tree else []
        wanted = {term for word, negated in all_words if not negated for term in word.terms}
        return frozenset(term for word, negated in all_words if negated for term in word.terms) - wanted

    @property
    def positive(self) -> Query:
        """The query without the terms that occur only under NOT. The tree does not change."""
        negated = self.negated
        return self._with({term: weight for term, weight in zip(self.terms, self.weights, strict=True) if term not in negated})

    def expanded(self, expansion: Query) -> Query:
        """The query with the terms and weights of `expansion`, and with the negated terms of this query.

        `expansion` is an expanded form of `positive`.
        """
        negated = self.negated
        negated_terms = {term: weight for term, weight in zip(self.terms, self.weights, strict=True) if term in negated}
        return self._with({**dict(zip(expansion.terms, expansion.weights, strict=True)), **negated_terms})

    def _with(self, weights: dict[str, float]) -> Query:
        return replace(self, terms=tuple(weights), weights=tuple(weights.values()))


def parse_query(text: str, analyzer: Analyzer, languages: Sequence[str], fallback: Fallback | None = None) -> Query:
    """Analyse a text as the index analysed its documents, in one or several languages.

    Each word becomes one term per language. Stop words of the first language are left out in all languages. `fallback`
    adds the terms of words that no text in these languages has. Raises `UsageError` if no term is left.

    >>> query = parse_query("The pumps of a pump station", Analyzer(), ["en"])
    >>> query.terms, query.weights
    (('en:pump', 'en:station'), (2.0, 1.0))
    >>> parse_query("the pumps", Analyzer(), ["en", "fr"]).terms
    ('en:pump', 'fr:pump')
    """
    query_words = words(text)
    if not query_words:
        raise UsageError("the query is empty; give at least one word")
    codes = [language_code(language) for language in languages]
    query_words = [word for word in query_words if analyzer.term(word, codes[0]) is not None]
    terms = ((code, analyzer.term(word, code)) for code in codes for word in query_words)
    counts = Counter(f"{code}:{term}" for code, term in terms if term is not None)
    terms_of_word = {word: terms_of(word, analyzer, codes) for word in query_words}
    if fallback is not None:
        added = {word: fallback.terms(word, analyzer, found) for word, found in terms_of_word.items()}
        counts.update(term for word in query_words for term in added[word])
        terms_of_word = {word: [*found, *added[word]] for word, found in terms_of_word.items()}
    if not counts:
        raise UsageError(f"the query {excerpt(text)} contains only stop words; add another word")
    distinct = dict.fromkeys(Word(tuple(found)) for found in terms_of_word.values())
    return Query(text, tuple(counts), tuple(float(count) for count in counts.values()), words=tuple(distinct))


def parse_boolean(text: str, analyzer: Analyzer, languages: Sequence[str], expand: Expand, fallback: Fallback | None = None) -> Query:
    """Parse a Boolean query in the notation of `perikope.query.syntax`; `expand` returns the terms of a wildcard.

    For `fallback` see `parse_query`. Raises `UsageError` if all words are under NOT.

    >>> query = parse_boolean("pumps -valve", Analyzer(), ["en"], lambda prefix, most: (0, []))
    >>> query.terms, query.positive.terms
    (('en:pump', 'en:valv'), ('en:pump',))
    """
    tree = parse_tree(text, analyzer, languages, expand, fallback)
    all_words = list(words_of(tree))
    if all(negated for _, negated in all_words):
        raise UsageError(f"the query {excerpt(text)} contains only words under NOT; add a word that must occur")
    terms = tuple(dict.fromkeys(term for word, _ in all_words for term in word.terms))
    return Query(text, terms, (1.0,) * len(terms), tree)
