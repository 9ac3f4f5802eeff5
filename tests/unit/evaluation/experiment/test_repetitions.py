"""Tables over the repetitions of systems, and reports on several sets of topics."""

from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome, average_by_topic
from perikope.evaluation.experiment.report import write_report
from perikope.evaluation.experiment.report.findings import find
from perikope.evaluation.experiment.report.repetitions import repetition_tables

GOOD = {f"q{number}": 0.8 + number / 100 for number in range(10)}
POOR = {qid: value - 0.3 + (int(qid[1:]) % 3) / 100 for qid, value in GOOD.items()}


def system(name, values, seeds, **options):
    repetitions = {seed: {"AP": values} for seed in range(1, 1 + seeds)}
    return SystemOutcome(name, f"settings of {name}", {"AP": values}, repetitions=repetitions, **options)


def outcome(*systems, label="c/t"):
    return Outcome("t", "", {}, ("AP",), (Sweep(label, systems),))


def test_systems_with_few_seeds_are_compared_over_topics():
    """Three seeds against three cannot come to p = 0.05 by ranks; 3 against 10 can."""
    apart, _ = repetition_tables(
        outcome(system("good", GOOD, 3, table="Apart"), system("poor", POOR, 3, table="Apart"), system("main", GOOD, 1))
    )
    assert "paired t-test over topics" in apart.how
    assert [row[1] for row in apart.rows] == ["good (3)", "poor (3)"]
    assert [row[2][0].beats for row in apart.rows] == ["b", ""]
    tables = repetition_tables(outcome(system("main", POOR, 10, also_in=("Apart",)), system("good", GOOD, 3, table="Apart")))
    assert [table.title for table in tables] == ["Over seeds: c/t", "Apart: c/t"]
    assert "Mann–Whitney" in tables[1].how
    assert [row[2][0].beats for row in tables[1].rows] == ["", "a"]


def test_the_mean_over_seeds_has_its_deviation():
    seeds = {1: {"AP": {"q": 0.2}}, 2: {"AP": {"q": 0.4}}}
    repeated = SystemOutcome("s", "", average_by_topic(seeds.values(), ["AP"]), repetitions=seeds)
    (table,) = repetition_tables(outcome(repeated))
    assert table.rows[0][2][0].text == "0.3000 ± 0.1414"
    assert table.spread == {"AP": {"s": [0.2, 0.4]}}


def test_systems_of_separate_tables_are_not_in_those_of_the_sweep():
    findings = find(outcome(system("main", GOOD, 2), SystemOutcome("words", "", {"AP": POOR}), system("apart", GOOD, 2, table="Apart")))
    assert [row.system.name for row in findings.tables[0].rows] == ["main", "words"]
    assert [table.title for table in findings.extra] == ["Over seeds: c/t", "Apart: c/t"]
    assert [[row[1] for row in table.rows] for table in findings.extra] == [["main (2)"], ["apart (2)"]]


def test_repetitions_are_saved_and_read_back(tmp_path):
    made = outcome(
        system("main", GOOD, 3, also_in=("Apart",)), system("apart", POOR, 2, table="Apart"), SystemOutcome("w", "", {"AP": GOOD})
    )
    made.save(tmp_path)
    assert Outcome.load(tmp_path) == made


def test_the_report_says_how_many_topics_each_set_has(tmp_path):
    few = {qid: GOOD[qid] for qid in list(GOOD)[:7]}
    sweeps = (
        Sweep("c/t", (SystemOutcome("a", "", {"AP": GOOD}), SystemOutcome("b", "", {"AP": POOR}))),
        Sweep("d/u", (SystemOutcome("a", "", {"AP": few}), SystemOutcome("b", "", {"AP": few}))),
    )
    write_report(Outcome("t", "", {}, ("AP",), sweeps), tmp_path)
    for name in ("report.md", "report.html", "report.tex"):
        text = (tmp_path / name).read_text()
        assert "Means over topics (c/t: 10 topics, d/u: 7 topics); the best" in text
    assert "<li>c/t: 10 topics</li><li>d/u: 7 topics</li>" in (tmp_path / "report.html").read_text()
    write_report(Outcome("t", "", {}, ("AP",), sweeps[:1]), tmp_path)
    assert "Means over 10 topics; the best" in (tmp_path / "report.md").read_text()
