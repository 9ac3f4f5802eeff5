"""Runs a program and says what it cost: wall-clock and CPU seconds, and the peak memory of it and all its children."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_INTERVAL = 0.05


@dataclass(slots=True)
class Measurement:
    """The cost of one program. Peaks are sums over the process tree, sampled 20 times a second."""

    wall: float = 0.0
    cpu: float = 0.0
    resident: int = 0
    """Bytes in memory; pages shared by several processes, such as libraries, count in each."""
    private: int = 0
    """Bytes of anonymous memory, which no file backs and the system cannot drop."""
    others: float = 0.0
    """Mean number of cores that other programs used meanwhile: where it is not near 0, wall-clock times mislead."""
    said: dict[str, float] = field(default_factory=dict)
    """The JSON object that the program printed on its last line."""
    problem: str = ""


class Sampler(threading.Thread):
    """Follows the memory of a process tree, and ends the tree where it passes a limit."""

    def __init__(self, pid: int, limit: int, seconds: float = math.inf) -> None:
        super().__init__(daemon=True)
        self.pid, self.limit, self.seconds = pid, limit, seconds
        self.resident = self.private = 0
        self.exceeded = ""
        self.finished = threading.Event()

    def run(self) -> None:
        started = time.perf_counter()
        while not self.finished.wait(_INTERVAL):
            resident = private = 0
            for pid in _tree(self.pid):
                mapped, shared = _statm(pid)
                resident += mapped
                private += mapped - shared
            self.resident, self.private = max(self.resident, resident), max(self.private, private)
            late = time.perf_counter() - started > self.seconds
            if (late or private > self.limit) and not self.exceeded:
                self.exceeded = f"time limit of {self.seconds / 60:.0f} min" if late else f"memory limit of {self.limit / 1e9:.1f} GB"
                os.killpg(self.pid, signal.SIGKILL)


def _tree(pid: int) -> list[int]:
    pids = [pid]
    for parent in pids:  # grows while it is walked
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                pids += [int(child) for child in children.read_text().split()]
            except OSError:  # a thread that has just ended
                continue
    return pids


def _statm(pid: int) -> tuple[int, int]:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0, 0
    return int(fields[1]) * _PAGE, int(fields[2]) * _PAGE


def busy() -> float:
    """Seconds of CPU that the whole machine has spent, and that its host has withheld."""
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


def memory_limit() -> int:
    """Half of what the machine has: a benchmark must not take the machine down."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE // 2


def run(
    command: Sequence[str], *, cwd: Path, limit: int | None = None, seconds: float = math.inf, environment: Mapping[str, str] | None = None
) -> Measurement:
    """Run a program in a separate session and measure it; a failure is a `problem`, not an exception."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started, busy_before = time.perf_counter(), busy()
        process = subprocess.Popen(command, cwd=cwd, stdout=output, stderr=errors, start_new_session=True, env=environment)
        sampler = Sampler(process.pid, limit or memory_limit(), seconds)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        others = max(0.0, (busy() - busy_before - cpu) / wall)
        sampler.finished.set()
        sampler.join()
        # Not ru_maxrss: it starts with the size of the process that forked this one.
        result = Measurement(wall, cpu, sampler.resident, sampler.private, others)
        output.seek(0)
        errors.seek(0)
        result.said = _last_object(output.read())
        if sampler.exceeded:
            result.problem = f"stopped at the {sampler.exceeded}"
        elif process.returncode:
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
            result.problem = lines[-1][:120] if lines else f"exit status {process.returncode}"
        return result


def _last_object(output: bytes) -> dict[str, float]:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        return {}
    content: dict[str, float] = json.loads(lines[-1])
    return content
