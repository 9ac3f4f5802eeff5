import numpy as np
import pytest

from perikope.core.errors import IndexFormatError
from perikope.index.columns import ColumnFile, ColumnWriter


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "segment-000001.columns"
    with ColumnWriter(path) as writer:
        writer.write("small", np.array([1, 2, 3], np.uint8))
        writer.write("large", np.arange(1000, dtype=np.int64))
        writer.write("none", np.zeros(0, np.float32))
        writer.write_strings("names", [b"a", b"", b"bc"])
        writer.close({"documents": 3})
    return path


def test_columns_come_back(path):
    columns = ColumnFile(path)
    assert columns.facts == {"documents": 3}
    assert columns["small"].tolist() == [1, 2, 3]
    assert columns["large"].tolist() == list(range(1000))
    assert columns["none"].size == 0
    assert [columns.strings("names")[i] for i in range(3)] == [b"a", b"", b"bc"]
    assert columns.damaged_columns() == []
    assert not columns["large"].flags.writeable


def test_a_missing_column_is_named(path):
    with pytest.raises(IndexFormatError, match="lacks the column 'other'"):
        ColumnFile(path)["other"]


def test_a_file_without_its_footer_does_not_count(tmp_path):
    path = tmp_path / "half"
    with ColumnWriter(path) as writer:
        writer.write("small", np.zeros(100, np.uint8))
    assert not path.exists()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda data: data[:50], "is cut short"),
        (lambda data: data[:-1], "is cut short"),
        (lambda data: b"X" + data[1:], "is not a segment"),
        (lambda data: data[:8] + b"\x09" + data[9:], "format version 9"),
        (lambda data: data[:-60] + b"#" + data[-59:], "damaged footer"),
    ],
)
def test_damage_is_named_on_opening(path, damage, complaint):
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(IndexFormatError, match=complaint):
        ColumnFile(path)


def test_a_flipped_bit_is_found_in_its_column(path):
    data = bytearray(path.read_bytes())
    data[64 + 64 + 5] ^= 1
    path.write_bytes(data)
    assert ColumnFile(path).damaged_columns() == ["large"]


def test_a_swapped_file_is_not_the_one_the_manifest_names(path):
    with pytest.raises(IndexFormatError, match="is not the file that the manifest names"):
        ColumnFile(path, {"size": path.stat().st_size, "checksum": 1})
