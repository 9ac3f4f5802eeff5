"""From method and path to what is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from perikope.server.problems import Refusal
from perikope.service.operations import READ, WRITE, Operation

PREFIX = "/indexes"
PAGE = "page"
"""The path of a route to a file of the page."""
MCP = "/mcp"
"""The path for assistants, if the server answers them."""
OWN = ("/health", "/ready", "/metrics", "/openapi.json", PREFIX)
"""Paths that the server answers itself, with GET."""
STATES = ("/health", "/ready")
"""Paths that are answered while the server starts, too."""


@dataclass(frozen=True, slots=True)
class Route:
    """What a request asks for."""

    path: str
    """The path, if the server answers itself; else empty."""
    index: str = ""
    operation: str = ""
    permission: str = READ


def path_of(operation: Operation) -> str:
    """The path of an operation in the OpenAPI document."""
    return f"{PREFIX}/{{index}}/{operation.name}" if operation.name else f"{PREFIX}/{{index}}"


def find_route(method: str, path: str, operations: Mapping[str, Operation], pages: Collection[str]) -> Route:
    """The route of a request; raises `Refusal` if there is none. Whether there is such an index is not checked here.

    `pages` are the paths of the files of the page, with `MCP` if the server answers assistants.
    """
    method = "GET" if method == "HEAD" else method
    if path in OWN:
        _check_method(method, ("GET",))
        return Route(path)
    if path == MCP and path in pages:
        _check_method(method, ("POST",))
        return Route(path)
    if path in pages:
        _check_method(method, ("GET",))
        return Route(PAGE)
    parts = path.split("/")
    if parts[:2] != ["", "indexes"] or len(parts) not in (3, 4) or not parts[2]:
        raise Refusal(404, "there is no such page; /openapi.json lists what this server offers")
    index, name = parts[2], parts[3] if len(parts) == 4 else ""
    operation = operations.get(name)
    if operation is None or (len(parts) == 4 and not name):
        raise Refusal(404, "there is no such operation; /openapi.json lists them")
    _check_method(method, operation.methods)
    return Route("", index, name, WRITE if operation.permission == WRITE else READ)


def _check_method(method: str, methods: tuple[str, ...]) -> None:
    if method not in methods:
        raise Refusal(405, f"use {' or '.join(methods)} here", {"Allow": ", ".join((*methods, *(["HEAD"] if "GET" in methods else [])))})
