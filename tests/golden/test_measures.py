"""The worked numbers of the measures, and of BM25, through the real code."""

import numpy as np
import pytest

from perikope.evaluation.io.inex import Extract, RelevantText
from perikope.evaluation.measures import parse_measure
from perikope.fetch import weighting


def close(*values):
    return pytest.approx(list(values), abs=5e-7)


def values_of(names, ranked, judged):
    return [parse_measure(name)(ranked, judged) for name in names.split()]


def relevant(*ranges):
    return RelevantText(ranges, sum(length for _, length in ranges), 10_000, ranges[0][0])


def run_of(*results):
    return [Extract(document, start, length, -float(rank)) for rank, (document, start, length) in enumerate(results)]


@pytest.mark.parametrize(("ranks", "expected"), [((1, 5, 150), 0.4925), ((), 0.0), ((1, 2, 3, 4), 1.0)])
def test_pres(ranks, expected):
    documents = [f"r{rank}" if rank in ranks else f"n{rank}" for rank in range(1, 201)]
    judged = {f"r{rank}": 1 for rank in ranks} | {f"missed{number}": 1 for number in range(4 - len(ranks))}
    assert parse_measure("PRES@100")(documents, judged) == pytest.approx(expected, abs=5e-7)


def test_passages_inside_their_documents():
    ranked = ["A#2", "B#1", "A#1", "C#1", "A#4", "B#3", "A#3"]
    judged = {"A#1": 1, "A#3": 1, "A#9": 1, "B#1": 1, "E#5": 1}
    assert values_of("MAP(D) PREC(D) PRES@100", ranked, judged) == close(0.444444, 0.333333, 0.666667)


FOCUSED = run_of(("A", 150, 200), ("C", 0, 100), ("B", 50, 100), ("A", 1000, 50))
FOCUSED_TEXT = {"A": relevant((100, 200), (1000, 100)), "B": relevant((0, 100))}


def test_focused_retrieval():
    levels = "iP[0] iP[.01] iP[.05] iP[.10] iP[.40] iP[.50] iP[.60]"
    assert values_of(levels, FOCUSED, FOCUSED_TEXT) == close(0.75, 0.75, 0.75, 0.75, 0.555556, 0.555556, 0.555556)
    assert values_of("iP[.625] iP[.63] iP[1]", FOCUSED, FOCUSED_TEXT) == close(0.555556, 0.0, 0.0)
    assert parse_measure("MAiP")(FOCUSED, FOCUSED_TEXT) == pytest.approx(0.419692, abs=5e-7)


IN_CONTEXT = run_of(("A", 50, 350), ("A", 1500, 700), ("C", 0, 100), ("B", 200, 400))
IN_CONTEXT_TEXT = {"A": relevant((100, 400), (2000, 200)), "B": relevant((0, 300)), "Z": relevant((5, 50))}


@pytest.mark.parametrize(
    ("settings", "precisions", "average"),
    [
        ("", (0.606061, 0.303030, 0.297258), 0.301106),
        ("(t2i=300)", (0.500000, 0.250000, 0.261905), 0.253968),
        ("(beta=0.25)", (0.488506, 0.244253, 0.247412), 0.245306),
    ],
)
def test_relevant_in_context(settings, precisions, average):
    names = " ".join(f"gP{settings}[{rank}]" for rank in (1, 2, 3, 10))
    assert values_of(names, IN_CONTEXT, IN_CONTEXT_TEXT) == close(*precisions, precisions[-1])
    assert parse_measure(f"MAgP{settings}")(IN_CONTEXT, IN_CONTEXT_TEXT) == pytest.approx(average, abs=5e-7)


def test_generalised_recall():
    assert values_of("gR[1] gR[2] gR[3] gR[10]", IN_CONTEXT, IN_CONTEXT_TEXT) == close(1 / 3, 1 / 3, 2 / 3, 2 / 3)


@pytest.mark.parametrize(("k1", "b", "expected"), [(1.2, 0.75, 6.867284), (0.6, 0.2, 6.036264)])
def test_bm25(k1, b, expected):
    saturated = weighting.bm25(np.array(3), np.array(120), 100.0, k1, b)
    idf = weighting.idf(1000, np.array(10))
    assert float(saturated * idf) == pytest.approx(expected, abs=1e-6)
