"""The notation for models, measures and their settings: `name(parameter=value, …)@cutoff`.

A cutoff may also be written in brackets, as in papers: `iP[0.01]` for `iP@0.01`.

The parser is written by hand, for two reasons. Errors name their position in the text, and the text may come from an
HTTP request, so `eval` would be unsafe.

    call  = name [ "(" [ argument { "," argument } ] ")" ] [ "@" number | "[" number "]" ]
    argument = [ name "=" ] value
    value = number | string | "true" | "false" | "none" | "[" [ value { "," value } ] "]" | call
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from perikope.core.scanner import Scanner

Value = object
"""A parsed value: int, float, str, bool, None, a tuple of values or a `Call`."""

MAX_DEPTH = 16
"""The maximum depth of nested calls and lists, so that a hostile text cannot exhaust the stack."""

MAX_DIGITS = 400
"""The maximum length of a number, in characters. Every float fits; Python refuses whole numbers of thousands of
digits."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_CUTOFF = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"' + r"|'([^'\\]*(?:\\.[^'\\]*)*)'")
_WORDS: Mapping[str, object] = {"true": True, "false": False, "none": None, "True": True, "False": False, "None": None}


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed name with its arguments and cutoff. `str(call)` is a text that parses to the same call."""

    name: str
    arguments: Mapping[str, Value] = field(default_factory=dict)
    positional: tuple[Value, ...] = ()
    cutoff: float | None = None

    def __str__(self) -> str:
        parts = [write(value) for value in self.positional]
        parts += [f"{name}={write(value)}" for name, value in self.arguments.items()]
        inside = f"({','.join(parts)})" if parts else ""
        return self.name + inside + ("" if self.cutoff is None else f"@{write(self.cutoff)}")


def write(value: Value) -> str:
    """Write a value in the notation of this module.

    >>> write(("a", 0.5, None))
    '["a",0.5,none]'
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ",".join(write(item) for item in value) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, float):
        return repr(value)
    return str(value)


def parse(text: str) -> Call:
    """Parse a text that consists of one call; anything else is a `UsageError`.

    >>> parse("position_prior(base=plm(sigma=500))").arguments["base"].arguments
    {'sigma': 500}
    >>> parse("nDCG@10").cutoff, parse("iP[.01]").cutoff
    (10, 0.01)
    """
    parser = _GrammarParser(text)
    call = parser.call(0)
    parser.end()
    return call


class _GrammarParser(Scanner):
    """A parser with one method per rule of the grammar in the module's docstring."""

    def call(self, depth: int) -> Call:
        name = self.match(_NAME)
        if name is None:
            raise self.error("expected a name")
        arguments: dict[str, Value] = {}
        positional: list[Value] = []
        if self.take("("):
            while not self.take(")"):
                if (arguments or positional) and not self.take(","):
                    raise self.error("expected ',' or ')'")
                start = self.at
                keyword = self.match(_NAME)
                if keyword is not None and self.take("="):
                    if keyword in arguments:
                        raise self.error(f"{keyword!r} is given twice")
                    arguments[keyword] = self.value(depth + 1)
                else:
                    self.at = start
                    positional.append(self.value(depth + 1))
        return Call(name, arguments, tuple(positional), self.cutoff())

    def cutoff(self) -> float | None:
        mark = "@" if self.take("@") else "[" if self.take("[") else ""
        if not mark:
            return None
        digits = self.match(_CUTOFF)
        if digits is None:
            raise self.error(f"expected a number after {mark!r}")
        if mark == "[" and not self.take("]"):
            raise self.error("expected ']'")
        return self.number(digits)

    def value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH}")
        if self.take("["):
            items: list[Value] = []
            while not self.take("]"):
                if items and not self.take(","):
                    raise self.error("expected ',' or ']'")
                items.append(self.value(depth + 1))
            return tuple(items)
        quoted = self.match(_STRING)
        if quoted is not None:
            return re.sub(r"\\(.)", r"\1", quoted[1:-1])
        number = self.match(_NUMBER)
        if number is not None:
            return self.number(number)
        call = self.call(depth)
        if call.name in _WORDS and not call.arguments and not call.positional:
            return _WORDS[call.name]
        return call

    def number(self, digits: str) -> float:
        if len(digits) > MAX_DIGITS:
            raise self.error(f"a number has at most {MAX_DIGITS} characters; this one ends")
        if re.fullmatch(r"[+-]?\d+", digits):
            return int(digits)
        if not math.isfinite(value := float(digits)):
            raise self.error("the number is too large; it ends")
        return value

    def end(self) -> None:
        if self.rest():
            raise self.error("did not expect anything more")
