"""Options: named settings, declared once as the fields of a frozen dataclass.

    @dataclass(frozen=True, kw_only=True)
    class SearchOptions(Options):
        k: int = option(10, Whole(Range(1)), "Number of passages to return.", metavar="N")

A declaration has a default, a kind of value (`core.values`) and a sentence of help. Keyword arguments, command-line
options, keys of files and the JSON schema all derive from `declared(SearchOptions)`.
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
    """One declared option."""

    name: str
    default: Any
    kind: ValueKind
    help: str
    """One or two sentences: what the option does."""
    group: str = ""
    """The heading of the option in a list of options."""
    flag: str = ""
    """The command-line option; where empty it is `--name`, or `--no-name` for a switch that is on by default."""
    metavar: str = ""
    help_off: str = ""
    """For a switch that is on by default: what the command-line option that turns it off does."""
    restricts: bool = False
    """Whether an empty value would widen the search. Commands refuse it: mostly, a shell variable is not set."""
    together: bool = False
    """Whether the option needs all candidates at once, so that candidates cannot be joined in batches."""
    local: bool = False
    """Whether requests over HTTP may not set the option, because it makes this machine send text elsewhere."""
    surfaces: frozenset[str] = frozenset()
    """Where the option can be given besides Python, command line and HTTP: `recipe`, `topic`."""

    def check(self, value: Any) -> Any:
        """The canonical form of a value."""
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
    """Declare a field of `Options`; see `Option` for what each argument means."""
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
    """The options with all defaults, unchecked: a check would import the parsers of notations. A test checks them."""
    instance = object.__new__(options)
    instance.__dict__.update({name: option.default for name, option in declared(options).items()})
    return instance


@dataclass(frozen=True)
class Declared:
    """Base class of classes whose fields are declared with `option`."""


@dataclass(frozen=True)
class Options(Declared):
    """Base class of options: immutable, checked on creation, comparable, and convertible to plain values."""

    def __post_init__(self) -> None:
        for name, option in declared(type(self)).items():
            object.__setattr__(self, name, option.check(getattr(self, name)))

    @classmethod
    def of(cls: type[Own], given: Mapping[str, Any]) -> Own:
        """The defaults, with the given values in place of some."""
        defaults: Own = _defaults(cast(Any, cls))
        return defaults.updated(given)

    def updated(self: Own, given: Mapping[str, Any]) -> Own:
        """A copy with the given values in place of some; only the given values are checked."""
        if not given:
            return self
        checked = checked_options(type(self), given)
        # `dataclasses.replace` would check and set forty fields, and every search comes here.
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(checked)
        return copy

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {name: getattr(self, name) for name, option in declared(type(self)).items() if getattr(self, name) != option.default}

    def plain(self) -> dict[str, Any]:
        """The options that differ from their defaults, as values for JSON and TOML; `of` reads them back."""
        known = declared(type(self))
        return {name: known[name].kind.plain(value) for name, value in self.changed().items()}


def checked_options(options: type[Options], given: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Canonical values of the given options. A name that is not among `names` (default: all options) is an error."""
    known = declared(options)
    valid = known if names is None else list(names)
    for name in given:
        if name not in valid:
            raise unknown("option", name, valid)
    return {name: known[name].check(value) for name, value in given.items()}


def schema_of(options: type[Options]) -> dict[str, Any]:
    """The JSON schema of options in a request: every option may be left out, and `local` options are not allowed."""
    properties = {
        name: {**option.kind.schema(), "description": option.help, "default": option.kind.plain(option.default)}
        for name, option in declared(options).items()
        if not option.local
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}
