from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given

from perikope.evaluation.measures import parse_measure
from tests.support import measuring

RANKED = ["A#2", "B#1", "A#1", "C#1", "A#4", "B#3", "A#3"]
JUDGED = {"A#1": 1, "A#3": 1, "A#9": 1, "B#1": 1, "E#5": 1}


def test_golden_numbers() -> None:
    assert parse_measure("MAP(D)")(RANKED, JUDGED) == pytest.approx(0.444444, abs=5e-7)
    assert parse_measure("PREC(D)")(RANKED, JUDGED) == pytest.approx(0.333333, abs=5e-7)


@pytest.mark.parametrize(("document", "average_precision", "precision"), [("A", 1 / 3, 0.5), ("B", 1.0, 0.5), ("E", 0.0, 0.0)])
def test_golden_numbers_of_each_document(document: str, average_precision: float, precision: float) -> None:
    judged = {name: grade for name, grade in JUDGED.items() if name.startswith(document)}
    assert parse_measure("APD")(RANKED, judged) == pytest.approx(average_precision)
    assert parse_measure("PD")(RANKED, judged) == pytest.approx(precision)


def test_judgements_and_results_of_whole_documents_are_not_passages() -> None:
    assert parse_measure("APD")(["A", "A#1"], {"A": 1, "A#1": 1}) == 1.0
    assert parse_measure("PD")(["A", "A#1"], {"A": 1, "A#1": 1}) == 1.0
    assert parse_measure("APD")(["A", "A#1"], {"A": 1}) == 0.0


def plain_twins(ranked: Sequence[str], judged: Mapping[str, int], rel: int) -> tuple[float, float]:
    """MAP(D) and PREC(D), by the sentence that defines them."""
    average_precisions, precisions = [], []
    for document in "ABCD":
        relevant = [name for name, grade in judged.items() if name.startswith(f"{document}#") and grade >= rel]
        if not relevant:
            continue
        inside = [name for name in ranked if name.startswith(f"{document}#")]
        flags = [name in relevant for name in inside]
        average_precisions.append(sum(sum(flags[: i + 1]) / (i + 1) for i in range(len(flags)) if flags[i]) / len(relevant))
        precisions.append(sum(flags) / len(flags) if flags else 0)
    count = len(precisions) or 1
    return sum(average_precisions) / count, sum(precisions) / count


@given(measuring.ranked, measuring.judged)
def test_both_equal_their_plain_twins(ranked: list[str], judged: dict[str, int]) -> None:
    for rel in (1, 2):
        average_precision, precision = plain_twins(ranked, judged, rel)
        assert parse_measure(f"MAP(D, rel={rel})")(ranked, judged) == pytest.approx(average_precision, abs=1e-12)
        assert parse_measure(f"PREC(D, rel={rel})")(ranked, judged) == pytest.approx(precision, abs=1e-12)
