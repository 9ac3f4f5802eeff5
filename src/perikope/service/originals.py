"""Which files of documents an operation may read: those in one folder, which the operator of a server names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from perikope.core.errors import NotFound

_folder: ContextVar[str] = ContextVar("folder of originals", default="")


@contextmanager
def originals_in(folder: str) -> Iterator[None]:
    """Inside the block, operations may read the files of documents in this folder; none if it is empty."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def has_originals() -> bool:
    """Whether the files of documents may be read."""
    return bool(_folder.get())


def folder_of_originals() -> str:
    """The folder of the documents. Raises `NotFound` if their files may not be read."""
    if not _folder.get():
        raise NotFound("this server does not show the files of documents; its operator can allow it: --originals FOLDER")
    return _folder.get()
