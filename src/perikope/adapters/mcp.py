"""The Model Context Protocol over standard input and output, for indexes on this machine or on a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from perikope.adapters.searched import SearchedIndex
from perikope.core.access import files_forbidden
from perikope.core.errors import MissingExtra
from perikope.search.facade import Index
from perikope.search.hits import read_document
from perikope.search.options import SearchOptions
from perikope.search.steps import allowed_documents
from perikope.server.handler import encode
from perikope.server.served import name_of
from perikope.service.assistant import Assistant
from perikope.service.operations import load_operations
from perikope.service.requests import read_body

try:
    from mcp.server.stdio import stdio_server
except ModuleNotFoundError as missing:
    raise MissingExtra(missing.name or "mcp", "mcp") from None

from perikope.service.mcp_protocol import mcp_server

__all__ = ["assistant_of", "serve_stdio"]


def assistant_of(given: Sequence[str]) -> Assistant:
    """The tools for indexes, each written as FOLDER, NAME=FOLDER, ADDRESS or NAME=ADDRESS.

    An ADDRESS is that of a server, and NAME the name of one of its indexes.
    """
    opened: dict[str, SearchedIndex] = {}
    for written in given:
        name, mark, rest = written.partition("=")
        has_name = bool(mark) and not Path(written).exists() and "/" not in name and ":" not in name
        location = rest if has_name else written
        if "://" in location or location.startswith("unix:"):
            searched = SearchedIndex(location, name=name if has_name else "")
            opened[searched.index.name if not has_name else name] = searched  # type: ignore[union-attr]
        else:
            opened[name_of(name if has_name else "", Path(location), list(opened))] = SearchedIndex(location)
    is_local = all(isinstance(searched.index, Index) for searched in opened.values())
    local = LocalOperations(opened)
    return Assistant(list(opened), local.ask, local.documents if is_local else None)


class LocalOperations:
    """Runs operations on indexes, in threads."""

    def __init__(self, indexes: Mapping[str, SearchedIndex]) -> None:
        """Run operations on these indexes, by name."""
        self._indexes = indexes

    async def ask(self, index: str, operation: str, values: Mapping[str, Any]) -> Any:
        """The answer of an operation, as values for JSON."""
        return await asyncio.to_thread(self._answer, self._indexes[index], operation, values)

    def documents(self, index: str, first: int, count: int) -> list[tuple[str, str]]:
        """Id and title of `count` documents from number `first` on."""
        searched = self._indexes[index].index
        assert isinstance(searched, Index)
        snapshot = searched.snapshot
        numbers = allowed_documents(snapshot, SearchOptions.of({})).nonzero()[0][first : first + count].tolist()
        return [(id, read_document(snapshot, id, 0, 0.0).title) for id in map(snapshot.document_id, numbers)]

    def _answer(self, searched: SearchedIndex, operation: str, values: Mapping[str, Any]) -> Any:
        index = searched.index
        if not isinstance(index, Index):
            return orjson.loads(encode(index.ask(operation, **values)))
        index.refresh()
        declared = load_operations()[operation]
        # An assistant may be told what to ask for by a text that it has read, so it cannot name files.
        with files_forbidden():
            return orjson.loads(encode(declared.run(index, read_body(declared, orjson.dumps(dict(values))))))


def serve_stdio(given: Sequence[str]) -> None:
    """Answer an assistant until it closes standard input."""
    assistant = assistant_of(given)
    asyncio.run(_serve(mcp_server(lambda context: assistant)))


async def _serve(server: Any) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
