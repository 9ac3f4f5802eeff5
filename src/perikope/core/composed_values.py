"""More kinds of option values: lists, alternatives, tables, and texts that must not be empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perikope.core.errors import UsageError
from perikope.core.values import Text, ValueKind


@dataclass(eq=False, repr=False)
class ListOf(ValueKind):
    """A list of values of one kind, in the given order. A single value may be given without a list."""

    item: ValueKind
    plural: str
    """The values in words, as in "a list of whole numbers": "whole numbers"."""
    annotation = "Sequence[object]"

    def describe(self) -> str:
        """The accepted values, in words."""
        return f"a list of {self.plural}"

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """Check all values; returns a tuple of their canonical forms."""
        if isinstance(value, list | tuple):
            return tuple(self.item.check(f"{name} number {number}", item) for number, item in enumerate(value, 1))
        try:
            return (self.item.check(name, value),)
        except UsageError:
            raise self.refuse(name, value) from None

    def schema(self) -> dict[str, Any]:
        """A JSON schema for an array of such values."""
        return {"type": "array", "items": self.item.schema()}

    def plain(self, value: Any) -> Any:
        """Convert the canonical values to a list for JSON and TOML."""
        return [self.item.plain(item) for item in value]


@dataclass(eq=False, repr=False)
class AnyTable(ValueKind):
    """A table with any content. The code that uses the option checks the content."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a table"

    def check(self, name: str, value: Any) -> Mapping[str, Any]:
        """Return the table unchanged; another value is an error."""
        if not isinstance(value, Mapping):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """A JSON schema that accepts every object."""
        return {"type": "object"}


@dataclass(eq=False, repr=False)
class Either(ValueKind):
    """A value of one of several kinds. The first kind that accepts the value is used."""

    kinds: tuple[ValueKind, ...]
    what: str
    """All accepted values, in words."""

    def describe(self) -> str:
        """The accepted values, in words."""
        return self.what

    def check(self, name: str, value: Any) -> Any:
        """Return the canonical form that the first accepting kind gives; a value that no kind accepts is an error."""
        for kind in self.kinds:
            try:
                return kind.check(name, value)
            except UsageError:
                continue
        raise self.refuse(name, value)

    def schema(self) -> dict[str, Any]:
        """A JSON schema that accepts the values of all kinds."""
        return {"anyOf": [kind.schema() for kind in self.kinds]}


@dataclass(eq=False, repr=False)
class FilledText(Text):
    """A text that must not be empty."""

    def check(self, name: str, value: Any) -> str:
        """Return the text unchanged; a text that is empty or only white space is an error."""
        text = super().check(name, value)
        if not text.strip():
            raise UsageError(f"{name} is empty; write a text, or leave it out")
        return text

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string of at least one character."""
        return {"type": "string", "minLength": 1}


TEXTS = ListOf(FilledText(), "texts")
"""The kind of a list of texts that must not be empty."""
