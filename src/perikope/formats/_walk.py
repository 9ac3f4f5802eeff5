"""The folder walk: lists files in sorted order, follows no link out of the folder, knows no formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from perikope.core.errors import UnreadableFile
from perikope.formats._source import unreadable


def walk(folder: str, on_problem: Callable[[UnreadableFile], None]) -> Iterator[tuple[str, str]]:
    """Relative paths of the files under a folder, sorted, each with the reason why it cannot be opened or "".

    Hidden files and links out of the folder are left out.
    """
    root = os.path.realpath(folder)
    # A stack rather than recursion: folders may nest deeper than Python's calls. It holds the names of the folders that
    # are open and nothing else, so that a walk over a million files costs the memory of its largest folder.
    levels = [_entries(folder, "", root, on_problem)]
    while levels:
        for relative, refusal in levels[-1]:
            if refusal is None:
                levels.append(_entries(folder, relative, root, on_problem))
                break
            yield relative, refusal
        else:
            levels.pop()


def _entries(folder: str, relative: str, root: str, on_problem: Callable[[UnreadableFile], None]) -> Iterator[tuple[str, str | None]]:
    """Relative paths of what a folder holds, each with the reason why it cannot be opened or ""; None for a folder."""
    path = os.path.join(folder, relative)
    names: list[str] = []
    refusals: dict[str, str | None] = {}
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if not entry.is_file(follow_symlinks=False):
                    if entry.is_symlink() and _leads_away(entry, root):
                        continue
                    refusals[entry.name] = None if entry.is_dir(follow_symlinks=False) else _refusal(entry.path)
                names.append(entry.name)
    except OSError as error:
        on_problem(unreadable(path, error))
        return iter(())
    names.sort()
    return ((os.path.join(relative, name), refusals.get(name, "")) for name in names)


def _leads_away(link: os.DirEntry[str], root: str) -> bool:
    # Links to folders are never followed: their content is listed under its own path, and they can form cycles.
    target = os.path.realpath(link.path)
    return os.path.isdir(target) or (os.path.exists(target) and not target.startswith(os.path.join(root, "")))


def _refusal(path: str) -> str:
    if os.path.isfile(path):
        return ""
    return "is not a regular file; copy its content into one" if os.path.exists(path) else "is a link that leads nowhere; mend or remove it"
