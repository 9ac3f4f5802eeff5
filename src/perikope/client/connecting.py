"""Connect to a server, or to a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perikope.core.errors import MissingExtra, UsageError
from perikope.core.options import Options, option
from perikope.core.parameters import Range
from perikope.core.values import Real, Whole

if TYPE_CHECKING:
    from perikope.client.async_index import AsyncRemoteIndex
    from perikope.client.index import RemoteIndex
    from perikope.search.facade import Index

TIMEOUT, RETRIES = 60.0, 3
RAY = "ray://"
"""The beginning of the address of a cluster."""


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings(Options):
    """Settings of a connection."""

    timeout: float = option(TIMEOUT, Real(Range(0.001, 86400)), "Seconds to wait for a connection, and for the server while it is silent.")
    retries: int = option(
        RETRIES, Whole(Range(0, 100)),
        "How often a request that only reads is sent again, if the server has too much to do and says when to try again.",
    )  # fmt: skip


def connect(
    address: str, index: str = "", *, token: str = "", timeout: float = TIMEOUT, retries: int = RETRIES, partial: bool = False
) -> RemoteIndex | Index:
    """Connect to an index on a server that `perikope serve` runs, or to a cluster on Ray.

    `address` is `http://host:port`, or `unix:/path` for a Unix socket. `index` is the name of the index, which may be
    left out if the server has only one. `token` is needed for writing and, on some servers, for reading. `timeout` is
    the number of seconds to wait for a connection, and for the server while it is silent. `retries` says how often a
    request that only reads is sent again, if the server has too much to do and says when to try again.

    The first request makes the connection. This needs the extra `client`.

    For a cluster, `address` is `ray://host:port`, with the `--address` of `perikope cluster start`, and `index` is its
    `--name`. The result is an `Index` that only reads. A shard that has not answered after `timeout` seconds is an
    error; with `partial`, searches leave it out and say so. This needs the extra `cluster`, and the folder of the
    cluster under the path that its replicas see.

    >>> with connect("http://localhost:8321", "manuals") as index:      # doctest: +SKIP
    ...     for hit in index.search("pump with a magnetic coupling"):
    ...         print(hit.score, hit.path, hit.text)
    >>> index = connect("ray://127.0.0.1:6379")                         # doctest: +SKIP
    """
    if isinstance(address, str) and address.startswith(RAY):
        return _cluster(address.removeprefix(RAY), index, token, timeout, partial)
    if partial:
        raise UsageError("partial is for clusters (ray://HOST:PORT); a server decides by itself, see `perikope cluster serve --partial`")
    from perikope.client.address import parse_address
    from perikope.client.index import RemoteIndex

    try:
        from perikope.client.transport import Connection
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "httpx", "client") from None
    settings = ConnectionSettings(timeout=timeout, retries=retries)
    return RemoteIndex(Connection(parse_address(address), token, settings), index)


def _cluster(address: str, name: str, token: str, timeout: float, partial: bool) -> Index:
    """A cluster on Ray, given by the address of Ray."""
    try:
        from perikope.cluster import on_ray
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "ray", "cluster") from None
    if token:
        raise UsageError("a cluster takes no token: Ray reads its own (RAY_AUTH_MODE, RAY_AUTH_TOKEN_PATH)")
    settings = ConnectionSettings(timeout=timeout)
    on_ray.join_ray(address.rstrip("/"))
    return on_ray.find_started(name, deadline=settings.timeout, partial=partial)


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
