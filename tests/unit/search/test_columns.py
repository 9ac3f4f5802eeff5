"""The columns of tables of results."""

import json

import pytest

from perikope.search.columns import PROGRAM_ONLY, columns_of, flat, sheet_of
from perikope.search.facade import Index

DOCUMENTS = [
    {"id": "d1", "title": "Pumps", "metadata": {"year": 2010, "by": {"name": "Ada"}, "ipc": ["F04D", "F04B"]}, "sections": [
        {"title": "Rotor", "passages": [{"id": "p1", "text": "The rotor turns."}]}]},
    {"id": "d2", "metadata": {"open": True}, "sections": [{"title": "Of rotors", "passages": ["A rotor."]}]},
]  # fmt: skip


@pytest.fixture(scope="module")
def hits(tmp_path_factory):
    import perikope as pk

    folder = tmp_path_factory.mktemp("columns")
    (folder / "d.jsonl").write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    index = Index.create(folder / "idx")
    index.add(pk.read(folder / "d.jsonl"))
    index.commit()
    return sorted(index.search("rotor"), key=lambda hit: hit.document)


FIXED = ["rank", "score", "document", "passage", "title", "path", "text", "part", "tag", "language", "source", "citation"]


def test_a_sheet_has_one_row_per_hit_and_one_column_per_field(hits):
    columns, rows = sheet_of(hits)
    assert sorted(columns) == sorted([*FIXED, "metadata.by.name", "metadata.ipc", "metadata.open", "metadata.year"])
    first, second = (dict(zip(columns, row, strict=True)) for row in rows)
    assert (first["document"], first["passage"], first["title"], first["path"]) == ("d1", "p1", "Pumps", "Pumps › Rotor")
    assert [first[f"metadata.{field}"] for field in ("by.name", "ipc", "open", "year")] == ["Ada", "F04D; F04B", None, 2010]
    assert (second["metadata.open"], second["metadata.year"]) == (True, None)


def test_a_sheet_has_the_columns_of_a_data_frame_except_those_for_programs(hits):
    assert {*sheet_of(hits)[0]} == {*columns_of(hits)} - PROGRAM_ONLY
    assert {*columns_of(hits)} > PROGRAM_ONLY


def test_the_title_is_that_of_the_document_not_of_a_section(hits):
    assert [(hit.title, hit.path) for hit in hits] == [("Pumps", ("Pumps", "Rotor")), ("", ("Of rotors",))]


def test_no_hits_have_the_fixed_columns():
    assert sheet_of([]) == (FIXED, [])


def test_deeply_nested_metadata_are_flattened():
    metadata = {"a": 1}
    for _ in range(5000):
        metadata = {"a": metadata}
    assert [value for _, value in flat(metadata)] == [1]
