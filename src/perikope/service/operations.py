"""Operations: what a server does on request.

    @operation("count", NoOptions, Counted, searches=CONDITIONS, example={"filter": ["year>=2010"]})
    def count(index: Index, asked: Asked) -> Counted:
        "The number of documents that satisfy all conditions."

An operation declares its options and its answer as classes, and an example. `searches` lists the options of a search
that it takes too: those that have an effect on its answer. The route `/indexes/{index}/count`, its entry in the OpenAPI
document and its check derive from this.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from perikope.core.options import Option, Options, declared
from perikope.search.options import OPTIONS

F = TypeVar("F", bound=Callable[..., Any])

READ, WRITE = "read", "write"
"""What an operation needs the permission for."""
RANKING = tuple(name for name, option in OPTIONS.items() if not option.local)
"""The options of a search that a request may set."""
SCORING = tuple(name for name in RANKING if name not in ("k", "offset"))
"""Those that decide about candidates and scores, not about which results are returned."""
CONDITIONS = ("filter", "ids", "shares_codes_with", "code_level")
"""Those that are conditions on documents."""


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options of one request, read and checked."""

    own: Any
    """An instance of the operation's own options."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """The given options of a search, by name. Options that were not given are missing."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; see the module docstring."""

    name: str
    """The last part of the route, such as `search`; empty for the index itself."""
    options: type[Options]
    answer: type
    """A dataclass, or `dict[str, int]` and the like."""
    run: Callable[[Any, GivenOptions], Any]
    """Computes the answer from the index and the given options."""
    help: str
    example: Mapping[str, Any]
    """Options of a request that works on the documents of `perikope demo`."""
    searches: tuple[str, ...] = ()
    """The names of the options of a search that the operation takes."""
    permission: str = READ
    methods: tuple[str, ...] = ("GET", "POST")

    @property
    def parameters(self) -> dict[str, Option]:
        """All options by name: those of the operation, then those of a search."""
        return {**declared(self.options), **{name: OPTIONS[name] for name in self.searches}}


OPERATIONS: dict[str, Operation] = {}
"""All operations by name, in the order of their declaration."""


def operation(
    name: str,
    options: type[Options],
    answer: Any,
    *,
    example: Mapping[str, Any],
    searches: tuple[str, ...] = (),
    permission: str = READ,
    methods: tuple[str, ...] = ("GET", "POST"),
) -> Callable[[F], F]:
    """A decorator that declares the function as an operation; its docstring is the description."""

    def decorate(function: F) -> F:
        assert name not in OPERATIONS, name
        help = " ".join((function.__doc__ or "").split())
        OPERATIONS[name] = Operation(name, options, answer, function, help, example, searches, permission, methods)
        return function

    return decorate


def load_operations() -> Mapping[str, Operation]:
    """All operations. The files that declare them are imported here."""
    for module in ("reading", "writing"):
        importlib.import_module(f"perikope.service.{module}")
    return OPERATIONS
