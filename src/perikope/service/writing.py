"""Operations that change an index. A server runs them in one process, which commits several of them at once."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perikope.core.errors import UsageError
from perikope.core.options import Options, option
from perikope.core.values import Names, Switch, ValueKind
from perikope.index.duplicates import DEFAULT_REPLACE, DuplicateWarning
from perikope.search.facade import Index
from perikope.service.answers import Written
from perikope.service.operations import WRITE, GivenOptions, operation


class Records(ValueKind):
    """Documents with the keys of a line of JSON Lines."""

    annotation = "Sequence[Mapping[str, Any]]"

    def describe(self) -> str:
        """The accepted values, in words."""
        return "a list of documents, each an object as in a line of JSON Lines"

    def check(self, name: str, value: Any) -> tuple[Mapping[str, Any], ...]:
        """Return the documents as a tuple; their keys are checked when they are added."""
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, Mapping) for item in value):
            raise self.refuse(name, value)
        return tuple(value)

    def schema(self) -> dict[str, Any]:
        """A JSON schema for a list of objects."""
        return {"type": "array", "items": {"type": "object"}}

    def plain(self, value: Any) -> Any:
        """The documents as a list."""
        return list(value)


@dataclass(frozen=True, kw_only=True)
class AddRequest(Options):
    """Documents to add."""

    documents: tuple[Mapping[str, Any], ...] = option((), Records(), "The documents, each with the keys of a line of JSON Lines.")
    replace: bool = option(
        DEFAULT_REPLACE, Switch(), "Replace documents of the index with the same ids. Otherwise the document of the index is kept, and "
        "`left_out` of the answer lists the ids of the new ones.",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DeleteRequest(Options):
    """Documents to delete."""

    ids: tuple[str, ...] = option((), Names(), "The ids of the documents. Ids that the index does not have are ignored.")


_EXAMPLE = {"documents": [{"id": "new.md", "title": "Pumps", "passages": ["A magnet drives the rotor."]}]}


@operation("documents", AddRequest, Written, permission=WRITE, example=_EXAMPLE, methods=("POST",))
def add(index: Index, given: GivenOptions) -> Written:
    """Add documents, and with `replace` replace documents. The answer is sent when they are on disk and found."""
    if not given.own.documents:
        raise UsageError("documents is empty; give at least one document")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        index.add(given.own.documents, replace=given.own.replace)
    duplicates = [warning.message for warning in caught if isinstance(warning.message, DuplicateWarning)]
    left_out = [duplicate.id for message in duplicates for duplicate in message.left_out]
    return Written(len(given.own.documents) - len(left_out), 0, tuple(left_out), 0, 0)


@operation("delete", DeleteRequest, Written, permission=WRITE, example={"ids": ["old.md"]}, methods=("POST",))
def delete(index: Index, given: GivenOptions) -> Written:
    """Delete documents by id. The answer is sent when the change is on disk."""
    if not given.own.ids:
        raise UsageError("ids is empty; give at least one id")
    # A client that repeats a request whose answer was lost must not get an error for what the first one has deleted.
    return Written(0, index.delete([id for id in given.own.ids if id in index]), (), 0, 0)
