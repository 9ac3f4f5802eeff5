"""Configuration files: TOML whose tables are declared as classes, one field per key.

    @dataclass(frozen=True, kw_only=True)
    class TopicsKeys(Table):
        file: str = option("", Text(), "File of topics.")
        sample: int | None = option(None, Whole(Range(1)), "Number of topics to draw; all of them where left out.")

    @dataclass(frozen=True, kw_only=True)
    class ExperimentKeys(Table):
        title: str = option("", Text(), "Title of the report.")
        topics: TopicsKeys = table(TopicsKeys, "Topics and their judgements.")

    experiment = ExperimentKeys.parse(text, "my.toml", "an experiment")

The declaration is the same as that of search options (`core.options`), so a key has a kind, a default and a sentence of help.
Every error names the file, the table and the key, and says which keys or values are valid.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from perikope.core.errors import InputError, PerikopeError, unknown
from perikope.core.options import Declared, Option, Options, checked_options, declared, option
from perikope.core.values import ValueKind

SUFFIX = ".toml"
MAX_BYTES = 1 << 20
"""Size limit of a configuration file."""

Keys = TypeVar("Keys", bound="Table")
Value = TypeVar("Value")


def read_text(path: Path, what: str) -> str:
    """The text of a configuration file; `what` names the kind of file in errors ("a recipe")."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"is too large for {what}: the limit is {MAX_BYTES >> 20} MiB", path=path)
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the {what.split()[-1]}: {error.strerror}; check the path", path=path) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", path=path) from None


def parse_toml(text: str, path: object) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}", path=path) from None


@dataclass(frozen=True)
class Location:
    """A table of a file, as errors name it."""

    path: object
    """The file; None where the content comes from elsewhere."""
    what: str
    """The kind of file, with its article: "an experiment"."""
    table: str = ""
    """The name of the table, such as `training` or `system bm25`; empty for the top level."""

    def inner(self, table: str) -> Location:
        """The location of a table inside this one."""
        return Location(self.path, self.what, f"{self.table}.{table}" if self.table else table)

    def error(self, message: str) -> InputError:
        """The error for this table."""
        return InputError(f"[{self.table}] {message}" if self.table else message, path=self.path)

    def unknown_key(self, key: str, valid: Iterable[str]) -> InputError:
        """The error for a key that is not declared, with the nearest one and all valid ones."""
        kind = f"key in [{self.table}]" if self.table else f"key of {self.what}"
        return InputError(str(unknown(kind, key, valid)), path=self.path)

    @contextmanager
    def checking(self, key: str) -> Iterator[None]:
        """Name file, table and key in the errors of this block."""
        try:
            yield
        except InputError as error:
            if error.path is not None and error.path == self.path:
                raise
            raise self.wrong(key, f"is wrong: {error}") from error
        except PerikopeError as error:
            message = str(error)
            # Kinds of values name the key themselves; a parser of a notation does not know it.
            raise (self.error(message) if message.startswith(f"{key} ") else self.wrong(key, f"is wrong: {message}")) from error

    def wrong(self, key: str, message: str) -> InputError:
        """The error for a key."""
        return self.error(f"{key} {message}")


@dataclass(frozen=True)
class Table(Declared):
    """Base of declared tables. Values are checked when the table is read; absent keys have their defaults."""

    @classmethod
    def parse(cls: type[Keys], text: str, path: object, what: str) -> Keys:
        """Read the text of a whole file."""
        return cls.read(parse_toml(text, path), Location(path, what))

    @classmethod
    def read(cls: type[Keys], values: Mapping[str, Any], location: Location) -> Keys:
        """Check the values of a table and the tables inside it."""
        known = declared(cls)
        for key in values:
            if key not in known:
                raise location.unknown_key(key, known)
        content: dict[str, Any] = {}
        for key, key_option in known.items():
            if isinstance(key_option.kind, _Inner):
                content[key] = key_option.kind.read(key, values, location)
            elif key in values:
                with location.checking(key):
                    content[key] = key_option.check(values[key])
            else:
                content[key] = key_option.default
        table: Keys = object.__new__(cls)
        table.__dict__.update(content, _given=frozenset(values), _location=location)
        return table

    @property
    def given(self) -> frozenset[str]:
        """The keys that the file contains."""
        return cast(frozenset[str], self.__dict__["_given"])

    @property
    def location(self) -> Location:
        """Where the table is."""
        return cast(Location, self.__dict__["_location"])

    def moved(self: Keys, name: str) -> Keys:
        """The same table under another name in errors, such as that of the system that it describes."""
        table: Keys = object.__new__(type(self))
        table.__dict__.update(self.__dict__, _location=Location(self.location.path, self.location.what, name))
        return table

    def wrong(self, key: str, message: str) -> InputError:
        """The error for a key."""
        return self.location.wrong(key, message)

    def check(self, key: str, action: Callable[[], Value]) -> Value:
        """What an action returns; its errors name the key."""
        with self.location.checking(key):
            return action()


class _Inner(ValueKind):
    """A table, or a list of tables, inside a table."""

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """The inner table of a key."""
        raise NotImplementedError

    def check(self, name: str, value: Any) -> Any:
        """Unused: inner tables are read with their location."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """An object."""
        return {"type": "object"}

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a table"


@dataclass(eq=False, repr=False)
class _OneTable(_Inner):
    keys: type[Table]

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """The declared table; an absent one has its defaults."""
        return self.keys.read(_table_at(key, values, location), location.inner(key))


@dataclass(eq=False, repr=False)
class _ManyTables(_Inner):
    keys: type[Table]

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a list of tables"

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """The declared tables in their order, named by their `name` or else by their number."""
        tables = values.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(content, dict) for content in tables):
            raise location.wrong(key, f"must be tables: write [[{key}]]")
        singular = key.removesuffix("s")
        return tuple(
            self.keys.read(content, location.inner(f"{singular} {_name_of(content) or number}")) for number, content in enumerate(tables, 1)
        )


@dataclass(eq=False, repr=False)
class _NamedTables(_Inner):
    keys: type[Table]

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """The declared tables by the names that the file gives them."""
        here = location.inner(key)
        content = _table_at(key, values, location)
        return {name: self.keys.read(_table_at(name, content, here), here.inner(name)) for name in content}


@dataclass(eq=False, repr=False)
class _SomeOptions(_Inner):
    options: type[Options]
    names: Callable[[], Iterable[str]]

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """The given options, each checked, by name."""
        here, names = location.inner(key), list(self.names())
        checked: dict[str, Any] = {}
        for name, value in _table_at(key, values, location).items():
            if name not in names:
                raise here.unknown_key(name, names)
            with here.checking(name):
                checked |= checked_options(self.options, {name: value})
        return checked


@dataclass(eq=False, repr=False)
class _FreeTable(_Inner):
    item: ValueKind

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """The checked values by the names that the file gives them."""
        here = location.inner(key)
        checked: dict[str, Any] = {}
        for name, value in _table_at(key, values, location).items():
            with here.checking(name):
                checked[name] = self.item.check(name, value)
        return checked


def _table_at(key: str, values: Mapping[str, Any], location: Location) -> Mapping[str, Any]:
    content = values.get(key, {})
    if not isinstance(content, Mapping):
        raise location.wrong(key, f"must be a table: write [{location.inner(key).table}]")
    return content


def _name_of(content: Mapping[str, Any]) -> str:
    name = content.get("name", "")
    return name.strip() if isinstance(name, str) else ""


def table(keys: type[Table], help: str) -> Any:
    """Declare a key whose value is a table."""
    return option(None, _OneTable(keys), help)


def tables(keys: type[Table], help: str) -> Any:
    """Declare a key whose value is a list of tables; errors name each by its key `name`."""
    return option((), _ManyTables(keys), help)


def named_tables(keys: type[Table], help: str) -> Any:
    """Declare a key whose value is a table of tables, by names that the file chooses."""
    return option(None, _NamedTables(keys), help)


def options_table(options: type[Options], names: Callable[[], Iterable[str]], help: str) -> Any:
    """Declare a key whose value is a table of some of the options of a class; its value has those that are given."""
    return option(None, _SomeOptions(options, names), help)


def inner_table(key_option: Option) -> tuple[str, type[Table]] | None:
    """The declared table of a key, with the way a file writes its name (`[{}]`, `[[{}]]`); None for a key with another value."""
    kind = key_option.kind
    if isinstance(kind, _OneTable):
        return "[{}]", kind.keys
    if isinstance(kind, _ManyTables):
        return "[[{}]]", kind.keys
    return ("[{}.NAME]", kind.keys) if isinstance(kind, _NamedTables) else None


def free_table(item: ValueKind, help: str) -> Any:
    """Declare a key whose value is a table of values of one kind, by names that the file chooses."""
    return option(None, _FreeTable(item), help)
