import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import InputError, UsageError
from perikope.evaluation.io.runs import falling, read_run, write_run
from perikope.evaluation.measures import ranked_names

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)

close_scores = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-12, 1.0 - 1e-9, -1.0, -1.0 - 1e-9, 1e-50, -1e-50, SMALLEST, 16777217.0, 1e300])
any_scores = st.lists(close_scores | st.floats(-1e30, 1e300, allow_nan=False))


def test_a_run_is_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text("q2 Q0 d1#p2 1 3.5 tag\nq1 Q0 d1 1 -1e-3 tag\nq2\tQ0\treport%207#@3\t2\t4\ttag\n", encoding="utf-8")
    run = read_run(path)
    assert run == {"q2": {"d1#p2": 3.5, "report%207#@3": 4.0}, "q1": {"d1": -0.001}}
    assert list(run) == ["q2", "q1"]
    assert list(run["q2"]) == ["d1#p2", "report%207#@3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 Q0 d2 2 0.5", r"expected 6 columns \(qid Q0 name rank score tag\), found 5"),
        ("q1 Q0 d2 2 0.5 my tag", "found 7"),
        ("q1 Q0 d2 2 high tag", "the score must be a number, not 'high'"),
        ("q1 Q0 d2 2 nan tag", "the score must be a finite number, not 'nan'"),
        ("q1 Q0 d2 2 -inf tag", "the score must be a finite number, not '-inf'"),
        ("q1 Q0 d2 2 1e999 tag", "the score must be a finite number, not '1e999'"),
        ("q1 Q0 d2 /doc/p[2] 2 0.5", "the rank must be a whole number, not '/doc/p.2.'"),
        ("q1 Q0 d1 2 0.5 tag", "'d1' occurs twice in the list of query 'q1'"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "run"
    path.write_text(f"q1 Q0 d1 1 1.0 tag\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_run(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_a_run_is_written_with_ranks_from_1_and_falling_scores(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [("q1", [("a#1", 2.5), ("b#1", 2.5)]), ("q2", []), ("q3", [("a#1", 0.1)])], tag="mine")
    assert (tmp_path / "run").read_text() == "q1 Q0 a#1 1 2.5 mine\nq1 Q0 b#1 2 2.49999976 mine\nq3 Q0 a#1 1 0.100000001 mine\n"


@given(any_scores)
def test_scores_fall_in_float32_and_stay_as_they_are_where_they_can(scores: list[float]) -> None:
    written = falling(scores)
    expected: list[np.float32] = []
    for score in scores:
        value = np.float32(min(max(score, -LARGEST), LARGEST))
        below = np.nextafter(expected[-1], np.float32(-np.inf)) if expected else value
        expected.append(value if not expected or value < expected[-1] else below)
    assert written == [float(value) for value in expected]
    assert all(later < earlier for earlier, later in itertools.pairwise(np.asarray(written, dtype=np.float32)))


@given(scores=any_scores, compressed=st.booleans())
def test_every_tool_sees_the_order_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, scores: list[float], compressed: bool
) -> None:
    # Names rise, so that whatever is still tied comes back in the wrong order.
    ranking = [(f"d{number:04}#p", score) for number, score in enumerate(scores)]
    path = tmp_path_factory.mktemp("runs") / ("run.gz" if compressed else "run")
    write_run(path, [("q", ranking)])
    read = read_run(path).get("q", {})
    names = [name for name, _ in ranking]
    assert list(read) == names
    assert ranked_names(read) == names
    assert sorted(read, key=read.__getitem__, reverse=True) == names
    assert [np.float32(value) for value in read.values()] == [np.float32(value) for value in falling(scores)]


@given(any_scores.filter(lambda scores: len(scores) > 0), st.data())
def test_pytrec_eval_sees_the_rank_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, scores: list[float], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("runs") / "run"
    write_run(path, [("q", [(f"d{number:04}", score) for number, score in enumerate(scores)])])
    rank = data.draw(st.integers(1, len(scores)))
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {f"d{rank - 1:04}": 1}}, {"recip_rank"})
    assert evaluator.evaluate(read_run(path))["q"]["recip_rank"] == pytest.approx(1 / rank)


def test_scores_at_the_ends_of_float32() -> None:
    assert falling([1e300, 1e300]) == [LARGEST, float(np.nextafter(np.float32(LARGEST), np.float32(0)))]
    assert falling([0.0, -0.0]) == [0.0, -SMALLEST]
    with pytest.raises(UsageError, match="at its lowest value"):
        falling([-1e300, -1e300])


def failing() -> Iterator[tuple[str, list[tuple[str, float]]]]:
    yield "q1", [("a", 1.0)]
    raise RuntimeError("the search broke")


def test_a_failure_leaves_no_half_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        write_run(tmp_path / "run", failing())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("rankings", "tag", "message"),
    [
        ([("q 1", [])], "t", "query id 'q 1' cannot stand in a run"),
        ([("", [])], "t", "query id '' cannot stand in a run"),
        ([("q1", []), ("q1", [])], "t", "query id 'q1' is ranked twice"),
        ([("q1", [("report 7#p", 1.0)])], "t", "name 'report 7#p' cannot stand in a run"),
        ([("q1", [("a", 1.0), ("a", 0.5)])], "t", "'a' occurs twice in the list of query 'q1'"),
        ([("q1", [("a", float("nan"))])], "t", "not a finite number"),
        ([("q1", [("a", float("inf"))])], "t", "not a finite number"),
        ([], "my tag", "tag 'my tag' cannot stand in a run"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, rankings: list[tuple[str, list[tuple[str, float]]]], tag: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        write_run(tmp_path / "run", rankings, tag=tag)
    assert os.listdir(tmp_path) == []
