import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.models import parse_model
from perikope.browse.signals import fact
from perikope.evaluation.depth import Depth
from perikope.evaluation.figures import RECALL_POINTS, precision_curve, quick
from perikope.evaluation.measures import MEASURES, parse_measure
from perikope.evaluation.views import Looking
from perikope.query.topic import Topic
from perikope.search.naming import names_of
from perikope.search.options import SearchOptions
from tests.support.collections import collections, index_of

MEASURED = ("nDCG@3", "nDCG", "AP", "AP(rel=2)@4", "RR", "RR@2", "P@3", "Recall@3", "Recall", "Success@2", "MAP(D)", "APD(rel=2)")
LAYOUTS = ({}, {"group_by_document": "score"}, {"group_by_document": True}, {"no_overlap": True}, {"part": "claims"})


@given(st.data(), collections())
def test_a_measure_by_places_is_the_measure_by_names(data, documents):
    index = index_of(documents)
    options = {**data.draw(st.sampled_from(LAYOUTS)), "documents": data.draw(st.integers(1, 6))}
    if options.get("part") and not any("claims" in document.labels for document in documents):
        options.pop("part")
    names = [f"d{i}#@{j}" for i in range(6) for j in range(1, 9)]
    judged = data.draw(st.dictionaries(st.sampled_from([*names, "d1"]), st.integers(-1, 3), max_size=8))
    looking = Looking(index.snapshot, {"q": judged})
    view = looking.view(looking.prepare(Topic("q", "pump rotor valve"), SearchOptions.of(options)))
    # Few values, so that many are equal.
    values = data.draw(st.lists(st.integers(-1, 2), min_size=view.matches.passages, max_size=view.matches.passages))
    score, model = (
        fact("score", np.array(values, np.float64)),
        data.draw(st.sampled_from([None, *map(parse_model, ("bm25", "prox", "qsf_v"))])),
    )
    depth = Depth(data.draw(st.integers(1, 20)), data.draw(st.sampled_from([0, 0, 2, 4])))
    ranked = view.names(view.rank(score, depth, model))
    assert ranked == names_of(index.snapshot, view.matches, view.rank(score, depth, model).rows)
    places = view.judged_ranks(score, depth, model)
    for name in MEASURED:
        measure = parse_measure(name)
        by_places = quick(measure, view.judged)
        assert by_places is not None
        assert by_places(places) == pytest.approx(measure(ranked, judged), abs=1e-12), name


def test_other_measures_are_not_guessed():
    from perikope.evaluation.figures import _QUICK

    assert set(_QUICK) <= set(MEASURES.names())
    for name in ("PRES", "PD", "Judged@10"):
        assert quick(parse_measure(name), None) is None


@given(st.lists(st.integers(1, 60), unique=True, max_size=8).map(sorted), st.integers(0, 5))
def test_the_curve_is_the_highest_precision_from_each_recall_on(ranks, missed):
    relevant = len(ranks) + missed
    wanted = [
        max((found / rank for found, rank in enumerate(ranks, 1) if 100 * found >= point * relevant), default=0.0)
        for point in range(RECALL_POINTS)
    ]
    assert precision_curve(ranks, relevant) == wanted
