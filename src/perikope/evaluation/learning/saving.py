"""Saves a learned combination in an index. Trees are also saved in the text format of LightGBM, for other programs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from perikope.browse.models.combination import KIND
from perikope.evaluation.learning.validation import LearnedCombination
from perikope.index.saved_tables import FOLDER, read_table, write_table

_TEXT = "lightgbm.txt"
"""The end of the name of the file with the trees in the text format of LightGBM."""


def save(index: Path, name: str, learned: LearnedCombination) -> Path:
    """Save a combination in an index under a name, replacing an older one, and return the path of its table.

    The same combination always gives the same bytes.
    """
    combination = learned.combination
    if not learned.text:
        return write_table(index, name, KIND, combination.values())
    digest = hashlib.sha256(learned.text.encode()).hexdigest()
    combination = replace(combination, training={**combination.training, "lightgbm_sha256": digest})
    return write_table(index, name, KIND, combination.values(), {_TEXT: learned.text})


def text_path(index: Path, name: str) -> Path | None:
    """The path of the file with the trees of a combination in the text format of LightGBM; None if it has no trees."""
    names = [file for file in read_table(name, KIND, index).files if file.endswith(_TEXT)]
    return index / FOLDER / names[0] if names else None
