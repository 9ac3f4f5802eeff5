"""The token stream of a document: the number of each token's term, as codes of two bytes.

Frequent terms have small numbers. A number below 65535 is its own code. A larger number is three codes: 65535, its low
half and its high half. ARCHITECTURE.md compares this format with 32-bit numbers, variable bytes and bit-packed blocks.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Integers, Unsigned16, Unsigned32
from perikope.kernels.jit import kernel

ESCAPE = 0xFFFF
"""Code that begins a number of three codes."""
SLOTS = 1 << 16
"""Minimum size of a table that is indexed by codes, so that no code, even a damaged one, points outside it."""


@kernel
def encode_tokens(tokens: Unsigned32, first_token: Integers) -> tuple[Unsigned16, Integers]:
    """Encode the tokens of documents.

    `first_token` has the index of each document's first token, and at the end the number of tokens. Returns the codes
    of all documents, concatenated; and the index of each document's first code, with the number of codes at the end.
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
    """Decode the first `count` tokens. Returns the tokens and their number, which is smaller if the codes end early."""
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
    """Replace each token t by `new_number[t]` in place. Stops and returns False if a token is outside `new_number`."""
    for i in range(tokens.size):
        if tokens[i] >= new_number.size:
            return False
        tokens[i] = new_number[tokens[i]]
    return True
