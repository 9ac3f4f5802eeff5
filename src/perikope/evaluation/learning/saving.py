"""Saves a learned combination in an index. Trees are also saved in the text format of LightGBM, for other programs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from perikope.browse.models.combination import KIND
from perikope.core.files import replacing
from perikope.evaluation.learning.validation import LearnedCombination
from perikope.index.saved_tables import FOLDER, check_name, delete_table, write_table


def save(index: Path, name: str, learned: LearnedCombination) -> Path:
    """Save a combination in an index under a name, replacing an older one, and return the path of its table.

    The same combination always gives the same bytes.
    """
    check_name(name)
    combination = learned.combination
    text = text_path(index, name)
    if not learned.text:
        path = write_table(index, name, KIND, combination.values())
        text.unlink(missing_ok=True)  # an older combination of this name may have had trees
        return path
    digest = hashlib.sha256(learned.text.encode()).hexdigest()
    combination = replace(combination, training={**combination.training, "lightgbm_sha256": digest})
    path = write_table(index, name, KIND, combination.values())
    with replacing(text) as file:
        file.write(learned.text)
    return path


def delete(index: Path, name: str) -> None:
    """Delete the combination that was saved in an index under a name."""
    delete_table(index, name)
    text_path(index, name).unlink(missing_ok=True)


def text_path(index: Path, name: str) -> Path:
    """The path of the file with the trees of a combination in the text format of LightGBM."""
    return index / FOLDER / f"{name}.lightgbm.txt"
