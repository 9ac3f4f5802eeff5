"""Find the words of a text."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers32, Unsigned32
from perikope.kernels.jit import kernel

OTHER, LETTER, EXTENDER, SINGLE = 0, 1, 2, 3
"""Classes of characters.

`OTHER` is outside words, `LETTER` is part of a word, `EXTENDER` continues a word but does not start one, and `SINGLE`
is a word by itself.
"""


@kernel
def find_words(characters: Unsigned32, class_of: Bytes) -> tuple[Integers32, Integers32]:
    """The start and the end (exclusive) of each word, as indexes in `characters`.

    `characters` has the code points of the text, and `class_of` has the class of each code point.
    """
    count = characters.size
    # Every word takes at least one character.
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
