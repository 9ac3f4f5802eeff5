"""The loop: damages a file, has it read, and looks at what came of it."""

from __future__ import annotations

import random
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from perikope.core.errors import PerikopeError
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import GOOD, Target

FREE_SECONDS = 2.0
SECONDS_A_BYTE = 5e-5
"""Processor time that a reader may take: about a hundred times what it needs, so that only quadratic growth shows."""

MOST_FAILURES = 5


@dataclass(frozen=True)
class Failure:
    """A file that a reader did not cope with."""

    target: str
    suffix: str
    data: bytes
    report: str
    cause: str


def fuzz(target: Target, folder: Path, seconds: float, seed: int, most: int | None = None) -> tuple[int, list[Failure]]:
    """Read damaged files for some seconds, or `most` of them; return their number and one failure per cause."""
    chance = random.Random(f"{seed} {target.name}")
    inside = folder / "fuzzed"
    inside.mkdir()
    (inside / GOOD).write_text("Some text.")
    path = inside / f"file{target.suffix}"
    failures: dict[str, Failure] = {}
    ends = time.monotonic() + seconds
    count = 0
    for seed_file in target.seeds:
        # What is not damaged warms up what is compiled and loaded on the first call, and must be read.
        path.write_bytes(seed_file)
        target.run(path)
    while (count < most if most is not None else time.monotonic() < ends) and len(failures) < MOST_FAILURES:
        data = mutated(chance.choice(target.seeds), chance, target.seeds)
        path.write_bytes(data)
        count += 1
        if failure := attempt(target, path, data):
            failures.setdefault(failure.cause, failure)
    return count, list(failures.values())


def attempt(target: Target, path: Path, data: bytes) -> Failure | None:
    """What a reader did wrong with a file, if anything."""
    started = time.process_time()
    try:
        target.run(path)
    except PerikopeError as error:
        if len(str(error).splitlines()) != 1:
            return _failure(target, data, f"a message of several lines: {error}", "several lines")
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return _failure(target, data, traceback.format_exc(limit=-6), f"{type(error).__name__} {place.filename}:{place.lineno}")
    took = time.process_time() - started
    if took > FREE_SECONDS + SECONDS_A_BYTE * len(data):
        return _failure(target, data, f"{took:.1f} s of the processor for {len(data)} bytes", "time")
    return None


def _failure(target: Target, data: bytes, report: str, cause: str) -> Failure:
    return Failure(target.name, target.suffix, data, report, cause)
