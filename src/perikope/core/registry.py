"""Registries. There is one per kind of entry: models, formats, measures and so on.

Each entry is registered in the file that defines it, so adding an entry touches one file. The first look-up imports all
modules of the registry's package and loads its entry points.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Generic, TypeVar

from perikope.core.errors import UsageError, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """All entries of one kind, by name, from the modules of `package` and the entry points `perikope.<kind>s`."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._things: dict[str, T] = {}
        self._homes: dict[str, tuple[str, str]] = {}
        self._discovered = self._discovering = False
        self.version = 0
        """Number of registrations so far. A cache of parsed names is valid as long as this number stays the same."""

    def add(self, name: str, thing: T, defined_by: object = None) -> T:
        """Register `thing` under a name and return it. `defined_by` is the function that defines it, or else `thing`.

        If a function of the same name and module is registered again, it replaces the old one, as when a cell of a
        notebook runs twice. An entry of another module is protected: a name that it has raises `UsageError`.
        """
        definer = thing if defined_by is None else defined_by
        home = getattr(definer, "__module__", ""), getattr(definer, "__qualname__", "")
        if not f"{home[0]}.".startswith("perikope.") and not self._discovering:
            # Otherwise an entry of the user would take the name of a packaged entry that is not loaded yet.
            self._discover()
        if name in self._things and not (all(home) and self._homes[name] == home):
            owner = f", registered by {self._homes[name][0]}" if self._homes[name][0] else ""
            raise UsageError(f"there is already a {self.kind} {name!r}{owner}; choose another name")
        self._things[name] = thing
        self._homes[name] = home
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

    def packaged(self, name: str) -> T | None:
        """The entry that the packaged module of the same name defines, without loading the other modules.

        None if there is no such module, if all modules are loaded, or if other packages register entries (they must be
        loaded then).
        """
        if self._discovered:
            return None
        if name not in self._things:
            is_module = name.isidentifier() and not name.startswith("_") and find_spec(f"{self._package}.{name}") is not None
            if not is_module or _entry_points(f"perikope.{self.kind}s"):
                return None
            importlib.import_module(f"{self._package}.{name}")
        return self._things.get(name)

    def _discover(self) -> None:
        if self._discovered:
            return
        # No lock is needed, since a second thread waits for Python's import lock. A lock here could also be copied into
        # a forked child while it is held, and then never be released.
        self._discovering = True
        try:
            package = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
                importlib.import_module(f"{self._package}.{module.name}")
            for entry_point in _entry_points(f"perikope.{self.kind}s"):
                entry_point.load()
            self._discovered = True
        finally:
            self._discovering = False


def _entry_points(group: str) -> Iterable[EntryPoint]:
    """The entries of other packages. The import takes longer than the rest of `perikope --help`, which needs none."""
    from importlib.metadata import entry_points

    return entry_points(group=group)
