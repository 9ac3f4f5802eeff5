from dataclasses import replace

import pytest

from perikope.core.errors import InputError
from perikope.evaluation.experiment.outcome import ComparisonSettings, Outcome, Sweep, SystemOutcome
from perikope.evaluation.tuning.outcome import FoldOutcome, TuningOutcome

TUNED = TuningOutcome(
    ("sigma", "weights"),
    ((0.5, (1.0, 2.0)), (None, "uniform")),
    (0.25, 1 / 3),
    {"sigma": None, "weights": "uniform"},
    "MAP(D)",
    (FoldOutcome({"sigma": 0.5, "weights": (1.0, 2.0)}, 0.3, 0.1, 4),),
    9,
)


def outcome():
    values = {"nDCG@10": {"q1": 1 / 3, "q2": 0.0}, "MAP(D)": {"q1": 0.1 + 0.2, "q2": 1.0}}
    first = SystemOutcome("a/b <c>", "model bm25", values, (1.0, 0.5), TUNED, ("a note",))
    sweeps = (Sweep("10", (first, replace(first, name="été", tuned=None, curve=()))), Sweep("50", (first,)))
    return Outcome("Title", "Several\nlines", {"index": "abc"}, tuple(values), sweeps, ComparisonSettings("wilcoxon", "bh", 0.01))


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_saved_is_read_back_and_has_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        outcome().save(tmp_path / name)
    assert Outcome.load(tmp_path / "one") == outcome()
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert outcome().sweeps[0].systems[0].mean("MAP(D)") == pytest.approx(0.65)


def test_tables_of_systems_that_are_gone_go_too(tmp_path):
    outcome().save(tmp_path)
    smaller = replace(outcome(), sweeps=outcome().sweeps[1:])
    smaller.save(tmp_path)
    assert Outcome.load(tmp_path) == smaller
    assert len(list((tmp_path / "values").iterdir())) == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("experiment.json", '"version": 1', '"version": 9', "version 9"),
        ("experiment.json", '"sweeps"', '"sweep"', "damaged"),
        ("experiment.json", "{", "", "damaged"),
        ("values/2-01-a-b-c.tsv", "MAP(D)", "AP", "the columns are not those"),
        ("values/2-01-a-b-c.tsv", "1.0", "one", "tsv:3: 'one' is not a number"),
    ],
)
def test_damage_is_named(tmp_path, file, old, new, said):
    outcome().save(tmp_path)
    path = tmp_path / file
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        Outcome.load(tmp_path)


def test_a_folder_without_an_experiment_is_named(tmp_path):
    with pytest.raises(InputError, match="no finished experiment"):
        Outcome.load(tmp_path)
