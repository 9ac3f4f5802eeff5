"""Options: named settings, declared once as the fields of a frozen dataclass.

    @dataclass(frozen=True, kw_only=True)
    class SearchOptions(Options):
        k: int = option(10, Whole(Range(1)), "Number of passages to return.", metavar="N")

A declaration has a default, a kind of value (`core.values`) and a sentence of help. Keyword arguments, command-line options, keys of files
and the JSON schema all derive from `declared(SearchOptions)`.
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
    """The heading that it stands under in a list of options."""
    flag: str = ""
    """The command-line option where it is not `--name`, or `--no-name` for a switch that is on by default."""
    metavar: str = ""
    help_off: str = ""
    """Of a switch that is on by default: what the command-line option that turns it off does."""
    restricts: bool = False
    """Whether an empty value would widen the search. A command line refuses it: it mostly comes from an unset variable."""
    together: bool = False
    """Whether it needs all candidates at once, so that documents cannot be looked into some at a time."""
    local: bool = False
    """Whether a program on another machine must not set it, because it makes this one send text somewhere."""
    surfaces: frozenset[str] = frozenset()
    """Where the option can be given besides Python, command line and HTTP."""

    def check(self, value: Any) -> Any:
        """The canonical form of a value."""
        return self.kind.check(self.name, value)

    @property
    def command_line(self) -> str:
        """The option as it is written on a command line."""
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
    """The options that a class declares, by name, in their order."""
    found: Mapping[str, Option] = _declared(cast(Any, options))
    return found


@cache
def _declared(options: Any) -> Mapping[str, Option]:
    found = {}
    for own in fields(options):
        assert own.default is not MISSING
        found[own.name] = Option(own.name, own.default, **own.metadata["option"])
    return MappingProxyType(found)


@cache
def _defaults(options: Any) -> Any:
    """The options with all defaults. They are not checked: that would import what reads a notation, and a contract test does it."""
    made = object.__new__(options)
    made.__dict__.update({name: one.default for name, one in declared(options).items()})
    return made


@dataclass(frozen=True)
class Declared:
    """Base of classes whose fields are declared with `option`."""


@dataclass(frozen=True)
class Options(Declared):
    """Base of option classes: immutable, checked when made, comparable, and writable as plain values."""

    def __post_init__(self) -> None:
        for name, one in declared(type(self)).items():
            object.__setattr__(self, name, one.check(getattr(self, name)))

    @classmethod
    def of(cls: type[Own], given: Mapping[str, Any]) -> Own:
        """The defaults with these values in their place."""
        made: Own = _defaults(cast(Any, cls))
        return made.updated(given)

    def updated(self: Own, given: Mapping[str, Any]) -> Own:
        """The same options with other values for some; only these are checked."""
        if not given:
            return self
        checked = checked_options(type(self), given)
        # `replace` would check and set forty fields; this is on the way of every search.
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.update(checked)
        return made

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {name: getattr(self, name) for name, one in declared(type(self)).items() if getattr(self, name) != one.default}

    def plain(self) -> dict[str, Any]:
        """The options that differ from their defaults as JSON and TOML have them; `of` reads them back."""
        known = declared(type(self))
        return {name: known[name].kind.plain(value) for name, value in self.changed().items()}


def checked_options(options: type[Options], given: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Canonical values of some options; an unknown name, or one that is not among `names`, is an error that lists the valid ones."""
    known = declared(options)
    valid = known if names is None else list(names)
    for name in given:
        if name not in valid:
            raise unknown("option", name, valid)
    return {name: known[name].check(value) for name, value in given.items()}


def schema_of(options: type[Options]) -> dict[str, Any]:
    """The JSON schema of an object that another machine sends: these options, all of which may be left out, without local ones."""
    properties = {
        name: {**one.kind.schema(), "description": one.help, "default": one.kind.plain(one.default)}
        for name, one in declared(options).items()
        if not one.local
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}
