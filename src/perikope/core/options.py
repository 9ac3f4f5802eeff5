"""Options: named settings, declared once as the fields of a frozen dataclass.

    @dataclass(frozen=True, kw_only=True)
    class SearchOptions(Options):
        k: int = option(10, Whole(Range(1)), "Number of passages to return.", metavar="N")

A declaration consists of a default, a kind of value (`core.values`) and a sentence of help. Keyword arguments,
command-line options, keys of files and the JSON schema all derive from `declared(SearchOptions)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar, cast

from perikope.core.errors import unknown
from perikope.core.values import ValueKind

Own = TypeVar("Own", bound="Options")


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of one option."""

    name: str
    default: Any
    kind: ValueKind
    help: str
    """One or two sentences that say what the option does."""
    group: str = ""
    """The heading under which a list of options shows the option."""
    flag: str = ""
    """The name on a command line. If empty, it is `--name`, or `--no-name` for a switch that is on by default."""
    metavar: str = ""
    help_off: str = ""
    """The help of `--no-name`, for a switch that is on by default."""
    restricts: bool = False
    """Whether the option restricts the search. Commands then refuse an empty value, which is usually a shell variable
    that is not set and would search everything."""
    together: bool = False
    """Whether the option needs the matches of all candidates at once, so that they cannot be processed in batches."""
    local: bool = False
    """Whether HTTP requests are forbidden to set the option, because it makes this machine send text to another one."""
    surfaces: frozenset[str] = frozenset()
    """Where the option can be set in addition to Python, the command line and HTTP: `recipe`, `topic`."""

    def check(self, value: Any) -> Any:
        """Return the canonical form of a value.

        A value that is not accepted raises a `UsageError` that names the option.
        """
        return self.kind.check(self.name, value)

    @property
    def command_line(self) -> str:
        """The name of the option on a command line, such as `--fetch-k`."""
        negation = "no-" if self.default is True else ""
        return self.flag or f"--{negation}{self.name.replace('_', '-')}"


def option(
    default: Any, kind: ValueKind, help: str, *, group: str = "", flag: str = "", metavar: str = "", help_off: str = "",
    restricts: bool = False, together: bool = False, local: bool = False, surfaces: Iterable[str] = (),
) -> Any:  # fmt: skip
    """Declare a field of `Options`. The arguments are the attributes of `Option`."""
    details = {"kind": kind, "help": help, "group": group, "flag": flag, "metavar": metavar, "help_off": help_off}
    more = {"restricts": restricts, "together": together, "local": local, "surfaces": frozenset(surfaces)}
    return field(default=default, metadata={"option": {**details, **more}})


def declared(options: type[Declared]) -> Mapping[str, Option]:
    """The options that a class declares, by name, in the order of declaration."""
    by_name: Mapping[str, Option] = _declared(cast(Any, options))
    return by_name


@cache
def _declared(options: Any) -> Mapping[str, Option]:
    by_name = {}
    for declaration in fields(options):
        assert declaration.default is not MISSING
        by_name[declaration.name] = Option(declaration.name, declaration.default, **declaration.metadata["option"])
    return MappingProxyType(by_name)


@cache
def _defaults(options: Any) -> Any:
    """The options with all defaults. They are not checked here, since that would import parsers; a test checks them."""
    instance = object.__new__(options)
    instance.__dict__.update({name: option.default for name, option in declared(options).items()})
    return instance


@dataclass(frozen=True)
class Declared:
    """Base class of classes whose fields are declared with `option`."""


@dataclass(frozen=True)
class Options(Declared):
    """Base class of sets of options.

    They are immutable, checked on creation, comparable and convertible to plain values.
    """

    def __post_init__(self) -> None:
        for name, option in declared(type(self)).items():
            object.__setattr__(self, name, option.check(getattr(self, name)))

    @classmethod
    def of(cls: type[Own], given: Mapping[str, Any]) -> Own:
        """Make options from the given values; all others have their defaults. The given values are checked."""
        defaults: Own = _defaults(cast(Any, cls))
        return defaults.updated(given)

    @classmethod
    def declared_with(cls: type[Own], defaults: Mapping[str, Any]) -> Own:
        """Options with other defaults, which the program declares. They are not checked: that would import parsers."""
        own: Own = _defaults(cast(Any, cls))
        return own._with(defaults)

    def updated(self: Own, given: Mapping[str, Any]) -> Own:
        """Return a copy with the given values changed. Only the given values are checked."""
        return self._with(checked_options(type(self), given)) if given else self

    def _with(self: Own, checked: Mapping[str, Any]) -> Own:
        # `dataclasses.replace` would check and set forty fields, which is too slow: every search calls this method.
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(checked)
        return copy

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name."""
        return {name: getattr(self, name) for name, option in declared(type(self)).items() if getattr(self, name) != option.default}

    def plain(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name, as values for JSON and TOML. `of` reads them back."""
        known = declared(type(self))
        return {name: known[name].kind.plain(value) for name, value in self.changed().items()}


def checked_options(options: type[Options], given: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Check the given options; returns their canonical values by name.

    A name that is not among `names` (default: all options of the class) is an error.
    """
    known = declared(options)
    valid = known if names is None else list(names)
    for name in given:
        if name not in valid:
            raise unknown("option", name, valid)
    return {name: known[name].check(value) for name, value in given.items()}


def schema_of(options: type[Options]) -> dict[str, Any]:
    """A JSON schema for the options of an HTTP request. No option is required, and `local` options are not accepted."""
    properties = {
        name: {**option.kind.schema(), "description": option.help, "default": option.kind.plain(option.default)}
        for name, option in declared(options).items()
        if not option.local
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}
