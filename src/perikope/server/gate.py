"""Who may do what: hosts, origins, tokens and permissions.

A file of tokens is TOML:

    read = "token"                  # reading needs a token, too; without this line, everybody may read

    [tokens.ingest]
    sha256 = "9f86d081884c7d65…"    # of the token, as `perikope serve --new-token ingest` prints it
    read = ["*"]
    write = ["manuals"]             # names of indexes, or "*" for all
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError, UsageError
from perikope.server.problems import Refusal
from perikope.service.operations import READ, WRITE

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
MAX_TOKENS_FILE = 1 << 20
ALL = "*"
TARGET_HOST = "perikope.target_host"
"""The key under which the state of a request has the host of its address, if the request line has a whole address."""
HEADER = "Authorization: Bearer TOKEN"
"""The header with the token of a request, in messages."""
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Token:
    """A client that is known by a secret."""

    name: str
    digest: bytes
    """SHA-256 of the secret."""
    permissions: Mapping[str, frozenset[str]]
    """The names of indexes by permission; `*` stands for all indexes."""

    def may(self, permission: str, index: str) -> bool:
        """Whether the client has a permission for an index. Who may write may also read."""
        granted = self.permissions[permission] | (self.permissions[WRITE] if permission == READ else frozenset())
        return ALL in granted or index in granted


@dataclass(frozen=True, slots=True)
class Gate:
    """What the server lets through."""

    hosts: frozenset[str]
    """The names under which clients may reach the server, in lower case; empty if any name may be used."""
    origins: frozenset[str] = frozenset()
    """Web sites whose pages may read."""
    tokens: tuple[Token, ...] = ()
    open_reading: bool = True
    """Whether everybody may read."""

    def check_host(self, *hosts: str) -> None:
        """Refuse a request to a name that the server does not have: a web page elsewhere may have caused it."""
        if self.hosts and not all(host_name(host) in self.hosts for host in hosts):
            raise Refusal(421, "the server does not answer under this name; the operator can allow it with --allow-host")

    def check_origin(self, headers: Mapping[str, str]) -> str:
        """Refuse a request that a page of another web site caused. Returns an origin that may read."""
        origin = headers.get("origin", "")
        if origin and origin in self.origins:
            return origin
        own = f"://{headers.get('host', '')}".lower()
        foreign = bool(origin) and (origin == "null" or not origin.lower().endswith(own) or origin.lower().count("://") != 1)
        # Browsers say where a request comes from. Following a link from elsewhere is fine; a script is not.
        fetched = headers.get("sec-fetch-site", "") in ("cross-site", "same-site") and headers.get("sec-fetch-mode", "") != "navigate"
        if foreign or fetched:
            raise Refusal(403, "a page of another web site caused the request; the operator can allow it with --allow-origin")
        return ""

    def check_permission(self, authorization: str, permission: str, index: str) -> str:
        """Refuse a request without the permission for an index. Returns the name of the client's token."""
        token = self._token(authorization)
        if token is None:
            if permission == READ and self.open_reading:
                return ""
            if not self.tokens:
                raise Refusal(403, "this server has no tokens, so nobody can write; the operator can make one with --new-token")
            raise Refusal(401, f"the request needs a token: send the header {HEADER}", {"WWW-Authenticate": "Bearer"})
        if not (token.may(permission, index) or (permission == READ and self.open_reading)):
            raise Refusal(403, f"the token may not {permission} {'this index' if index else 'here'}")
        return token.name

    def may_read(self, authorization: str, index: str) -> bool:
        """Whether a request may read an index."""
        try:
            self.check_permission(authorization, READ, index)
        except Refusal:
            return False
        return True

    def _token(self, authorization: str) -> Token | None:
        """The token of a request; None if it has none. A wrong one is refused."""
        if not authorization:
            return None
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise Refusal(401, f"the header Authorization must have a bearer token: {HEADER}", {"WWW-Authenticate": "Bearer"})
        digest = hashlib.sha256(secret.strip().encode("utf-8", "surrogateescape")).digest()
        # All tokens are compared, each in constant time, so that the time says nothing about them.
        found = [token for token in self.tokens if hmac.compare_digest(token.digest, digest)]
        if not found:
            raise Refusal(401, "the token is not known", {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        return found[0]


def host_name(host: str) -> str:
    """The name in a `Host` header, without the port and a dot at the end, in lower case."""
    return re.sub(r":[0-9]*$", "", host.strip()).lower().removesuffix(".")


def allowed_hosts(address: str, allowed: Sequence[str], *, is_socket: bool) -> frozenset[str]:
    """The names under which a server that listens on an address may be reached.

    On a Unix socket, any name may be used: web pages cannot reach it.
    """
    if is_socket and not allowed:
        return frozenset()
    names = {*LOOPBACK_NAMES, *(host_name(name) for name in allowed)}
    if not is_any_address(address):
        names.add(host_name(f"[{address}]" if ":" in address else address))
    return frozenset(names)


def is_any_address(address: str) -> bool:
    """Whether an address stands for all addresses of the machine."""
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


def is_loopback(address: str) -> bool:
    """Whether only programs on this machine reach an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def read_tokens(path: Path, indexes: Sequence[str]) -> tuple[tuple[Token, ...], bool]:
    """The tokens in a file, and whether everybody may read."""
    try:
        if path.stat().st_size > MAX_TOKENS_FILE:
            raise InputError("is too large for a file of tokens", path=path)
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML: {error}", path=path) from None
    if not content:
        # A program that writes the file anew empties it first. Nobody may read everything at that moment.
        raise InputError('is empty; write at least read = "anyone" or read = "token"', path=path)
    reading, listed = content.pop("read", "anyone"), content.pop("tokens", {})
    if content or reading not in ("anyone", "token") or not isinstance(listed, dict):
        raise InputError('must have read = "anyone" or "token", and tables [tokens.NAME]; nothing else', path=path)
    return tuple(_token(path, name, table, indexes) for name, table in listed.items()), reading == "anyone"


def _token(path: Path, name: str, table: Any, indexes: Sequence[str]) -> Token:
    keys = {"sha256", READ, WRITE}
    if not isinstance(table, dict) or not {*table} <= keys or not re.fullmatch(r"[0-9a-f]{64}", str(table.get("sha256", ""))):
        raise InputError(f"[tokens.{name}] must have sha256 (64 digits, as --new-token prints it), and may have read and write", path=path)
    for permission in (READ, WRITE):
        given = table.get(permission, [])
        if not isinstance(given, list) or not all(isinstance(index, str) for index in given):
            raise InputError(f'[tokens.{name}] {permission} must be a list of names of indexes, or ["*"]', path=path)
        if unknown := [index for index in given if index != ALL and index not in indexes]:
            raise InputError(f"[tokens.{name}] {permission} names {unknown[0]!r}, but the indexes are {', '.join(indexes)}", path=path)
    return Token(name, bytes.fromhex(table["sha256"]), {permission: frozenset(table.get(permission, [])) for permission in (READ, WRITE)})


def new_token(name: str) -> tuple[str, str]:
    """A new secret, and the lines for the file of tokens."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise UsageError(f"{name!r} cannot be the name of a token: use letters, digits, - and _")
    secret = secrets.token_urlsafe(_TOKEN_BYTES)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return secret, f'[tokens.{name}]\nsha256 = "{digest}"\nread = ["*"]\nwrite = []  # indexes that it may change; ["*"] for all\n'
