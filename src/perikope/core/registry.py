"""Registries. There is one per kind of entry: models, formats, measures and so on.

Each entry is registered in the file that defines it, so adding an entry touches one file. The first look-up imports all
modules of the registry's package and loads its entry points.
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
    """All entries of one kind, by name, from the modules of `package` and the entry points `perikope.<kind>s`."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._things: dict[str, T] = {}
        self._discovered = False
        self.version = 0
        """Number of registrations so far. A cache of parsed names is valid as long as this number stays the same."""

    def add(self, name: str, thing: T) -> T:
        """Register `thing` under a name and return it; a name that is already registered raises `ValueError`."""
        if name in self._things:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._things[name] = thing
        self.version += 1
        return thing

    def names(self) -> list[str]:
        """The names of all entries, sorted."""
        self._discover()
        return sorted(self._things)

    def items(self) -> Iterator[tuple[str, T]]:
        """Pairs of name and entry, sorted by name."""
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
        # No lock is needed, since a second thread waits for Python's import lock. A lock here could also be copied into
        # a forked child while it is held, and then never be released.
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
            importlib.import_module(f"{self._package}.{module.name}")
        for entry_point in entry_points(group=f"perikope.{self.kind}s"):
            entry_point.load()
        self._discovered = True
