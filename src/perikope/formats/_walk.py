"""Lists the files in a folder and its subfolders, in sorted order, without following links out of the folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator

from perikope.core.errors import UnreadableFile
from perikope.core.files import MANIFEST_FILE
from perikope.core.locks import LOCK_FILE
from perikope.formats._source import unreadable

INDEX_FILES = {MANIFEST_FILE, LOCK_FILE}
"""The files that make a folder an index. An index in an indexed folder is no input."""


def walk(folder: str, on_problem: Callable[[UnreadableFile], None], on_link: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the relative path of each file under a folder, sorted, and the reason why it cannot be opened, or "".

    Hidden files, links to folders, links out of the folder and the files of indexes are left out. `on_problem` is
    called with the error for each subfolder that cannot be listed completely; none of its files is yielded. The error
    for `folder` itself is raised. `on_link` is called with the path of each link to a file or folder outside it.
    """
    root = os.path.realpath(folder)
    # A stack, not recursion, because folders may be nested deeper than Python's limit on calls. It holds only the names
    # in the open folders, so that a million files take about the memory of the largest folder.
    levels = [_entries(folder, "", root, on_problem, on_link)]
    while levels:
        for relative, refusal in levels[-1]:
            if refusal is None:
                levels.append(_entries(folder, relative, root, on_problem, on_link))
                break
            yield relative, refusal
        else:
            levels.pop()


def _entries(
    folder: str, relative: str, root: str, on_problem: Callable[[UnreadableFile], None], on_link: Callable[[str], None]
) -> Iterator[tuple[str, str | None]]:
    """The relative path of each entry of a folder, sorted, and the reason why it cannot be opened.

    The reason is "" for a file that can be opened, and None for a folder.
    """
    path = os.path.join(folder, relative)
    names: list[str] = []
    links: list[str] = []
    refusals: dict[str, str | None] = {}
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if not entry.is_file(follow_symlinks=False):
                    if entry.is_symlink() and _is_left_out(entry, root, links):
                        continue
                    refusals[entry.name] = None if entry.is_dir(follow_symlinks=False) else _refusal(entry.path)
                names.append(entry.name)
    except OSError as error:
        problem = unreadable(path if relative else folder, error)
        if not relative:
            raise problem from None
        on_problem(problem)
        return iter(())
    if INDEX_FILES.issubset(names):
        return iter(())
    for link in sorted(links):
        on_link(link)
    names.sort()
    return ((os.path.join(relative, name), refusals.get(name, "")) for name in names)


def _is_left_out(link: os.DirEntry[str], root: str, outside: list[str]) -> bool:
    """Whether a link is not followed. A link to a file or folder outside `root` is added to `outside`."""
    target = os.path.realpath(link.path)
    if os.path.exists(target) and target != root and not target.startswith(os.path.join(root, "")):
        outside.append(link.path)
        return True
    # Links to folders are not followed: they can form cycles, and folders inside `root` are listed anyway.
    return os.path.isdir(target)


def _refusal(path: str) -> str:
    """The reason why a path that is no plain file cannot be opened; empty for a link to a regular file."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        leads_nowhere = error.errno in (errno.ENOENT, errno.ELOOP)
        return "is a link that leads nowhere; mend or remove it" if leads_nowhere else unreadable(path, error).reason
    return "" if stat.S_ISREG(mode) else "is not a regular file; copy its content into one"
