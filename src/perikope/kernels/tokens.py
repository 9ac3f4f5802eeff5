"""The token stream of a document: the number of each token's term, frequent terms first, in two bytes.

A code below 65535 is the number itself; 65535 is followed by the low and the high half of a larger one. Chosen by
measurement over plain 32-bit numbers, variable bytes and bit-packed blocks: see ARCHITECTURE.md.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers, Unsigned16, Unsigned32
from perikope.kernels.jit import kernel

ESCAPE = 0xFFFF
SLOTS = 1 << 16
"""Smallest size of a table over terms: a damaged code below the escape cannot point outside it."""


@kernel
def encode_tokens(tokens: Unsigned32, first_token: Integers) -> tuple[Unsigned16, Integers]:
    """The codes of all documents, concatenated, and the index of each document's first code.

    The last index is the number of codes, so there is one more than documents.
    """
    wide = 0
    for token in tokens:
        wide += token >= ESCAPE
    codes = np.empty(tokens.size + 2 * wide, np.uint16)
    first_code = np.empty(first_token.size, np.int64)
    at = 0
    for document in range(first_token.size - 1):
        first_code[document] = at
        for i in range(first_token[document], first_token[document + 1]):
            token = tokens[i]
            if token < ESCAPE:
                codes[at] = token
                at += 1
            else:
                codes[at] = ESCAPE
                codes[at + 1] = token & np.uint32(0xFFFF)
                codes[at + 2] = token >> np.uint32(16)
                at += 3
    first_code[first_token.size - 1] = at
    return codes, first_code


@kernel
def decode_tokens(codes: Unsigned16, count: int) -> tuple[Unsigned32, int]:
    """The first `count` tokens of a stream, and their number, which is smaller where the stream ends early."""
    tokens = np.empty(count, np.uint32)
    at = 0
    decoded = 0
    while at < codes.size and decoded < count:
        token = np.uint32(codes[at])
        at += 1
        if token == ESCAPE:
            if at + 2 > codes.size:
                break
            token = np.uint32(codes[at]) | (np.uint32(codes[at + 1]) << np.uint32(16))
            at += 2
        tokens[decoded] = token
        decoded += 1
    return tokens[:decoded], decoded


@kernel
def map_tokens(tokens: Unsigned32, new_number: Unsigned32) -> bool:
    """Renumber tokens in place; False where a token has no number."""
    for i in range(tokens.size):
        if tokens[i] >= new_number.size:
            return False
        tokens[i] = new_number[tokens[i]]
    return True
