"""Names of processes, by which `ps` and `top` tell those of a server apart.

Linux has two: the name of the program (`ps -o comm`, at most 15 bytes), and its command line (`ps -o args`), which lies
in the memory of the process. A process that was forked has the command line of the fork server, so it is overwritten.
On other systems, processes keep their names. The package setproctitle does the same in C for more systems; it is not
worth a dependency.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path

PROGRAM = "perikope"
SERVER, READER, WRITER, WATCHER = "server", "reader", "writer", "watcher"
FORK_SERVER, FOLDER_READER = "fork server", "folder reader"
"""The kinds of processes of a server."""
_SET_NAME = 15
"""`PR_SET_NAME` of `prctl`."""
_LONGEST_NAME = 15
_ARGUMENTS = slice(45, 47)
"""Where `/proc/self/stat` has the addresses of the command line, in the fields after the name of the program."""


def name_process(kind: str, number: int | None = None, *, keeps_command: bool = False) -> None:
    """Name this process by its kind and number. `keeps_command` is whether its command line stays as it is."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_NAME, f"{PROGRAM}-{kind.partition(' ')[0]}".encode()[:_LONGEST_NAME], 0, 0, 0)
        if not keeps_command:
            _overwrite_command(f"{PROGRAM}: {kind}" if number is None else f"{PROGRAM}: {kind} {number}")


def _overwrite_command(text: str) -> None:
    """Write a text over the command line of this process, cut to its length."""
    stat = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = map(int, stat[_ARGUMENTS])
    # The system gives no addresses to a process that may not know them.
    if not 0 < start < end or len(Path("/proc/self/cmdline").read_bytes()) != end - start:
        return
    # If the last byte is not zero, the system shows the environment too.
    ctypes.memmove(start, text.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)
