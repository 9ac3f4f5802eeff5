"""Starts the reading process, gives it files, and ends it if a file takes too much time or memory."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

from perikope.core.errors import MissingExtra, MissingPackage, UnreadableFile
from perikope.core.file_limits import FileLimits
from perikope.formats._extraction.blocks import Extracted, from_plain

FILES_PER_PROCESS = 200
"""The number of files after which a new reading process is started, so that memory that a library loses is freed."""

_START = "import sys; sys.path[:] = {path!r}; from perikope.formats._extraction.serving import main; main()"
_NOWHERE = "http://127.0.0.1:9"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class _Ended(Exception):
    """The reading process ended, or was ended, before it answered."""

    def __init__(self, in_time: bool, status: int) -> None:
        super().__init__()
        self.in_time, self.status = in_time, status


class ReadingProcess:
    """One reading process. It is used by one thread at a time."""

    def __init__(self) -> None:
        # The process inherits the paths of modules, but not the folder that the user works in.
        code = _START.format(path=[entry for entry in sys.path if entry])
        environment = {key: value for key, value in os.environ.items() if key.lower() != "no_proxy"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            env={**environment, **dict.fromkeys(_PROXIES, _NOWHERE)},
            start_new_session=True,
        )
        self.files = 0

    def ask(self, request: dict[str, Any], data: bytes, seconds: float) -> dict[str, Any]:
        """The answer of the process. Raises `_Ended` if there is none in this time; the process is then ended."""
        in_time = True

        def stop() -> None:
            nonlocal in_time
            in_time = False
            self._process.kill()

        self.files += 1
        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps({**request, "size": len(data)}).encode() + b"\n")
            self._process.stdin.write(data)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            answer = self._process.stdout.read(int(line)) if line else b""
            if not line or len(answer) < int(line):
                raise BrokenPipeError
            return dict(json.loads(answer))
        except (OSError, ValueError):
            self.end()
            raise _Ended(in_time, self._process.returncode) from None
        finally:
            timer.cancel()

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


class ReadingProcesses:
    """The reading processes that wait for work in this Python process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[ReadingProcess] = []
        self._owner = os.getpid()
        atexit.register(self.close)

    def take(self) -> ReadingProcess:
        """A reading process that no one else uses; a new one if none waits."""
        with self._lock:
            if self._owner != os.getpid():
                # The pipes of this forked process lead to the processes of its parent.
                self._idle, self._owner = [], os.getpid()
            return self._idle.pop() if self._idle else ReadingProcess()

    def give_back(self, process: ReadingProcess) -> None:
        """Keep a process for the next file, or end it after many files."""
        if process.files >= FILES_PER_PROCESS:
            process.end()
            return
        with self._lock:
            self._idle.append(process)

    def close(self) -> None:
        """End all waiting processes that this Python process has started."""
        if self._owner == os.getpid():
            while self._idle:
                self._idle.pop().end()


_PROCESSES = ReadingProcesses()


def extract(kind: str, data: bytes, path: str, limits: FileLimits) -> Extracted:
    """The blocks of a file of a kind, such as `pdf`. Raises `UnreadableFile` if it cannot be read within the limits."""
    return from_plain(answer_of({"kind": kind}, data, path, limits))


def answer_of(request: dict[str, Any], data: bytes, path: str, limits: FileLimits) -> dict[str, Any]:
    """What the reading process answers. Raises `UnreadableFile` if the file cannot be read within the limits."""
    answer = _answer({**request, "memory": limits.memory}, data, path, limits)
    if "missing" in answer:
        package = answer["missing"]
        missing = MissingPackage(package, "a Parquet file") if request["kind"] == "parquet" else MissingExtra(package, "files")
        raise UnreadableFile(str(missing), path=path)
    if "unreadable" in answer:
        raise UnreadableFile(answer["unreadable"], path=path)
    if answer.get("failed") == "loading":
        raise UnreadableFile(f"needs more than {limits.memory >> 20} MB of memory to read; allow more (--file-memory)", path=path)
    if "failed" in answer:
        raise UnreadableFile(_too_much(limits), path=path)
    return answer


def _answer(request: dict[str, Any], data: bytes, path: str, limits: FileLimits) -> dict[str, Any]:
    process = _PROCESSES.take()
    while True:
        is_fresh = process.files == 0
        try:
            answer = process.ask(request, data, limits.seconds)
        except _Ended as ended:
            # A process that has read other files may have failed because of them.
            if ended.in_time and not is_fresh:
                process = ReadingProcess()
                continue
            raise UnreadableFile(_ending(ended, limits), path=path) from None
        if "failed" in answer and not is_fresh:  # libraries and files that were read before take memory, too
            process.end()
            process = ReadingProcess()
            continue
        _PROCESSES.give_back(process)
        return answer


def _ending(ended: _Ended, limits: FileLimits) -> str:
    if not ended.in_time:
        return f"takes more than {limits.seconds:g} seconds to read; allow more (--file-seconds), or split the file"
    if ended.status in (-signal.SIGKILL, -signal.SIGABRT):
        return _too_much(limits)
    return f"ends the library that reads it (status {ended.status}); the file is damaged, or made to do this"


def _too_much(limits: FileLimits) -> str:
    return f"is damaged, or takes more than {limits.memory >> 20} MB of memory to read; allow more (--file-memory), or split the file"
