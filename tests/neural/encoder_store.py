"""A store of token vectors with a tiny encoder: made, changed and read by the process that damages copies of it."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.index.check import check
from perikope.index.vector_stores import FOLDER
from perikope.neural import models
from perikope.neural.stores.check import check_stores
from perikope.neural.stores.making import EncodeOptions, encode_index
from perikope.search.facade import Index
from tests.durability.history import QUERY, make_commit
from tests.neural.support import tiny_encoder

STORE = "tiny"
ENCODER = "encoder-of-the-user"
"""The folder beside the documents of the index from which the store is made; a search does not read it."""


def make(folder: Path) -> None:
    """An index with a store of two updates."""
    tiny_encoder().save(folder.with_name(ENCODER))
    index = Index.create(folder)
    for commit in (1, 2):
        make_commit(index, commit)
        encode(index, str(folder.with_name(ENCODER)) if commit == 1 else "")


def encode(index: Index, encoder: str = "", **options) -> None:
    encode_index(index.snapshot, EncodeOptions(name=STORE, encoder=encoder, **options))


def problems(folder: Path) -> list[str]:
    return [*check(folder).problems, *check_stores(folder).problems]


def look(folder: Path) -> str:
    """A checksum of what a search finds with the store."""
    models._loaded_encoder.cache_clear()  # an encoder that is loaded already does not read its files again
    results = Index.open(folder).search(QUERY, model=f'colbert(store="{STORE}")', documents="all", k=100)
    return f"{zlib.crc32(repr(results.names()).encode()):08x}"


def change(folder: Path) -> None:
    """Update index and store."""
    os.fsync = lambda descriptor: None  # costs most of the time of the probe, which loses no power
    index = Index.open(folder)
    make_commit(index, 3)
    encode(index)


def is_complete(folder: Path) -> bool:
    """Whether the index has a store."""
    return (folder / FOLDER / STORE / "store.json").is_file()
