"""Names: one registry a kind (model, format, measure …), filled by importing one package and by entry points.

A thing is registered where it is written, so adding one touches one file. Nothing is imported before the
first look-up.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from perikope.core.errors import unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """The things of one kind by name, found in `package` and in the entry points `perikope.<kind>s`."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._things: dict[str, T] = {}
        self._discovered = False
        self.version = 0
        """Grows with every registration: what was parsed with the names of an earlier version may be kept until then."""

    def add(self, name: str, thing: T) -> T:
        """Register `thing`; a name can be taken once."""
        if name in self._things:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._things[name] = thing
        self.version += 1
        return thing

    def names(self) -> list[str]:
        """All names, sorted."""
        self._discover()
        return sorted(self._things)

    def items(self) -> Iterator[tuple[str, T]]:
        """Names with their things, sorted by name."""
        return ((name, self._things[name]) for name in self.names())

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._things

    def __getitem__(self, name: str) -> T:
        self._discover()
        if name not in self._things:
            raise unknown(self.kind, name, sorted(self._things))
        return self._things[name]

    def _discover(self) -> None:
        if self._discovered:
            return
        # Without a lock of ours: imports have theirs, so a second thread waits there, and a forked child inherits none.
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
            importlib.import_module(f"{self._package}.{module.name}")
        for entry_point in entry_points(group=f"perikope.{self.kind}s"):
            entry_point.load()
        self._discovered = True
