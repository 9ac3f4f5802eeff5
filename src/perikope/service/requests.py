"""Read the options of an operation from the JSON body or the query string of a request, and check them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import orjson

from perikope.core.errors import InputError, UsageError, unknown
from perikope.core.options import Option
from perikope.core.values import Lines, NamesOrAll, OneOf, Real, Switch, Whole
from perikope.service.operations import GivenOptions, Operation

MAX_PARAMETERS = 1000
"""The most parameters of a query string."""
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_ALL = ("true", "*")
"""The values of an option that takes names or true, if it is true."""


def read_body(operation: Operation, body: bytes) -> GivenOptions:
    """The options in a JSON object."""
    try:
        values = orjson.loads(body) if body.strip() else {}
    except orjson.JSONDecodeError as error:
        raise UsageError(f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise UsageError("the body must be a JSON object with the options of the operation")
    return _given(operation, {name: _from_json(option, values[name]) for name, option in _known(operation, values)})


def _from_json(option: Option, value: Any) -> Any:
    """The value of an option in JSON, as its schema says. Python takes None for some more options."""
    if value is None and {"type": "null"} not in option.kind.schema().get("anyOf", ()):
        raise option.kind.refuse(option.name, value)
    # JSON does not tell 1.0 from 1.
    return int(value) if isinstance(option.kind, Whole) and isinstance(value, float) and value.is_integer() else value


def read_query_string(operation: Operation, text: str) -> GivenOptions:
    """The options in a query string. A parameter that can have several values is repeated."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=MAX_PARAMETERS, errors="strict")
    except ValueError:
        raise UsageError("the query string cannot be read: write it as name=value&name=value, percent-encoded UTF-8") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return _given(operation, {name: _from_text(option, values[name]) for name, option in _known(operation, values)})


def _known(operation: Operation, given: Mapping[str, Any]) -> list[tuple[str, Option]]:
    """The options that are given, with their names. Raises `UsageError` if the operation lacks one of them."""
    known = operation.parameters
    for name in given:
        if name not in known:
            raise unknown("option", name, known)
    return [(name, known[name]) for name in given]


def _given(operation: Operation, values: Mapping[str, Any]) -> GivenOptions:
    checked = {}
    for name, option in _known(operation, values):
        with _named(name):
            checked[name] = option.check(values[name])
    own = {name: value for name, value in checked.items() if name in operation.options.__dataclass_fields__}
    return GivenOptions(operation.options.of(own), {name: value for name, value in checked.items() if name not in own})


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Let every error about the value of an option name the option."""
    try:
        yield
    except (UsageError, InputError) as error:
        message = error.reason if isinstance(error, InputError) else str(error)
        raise UsageError(message if _names(message, name) else f"{name}: {message}") from None


def _names(message: str, option: str) -> bool:
    """Whether a message has the name of an option, apart from quoted values."""
    return re.search(rf"\b{option}\b", re.sub(r"'.*?'", "", message)) is not None


@contextlib.contextmanager
def naming_options(given: GivenOptions) -> Iterator[None]:
    """Let an error that repeats the value of one option name this option, if it does not.

    Only the index knows whether a value such as a metadata field exists, so such an error comes from the search, which
    does not know where the value was given.
    """
    try:
        yield
    except UsageError as error:
        values = {**given.own.changed(), **given.search}
        named = [name for name, value in values.items() if any(repr(text) in str(error) for text in _texts(value))]
        if len(named) != 1 or _names(str(error), named[0]):
            raise
        error.args = (f"{named[0]}: {error}",)  # the same error, with all that it knows, such as the place in a query
        raise


def _texts(value: Any) -> list[str]:
    """The texts in the value of an option."""
    items = [value] if isinstance(value, str) else value if isinstance(value, (tuple, Mapping)) else ()
    return [item for item in items if isinstance(item, str)]


def _from_text(option: Option, texts: Sequence[str]) -> Any:
    """The value of an option that is written as text."""
    kind = option.kind
    if isinstance(kind, Lines) or (kind.many and not isinstance(kind, NamesOrAll)):
        return list(texts)
    if len(texts) > 1 and not isinstance(kind, NamesOrAll):
        raise UsageError(f"{option.name} is given {len(texts)} times; give it once")
    text = texts[0]
    if isinstance(kind, (Whole, Real)):
        return kind.read(option.name, text)
    is_switch = isinstance(kind, Switch) or (isinstance(kind, OneOf) and kind.when_true is not None)
    if isinstance(kind, NamesOrAll) and text.lower() in _ALL:
        return True
    if (is_switch and text.lower() in _TRUE) and text not in getattr(kind, "words", ()):
        return True
    if (is_switch or isinstance(kind, NamesOrAll)) and text.lower() in _FALSE:
        return False
    return list(texts) if isinstance(kind, NamesOrAll) else text
