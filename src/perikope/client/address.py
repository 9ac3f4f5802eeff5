"""The address of a server: `http://host:port`, `https://host`, or `unix:/path` for a Unix socket."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from perikope.core.errors import UsageError
from perikope.server.gate import is_loopback

UNIX = "unix:"
_FORMS = "write http://HOST:PORT, or unix:/PATH for a Unix socket"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is."""

    url: str
    """The address without a slash at its end. For a Unix socket, the name that requests are sent to."""
    socket: str = ""
    """The path of a Unix socket; empty if the server has a port."""

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, so that no proxy is needed."""
        return bool(self.socket) or is_loopback(urlsplit(self.url).hostname or "")

    def __str__(self) -> str:
        return f"{UNIX}{self.socket}" if self.socket else self.url


def parse_address(text: str) -> ServerAddress:
    """Read the address of a server. Errors do not repeat an address with a password.

    >>> print(parse_address("http://localhost:8321/"), parse_address("unix:/run/perikope.sock"))
    http://localhost:8321 unix:/run/perikope.sock
    """
    if not isinstance(text, str):
        raise UsageError(f"the address of a server must be text, not {type(text).__name__}; {_FORMS}")
    if text.startswith(UNIX):
        path = text.removeprefix(UNIX)
        if not path or "\0" in path:
            raise UsageError(f"the address of the server has no path; {_FORMS}")
        return ServerAddress("http://localhost", path)
    if "@" in text:
        raise UsageError("the address of a server has no user name and no password; give a token with token")
    try:
        parts = urlsplit(text.strip())
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or parts.query or parts.fragment or not text.isprintable():
        raise UsageError(f"{text[:60]!r} is not the address of a server; {_FORMS}")
    return ServerAddress(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}")
