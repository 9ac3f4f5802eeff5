"""The columns of tables of results."""

import json

import pytest

from perikope.search.columns import COLUMNS, columns_and_rows, metadata_cells
from perikope.search.facade import Index
from perikope.search.hits import Hit

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


def test_every_column_is_named_like_an_attribute_of_a_hit():
    assert {column.name for column in COLUMNS} <= set(Hit.__dataclass_fields__)
    assert all(column.meaning for column in COLUMNS)


def test_a_table_has_one_row_per_hit_and_one_column_per_field(hits):
    columns, rows = columns_and_rows(hits)
    assert columns == [*(column.name for column in COLUMNS), "metadata.by.name", "metadata.ipc", "metadata.open", "metadata.year"]
    first, second = (dict(zip(columns, row, strict=True)) for row in rows)
    assert (first["document"], first["passage"], first["title"], first["path"]) == ("d1", "p1", "Pumps", "Pumps › Rotor")
    assert (first["metadata.by.name"], first["metadata.ipc"], first["metadata.open"], first["metadata.year"]) == (
        "Ada",
        "F04D; F04B",
        None,
        2010,
    )
    assert (second["metadata.open"], second["metadata.year"]) == (True, None)


def test_the_title_is_that_of_the_document_not_of_a_section(hits):
    assert [(hit.title, hit.path) for hit in hits] == [("Pumps", ("Pumps", "Rotor")), ("", ("Of rotors",))]


def test_no_hits_have_the_fixed_columns():
    assert columns_and_rows([]) == ([column.name for column in COLUMNS], [])


def test_deeply_nested_metadata_are_flattened():
    metadata = {"a": 1}
    for _ in range(5000):
        metadata = {"a": metadata}
    assert list(metadata_cells(metadata).values()) == [1]
