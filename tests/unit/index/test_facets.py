from datetime import date
from pathlib import Path

import numpy as np
import pytest

from perikope.core.errors import IndexFormatError
from perikope.document.tree import TreeBuilder
from perikope.index.check import check
from perikope.index.columns import ColumnFile, ColumnWriter
from perikope.index.facets import FacetBuilder, merge_facets, metadata_pairs
from tests.durability import harms
from tests.support.collections import index_of

COLUMNS = ["facet_fields.ends", "facet_fields.bytes", "facet.first_value", "facet_values.ends", "facet_values.bytes",
           "facet.first_document", "facet.document"]  # fmt: skip


def document(id, **metadata):
    builder = TreeBuilder(id, metadata=metadata)
    builder.passage("a pump")
    return builder.build()


def only_segment(documents):
    (segment,) = index_of(documents)._snapshot.segments
    return segment


def content(segment):
    """The documents of each pair of field and value in a segment."""
    facets = segment.facets
    return {
        (field, facets.values.text(key)): facets.documents(np.array([key])).tolist()
        for field in facets.fields
        for key in facets.keys(field)
    }


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("a", ["a"]), ("", [""]), (2010, ["2010"]), (2010.0, ["2010"]), (1.50, ["1.5"]), (-0.0, ["0"]), (True, ["true"]),
        (False, ["false"]), (None, []), ([], []), ({}, []), ([1, "1", [2, None]], ["1", "1", "2"]), (float("nan"), []), (float("inf"), []),
        ((1, 2), ["1", "2"]), (date(2013, 4, 1), ["2013-04-01"]), (1e15, ["1000000000000000"]), (1e16, ["1e+16"]),
        (1 << 63, [str(1 << 63)]),
    ],
)  # fmt: skip
def test_values_as_text(value, texts):
    assert sorted(metadata_pairs({"field": value})) == [("field", text) for text in texts]


def test_objects_become_fields_with_dots():
    pairs = metadata_pairs({"a": {"b": {"c": 1}, "d": [2, {"e": 3}]}, "a.b.c": 4})
    assert sorted(pairs) == [("a.b.c", "1"), ("a.b.c", "4"), ("a.d", "2"), ("a.d.e", "3")]


def test_deep_metadata_exhausts_no_stack():
    nested: object = 1
    for _ in range(100_000):
        nested = [nested]
    assert list(metadata_pairs({"a": nested})) == [("a", "1")]


def test_keys_are_sorted_by_field_then_value_and_name_their_documents():
    segment = only_segment([document("a", year=2010, ipc=["G06F 1/16", "A01B"]), document("b"), document("c", year="2010", ipc="A01B")])
    assert segment.facets.fields == ["ipc", "year"]
    assert content(segment) == {("ipc", "A01B"): [0, 2], ("ipc", "G06F 1/16"): [0], ("year", "2010"): [0, 2]}
    assert list(content(segment)) == sorted(content(segment))


def test_the_same_value_twice_in_a_document_counts_once():
    assert content(only_segment([document("a", ipc=["A", "B", "A"], year=[1, 1.0, "1"])])) == {
        ("ipc", "A"): [0],
        ("ipc", "B"): [0],
        ("year", "1"): [0],
    }


def test_values_sort_by_their_bytes():
    texts = ["", "\0", "a", "a\xff", "aa", "ab", "z", "é", "\uffff", "\U00010000"]
    segment = only_segment([document("d", field=texts[::-1])])
    assert [segment.facets.values[key] for key in segment.facets.keys("field")] == sorted(text.encode() for text in texts)


def test_a_beginning_is_a_range_of_keys():
    texts = ["a", "ab", "abc", "ac", "b", "ab\U0010ffff", "a\xff"]
    facets = only_segment([document("d", field=texts, other="ab")]).facets
    for prefix in ("", "a", "ab", "abc", "abcd", "b", "c", "a\xff"):
        values = [facets.values.text(key) for key in facets.beginning(facets.keys("field"), prefix.encode())]
        assert sorted(values) == sorted(text for text in texts if text.startswith(prefix))
    assert list(facets.keys("absent")) == list(facets.beginning(facets.keys("absent"), b"")) == []


def test_documents_without_metadata_have_no_facets():
    segment = only_segment([document("a"), document("b")])
    assert segment.facets.fields == []
    assert content(segment) == {}


def test_numbers_of_documents_are_as_narrow_as_the_segment():
    assert only_segment([document("a", year=1)])["facet.document"].dtype == np.uint8
    many = [document(f"d{i}", **({"year": 1} if i == 3 else {})) for i in range(300)]
    assert only_segment(many)["facet.document"].dtype == np.uint16


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
def test_a_merge_says_what_a_rebuild_says(tmp_path, chunk):
    documents = [
        document(f"d{i}", year=2000 + i % 3, **{f"field{i % 4}": "x" * (i % 5)}, ipc=[f"A{i % 2}", f"B{i % 7}"] if i % 3 else None)
        for i in range(20)
    ]
    index = index_of(documents, [4, 5, 11])
    index.delete(["d1", "d4", "d19", "d7"])
    index.commit()
    segments = index._snapshot.segments
    ends = np.cumsum([segment.documents for segment in segments])
    alive = np.concatenate([segment.alive for segment in segments])
    number = np.where(alive, np.cumsum(alive) - 1, -1)
    with ColumnWriter(tmp_path / "merged") as writer:
        merge_facets(writer, [segment.facets for segment in segments], np.split(number, ends[:-1]), chunk)
        writer.close({})
    merged = ColumnFile(tmp_path / "merged")
    rebuilt = only_segment([document for document in documents if document.id not in ("d1", "d4", "d19", "d7")])
    index.compact()
    (compact,) = index._snapshot.segments
    for name in COLUMNS:
        assert merged[name].dtype == rebuilt[name].dtype == compact[name].dtype
        assert merged[name].tolist() == rebuilt[name].tolist() == compact[name].tolist()


def test_fields_that_only_deleted_documents_had_are_gone_after_a_merge():
    index = index_of([document("a", year=1, lost="x"), document("b", year=2)], [1])
    index.delete(["a"])
    index.commit()
    index.compact()
    (segment,) = index._snapshot.segments
    assert content(segment) == {("year", "2"): [0]}


def test_memory_grows_with_the_metadata():
    builder = FacetBuilder()
    sizes = [builder.memory]
    for metadata in ({"a": "x"}, {"a": "x"}, {"a": "y" * 1000}):
        builder.add(metadata)
        sizes.append(builder.memory)
    assert sizes == sorted(set(sizes))
    assert sizes[3] - sizes[2] > sizes[1] - sizes[0] + 1000


@pytest.mark.parametrize(
    ("column", "mutation"),
    [
        ("facet.document", "backwards"), ("facet.document", "all zero"), ("facet_values.bytes", "backwards"),
        ("facet_fields.bytes", "backwards"),
        ("facet.first_document", "one more"), ("facet.first_value", "all zero"), ("facet_values.ends", "one less"),
    ],
)  # fmt: skip
def test_check_finds_facets_that_are_not_those_of_the_metadata(column, mutation):
    index = index_of([document("a", year=[1, 2], ipc=["A", "B"]), document("b", year=2, ipc=["A", "C"])])
    folder = Path(index.folder)
    harms.forge_columns(folder, index._snapshot.segments[0].columns.path.name, {column: mutation}, seed=1)
    assert len(check(folder).problems) == 1


def test_a_document_that_is_not_there_is_refused():
    index = index_of([document("a", year=1), document("b", year=1)])
    harms.forge_columns(Path(index.folder), index._snapshot.segments[0].columns.path.name, {"facet.document": "all the largest"}, seed=1)
    (segment,) = type(index).open(index.folder)._snapshot.segments
    with pytest.raises(IndexFormatError, match="has damaged facets"):
        segment.facets.documents(np.array([0]))
