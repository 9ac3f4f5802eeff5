"""A shortlist: its documents keep their features, its passages come first, and the others follow by coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.matches import join
from perikope.browse.models import parse_model
from perikope.browse.models.combination import KIND, LinearCombination
from perikope.browse.models.features import FEATURES, features, normalized_features
from perikope.browse.models.shortlist import Shortlist
from perikope.browse.restricting import restricted
from perikope.fetch import Candidates
from perikope.index.saved_tables import write_table
from perikope.query.terms import parse_boolean, parse_query
from perikope.text.analysis import Analyzer
from tests.properties.test_models import queries
from tests.support.collections import collections, index_of
from tests.support.examples import examples

ANALYZER = Analyzer()
RELATIVE = ("left", "right", "plm", "plm_near")
"""Features that are divided by a sum over all candidates. Restricting the candidates multiplies them by a number."""


def joined(index, query, numbers):
    return join(index.snapshot, query, Candidates(np.array(numbers, np.int64), np.arange(1.0, len(numbers) + 1)))


def query_of(text, kind):
    if kind == "plain":
        return parse_query(text, ANALYZER, ["en"])
    return parse_boolean("pump magnet NOT rotor", ANALYZER, ["en"], lambda prefix, most: (0, []))


@examples(40)
@given(collections(min_size=2), queries, st.sampled_from(["plain", "negated"]), st.data(), st.lists(st.integers(0, 5), max_size=1))
def test_restricted_matches_are_the_matches_of_these_documents(documents, text, kind, data, cuts):
    index = index_of(documents, cuts)
    numbers = list(range(len(index)))
    kept = sorted(data.draw(st.sets(st.sampled_from(numbers), min_size=1)))
    query = query_of(text, kind)
    every, alone = joined(index, query, numbers), join(index.snapshot, query, Candidates(np.array(kept), np.array(kept) + 1.0))
    few = restricted(every, np.array(kept))
    for name in ("documents", "passages"):
        assert getattr(few, name) == getattr(alone, name)
    for name in every.__dataclass_fields__:
        one, other = getattr(few, name), getattr(alone, name)
        if name == "part_of_passage":  # parts are numbered in the order in which they are met
            assert [few.parts[part] for part in one.tolist()] == [alone.parts[part] for part in other.tolist()]
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=name)
            assert one.dtype == other.dtype, name
            assert not one.flags.writeable
    for name in ("in_documents", "in_passages", "in_titles"):
        for column in ("first_entry", "term", "count"):
            np.testing.assert_array_equal(getattr(getattr(few, name), column), getattr(getattr(alone, name), column))
    for column in ("position_of_occurrence", "first_of_passage", "last_of_passage"):
        np.testing.assert_array_equal(getattr(few.characters(), column), getattr(alone.characters(), column))
    np.testing.assert_array_equal(few.structure().first_span_of_document, alone.structure().first_span_of_document)
    np.testing.assert_array_equal(few.id_rank_of_document(), alone.id_rank_of_document())
    for model in ("coverage", "qsf_v_title", "prox", "plm"):
        assert parse_model(model).score(few).values.tolist() == parse_model(model).score(alone).values.tolist()


@examples(25)
@given(collections(min_size=2), queries, st.data())
def test_a_document_has_the_same_features_on_every_shortlist(documents, text, data):
    index = index_of(documents)
    matches = joined(index, query_of(text, "plain"), range(len(index)))
    kept = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(index))), min_size=1))))
    rows = np.flatnonzero(np.isin(matches.document_of_passage, kept))
    few = features(restricted(matches, kept))
    for name, column in features(matches).items():
        expected = column.values[rows]
        if name in RELATIVE:
            # The same up to a factor, which every normalisation removes.
            assert few[name].values * expected.sum() == pytest.approx(expected * few[name].values.sum(), abs=1e-12)
        else:
            assert few[name].values.tolist() == expected.tolist(), name


@examples(30)
@given(
    collections(min_size=3, max_size=6), queries, st.integers(1, 3), st.integers(1, 6), st.sampled_from(["zscore", "minmax"]),
    st.lists(st.integers(0, 5), max_size=1),
)  # fmt: skip
def test_learned_scores_the_shortlist_and_ranks_the_others_by_coverage(documents, text, most, passages, normalize, cuts):
    index = index_of(documents, cuts)
    names = ("titled_bm25", "plm_near", "length", "document_bm25", "position")
    weights = (0.5, 0.25, -0.3, 0.0, 0.1)
    write_table(index.folder, "mine", KIND, LinearCombination(names, normalize, weights, {}, Shortlist(most, passages)).values())
    results = index.search(text, model='learned(name="mine")', k=1000, language="all")
    matches = results.matches
    if not matches.passages:
        return
    coverage = parse_model("coverage").score(matches).values
    document = matches.document_of_passage
    rank = matches.id_rank_of_document()
    in_order = sorted(set(document.tolist()), key=lambda d: (-coverage[document == d].max(), rank[d]))
    listed = set()
    while in_order and (len(listed) < most or np.isin(document, list(listed)).sum() < passages):
        listed.add(in_order.pop(0))
    rows = np.flatnonzero(np.isin(document, list(listed)))
    others = np.setdiff1d(np.arange(matches.passages), rows)
    columns = normalized_features(restricted(matches, np.array(sorted(listed))), names, normalize)
    expected = sum(weight * columns[name].values for name, weight in zip(names, weights, strict=True))
    assert results.score.values[rows] == pytest.approx(expected, abs=1e-9)
    if others.size:
        assert results.score.values[others].max() < results.score.values[rows].min()
        assert np.diff(results.score.values[others]) == pytest.approx(np.diff(coverage[others]), abs=1e-9)
        assert results.signals()["titled_bm25"][np.isin(results.ranking.rows, others)].tolist() == [0.0] * others.size
    for number in range(len(results)):
        node = results.explain(number)
        assert node.value == results.ranking.scores[number]
        assert node.recomputed() == pytest.approx(node.value, abs=1e-9)
        assert len(node.children) == (1 if results.ranking.rows[number] in others else 4)


@examples(15)
@given(collections(min_size=2), queries, st.lists(st.integers(0, 5), min_size=1, max_size=2))
def test_how_an_index_came_to_be_changes_no_bit(documents, query, places):
    found = []
    for index in (index_of(documents), index_of(documents[::-1], places)):
        combination = LinearCombination(tuple(FEATURES), "zscore", (0.3,) * len(FEATURES), {}, Shortlist(1, 2))
        write_table(index.folder, "mine", KIND, combination.values())
        found.append(index.search(query, model='learned(name="mine")', k=1000).names())
    assert found[0] == found[1]
