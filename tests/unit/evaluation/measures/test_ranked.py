import ir_measures
import pytest
from hypothesis import given, settings

from perikope.evaluation.measures import evaluate, parse_measure, ranked_names
from tests.support import measuring

# Our names, and those of pytrec_eval behind ir_measures. It has no Recall without a cutoff (a cutoff beyond the list is
# the same), and ir_measures passes no `rel` to its recall, so SetR stands for that.
SHARED = {
    "nDCG": "nDCG",
    "nDCG@1": "nDCG@1",
    "nDCG@3": "nDCG@3",
    "nDCG@100": "nDCG@100",
    "AP": "AP",
    "AP@2": "AP@2",
    "AP(rel=2)@5": "AP(rel=2)@5",
    "AP(rel=3)": "AP(rel=3)",
    "RR": "RR",
    "RR(rel=2)": "RR(rel=2)",
    "P@1": "P@1",
    "P@100": "P@100",
    "P(rel=2)@3": "P(rel=2)@3",
    "Recall": "R@1000",
    "Recall@2": "R@2",
    "Recall(rel=2)": "SetR(rel=2)",
    "Success@1": "Success@1",
    "Success(rel=2)@3": "Success(rel=2)@3",
}


@settings(max_examples=300)
@given(measuring.judgements, measuring.runs)
def test_shared_measures_equal_those_of_pytrec_eval(judgements: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    theirs_of = {ours: ir_measures.parse_measure(theirs) for ours, theirs in SHARED.items()}
    # pytrec_eval writes outside its memory on a negative grade (it hangs or crashes); trec_eval counts it as 0.
    without_negative = {qid: {name: max(grade, 0) for name, grade in judged.items()} for qid, judged in judgements.items()}
    evaluator = ir_measures.pytrec_eval.evaluator(list(theirs_of.values()), without_negative)
    theirs = {(str(found.measure), found.query_id): found.value for found in evaluator.iter_calc(run)}
    ours = evaluate(SHARED, judgements, run)
    for name, their in theirs_of.items():
        for qid in judgements:
            assert ours.per_query[name][qid] == pytest.approx(theirs[str(their), qid], abs=1e-9), (name, qid)
    means = evaluator.calc_aggregate(run)
    assert ours.mean == pytest.approx({name: means[their] for name, their in theirs_of.items()}, abs=1e-9)


@given(measuring.judgements, measuring.runs)
def test_a_cutoff_is_the_measure_of_the_shorter_list(judgements: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    for qid, judged in judgements.items():
        ranked = ranked_names(run.get(qid, {}))
        for name in ("AP", "RR", "RR(rel=2)", "Recall(rel=2)", "Judged"):
            assert parse_measure(f"{name}@2")(ranked, judged) == parse_measure(name)(ranked[:2], judged)


@given(measuring.judgements, measuring.runs)
def test_judged_rate_equals_that_of_ir_measures_without_ties(
    judgements: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    # ir_measures breaks ties the other way here, so ranks replace the scores; it divides by 0 on an empty list.
    untied = {qid: {name: -float(rank) for rank, name in enumerate(ranked_names(scores))} for qid, scores in run.items() if scores}
    theirs = ir_measures.judged.evaluator([ir_measures.Judged @ 3], judgements).iter_calc(untied)
    ours = evaluate("Judged@3", judgements, run).per_query["Judged@3"]
    assert ours == pytest.approx({found.query_id: found.value for found in theirs}, abs=1e-9)


def test_equal_scores_are_ordered_as_by_trec_eval_where_ir_measures_does_otherwise() -> None:
    # trec_eval puts the name that sorts last first. ir_measures has RR from it, but RR@k and Judged@k from programs
    # that put it last.
    judgements, run = {"q": {"b": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    assert evaluate("RR RR@2 Judged@1", judgements, run).mean == {"RR": 1.0, "RR@2": 1.0, "Judged@1": 1.0}
    asked = [ir_measures.RR, ir_measures.RR @ 2, ir_measures.Judged @ 1]
    assert [ir_measures.calc_aggregate([one], judgements, run)[one] for one in asked] == [1.0, 0.5, 0.0]


def test_canonical_names_are_those_of_ir_measures() -> None:
    for name in [*SHARED, "RR@10", "Judged@5"]:
        ir_measures.parse_measure(str(parse_measure(name)))


def test_unjudged_results_are_not_relevant_and_negative_grades_count_nothing() -> None:
    judged = {"a": 2, "b": -1}
    assert parse_measure("nDCG")(["x", "b", "a"], judged) == pytest.approx(0.5)
    assert parse_measure("Judged@2")(["x", "b", "a"], judged) == 0.5
    assert parse_measure("P@10")(["x", "b", "a"], judged) == pytest.approx(0.1)
