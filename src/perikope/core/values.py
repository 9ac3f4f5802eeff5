"""Kinds of option values. A kind checks values, brings them into a canonical form, and converts them for JSON and TOML.

A kind is created once, where an option is declared, and is never compared or printed. The dataclasses here therefore
have no `__eq__` and no `__repr__`: generating these methods would cost 5 ms at every start.
"""

from __future__ import annotations

import importlib
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from perikope.core.errors import UsageError, unknown
from perikope.core.parameters import Range


class ValueKind(ABC):
    """Base class of kinds of values. A kind defines which values an option accepts."""

    annotation: ClassVar[str] = "object"
    """The type that a Python caller may pass, as source code."""
    many: ClassVar[bool] = False
    """Whether the option can be repeated on a command line; its values then form a list."""

    @abstractmethod
    def describe(self) -> str:
        """The accepted values, in words."""

    @abstractmethod
    def check(self, name: str, value: Any) -> Any:
        """Return the canonical form of a value.

        A value that is not accepted raises a `UsageError` that names the option.
        """

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """A JSON schema for the accepted values."""

    @property
    def limits(self) -> str:
        """The range of a number, in words; empty if the values are not numbers."""
        return ""

    def plain(self, value: Any) -> Any:
        """Convert a canonical value to a value for JSON and TOML."""
        return value

    def located(self, value: Any, folder: Path) -> Any:
        """The value as given in a file of this folder. Kinds that accept paths make them relative to the folder."""
        return value

    def refuse(self, name: str, value: object) -> UsageError:
        """Make the error for a value of a wrong type; `name` is the name of the option."""
        return UsageError(f"{name} must be {self.describe()}, not {type_in_words(value)}")


@dataclass(eq=False, repr=False)
class Text(ValueKind):
    """Any text, also an empty one."""

    annotation = "str"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "text"

    def check(self, name: str, value: Any) -> str:
        """Return the text unchanged; another value is an error."""
        if not isinstance(value, str):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string."""
        return {"type": "string"}


@dataclass(eq=False, repr=False)
class Notation(Text):
    """The kind of values that are texts in a notation, such as `bm25(k1=1.2)`. A text is valid if it can be parsed."""

    parser: str = ""
    """The function that parses the text, as `module:function`. It is imported at the first check, so that declaring an
    option does not import numpy."""
    object_type: str = ""
    """The class of objects that may be given in place of the text, as `module:class`. `str(object)` is the text. The
    parser then also accepts functions that define such an object."""
    required: bool = False
    """Whether an empty text is an error. Otherwise an empty text means that the option is not used."""
    words: tuple[str, ...] = ()
    """Words that are accepted in addition to texts in the notation. They are not parsed."""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """The Python type of the values: `str` or, with `object_type`, also this class and functions."""
        return f"str | {_class_name(self.object_type)} | Callable[..., object]" if self.object_type else "str"

    def check(self, name: str, value: Any) -> str:
        """Return the text, or `str` of the object; raises the parser's error if the text cannot be parsed."""
        if not isinstance(value, str):
            if not self.object_type or not (callable(value) or isinstance(value, _imported(self.object_type))):
                raise self.refuse(name, value)
            return str(_imported(self.parser)(value))
        if value and value not in self.words:
            _imported(self.parser)(value)
        elif not value and self.required:
            raise UsageError(f"{name} is empty; give a value, or leave it out")
        return value


@dataclass(eq=False, repr=False)
class Whole(ValueKind):
    """A whole number in a range, or one of `words`."""

    range: Range
    words: tuple[str, ...] = ()

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """The type `int`, and a `Literal` of the words if there are any."""
        return " | ".join(["int", *([f"Literal[{', '.join(map(_quoted, self.words))}]"] if self.words else [])])

    def describe(self) -> str:
        """The accepted values, in words."""
        return " or ".join([f"a whole number {_limits(self.range)}" if self.words else "a whole number", *self.words])

    def check(self, name: str, value: Any) -> int | str:
        """Return the number as an `int`, or the word; a number outside the range is an error."""
        if isinstance(value, str) and value in self.words:
            return value
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise self.refuse(name, value)
        number = int(value)
        is_small = abs(number) <= LARGEST
        if not is_small or number not in self.range:
            words = "".join(f" or {word}" for word in self.words)
            most = f" and at most {LARGEST}" if self.range.high is None and number > LARGEST else ""
            shown = number if is_small else f"a number of about {round(number.bit_length() * math.log10(2))} digits"
            raise UsageError(f"{name} must be a whole number {_limits(self.range)}{most}{words}, not {shown}")
        return number

    @property
    def limits(self) -> str:
        """The range, in words."""
        return str(self.range) if self.range.high is None else f"in {self.range}"

    def read(self, name: str, text: str) -> int | str:
        """Convert a text to the number or the word that it spells, and check it."""
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))
        if not is_number and text not in self.words:
            words = "".join(f" or {word}" for word in self.words)
            raise UsageError(f"{name} must be a whole number {_limits(self.range)}{words}, not {text!r:.20}")
        return self.check(name, int(text) if is_number else text)

    def schema(self) -> dict[str, Any]:
        """A JSON schema for an integer in the range, or one of the words."""
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
        """Return the number as a `float`; a number outside the range is an error."""
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
            raise UsageError(f"{name} must be a number, not {text!r:.20}") from None
        return self.check(name, value)

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a number in the range."""
        return {"type": "number", **_bounds(self.range)}


@dataclass(eq=False, repr=False)
class Switch(ValueKind):
    """A truth value, true or false."""

    annotation = "bool"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "true or false"

    def check(self, name: str, value: Any) -> bool:
        """Return the truth value; another value is an error."""
        if not isinstance(value, bool):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a truth value."""
        return {"type": "boolean"}


@dataclass(eq=False, repr=False)
class OneOf(ValueKind):
    """One of several words.

    If `when_true` and `when_false` are set, true and false are accepted too and mean these two words.
    """

    words: tuple[str, ...]
    when_true: str | None = None
    when_false: str | None = None
    what: str = ""
    """How the error for an unknown word names the option; if empty, by the option's name."""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """A `Literal` of the words, and `bool` if truth values are accepted."""
        return " | ".join([*([] if self.when_true is None else ["bool"]), f"Literal[{', '.join(map(_quoted, self.words))}]"])

    def describe(self) -> str:
        """The accepted values, in words."""
        return "true or false or text" if self.when_true is not None else "text"

    def check(self, name: str, value: Any) -> str:
        """Return the word; an unknown word is an error."""
        if isinstance(value, bool) and self.when_true is not None and self.when_false is not None:
            return self.when_true if value else self.when_false
        if not isinstance(value, str):
            raise self.refuse(name, value)
        if value not in self.words:
            raise unknown(self.what or name, value, [word for word in self.words if word])
        return value

    def schema(self) -> dict[str, Any]:
        """A JSON schema for one of the words, or a truth value if these are accepted."""
        words = {"enum": list(self.words)}
        return words if self.when_true is None else {"anyOf": [words, {"type": "boolean"}]}


@dataclass(eq=False, repr=False)
class Names(ValueKind):
    """A list of names; a single name may be given as a text."""

    separator: str = ""
    """The separator of names inside one text; empty if a text is always a single name."""
    annotation = "str | Sequence[str]"
    many = True

    def describe(self) -> str:
        """The accepted values, in words."""
        return "text or a list of texts"

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the distinct names in the given order.

        The names of a set are sorted; None and an empty list mean no names. An empty text is an error, because it would
        silently mean no names too.
        """
        texts = _listed(self, name, value)
        for text in texts:
            if not isinstance(text, str):
                raise UsageError(f"{name} must be {self.describe()}; one of the values is {type_in_words(text)}")
            if not text.strip():
                raise UsageError(f"{name} is empty; give a name or leave it out")
        split = [part for text in texts for part in (text.split(self.separator) if self.separator else [text])]
        return tuple(dict.fromkeys(part.strip() if self.separator else part for part in split if part.strip()))

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string or an array of strings."""
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

    def plain(self, value: Any) -> Any:
        """Convert the names to a list for JSON and TOML."""
        return list(value)


@dataclass(eq=False, repr=False)
class Lines(ValueKind):
    """The lines of a text file, given as the path of the file or as a list of lines.

    The value is the lines, so that options do not depend on the file after they are made.
    """

    reader: str = ""
    """The function that reads and checks a file, as `module:function`. It returns the lines as a tuple."""
    checker: str = ""
    """The function that checks lines, as `module:function`."""
    annotation = "str | Sequence[str]"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "the path of a file, or a list of its lines"

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the lines of the file, or the given lines; an empty path means no lines."""
        if isinstance(value, str):
            lines: tuple[str, ...] = _imported(self.reader)(value) if value else ()
            return lines
        lines = tuple(_listed(self, name, value))
        for line in lines:
            if not isinstance(line, str):
                raise UsageError(f"{name} must be {self.describe()}; one of the lines is {type_in_words(line)}")
        if lines:
            _imported(self.checker)(lines)
        return lines

    def located(self, value: Any, folder: Path) -> Any:
        """A path in a file is relative to the folder of this file."""
        return str(folder / value) if isinstance(value, str) and value else value

    def schema(self) -> dict[str, Any]:
        """A JSON schema for an array of strings. An HTTP request cannot name a file."""
        return {"type": "array", "items": {"type": "string"}}

    def plain(self, value: Any) -> Any:
        """Convert the lines to a list for JSON and TOML."""
        return list(value)


@dataclass(eq=False, repr=False)
class AnyTexts(Names):
    """A list of texts, which may be empty or equal; a single text may be given alone."""

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the texts as they are, in the given order."""
        texts = _listed(self, name, value)
        for text in texts:
            if not isinstance(text, str):
                raise UsageError(f"{name} must be {self.describe()}; one of the values is {type_in_words(text)}")
        return tuple(texts)


@dataclass(eq=False, repr=False)
class NamesOrNone(Names):
    """A list of names that restricts the search. An empty list allows nothing; None means no restriction."""

    annotation = "str | Sequence[str] | None"

    def check(self, name: str, value: Any) -> tuple[str, ...] | None:  # type: ignore[override]
        """Return the names as `Names.check` does, or None for None."""
        return None if value is None else Names.check(self, name, value)

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string, an array of strings, or null."""
        return {"anyOf": [*Names.schema(self)["anyOf"], {"type": "null"}]}

    def plain(self, value: Any) -> Any:
        """Convert the names to a list for JSON and TOML; None stays None."""
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
        """Return the names, True or False. An empty list of names becomes False."""
        return value if isinstance(value, bool) else Names.check(self, name, value) or False

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a truth value, a string or an array of strings."""
        return {"anyOf": [{"type": "boolean"}, *Names.schema(self)["anyOf"]]}

    def plain(self, value: Any) -> Any:
        """Convert the names to a list for JSON and TOML; a truth value stays as it is."""
        return value if isinstance(value, bool) else list(value)


@dataclass(eq=False, repr=False)
class Conditions(Names):
    """Conditions of a filter. Each is a text that a parser checks, or an object that represents a condition."""

    parser: str = ""
    """The function that parses a text, as `module:function`."""
    object_type: str = ""
    """The class that annotations name for such objects, as `module:class`."""
    marker: str = ""
    """The name of an attribute by which an object is recognised as a condition."""
    example: str = ""
    """A condition as text, shown in an error."""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """The type of a text or an object, or of a sequence of both."""
        name = _class_name(self.object_type)
        return f"str | {name} | Sequence[str | {name}]"

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        """Return the conditions in the given order. The conditions of a set are sorted; None means no condition."""
        given = [value] if hasattr(value, self.marker) or isinstance(value, Mapping) else _listed(self, name, value)
        for condition in given:
            if isinstance(condition, str):
                _imported(self.parser)(condition)
            elif not hasattr(condition, self.marker):
                raise UsageError(f"{name} must be a text such as {self.example!r}, or a list of such texts, not {type_in_words(condition)}")
        return tuple(given)

    def plain(self, value: Any) -> Any:
        """Convert the conditions to a list of texts for JSON and TOML; a condition that is an object is an error."""
        if not all(isinstance(condition, str) for condition in value):
            raise UsageError("a condition that is an object cannot be written to a file or sent to a server: give the condition as text")
        return list(value)


@dataclass(eq=False, repr=False)
class Numbers(ValueKind):
    """A table of numbers by name, or None.

    If a parser is set, a text that it turns into such a table is accepted too.
    """

    parser: str = ""
    what: str = "a table of numbers"
    annotation = "Mapping[str, float] | None"

    def describe(self) -> str:
        """The accepted values, in words."""
        return self.what

    def check(self, name: str, value: Any) -> Mapping[str, float] | None:
        """Return the table as a dictionary, or None; a number that is not finite is an error."""
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
                raise UsageError(f"{name} must be {self.describe()}; the number of {str(key)[:40]!r} is too large or not finite")
        return dict(value)

    def schema(self) -> dict[str, Any]:
        """A JSON schema for an object whose values are numbers, or null; also for a text if there is a parser."""
        texts = [{"type": "string"}] if self.parser else []
        return {"anyOf": [{"type": "object", "additionalProperties": {"type": "number"}}, *texts, {"type": "null"}]}

    def plain(self, value: Any) -> Any:
        """Convert the table to a dictionary for JSON and TOML; None stays None."""
        return None if value is None else dict(value)


@dataclass(eq=False, repr=False)
class Service(ValueKind):
    """The address of a service as text, a function that does the work of the service, or None."""

    object_type: str = ""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        """The Python type of the values: `str` for an address, `object_type` for a function, or None."""
        return f"str | {_class_name(self.object_type)} | None"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "an address or a function"

    def check(self, name: str, value: Any) -> Any:
        """Return the address, the function or None unchanged; another value is an error."""
        if value is not None and not isinstance(value, str) and not callable(value):
            raise self.refuse(name, value)
        return value

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a string or null."""
        return {"anyOf": [{"type": "string"}, {"type": "null"}]}


LARGEST = 1 << 62
"""The largest absolute value of a number in an option; larger numbers could overflow 64-bit integers in kernels."""


def _listed(kind: ValueKind, name: str, value: Any) -> Sequence[Any]:
    """Put one or several values into a sequence. The values of a set are sorted; None gives an empty sequence."""
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
