"""Every source file becomes exactly the tree beside it; PERIKOPE_REGENERATE=1 writes the trees anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perikope.formats import read
from tests.support.trees import GOLDEN, describe

REGENERATE = bool(os.environ.get("PERIKOPE_REGENERATE"))
SOURCES = sorted((GOLDEN / "sources").iterdir())


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_source_becomes_its_tree(source: Path) -> None:
    expected = GOLDEN / "trees" / f"{source.name}.txt"
    tree = "\n".join(describe(document) for document in read(source))
    if REGENERATE:
        expected.write_text(tree, encoding="utf-8")
    assert tree == expected.read_text(encoding="utf-8")


def test_every_tree_has_its_source() -> None:
    assert sorted(path.name for path in (GOLDEN / "trees").iterdir()) == [f"{source.name}.txt" for source in SOURCES]


def test_the_switch_is_off() -> None:
    assert not REGENERATE, "the trees were written anew: look at the difference, then run the tests without PERIKOPE_REGENERATE"
