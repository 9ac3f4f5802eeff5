from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.evaluation.measures import parse_measure
from tests.support import measuring


def documents_with_relevant_at(*ranks: int) -> list[str]:
    """A document list of 200 whose relevant documents r1, r2 … stand at these ranks."""
    names = {rank: f"r{number}" for number, rank in enumerate(ranks, start=1)}
    return [names.get(rank, f"n{rank}") for rank in range(1, 201)]


@pytest.mark.parametrize(("ranks", "expected"), [((1, 5, 150), 0.4925), ((), 0.0), ((1, 2, 3, 4), 1.0)])
def test_golden_numbers(ranks: tuple[int, ...], expected: float) -> None:
    judged = {"r1": 1, "r2": 1, "r3": 1, "r4": 1}
    assert parse_measure("PRES@100")(documents_with_relevant_at(*ranks), judged) == pytest.approx(expected, abs=5e-7)


def test_golden_number_of_a_passage_run() -> None:
    ranked = ["A#2", "B#1", "A#1", "C#1", "A#4", "B#3", "A#3"]
    passages = {"A#1": 1, "A#3": 1, "A#9": 1, "B#1": 1, "E#5": 1}
    assert parse_measure("PRES@100")(ranked, passages) == pytest.approx(0.666667, abs=5e-7)
    assert parse_measure("PRES@100")(ranked, {"A": 1, "B": 1, "E": 1}) == pytest.approx(0.666667, abs=5e-7)


def plain_twin(ranked: Sequence[str], judged: Mapping[str, int], cutoff: int) -> float:
    """PRES by its definition: a rank for every relevant document, then their mean against the best one."""
    relevant = {name.split("#")[0] for name, grade in judged.items() if grade >= 1}
    if not relevant:
        return 0.0
    seen: list[str] = []
    for name in ranked:
        if name.split("#")[0] not in seen:
            seen.append(name.split("#")[0])
    found = [document for document in seen[:cutoff] if document in relevant]
    ranks = [seen.index(document) + 1 for document in found]
    while len(ranks) < len(relevant):
        ranks.append(cutoff + len(ranks) + 1)
    best = sum(range(1, len(relevant) + 1)) / len(relevant)
    return 1 - (sum(ranks) / len(relevant) - best) / cutoff


@given(measuring.ranked, measuring.judged, st.sampled_from([1, 2, 3, 100]))
def test_it_equals_its_plain_twin(ranked: list[str], judged: dict[str, int], cutoff: int) -> None:
    assert parse_measure(f"PRES@{cutoff}")(ranked, judged) == pytest.approx(plain_twin(ranked, judged, cutoff), abs=1e-12)


THEIRS = {"docAP": "AP", "docRecall": "R", "docRR": "RR"}


@pytest.mark.parametrize("name", THEIRS)
@given(ranked=measuring.ranked, judged=measuring.judged, cutoff=st.sampled_from([1, 2, 3, 100]))
def test_measures_of_documents_are_those_of_ir_measures_on_a_ranking_of_documents(
    name: str, ranked: list[str], judged: dict[str, int], cutoff: int
) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    documents: list[str] = []
    for passage in ranked:
        if passage.split("#")[0] not in documents:
            documents.append(passage.split("#")[0])
    relevant = {passage.split("#")[0]: 1 for passage, grade in judged.items() if grade > 0}
    expected = 0.0
    if documents and relevant:
        theirs = ir_measures.parse_measure(f"{THEIRS[name]}@{cutoff}")
        run = {"1": {document: float(-rank) for rank, document in enumerate(documents)}}
        expected = ir_measures.calc_aggregate([theirs], {"1": relevant}, run)[theirs]
    assert parse_measure(f"{name}@{cutoff}")(ranked, judged) == pytest.approx(expected, abs=1e-12)


def test_they_differ_from_measures_of_passages() -> None:
    """A document after 150 passages of another is not in the first 100 passages, but in the first 100 documents."""
    ranked = [*(f"A#{number}" for number in range(150)), "B#1"]
    judged = {"B#1": 1, "B#2": 1}
    values = {name: parse_measure(name)(ranked, judged) for name in ("Recall@100", "docRecall@100", "MAP@100", "docMAP@100", "docMRR")}
    assert values == {"Recall@100": 0.0, "docRecall@100": 1.0, "MAP@100": 0.0, "docMAP@100": 0.5, "docMRR": 0.5}
