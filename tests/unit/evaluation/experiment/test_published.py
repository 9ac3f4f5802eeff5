"""Published figures beside ours, improvement over a reference, and the tables and figures that a report derives."""

import csv
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from perikope.core.configuration import Location
from perikope.core.errors import InputError
from perikope.evaluation.experiment.extras import ExtraFigure, ExtraTable, Figure, Series
from perikope.evaluation.experiment.outcome import ComparisonSettings, Outcome, Sweep, SystemOutcome
from perikope.evaluation.experiment.plan import parse_plan, protocol_names, protocol_text
from perikope.evaluation.experiment.plan_keys import ExperimentKeys
from perikope.evaluation.experiment.plan_parts import SystemPlan
from perikope.evaluation.experiment.published import parse_cell, read_published
from perikope.evaluation.experiment.report import write_report
from perikope.evaluation.experiment.report.extra_figures import figure_svg
from perikope.evaluation.experiment.report.findings import find
from perikope.evaluation.experiment.report.markdown import markdown_report
from perikope.evaluation.experiment.report.page import html_report
from perikope.evaluation.tuning.outcome import TuningOutcome
from tests.unit.evaluation.conftest import PLAN

PUBLISHED = """
[[published]]
name = "Table 9"
source = "A paper, section 4"
about = "All topics"
columns = ["MAP(D)"]
rows = [
    { name = "best official run", values = ["0.5"] },
    { name = "Sections", system = "section", documents = 4, values = ["0.25^*"] },
]
"""
TOPICS = [f"q{number}" for number in range(8)]


def planned(published: str = PUBLISHED, comparison: str = ""):
    return parse_plan(PLAN + comparison + published, "experiment.toml", Path("folder"))


def system(name, *values, **given):
    return SystemOutcome(name, "", {"AP": dict(zip(TOPICS, values, strict=True))}, **given)


def table_called(findings, title):
    return next(table for table in findings.extra if table.title == title)


def test_a_plan_has_its_published_tables():
    (table,) = planned().published
    assert (table.name, table.columns, [row.name for row in table.rows]) == ("Table 9", ("MAP(D)",), ["best official run", "Sections"])
    assert (table.rows[1].documents, table.rows[1].cells[0].value, table.rows[1].cells[0].marks) == (4, 0.25, "*")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('system = "section"', 'system = "sections"', r"experiment.toml: \[published Table 9.row Sections\] system is wrong"),
        ('columns = ["MAP(D)"]', 'columns = ["MAP"]', r"\[published Table 9\] columns is wrong: unknown measure of this experiment 'MAP'"),
        ('"0.25^*"', '"0,25"', r"\[published Table 9.row Sections\] values has the cell '0,25'; write cells like"),
        ('["0.25^*"]', '["0.25", "0.3"]', r"row Sections\] values has 2 values for 1 columns"),
        ("documents = 4", "documents = 5", r"row Sections\] documents is wrong: unknown number of fetched documents '5'"),
        ("documents = 4,", "", r"row Sections\] documents is missing: \[sweep\] has 2 numbers of documents"),
        ('name = "best official run", ', "", r"row 1\] name is missing"),
        ('source = "A paper, section 4"', "", r"\[published Table 9\] source is missing"),
        ('about = "All topics"', 'topics = "a/b"', r"\[published Table 9\] topics is wrong: unknown reported set of topics 'a/b'"),
        ('about = "All topics"', 'page = "7"', r"unknown key in \[published Table 9\] 'page'"),
        (
            'columns = ["MAP(D)"]',
            'beside = "parameters"\ncolumns = ["gamma"]',
            r"Table 9\] columns is wrong: unknown tuned parameter of section",
        ),
    ],
)
def test_a_wrong_published_table_is_named(old, new, said):
    assert old in PUBLISHED
    with pytest.raises(InputError, match=said):
        planned(PUBLISHED.replace(old, new))


def test_an_unknown_reference_is_named():
    with pytest.raises(InputError, match=r"\[comparison\] reference is wrong: unknown system 'bm52'; did you mean 'bm25'"):
        planned("", '\n[comparison]\nreference = "bm52"\n')


@pytest.mark.parametrize("text", ["0.1 0.2", "x", "0.1^", "1e3", "0.1 ± ", "nan", "0.1 (2)", "--"])
def test_what_is_no_cell_is_refused(text):
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_cell(text)


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_has_the_tables_of_its_paper(name):
    """The systems and measures that published tables name exist. Kinds of systems need not be installed for this."""
    content = tomllib.loads(protocol_text(name))
    keys = ExperimentKeys.read({key: content[key] for key in ("measures", "published")}, Location(name, "an experiment"))
    systems = [SystemPlan(one["name"], runs={"any": Path()}) for one in content["systems"]]
    tables = read_published(keys, systems, (), content.get("sweep", {}).get("documents", ()))
    assert [table.name for table in tables] == {
        "albarede2021": ["Table 2", "Table 3", "Table 4"],
        "albarede2023": ["Table 3", "Table 4", "Table 5", "Table 6", "Table 7"],
        "beigbeder2015": ["Table 2", "Table 3", "Table 4", "Table 5"],
        "carmel2013": ["Table 1, 2009", "Table 1, 2010"],
        "gobeill2012": ["Table 1"],
    }[name]
    assert all(any(row.system for row in table.rows) for table in tables)


def test_the_importance_of_relations_was_copied_right():
    """The paper's shares add up to 100% per layer, apart from rounding."""
    table = next(table for table in tomllib.loads(protocol_text("albarede2023"))["published"] if table["name"] == "Table 6")
    for row in table["rows"]:
        assert sum(map(float, row["values"])) == pytest.approx(100, abs=0.6)


def test_improvements_of_the_paper_follow_from_its_values():
    """The printed improvements over Reference are those of the printed values, apart from rounding."""
    for table in tomllib.loads(protocol_text("beigbeder2015"))["published"][1:3]:
        rows = [[parse_cell(text) for text in row["values"]] for row in table["rows"]]
        for cells in rows:
            for cell, reference in zip(cells, rows[0], strict=True):
                assert cell.change == pytest.approx(100 * (cell.value / reference.value - 1), abs=0.11)


def test_published_values_stand_beside_ours(tmp_path):
    sweeps = (
        Sweep("4", (system("a", *[0.2] * 8), system("section", *[0.5] * 8)), "c/t", 4),
        Sweep("100", (system("a", *[0.2] * 8), system("section", *[0.9] * 8)), "c/t", 100),
    )
    published = [replace(table, columns=("AP",)) for table in planned().published]
    outcome = Outcome("t", "", {}, ("AP",), sweeps, ComparisonSettings(reference="a"), published=tuple(published))
    table = table_called(find(outcome), "Beside the paper: Table 9")
    assert table.columns == ("AP: paper", "AP: ours", "AP: ours − paper")
    official, ours = ([cell and cell.text for cell in cells] for _, _, cells in table.rows)
    assert (official, ours) == (["0.5", None, None], ["0.25", "0.5000", "+0.2500"])
    assert table.rows[1][2][0].beats == "*"
    assert "A paper, section 4: Table 9." in table.how
    write_report(outcome, tmp_path)
    rows = list(csv.DictReader((tmp_path / "published.csv").read_text("utf-8").splitlines()))
    assert [(row["row"], row["printed"], row["ours"], row["difference"]) for row in rows] == [
        ("best official run", "0.5", "", ""),
        ("Sections", "0.25", "0.5", "0.25"),
    ]
    write_report(replace(outcome, published=()), tmp_path)
    assert not (tmp_path / "published.csv").exists()


def test_values_in_percent_are_compared_with_the_mean_and_deviation_over_seeds():
    cells = (parse_cell("46.4^ln ± 1.5", percent=True),)
    (table,) = planned().published
    table = replace(table, percent=True, columns=("AP",), rows=(replace(table.rows[1], documents=0, cells=cells),))
    repetitions = {seed: {"AP": {"q": value}} for seed, value in ((1, 0.4), (2, 0.6))}
    repeated = SystemOutcome("section", "", {"AP": {"q": 0.5}}, repetitions=repetitions)
    findings = find(Outcome("t", "", {}, ("AP",), (Sweep("s", (repeated,)),), published=(table,)))
    cells = table_called(findings, "Beside the paper: Table 9").rows[0][2]
    assert [cell.text for cell in cells] == ["46.4 ± 1.5", "50.00 ± 14.14", "+3.60"]


def test_published_parameters_and_tables_stand_beside_ours():
    (table,) = planned().published
    chosen = replace(table, beside="parameters", columns=("alpha",), rows=(replace(table.rows[1], documents=0),))
    tuned = TuningOutcome(("alpha",), ((0.1,), (0.3,)), (0.2, 0.4), {"alpha": 0.3}, "AP")
    tags = replace(table, beside="Tags", columns=("weight",), rows=(replace(table.rows[1], system="title", documents=0),))
    learned = ExtraTable("Tags", "", ("weight",), (("", "title", (Figure(2.0, "2.00"),)),), head="Tag")
    one = system("section", *[0.5] * 8, tuned=tuned, tables=(learned,))
    findings = find(Outcome("t", "", {}, ("AP",), (Sweep("s", (one,)),), published=(chosen, tags)))
    rows = [[cell.text for cell in table.rows[0][2]] for table in findings.extra if table.title.startswith("Beside")]
    assert rows == [["0.25", "0.3", "+0.05"], ["0.25", "2.00", "+1.75"]]
    parameters = table_called(findings, "Chosen parameters: s")
    assert (parameters.rows[0][2][0].text, "Values tried: alpha 0.1, 0.3" in parameters.how) == ("0.3", True)
    missing = find(Outcome("t", "", {}, ("AP",), (), published=(tags,)))
    assert "The report has no table Tags" in missing.extra[-1].how


def test_improvement_is_in_percent_with_a_star_where_it_is_significant():
    low = [0.1, 0.2, 0.3, 0.25, 0.15, 0.2, 0.3, 0.1]
    systems = (
        system("same", *low),
        system("reference", *low),
        system("better", *[value + 0.1 + value / 10 for value in low]),
        system("chance", *[0.9, *low[1:]]),
    )
    settings = ComparisonSettings("wilcoxon", "none", 0.05, "reference")
    table = table_called(find(Outcome("t", "", {}, ("AP",), (Sweep("s", systems),), settings)), "Improvement over “reference”")
    cells = {name: [(cell.text, cell.beats) for cell in cells] for _, name, cells in table.rows}
    assert cells["reference"] == [("0.2000", ""), ("0.0%", "")]
    assert cells["better"] == [("0.3200", "*"), ("+60.0%", "")]
    assert cells["chance"] == [("0.3000", ""), ("+50.0%", "")]
    assert "Wilcoxon signed-rank test, two-tailed, p ≤ 0.05, not corrected" in table.how


def test_measures_are_drawn_by_documents_and_by_the_parameter_in_which_systems_differ():
    values = [0.1] * 8
    systems = [
        system(f"{kernel} {sigma}", *[sigma / 1000] * 8, model=f"plm(kernel={kernel},sigma={sigma},lam)")
        for kernel, sigma in (("gauss", 10), ("gauss", 100), ("gauss", 500), ("trapezoid", 10), ("trapezoid", 100))
    ]
    sweeps = tuple(Sweep(str(k), (system("psg", *values, model="psg"), *systems), "c/t", k) for k in (5, 10))
    figures = {drawn.title: drawn for drawn in find(Outcome("t", "", {}, ("AP",), sweeps, ComparisonSettings(reference="psg"))).figures}
    assert list(figures) == ["AP by fetched documents", "AP by sigma: 5", "AP by sigma: 10"]
    assert figures["AP by fetched documents"].series[0] == Series("psg", ((5, pytest.approx(0.1)), (10, pytest.approx(0.1))))
    gauss, reference = figures["AP by sigma: 5"].series
    assert gauss.name == "plm"
    assert [x for x, _ in gauss.points] == [10, 100, 500]
    assert reference.name == "psg"


def test_a_figure_is_in_every_form_and_has_the_same_bytes_each_time(tmp_path):
    figures = (
        ExtraFigure("Influence of a query", "position", "influence", (Series("composer", ((0, 0), (1, 1))), Series("museum", ((0, 0.5),)))),
        ExtraFigure("By tenth", "tenth", "share", (Series("relevant", tuple((n, n / 55) for n in range(1, 11))),), "A prior.", "bars"),
    )  # fmt: skip
    one = system("a", *[0.5] * 8, figures=figures[1:])
    outcome = Outcome("t", "", {}, ("AP",), (Sweep("s", (one, replace(one, name="b"))),), figures=figures[:1])
    outcome.save(tmp_path / "saved")
    assert Outcome.load(tmp_path / "saved") == outcome
    for folder, written in (("a", outcome), ("b", Outcome.load(tmp_path / "saved"))):
        write_report(written, tmp_path / folder)
    names = sorted(path.relative_to(tmp_path / "a").as_posix() for path in (tmp_path / "a").rglob("*.svg"))
    assert names == ["figures/01-By-tenth-a-b.svg", "figures/02-Influence-of-a-query.svg"]
    for path in (tmp_path / "a").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    for name in ("report.md", "report.tex", "report.html"):
        assert "Influence of a query" in (tmp_path / "a" / name).read_text("utf-8")
    write_report(replace(outcome, figures=()), tmp_path / "a")
    assert not (tmp_path / "a" / names[1]).exists()
    svg = figure_svg(figures[1])
    assert svg.count('class="bar c2"') == 1
    assert len(re.findall(r"M[\d.]+ [\d.]+H", svg.split('class="bar c2" d="')[1].split('"')[0])) == 10


def test_systems_that_learned_the_same_share_a_table():
    learned = ExtraTable("Tags", "how", ("weight",), (("", "title", (Figure(2.0, "2.00"),)),), head="Tag")
    systems = (system("h", *[0.5] * 8, tables=(learned,)), system("hw", *[0.5] * 8, tables=(learned,)))
    text = markdown_report(find(Outcome("t", "", {}, ("AP",), (Sweep("s", systems),))))
    assert text.count("## Tags: h; hw") == 1
    assert "|  | tag | weight |" in text
    other = replace(learned, rows=(("", "title", (Figure(3.0, "3.00"),)),))
    sweeps = (Sweep("5", systems[:1]), Sweep("10", (replace(systems[0], tables=(other,)),)), Sweep("20", systems[:1]))
    findings = find(Outcome("t", "", {}, ("AP",), sweeps))
    assert [table.title for table in findings.extra] == ["Tags: h, 5", "Tags: h, 10"]


def test_curves_that_are_zero_everywhere_are_not_drawn():
    """Results that are elements have other names than judged passages, so no rank is known."""
    systems = tuple(system(name, *[0.5] * 8, curve=(0.0,) * 101) for name in ("a", "b"))
    assert "Precision and recall" not in html_report(find(Outcome("t", "", {}, ("AP",), (Sweep("s", systems),))))
    shown = (systems[0], replace(systems[1], curve=(0.5,) * 101))
    assert "Precision and recall" in html_report(find(Outcome("t", "", {}, ("AP",), (Sweep("s", shown),))))
