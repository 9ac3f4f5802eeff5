"""Every scenario of the soak suite at a reduced size, and what they share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.soak.resources import Held, trend
from tests.soak.runner import Outcome, table
from tests.soak.scenario import SCENARIOS, Trial
from tests.soak.scenarios import MODULES
from tests.soak.starting import SEED, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="scenarios fork, and read what processes hold from /proc")


def test_every_scenario_has_a_defect():
    assert len(SCENARIOS) == len(MODULES)
    assert [name for name, scenario in SCENARIOS.items() if not scenario.defects or not scenario.help.endswith(".")] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_fails_in_a_reduced_run(name):
    code, (outcome,) = run("--reduced", "--scenario", name)
    assert outcome["failures"] == [], f"python -m tests.soak --reduced --scenario {name} --seed {SEED}"
    assert code == 0
    assert outcome["skipped"] or outcome["operations"] >= SCENARIOS[name].reduced


def held(values: list[float]) -> list[Held]:
    return [Held(value, value, 10 * value, 100 * value) for value in values]


def test_steady_growth_is_found_and_noise_is_not():
    assert trend(held([20 + (step % 12) for step in range(100)])) == []
    assert trend(held([*range(20), *[20.0] * 80])) == []
    found = trend(held([20 + step + (step % 12) for step in range(100)]))
    assert [line.partition(" ")[0] for line in found] == ["descriptors", "mappings", "memory", "disk"]
    assert trend(held([20 + step + (step % 12) for step in range(3)])) == []


def test_a_trial_ends_with_its_budget():
    trial = Trial(seed=1, folder=Path(), most=5, least=2, seconds=0)
    while trial.goes_on():
        trial.did()
    assert trial.operations == 2
    trial = Trial(seed=1, folder=Path(), most=5, least=2, seconds=float("inf"))
    while trial.goes_on():
        trial.did()
    assert trial.operations == 5


def test_failures_of_one_cause_are_kept_once_and_counted():
    trial = Trial(seed=1, folder=Path(), most=5, least=2, seconds=0)
    for number in range(3):
        trial.fail(f"failure {number}", cause="the same")
    trial.fail("another")
    assert trial.failures == ["operation 0: failure 0", "operation 0: another"]
    assert trial.outcome()["notes"] == ["3 failures like this: the same"]


def test_the_summary_has_a_row_per_scenario():
    outcomes = [Outcome("one", 2.0, 5, ("broken",), first=vars_of(1), last=vars_of(2)), Outcome("two", 0.0, skipped="no root")]
    lines = table(outcomes).splitlines()
    assert [line.split()[0] for line in lines] == ["scenario", "--------", "one", "two"]
    assert lines[2].split() == ["one", "5", "2", "1", *["1", "→", "2"] * 4]
    assert "skipped" in lines[3]


def vars_of(value: float) -> dict[str, float]:
    return dict.fromkeys(("descriptors", "mappings", "memory", "disk"), value)
