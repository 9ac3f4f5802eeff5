"""Documents, topics and judgements of ir_datasets, with the library itself and a data set that is made here."""

import uuid
from typing import NamedTuple

import pytest

ir_datasets = pytest.importorskip("ir_datasets")
if not hasattr(ir_datasets, "create_dataset"):
    pytest.skip("an older ir_datasets", allow_module_level=True)

import perikope as pk  # noqa: E402
from perikope.core.errors import UsageError  # noqa: E402
from perikope.evaluation.io.irds import read_documents  # noqa: E402


@pytest.fixture
def name(tmp_path):
    """The name of a data set of two documents, a query and a judgement."""
    (tmp_path / "docs.tsv").write_text("d1\tA magnet drives the rotor.\nd 2\tA seal.\n")
    (tmp_path / "queries.tsv").write_text("q1\tmagnetic rotor\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    name = f"perikope-{uuid.uuid4().hex}"
    files = {"docs_tsv": tmp_path / "docs.tsv", "queries_tsv": tmp_path / "queries.tsv", "qrels_trec": tmp_path / "qrels.txt"}
    ir_datasets.registry.register(name, ir_datasets.create_dataset(**{key: str(path) for key, path in files.items()}))
    return f"irds:{name}"


def test_a_data_set_is_indexed_searched_and_measured(name, tmp_path):
    with pk.Index.create(tmp_path / "i") as index:
        index.add(read_documents(name))
    index = pk.Index.open(tmp_path / "i")
    assert len(index) == 2
    (topic,) = pk.read_topics(name)
    assert index.search(topic)[0].document == "d1"
    assert pk.read_judgements(name) == {"q1": {"d1": 1}}


class Article(NamedTuple):
    doc_id: str
    title: str
    abstract: str
    body: str
    year: int
    authors: list[str]
    odd: object

    def default_text(self):
        return f"{self.title} {self.abstract} {self.body}"


class Note(NamedTuple):
    doc_id: str
    remark: str

    def default_text(self):
        return self.remark


def test_title_text_and_metadata_come_from_fields(monkeypatch):
    listed = [
        Article("a", "Pumps", "Short.", "One.\n\nTwo.", 2020, ["Ada"], object()),
        Article("b", "Only a title", "", "", 2021, [], None),
        Note("c", "Read me."),
    ]

    class Made:
        def has_docs(self):
            return True

        def docs_iter(self):
            return iter(listed)

    monkeypatch.setattr(ir_datasets, "load", lambda name: Made())
    first, second, third = read_documents("irds:made")
    assert first.title == "Pumps"
    assert [first.text_of(span) for span in first.of_kind(pk.Kind.PASSAGE)] == ["Short.", "One.", "Two."]
    assert dict(first.metadata) == {"year": 2020, "authors": ["Ada"]}
    assert second.title == "Only a title"
    assert [third.text_of(span) for span in third.of_kind(pk.Kind.PASSAGE)] == ["Read me."]


def test_a_data_set_without_documents_is_named(monkeypatch):
    monkeypatch.setattr(ir_datasets, "load", lambda name: type("Bare", (), {"has_docs": lambda self: False})())
    with pytest.raises(UsageError, match="has no docs"):
        next(read_documents("irds:bare"))
