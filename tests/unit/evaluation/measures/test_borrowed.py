"""Measures that only ir_measures has."""

import math
import pickle
import shutil
import sys

import ir_measures
import pytest
from hypothesis import given, settings

from perikope.core.errors import UsageError
from perikope.evaluation.measures import evaluate, parse_measure
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
        ("Rprec(level=2)", "unknown parameter of Rprec 'level'; valid: rel"),
        ("Rprec(rel=two)", "Rprec: rel must be a whole number, not two"),
        ("SetF(beta=x)", "SetF: beta must be a number, not x"),
        ("NumRet", "NumRet is not a mean over queries"),
        ("Rprec(5)", r"Rprec\(5\): parameters of Rprec are given as name=value; there are: rel"),
        ("Rprec@5", "Rprec takes no cutoff; ask for Rprec without @"),
        ("ERR", "ERR needs a cutoff, such as ERR@10"),
        ("IPrec", "IPrec needs recall, such as IPrec@0.1"),
        ("BPM", r"BPM needs a cutoff and max_rel, such as BPM\(max_rel=3\)@10"),
        ("BPM(T=1)@20", r"BPM needs max_rel, such as BPM\(max_rel=3\)@20"),
        ("INST(T=1)", r"INST needs max_rel, such as INST\(max_rel=3\)"),
        ("RBP(p=0.5)", r"RBP\(p=0.5\) needs rel, such as RBP\(p=0.5,rel=1\)"),
        ("RBP(rel=1)", r"RBP\(rel=1\) needs cwl_eval, which is not installed: pip install 'ir-measures\[cwl_eval\]'"),
        ("INST(max_rel=3)", r"needs cwl_eval, which is not installed: pip install 'ir-measures\[cwl_eval\]'"),
        ("alpha_nDCG@10", r"alpha_nDCG@10 needs pyndeval, which is not installed: pip install 'ir-measures\[pyndeval\]'"),
    ],
)
def test_what_ir_measures_does_not_take_is_refused(asked: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        parse_measure(asked)
    assert "\n" not in str(error.value)
    assert "object" not in str(error.value)


@pytest.mark.skipif(shutil.which("perl") is None, reason="ir_measures computes ERR by a program in Perl")
def test_the_program_for_err_is_given_what_it_reads() -> None:
    judgements = {"topic a": {"d1#p1": 1, "d2#p1": 4, "d3#p1": -1}, "b": {"d1": 0}}
    run = {"topic a": {"d3#p1": 3.0, "d1#p1": 2.0, "d2#p1": 1.0}}
    found = evaluate("ERR@10", judgements, run).per_query["ERR@10"]
    # The user stops at a result with the chance (2^grade - 1) / 2^4.
    assert found == {"topic a": pytest.approx(1 / 16 / 2 + 15 / 16 * 15 / 16 / 3, abs=1e-5), "b": 0.0}
    with pytest.raises(UsageError, match="ERR@10 takes grades up to 4, but the judgements have 5"):
        evaluate("ERR@10", {"q": {"d1": 5}}, {"q": {"d1": 1.0}})


def test_parameters_that_do_not_go_together_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("min_rel must be\nless than max_rel")

    measure = parse_measure("Rprec")
    monkeypatch.setattr(ir_measures, "calc_aggregate", refuse)
    with pytest.raises(UsageError, match="Rprec: min_rel must be less than max_rel, says ir_measures"):
        measure(["a"], {"a": 1})


def test_without_ir_measures_there_are_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    monkeypatch.setitem(sys.modules, "ir_measures.measures", None)
    with pytest.raises(
        UsageError, match=r"unknown measure 'Rprec'.* valid: AP.*; for the measures of ir_measures: pip install '.*\[eval\]'"
    ):
        parse_measure("Rprec")
