"""Every planted defect is reported by its scenario; otherwise the scenario could not fail."""

from __future__ import annotations

import sys

import pytest

from tests.soak.scenario import SCENARIOS
from tests.soak.scenarios import MODULES
from tests.soak.starting import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="scenarios fork, and read what processes hold from /proc")
assert MODULES  # importing them registers them


@pytest.mark.parametrize("name", SCENARIOS)
def test_planted_defects_are_reported(name):
    code, outcomes = run("--prove", "--scenario", name)
    assert [outcome["defect"] for outcome in outcomes] == list(SCENARIOS[name].defects)
    assert [outcome["defect"] for outcome in outcomes if not outcome["reported"] and not outcome["skipped"]] == []
    assert code == 0


def test_folders_are_removed_and_a_failure_is_an_exit_code(tmp_path):
    code, (outcome,) = run("--reduced", "--scenario", "commits", "--defect", "a commit is not seen", folder=tmp_path)
    assert outcome["failures"]
    assert code == 1
    assert list(tmp_path.iterdir()) == []
