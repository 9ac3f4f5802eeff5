"""Connections to a server. This is the only module that imports httpx."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NoReturn

import httpx

from perikope import __version__
from perikope.client.address import ServerAddress
from perikope.client.connecting import ConnectionSettings
from perikope.client.questions import HttpReply, HttpRequest
from perikope.core.errors import PerikopeError, ServerError, UsageError

LONGEST_PAUSE = 30.0
"""The longest time in seconds that a server may ask to wait before a request is sent again. If it asks for more, the
request fails."""
_BUSY = 503


class Connection:
    """Connections to a server, shared by all threads that use it."""

    def __init__(self, address: ServerAddress, token: str, settings: ConnectionSettings) -> None:
        self.address, self._settings = address, settings
        transport = httpx.HTTPTransport(uds=address.socket) if address.socket else None
        self._client = httpx.Client(**_arguments(address, token, settings), transport=transport)

    def send(self, request: HttpRequest) -> HttpReply:
        """Send a request and return the answer. A request that only reads is sent again if the server is busy."""
        for _ in range(self._settings.retries):
            reply = self._send_once(request)
            if not (seconds := _pause(request, reply)):
                return reply
            time.sleep(seconds)
        return self._send_once(request)

    def _send_once(self, request: HttpRequest) -> HttpReply:
        _check_open(self.address, self._client.is_closed)
        try:
            return _reply(self.address, self._client.request(**_sent(self.address, request)))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            _fail(error, self.address, request, self._settings)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


class AsyncConnection:
    """Connections to a server, shared by all tasks of one event loop."""

    def __init__(self, address: ServerAddress, token: str, settings: ConnectionSettings) -> None:
        self.address, self._settings = address, settings
        transport = httpx.AsyncHTTPTransport(uds=address.socket) if address.socket else None
        self._client = httpx.AsyncClient(**_arguments(address, token, settings), transport=transport)

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send a request and return the answer; see `Connection.send`."""
        for _ in range(self._settings.retries):
            reply = await self._send_once(request)
            if not (seconds := _pause(request, reply)):
                return reply
            await asyncio.sleep(seconds)
        return await self._send_once(request)

    async def _send_once(self, request: HttpRequest) -> HttpReply:
        _check_open(self.address, self._client.is_closed)
        try:
            return _reply(self.address, await self._client.request(**_sent(self.address, request)))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            _fail(error, self.address, request, self._settings)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def _arguments(address: ServerAddress, token: str, settings: ConnectionSettings) -> dict[str, Any]:
    """What a client of httpx needs. No proxy is used for a server on this machine, and redirects are not followed."""
    headers = {"user-agent": f"perikope/{__version__}", "accept": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {_checked_token(token)}"
    return {"headers": headers, "timeout": settings.timeout, "follow_redirects": False, "trust_env": not address.is_local}


def _checked_token(token: object) -> str:
    """The token without white space around it, as a file may have it. An error does not repeat it."""
    stripped = token.strip() if isinstance(token, str) else ""
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise UsageError("the token is not one that `perikope serve --new-token` made; copy it again")
    return stripped


def _sent(address: ServerAddress, request: HttpRequest) -> dict[str, Any]:
    headers = {"content-type": "application/json"} if request.body is not None else {}
    return {"method": request.method, "url": f"{address.url}{request.path}", "content": request.body, "headers": headers}


def _reply(address: ServerAddress, response: httpx.Response) -> HttpReply:
    return HttpReply(address, response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.content)


def _pause(request: HttpRequest, reply: HttpReply) -> float:
    """Seconds to wait before a request is sent again; 0 if the answer is final."""
    asked = reply.headers.get("retry-after", "")
    if reply.status != _BUSY or not request.only_reads or not (asked.isascii() and asked.isdigit()):
        return 0.0
    return max(float(asked), 0.1) if float(asked) <= LONGEST_PAUSE else 0.0


def _check_open(address: ServerAddress, is_closed: bool) -> None:
    if is_closed:
        raise UsageError(f"the connection to {address} was closed; connect again")


def _fail(error: Exception, address: ServerAddress, request: HttpRequest, settings: ConnectionSettings) -> NoReturn:
    raise _failure(error, address, request, settings) from None


def _failure(error: Exception, address: ServerAddress, request: HttpRequest, settings: ConnectionSettings) -> PerikopeError:
    """The error for a request without an answer. It has no text of httpx, which may repeat headers."""
    perhaps = "" if request.only_reads else "; the change may have been made, so look before you repeat it"
    if isinstance(error, httpx.ConnectTimeout):
        return ServerError(f"{address} cannot be reached within {settings.timeout:g} seconds; check the address, or set a longer timeout")
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return ServerError(f"{address} was silent for {settings.timeout:g} seconds; ask for less, or set a longer timeout{perhaps}")
    if isinstance(error, httpx.ConnectError):
        return ServerError(f"{address} cannot be reached; start the server with `perikope serve`, or check the address")
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
        return UsageError(f"{str(address)[:60]!r} is not the address of a server; write http://HOST:PORT")
    return ServerError(f"{address} has ended the connection without a complete answer; check the address, or try again{perhaps}")
