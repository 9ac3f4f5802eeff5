"""The exceptions of the package. Every mistake of a user raises a `PerikopeError` whose message says what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

MOST_RUN, MOST_MESSAGE, ABRIDGED = 160, 600, 280
"""The most characters of a message without white space, such as a path or an id; of a whole message; and of a message
that would be longer, since it repeats a long text."""
_READ = 1 << 16
"""The most characters of a message that are looked at."""
_RUN = re.compile(rf"\S{{{MOST_RUN + 1},}}")


def abridged(message: str) -> str:
    """A message in which what it repeats of the user's input is cut; `…` marks omitted text.

    The ends of long words and paths remain, and so does the end of a long message, since it says what to do.

    >>> message = abridged(f"there is no model {'x' * 1000!r}; see `perikope models`")
    >>> len(message), message[:20], message[-22:]
    (199, "there is no model 'x", ' see `perikope models`')
    """
    short = _RUN.sub(lambda run: _middle_cut(run.group(), MOST_RUN), _middle_cut(message, _READ))
    return short if len(short) <= MOST_MESSAGE else _middle_cut(short, ABRIDGED)


def _middle_cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most * 2 // 3]}…{text[-(most // 3) + 1 :]}"


class PerikopeError(Exception):
    """Base class of all errors that a user's input, files or settings can cause. Long messages are abridged."""

    def __init__(self, message: str = "") -> None:
        super().__init__(abridged(message))


class UsageError(PerikopeError):
    """A name, parameter, value or query that cannot be used as given."""


class UnreadableQuery(UsageError):
    """A Boolean query that cannot be read. `start` and `end` (exclusive) are the characters that are wrong.

    Both are the length of the query if something is missing at its end.
    """

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


class NotFound(UsageError):
    """A document or passage that the index does not have."""


class InputError(PerikopeError):
    """Input that cannot be read. The message starts with the file and the line, if they are known.

    `reason` is the message without them.
    """

    def __init__(self, message: str, *, path: object = None, line: int | None = None) -> None:
        self.path, self.line, self.reason = path, line, message
        location = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(f"{location}{message}")


class UnreadableFile(InputError):
    """A file, or a document in a file, that cannot be read. Reading a folder skips such files and counts them."""

    partly = False
    """Whether other documents of the same file were read. If so, the rest of the file is skipped without an error, even
    if the user named the file."""


class IndexFormatError(PerikopeError):
    """A folder that is not an index, or an index that is damaged or of another version."""

    def __init__(self, message: str, file: object = "") -> None:
        super().__init__(message)
        self.file = str(file)
        """The path of the missing or damaged file, if it is known."""


class LockedError(IndexFormatError):
    """A folder that another process is writing to."""


class ServerError(PerikopeError):
    """A server that cannot be reached, refuses a request or fails."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status of the answer; 0 if there was no answer that could be read."""


class InputWarning(UserWarning):
    """A file that was read, but perhaps not as its author meant. The message starts with the file and a known line."""

    def __init__(self, message: str, *, path: object, line: int = 0) -> None:
        super().__init__(abridged(f"{path}:{line}: {message}" if line else f"{path}: {message}"))


class ModelWarning(UserWarning):
    """The index lacks a document feature that the model needs, such as titles. The model ranks without this feature."""


class UncommittedWarning(ResourceWarning):
    """Changes to an index were discarded because they were not committed."""


class ShardError(PerikopeError):
    """Shards of a cluster, given by number, that gave no answer."""

    def __init__(self, message: str, shards: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.shards = frozenset(shards)


class MissingExtra(PerikopeError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        from perikope.core.installation import install_command

        super().__init__(f"this needs {package}, which is not installed: {install_command(extra)}")


class MissingPackage(PerikopeError, ImportError):
    """A package that only one function needs is not installed."""

    def __init__(self, package: str, used_by: str) -> None:
        super().__init__(f"{used_by} needs {package}, which is not installed: pip install {package}")


MOST_SHOWN = 60
"""Characters of a given name that an error repeats."""


def unknown(kind: str, name: str, valid: Iterable[str]) -> UsageError:
    """Make the error for an unknown name. Its message suggests the nearest valid name and lists all valid names.

    >>> print(unknown("model", "bm52", ["bm25", "psg"]))
    unknown model 'bm52'; did you mean 'bm25'? valid: bm25, psg
    """
    names = list(valid)
    folded = {known.lower(): known for known in reversed(names)}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    hint = f" did you mean {folded[near[0]]!r}?" if near else ""
    shown = name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}…"
    return UsageError(f"unknown {kind} {shown!r};{hint} valid: {', '.join(dict.fromkeys(names)) or '(none)'}")
