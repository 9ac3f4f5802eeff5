"""What the benchmarks share: where data lies, timing, tables as text and as Markdown."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ROOT / ".bench"
"""Generated collections, the peers' environment and indexes; ignored by git, removed by `make clean`."""
SINGLE = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
"""Environment variables that keep a process to one thread."""


def shared_data() -> Path:
    return Path(os.environ.get("PERIKOPE_SHARED_DATA", ROOT.parent / "shared" / "data"))


def timed(action, repeat=1):
    """Best wall-clock seconds of an action, and its result."""
    best, result = float("inf"), None
    for _ in range(repeat):
        started = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - started)
    return best, result


@dataclass(slots=True)
class Table:
    """Rows of text under a heading; the first column is left-aligned, the others right."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        lines = [self.columns, *self.rows]
        full = [line for line in lines if len(line) == len(self.columns)]  # a short one ends in a remark
        width = [max(len(line[i]) for line in (lines if i == 0 else full)) for i in range(len(self.columns))]
        aligned = [self._aligned(line, width) for line in lines]
        return "\n".join(["", self.title, "", aligned[0], "-" * len(aligned[0]), *aligned[1:], *(f"  {note}" for note in self.notes)])

    def markdown(self) -> str:
        rows = ["| " + " | ".join([*row, *[""] * (len(self.columns) - len(row))]) + " |" for row in self.rows]
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        head = [f"### {self.title}", "", "| " + " | ".join(self.columns) + " |", rule]
        return "\n".join([*head, *rows, "", *(f"- {note}" for note in self.notes), ""])

    @staticmethod
    def _aligned(line: Sequence[str], width: list[int]) -> str:
        return "  ".join(cell.rjust(width[i]) if i else cell.ljust(width[i]) for i, cell in enumerate(line))


def publish(tables: Sequence[Table], markdown: str | None) -> None:
    """Print tables, and add them to a Markdown file where one is named."""
    for table in tables:
        print(table.text(), flush=True)
    if markdown:
        with open(markdown, "a", encoding="utf-8") as file:
            file.write("\n".join(table.markdown() for table in tables) + "\n")


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.1f}" if value < 1e8 else f"{value / 1e6:,.0f}"
