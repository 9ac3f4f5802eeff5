"""How many examples a property test tries: `PERIKOPE_EXAMPLES` scales the number that is written at each test."""

from __future__ import annotations

import os

from hypothesis import settings

SCALE = float(os.environ.get("PERIKOPE_EXAMPLES", "0.5"))
LEAST = 20


def scaled(count: int) -> int:
    """The number of examples of a test that tries `count` at scale 1; a small scale leaves at least `LEAST` of them."""
    return max(min(count, LEAST), round(count * SCALE))


def examples(count: int) -> settings:
    """Settings of a test that tries `count` examples at scale 1."""
    return settings(max_examples=scaled(count), deadline=None)
