"""Warnings about answers of a server."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from perikope.index.duplicates import Duplicate, DuplicateWarning
from perikope.service.answers import Written


class ServerWarning(UserWarning):
    """A warning that a server gives with its answer, about the model or the recipe."""


class IndexChangedWarning(UserWarning):
    """The index has changed between a search and a further question about its results."""


def warn_of(messages: Iterable[str], stacklevel: int) -> None:
    """Give the warnings of a server."""
    for message in messages:
        warnings.warn(ServerWarning(message), stacklevel=stacklevel)


def warn_of_change(searched: int, answered: int, stacklevel: int = 4) -> None:
    """Warn if a further question was answered from another commit than the search."""
    if answered and answered != searched:
        message = f"the index has changed since the search: hits are of commit {searched}, and this answer is of commit {answered}"
        warnings.warn(IndexChangedWarning(message), stacklevel=stacklevel)


def warn_of_duplicates(written: Written, stacklevel: int) -> None:
    """Warn of documents that were not added."""
    if written.left_out:
        warnings.warn(DuplicateWarning([Duplicate(id, "", "", indexed=True) for id in written.left_out]), stacklevel=stacklevel)
