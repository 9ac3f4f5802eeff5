from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import InputError
from perikope.evaluation.io.inex import Extract, RelevantText
from perikope.evaluation.measures import evaluate, parse_measure
from perikope.evaluation.measures.characters import by_document, in_context
from tests.support import measuring

Text = Mapping[str, RelevantText]


def value(name: str, ranked: Sequence[Extract], judged: Text) -> float:
    return parse_measure(name)(ranked, judged)


def results(*found: tuple[str, int, int]) -> list[Extract]:
    return [Extract(*result, score=1.0, line=line) for line, result in enumerate(found, start=1)]


def text(*ranges: tuple[int, int]) -> RelevantText:
    return measuring.relevant_text(list(ranges))


# Plain twins: texts are sets of characters, a reader looks at one character after the other.


def characters(judged: Text) -> set[tuple[str, int]]:
    return {
        (document, place) for document, found in judged.items() for start, length in found.ranges for place in range(start, start + length)
    }


def plain_interpolated(ranked: Sequence[Extract], judged: Text, level: float) -> float:
    relevant = characters(judged)
    found: set[tuple[str, int]] = set()
    returned, best = 0, 0.0
    for result in ranked:
        found |= relevant & {(result.document, place) for place in range(result.start, result.end)}
        returned += result.length
        if relevant and returned and len(found) / len(relevant) >= level:
            best = max(best, len(found) / returned)
    return best


def plain_score(document: str, ranked: Sequence[Extract], judged: Text, beta: float, t2i: int | None) -> float:
    relevant = characters({document: judged[document]}) if document in judged else set()
    read, irrelevant = 0, 0
    for result in ranked:
        for place in range(result.start, result.end) if result.document == document else ():
            if t2i is not None and irrelevant >= t2i:
                break
            if (document, place) in relevant:
                read += 1
            else:
                irrelevant += 1
    if not read:
        return 0.0
    precision, recall = read / (read + irrelevant), read / len(relevant)
    return (1 + beta * beta) * precision * recall / (beta * beta * precision + recall)


def plain_precisions(ranked: Sequence[Extract], judged: Text, beta: float, t2i: int | None) -> tuple[list[str], list[float]]:
    documents = list(dict.fromkeys(result.document for result in ranked))
    scores = [plain_score(document, ranked, judged, beta, t2i) for document in documents]
    return documents, [sum(scores[: rank + 1]) / (rank + 1) for rank in range(len(scores))]


@settings(max_examples=300)
@given(measuring.stretches, measuring.texts)
def test_interpolated_precision_equals_its_plain_twin(ranked: list[Extract], judged: Text) -> None:
    for level in (0.0, 0.01, 0.05, 0.1, 0.5, 1.0):
        assert value(f"iP@{level}", ranked, judged) == pytest.approx(plain_interpolated(ranked, judged, level), abs=1e-12)
    mean = sum(plain_interpolated(ranked, judged, level / 100) for level in range(101)) / 101
    assert value("AiP", ranked, judged) == pytest.approx(mean, abs=1e-12)


@settings(max_examples=300)
@given(measuring.in_context, measuring.texts, st.sampled_from([0.25, 1.0, 2.0]), st.none() | st.integers(1, 20))
def test_generalised_precision_equals_its_plain_twin(ranked: list[Extract], judged: Text, beta: float, t2i: int | None) -> None:
    documents, precisions = plain_precisions(ranked, judged, beta, t2i)
    asked = f"(beta={beta},t2i={'none' if t2i is None else t2i})"
    for rank in (1, 2, 10):
        expected = precisions[min(rank, len(precisions)) - 1] if precisions else 0.0
        assert value(f"gP{asked}@{rank}", ranked, judged) == pytest.approx(expected, abs=1e-12)
    relevant = {document for document, _ in characters(judged)}
    at_relevant = [precision for document, precision in zip(documents, precisions, strict=True) if document in relevant]
    assert value(f"AgP{asked}", ranked, judged) == pytest.approx(sum(at_relevant) / max(len(relevant), 1), abs=1e-12)
    for rank in (1, 2, 10):
        expected = len(relevant & set(documents[:rank])) / max(len(relevant), 1)
        assert value(f"gR@{rank}", ranked, judged) == pytest.approx(expected, abs=1e-12)


# Examples that can be followed by hand.


def test_adjacent_overlapping_and_empty_ranges_are_one_text() -> None:
    ranked = results(("A", 0, 30))
    one = {"A": text((10, 10))}
    for ranges in ([(10, 5), (15, 5)], [(10, 8), (12, 8)], [(15, 5), (10, 5), (3, 0)], [(10, 10), (10, 10), (11, 2)]):
        judged = {"A": text(*ranges), "B": text((4, 0))}
        for name in ("iP@0", "AiP", "gP@1", "gR@1", "AgP", "AgP(t2i=5)"):
            assert value(name, ranked, judged) == value(name, ranked, one), (name, ranges)
    assert value("iP@1", ranked, one) == pytest.approx(1 / 3)
    # Precision 1/3, recall 1: F = 2 · 1/3 / (4/3).
    assert value("AgP", ranked, one) == pytest.approx(0.5)


def test_relevant_text_that_comes_twice_is_found_once_and_read_twice() -> None:
    judged = {"A": text((0, 10))}
    ranked = results(("A", 0, 5), ("A", 0, 5), ("A", 5, 5))
    # After the first 5 of 5, then 5 of 10, then 10 of 15.
    assert [value(f"iP@{level}", ranked, judged) for level in (0.5, 0.6, 1.0)] == pytest.approx([1.0, 10 / 15, 10 / 15])


def test_a_result_that_ends_where_relevant_text_begins_finds_nothing() -> None:
    assert value("iP@0", results(("A", 0, 10), ("A", 20, 5)), {"A": text((10, 10))}) == 0
    assert value("AgP", results(("A", 0, 10), ("A", 20, 5)), {"A": text((10, 10))}) == 0


def test_an_empty_result_neither_finds_nor_costs_anything() -> None:
    judged = {"A": text((0, 10))}
    assert value("iP@0", results(("A", 5, 0), ("A", 0, 10)), judged) == 1
    assert value("AgP", results(("A", 5, 0), ("A", 0, 10)), judged) == 1


@pytest.mark.parametrize(
    ("t2i", "read", "irrelevant"),
    [(None, 25, 20), (1, 0, 1), (5, 0, 5), (6, 10, 6), (15, 10, 15), (16, 25, 16), (20, 25, 20), (21, 25, 20)],
)
def test_the_reader_stops_after_so_many_irrelevant_characters(t2i: int | None, read: int, irrelevant: int) -> None:
    # 5 irrelevant, 10 relevant, 5 irrelevant; then 5 irrelevant, 15 relevant, 5 irrelevant.
    judged = {"A": text((5, 10), (100, 15), (500, 25))}
    ranked = results(("A", 0, 20), ("A", 95, 25))
    precision, recall = read / (read + irrelevant), read / 50
    expected = 2 * precision * recall / (precision + recall) if read else 0.0
    assert value(f"AgP(t2i={'none' if t2i is None else t2i})", ranked, judged) == pytest.approx(expected)


def test_the_best_run_gives_1() -> None:
    judged = {"A": text((5, 10), (20, 5)), "B": text((0, 7))}
    ranked = results(("A", 20, 5), ("A", 5, 10), ("B", 0, 7))
    for name in ("iP@0", "iP@1", "AiP", "gP@2", "gR@2", "AgP", "AgP(beta=0.25)", "AgP(t2i=1)"):
        assert value(name, ranked, judged) == pytest.approx(1), name


def test_nothing_relevant_gives_0() -> None:
    for name in ("iP@0", "AiP", "gP@2", "gR@2", "AgP"):
        assert value(name, results(("A", 0, 5)), {"A": text(), "B": text((3, 0))}) == 0, name


@pytest.mark.parametrize("name", ["gP@10", "gR@10", "AgP", "MAgP(t2i=300)"])
@pytest.mark.parametrize(
    ("found", "line", "message"),
    [
        ((("A", 0, 5), ("B", 0, 5), ("A", 9, 5)), 3, "5 characters of 'A' from 9 on come after results of another document"),
        ((("B", 0, 5), ("A", 0, 5), ("A", 4, 5)), 3, "5 characters of 'A' from 4 on overlap an earlier result"),
        ((("A", 10, 5), ("A", 0, 30)), 2, "must not overlap"),
        ((("A", 10, 5), ("A", 20, 5), ("A", 0, 11)), 3, "must not overlap"),
        ((("A", 10, 5), ("A", 10, 5)), 2, "must not overlap"),
    ],
)
def test_a_run_that_is_not_in_context_is_refused_with_the_line(
    name: str, found: tuple[tuple[str, int, int], ...], line: int, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        value(name, results(*found), {"A": text((0, 12))})
    assert error.value.line == line
    assert value("AiP", results(*found), {"A": text((0, 12))}) > 0


def test_adjacent_results_do_not_overlap() -> None:
    assert [document for document, _ in in_context(results(("A", 5, 5), ("A", 0, 5), ("A", 10, 5), ("B", 7, 1)))] == ["A", "B"]


@given(measuring.stretches)
def test_results_put_together_by_document_can_be_measured_in_context(ranked: list[Extract]) -> None:
    assert by_document(ranked) == measuring.apart(ranked)
    assert [result for _, found in in_context(by_document(ranked)) for result in found] == by_document(ranked)


def test_a_query_that_the_run_leaves_out_counts_0() -> None:
    judged = {"q1": {"A": text((0, 5))}, "q2": {"A": text((0, 5))}}
    evaluation = evaluate("MAiP MAgP", judged, {"q1": results(("A", 0, 5)), "q9": results(("A", 0, 5))})
    assert evaluation.per_query == {"MAiP": {"q1": 1.0, "q2": 0.0}, "MAgP": {"q1": 1.0, "q2": 0.0}}
    assert evaluation.mean == {"MAiP": 0.5, "MAgP": 0.5}
    assert evaluate("MAiP", judged, {"q1": results(("A", 0, 5))}, only_run_queries=True).mean == {"MAiP": 1.0}
