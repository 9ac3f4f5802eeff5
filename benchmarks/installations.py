"""Two installations of perikope side by side: each has its own interpreter, its own processes and its own index."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.common import SINGLE

_WORKER = Path(__file__).with_name("worker.py")


def environment() -> dict[str, str]:
    """One thread per process, the same order of sets, and no path that mixes the modules of the installations."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | SINGLE | {"PYTHONHASHSEED": "0"}


class Installation:
    """A Python interpreter with perikope, and a worker process in it that answers requests until `close`."""

    def __init__(self, label: str, python: str) -> None:
        self.label = label
        self.python = os.path.abspath(python)  # a link in a virtual environment must stay a link
        self.start()
        self.facts = self.ask(action="facts")

    def start(self) -> None:
        """Start the worker process, or a new one after `close`."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lasts as long as the process)
        try:
            # -P: the folder of the worker must not be searched for modules.
            self._process = subprocess.Popen(
                [self.python, "-P", str(_WORKER)],
                env=environment(), cwd=tempfile.gettempdir(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            )  # fmt: skip
        except OSError as error:
            raise SystemExit(f"{self.label}: {self.python} cannot be started: {error.strerror}") from None

    def __str__(self) -> str:
        return f"{self.label}: perikope {self.facts['version']} in {self.facts['folder']}, Python {self.facts['python']}"

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer of the worker; a request that fails is answered with a `problem`."""
        self.send(**request)
        return self.receive()

    def send(self, **request: Any) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise self._failure()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def command(self, *arguments: str) -> list[str]:
        """A command line of perikope, to be run in a separate process."""
        return [self.python, "-P", "-m", "perikope", *arguments]

    def run(self, command: Sequence[str]) -> measure.Measurement:
        """What a process costs; ends the program where it fails."""
        result = measure.run(command, cwd=Path(tempfile.gettempdir()), environment=environment())
        if result.problem:
            raise SystemExit(f"{self.label}: {' '.join(command)} failed: {result.problem}")
        return result

    def models(self) -> list[str]:
        """The names that `perikope models` lists for --model."""
        shown = subprocess.run(self.command("models"), env=environment(), capture_output=True, text=True, check=True).stdout
        _, _, listed = shown.partition("--model")
        names = re.findall(r"^  (\w+) {2,}", listed.strip().partition("\n\n")[2].partition("\n\n")[0], re.MULTILINE)
        if not names:
            raise SystemExit(f"{self.label}: `perikope models` lists no models below --model")
        return names

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._process.wait()
        self._errors.close()

    def _failure(self) -> SystemExit:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return SystemExit(f"{self.label}: {self.python} failed: {lines[-1] if lines else f'exit status {self._process.returncode}'}")


def differing_packages(before: Installation, after: Installation) -> list[str]:
    """The packages that one installation lacks or has in another version; they may change how long a start takes."""
    one, other = before.facts["packages"], after.facts["packages"]
    return sorted((name for name in one.keys() | other.keys() if one.get(name) != other.get(name)), key=str.lower)
