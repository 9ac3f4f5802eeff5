"""A segment on another machine, for what a search reads of single documents."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from perikope.core.arrays import Array
from perikope.index.reader import Snapshot

_REMEMBERED = 1024
"""The number of answers that a segment keeps. A segment never changes, and neither do the answers."""
_COMPONENTS = {"columns", "document_ids", "facets", "ids", "terms", "values"}
"""Attributes that have methods of their own."""
_VALUES = {"alive", "entry", "facts", "fields", "has_sources", "labels", "languages", "parts", "tombstones", "totals"}
"""Attributes that are plain data."""

Read = Callable[..., Any]
"""Asks the shard of a segment; see `read_segment`."""


def read_segment(snapshot: Snapshot, number: int, path: tuple[str, ...], call: tuple[tuple[Any, ...], dict[str, Any]] | None) -> Any:
    """The value at the end of a path of attributes of a segment, or the result of calling it."""
    value: Any = snapshot.segments[number]
    for name in path:
        value = getattr(value, name)
    return value if call is None else value(*call[0], **call[1])


def read_column(snapshot: Snapshot, number: int, name: str, rows: Any) -> Any:
    """The rows of a column of a segment."""
    return snapshot.segments[number][name][rows]


class RemoteSegment:
    """Stands for a segment. Its methods are called on the shard that holds the segment.

    Each call is a message, so whatever reads many documents is a question of its own; see `Snapshot.ask`.
    """

    def __init__(self, read: Read, number: int, documents: int) -> None:
        self.documents = documents
        self._read, self._number = read, number
        self._value = lru_cache(maxsize=_REMEMBERED)(self._ask)

    def __getitem__(self, column: str) -> RemoteColumn:
        return RemoteColumn(lambda rows: self._read(read_column, self._number, column, rows))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._at((name,))

    def span_namer(self, document: int) -> Callable[[int], str | None]:
        """A function from the number of a span in the document to the id of the span, or to None if it has no id."""
        names: dict[int, str] = self._value(("span_ids",), (document,))
        return names.get

    def _at(self, path: tuple[str, ...]) -> Any:
        if path[-1] in _VALUES:
            return self._value(path, None)
        return _Component(self, path) if path[-1] in _COMPONENTS else self._method(path)

    def _method(self, path: tuple[str, ...]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if not named and all(isinstance(value, Hashable) for value in given):
                return self._value(path, given)
            return self._read(read_segment, self._number, path, (given, named))

        return call

    def _ask(self, path: tuple[str, ...], given: tuple[Any, ...] | None) -> Any:
        return self._read(read_segment, self._number, path, None if given is None else (given, {}))


class _Component:
    """A part of a segment that has methods of its own, such as its facets."""

    def __init__(self, segment: RemoteSegment, path: tuple[str, ...]) -> None:
        self._segment, self._path = segment, path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._segment._at((*self._path, name))

    def __getitem__(self, at: Any) -> Any:
        return self._segment._method((*self._path, "__getitem__"))(at)

    def __len__(self) -> int:
        size: int = self._segment._method((*self._path, "__len__"))()
        return size


class RemoteColumn:
    """A column of a segment on another machine, of which rows are read."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __getitem__(self, rows: Any) -> Any:
        return self._read(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self._read(slice(None)), dtype)
