"""Kinds of values that are made of other kinds: lists, and one of several kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perikope.core.errors import UsageError
from perikope.core.values import Text, ValueKind


@dataclass(eq=False, repr=False)
class ListOf(ValueKind):
    """A list whose values have one kind, in the given order; one value alone may be given without a list."""

    item: ValueKind
    plural: str
    """What the values are, in words: "whole numbers"."""
    annotation = "Sequence[object]"

    def describe(self) -> str:
        """The accepted values, in words."""
        return f"a list of {self.plural}"

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """The canonical values."""
        if isinstance(value, list | tuple):
            return tuple(self.item.check(f"{name} number {number}", item) for number, item in enumerate(value, 1))
        try:
            return (self.item.check(name, value),)
        except UsageError:
            raise self.refuse(name, value) from None

    def schema(self) -> dict[str, Any]:
        """An array."""
        return {"type": "array", "items": self.item.schema()}

    def plain(self, value: Any) -> Any:
        """A list."""
        return [self.item.plain(item) for item in value]


@dataclass(eq=False, repr=False)
class Anything(ValueKind):
    """Any value; the code that uses it checks it."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a value"

    def check(self, name: str, value: Any) -> Any:
        """The value itself."""
        return value

    def schema(self) -> dict[str, Any]:
        """Any JSON value."""
        return {}


@dataclass(eq=False, repr=False)
class AnyTable(Anything):
    """A table whose content is checked by the code that uses it."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a table"

    def check(self, name: str, value: Any) -> Mapping[str, Any]:
        """The table itself."""
        if not isinstance(value, Mapping):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """An object."""
        return {"type": "object"}


@dataclass(eq=False, repr=False)
class Either(ValueKind):
    """A value of the first of several kinds that accepts it."""

    kinds: tuple[ValueKind, ...]
    what: str
    """All accepted values, in words."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return self.what

    def check(self, name: str, value: Any) -> Any:
        """The canonical value."""
        for kind in self.kinds:
            try:
                return kind.check(name, value)
            except UsageError:
                continue
        raise self.refuse(name, value)

    def schema(self) -> dict[str, Any]:
        """One of the kinds."""
        return {"anyOf": [kind.schema() for kind in self.kinds]}


@dataclass(eq=False, repr=False)
class FilledText(Text):
    """A text that is not empty."""

    def check(self, name: str, value: Any) -> str:
        """The text; raises an error if it is empty or only white space."""
        text = super().check(name, value)
        if not text.strip():
            raise UsageError(f"{name} is empty; write a text, or leave it out")
        return text

    def schema(self) -> dict[str, Any]:
        """A string of at least one character."""
        return {"type": "string", "minLength": 1}


TEXTS = ListOf(FilledText(), "texts")
"""A list of texts, none of them empty."""
