"""Saved tables are looked up by name, written atomically and checked when they are read."""

import json

import pytest

from perikope.browse.tags import KIND, TagRow, TagTable, tag_table
from perikope.core.errors import InputError, UsageError
from perikope.index.saved_tables import read_table, table_names, write_table


def test_what_is_written_is_read(tmp_path):
    table = TagTable({"b": TagRow(1.4, 0.1, 7), "ü": TagRow(0.0, 1.0, 1)}, ("b",), 3)
    path = write_table(tmp_path, "my-tags", KIND, table.values())
    assert path == tmp_path / "tables" / "my-tags.json"
    assert sorted(file.name for file in path.parent.iterdir()) == ["my-tags.json", "write.lock"]
    assert tag_table(read_table("my-tags", KIND, tmp_path)) == table
    assert tag_table(read_table(str(path), KIND)) == table
    assert table_names(KIND, tmp_path) == ["beigbeder2015", "my-tags"]
    write_table(tmp_path, "my-tags", KIND, TagTable({"b": TagRow(2.0, 0.1, 7)}).values())
    assert tag_table(read_table("my-tags", KIND, tmp_path)).weights == {"b": 2.0}


def test_a_table_of_the_index_goes_before_one_of_the_program(tmp_path):
    write_table(tmp_path, "beigbeder2015", KIND, {"tags": {"p": 3}})
    assert tag_table(read_table("beigbeder2015", KIND, tmp_path)).weights == {"p": 3.0}
    assert tag_table(read_table("beigbeder2015", KIND)).weights["p"] == 0.77


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x.json", "x" * 101])
def test_names_are_plain(tmp_path, name):
    with pytest.raises(UsageError, match="cannot be the name of a table"):
        write_table(tmp_path, name, KIND, {})


def test_unknown_names_are_answered_with_those_there_are(tmp_path):
    write_table(tmp_path, "my-tags", KIND, {"tags": {}})
    write_table(tmp_path, "my-prior", "prior", {"weights": [1] * 10})
    with pytest.raises(UsageError, match=r"unknown table of tags 'my-tag'; did you mean 'my-tags'\? valid: beigbeder2015, my-tags"):
        read_table("my-tag", KIND, tmp_path)
    with pytest.raises(UsageError, match="'my-prior' holds prior, not tags"):
        read_table("my-prior", KIND, tmp_path)
    with pytest.raises(UsageError, match="unknown table"):
        read_table("../tables/my-tags", KIND, tmp_path)
    with pytest.raises(UsageError, match="there is no file"):
        read_table(str(tmp_path / "absent.json"), KIND)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\xff", "not a table"),
        (b"[" * 100_000, "not a table"),
        (b"[]", "not a table"),
        (b'{"perikope": "table", "version": 1, "kind": "tags", "values": []}', "not a table"),
        (b'{"perikope": "table", "version": 2, "kind": "tags", "values": {}}', "version 2"),
        (b'{"perikope": "table", "version": 1, "kind": "tags", "values": {}}', '"tags" must be'),
        (b'{"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {"b": -1}}}', "weight of 'b'"),
        (b'{"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {"b": NaN}}}', "weight of 'b'"),
        (b'{"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {"b": true}}}', "weight of 'b'"),
        (b'{"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {"b": {"coverage": 1}}}}', "weight of 'b'"),
        (b'{"perikope": "table", "version": 1, "kind": "tags", "values": {"tags": {}, "logical": [1]}}', '"logical" must be'),
    ],
)
def test_a_damaged_table_is_an_error(tmp_path, content, complaint):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        tag_table(read_table(str(path), KIND))


def test_a_write_that_fails_leaves_the_old_table(tmp_path):
    write_table(tmp_path, "my-tags", KIND, {"tags": {"b": 1}})
    with pytest.raises(ValueError):
        write_table(tmp_path, "my-tags", KIND, {"tags": {"b": float("nan")}})
    files = sorted((tmp_path / "tables").iterdir())
    assert [file.name for file in files] == ["my-tags.json", "write.lock"]
    assert json.loads(files[0].read_bytes())["values"] == {"tags": {"b": 1}}
