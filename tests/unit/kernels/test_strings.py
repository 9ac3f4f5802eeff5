import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.strings import hash_strings, merge_sorted

lists_of_strings = st.lists(st.lists(st.binary(max_size=4), unique=True).map(sorted), max_size=4)


@given(lists_of_strings)
def test_merge_sorted(lists):
    flat = [string for strings in lists for string in strings]
    first = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    ends = np.cumsum([0, *map(len, flat)]).astype(np.int64)
    place, example = merge_sorted(np.arange(len(flat)), first, ends[:-1], ends[1:], np.frombuffer(b"".join(flat), np.uint8))
    distinct = sorted(set(flat))
    assert [flat[i] for i in example] == distinct
    assert [distinct[i] for i in place] == flat


@given(st.lists(st.binary(max_size=9), unique=True, max_size=20))
def test_hashes_tell_strings_apart(strings):
    ends = np.cumsum([len(string) for string in strings], dtype=np.uint64)
    hashes = hash_strings(ends, np.frombuffer(b"".join(strings), np.uint8))
    assert len(set(hashes.tolist())) == len(strings)
