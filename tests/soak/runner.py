"""Runs scenarios, each in a forked process with a folder of its own, so that a crash or a hang ends only that one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.soak.resources import NAMES, end_with_parent, measure
from tests.soak.scenario import Scenario, Skipped, Trial

PATIENCE = 900.0
"""Seconds after the end of its time after which a scenario counts as hanging."""
TRIES = 2
"""How many times as many operations as a reduced run may be needed to notice a planted defect."""
COLUMNS = ("scenario", "operations", "seconds", "failures", *NAMES)


@dataclass(frozen=True)
class Outcome:
    """What a scenario did."""

    scenario: str
    seconds: float
    operations: int = 0
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: str = ""
    first: dict[str, float] | None = None
    last: dict[str, float] | None = None

    def row(self) -> list[str]:
        """The cells of the summary table."""
        found = "skipped" if self.skipped else str(len(self.failures))
        held = [f"{self.first[name]:.0f} → {self.last[name]:.0f}" if self.first and self.last else "–" for name in NAMES]
        return [self.scenario, str(self.operations), f"{self.seconds:.0f}", found, *held]


def carry_out(scenario: Scenario, seed: int, seconds: float | None = None, *, reduced: bool = False, planted: str = "") -> Outcome:
    """Run a scenario. A reduced run tries a fixed number of operations; `planted` names a defect of the scenario."""
    limit = float("inf") if reduced else scenario.seconds if seconds is None else seconds
    # A planted defect ends its trial as soon as it is reported, so it may take longer than a reduced run.
    most = scenario.most if not reduced else TRIES * scenario.reduced if planted else scenario.reduced
    folder = Path(tempfile.mkdtemp(prefix="perikope-soak-"))
    started = time.monotonic()
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        wanted = scenario.defects[planted].reported if planted else ""
        _be_child(writing, scenario, Trial(seed, folder, most, min(most, scenario.reduced), limit, wanted), planted)
    os.close(writing)
    try:
        content = _listen(reading, child, PATIENCE + (0 if reduced else 2 * limit))
    finally:
        _end(child)
        os.close(reading)
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        content["failures"] = [*content.get("failures", ()), f"{folder} could not be removed"]
    took = time.monotonic() - started
    return Outcome(scenario.name, took, **{key: tuple(value) if isinstance(value, list) else value for key, value in content.items()})


def _be_child(pipe: int, scenario: Scenario, trial: Trial, planted: str) -> None:
    """Run the scenario and write its outcome to a pipe; does not return."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_with_parent()
        os.setsid()  # so that all processes of the scenario can be ended together
        temporary = trial.folder / "temporary"
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        trial.tell = lambda text: _send(pipe, {"doing": text})
        outcome: dict[str, Any] = {}
        first = measure(trial.folder)
        try:
            if planted:
                scenario.defects[planted].plant()
            scenario.run(trial)
        except Skipped as why:
            outcome["skipped"] = str(why)
        except BaseException:
            trial.fail(f"the scenario stopped\n{traceback.format_exc(limit=-8)}")
        if not trial.samples:
            trial.samples += [first, measure(trial.folder)]
        _send(pipe, {"outcome": trial.outcome() | outcome})
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _send(pipe: int, message: dict[str, Any]) -> None:
    data = (json.dumps(message) + "\n").encode()
    while data:
        data = data[os.write(pipe, data) :]


def _listen(pipe: int, child: int, patience: float) -> dict[str, Any]:
    """Read what a scenario sends until its outcome; a scenario that dies or hangs has failed at what it did last."""
    ends = time.monotonic() + patience
    data, doing = b"", "nothing yet"
    while True:
        ready = select.select([pipe], [], [], max(0.0, min(60.0, ends - time.monotonic())))[0]
        received = os.read(pipe, 1 << 16) if ready else b""
        *lines, data = (data + received).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "outcome" in message:
                return message["outcome"]
            doing = message["doing"]
        if ready and not received:
            return {"failures": [f"the process of the scenario died at {doing}"]}
        if not ready and time.monotonic() >= ends:
            return {"failures": [f"hung at {doing}"]}


def _end(child: int) -> None:
    """End the process of a scenario and all processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def table(outcomes: list[Outcome]) -> str:
    """The summary: one row per scenario."""
    rows = [list(COLUMNS), *(outcome.row() for outcome in outcomes)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    cells = [[row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))] for row in rows]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(row) for row in cells)
