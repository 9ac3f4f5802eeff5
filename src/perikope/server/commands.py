"""The sockets by which commands of the same user search the indexes of a running server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from pathlib import Path
from typing import Any

from perikope.core import command_socket
from perikope.server.handler import COMMAND
from perikope.server.pool import ReaderPool
from perikope.server.problems import Refusal
from perikope.server.served import ServedIndex, ServedIndexes

_REFUSED = {"code": 2, "generation": 0, "written": []}


class CommandSockets:
    """Listens on one private socket per index, unless another server of the user has it."""

    def __init__(self, served: ServedIndexes, pool: ReaderPool, seconds: float) -> None:
        self._served, self._pool, self._seconds = served, pool, seconds
        self._listening: dict[Path, tuple[asyncio.Server, list[int]]] = {}

    async def start(self) -> None:
        """Listen for commands. A socket that cannot be made is left out, since commands work without it."""
        for index in self._served.by_name.values():
            with contextlib.suppress(OSError):
                await self._listen(index)

    async def _listen(self, index: ServedIndex) -> None:
        path = command_socket.socket_path(index.folder)
        if path is None:
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not command_socket.is_private(path.parent) or _answers(path):
            return
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        path.chmod(0o600)
        status = os.lstat(path)
        server = await asyncio.start_unix_server(lambda reader, writer: self._answer(index, reader, writer), sock=listening)
        self._listening[path] = server, [status.st_dev, status.st_ino]

    async def close(self) -> None:
        """Listen no more, and remove the sockets that are still those of this server."""
        for path, (server, identity) in self._listening.items():
            server.close()
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                if [status.st_dev, status.st_ino] == identity:
                    path.unlink()
        self._listening.clear()

    async def _answer(self, index: ServedIndex, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._seconds + 5):
                request = json.loads(await reader.readexactly(command_socket.length_of(await reader.readexactly(4))))
                writer.write(command_socket.packed(await self._run(index, request, writer)))
                await writer.drain()
        except (OSError, EOFError, ValueError, KeyError, TypeError, TimeoutError, Refusal):
            pass  # the command then searches by itself
        finally:
            writer.close()

    async def _run(self, index: ServedIndex, request: dict[str, Any], writer: asyncio.StreamWriter) -> Any:
        if (
            not command_socket.is_of_this_user(writer.get_extra_info("socket"))
            or request["program"] != command_socket.program()
            or request["folder"] != command_socket.identity_of_folder(index.folder)
            or not command_socket.is_forwarded(request["arguments"])
        ):
            return _REFUSED
        index.look()
        meta = {"operation": COMMAND, "index": index.name, "generation": index.generation}
        facts, content = await self._pool.ask(meta, json.dumps(request).encode(), self._seconds)
        return json.loads(content) if facts["status"] == 200 else _REFUSED


def _answers(path: Path) -> bool:
    """Whether a server listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
