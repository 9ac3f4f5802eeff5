"""Read the options of an operation from the JSON body or the query string of a request, and check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import orjson

from perikope.core.errors import UsageError, unknown
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
    known = operation.parameters
    return _given(operation, {name: _from_json(known[name], value) if name in known else value for name, value in values.items()})


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
    known = operation.parameters
    return _given(operation, {name: _from_text(known[name], texts) if name in known else texts for name, texts in values.items()})


def _given(operation: Operation, values: Mapping[str, Any]) -> GivenOptions:
    known = operation.parameters
    for name in values:
        if name not in known:
            raise unknown("option", name, known)
    own = {name: value for name, value in values.items() if name in operation.options.__dataclass_fields__}
    search = {name: known[name].check(value) for name, value in values.items() if name not in own}
    return GivenOptions(operation.options.of(own), search)


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
