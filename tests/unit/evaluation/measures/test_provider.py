import subprocess
import sys
from typing import NamedTuple

import ir_measures
import pytest
from hypothesis import given, settings

from perikope.core.errors import MissingExtra, UsageError
from perikope.evaluation.io.inex import Extract
from perikope.evaluation.measures import MEASURES, evaluate, parse_measure, provider
from tests.support import measuring

NAMES = "MAP(D) MAP(D,rel=2) PREC(D) PRES PRES@3 PRES(rel=2)@50"
CHARACTERS = "iP[0] iP[.01] iP@1 MAiP gP[10] gP(beta=0.25)[2] gR[10] MAgP MAgP(t2i=5)"


def test_every_measure_of_ours_can_be_asked_for_there() -> None:
    provider.register()
    for name, definition in MEASURES.items():
        # Theirs needs a cutoff.
        asked = "R@10" if name == "Recall" else definition.example
        measure = ir_measures.parse_measure(asked)
        assert str(measure) == asked, name
        assert ir_measures.DefaultPipeline.supports(measure), name


def test_canonical_names_with_parameters_parse_there_too() -> None:
    provider.register()
    for asked in [*NAMES.split(), *CHARACTERS.split()]:
        canonical = str(parse_measure(asked))
        [theirs] = provider.measures(asked)
        assert ir_measures.parse_measure(canonical) == theirs, asked


@settings(max_examples=50, deadline=None)
@given(measuring.judgements, measuring.runs)
def test_measures_of_names_give_the_same_values(judgements: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    ours = evaluate(NAMES, judgements, run)
    asked = provider.measures(NAMES)
    means = ir_measures.calc_aggregate(asked, judgements, run)
    assert [means[measure] for measure in asked] == pytest.approx(list(ours.mean.values()), abs=1e-12)
    by_query = {(metric.query_id, metric.measure): metric.value for metric in ir_measures.iter_calc(asked, judgements, run)}
    for name, measure in zip(ours.mean, asked, strict=True):
        assert {qid: by_query[qid, measure] for qid in judgements} == pytest.approx(ours.per_query[name], abs=1e-12)


def test_ours_and_theirs_go_together() -> None:
    judgements = {"q1": {"A#1": 1, "B#2": 1}, "q2": {"C#1": 1}}
    run = {"q1": {"A#1": 2.0, "A#2": 1.0}}
    asked = provider.measures("MAP(D) nDCG@10 PRES@100 RR Rprec")
    means = ir_measures.calc_aggregate(asked, judgements, run)
    ours = evaluate("MAP(D) nDCG@10 PRES@100 RR Rprec", judgements, run).mean
    assert [means[measure] for measure in asked] == pytest.approx(list(ours.values()), abs=1e-9)
    assert [str(measure) for measure in asked] == ["APD", "nDCG@10", "PRES@100", "RR", "Rprec"]


class JudgedRow(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    start: int
    length: int


class ReturnedRow(NamedTuple):
    query_id: str
    doc_id: str
    score: float
    start: int
    length: int


@settings(max_examples=50, deadline=None)
@given(measuring.in_context, measuring.texts)
def test_measures_of_characters_give_the_same_values_for_rows(ranked: list[Extract], judged: measuring.Texts) -> None:
    ours = evaluate(CHARACTERS, {"q": judged}, {"q": ranked}).mean
    asked = provider.measures(CHARACTERS)
    qrels = [JudgedRow("q", document, 1, *pair) for document, text in judged.items() for pair in text.ranges or ((0, 0),)]
    rows = [ReturnedRow("q", result.document, -float(rank), result.start, result.length) for rank, result in enumerate(ranked)]
    for means in (ir_measures.calc_aggregate(asked, qrels, rows), ir_measures.calc_aggregate(asked, {"q": judged}, {"q": ranked})):
        assert [means[measure] for measure in asked] == pytest.approx(list(ours.values()), abs=1e-12)


def test_the_columns_that_are_needed_are_named() -> None:
    assert set(ir_measures.run_inputs(provider.measures("MAiP MAP(D)"))) == {"query_id", "doc_id", "score", "start", "length"}
    assert set(ir_measures.qrel_inputs(provider.measures("MAP(D)"))) == {"query_id", "doc_id", "relevance"}
    with pytest.raises(UsageError, match="need the columns start and length"):
        ir_measures.calc_aggregate(provider.measures("MAiP"), [ir_measures.Qrel("q", "A", 1)], [])


def test_registering_twice_changes_nothing() -> None:
    assert provider.register() is provider.register()
    assert sum(one.NAME == "perikope" for one in ir_measures.DefaultPipeline.providers) == 1


def test_a_missing_ir_measures_is_answered_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    monkeypatch.delitem(sys.modules, "perikope.evaluation.measures.provider.offer", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install .*\[eval\]"):
        provider.register()


def test_listing_the_measures_does_not_need_ir_measures() -> None:
    code = (
        "import sys; sys.modules['ir_measures'] = None; from perikope.evaluation.measures import MEASURES, evaluate;"
        "assert 'AgP' in MEASURES; evaluate('MAP', {'q': {'a': 1}}, {})"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
