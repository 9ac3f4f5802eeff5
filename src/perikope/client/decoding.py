"""Answers from JSON, as the classes that the operations declare."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Decoder = Callable[[Any], Any]


class UnexpectedValue(Exception):
    """A value of an answer that does not have the declared type."""


@cache
def decoder(kind: Any) -> Decoder:
    """A function that turns a JSON value into a value of a type; it raises `UnexpectedValue` if this is impossible.

    Fields that a class does not declare are ignored: a newer server may send more.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        return lambda value: _decoded_class(kind, value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _of_union(arguments)
    if origin is Literal:
        return lambda value: value if value in arguments else _refuse(kind, value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        of_value = decoder(arguments[1])
        return lambda value: {name: of_value(item) for name, item in _checked(dict, value).items()}
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        return _of_tuple(tuple(map(decoder, arguments)))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        of_item = decoder(arguments[0])
        return lambda value: tuple(map(of_item, _checked(list, value)))
    if kind is float:
        return lambda value: float(value) if type(value) in (int, float) else _refuse(kind, value)
    return (lambda value: value) if kind in (Any, object) else (lambda value: _checked(kind, value))


def _of_union(arguments: tuple[Any, ...]) -> Decoder:
    """Null, or a value of the only other type."""
    [other] = [argument for argument in arguments if argument is not types.NoneType]
    of_other = decoder(other)
    return lambda value: None if value is None else of_other(value)


def _of_tuple(decoders: tuple[Decoder, ...]) -> Decoder:
    def decode(value: Any) -> tuple[Any, ...]:
        if len(_checked(list, value)) != len(decoders):
            raise UnexpectedValue
        return tuple(decode_item(item) for decode_item, item in zip(decoders, value, strict=True))

    return decode


def _decoded_class(kind: Any, value: Any) -> Any:
    given = _checked(dict, value)
    missing = _fields_with_defaults(kind) - given.keys()  # an older server does not send them
    try:
        return kind(**{name: decode(given[name]) for name, decode in _decoders_of(kind).items() if name not in missing})
    except KeyError:
        raise UnexpectedValue from None


@cache
def _decoders_of(kind: Any) -> Mapping[str, Decoder]:
    hints = get_type_hints(kind)
    return {field.name: decoder(hints[field.name]) for field in fields(kind)}


@cache
def _fields_with_defaults(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind) if field.default is not MISSING)


def _checked(kind: Any, value: Any) -> Any:
    return value if type(value) is kind else _refuse(kind, value)


def _refuse(kind: Any, value: Any) -> Any:
    raise UnexpectedValue(f"{type(value).__name__} instead of {kind}")
