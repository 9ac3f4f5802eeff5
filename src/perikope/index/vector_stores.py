"""The names of the vector stores of an index. `perikope.neural.stores` reads and writes them."""

from __future__ import annotations

from pathlib import Path

from perikope.core.errors import InputError
from perikope.core.reading import read_saved

FOLDER = "neural"
"""Folder of the stores in an index."""
MANIFEST = "store.json"
"""The file of a store that describes it."""


def store_names(index: Path) -> list[str]:
    """The names of the stores of an index, sorted."""
    folder = index / FOLDER
    return sorted(store.name for store in folder.iterdir() if (store / MANIFEST).is_file()) if folder.is_dir() else []


def store_kind(index: Path, name: str) -> str:
    """The kind of a store, such as `tokens` or `pooled`; `damaged` if its manifest cannot be read."""
    try:
        return str(read_saved(index / FOLDER / name / MANIFEST)["kind"])
    except (OSError, InputError, KeyError, TypeError, ValueError, RecursionError):
        return "damaged"
