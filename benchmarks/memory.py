"""How memory and time grow with the collection: `python -m benchmarks memory [FACTORS] [--memory SIZE]`.

16 times the synthetic collection is 3.1 GB of text: some minutes, and twice that much room on disk. A build that needs
more than half of the machine's memory is stopped and says so.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import measure
from benchmarks.build import perikope_command
from benchmarks.common import ROOT, SCRATCH, Table, folder_bytes, megabytes, publish
from benchmarks.synthetic import SHORT, Collection


def memory_option(size: str) -> list[str]:
    """`--memory SIZE` where the command has it."""
    help_text = subprocess.run([sys.executable, "-m", "perikope", "index", "--help"], capture_output=True, text=True, check=True).stdout
    return ["--memory", size] if "--memory" in help_text else []


def _row(factor: int, sources: list[Path], options: list[str], first: list[float]) -> list[str]:
    target = SCRATCH / "index-memory"
    shutil.rmtree(target, ignore_errors=True)
    result = measure.run(perikope_command([str(path) for path in sources], str(target), *options), cwd=ROOT)
    size = folder_bytes(target) if target.exists() else 0
    shutil.rmtree(target, ignore_errors=True)
    read = sum(path.stat().st_size for path in sources)
    label = f"{factor}×"
    if result.problem:
        return [label, megabytes(read), f"n/a ({result.problem})"]
    first[:] = first or [result.wall, result.private]
    return [
        label,
        megabytes(read),
        f"{result.wall:.1f}",
        f"{result.wall / first[0]:.2f}",
        f"{result.cpu:.1f}",
        f"{read / 1e6 / result.wall:.1f}",
        f"{result.resident / 1e6:,.0f}",
        f"{result.private / 1e6:,.0f}",
        f"{result.private / first[1]:.2f}",
        megabytes(size),
        f"{result.others:.1f}",
    ]


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__)
    parser.add_argument("factors", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--documents", type=int, default=SHORT.documents, help="of one part")
    parser.add_argument("--tokens", type=int, default=SHORT.tokens, help="words a document")
    parser.add_argument("--memory", default="1G", metavar="SIZE", help="passed to `perikope index` where it has the option")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    memory = memory_option(options.memory)
    columns = ("", "JSON MB", "seconds", "×", "CPU s", "MB/s", "peak MB", "private MB", "×", "index MB", "others")
    table = Table(f"perikope index {' '.join(memory) or '(no --memory yet)'}: {options.documents:,} documents a part", columns)
    table.notes.append("×: by the first row. Parts differ in their seed only. peak: sum over the process tree; private: no file behind it.")
    table.notes.append("others: cores that other programs took meanwhile.")
    first: list[float] = []
    for factor in options.factors:
        sources = [Collection(options.documents, options.tokens, seed).file(SCRATCH) for seed in range(1, factor + 1)]
        table.rows.append(_row(factor, sources, memory, first))
        print("  ".join(table.rows[-1]), file=sys.stderr, flush=True)
    publish([table], options.markdown)


if __name__ == "__main__":
    main(sys.argv[1:])
