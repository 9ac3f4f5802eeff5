import subprocess
import sys

import pytest

from perikope.core.errors import UsageError
from perikope.evaluation.io.inex import Extract, RelevantText
from perikope.evaluation.measures import evaluate, parse_measure, ranked_names

JUDGEMENTS = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}, "q3": {"a": 0}}
RUN = {"q1": {"a": 1.0, "b": 2.0}, "q3": {"a": 1.0}, "q9": {"a": 1.0}}


def test_averages_run_over_all_judged_queries() -> None:
    evaluation = evaluate("MRR P@1", JUDGEMENTS, RUN)
    assert evaluation.queries == ("q1", "q2", "q3")
    assert evaluation.per_query == {"MRR": {"q1": 0.5, "q2": 0.0, "q3": 0.0}, "P@1": {"q1": 0.0, "q2": 0.0, "q3": 0.0}}
    assert evaluation.mean == {"MRR": pytest.approx(0.5 / 3), "P@1": 0.0}


def test_averages_run_over_the_queries_of_the_run_on_request() -> None:
    evaluation = evaluate("MRR", JUDGEMENTS, RUN, only_run_queries=True)
    assert evaluation.queries == ("q1", "q3")
    assert evaluation.mean == {"MRR": 0.25}


def test_results_carry_the_name_that_was_asked_for() -> None:
    evaluation = evaluate(["MAP(D)", "APD", parse_measure("MAP@100")], JUDGEMENTS, RUN)
    assert list(evaluation.mean) == list(evaluation.per_query) == ["MAP(D)", "APD", "MAP@100"]
    assert [str(measure) for measure in evaluation.measures] == ["APD", "APD", "AP@100"]


def test_ties_in_float32_fall_by_name() -> None:
    assert ranked_names({"b": 1.0, "c": 1.0 - 1e-12, "a": 1.0 + 1e-12, "d": 0.5, "e": 1e300, "é": -1e300}) == ["e", "c", "b", "a", "d", "é"]


def test_nothing_to_average_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"no judged query; the judgements are empty"):
        evaluate("MAP", {}, RUN)
    with pytest.raises(UsageError, match="no judged query in the run"):
        evaluate("MAP", JUDGEMENTS, {"q9": {"a": 1.0}}, only_run_queries=True)


def test_a_score_that_is_no_number_is_an_error() -> None:
    with pytest.raises(UsageError, match="a score of the run is NaN"):
        evaluate("MAP", JUDGEMENTS, {"q1": {"a": float("nan")}})


def test_each_measure_says_what_it_needs() -> None:
    text = {"q1": {"a": RelevantText(((0, 5),), 5, 9, 0)}}
    found = {"q1": [Extract("a", 0, 5, 1.0)]}
    assert evaluate("iP[0.01]", text, found).mean == {"iP[0.01]": 1.0}
    with pytest.raises(UsageError, match=r"iP\[0.01\] counts characters.*INEX files.*was given grades by name"):
        evaluate("iP[0.01]", JUDGEMENTS, found)
    with pytest.raises(UsageError, match=r"MAgP counts characters.*was given scores by name"):
        evaluate("MAgP", text, RUN)
    with pytest.raises(UsageError, match="MAP needs grades and scores by name, but was given judgements of characters"):
        evaluate("MAP", text, RUN)
    with pytest.raises(UsageError, match="MAP needs grades and scores by name, but was given a run of characters"):
        evaluate("MAP", JUDGEMENTS, found)


def test_importing_and_measuring_needs_neither_numpy_nor_numba_nor_ir_measures() -> None:
    code = (
        "import sys; from perikope.evaluation.measures import evaluate; evaluate('MAP PRES', {'q': {'a': 1}}, {'q': {'a': 1.0}});"
        "sys.exit(bool({'numpy', 'numba', 'scipy', 'ir_measures', 'pytrec_eval'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
