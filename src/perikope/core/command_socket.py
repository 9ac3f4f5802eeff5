"""Where commands find a running server of an index: one Unix socket per index, in a private folder of the user.

A command and a server exchange one message each. A message is its length in four bytes, then JSON. The command checks
that folder and socket belong to this user alone, and that the server has the same program and the same commit.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOCAL = ("--out", "--xlsx", "--run", "--patent", "--claims", "--no-server")
"""Options of `perikope search` that need files or input of the user, or that ask for a search without a server."""
MOST = 1 << 24
"""Largest message, in bytes."""
_LENGTH = struct.Struct("<I")


def runtime_folder() -> Path | None:
    """The folder for the sockets of this user, which need not exist; None if the system has no such sockets."""
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "getuid"):
        return None
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given and is_private(given):
        return Path(given, "perikope")
    return Path(os.environ.get("TMPDIR") or "/tmp", f"perikope-run-{os.getuid()}")


def is_private(path: str | os.PathLike[str]) -> bool:
    """Whether a folder or socket belongs to this user, and nobody else may write to it. Links are not followed."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022 and not stat.S_ISLNK(status.st_mode)


def identity_of_folder(folder: str | os.PathLike[str]) -> list[int]:
    """What tells a folder from others, whatever path leads to it. Raises `OSError` if there is none."""
    status = os.stat(folder)
    return [status.st_dev, status.st_ino]


def socket_path(folder: str | os.PathLike[str]) -> Path | None:
    """The path of the socket of an index; None if there cannot be one. Raises `OSError` if there is no such folder."""
    runtime = runtime_folder()
    device, inode = identity_of_folder(folder)
    return None if runtime is None else runtime / f"{device:x}-{inode:x}.socket"


def program() -> list[str]:
    """What tells this program from another version, or from one in another environment."""
    from perikope import __version__

    return [__version__, str(Path(__file__).parents[1]), sys.prefix]


def is_forwarded(arguments: Sequence[str]) -> bool:
    """Whether a server can run a search with these arguments: INDEX, then a query or options."""
    if len(arguments) < 2 or arguments[0].startswith("-") or "-" in arguments:
        return False
    return not any(argument.startswith(option) for argument in arguments for option in LOCAL)


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user, as far as the system says so."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # only this user can open the socket
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(user == os.getuid())


def packed(message: Any) -> bytes:
    """A message as bytes. Raises `ValueError` if it is too long."""
    data = json.dumps(message).encode()
    if len(data) > MOST:
        raise ValueError("too long")
    return _LENGTH.pack(len(data)) + data


def length_of(head: bytes) -> int:
    """The length of a message from its first four bytes. Raises `ValueError` if it is too long."""
    (length,) = _LENGTH.unpack(head)
    if length > MOST:
        raise ValueError("too long")
    return int(length)
