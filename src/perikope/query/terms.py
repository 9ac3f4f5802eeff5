"""A query as weighted terms and, if it is Boolean, as a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perikope.core.errors import UsageError
from perikope.core.scanner import excerpt
from perikope.query.boolean import QueryTree, Word, all_of, words_of
from perikope.query.group_terms import SEPARATOR, single_terms, terms_in, without_overlap
from perikope.query.syntax import MAX_TERMS, Expand, parse_tree, terms_or_fallback
from perikope.query.variants import NONE, Variants, one_word, with_synonyms
from perikope.text.analysis import Analyzer, language_code, words

MAX_TEXT = 10_000_000
"""Maximum number of characters of a query of plain words. Analysing so many takes about as long as a slow search."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: distinct terms with weights and, if the query is Boolean, a tree."""

    text: str
    """The query as written."""
    terms: tuple[str, ...]
    """The distinct terms (`en:pump`) and group terms, in order of first appearance. Terms under NOT are included."""
    weights: tuple[float, ...]
    """The weight of each term: its frequency in a query of plain words, 1 in a Boolean query, or set by expansion."""
    tree: QueryTree | None = None
    """The tree of a Boolean query; None for plain words."""
    words: tuple[QueryTree, ...] = ()
    """For plain words: the words of the query, each with its terms in all searched languages.

    A word with synonyms of several words is a tree.
    """
    source: str = ""
    """The text that the words were taken from, such as the claims of a patent; empty if `text` is that text."""
    languages: tuple[str, ...] = ()
    """The searched languages, if the collection is counted by language: results are passages in these languages.

    Empty if all languages are searched as one collection, or if the index has one language.
    """

    def label(self, term: str) -> str:
        """A term as explanations show it: in quotation marks, with its language if there are several.

        If it is not a word of the query, the reason follows.

        >>> Query("pump", ("en:pump",), (1.0,)).label("en:pump")
        "'pump'"
        >>> Query("pump", ("en:pump", "de:pump"), (1.0, 1.0)).label("de:pump")
        "'pump' (de)"
        """
        return self.labels([term])[0]

    def labels(self, terms: Sequence[str]) -> list[str]:
        """Several terms as explanations show them; see `label`."""
        # The reasons and languages are found once, since a query may have thousands of terms.
        reasons = self.reasons
        several = bool(self.languages) or len({other.partition(":")[0] for other in self.terms if ":" in other}) > 1

        def labelled(single: str) -> str:
            language, _, form = single.partition(":")
            more = [*([language] if several else []), *([reasons[single]] if single in reasons else [])]
            return repr(form) + (f" ({'; '.join(more)})" if more else "")

        return [" or ".join(map(labelled, terms_in(term))) for term in terms]

    def written(self, term: str) -> str:
        """The word of the query that a term stands for, as it is written; without such a word, the term itself.

        >>> Query("pump", ("en:pump",), (1.0,)).written("en:pump")
        'pump'
        """
        singles = terms_in(term)
        known = (word.written for word, _ in self.given_words() if word.written and not set(singles).isdisjoint(word.terms))
        return next(known, singles[0].partition(":")[2] or singles[0])

    @property
    def reasons(self) -> dict[str, str]:
        """The terms that stand for words of the query as synonyms or near terms, each with the reason."""
        given = [word for word, _ in self.given_words()]
        reasons = {term: reason for word in reversed(given) for term, reason in word.reasons}
        own = {term for word in given for term in word.terms} - {term for word in given for term, _ in word.reasons}
        return {term: reason for term, reason in reasons.items() if term not in own}

    def given_words(self) -> Iterator[tuple[Word, bool]]:
        """Yield the words of the query, each with a flag: whether it is under NOT. A query of a patent has no words."""
        for tree in (self.tree,) if self.tree is not None else self.words:
            yield from words_of(tree)

    @property
    def ungrouped(self) -> Query:
        """The query with the single terms of its group terms in their place."""
        if not any(SEPARATOR in term for term in self.terms):
            return self
        terms = single_terms(self.terms)
        return replace(self, terms=terms, weights=(1.0,) * len(terms))

    @property
    def boolean(self) -> QueryTree:
        """The query as a tree: the tree of a Boolean query, or the conjunction of plain words."""
        return self.tree or all_of(self.words or tuple(Word((term,)) for term in self.terms))

    @property
    def plain_text(self) -> str:
        """The query for models that read text: `source`, or the words without operators and without words under NOT."""
        if self.source:
            return self.source
        if self.tree is None:
            return self.text
        return " ".join(word.written for word, negated in words_of(self.tree) if not negated and word.written)

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
        if not negated:
            return self
        return self._with({term: weight for term, weight in zip(self.terms, self.weights, strict=True) if term not in negated})

    def expanded(self, expansion: Query) -> Query:
        """The query with the terms and weights of `expansion`, and with the negated terms of this query.

        `expansion` is an expanded form of `positive`.
        """
        negated = self.negated
        negated_terms = {term: weight for term, weight in zip(self.terms, self.weights, strict=True) if term in negated}
        weights = without_overlap(dict(zip(expansion.terms, expansion.weights, strict=True)), add=True)
        return self._with({**weights, **negated_terms})

    def _with(self, weights: dict[str, float]) -> Query:
        return replace(self, terms=tuple(weights), weights=tuple(weights.values()))


def parse_query(text: str, analyzer: Analyzer, languages: Sequence[str], variants: Variants = NONE) -> Query:
    """Analyse a text as the index analysed its documents, in one or several languages.

    Each word becomes one term per language. Stop words of the first language are left out in all languages. `variants`
    finds near terms and synonyms. Raises `UsageError` if no term is left, or if there are more than `MAX_TERMS`.

    >>> query = parse_query("The pumps of a pump station", Analyzer(), ["en"])
    >>> query.terms, query.weights
    (('en:pump', 'en:station'), (2.0, 1.0))
    >>> parse_query("the pumps", Analyzer(), ["en", "fr"]).terms
    ('en:pump', 'fr:pump')
    """
    if len(text) > MAX_TEXT:
        raise UsageError(f"the query has {len(text):,} characters; shorten it to at most {MAX_TEXT:,}")
    query_words = words(text)
    if not query_words:
        raise UsageError("the query is empty; give at least one word")
    codes = [language_code(language) for language in languages]
    query_words = [word for word in query_words if analyzer.term(word, codes[0]) is not None]
    terms = ((code, analyzer.term(word, code)) for code in codes for word in query_words)
    counts = Counter(f"{code}:{term}" for code, term in terms if term is not None)
    terms_of_word = {word: terms_or_fallback(word, analyzer, codes, variants) for word in dict.fromkeys(query_words)}
    if variants.fallback:
        counts.update(term for word in query_words for term in terms_of_word[word] if term.partition(":")[0] in variants.fallback)
    if len(counts) > MAX_TERMS:
        raise UsageError(f"the query has {len(counts):,} distinct terms; shorten it to at most {MAX_TERMS:,}")
    if not counts:
        raise UsageError(f"the query {excerpt(text)} contains only stop words; add another word")
    distinct = dict.fromkeys(Word(tuple(found), word) for word, found in terms_of_word.items())
    query = Query(text, tuple(counts), tuple(float(count) for count in counts.values()), words=tuple(distinct))
    return _with_variants(query, analyzer, codes, variants) if variants else query


def _with_variants(query: Query, analyzer: Analyzer, languages: Sequence[str], variants: Variants) -> Query:
    """A query of plain words, with synonyms, and with near terms for words that no document contains."""

    def own_terms(word: str) -> list[str] | None:
        return None if analyzer.term(word, languages[0]) is None else terms_or_fallback(word, analyzer, languages, variants)

    written = words(query.text)
    matches = {match.first: match for match in variants.synonyms.matches(written)} if variants.synonyms is not None else {}
    trees: list[QueryTree] = []
    at = 0
    while at < len(written):
        match = matches.get(at)
        if match is not None:
            tree = with_synonyms(written[at : match.end], match, own_terms, adjacent=False)
        else:
            terms = own_terms(written[at])
            tree = None if terms is None else one_word(terms, variants.stand_ins(written[at], terms), written[at])
        trees += [] if tree is None else [tree]
        at = match.end if match is not None else at + 1
    scored = Counter[str]()
    for tree in trees:
        for word, _ in words_of(tree):
            scored.update(dict(word.scored) if word.scored else dict.fromkeys(word.terms, 1.0))
    if not scored:
        raise UsageError(f"the synonyms leave only stop words of the query {excerpt(query.text)}; add another word")
    if len(single_terms(scored)) > MAX_TERMS:
        raise UsageError(f"the query has more than {MAX_TERMS} terms with its synonyms; shorten the query, or leave out synonyms")
    weights = without_overlap(scored, add=True)
    return replace(query._with(weights), words=tuple(dict.fromkeys(trees)))


def parse_boolean(text: str, analyzer: Analyzer, languages: Sequence[str], expand: Expand, variants: Variants = NONE) -> Query:
    """Parse a Boolean query in the notation of `perikope.query.syntax`; `expand` returns the terms of a wildcard.

    `variants` finds near terms and synonyms. Raises `UsageError` if all words are under NOT.

    >>> query = parse_boolean("pumps -valve", Analyzer(), ["en"], lambda prefix, most: (0, []))
    >>> query.terms, query.positive.terms
    (('en:pump', 'en:valv'), ('en:pump',))
    """
    tree = parse_tree(text, analyzer, languages, expand, variants)
    all_words = list(words_of(tree))
    if all(negated for _, negated in all_words):
        raise UsageError(f"the query {excerpt(text)} contains only words under NOT; add a word that must occur")
    weights: dict[str, float] = {}
    for word, negated in all_words:
        for term, weight in (not negated and word.scored) or dict.fromkeys(word.terms, 1.0).items():
            weights[term] = max(weight, weights.get(term, 0.0))
    weights = without_overlap(weights, add=False)
    return Query(text, tuple(weights), tuple(weights.values()), tree)
