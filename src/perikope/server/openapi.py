"""The OpenAPI document of a server, made from the declarations of its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from perikope import __version__
from perikope.core.options import Option
from perikope.core.values import Names, Numbers
from perikope.server.problems import TYPE as PROBLEM_TYPE
from perikope.server.problems import Problem, QueryProblem
from perikope.server.routes import PREFIX, path_of
from perikope.service.operations import WRITE, Operation
from perikope.service.schemas import schema_of_request, schema_of_type

PROBLEMS = {
    "400": "The request cannot be read, or asks for something that this index or server does not have.",
    "401": "The request needs a token, or its token is not known.",
    "403": "The token lacks the permission, or a page of another web site caused the request.",
    "404": "There is no such index, document or passage.",
    "408": "The request came too slowly.",
    "405": "The method is not one of this path; `Allow` lists them.",
    "409": "Another program is writing to the index.",
    "413": "The body is too large.",
    "414": "The query string is too long.",
    "415": "The body is not JSON.",
    "421": "The server does not answer under this name.",
    "431": "The head of the request is too long.",
    "500": "The server failed, or an index is damaged.",
    "503": "Too many requests are waiting, or the server is shutting down. `Retry-After` says when to try again.",
    "504": "The request took longer than the server allows.",
}
"""The problems that any operation may answer with."""


def openapi_document(operations: Mapping[str, Operation], indexes: Sequence[str]) -> dict[str, Any]:
    """The OpenAPI document for these operations and indexes."""
    components: dict[str, Any] = {}
    problem = {PROBLEM_TYPE: {"schema": schema_of_type(Problem, components)}}
    problems = {status: {"description": text, "content": problem} for status, text in PROBLEMS.items()}
    problems["400"]["content"] = {
        PROBLEM_TYPE: {"schema": {"anyOf": [schema_of_type(kind, components) for kind in (Problem, QueryProblem)]}}
    }
    paths: dict[str, Any] = {}
    for operation in operations.values():
        answer = {"description": "The answer.", "content": {"application/json": {"schema": schema_of_type(operation.answer, components)}}}
        entry = paths.setdefault(path_of(operation), {"parameters": [_index_parameter(indexes)]})
        for method in operation.methods:
            entry[method.lower()] = _of_method(operation, method, {"200": answer, **problems})
    paths |= _of_server(problems)
    return {
        "openapi": "3.1.0",
        "info": {"title": "perikope", "version": __version__, "description": "Finds passages, and scores them in their context."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _index_parameter(indexes: Sequence[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", **({"enum": list(indexes)} if indexes else {})}
    return {"name": "index", "in": "path", "required": True, "description": "The name of the index.", "schema": schema}


def _of_method(operation: Operation, method: str, responses: dict[str, Any]) -> dict[str, Any]:
    name = operation.name or "index"
    entry: dict[str, Any] = {
        "operationId": f"{method.lower()}-{name}", "summary": operation.help, "responses": responses,
        "security": [{"token": []}] if operation.permission == WRITE else [{}, {"token": []}],
    }  # fmt: skip
    if method == "GET":
        entry["parameters"] = [_query_parameter(option, operation.example) for option in operation.parameters.values()]
        entry["description"] = f"Example: `?{urlencode(operation.example, doseq=True)}`" if operation.example else operation.help
    else:
        body = {"schema": schema_of_request(operation), "example": dict(operation.example)}
        entry["requestBody"] = {"required": True, "content": {"application/json": body}}
    return entry


def _query_parameter(option: Option, example: Mapping[str, Any]) -> dict[str, Any]:
    """An option as a parameter of a query string. Tables of numbers are written as `name=number,name=number`."""
    schema: dict[str, Any] = option.kind.schema()
    if isinstance(option.kind, Numbers):
        schema = {"type": "string"}
    elif isinstance(option.kind, Names):
        schema = {"type": "array", "items": {"type": "string"}}
    parameter: dict[str, Any] = {"name": option.name, "in": "query", "description": option.help, "schema": schema}
    if schema.get("type") == "array":
        parameter |= {"style": "form", "explode": True}
    if option.name in example:
        parameter["example"] = example[option.name]
    return parameter


def _of_server(problems: Mapping[str, Any]) -> dict[str, Any]:
    """The paths that the server answers itself."""
    status = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
    names = {"type": "object", "properties": {"indexes": {"type": "array", "items": {"type": "string"}}}, "required": ["indexes"]}
    texts = {
        "/health": ("Whether the server answers.", status, ("421", "403")),
        "/ready": (
            "Whether the server can search: its processes have started, and its indexes can be read.",
            status,
            ("421", "403", "503"),
        ),
        PREFIX: ("The names of the indexes that the request may read.", names, ("401", "403", "421")),
        "/openapi.json": ("This document.", {"type": "object"}, ("421", "403")),
        "/metrics": ("Numbers for Prometheus.", None, ("401", "403", "421")),
    }
    paths = {}
    for path, (text, schema, statuses) in texts.items():
        content = {"text/plain": {"schema": {"type": "string"}}} if schema is None else {"application/json": {"schema": schema}}
        responses = {"200": {"description": "The answer.", "content": content}, **{status: problems[status] for status in statuses}}
        paths[path] = {"get": {"operationId": f"get-{path.strip('/')}", "summary": text, "responses": responses}}
    return paths
