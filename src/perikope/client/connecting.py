"""Connect to a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perikope.core.errors import MissingExtra
from perikope.core.options import Options, option
from perikope.core.parameters import Range
from perikope.core.values import Real, Whole

if TYPE_CHECKING:
    from perikope.client.async_index import AsyncRemoteIndex
    from perikope.client.index import RemoteIndex

TIMEOUT, RETRIES = 60.0, 3


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings(Options):
    """Settings of a connection."""

    timeout: float = option(TIMEOUT, Real(Range(0.001, 86400)), "Seconds to wait for a connection, and for the server while it is silent.")
    retries: int = option(
        RETRIES, Whole(Range(0, 100)),
        "How often a request that only reads is sent again, if the server has too much to do and says when to try again.",
    )  # fmt: skip


def connect(address: str, index: str = "", *, token: str = "", timeout: float = TIMEOUT, retries: int = RETRIES) -> RemoteIndex:
    """Connect to an index on a server that `perikope serve` runs.

    `address` is `http://host:port`, or `unix:/path` for a Unix socket. `index` is the name of the index, which may be
    left out if the server has only one. `token` is needed for writing and, on some servers, for reading. `timeout` is
    the number of seconds to wait for a connection, and for the server while it is silent. `retries` says how often a
    request that only reads is sent again, if the server has too much to do and says when to try again.

    The first request makes the connection. This needs the extra `client`.

    For a cluster on Ray, see `perikope.cluster.on_ray.find`.

    >>> with connect("http://localhost:8321", "manuals") as index:      # doctest: +SKIP
    ...     for hit in index.search("pump with a magnetic coupling"):
    ...         print(hit.score, hit.path, hit.text)
    """
    from perikope.client.address import parse_address
    from perikope.client.index import RemoteIndex

    try:
        from perikope.client.transport import Connection
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "httpx", "client") from None
    settings = ConnectionSettings(timeout=timeout, retries=retries)
    return RemoteIndex(Connection(parse_address(address), token, settings), index)


def connect_async(address: str, index: str = "", *, token: str = "", timeout: float = TIMEOUT, retries: int = RETRIES) -> AsyncRemoteIndex:
    """Connect to an index on a server from a program that uses `asyncio`; see `connect`.

    >>> async with connect_async("http://localhost:8321") as index:     # doctest: +SKIP
    ...     results = await index.search("pump with a magnetic coupling")
    """
    from perikope.client.address import parse_address
    from perikope.client.async_index import AsyncRemoteIndex

    try:
        from perikope.client.transport import AsyncConnection
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "httpx", "client") from None
    settings = ConnectionSettings(timeout=timeout, retries=retries)
    return AsyncRemoteIndex(AsyncConnection(parse_address(address), token, settings), index)
