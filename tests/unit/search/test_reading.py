"""Reading the documents of an index back from Python."""

import dataclasses

import pytest
from hypothesis import given

from perikope.core.errors import UsageError
from perikope.document.tree import Document, Place, TreeBuilder
from perikope.formats import read
from perikope.search.facade import Index
from tests.support.collections import collections, index_of, plain_document, structured_document


def spelt_out(document: Document) -> dict[str, object]:
    """All of a document, with labels instead of their numbers, since an index numbers them differently."""
    names = [field.name for field in dataclasses.fields(Document) if field.name not in ("spans", "labels")]
    labels = {name: [document.labels[number] for number in getattr(document.spans, name)] for name in ("tag", "part", "language")}
    tree = {name: getattr(document.spans, name).tolist() for name in ("kind", "parent", "start", "end")}
    return {name: getattr(document, name) for name in names} | labels | tree


@given(collections())
def test_documents_come_back_as_they_were_added(documents):
    index = index_of(documents, cuts=[len(documents) // 2])
    index.add(plain_document("late", "", "valve"))
    index.delete("d0")
    index.compact()
    expected = {document.id: spelt_out(document) for document in documents if document.id != "d0"}
    assert {document.id: spelt_out(document) for document in index.documents()} == {
        **expected,
        "late": spelt_out(plain_document("late", "", "valve")),
    }
    assert len(index) == len(expected) + 1


def full() -> Document:
    builder = TreeBuilder("d1", title="Pumps", metadata={"year": 2013, "by": {"name": "Ada"}}, cites=["d7"])
    span = builder.passage("The rotor turns.", id="p1", marks=[("b", 4, 9)], refs=["p2"], language="fr", part="claims")
    builder.passage("A seal.", id="p2")
    builder.places[span] = Place("/a[1]/p[1]", 5, 21)
    builder.citations[span] = "[0001]"
    builder.source, builder.member, builder.source_hash = "a.zip", "a.zip/b.xml", "12ab"
    return builder.build()


@pytest.mark.parametrize("document", [full(), structured_document()], ids=["full", "structured"])
def test_everything_of_a_document_is_kept(document):
    index = index_of([plain_document("d0", "", "other tags", part="abstract"), document])
    assert spelt_out(index.get(document.id)) == spelt_out(document)
    copy = index_of([*index.documents()])
    assert copy.fingerprint == index.fingerprint, "a copy has the same bytes"


def test_an_index_is_asked_for_a_document():
    index = index_of([plain_document("d1", "Pumps", "rotor"), plain_document("d2", "", "seal")])
    assert len(index) == 2
    assert "d1" in index
    assert "d3" not in index
    assert 7 not in index
    assert index.get("d3") is None
    document = index.get("d1")
    assert (document.title, document.text_of(2)) == ("Pumps", "rotor")
    index.delete("d1")
    index.commit()
    assert index.get("d1") is None
    assert [document.id for document in index.documents()] == ["d2"]
    assert document.text == "Pumps\nrotor"


def test_a_patent_is_found_by_its_number_in_every_spelling():
    index = index_of([plain_document("EP-1000000-A1", "", "rotor"), plain_document("EP-1000000-B1", "", "seal")])
    for spelled in ("EP1000000A1", "EP 1 000 000 A1", "EP-1000000-A1", "ep1000000a1"):
        assert index.get(spelled).id == "EP-1000000-A1"
    assert index.get("EP1000000").id == "EP-1000000-B1", "the latest publication"
    assert index.get("EP1000000C1") is None
    assert index.get("EP2000000A1") is None
    assert "EP1000000A1" not in index, "an id is compared exactly"


def test_documents_can_be_filtered(tmp_path):
    with Index.create(tmp_path / "index") as index:
        index.add({"id": f"d{year}", "metadata": {"year": year}, "passages": ["rotor"]} for year in range(2010, 2014))
    index = Index.open(tmp_path / "index")
    assert [document.id for document in index.documents("year>=2012")] == ["d2012", "d2013"]
    assert [document.id for document in index.documents(["year>=2011", "year<2012"])] == ["d2011"]
    with pytest.raises(UsageError, match="unknown metadata field 'yaer'"):
        index.documents("yaer=2010")


def test_documents_are_those_of_the_call():
    index = index_of([plain_document("d1", "", "rotor"), plain_document("d2", "", "seal")])
    documents = index.documents()
    assert next(documents).id == "d1"
    index.add(plain_document("d3", "", "valve"))
    index.delete("d2")
    index.compact()
    assert [document.id for document in documents] == ["d2"]


def test_results_stay_as_they_were_when_the_index_changes():
    index = index_of([plain_document("d1", "Pumps", "rotor"), plain_document("d2", "", "rotor seal")], cuts=[1])
    results = index.search("rotor")
    before = list(results), results.names(), str(results.explain(0)), results.context(50), results.document_ranking()
    index.add(plain_document("d1", "Other", "valve"), replace=True)
    index.delete("d2")
    index.compact()
    index.close()
    assert (list(results), results.names(), str(results.explain(0)), results.context(50), results.document_ranking()) == before


def test_sync_follows_a_folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# Pumps\n\nThe rotor turns.\n")
    (tmp_path / "docs/b.md").write_text("# Seals\n\nThe seal holds.\n")
    index = Index.create(tmp_path / "index")
    assert index.sync(tmp_path / "docs").documents == len(index) == 2
    (tmp_path / "docs/a.md").write_text("# Pumps\n\nThe valve turns.\n")
    (tmp_path / "docs/b.md").unlink()
    (tmp_path / "docs/c.html").write_text("<h1>Shafts</h1><p>The shaft bends.</p>")
    index.sync(tmp_path / "docs", segment="sentences")
    assert {document.id: document.text for document in index.documents()} == {
        "a.md": "Pumps\nThe valve turns.",
        "c.html": "Shafts\nThe shaft bends.",
    }
    index.sync([tmp_path / "docs/a.md"])
    assert [document.id for document in index.documents()] == ["a.md"]


def test_sync_tells_what_it_could_not_read(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# Pumps\n\nThe rotor turns.\n")
    (tmp_path / "docs/b.md").write_bytes(b"rotor \xff")
    index = Index.create(tmp_path / "index")
    with pytest.warns(UserWarning, match=r"could not be read completely: .*b\.md:1: is not UTF-8"):
        report = index.sync(tmp_path / "docs")
    assert (len(index), len(report.skipped)) == (1, 1)


def test_sync_refuses_what_it_cannot_keep(tmp_path):
    (tmp_path / "a.md").write_text("# Pumps\n\nThe rotor turns.\n")
    index = Index.create(tmp_path / "index")
    index.add(read(tmp_path / "a.md"))
    with pytest.raises(UsageError, match=r"has uncommitted changes \(1 document added\); commit\(\) or rollback\(\) them"):
        index.sync(tmp_path)
    index.commit()
    assert len(index) == 1
    index.close()
    with pytest.raises(UsageError, match="was closed"):
        index.sync(tmp_path)
