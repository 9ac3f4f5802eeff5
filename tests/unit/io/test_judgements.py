from pathlib import Path

import pytest

from perikope.errors import InputError
from perikope.io.judgements import read_judgements


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
