"""JSON schemas of options and answers, made from their declarations."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from perikope.service.operations import Operation

REFERENCE = "#/components/schemas/"


def schema_of_request(operation: Operation) -> dict[str, Any]:
    """The schema of the options of an operation, as a JSON object."""
    properties = {
        name: {**option.kind.schema(), "description": option.help, "default": option.kind.plain(option.default)}
        for name, option in operation.parameters.items()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def schema_of_type(kind: Any, components: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type. Dataclasses are added to `components` and referred to by name."""
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in components:
            components[kind.__name__] = {}  # for classes that contain themselves
            components[kind.__name__] = _schema_of_class(kind, components)
        return {"$ref": f"{REFERENCE}{kind.__name__}"}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of_type(argument, components) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"type": "object", "additionalProperties": schema_of_type(arguments[1], components)}
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        return {"type": "array", "prefixItems": [schema_of_type(argument, components) for argument in arguments],
                "minItems": len(arguments), "maxItems": len(arguments)}  # fmt: skip
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": schema_of_type(arguments[0], components)}
    return dict(_PLAIN[kind])


_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def _schema_of_class(kind: type, components: dict[str, Any]) -> dict[str, Any]:
    hints, helps = get_type_hints(kind), docstrings_of_fields(kind)
    names = [field.name for field in fields(kind)]
    properties = {}
    for name in names:
        schema = schema_of_type(hints[name], components)
        properties[name] = {**schema, "description": helps[name]} if helps.get(name) else schema
    return {
        "type": "object", "description": inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0],
        "properties": properties, "required": names, "additionalProperties": False,
    }  # fmt: skip


@cache
def docstrings_of_fields(kind: type) -> Mapping[str, str]:
    """The texts under the fields of a class, by field, with those of its base classes."""
    helps: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not is_dataclass(base):
            continue
        body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for statement, following in zip(body.body, body.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and isinstance(following, ast.Expr):
                value = following.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    helps[statement.target.id] = " ".join(value.value.split())
    return helps
