"""What processes hold: descriptors, mappings and memory, and what a folder takes on disk; and whether it grows."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from statistics import median

KILOBYTE, MEGABYTE = 1 << 10, 1 << 20
PARENT_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of Linux."""
MOST_SAMPLES = 120
"""Samples that a trend is computed from; of more samples, evenly spaced ones are taken."""
WARM_UP = 1 / 3
"""Share of the samples that are left out: caches fill, and kernels are loaded."""
MOST_GROWTH = 0.25
"""The growth after the warm-up that counts as noise, as a share of the value."""


@dataclass(frozen=True, slots=True)
class Held:
    """What processes and a folder hold at one moment."""

    descriptors: float
    """Open files of the processes."""
    mappings: float
    """Mapped files of the folder, each counted once per process, also those that were removed since."""
    memory: float
    """Resident memory of the processes, in megabytes."""
    disk: float
    """Blocks of all files in the folder, in kilobytes."""


NAMES = tuple(field.name for field in fields(Held))
NOISE = Held(descriptors=8, mappings=8, memory=16, disk=128)
"""The growth that is always noise: a few segments more or less, and pages that the allocator keeps."""


def measure(folder: Path, processes: Iterable[int] = ()) -> Held:
    """What the processes (this one, if none is given) and the folder hold now; 0 where the system does not tell."""
    chosen = list(processes) or [os.getpid()]
    disk = sum(_blocks(os.path.join(root, name)) for root, _, names in os.walk(folder) for name in names) / KILOBYTE
    return Held(
        sum(_descriptors(process) for process in chosen),
        sum(_mappings(process, folder) for process in chosen),
        sum(_memory(process) for process in chosen),
        disk,
    )


def growth(values: Sequence[float]) -> float:
    """The growth of evenly spaced values after the warm-up, by the median slope of all pairs (Theil and Sen)."""
    kept = list(values)[int(len(values) * WARM_UP) :]
    step = max(1, len(kept) // MOST_SAMPLES)
    chosen = kept[::step]
    if len(chosen) < 4:
        return 0.0
    slope = median((chosen[j] - chosen[i]) / (j - i) for i, j in combinations(range(len(chosen)), 2))
    return slope * (len(chosen) - 1)


def trend(samples: Sequence[Held]) -> list[str]:
    """One line per resource that grows steadily after the warm-up; empty where all are flat."""
    lines = []
    for name in NAMES:
        values = [float(getattr(sample, name)) for sample in samples]
        grown = growth(values)
        usual = median(values[: max(1, len(values) // 2)] or [0.0])
        if grown > getattr(NOISE, name) + MOST_GROWTH * usual:
            lines.append(f"{name} grow steadily: {values[0]:.0f} at the start, {values[-1]:.0f} at the end, {len(values)} samples")
    return lines


def end_with_parent() -> None:
    """Let this process, which was just forked, be killed when its parent ends; Linux only."""
    library = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _descriptors(process: int) -> int:
    try:
        return len(os.listdir(f"/proc/{process}/fd"))
    except OSError:
        return 0


def _mappings(process: int, folder: Path) -> int:
    try:
        lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    except OSError:
        return 0
    return sum(str(folder) in line for line in lines)


def _memory(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


def _blocks(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0  # removed meanwhile
