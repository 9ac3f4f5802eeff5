"""What was learned, saved in an index: a table, and beside it LightGBM's own text of trees, for other programs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from perikope.browse.models.combination import KIND
from perikope.core.files import replacing
from perikope.evaluation.learning.validation import LearnedCombination
from perikope.index.saved_tables import FOLDER, check_name, delete_table, write_table


def save(index: Path, name: str, learned: LearnedCombination) -> Path:
    """Save a combination under a name in place of what has it; the same combination gives the same bytes."""
    check_name(name)
    combination = learned.combination
    text = text_path(index, name)
    if not learned.text:
        path = write_table(index, name, KIND, combination.values())
        text.unlink(missing_ok=True)  # of what had the name before
        return path
    digest = hashlib.sha256(learned.text.encode()).hexdigest()
    combination = replace(combination, training={**combination.training, "lightgbm_sha256": digest})
    path = write_table(index, name, KIND, combination.values())
    with replacing(text) as file:
        file.write(learned.text)
    return path


def delete(index: Path, name: str) -> None:
    """Delete what was saved under a name."""
    delete_table(index, name)
    text_path(index, name).unlink(missing_ok=True)


def text_path(index: Path, name: str) -> Path:
    """Where LightGBM's text of a model stands."""
    return index / FOLDER / f"{name}.lightgbm.txt"
