"""The folder walk: finds files in sorted order and follows no link out of the folder; knows nothing of formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from perikope.errors import UnreadableFile
from perikope.formats._source import unreadable


def walk(folder: str, on_problem: Callable[[UnreadableFile], None]) -> Iterator[str]:
    """Paths of the regular files under a folder, relative to it, in sorted order; hidden ones are left out."""
    root = os.path.realpath(folder)
    # A stack rather than recursion: folders may nest deeper than Python's calls. It holds the names of the folders that
    # are open and nothing else, so that a walk over a million files costs the memory of its largest folder.
    levels = [_entries(folder, "", root, on_problem)]
    while levels:
        for relative, is_folder in levels[-1]:
            if is_folder:
                levels.append(_entries(folder, relative, root, on_problem))
                break
            yield relative
        else:
            levels.pop()


def _entries(folder: str, relative: str, root: str, on_problem: Callable[[UnreadableFile], None]) -> Iterator[tuple[str, bool]]:
    path = os.path.join(folder, relative)
    names, folders = [], set()
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.add(entry.name)
                    names.append(entry.name)
                elif entry.is_file(follow_symlinks=False) or _is_file_inside(entry, root):
                    names.append(entry.name)
    except OSError as error:
        on_problem(unreadable(path, error))
        return iter(())
    names.sort()
    return ((os.path.join(relative, name), name in folders) for name in names)


def _is_file_inside(entry: os.DirEntry[str], root: str) -> bool:
    # Links to folders are never followed: what they show is met under its own name, and they can go in circles.
    if not entry.is_symlink():
        return False
    target = os.path.realpath(entry.path)
    return target.startswith(os.path.join(root, "")) and os.path.isfile(target)
