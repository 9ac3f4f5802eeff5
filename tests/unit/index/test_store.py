from hypothesis import given
from hypothesis import strategies as st

from perikope.index.columns import ColumnFile, ColumnWriter
from perikope.index.store import BLOCK_SIZE, Store, StoreWriter


@given(st.lists(st.one_of(st.binary(max_size=20), st.integers(0, 2 * BLOCK_SIZE).map(lambda n: b"x" * n)), max_size=12))
def test_strings_come_back_whatever_their_size(tmp_path_factory, strings):
    path = tmp_path_factory.mktemp("store") / "file"
    with ColumnWriter(path) as columns:
        writer = StoreWriter()
        for string in strings:
            writer.append(string)
        writer.write("text", columns)
        columns.close({})
    store = Store("text", ColumnFile(path), len(strings))
    assert len(store) == len(strings)
    assert [store[i] for i in reversed(range(len(strings)))] == strings[::-1]
