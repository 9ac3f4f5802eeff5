from pathlib import Path

import pytest

from perikope.core.errors import InputError
from perikope.evaluation.io.judgements import judgement_form, read_judgements


def test_judgements_of_passages_and_documents(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q1 0 report%207#p3 2\nq1\t0\td1\t0\n  q2   Q0  d1#/doc/p[1]   -1\n", encoding="utf-8")
    assert read_judgements(path) == {"q1": {"report%207#p3": 2, "d1": 0}, "q2": {"d1#/doc/p[1]": -1}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 d2 1", r"expected 4 columns \(qid iteration name grade\), found 3"),
        ("q1 0 report 7 1", "found 5"),
        ("q1 0 d2 high", "the grade must be a whole number, not 'high'"),
        ("q1 0 d2 1.5", "the grade must be a whole number"),
        ("q1 0 d2 1_0", "the grade must be a whole number"),
        ("q1 0 d1 1", "'d1' is judged twice for query 'q1'"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(f"q1 0 d1 1\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_judgements(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [("x", "3", "the start"), ("-1", "3", "the start -1 of a span must be 0 or more"), ("0", "x", "the end"), ("0", "2.5", "the end")],
)
def test_a_wrong_first_line_of_spans_is_not_taken_for_another_form(tmp_path, start, end, said):
    path = tmp_path / "spans.tsv"
    path.write_text(f"1\td1#p1\t{start}\t{end}\n1\td1#p2\t0\t3\n")
    with pytest.raises(InputError, match=rf"spans\.tsv:1: {said}"):
        read_judgements(path)


@pytest.mark.parametrize("line", ["1\t0\td1#p1\t1", "1\t0\td1\t1", "1 a#1 d1#p1 1", "1\ta#1\td1#p1\t1"])
def test_judgements_with_tabs_or_an_iteration_of_their_own_stay_what_they_are(tmp_path, line):
    path = tmp_path / "qrels"
    path.write_text(line + "\n")
    assert judgement_form(path) == "trec"
