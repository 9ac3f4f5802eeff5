"""Parameters of models and measures, declared once in the signature of a function.

    def combine(
        signals, *, alpha: Annotated[float, Range(0, 1), Grid(step=0.1), "Share of the document's score."] = 0.8
    ) -> Column: ...

The text in the annotation says what the parameter does. If annotations are nested, the outermost text is used. So each
use of a shared type can have its own description: `beta: Annotated[Share, "Share of the section's score."]`.

The command line, errors, `repr`, tuning grids and documentation all derive from `parameters_of(combine)`.
"""

from __future__ import annotations

import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from perikope.core.errors import UsageError, unknown
from perikope.core.grammar import Call, write


@dataclass(frozen=True, slots=True)
class Range:
    """A range of finite numbers. Both ends are included, but `low_open` excludes the low end. None means no limit."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False

    def __contains__(self, value: float) -> bool:
        if math.isnan(value) or math.isinf(value):
            return False
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        return self.high is None or value <= self.high

    def __str__(self) -> str:
        if self.high is None:
            return "any number" if self.low is None else f"{'above' if self.low_open else 'at least'} {self.low:g}"
        return f"{'(' if self.low_open else '['}{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class Grid:
    """The values that tuning tries.

    They are the listed `values` or, if `step` is set, all steps from the low to the high end of the range.
    """

    values: tuple[object, ...] = ()
    step: float | None = None


@dataclass(frozen=True, slots=True)
class Nested:
    """Marks a parameter whose value is a registry entry, such as a model inside a model.

    `resolve` returns the entry for a name or call. With `each`, the value is a list of entries.
    """

    resolve: Callable[[Call | str], object]
    each: bool = False
    describes: str = ""
    """The accepted values, in words."""


MOST_EXACT = 1 << 53
"""Up to this number, a float represents every whole number exactly."""

Extra = TypeVar("Extra")
AnyType = type
"""The builtin `type`, whose name is hidden inside `Parameter` by a field."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter: type, default, range, grid and description."""

    name: str
    type: type
    default: object
    optional: bool = False
    choices: tuple[object, ...] = ()
    range: Range | None = None
    grid: Grid | None = None
    nested: Nested | None = None
    item: AnyType | None = None
    """The type of the values in a list; None if the parameter is not a list of plain values."""
    help: str = ""
    """One sentence that says what the parameter does."""

    def check(self, owner: str, value: object) -> object:
        """Convert a value to the declared type, or raise a `UsageError` that names `owner` and the allowed values."""
        if value is None and self.optional:
            return None
        if self.nested is not None and self.nested.each:
            return self._resolve_each(owner, value, self.nested)
        if self.nested is not None:
            if isinstance(value, (Call, str)):
                return self.nested.resolve(value)
            return value
        if isinstance(value, Call) and not value.arguments and not value.positional:
            value = value.name  # an unquoted word: kernel=gauss
        if value is None and "none" in self.choices:
            value = "none"  # the grammar reads the word `none` as None
        if self.choices:
            if value not in self.choices:
                raise unknown(f"value of {owner}'s {self.name}", str(value), [str(choice) for choice in self.choices])
            return value
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise UsageError(f"{owner}: {self.name} is too large a number; it must be {self.describe_range()}")
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self.type is int and isinstance(value, float) and value.is_integer() and abs(value) <= MOST_EXACT:
            value = int(value)  # 1e5
        if not isinstance(value, self.type) or (isinstance(value, bool) and self.type is not bool):
            shown = str(value) if isinstance(value, Call) else write(value)
            raise UsageError(f"{owner}: {self.name} must be {_TYPE_NAMES.get(self.type, self.type.__name__)}, not {shown}")
        if self.item is not None and isinstance(value, tuple):
            each = replace(self, name=f"each of {self.name}", type=self.item, item=None, optional=False)
            return tuple(each.check(owner, entry) for entry in value)
        if self.range is not None and isinstance(value, (int, float)) and value not in self.range:
            raise UsageError(f"{owner}: {self.name}={write(value)} is out of range; it must be {self.describe_range()}")
        return value

    def _resolve_each(self, owner: str, value: object, nested: Nested) -> tuple[object, ...]:
        """Resolve the names in a list to registry entries.

        A value that is not a list, or an empty list, is an error.
        """
        if not isinstance(value, tuple) or not value:
            shown = str(value) if isinstance(value, Call) else write(value)
            raise UsageError(f"{owner}: {self.name} must be a list such as [a,b(c=1)], not {shown}")
        for entry in value:
            if entry is None or isinstance(entry, (int, float, tuple)):
                raise UsageError(f"{owner}: each of {self.name} must be a name, not {write(entry)}")
        return tuple(nested.resolve(entry) if isinstance(entry, (Call, str)) else entry for entry in value)

    def describe_range(self) -> str:
        """The allowed values, in words."""
        if self.nested is not None and self.nested.describes:
            return self.nested.describes
        if self.item is not None:
            return f"a list, each {replace(self, item=None, type=self.item).describe_range()}"
        if self.choices:
            return " or ".join(write(choice) for choice in self.choices)
        if self.range is not None:
            inside = "in " if self.range.high is not None else ""
            return f"{inside}{self.range}"
        return _TYPE_NAMES.get(self.type, self.type.__name__)

    def grid_values(self) -> tuple[object, ...]:
        """The values that tuning tries: the grid if there is one, else all choices, else only the default."""
        if self.grid is None:
            return self.choices or (self.default,)
        if self.grid.step is None or self.range is None or self.range.low is None or self.range.high is None:
            return self.grid.values
        steps = round((self.range.high - self.range.low) / self.grid.step)
        # Rounded so that the third step of 0.1 is 0.3 and not 0.30000000000000004.
        return tuple(round(self.range.low + i * self.grid.step, 12) for i in range(steps + 1))


_TYPE_NAMES: Mapping[type, str] = {float: "a number", int: "a whole number", str: "text", bool: "true or false", tuple: "a list"}


@cache
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    kinds = inspect.signature(function).parameters.items()
    return tuple(name for name, parameter in kinds if parameter.kind is inspect.Parameter.KEYWORD_ONLY)


def call(function: Callable[..., Any], arguments: Sequence[Any], parameters: Mapping[str, object]) -> Any:
    """Call a function with positional `arguments` and with the `parameters` that it declares as keyword-only.

    `parameters` must contain all keyword-only parameters of the function; others are left out.
    """
    return function(*arguments, **{name: parameters[name] for name in _names(function)})


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The keyword-only parameters of a function by name, as declared by its annotations."""
    hints = get_type_hints(function, include_extras=True)
    declarations: dict[str, Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            if name not in hints:
                raise UsageError(f"the parameter {name} of {function.__name__} has no type; write it as in {name}: float = 0.5")
            declarations[name] = _declared(name, hints[name], parameter.default)
    return declarations


def _declared(name: str, hint: Any, default: object) -> Parameter:
    extras: tuple[Any, ...] = ()
    if get_origin(hint) is typing.Annotated:
        hint, *rest = get_args(hint)
        extras = tuple(rest)
    optional = False
    if get_origin(hint) in (types.UnionType, typing.Union):
        members = [member for member in get_args(hint) if member is not type(None)]
        optional = len(members) < len(get_args(hint))
        hint = members[0]
    choices: tuple[object, ...] = ()
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        hint = type(choices[0])
    nested = _pick(extras, Nested)
    item = get_args(hint)[0] if get_origin(hint) is tuple and nested is None else None
    hint = get_origin(hint) or hint
    return Parameter(name, hint, default, optional, choices, _pick(extras, Range), _pick(extras, Grid), nested, item, _help(extras))


def _pick(extras: tuple[Any, ...], kind: type[Extra]) -> Extra | None:
    return next((extra for extra in extras if isinstance(extra, kind)), None)


def _help(extras: tuple[Any, ...]) -> str:
    """The last text among `extras`, or an empty text.

    It is the outermost, since nested annotations list inner texts first.
    """
    return next((extra for extra in reversed(extras) if isinstance(extra, str)), "")


def bind(owner: str, declared: Mapping[str, Parameter], given: Mapping[str, object]) -> dict[str, object]:
    """Check the given values against the declarations and fill in defaults. Errors name the function as `owner`."""
    for name in given:
        if name not in declared:
            raise unknown(f"parameter of {owner}", name, list(declared))
    bound: dict[str, object] = {}
    for name, parameter in declared.items():
        if name in given:
            bound[name] = parameter.check(owner, given[name])
        elif parameter.default is inspect.Parameter.empty:
            raise UsageError(f"{owner} needs {name} ({parameter.describe_range()}); give a value")
        else:
            bound[name] = parameter.check(owner, parameter.default)
    return bound
