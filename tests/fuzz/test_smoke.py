"""A short run of the fuzzing, always with the same damage; `make fuzz` runs longer, with other damage each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from perikope.core.errors import InputError
from perikope.formats import FORMATS
from tests.fuzz.fuzzing import attempt, fuzz
from tests.fuzz.targets import Target, targets

TARGETS = targets()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_files_are_read_or_refused(target: Target, tmp_path: Path) -> None:
    count, failures = fuzz(target, tmp_path, 0, seed=1, most=25)
    assert not failures, failures[0].report
    assert count == 25


def test_every_format_is_a_target() -> None:
    assert set(FORMATS.names()) <= {target.name for target in TARGETS}


def test_what_a_reader_does_wrong_is_seen(tmp_path: Path) -> None:
    def crash(path: Path) -> None:
        raise ValueError("no")

    def babble(path: Path) -> None:
        raise InputError("one\ntwo")

    def refuse(path: Path) -> None:
        raise InputError("no")

    def work(path: Path) -> None:
        while time_left():
            pass

    from time import process_time

    ends = process_time() + 2.5

    def time_left() -> bool:
        return process_time() < ends

    outcomes = [attempt(Target("t", [b"x"], run), tmp_path, b"x") for run in (crash, babble, refuse, work)]
    assert [failure and failure.cause.partition(" ")[0] for failure in outcomes] == ["ValueError", "several", None, "time"]
