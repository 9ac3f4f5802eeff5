"""What a scenario is: a function that disturbs the program for as long as its trial goes on, and reports failures.

A scenario declares its budget: the operations that a full run tries at most and a reduced run tries exactly, and the
seconds that a full run takes at most. It also declares defects: each is a function that breaks the program, or the
scenario's own writer or reader, in a way that the scenario must report.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.resources import Held, measure, trend

MOST_FAILURES = 20
"""The number of failures after which a trial ends."""
MOST_SAMPLES = 400
MOST_TEXT = 3000
"""Characters of a failure that are kept."""


class Skipped(Exception):
    """The scenario cannot run on this machine; the message says why."""


@dataclass
class Trial:
    """One run of a scenario: its random source, its folder, its budget, and what happened."""

    seed: int
    folder: Path
    most: int
    least: int
    """Operations that are tried even if the time is over."""
    seconds: float
    wanted: str = ""
    """Words of the failure that a planted defect must cause; the trial ends with it."""
    tell: Callable[[str], None] = lambda text: None
    """Is told what the scenario is about to do, for the report if it does not come back."""
    operations: int = 0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    samples: list[Held] = field(default_factory=list)
    calls: int = 0
    distance: int = 1
    causes: dict[str, int] = field(default_factory=dict)
    """The number of failures by their cause, if the scenario knows it."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.started = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def goes_on(self) -> bool:
        """Whether another operation is to be tried."""
        if len(self.failures) >= MOST_FAILURES or self.operations >= self.most:
            return False
        if self.wanted and any(self.wanted in failure for failure in self.failures):
            return False
        return self.operations < self.least or self.elapsed < self.seconds

    def did(self, count: int = 1) -> None:
        """Count operations that were tried."""
        self.operations += count

    def doing(self, what: str) -> None:
        """Say what is tried now."""
        self.tell(f"operation {self.operations}: {what}"[:MOST_TEXT])

    def fail(self, what: str, cause: str = "") -> None:
        """Report a failure of the operation that is being tried; of several with one cause, the first is kept."""
        if cause:
            self.causes[cause] = self.causes.get(cause, 0) + 1
        if not cause or self.causes[cause] == 1:
            self.failures.append(f"operation {self.operations}: {what}"[:MOST_TEXT])

    def note(self, what: str) -> None:
        """Add a line below the table, such as what was left out."""
        self.notes.append(what)

    def watch(self, folder: Path | None = None, processes: Iterable[int] = ()) -> None:
        """Take a sample of what the processes (this one, if none is given) and the folder hold.

        Of many calls, samples are taken at even distances, so that a run of any length has some hundreds.
        """
        self.calls += 1
        if self.calls % self.distance == 0:
            self.samples.append(measure(folder or self.folder, processes))
        if len(self.samples) >= MOST_SAMPLES:
            self.samples, self.distance = self.samples[::2], 2 * self.distance

    def require_flat(self) -> None:
        """Report resources that grow steadily."""
        self.failures += trend(self.samples)

    def outcome(self) -> dict[str, Any]:
        """The operations, failures, notes, and the first and last sample, as plain values."""
        return {
            "operations": self.operations,
            "failures": self.failures,
            "notes": self.notes + [f"{count} failures like this: {cause}" for cause, count in self.causes.items() if count > 1],
            "first": asdict(self.samples[0]) if self.samples else None,
            "last": asdict(self.samples[-1]) if self.samples else None,
        }


@dataclass(frozen=True)
class Defect:
    """A defect that can be planted, and words of the failure by which the scenario must report it."""

    plant: Callable[[], None]
    reported: str


@dataclass(frozen=True)
class Scenario:
    """A scenario with its budget and its defects."""

    name: str
    run: Callable[[Trial], None]
    most: int
    """Operations of a full run at most."""
    reduced: int
    """Operations of a reduced run, and of a full run at least."""
    seconds: float
    """Seconds of a full run, if the user does not give another number."""
    defects: dict[str, Defect] = field(default_factory=dict)

    @property
    def help(self) -> str:
        """What the scenario does, in one sentence."""
        return (self.run.__doc__ or "").partition("\n")[0]


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, *, most: int, reduced: int, seconds: float = 120.0) -> Callable[[Callable[[Trial], None]], Scenario]:
    """Register a function as a scenario."""

    def register(run: Callable[[Trial], None]) -> Scenario:
        SCENARIOS[name] = Scenario(name, run, most, reduced, seconds)
        return SCENARIOS[name]

    return register


def defect(of: Scenario, name: str, *, reported: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function that plants a defect in the process of a scenario.

    The scenario must then have a failure with the words `reported`.
    """

    def register(plant: Callable[[], None]) -> Callable[[], None]:
        of.defects[name] = Defect(plant, reported)
        return plant

    return register
