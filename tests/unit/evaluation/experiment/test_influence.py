"""Figures of influence: which tokens and axes they have, and the order of their curves."""

import pytest

from perikope.browse.signals import Curve
from perikope.evaluation.experiment.extras import figures_of, plain
from perikope.evaluation.experiment.influence import POINTS, influence_figure
from perikope.evaluation.experiment.report.extra_figures import picture_of


def triangle(middle: int, size: int, k: int = 200) -> tuple[float, ...]:
    return tuple(max(0.0, 1 - abs(token - middle) / k) for token in range(size))


def test_the_axis_starts_at_0_and_the_query_lies_above_its_words():
    high = Curve("word", (0.9, 1.0, 0.9), 1, 2)
    drawn = influence_figure([high, Curve("query", (0.9, 0.95, 0.9), 1, 2)], "title")
    assert [series.name for series in drawn.series] == ["query", "word"]
    picture = picture_of(drawn)
    assert (picture.y.low, picture.y.high) == (0, 1)
    assert picture.shapes.startswith('<path class="band"')
    assert picture.shapes.index("word") < picture.shapes.index("query")
    assert figures_of(plain([drawn])) == (drawn,)


@pytest.mark.parametrize("size", [0, 1, 5, POINTS, 30_011])
def test_a_long_document_has_few_points_but_all_corners(size):
    middles = [middle for middle in (3, 12_345, 20_001) if middle < size]
    curves = [Curve(str(middle), triangle(middle, size), 0, size) for middle in middles] or [Curve("none", (0.0,) * size, 0, size)]
    drawn = influence_figure(curves, "title")
    tokens = [token for token, _ in drawn.series[0].points]
    assert len(tokens) <= 1.1 * POINTS + 10
    assert tokens[:1] + tokens[-1:] == ([0, size - 1] if size else [])
    for middle in middles:
        assert {middle, *(end for end in (middle - 200, middle + 200) if 0 < end < size)} <= {*tokens}
    assert picture_of(drawn).shapes
