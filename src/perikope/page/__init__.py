"""The page: files that a server sends to a browser, in the folder `files`. A browser reads them as they are."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

FOLDER = "/page/"
"""The path of the files. `index.html` is also the page at `/`."""
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
"""The types of the files that are sent, by the end of their names. Others, such as types for development, are not."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page."""

    type: str
    """The content type."""
    data: bytes
    packed: bytes
    """The same, compressed with gzip."""
    tag: str
    """An entity tag: a hash of the content in quotes."""


def page_files() -> Mapping[str, PageFile]:
    """The files of the page by path, read from the installed package."""
    found = {f"{FOLDER}{path}": _read(file, path) for path, file in _walk(resources.files("perikope.page") / "files", "")}
    return {"/": found[f"{FOLDER}index.html"], **found}


def _walk(folder: Traversable, inside: str) -> list[tuple[str, Traversable]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _walk(entry, f"{inside}{entry.name}/")
        elif entry.name.rpartition(".")[2] in _TYPES:
            found.append((f"{inside}{entry.name}", entry))
    return found


def _read(file: Traversable, path: str) -> PageFile:
    data = file.read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'
    return PageFile(_TYPES[path.rpartition(".")[2]], data, gzip.compress(data, mtime=0), tag)
