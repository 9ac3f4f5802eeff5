"""Search forwards and backwards from a guessed place in a sorted list."""

from __future__ import annotations

from perikope.core.arrays import Unsigned16
from perikope.kernels.jit import step
from perikope.kernels.ordered import lower_bound

_NEAR = 16
"""Distance from the guessed place of a document in a list at which a search begins."""


@step
def seek(documents: Unsigned16, at: int, end: int, guess: int, wanted: int) -> int:
    """The first index from `at` on whose document is at least `wanted`, or `end`; fast if it is near `guess`.

    `guess` must be at least `at` and below `end`.
    """
    step = _NEAR
    if documents[guess] < wanted:
        while guess + step < end and documents[guess + step] < wanted:
            guess += step
            step *= 2
        return lower_bound(documents, guess, min(guess + step, end), wanted)
    while guess - step >= at and documents[guess - step] >= wanted:
        guess -= step
        step *= 2
    return lower_bound(documents, max(guess - step, at), guess, wanted)
