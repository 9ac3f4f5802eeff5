"""The plots of a report: what is drawn is what was measured."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.experiment.outcome import SystemOutcome
from perikope.experiment.report.drawing import Axis, dots, listed_axis, number, numeric_axis
from perikope.experiment.report.findings import Figure, Row
from perikope.experiment.report.plots import BARS, HIGHLIGHTED, box_of, box_plots, curve_plot, difference_plots, differences_of

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=60)


def row(letter: str, values: list[float], curve: tuple[float, ...] = ()) -> Row:
    column = {f"q{place}": value for place, value in enumerate(values)}
    mean = sum(values) / max(len(values), 1)
    return Row(letter, SystemOutcome(f"system {letter}", "", {"AP": column}, curve), (Figure(mean, f"{mean:.4f}", False),))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.booleans())
def test_axes_hold_their_values_between_round_marks(values, is_tight):
    axis = numeric_axis(values, is_tight=is_tight)
    assert axis.low < axis.high
    rounding = 1e-6 * (axis.high - axis.low)
    assert all(axis.low - rounding <= value <= axis.high + rounding for value in values)
    places = [at for at, _ in axis.marks]
    assert places == sorted(places)
    assert len({text for _, text in axis.marks}) == len(places) <= 7
    assert all(float(text) == pytest.approx(at, abs=1e-9 * (axis.high - axis.low)) for at, text in axis.marks)
    assert all(axis.low <= at <= axis.high for at in places)


def test_an_axis_takes_what_is_no_number_or_outside():
    axis = numeric_axis([0, 1, float("nan"), float("inf")])
    assert (axis.low, axis.high) == (0, 1)
    assert [axis.place(value) for value in (-1, 0.5, 2, float("nan"))] == [0, 500, 1000, 0]
    assert numeric_axis([]).low < numeric_axis([]).high


@given(st.lists(st.text("ab", max_size=30), max_size=60))
def test_a_list_of_labels_fits_a_small_screen(labels):
    marks = listed_axis(labels).marks
    assert len(labels) == 0 or marks[0] == (0.5, labels[0])
    assert len(marks) <= 1 or sum(min(len(text), 16) + 1 for _, text in marks) <= 44


@given(VALUES)
def test_boxes_are_those_of_numpy(values):
    box = box_of(values)
    expected = np.quantile(values, (0.25, 0.5, 0.75))
    assert (box.first_quartile, box.median, box.third_quartile) == pytest.approx(tuple(expected), abs=1e-12)
    assert box.mean == pytest.approx(np.mean(values))
    assert sorted([*box.outliers, *(value for value in values if box.low <= value <= box.high)]) == sorted(values)


def test_whiskers_end_within_one_and_a_half_boxes():
    # The box goes from 2 to 6: up to 12 is near.
    box = box_of([0, 1, 2, 3, 4, 5, 6, 11.9, 12.1])
    assert (box.first_quartile, box.third_quartile, box.low, box.high, box.outliers) == (2, 6, 0, 11.9, (12.1,))


def test_boxes_stand_where_the_values_are():
    text = box_plots([row("a", [0.0, 0.25, 0.5, 0.75, 1.0])], "AP")
    assert 'class="box" d="M250 180H750V820H250z"' in text
    assert 'class="median" d="M500 180V820"' in text
    assert "median 0.5000, mean 0.5000, quartiles 0.2500 and 0.7500, whiskers 0.0000 to 1.0000, 0 outliers" in text


@given(VALUES)
def test_differences_are_those_of_the_same_topics(values):
    system, baseline = row("b", values).system, row("a", values[::-1]).system
    expected = sorted((one - other for one, other in zip(values, values[::-1], strict=True)), reverse=True)
    assert differences_of(system, baseline, "AP") == expected


def heights(path: str) -> list[float]:
    return [float(height) for height in re.findall(r"V(-?[\d.]+)", path)]


def test_bars_go_up_for_better_and_down_for_worse():
    text = difference_plots([row("a", [0.5, 0.5, 0.5, 0.5]), row("b", [1.0, 0.0, 0.5, 0.75])], "AP")
    assert 'class="better" d="M0 500H0V0H250V250H500V500H1000V500z"' in text
    assert 'class="worse" d="M0 500H750V1000H1000V500z"' in text
    assert "+0.0625 in the mean; better on 2, equal on 1, worse on 1" in text


def test_many_topics_are_drawn_as_some():
    values = [place / 2000 for place in range(2000)]
    text = difference_plots([row("a", [0.5] * 2000), row("b", values)], "AP")
    (better,) = re.findall(r'class="better" d="([^"]+)"', text)
    assert BARS // 2 <= len(heights(better)) <= BARS // 2 + 2
    assert "better on 999, equal on 1, worse on 1,000" in text


def test_curves_of_the_first_and_the_best_have_colours():
    rows = [row(chr(ord("a") + place), [place / 20], (1.0, 0.5, place / 20)) for place in range(20)]
    text = curve_plot(rows)
    coloured = re.findall(r'<path class="curve (c\d)" d="M[^"]*"><title>(\w)', text)
    assert dict(coloured) == {"c1": "a", **{f"c{place + 2}": "tsrqpon"[place] for place in range(HIGHLIGHTED - 1)}}
    assert text.count("curve behind") == 12 + 1
    assert "12 others" in text


def test_a_curve_stands_where_precision_is():
    assert 'd="M0 0 500 500 1000 1000"' in curve_plot([row("a", [0.5], (1.0, 0.5, 0.0))])
    assert 'd="M0 0 400 0 600 1000 1000 1000"' in curve_plot([row("a", [0.5], (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))])
    assert curve_plot([row("a", [0.5])]) == ""


def test_no_number_is_written_in_a_form_that_paths_do_not_have():
    assert [number(value) for value in (1e-9, -1e-9, 999.96, 1 / 3)] == ["0", "0", "1000", "0.3"]
    assert dots([(1.04, 2), (1.01, 2)], "x") == '<path class="dots x" d="M1 2h0"/>'
    assert Axis(0, 2, ()).down(0.5) == 750
