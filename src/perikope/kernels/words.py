"""The words of a text."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers32, Unsigned32
from perikope.kernels.jit import kernel

OTHER, LETTER, EXTENDER, SINGLE = 0, 1, 2, 3
"""Classes of characters: outside words; in a word; continues a word but starts none; a word by itself."""


@kernel
def find_words(characters: Unsigned32, class_of: Bytes) -> tuple[Integers32, Integers32]:
    """Start and end of each word of a text given as code points."""
    count = characters.size
    # A word takes at least one character; with a separator each, half as many.
    starts = np.empty(count, np.int32)
    ends = np.empty(count, np.int32)
    words = 0
    at = 0
    while at < count:
        first = class_of[characters[at]]
        if first == LETTER:
            starts[words] = at
            at += 1
            while at < count and (class_of[characters[at]] == LETTER or class_of[characters[at]] == EXTENDER):
                at += 1
            ends[words] = at
            words += 1
        elif first == SINGLE:
            starts[words] = at
            at += 1
            while at < count and class_of[characters[at]] == EXTENDER:
                at += 1
            ends[words] = at
            words += 1
        else:
            at += 1
    return starts[:words].copy(), ends[:words].copy()
