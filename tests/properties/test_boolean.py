"""Boolean queries: a written tree parses back, and its matches are those of a plain evaluation by the definitions."""

import itertools
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.matches import join
from perikope.browse.satisfaction import satisfied
from perikope.core.errors import UsageError
from perikope.fetch import Candidates
from perikope.query.boolean import And, Near, Not, Or, Phrase, Same, Word, words_of
from perikope.query.syntax import automatic, parse_tree
from perikope.query.terms import Query, parse_boolean
from perikope.text.analysis import Analyzer, words
from tests.support.collections import collections, index_of, plain_document
from tests.support.examples import examples
from tests.support.plain import PlainCollection

ANALYZER = Analyzer()
TERMS = ["en:pump", "en:rotor", "en:magnet", "en:seal", "fr:pump", "en:absent"]
cuts = st.lists(st.integers(0, 5), max_size=1)
distances = st.integers(1, 6)


def all_words(terms):
    return st.lists(terms, max_size=3, unique=True).map(lambda found: Word(tuple(found)))


def phrases(words):
    middle = st.lists(st.one_of(words, words, st.none()), max_size=2)
    return st.tuples(words, middle, words).map(lambda found: Phrase((found[0], *found[1], found[2])))


def several(kind, trees):
    return st.lists(trees, min_size=2, max_size=3).map(lambda found: kind(tuple(found)))


def places(words):
    """Trees that can stand inside NEAR."""
    return st.recursive(
        words | phrases(words),
        lambda trees: (
            st.builds(Near, trees, trees, distances, st.booleans()) | several(Or, trees) | several(And, trees) | several(Same, trees)
        ),
        max_leaves=5,
    )


def trees(words):
    return st.recursive(
        words | places(words),
        lambda trees: several(Or, trees) | several(And, trees) | several(Same, trees) | st.builds(Not, trees),
        max_leaves=6,
    )


some_words = st.lists(st.sampled_from(TERMS), min_size=1, max_size=2, unique=True).map(lambda found: Word(tuple(found)))


@given(trees(all_words(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).map("en:{}".format))))
def test_a_tree_is_written_so_that_it_parses_back(tree):
    assert parse_tree(str(tree), ANALYZER, ["en"], lambda prefix, most: (0, [])) == tree


SYMBOLS = [
    "a1",
    "the",
    "AND",
    "OR",
    "NOT",
    "SAME",
    "NEAR/2",
    "ADJ/1",
    "NEAR",
    "(",
    ")",
    '"',
    "“",
    "*",
    "+",
    "-",
    "{",
    "}",
    "|",
    "\\",
    " ",
    "é",
]


@given(st.lists(st.sampled_from(SYMBOLS) | st.characters(), max_size=14), st.sampled_from(["", " "]))
def test_whatever_is_written_is_a_tree_or_a_mistake(symbols, between):
    text = between.join(symbols)
    try:
        tree = parse_tree(text, ANALYZER, ["en"], lambda prefix, most: (1, [f"{prefix}x"]))
    except UsageError:
        pass
    else:
        assert parse_tree(str(tree), ANALYZER, ["en"], lambda prefix, most: (0, [])) == tree
    try:
        written = automatic(text)
    except UsageError:
        return
    parse_tree(written, Analyzer(stopwords="none"), ["en"], lambda prefix, most: (0, []))


@given(st.lists(st.tuples(st.sampled_from(["", "+", "-"]), st.booleans(), st.lists(st.sampled_from(["a1", "b2", "OR", "c3"]), min_size=1))))
def test_automatic_queries_are_conjunctions(keywords):
    """Whatever the keywords, nothing but AND, NOT, words and phrases comes out, in their order."""
    keywords = [*keywords, ("", False, ["last"])]
    text = " ".join(sign + (f'"{" ".join(own)}"' if quoted else own[0]) for sign, quoted, own in keywords)
    analyzer = Analyzer(stemmer="none", stopwords="none")
    tree = parse_tree(automatic(text), analyzer, ["en"], lambda prefix, most: (0, []))
    parts = tree.children if isinstance(tree, And) else (tree,)
    expected = []
    for sign, quoted, own in keywords:
        found = tuple(Word((f"en:{word.lower()}",)) for word in (own if quoted else own[:1]))
        part = Phrase(found) if len(found) > 1 else found[0]
        expected.append(Not(part) if sign == "-" else part)
    assert list(parts) == expected


def shortest(stretches):
    found = set(stretches)
    return {(s, e) for s, e in found if not any((a, b) != (s, e) and s <= a and b <= e for a, b in found)}


class Text:
    """A sequence of terms (None for a stop word) with passages, ranges of places in it."""

    def __init__(self, terms, passages):
        self.terms, self.passages = terms, passages

    def stretches(self, tree):
        """Every choice of operands, then the shortest."""
        match tree:
            case Word(terms):
                return {(i, i) for i, term in enumerate(self.terms) if term in terms}
            case Phrase(words):
                size = len(words)
                return {(i, i + size - 1) for i in range(len(self.terms) - size + 1) if self.fits(words, self.terms[i : i + size])}
            case Near():
                return shortest((min(i[0], j[0]), max(i[1], j[1])) for i, j in self.pairs(tree))
            case Or(children):
                return shortest(stretch for child in children for stretch in self.stretches(child))
            case And(children):
                chosen = itertools.product(*map(self.stretches, children))
                return shortest((min(s for s, _ in each), max(e for _, e in each)) for each in chosen)
            case Same(children):
                return {(s, e) for s, e in self.stretches(And(children)) if any(a <= s and e < b for a, b in self.passages)}

    def fits(self, words, terms):
        return all(word is None or term in word.terms for word, term in zip(words, terms, strict=True))

    def pairs(self, tree):
        chosen = list(itertools.product(self.stretches(tree.left), self.stretches(tree.right)))
        behind = [(i, j) for i, j in chosen if 0 < j[0] - i[1] <= tree.distance]
        return behind if tree.ordered else behind + [(i, j) for i, j in chosen if 0 < i[0] - j[1] <= tree.distance]

    def holds(self, tree):
        """Whether the tree holds in the whole text, as if it were one passage."""
        match tree:
            case And(children) | Same(children):
                return all(self.holds(child) for child in children)
            case Or(children):
                return any(self.holds(child) for child in children)
            case Not(child):
                return not self.holds(child)
        return bool(self.stretches(tree))

    def passage(self, first, end):
        return Text(self.terms[first:end], [(0, end - first)])

    def inside(self, tree):
        return [self.passage(*passage).holds(tree) for passage in self.passages]

    def around(self, tree):
        holds, marked = self.match(positive(tree))
        return [holds and any(a <= place < b for place in marked) for a, b in self.passages]

    def match(self, tree):
        """Whether the tree holds in the document, and the places of the words that make it hold."""
        match tree:
            case Not(child):
                return not self.match(child)[0], set()
            case And(children):
                found = [self.match(child) for child in children]
                return all(holds for holds, _ in found), set().union(*(marked for _, marked in found))
            case Or(children):
                found = [self.match(child) for child in children]
                return any(holds for holds, _ in found), set().union(*(marked for holds, marked in found if holds))
            case Same():
                own = [passage for passage, holds in zip(self.passages, self.inside(tree), strict=True) if holds]
                return bool(own), {place for passage in own for place in range(*passage)}
        if isinstance(tree, Near):
            matches = [(min(i[0], j[0]), max(i[1], j[1])) for i, j in self.pairs(tree)]
        else:
            matches = list(self.stretches(tree))
        terms = {term for word, _ in words_of(tree) for term in word.terms}
        return bool(matches), {x for s, e in matches for x in range(s, e + 1) if self.terms[x] in terms}


def positive(tree, negated=False):
    """The same tree with NOT right above what is no AND, OR or NOT."""
    match tree:
        case Not(child):
            return positive(child, not negated)
        case And(children) | Or(children):
            kind = And if isinstance(tree, And) ^ negated else Or
            return kind(tuple(positive(child, negated) for child in children))
    return Not(tree) if negated else tree


def query_of(tree):
    terms = tuple(dict.fromkeys(term for word, _ in words_of(tree) for term in word.terms))
    return Query(str(tree), terms, (1.0,) * len(terms), tree)


def matches_of(index, query):
    """The matches in all documents."""
    snapshot = index._snapshot
    return join(snapshot, query, Candidates(np.arange(snapshot.numbers), np.zeros(snapshot.numbers)))


def texts_of(documents):
    for d in PlainCollection(documents, ANALYZER).documents:
        ranges = []
        for span in d.passages:
            start, end = d.document.spans.start[span], d.document.spans.end[span]
            ranges.append((sum(at < start for at in d.starts), sum(at < end for at in d.starts)))
        yield Text(d.terms, ranges)


@examples(300)
@given(collections(max_size=3), cuts, trees(some_words))
def test_passages_satisfy_what_plain_evaluation_says(documents, cuts, tree):
    matches = matches_of(index_of(documents, cuts), query_of(tree))
    texts = list(texts_of(documents))
    assert satisfied(matches).tolist() == [flag for text in texts for flag in text.inside(tree)]
    assert satisfied(matches, across=True).tolist() == [flag for text in texts for flag in text.around(tree)]


few_words = st.sampled_from(["en:a1", "en:b1", "en:c1"]).map(lambda term: Word((term,)))
short_passages = st.lists(
    st.lists(st.sampled_from(["a1", "b1", "c1", "the"]), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=6
)


@examples(400)
@given(short_passages, st.builds(Near, places(few_words), places(few_words), distances, st.booleans()), few_words)
def test_proximity_in_crowded_texts(passages, near, other):
    """Few words, some of them excluded, so that matches overlap, have several partners and cross short passages."""
    document = plain_document("d1", "", *passages)
    [text] = texts_of([document])
    for tree in (near, Or((near, And((other, Word(("en:absent",))))))):
        matches = matches_of(index_of([document]), query_of(tree))
        assert satisfied(matches).tolist() == text.inside(tree)
        assert satisfied(matches, across=True).tolist() == text.around(tree)


@given(collections(max_size=3), places(some_words))
def test_what_holds_inside_holds_across_where_nothing_is_negated(documents, tree):
    matches = matches_of(index_of(documents), query_of(tree))
    assert not np.any(satisfied(matches) & ~satisfied(matches, across=True))


def columns(value):
    for field in fields(value):
        own = getattr(value, field.name)
        if isinstance(own, np.ndarray):
            yield field.name, own.dtype, own.tolist()
        elif is_dataclass(own) and field.name not in ("query", "all_terms"):
            yield from ((f"{field.name}.{name}", dtype, column) for name, dtype, column in columns(own))


@given(collections(max_size=3), cuts, trees(some_words))
def test_models_see_only_what_is_looked_for(documents, cuts, tree):
    """Matches are those of a search for the positive terms alone; the others are there for who asks."""
    index, query = index_of(documents, cuts), query_of(tree)
    matches = matches_of(index, query)
    alone = matches_of(index, Query("", query.positive.terms, query.positive.weights))
    assert list(columns(matches)) == list(columns(alone))
    assert matches.characters().position_of_occurrence.tolist() == alone.characters().position_of_occurrence.tolist()
    everything = matches_of(index, Query("", query.terms, query.weights))
    assert list(columns(matches.with_negated())) == list(columns(everything))


QUERIES = [
    "pump rotor",
    "pump -rotor",
    '"pump rotor" OR seal',
    "(pump OR seal) NEAR/2 (rotor OR magnet)",
    "pump* SAME valve",
    "pump ADJ/3 shaft",
]


@examples(40)
@given(
    collections(),
    cuts,
    st.sampled_from(QUERIES),
    st.sampled_from(["bm25", "psg_doc", "qsf_v_title", "plm"]),
    st.booleans(),
    st.sampled_from([1000, "all"]),
)
def test_only_passages_that_match_are_found_and_nothing_is_weighed_anew(documents, cuts, query, model, across, among):
    index = index_of(documents, cuts)
    options = {"model": model, "syntax": "boolean", "k": 1000, "documents": among}
    free = index.search(query, **options)
    held = satisfied(free.matches, across=across)
    rows = zip(free.ranking.rows.tolist(), free.names(), strict=True)
    strict = index.search(query, must_match=True, across_passages=across, **options).names()
    assert strict == [named for row, named in rows if held[row]]
    best = index.search(query, must_match=True, across_passages=across, **options | {"k": 2}).names()
    assert best == strict[:2]


@given(collections(max_size=2), st.lists(st.sampled_from(["pump", "rotor", "the", "été", "zzz"]), min_size=1).map(" ".join))
def test_automatic_keywords_fetch_and_weigh_as_words_do(documents, text):
    index = index_of(documents)
    distinct = " ".join(dict.fromkeys(words(text)))
    try:
        terms = index.check_query(distinct).terms
    except UsageError:  # only stop words, such as "été" alone, which is one of French
        with pytest.raises(UsageError, match="only stop words"):
            index.check_query(text, syntax="automatic")
        return
    assert set(index.check_query(text, syntax="automatic").positive.terms) == set(terms)
    plain, boolean = (dict(index.search(distinct, syntax=syntax, k=1000).names()) for syntax in ("words", "automatic"))
    assert plain.keys() == boolean.keys()
    assert np.allclose([plain[name] for name in plain], [boolean[name] for name in plain])


@given(collections(max_size=4), cuts, st.sampled_from(["p", "ma", "pump", "pumps", "été", "z", ""]))
def test_wildcards_stand_for_what_begins_so(documents, cuts, prefix):
    index = index_of(documents, cuts)
    found = sorted(term for term in PlainCollection(documents, ANALYZER).occurrences if term.startswith(f"en:{prefix}"))
    assert index._snapshot.terms_with_prefix(f"en:{prefix}", 500) == (len(found), found)
    if len(found) > 1:
        count, names = index._snapshot.terms_with_prefix(f"en:{prefix}", 1)
        assert (1 < count <= len(found), names) == (True, [])
    if prefix:
        query = parse_boolean(f"{prefix}*", ANALYZER, ["en"], index._snapshot.terms_with_prefix)
        assert set(found) <= set(query.terms) <= {*found, f"en:{ANALYZER.term(prefix, 'en')}"}
