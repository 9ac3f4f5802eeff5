"""Measures that only ir_measures has."""

import math
import pickle
import sys

import ir_measures
import pytest
from hypothesis import given, settings

from perikope.errors import UsageError
from perikope.measures import evaluate, parse_measure
from tests.support import measuring

ASKED = "Rprec Bpref SetP SetF(beta=0.5) IPrec@0.2 infAP"


@settings(max_examples=50, deadline=None)
@given(measuring.judgements, measuring.runs)
def test_they_are_what_ir_measures_says(judgements: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    # pytrec_eval writes outside its memory on negative grades, and on queries without results or judgements.
    without_negative = {qid: {name: max(grade, 0) for name, grade in judged.items()} for qid, judged in judgements.items() if judged}
    not_empty = {qid: scores for qid, scores in run.items() if scores and qid in without_negative}
    theirs = [ir_measures.parse_measure(name) for name in ASKED.split()]
    ours = evaluate(ASKED, judgements, run).per_query
    for metric in ir_measures.iter_calc(theirs, without_negative, not_empty):
        expected = 0.0 if math.isnan(metric.value) else metric.value
        assert ours[str(metric.measure)][metric.query_id] == pytest.approx(expected, abs=1e-9), metric


def test_they_are_measures_like_others() -> None:
    measure = parse_measure("SetF( beta = 0.5 )")
    assert measure == parse_measure("SetF(beta=0.5)")
    assert (str(measure), measure.asked, measure.level) == ("SetF(beta=0.5)", "SetF( beta = 0.5 )", "names")
    assert pickle.loads(pickle.dumps(measure))(["a"], {"a": 1}) == 1
    assert measure([], {"a": 1}) == 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("Rprec(level=2)", "unsupported params found"),
        ("Rprec(rel=two)", "invalid param rel"),
        ("NumRet", "NumRet is no average over queries"),
        ("Rprec(5)", "unknown measure"),
    ],
)
def test_what_ir_measures_does_not_take_is_refused(asked: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_measure(asked)


def test_without_ir_measures_there_are_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    monkeypatch.setitem(sys.modules, "ir_measures.measures", None)
    with pytest.raises(UsageError, match=r"unknown measure 'Rprec'.* valid: AP"):
        parse_measure("Rprec")
