import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perikope.kernels.strings import hash_strings, merge_sorted, order_runs, pack_strings

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


@given(st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=20).filter(lambda name: b"\0" not in name)), max_size=30))
def test_runs_are_ordered_by_their_strings(rows):
    rows.sort(key=lambda row: row[0])
    names = [name for _, name in rows]
    ends, data = np.cumsum([len(name) for name in names], dtype=np.uint64), np.frombuffer(b"".join(names), np.uint8)
    keys = pack_strings(ends, data, np.arange(len(names)), 3)
    groups = np.array([group for group, _ in rows], np.int64)
    order = order_runs(groups, keys, 30)
    assert [rows[i] for i in order] == sorted(rows)
    assert [rows[i] for i in np.lexsort((*keys[::-1], groups))] == sorted(rows)
    assert order_runs(np.zeros(3, np.int64), np.zeros((1, 3), np.uint64), 2).size == 0
