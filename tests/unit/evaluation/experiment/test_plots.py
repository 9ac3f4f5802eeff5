"""The plots of a report: what is drawn is what was measured."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from perikope.evaluation.experiment.extras import Figure
from perikope.evaluation.experiment.outcome import SystemOutcome
from perikope.evaluation.experiment.report.drawing import Axis, dots, listed_axis, number, numeric_axis
from perikope.evaluation.experiment.report.findings import Row
from perikope.evaluation.experiment.report.plots import BARS, HIGHLIGHTED, box_of, box_plots, curve_plot, difference_plots, differences_of
from perikope.evaluation.experiment.report.surface import surface_svg, write_surface
from perikope.evaluation.tuning.outcome import TuningOutcome

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


@pytest.mark.parametrize("value", [0.0, 1e-4, 0.5, 0.97, 1.0])
def test_the_axis_of_an_equal_measure_stays_within_0_and_1(value):
    for axis in (numeric_axis([value, value]), numeric_axis([value], with_zero=True)):
        assert 0 <= axis.low < axis.high <= 1
        assert axis.low <= value <= axis.high


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


def tuned(parameters, settings, scores, chosen) -> TuningOutcome:
    return TuningOutcome(parameters, settings, scores, chosen, "AP")


def drawn(outcome: TuningOutcome, title: str = "model"):
    """The picture as a browser reads it: which paths it has, and which texts stand where."""
    root = etree.fromstring(surface_svg(outcome, title).encode())
    space = "{http://www.w3.org/2000/svg}"
    assert {element.tag.removeprefix(space) for element in root.iter()} <= {"svg", "title", "desc", "style", "rect", "text", "g", "path"}
    paths = {path.get("class"): path.get("d") for path in root.iter(f"{space}path")}
    return paths, [(text.text, float(text.get("x")), float(text.get("y"))) for text in root.iter(f"{space}text")], root


def test_a_surface_stands_alone_with_the_best_marked():
    grid = tuned(("a", "b"), ((1, "x"), (2, "x"), (1, "y"), (2, "y")), (0.1, 0.2, 0.3, 0.4), {"a": 2, "b": "y"})
    paths, texts, root = drawn(grid, "qsf")
    assert paths["chosen"] == "M500 0H1000V500H500z"
    said = [text for text, _, _ in texts]
    assert said[:2] == ["qsf", "AP, 4 settings, best: a = 2, b = y"]
    assert {"a", "b", "1", "2", "x", "y", "0.1000", "0.4000"} <= set(said)
    place = {text: (x, y) for text, x, y in texts}
    assert place["1"][0] < place["2"][0]
    assert place["1"][1] == place["2"][1]
    assert place["y"][1] < place["x"][1]
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 < x < width and 0 < y < height for _, x, y in texts)


def test_other_searches_have_a_picture_a_parameter():
    settings = ((1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1), (3, 1, 1))
    paths, texts, root = drawn(tuned(("a", "b", "c"), settings, (0.1, 0.2, 0.3, 0.4, 0.5), {"a": 3, "b": 1, "c": 1}))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}svg"))) == 1 + 2  # c has one value only
    assert paths["dots picked"]
    assert [text for text, _, _ in texts].count("AP") == 2


def test_nothing_breaks_out_of_a_surface_and_nothing_makes_none(tmp_path):
    hostile = '</text><script>alert(1)</script>"\x00\ud800]]>&'
    outcome = tuned((hostile, "b"), (("x", hostile), ("y", hostile), ("x", 2), ("y", 2)), (0.1, 0.2, 0.3, 0.4), {hostile: "y", "b": 2})
    drawn(outcome, hostile)
    assert surface_svg(tuned(("a",), ((1,),), (0.5,), {"a": 1}), "model") == ""
    assert not write_surface(tmp_path / "none.svg", tuned((), ((),), (0.5,), {}), "model")
    assert not (tmp_path / "none.svg").exists()
    assert write_surface(tmp_path / "one.svg", outcome, hostile)
    assert (tmp_path / "one.svg").read_text("utf-8") == surface_svg(outcome, hostile)
