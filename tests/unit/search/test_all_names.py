"""Names that are copied from those of all passages are the names that are made one by one."""

import numpy as np
import pytest

from perikope.core.arrays import frozen
from perikope.document.tree import TreeBuilder
from perikope.kernels.names import copy_lines
from perikope.search import all_names as module
from perikope.search.facade import Index


def index_of(folder, ids):
    index = Index.create(str(folder))
    for segment in range(3):
        for document in range(5):
            builder = TreeBuilder(f"{segment}-{document}")
            for number in range(9):
                id = ids[(number + segment) % len(ids)]
                builder.passage(f"magnetic pump {number}", **({} if id is None else {"id": id}))
            index.add(builder.build())
        index.commit()
    index.delete(["1-2"])
    index.commit()
    return index


@pytest.mark.parametrize("ids", [[None], [f"p{number}" for number in range(9)], ["", "a", *(f"p{number}" for number in range(8))]])
def test_they_equal_names_made_one_by_one(tmp_path, ids):
    results = index_of(tmp_path / "index", ids).search("magnetic pump", model="bm25", k=1000)
    rows = results.ranking.rows
    assert rows.size == 14 * 9
    before = results.ranked_names()
    assert not before.lines.are_checked, "too few names were asked for"
    for _ in range(2):
        after = results.ranked_names()
    assert after.lines.are_checked
    expected = [results.names_of(rows[i : i + 1])[0] for i in range(rows.size)]
    assert after.lines.to_list() == before.lines.to_list() == expected


def test_names_that_must_be_encoded_are_not_copied(tmp_path):
    results = index_of(tmp_path / "index", ["a b", None]).search("magnetic pump", model="bm25", k=1000)
    names = [results.ranked_names().lines for _ in range(3)]
    assert not any(lines.are_checked for lines in names)
    assert names[0].to_list() == names[2].to_list()


def test_ids_that_occur_twice_are_found(tmp_path):
    index = Index.create(str(tmp_path / "index"))
    builder = TreeBuilder("d")
    for number in range(100):
        builder.passage(f"pump {number}", id="same" if number in (3, 90) else f"p{number}")
    index.add(builder.build())
    index.commit()
    results = index.search("pump", model="bm25", k=1000)
    assert not any(results.ranked_names().lines.are_checked for _ in range(3))


def test_a_large_index_keeps_no_names(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_PASSAGES", 100)
    results = index_of(tmp_path / "index", [None]).search("magnetic pump", model="bm25", k=1000)
    assert not any(results.ranked_names().lines.are_checked for _ in range(3))


def test_lines_are_copied_in_the_given_order():
    lines = [b"one\n", b"\n", b"three\n", b"4\n"]
    text, ends = np.frombuffer(b"".join(lines), np.uint8), frozen(np.cumsum([len(line) for line in lines]))
    for chosen in ([], [0], [3, 0, 2], [1, 1, 2, 0]):
        copied, end = copy_lines(text, ends, np.array(chosen, np.int64))
        assert copied.tobytes() == b"".join(lines[i] for i in chosen)
        assert end.tolist() == np.cumsum([len(lines[i]) for i in chosen]).tolist()
