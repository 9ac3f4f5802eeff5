"""What `info` says about an index."""

import json

import pytest

import perikope as pk
from perikope.index.saved_tables import write_table
from perikope.search.facade import Index
from tests.cli.test_commands import fails, run

DOCUMENTS = [
    {"id": "d1", "title": "Pumps", "language": "en", "metadata": {"year": 2010, "ipc": ["F04D", "F04B"]},
     "sections": [{"part": "claims", "passages": [{"tag": "claim", "text": "The rotor turns."}, "Seals."]}]},
    {"id": "d2", "language": "de", "metadata": {"year": 2011, "ipc": "F04D"}, "passages": ["Der Rotor dreht sich."]},
    {"id": "d3", "metadata": {"year": 2010, "gone": "x"}, "passages": ["The rotor."]},
]  # fmt: skip


@pytest.fixture
def index(tmp_path):
    """Two segments, and a deleted document."""
    index = Index.create(tmp_path / "idx")
    for some in (DOCUMENTS[:2], DOCUMENTS[2:]):
        path = tmp_path / "d.jsonl"
        path.write_text("".join(json.dumps(document) + "\n" for document in some))
        index.add(pk.read(path))
        index.commit()
    return index


def test_everything_is_counted(index):
    info = index.info()
    assert (info.documents, info.passages, info.deleted, info.language) == (3, 4, 0, "en")
    assert (info.languages, info.parts, info.tags) == ({"en": 3, "de": 1}, {"claims": 2}, {"p": 3, "claim": 1})
    year, ipc = (next(field for field in info.fields if field.name == name) for name in ("year", "ipc"))
    assert (year.documents, year.values, dict(year.examples)) == (3, 2, {"2010": 2, "2011": 1})
    assert (ipc.documents, ipc.values, dict(ipc.examples)) == (2, 2, {"F04D": 2, "F04B": 1})
    assert info.settings == {"stemmer": "snowball", "stopwords": "default"}
    assert [(segment.documents, segment.deleted) for segment in info.segments] == [(2, 0), (1, 0)]
    on_disk = sum(path.stat().st_size for path in index.folder.glob("segment-*"))
    assert info.size == sum(segment.size for segment in info.segments) == on_disk
    assert info.tokens == sum(len(words) for words in (["pumps", "rotor", "turns", "seals"], ["rotor", "dreht"], ["rotor"]))


def test_documents_without_a_passage_are_named(tmp_path, capsys):
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# Pumps\n\n## Seals\n")
    (tmp_path / "c.md").write_text("# Pumps\n\nThe rotor turns.\n")
    code, out, _ = run(capsys, "index", tmp_path, "--to", tmp_path / "idx")
    assert code == 0
    assert "documents without a passage: 2, with titles only, which `--elements` finds: a.md, b.md\n" in out
    index = Index.open(tmp_path / "idx")
    assert (index.info().without_passage.number, index.info().without_passage.first) == (2, ("a.md", "b.md"))
    assert [hit.document for hit in index.search("seals", elements=True)]
    assert "2, with titles only" in run(capsys, "info", tmp_path / "idx")[1]
    index.delete(["a.md", "b.md"])
    index.commit()
    assert index.info().without_passage.number == 0
    assert "no passage" not in run(capsys, "info", tmp_path / "idx")[1]


def test_deleted_documents_are_not_counted(index):
    index.delete(["d3", "d1"])
    index.commit()
    info = index.info()
    assert (info.documents, info.passages, info.languages, info.parts) == (1, 1, {"de": 1}, {})
    assert info.deleted == sum(segment.deleted for segment in info.segments)
    fields = {field.name: field for field in info.fields}
    assert (fields["year"].documents, fields["year"].values, dict(fields["year"].examples)) == (1, 1, {"2011": 1})
    assert "gone" not in fields


def test_tables_and_stores_are_listed(index):
    write_table(index.folder, "mine", "tags", {"tags": {"b": 1.0}})
    (index.folder / "tables" / "torn.json").write_text("{")
    store = index.folder / "neural" / "dense"
    store.mkdir(parents=True)
    (store / "store.json").write_text('{"kind": "pooled"}')
    info = index.info()
    assert [(table.name, table.kind) for table in info.tables] == [("mine", "tags"), ("torn", "damaged")]
    assert [(one.name, one.kind, one.size) for one in info.stores] == [("dense", "pooled", 18)]


def test_to_dict_is_plain(index):
    assert json.loads(json.dumps(index.info().to_dict())) == index.info().to_dict()


def test_an_empty_index(tmp_path):
    info = Index.create(tmp_path / "idx").info()
    assert (info.documents, info.fields, info.segments, info.size, info.languages) == (0, (), (), 0, {})


def test_the_command(index, capsys):
    code, out, _ = run(capsys, "info", index.folder)
    assert code == 0
    assert "documents  3\n" in out
    assert "languages  en 3, de 1; the main language is en\n" in out
    assert "  year           3       2  2010 (2), 2011 (1)\n" in out
    assert "in 2 segments\n" in out
    assert json.loads(run(capsys, "info", index.folder, "--json")[1]) == index.info().to_dict()
    fails(capsys, "is not an index", "info", index.folder / "nowhere")
