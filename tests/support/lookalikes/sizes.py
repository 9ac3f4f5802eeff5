"""Sizes of look-alike collections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """How much a collection has; a collection has as many training topics as test topics."""

    topics: int
    relevant: int
    """Documents (of patents: families) that are relevant to each topic."""
    decoys: int
    """Documents with words of each topic that are not relevant to it."""
    background: int
    """Documents that belong to no topic."""


SIZES = {"small": Size(topics=20, relevant=3, decoys=3, background=20), "large": Size(topics=100, relevant=4, decoys=8, background=8_000)}
"""Sizes by name. `small` is for tests: it is written, indexed and searched in seconds."""
