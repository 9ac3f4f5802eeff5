"""Whether names in a search may be paths of files on this machine.

A person at this machine may name a file: a patent, a recipe, a learned table. A request from elsewhere may not, since
its sender could read files of the machine with it. A server therefore handles requests inside `files_forbidden`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from perikope.core.errors import UsageError

_forbidden: ContextVar[bool] = ContextVar("files forbidden", default=False)


@contextmanager
def files_forbidden() -> Iterator[None]:
    """Inside the block, `check_access` refuses all paths."""
    token = _forbidden.set(True)
    try:
        yield
    finally:
        _forbidden.reset(token)


def may_name_files() -> bool:
    """Whether a name may be the path of a file."""
    return not _forbidden.get()


def check_access(path: object, what: str, instead: str = "by its name") -> None:
    """Raise `UsageError` if paths are forbidden.

    `what` says what the file contains, such as `a recipe`, and `instead` how it can be given.
    """
    if _forbidden.get():
        raise UsageError(f"{str(path)!r} would be a file of the server, which a request cannot name; give {what} {instead}")
