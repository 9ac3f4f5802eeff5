"""The names of the vector stores of an index. `perikope.neural.stores` reads and writes them."""

from __future__ import annotations

import json
from pathlib import Path

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
        return str(json.loads((index / FOLDER / name / MANIFEST).read_text("utf-8"))["kind"])
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return "damaged"
