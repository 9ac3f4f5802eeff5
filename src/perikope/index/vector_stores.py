"""The names of the vector stores of an index. `perikope.neural.stores` reads and writes them."""

from __future__ import annotations

from pathlib import Path

from perikope.core import files
from perikope.core.checked_json import CHECKSUM, has_right_checksum, parse_object

FOLDER = "neural"
"""Folder of the stores in an index."""
MANIFEST = "store.json"
"""The file of a store that describes it."""


def store_names(index: Path) -> list[str]:
    """The names of the stores of an index, sorted."""
    folder = index / FOLDER
    return sorted(store.name for store in folder.iterdir() if (store / MANIFEST).is_file()) if folder.is_dir() else []


def has_store(index: Path, name: str) -> bool:
    """Whether an index has a store with this name."""
    return (index / FOLDER / name / MANIFEST).is_file()


def store_kind(index: Path, name: str) -> str:
    """The kind of a store, such as `tokens` or `pooled`; `damaged` if its manifest cannot be read."""
    try:
        content = parse_object(files.read(index / FOLDER / name / MANIFEST))
        return str(content["kind"]) if CHECKSUM not in content or has_right_checksum(content) else "damaged"
    except (OSError, KeyError, ValueError):
        return "damaged"
