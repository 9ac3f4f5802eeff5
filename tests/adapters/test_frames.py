"""Documents from data frames, and hits as data frames, with pandas, polars and Arrow."""

import datetime

import pytest

import perikope as pk
from perikope.core.errors import InputError
from tests.adapters.conftest import QUERY

COLUMNS = {
    "id": ["d1", "d2"],
    "title": ["Pumps", None],
    "text": ["A magnet drives it.\n\nIt is quiet.", "Only one paragraph\nof two lines."],
    "year": [2020, 2021],
    "codes": [["F04D", "H02K"], ["A01B"]],
    "price": [1.5, None],
    "day": [datetime.date(2020, 5, 1), datetime.date(2021, 6, 2)],
    "metadata.kind": ["a", "b"],
}


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def frame(request):
    library = pytest.importorskip(request.param)
    return library.table(COLUMNS) if request.param == "pyarrow" else library.DataFrame(COLUMNS)


def test_one_row_is_one_document(frame, tmp_path):
    with pk.Index.create(tmp_path / "i") as index:
        index.add(frame)
    index = pk.Index.open(tmp_path / "i")
    first, second = index.get("d1"), index.get("d2")
    assert (first.title, second.title) == ("Pumps", "")
    assert [first.text_of(span) for span in first.of_kind(pk.Kind.PASSAGE)] == ["A magnet drives it.", "It is quiet."]
    assert [second.text_of(span) for span in second.of_kind(pk.Kind.PASSAGE)] == ["Only one paragraph\nof two lines."]
    assert dict(first.metadata) == {"year": 2020, "codes": ["F04D", "H02K"], "price": 1.5, "day": "2020-05-01", "kind": "a"}
    assert dict(second.metadata) == {"year": 2021, "codes": ["A01B"], "day": "2021-06-02", "kind": "b"}
    assert index.count("year>=2021") == 1


def test_keys_of_json_lines_are_columns_too(tmp_path):
    pandas = pytest.importorskip("pandas")
    sections = [{"title": "Care", "passages": ["Wash it."]}]
    with pk.Index.create(tmp_path / "i") as index:
        index.add(
            pandas.DataFrame({"docno": [7], "sections": [sections], "metadata": [{"a": 1}], "b": [pandas.Timestamp("2020-05-01 12:30")]})
        )
    found = pk.Index.open(tmp_path / "i").search("wash")[0]
    assert (found.document, found.path) == ("7", ("Care",))
    assert found.metadata == {"a": 1, "b": "2020-05-01T12:30:00"}


def test_rows_without_an_id_and_with_two_texts_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    index = pk.Index.create(tmp_path / "i")
    with pytest.raises(InputError, match="row 1 of the data frame has no id"):
        index.add(pandas.DataFrame({"text": ["x"]}))
    with pytest.raises(InputError, match="give one of them"):
        index.add(pandas.DataFrame({"id": ["a"], "text": ["x"], "passages": [["y"]]}))
    assert len(index) == 0


def test_hits_are_an_arrow_table_with_the_columns_of_the_other_frames(folder):
    pytest.importorskip("pyarrow")
    for query in (QUERY, "zebra"):
        results = pk.Index.open(folder).search(query)
        table = results.to_arrow()
        assert table.num_rows == len(results)
        assert table.column_names == list(results.to_pandas().columns)
        assert table.column("text").to_pylist() == [hit.text for hit in results]
        assert str(table.schema.field("score").type) == "double"
