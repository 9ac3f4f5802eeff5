"""Kinds of values that an option can have: what each accepts, its one canonical form, and how JSON, TOML and a command line write it.

A kind is made once, where an option is declared, and never compared or printed. Generating those methods would cost every start 5 ms.
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
    """What values an option accepts. `check` returns the canonical form of a value or raises a `UsageError` that names the option."""

    annotation: ClassVar[str] = "object"
    """The type of a value as given by a Python caller, as source code."""
    many: ClassVar[bool] = False
    """Whether the option can be repeated on a command line; the values form a list."""

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
        """A canonical value as JSON and TOML have it."""
        return value

    def refuse(self, name: str, value: object) -> UsageError:
        """The error for a value of a wrong type."""
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
    """A text in a notation of its own, such as `bm25(k1=1.2)`; it is parsed once to check it, and kept as text."""

    parser: str = ""
    """The function that reads it, as `module:function`. It is imported when a value is checked: options are declared without numpy."""
    object_type: str = ""
    """The type of object that may be given in place of its text, as `module:class`; its `str` is the text."""
    required: bool = False
    """Whether an empty text is an error; else it stands for none."""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """Text, or the object itself."""
        return f"str | {_class_name(self.object_type)}" if self.object_type else "str"

    def check(self, name: str, value: Any) -> str:
        """The text of a value that the parser accepts."""
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
        """The number or the word that a text spells."""
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
        """The number that a text spells."""
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
    """One of several words; `when_true` and `when_false` are the words that true and false stand for."""

    words: tuple[str, ...]
    when_true: str | None = None
    when_false: str | None = None
    what: str = ""
    """How an error names the option; its name where empty."""

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
    """A list of names; one alone may be given as a text."""

    separator: str = ""
    """What separates names inside one text; empty where a text is one name."""
    annotation = "str | Sequence[str]"
    many = True

    def describe(self) -> str:
        """The accepted values, in words."""
        return "text or a list of texts"

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        """The names without empty ones, each once, in their order; None stands for no name."""
        ordered = _listed(self, name, value)
        for one in ordered:
            if not isinstance(one, str):
                raise UsageError(f"{name} must be {self.describe()}; one of them is {type_in_words(one)}")
        split = [part for one in ordered for part in (one.split(self.separator) if self.separator else [one])]
        return tuple(dict.fromkeys(part.strip() if self.separator else part for part in split if part.strip()))

    def schema(self) -> dict[str, Any]:
        """A string or an array of strings."""
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

    def plain(self, value: Any) -> Any:
        """A list."""
        return list(value)


@dataclass(eq=False, repr=False)
class NamesOrNone(Names):
    """A list of names that restricts even where it is empty; None where it was not given."""

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
    """A list of names, true for all of them, false for none."""

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
    """Conditions written as text, each checked by a parser; objects that are conditions may be given in place of their text."""

    parser: str = ""
    object_type: str = ""
    marker: str = ""
    """The attribute by which such an object is known."""
    example: str = ""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """Texts or objects, one or several."""
        name = _class_name(self.object_type)
        return f"str | {name} | Sequence[str | {name}]"

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """The conditions in their order; None stands for no condition."""
        given = [value] if hasattr(value, self.marker) or isinstance(value, Mapping) else _listed(self, name, value)
        for one in given:
            if isinstance(one, str):
                _imported(self.parser)(one)
            elif not hasattr(one, self.marker):
                raise UsageError(f"a {name} is a text such as {self.example!r}, or several, not {type_in_words(one)}")
        return tuple(given)

    def plain(self, value: Any) -> Any:
        """A list of texts."""
        if not all(isinstance(one, str) for one in value):
            raise UsageError("a condition that was given as an object has no text, and cannot be written to a file or sent")
        return list(value)


@dataclass(eq=False, repr=False)
class Numbers(ValueKind):
    """Numbers by name; `None` for none. With a parser, a text that it reads may be given in their place."""

    parser: str = ""
    what: str = "a table of numbers"
    annotation = "Mapping[str, float] | None"

    def describe(self) -> str:
        """The accepted values, in words."""
        return self.what

    def check(self, name: str, value: Any) -> Mapping[str, float] | None:
        """The numbers by name."""
        if value is None:
            return None
        if isinstance(value, str) and value and self.parser:
            value = _imported(self.parser)(value)
        if not isinstance(value, Mapping):
            raise self.refuse(name, value)
        for key, one in value.items():
            if not isinstance(key, str) or not _is_number(one):
                raise UsageError(f"{name} must be {self.describe()}; {str(key)[:40]!r} has {type_in_words(one)}")
            if abs(one) > LARGEST or not math.isfinite(one):
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
    """An address of a service as text, or a function that does the same; None for none."""

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
"""No number of an option is larger: kernels count in 64 bits."""


def _listed(kind: ValueKind, name: str, value: Any) -> Sequence[Any]:
    """One value or several, as a list; the values of a set are sorted."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise kind.refuse(name, value)
    return sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)


def type_in_words(value: object) -> str:
    """What kind of value this is, as a user of JSON or TOML would say.

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
    """What a module defines, by `module:name`."""
    module, _, own = name.partition(":")
    return getattr(importlib.import_module(module), own)


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
