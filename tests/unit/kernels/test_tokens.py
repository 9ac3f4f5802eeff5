"""The token stream comes back as it was, and damage is noticed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.tokens import decode_tokens, encode_tokens, map_tokens

documents_of_tokens = st.lists(
    st.lists(st.one_of(st.integers(0, 9), st.integers(65530, 65540), st.integers(0, 2**32 - 1)), max_size=9), max_size=5
)


@given(documents_of_tokens)
def test_what_is_encoded_is_decoded(documents):
    first = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    codes, first_code = encode_tokens(np.array([token for document in documents for token in document], np.uint32), first)
    for number, document in enumerate(documents):
        tokens, found = decode_tokens(codes[first_code[number] : first_code[number + 1]], len(document))
        assert tokens.tolist() == document
        assert found == len(document)


@given(st.lists(st.integers(0, 65535), max_size=9), st.integers(0, 12))
def test_a_stream_that_ends_too_early_says_so(codes, wanted):
    tokens, found = decode_tokens(np.array(codes, np.uint16), wanted)
    assert found == tokens.size <= wanted


def test_renumbering_refuses_what_has_no_number():
    tokens = np.array([1, 0, 2], np.uint32)
    assert map_tokens(tokens, np.array([0, 5, 6], np.uint32))
    assert tokens.tolist() == [5, 0, 6]
    assert not map_tokens(np.array([3], np.uint32), np.array([0, 5, 6], np.uint32))
