"""Starts the soak program from a test, in a process with one thread, which can be forked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SEED = os.environ.get("PERIKOPE_SEED", "20")


def run(*arguments: str, folder: Path | None = None) -> tuple[int, list[dict[str, Any]]]:
    """Run the program; returns its exit code and the outcomes.

    `folder` is the folder for temporary files.
    """
    command = [sys.executable, "-m", "tests.soak", "--seed", SEED, "--json", *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False, env=os.environ | ({"TMPDIR": str(folder)} if folder else {})
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]
