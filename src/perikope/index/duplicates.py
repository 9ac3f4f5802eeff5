"""Duplicates: documents that are left out, because an earlier document has the same id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perikope.core.errors import unknown

DUPLICATES = ("first", "error")
"""What to do if several documents have the same id: index the first of them only, or raise an error."""
DEFAULT_DUPLICATES = "first"
DEFAULT_REPLACE = False
"""Whether a new document replaces a document of the index with the same id, unless the caller says so."""
MOST_NAMED = 5
"""The number of duplicates that a message names."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A document that is left out, because an earlier document has the same id."""

    id: str
    source: str
    """The file of the document that is left out; empty if it does not come from a file."""
    first: str
    """The file of the document that is kept; empty if it does not come from a file."""
    indexed: bool = False
    """Whether documents are added to an index that already has a document with this id."""

    def __str__(self) -> str:
        place = f" in {self.source}" if self.source not in ("", self.id) else ""
        if self.first == self.source:
            kept = "" if self.indexed or not self.source else " (repeated in this file)"
        else:
            kept = f" ({'indexed' if self.indexed else 'first'} from {self.first})" if self.first else ""
        return f"{self.id}{place}{kept}"

    def refusal(self) -> str:
        """The message of the error for this duplicate."""
        if self.indexed:
            return (
                f"document {self.id!r} is already in the index: replace it (--replace), keep the one in the index (--duplicates first), or "
                "change one of the two ids; if the id is the path of a file inside the indexed folder, index the folder that contains "
                "both files"
            )
        first, second = self.first, self.source
        where = f" by {first} and {second}" if first != second else f" in {first}" if first else ""
        return f"document {self.id!r} is given twice{where}: keep only the first (--duplicates first), or change one of the ids"


class DuplicateWarning(UserWarning):
    """Documents were left out, because the index or the same call has documents with the same ids."""

    def __init__(self, left_out: Sequence[Duplicate]) -> None:
        super().__init__(left_out_message(left_out))
        self.left_out = tuple(left_out)


def check_duplicates(value: str) -> None:
    """Raise a `UsageError` if the value of the option `duplicates` is not valid."""
    if value not in DUPLICATES:
        raise unknown("value of --duplicates", value, DUPLICATES)


def named(duplicates: Sequence[Duplicate]) -> list[str]:
    """The first few duplicates as lines of text, and a line with the number of the others."""
    lines = [str(duplicate) for duplicate in duplicates[:MOST_NAMED]]
    return lines + ([f"… and {len(duplicates) - MOST_NAMED} more"] if len(duplicates) > MOST_NAMED else [])


def split(duplicates: Sequence[Duplicate]) -> tuple[list[Duplicate], list[Duplicate]]:
    """The duplicates of documents that the index already had, and the duplicates among the added documents."""
    return [one for one in duplicates if one.indexed], [one for one in duplicates if not one.indexed]


def left_out_message(duplicates: Sequence[Duplicate]) -> str:
    """The warning of Python functions that leave out duplicates."""
    count = "1 document is" if len(duplicates) == 1 else f"{len(duplicates)} documents are"
    indexed, repeated = split(duplicates)
    why = "another document has the same id" if repeated else "the index already has the same id"
    how = "pass replace=True to replace documents of the index" if indexed else "give each document an id of its own"
    return f"{count} left out, because {why} ({'; '.join(named(duplicates))}); {how}"
