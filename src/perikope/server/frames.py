"""Messages between the processes of a server: a JSON object and a body of bytes, each with its length before it."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import orjson

Message = tuple[dict[str, Any], bytes]
"""What the message says, and a body that only its receiver reads."""

_LENGTHS = struct.Struct("!IQ")


def packed(meta: dict[str, Any], body: bytes = b"") -> bytes:
    """A message as bytes."""
    head = orjson.dumps(meta)
    return b"".join((_LENGTHS.pack(len(head), len(body)), head, body))


def receive(connection: socket.socket) -> Message | None:
    """Wait for a message; None if the other side has ended."""
    try:
        lengths = _exactly(connection, _LENGTHS.size)
        head, body = _LENGTHS.unpack(lengths)
        meta = orjson.loads(_exactly(connection, head))
        return meta, bytes(_exactly(connection, body))
    except (EOFError, ConnectionError):
        return None


def _exactly(connection: socket.socket, count: int) -> bytearray:
    data = bytearray(count)
    view, done = memoryview(data), 0
    while done < count:
        received = connection.recv_into(view[done:])
        if not received:
            raise EOFError
        done += received
    return data


async def receive_async(reader: asyncio.StreamReader) -> Message:
    """Wait for a message; raises `asyncio.IncompleteReadError` if the other side has ended."""
    head, body = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    meta = orjson.loads(await reader.readexactly(head))
    return meta, await reader.readexactly(body) if body else b""
