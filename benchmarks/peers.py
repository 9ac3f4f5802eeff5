"""The peers' environment, apart from the project's: made once in `.bench/venv`, with pinned versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.common import SCRATCH

PINNED = {
    "tantivy": ("tantivy==0.27.0",),
    "bm25s": ("bm25s==0.3.16", "PyStemmer==3.1.0"),
    "pyterrier-pisa": ("pyterrier-pisa==0.4.9", "python-terrier==1.0", "pyterrier==1.1.2", "pyterrier-alpha==0.16.5"),
}
_VENV = SCRATCH / "venv"


def python(peer: str) -> Path:
    """The interpreter with a peer installed; raises RuntimeError with the reason where it cannot be."""
    interpreter = _VENV / "bin" / "python"
    installed = _VENV / f"installed-{'-'.join(PINNED[peer]).replace('==', '-')}"
    if not installed.exists():
        if not interpreter.exists():
            _checked([sys.executable, "-m", "venv", str(_VENV)])
        _checked([str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", *PINNED[peer]])
        installed.touch()
    return interpreter


def _checked(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        raise RuntimeError(lines[-1][:120] if lines else f"exit status {result.returncode}")
