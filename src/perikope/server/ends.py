"""The end of a process of a server, as the log reports it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NO_REQUEST = "none"
REPEATED = "given to another process"
"""What became of a request whose process ended."""


def answered_with(status: int) -> str:
    """What became of a request that was answered with this status."""
    return f"answered with {status}"


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """A process that ended while the server ran."""

    process: str
    """`reader` or `writer`."""
    pid: int
    exit_code: int | None
    """The exit status; the negative number of a signal that ended the process; None if it is not known."""
    request: str
    """What became of the request that the process had."""

    def facts(self) -> dict[str, Any]:
        """What the log says about it."""
        return {"process": self.process, "pid": self.pid, **self._how(), "request": self.request}

    def _how(self) -> dict[str, Any]:
        if self.exit_code is None or self.exit_code >= 0:
            return {"status": self.exit_code}
        try:
            return {"signal": signal.Signals(-self.exit_code).name}
        except ValueError:
            return {"signal": -self.exit_code}


OnEnd = Callable[[ProcessEnd], None]
"""A function that is called when a process has ended."""


def ignore_end(end: ProcessEnd) -> None:
    """Do nothing about the end of a process."""
