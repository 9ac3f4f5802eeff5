"""Kinds of option values: what each accepts, its canonical form, and how JSON, TOML and a command line write it.

A kind is created once, where an option is declared, and is never compared or printed. The dataclasses here therefore
have no such methods: generating them would cost 5 ms at every start.
"""

from __future__ import annotations

import importlib
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from perikope.core.errors import UsageError, unknown
from perikope.core.parameters import Range


class ValueKind(ABC):
    """The values that an option accepts. `check` returns the canonical form, or raises an error with its name."""

    annotation: ClassVar[str] = "object"
    """The type that a Python caller may pass, as source code."""
    many: ClassVar[bool] = False
    """Whether the option can be repeated on a command line; its values then form a list."""

    @abstractmethod
    def describe(self) -> str:
        """The accepted values, in words."""

    @abstractmethod
    def check(self, name: str, value: Any) -> Any:
        """The canonical form of a value."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The accepted JSON values, as a JSON schema."""

    @property
    def limits(self) -> str:
        """The range of a number, in words; empty for other values."""
        return ""

    def plain(self, value: Any) -> Any:
        """Convert a canonical value to a value for JSON and TOML."""
        return value

    def refuse(self, name: str, value: object) -> UsageError:
        """Make the error for a value of a wrong type."""
        return UsageError(f"{name} must be {self.describe()}, not {type_in_words(value)}")


@dataclass(eq=False, repr=False)
class Text(ValueKind):
    """A text."""

    annotation = "str"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "text"

    def check(self, name: str, value: Any) -> str:
        """The text itself."""
        if not isinstance(value, str):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """A string."""
        return {"type": "string"}


@dataclass(eq=False, repr=False)
class Notation(Text):
    """A text in a notation, such as `bm25(k1=1.2)`. It is parsed in order to check it, and stored as text."""

    parser: str = ""
    """The function that parses it, as `module:function`. It is imported at the first check, so that declaring an option
    does not import numpy."""
    object_type: str = ""
    """The class of objects that may be given in place of the text, as `module:class`; their `str` is the text."""
    required: bool = False
    """Whether an empty text is an error; otherwise it means none."""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """`str`, or the class of the object."""
        return f"str | {_class_name(self.object_type)}" if self.object_type else "str"

    def check(self, name: str, value: Any) -> str:
        """The text; a text that the parser rejects raises its error."""
        if not isinstance(value, str):
            if not self.object_type or not isinstance(value, _imported(self.object_type)):
                raise self.refuse(name, value)
            return str(value)
        if value:
            _imported(self.parser)(value)
        elif self.required:
            raise UsageError(f"{name} is empty; name one, or leave it out")
        return value


@dataclass(eq=False, repr=False)
class Whole(ValueKind):
    """A whole number in a range; with `words`, also one of these words."""

    range: Range
    words: tuple[str, ...] = ()

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """An integer, or one of the words."""
        return " | ".join(["int", *([f"Literal[{', '.join(map(_quoted, self.words))}]"] if self.words else [])])

    def describe(self) -> str:
        """The accepted values, in words."""
        return " or ".join([f"a whole number {_limits(self.range)}" if self.words else "a whole number", *self.words])

    def check(self, name: str, value: Any) -> int | str:
        """The number or the word."""
        if isinstance(value, str) and value in self.words:
            return value
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise self.refuse(name, value)
        number = int(value)
        if abs(number) > LARGEST:
            raise UsageError(f"{name} must be a whole number below {LARGEST}")
        if number not in self.range:
            words = "".join(f" or {word}" for word in self.words)
            raise UsageError(f"{name} must be a whole number {_limits(self.range)}{words}, not {number}")
        return number

    @property
    def limits(self) -> str:
        """The range, in words."""
        return str(self.range) if self.range.high is None else f"in {self.range}"

    def read(self, name: str, text: str) -> int | str:
        """Convert a text to the number or the word that it spells, and check it."""
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))
        if not is_number and text not in self.words:
            words = "".join(f", nor {word}" for word in self.words)
            raise UsageError(f"{text!r} is not a whole number {_limits(self.range)}{words}")
        return self.check(name, int(text) if is_number else text)

    def schema(self) -> dict[str, Any]:
        """An integer, or one of the words."""
        number: dict[str, Any] = {"type": "integer", **_bounds(self.range)}
        return {"anyOf": [number, {"enum": list(self.words)}]} if self.words else number


@dataclass(eq=False, repr=False)
class Real(ValueKind):
    """A number in a range."""

    range: Range
    annotation = "float"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a number"

    def check(self, name: str, value: Any) -> float:
        """The number."""
        if not _is_number(value):
            raise self.refuse(name, value)
        if abs(value) > LARGEST or float(value) not in self.range:
            raise UsageError(f"{name} must be {_limits(self.range)}, not {value!r:.20}")
        return float(value)

    @property
    def limits(self) -> str:
        """The range, in words."""
        return f"in {self.range}"

    def read(self, name: str, text: str) -> float:
        """Convert a text to the number that it spells, and check it."""
        try:
            value = float(text)
        except ValueError:
            raise UsageError(f"{text!r} is not a number") from None
        return self.check(name, value)

    def schema(self) -> dict[str, Any]:
        """A number."""
        return {"type": "number", **_bounds(self.range)}


@dataclass(eq=False, repr=False)
class Switch(ValueKind):
    """True or false."""

    annotation = "bool"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "true or false"

    def check(self, name: str, value: Any) -> bool:
        """The truth value."""
        if not isinstance(value, bool):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """A truth value."""
        return {"type": "boolean"}


@dataclass(eq=False, repr=False)
class OneOf(ValueKind):
    """One of several words; where `when_true` and `when_false` are set, true and false may be given for these words."""

    words: tuple[str, ...]
    when_true: str | None = None
    when_false: str | None = None
    what: str = ""
    """How an error names the option; where empty, by its name."""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """One of the words."""
        return " | ".join([*([] if self.when_true is None else ["bool"]), f"Literal[{', '.join(map(_quoted, self.words))}]"])

    def describe(self) -> str:
        """The accepted values, in words."""
        return "true or false or text" if self.when_true is not None else "text"

    def check(self, name: str, value: Any) -> str:
        """The word."""
        if isinstance(value, bool) and self.when_true is not None and self.when_false is not None:
            return self.when_true if value else self.when_false
        if not isinstance(value, str):
            raise self.refuse(name, value)
        if value not in self.words:
            raise unknown(self.what or name, value, [word for word in self.words if word])
        return value

    def schema(self) -> dict[str, Any]:
        """One of the words."""
        words = {"enum": list(self.words)}
        return words if self.when_true is None else {"anyOf": [words, {"type": "boolean"}]}


@dataclass(eq=False, repr=False)
class Names(ValueKind):
    """A list of names; a single name may be given as a text."""

    separator: str = ""
    """The separator of names inside one text; empty where a text is always one name."""
    annotation = "str | Sequence[str]"
    many = True

    def describe(self) -> str:
        """The accepted values, in words."""
        return "text or a list of texts"

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        """The distinct names in the given order, without empty ones; None means no names."""
        texts = _listed(self, name, value)
        for text in texts:
            if not isinstance(text, str):
                raise UsageError(f"{name} must be {self.describe()}; one of them is {type_in_words(text)}")
        split = [part for text in texts for part in (text.split(self.separator) if self.separator else [text])]
        return tuple(dict.fromkeys(part.strip() if self.separator else part for part in split if part.strip()))

    def schema(self) -> dict[str, Any]:
        """A string or an array of strings."""
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

    def plain(self, value: Any) -> Any:
        """A list."""
        return list(value)


@dataclass(eq=False, repr=False)
class NamesOrNone(Names):
    """A list of names that restricts the search even where it is empty; None means no restriction."""

    annotation = "str | Sequence[str] | None"

    def check(self, name: str, value: Any) -> tuple[str, ...] | None:  # type: ignore[override]
        """The names, or None."""
        return None if value is None else Names.check(self, name, value)

    def schema(self) -> dict[str, Any]:
        """A string, an array of strings, or null."""
        return {"anyOf": [*Names.schema(self)["anyOf"], {"type": "null"}]}

    def plain(self, value: Any) -> Any:
        """A list, or None."""
        return None if value is None else list(value)


@dataclass(eq=False, repr=False)
class NamesOrAll(Names):
    """A list of names, or a truth value: true means all names, false means none."""

    annotation = "bool | str | Sequence[str]"
    many = False

    def describe(self) -> str:
        """The accepted values, in words."""
        return "true or false or text or a list of texts"

    def check(self, name: str, value: Any) -> Any:
        """The names, True, or False."""
        return value if isinstance(value, bool) else Names.check(self, name, value) or False

    def schema(self) -> dict[str, Any]:
        """A truth value, a string or an array of strings."""
        return {"anyOf": [{"type": "boolean"}, *Names.schema(self)["anyOf"]]}

    def plain(self, value: Any) -> Any:
        """A truth value or a list."""
        return value if isinstance(value, bool) else list(value)


@dataclass(eq=False, repr=False)
class Conditions(Names):
    """Conditions as text, each checked by a parser, or as objects that are conditions."""

    parser: str = ""
    object_type: str = ""
    marker: str = ""
    """The attribute that every object that is a condition has."""
    example: str = ""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """A text or an object, or a sequence of them."""
        name = _class_name(self.object_type)
        return f"str | {name} | Sequence[str | {name}]"

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """The conditions in the given order; None means no condition."""
        given = [value] if hasattr(value, self.marker) or isinstance(value, Mapping) else _listed(self, name, value)
        for condition in given:
            if isinstance(condition, str):
                _imported(self.parser)(condition)
            elif not hasattr(condition, self.marker):
                raise UsageError(f"a {name} is a text such as {self.example!r}, or several, not {type_in_words(condition)}")
        return tuple(given)

    def plain(self, value: Any) -> Any:
        """A list of texts."""
        if not all(isinstance(condition, str) for condition in value):
            raise UsageError("a condition that was given as an object has no text: give it as text to write it to a file or send it")
        return list(value)


@dataclass(eq=False, repr=False)
class Numbers(ValueKind):
    """A table of numbers by name, or None. With a parser, a text that it can parse may be given for the table."""

    parser: str = ""
    what: str = "a table of numbers"
    annotation = "Mapping[str, float] | None"

    def describe(self) -> str:
        """The accepted values, in words."""
        return self.what

    def check(self, name: str, value: Any) -> Mapping[str, float] | None:
        """The table of numbers, all of them finite, or None."""
        if value is None:
            return None
        if isinstance(value, str) and value and self.parser:
            value = _imported(self.parser)(value)
        if not isinstance(value, Mapping):
            raise self.refuse(name, value)
        for key, number in value.items():
            if not isinstance(key, str) or not _is_number(number):
                raise UsageError(f"{name} must be {self.describe()}; {str(key)[:40]!r} has {type_in_words(number)}")
            if abs(number) > LARGEST or not math.isfinite(number):
                raise UsageError(f"{name} must be {self.describe()}, all of them finite numbers")
        return dict(value)

    def schema(self) -> dict[str, Any]:
        """An object of numbers."""
        return {"anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, {"type": "null"}]}

    def plain(self, value: Any) -> Any:
        """A dictionary."""
        return None if value is None else dict(value)


@dataclass(eq=False, repr=False)
class Service(ValueKind):
    """The address of a service as text, a function that does the same, or None."""

    object_type: str = ""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """The address, or the function."""
        return f"str | {_class_name(self.object_type)} | None"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "an address or a function"

    def check(self, name: str, value: Any) -> Any:
        """The address or the function."""
        if value is not None and not isinstance(value, str) and not callable(value):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """A string."""
        return {"anyOf": [{"type": "string"}, {"type": "null"}]}


LARGEST = 1 << 62
"""Largest number that an option may have: kernels count in 64 bits."""


def _listed(kind: ValueKind, name: str, value: Any) -> Sequence[Any]:
    """One or several values as a list. The values of a set are sorted; None gives an empty list."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise kind.refuse(name, value)
    return sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)


def type_in_words(value: object) -> str:
    """The type of a value in the words of JSON and TOML.

    >>> type_in_words("10"), type_in_words(True), type_in_words([1, "a"]), type_in_words({"a": 1})
    ('text', 'true or false', 'a list', 'a table')
    """
    for types, words in _IN_WORDS:
        if isinstance(value, types):
            return words
    return type(value).__name__


_IN_WORDS: Sequence[tuple[tuple[type, ...], str]] = (
    ((str,), "text"), ((bool,), "true or false"), ((int,), "a whole number"), ((float,), "a number"),
    ((list, tuple, set, frozenset), "a list"), ((Mapping,), "a table"), ((type(None),), "nothing"),
)  # fmt: skip


@cache
def _imported(name: str) -> Any:
    """Import `module:attribute` and return the attribute."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _class_name(name: str) -> str:
    return name.partition(":")[2]


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _limits(range: Range) -> str:
    return f"of {range}" if range.high is None else f"in {range}"


def _bounds(range: Range) -> dict[str, Any]:
    low = {} if range.low is None else {"exclusiveMinimum" if range.low_open else "minimum": range.low}
    return low if range.high is None else {**low, "maximum": range.high}


def _quoted(word: str) -> str:
    return f'"{word}"'
