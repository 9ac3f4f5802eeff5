"""Let a running server of the same user do a search, whose answer then comes without the start-up of a search.

The server runs the same command in a process that has everything loaded, and sends what it prints. Whatever is not as
expected makes the command search in its own process instead: no server, another version, another commit, an error.
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from perikope.core import command_socket
from perikope.core.files import MANIFEST_FILE

PATIENCE = 60.0
"""Seconds to wait for a server."""


def forward(arguments: Sequence[str]) -> bool:
    """Let a server run `perikope search` with these arguments, and print its answer; whether it has done so."""
    try:
        answer = _ask(arguments)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if answer is None:
        return False
    streams = {1: sys.stdout.buffer, 2: sys.stderr.buffer}
    for number, text in answer:
        streams[number].write(text.encode("utf-8"))
        streams[number].flush()
    return True


def _ask(arguments: Sequence[str]) -> list[tuple[int, str]] | None:
    """What a server prints for a search; None if there is none that has this commit of the index."""
    if not command_socket.is_forwarded(arguments) or not all(map(_is_utf8, (sys.stdout, sys.stderr))):
        return None
    folder = arguments[0]
    path = command_socket.socket_path(folder)
    if path is None or not command_socket.is_private(path.parent) or not command_socket.is_private(path):
        return None
    request = {
        "program": command_socket.program(),
        "folder": command_socket.identity_of_folder(folder),
        "generation": json.loads(Path(folder, MANIFEST_FILE).read_bytes())["generation"],
        "arguments": list(arguments),
        "terminals": [sys.stdout.isatty(), sys.stderr.isatty()],
        "columns": shutil.get_terminal_size().columns,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(path))
        if not command_socket.is_of_this_user(connection):
            return None
        connection.sendall(command_socket.packed(request))
        answer = json.loads(_received(connection, command_socket.length_of(_received(connection, 4))))
    is_right = answer["code"] == 0 and answer["generation"] == request["generation"]
    return [(int(number), str(text)) for number, text in answer["written"] if number in (1, 2)] if is_right else None


def _received(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise ConnectionError
        data += piece
    return bytes(data)


def _is_utf8(stream: Any) -> bool:
    return isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") == "utf8"
