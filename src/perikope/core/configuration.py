"""Configuration files: TOML whose tables are declared as classes, one field per key.

    @dataclass(frozen=True, kw_only=True)
    class TopicsKeys(Table):
        file: str = option("", Text(), "File of topics.")
        sample: int | None = option(None, Whole(Range(1)), "Number of topics to draw. Default: all.")

    @dataclass(frozen=True, kw_only=True)
    class ExperimentKeys(Table):
        title: str = option("", Text(), "Title of the report.")
        topics: TopicsKeys = table(TopicsKeys, "Topics and their judgements.")

    experiment = ExperimentKeys.parse(text, "my.toml", "an experiment")

Keys are declared like search options (`core.options`): each key has a kind of value, a default and a sentence of help.
Every error names the file, the table and the key, and says which keys or values are valid.
"""

from __future__ import annotations

import tomllib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from perikope.core.errors import InputError, PerikopeError, unknown
from perikope.core.options import Declared, Option, Options, checked_options, declared, option
from perikope.core.reading import read_limited_text
from perikope.core.values import ValueKind

SUFFIX = ".toml"
MAX_BYTES = 1 << 20
"""Size limit of a configuration file, in bytes."""

Keys = TypeVar("Keys", bound="Table")
Value = TypeVar("Value")


def read_text(path: Path, what: str) -> str:
    """Read the text of a configuration file; `what` names the kind of file in errors ("a recipe")."""
    return read_limited_text(path, MAX_BYTES, what)


def parse_toml(text: str, path: object) -> dict[str, Any]:
    """Parse the text of a TOML file; `path` is the file that errors name."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML: {error}", path=path) from None


@dataclass(frozen=True)
class Location:
    """A table in a configuration file, as it is named in errors."""

    path: object
    """The file; None if the content does not come from a file."""
    what: str
    """The kind of file, with its article: "an experiment"."""
    table: str = ""
    """The name of the table, such as `training` or `system bm25`; empty for the top level."""
    header: str = ""
    """The name of the table as TOML writes it, such as `systems`; the same as `table` unless a table has a number."""

    def inner(self, table: str, header: str = "") -> Location:
        """The location of an inner table of this table."""
        named = f"{self.table}.{table}" if self.table else table
        return Location(self.path, self.what, named, f"{self.header}.{header or table}" if self.header else header or table)

    def error(self, message: str) -> InputError:
        """Make an error that names the file and this table."""
        return InputError(f"[{self.table}] {message}" if self.table else message, path=self.path)

    def unknown_key(self, key: str, valid: Iterable[str]) -> InputError:
        """Make the error for a key that is not declared.

        Its message suggests the nearest valid key and lists all valid keys.
        """
        kind = f"key in [{self.table}]" if self.table else f"key of {self.what}"
        return InputError(str(unknown(kind, key, valid)), path=self.path)

    @contextmanager
    def checking(self, key: str) -> Iterator[None]:
        """A context in which errors of the package are raised again with the file, the table and the key."""
        try:
            yield
        except InputError as error:
            if error.path is not None and error.path == self.path:
                raise
            raise self.wrong(key, f"is wrong: {error}") from error
        except PerikopeError as error:
            message = str(error)
            # The check of a kind of value names the key in its message; the parser of a notation does not know the key.
            raise (self.error(message) if message.startswith(f"{key} ") else self.wrong(key, f"is wrong: {message}")) from error

    def wrong(self, key: str, message: str) -> InputError:
        """Make the error for a key. The message follows the name of the key, as in `must be a table`."""
        return self.error(f"{key} {message}")


@dataclass(frozen=True)
class Table(Declared):
    """Base class of declared tables. Values are checked when the table is read; a missing key has its default."""

    @classmethod
    def parse(cls: type[Keys], text: str, path: object, what: str) -> Keys:
        """Read a table from the text of a whole file. Errors name `path` and the kind of file, `what` ("a recipe")."""
        return cls.read(parse_toml(text, path), Location(path, what))

    @classmethod
    def read(cls: type[Keys], values: Mapping[str, Any], location: Location) -> Keys:
        """Read a table from plain values; checks these values and the inner tables."""
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
        """The file and the table name that errors show."""
        return cast(Location, self.__dict__["_location"])

    def wrong(self, key: str, message: str) -> InputError:
        """Make the error for a key. The message follows the name of the key, as in `must be a table`."""
        return self.location.wrong(key, message)

    def check(self, key: str, action: Callable[[], Value]) -> Value:
        """Call `action` and return its result; its errors are raised again with the file, the table and the key."""
        with self.location.checking(key):
            return action()


class _Inner(ValueKind):
    """The kind of a key whose value is an inner table, or a list of inner tables."""

    @abstractmethod
    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """Read and check the inner table, or inner tables, that `values` has under `key`."""

    def check(self, name: str, value: Any) -> Any:
        """Check a table that is not in a file, and return it as `read` does."""
        return self.read(name, {name: value}, Location(None, "a table"))

    def schema(self) -> dict[str, Any]:
        """A JSON schema that accepts every object."""
        return {"type": "object"}

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a table"


@dataclass(eq=False, repr=False)
class _OneTable(_Inner):
    keys: type[Table]

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """Read the inner table. If it is missing, all its keys have their defaults."""
        return self.keys.read(_table_at(key, values, location), location.inner(key))


@dataclass(eq=False, repr=False)
class _ManyTables(_Inner):
    keys: type[Table]

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a list of tables"

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """Read the inner tables in the order of the file.

        Errors name each by its key `name` or, without one, by its number.
        """
        tables = values.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(content, dict) for content in tables):
            raise location.wrong(key, f"must be tables: write [[{key}]]")
        singular = key.removesuffix("s")
        return tuple(
            self.keys.read(content, location.inner(f"{singular} {_name_of(content) or number}", key))
            for number, content in enumerate(tables, 1)
        )


@dataclass(eq=False, repr=False)
class _NamedTables(_Inner):
    keys: type[Table]

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """Read the inner tables; returns a dictionary from the names in the file to the tables."""
        here = location.inner(key)
        content = _table_at(key, values, location)
        return {name: self.keys.read(_table_at(name, content, here), here.inner(name)) for name in content}


@dataclass(eq=False, repr=False)
class _SomeOptions(_Inner):
    options: type[Options]
    names: Callable[[], Iterable[str]]

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """Read the options that the file contains; returns a dictionary from their names to the checked values."""
        here, names = location.inner(key), list(self.names())
        checked: dict[str, Any] = {}
        for name, value in _table_at(key, values, location).items():
            if name not in names:
                raise here.unknown_key(name, names)
            with here.checking(name):
                located = declared(self.options)[name].kind.located(value, Path(str(here.path or "")).parent)
                checked |= checked_options(self.options, {name: located})
        return checked


@dataclass(eq=False, repr=False)
class _FreeTable(_Inner):
    item: ValueKind

    def read(self, key: str, values: Mapping[str, Any], location: Location) -> Any:
        """Read all values; returns a dictionary from the names in the file to the checked values."""
        here = location.inner(key)
        checked: dict[str, Any] = {}
        for name, value in _table_at(key, values, location).items():
            with here.checking(name):
                checked[name] = self.item.check(name, value)
        return checked


def _table_at(key: str, values: Mapping[str, Any], location: Location) -> Mapping[str, Any]:
    content = values.get(key, {})
    if not isinstance(content, Mapping):
        raise location.wrong(key, f"must be a table: write [{location.inner(key).header}]")
    return content


def _name_of(content: Mapping[str, Any]) -> str:
    name = content.get("name", "")
    return name.strip() if isinstance(name, str) else ""


def table(keys: type[Table], help: str) -> Any:
    """Declare a key whose value is a table with the declared `keys`."""
    return option(None, _OneTable(keys), help)


def tables(keys: type[Table], help: str) -> Any:
    """Declare a key whose value is a list of tables. Errors name each table by its key `name`."""
    return option((), _ManyTables(keys), help)


def named_tables(keys: type[Table], help: str) -> Any:
    """Declare a key whose value is a table of tables. The file chooses the names of the inner tables."""
    return option(None, _NamedTables(keys), help)


def options_table(options: type[Options], names: Callable[[], Iterable[str]], help: str) -> Any:
    """Declare a key whose value is a table of options.

    `names` returns the names of the `options` that the table accepts.

    The value is a dictionary of the options that the file contains.
    """
    return option(None, _SomeOptions(options, names), help)


def inner_table(key_option: Option) -> tuple[str, type[Table]] | None:
    """The way a file writes the heading of a key's table (`[{}]`, `[[{}]]`), and the class of the table.

    None if the value of the key is not a declared table.
    """
    kind = key_option.kind
    if isinstance(kind, _OneTable):
        return "[{}]", kind.keys
    if isinstance(kind, _ManyTables):
        return "[[{}]]", kind.keys
    return ("[{}.NAME]", kind.keys) if isinstance(kind, _NamedTables) else None


def free_table(item: ValueKind, help: str) -> Any:
    """Declare a key whose value is a table of values of one kind. The file chooses the names of the values."""
    return option(None, _FreeTable(item), help)
