"""Changing an index from Python: nothing is lost without a word."""

import datetime
import gc
import subprocess
import sys
import warnings

import pytest

from perikope.core.errors import InputError, UncommittedWarning, UsageError
from perikope.index import commit
from perikope.index.check import check
from perikope.search.facade import Index
from tests.support.collections import plain_document

PUMP = {"id": "d1", "title": "Pumps", "passages": ["A magnet drives the rotor."]}


def found(folder, query="rotor"):
    return sorted(hit.document for hit in Index.open(folder).search(query))


def test_a_with_block_commits_and_closes(tmp_path):
    with Index.create(tmp_path / "index") as index:
        index.add(plain_document("d1", "", "rotor"))
    assert found(tmp_path / "index") == ["d1"]
    assert repr(index) == f"Index('{tmp_path / 'index'}', closed)"
    for use in (lambda: index.search("rotor"), lambda: index.add(PUMP), lambda: len(index), index.refresh, index.__enter__):
        with pytest.raises(UsageError, match=r"was closed; open it again with Index\.open\('.*index'\)"):
            use()


def test_a_with_block_on_a_reading_index_closes_it(tmp_path):
    with Index.create(tmp_path / "index") as index:
        index.add(plain_document("d1", "", "rotor"))
    with Index.open(tmp_path / "index") as index:
        results = index.search("rotor")
    with pytest.raises(UsageError, match="was closed"):
        index.search("rotor")
    index.close()
    assert [hit.text for hit in results] == ["rotor"], "results keep what they need"


def test_a_with_block_that_fails_rolls_back_and_says_so(tmp_path):
    def stopped():
        with Index.create(tmp_path / "index") as index:
            index.add([plain_document("d1", "", "rotor"), plain_document("d2", "", "rotor")])
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError) as raised:
        stopped()
    assert raised.value.__notes__ == [f"The index {tmp_path / 'index'} was rolled back to its last commit (2 documents added)."]
    assert found(tmp_path / "index") == []
    with Index.open(tmp_path / "index") as index:
        index.add(plain_document("d3", "", "rotor"))
    assert found(tmp_path / "index") == ["d3"]


def test_a_with_block_that_fails_while_it_only_reads_says_nothing(tmp_path):
    with pytest.raises(RuntimeError) as raised, Index.create(tmp_path / "index"):
        raise RuntimeError("stop")
    assert not hasattr(raised.value, "__notes__")


def test_a_forgotten_commit_is_a_warning(tmp_path):
    def forget():
        Index.create(tmp_path / "index").add([plain_document("d1", "", "rotor"), plain_document("d2", "", "rotor")])
        gc.collect()

    with pytest.warns(ResourceWarning, match=r"not committed and are lost \(2 documents added\): call commit\(\)"):
        forget()
    index = Index.open(tmp_path / "index")
    index.add(PUMP)
    with pytest.warns(UncommittedWarning):
        index.close()


def test_a_script_that_forgets_to_commit_is_told(tmp_path):
    """Python hides resource warnings by default, but not this one; also at the end of the program."""
    script = f"import perikope as pk\nindex = pk.Index.create({str(tmp_path / 'index')!r})\nindex.add({PUMP!r})\n"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
    assert "UncommittedWarning: changes to " in told
    assert "(1 document added)" in told
    silenced = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True).stderr
    assert silenced == ""


@pytest.mark.parametrize("end", [Index.commit, Index.rollback])
def test_nothing_is_said_about_changes_that_were_ended(tmp_path, end):
    index = Index.create(tmp_path / "index")
    index.add(PUMP)
    end(index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del index
        gc.collect()


def broken():
    yield plain_document("d3", "", "rotor")
    raise OSError("the disk is gone")


REFUSED = {
    "given twice": [plain_document("d3", "", "rotor"), plain_document("d3", "", "rotor")],
    "added before": [plain_document("d3", "", "rotor"), plain_document("d2", "", "rotor")],
    "in the index": [plain_document("d3", "", "rotor"), plain_document("d1", "", "rotor")],
    "wrong type": [plain_document("d3", "", "rotor"), 7],
    "wrong key": [plain_document("d3", "", "rotor"), {"id": "d4", "text": "rotor"}],
    "wrong value": [plain_document("d3", "", "rotor"), {"id": "d4", "passages": ["rotor"], "metadata": {"by": {1, 2}}}],
    "no text": [plain_document("d3", "", "rotor"), {"id": "d4"}],
    "broken reader": None,
}


@pytest.mark.parametrize("waiting", [1, 1 << 22], ids=["own segment", "in memory"])
@pytest.mark.parametrize("why", REFUSED)
def test_after_a_refused_document_the_next_one_is_added(tmp_path, monkeypatch, why, waiting):
    monkeypatch.setattr(commit, "WAITING_CHARACTERS", waiting)
    index = Index.create(tmp_path / "index")
    index.add(plain_document("d1", "", "rotor"))
    index.commit()
    index.add(plain_document("d2", "", "rotor"))
    with pytest.raises((InputError, UsageError, OSError)):
        index.add(REFUSED[why] or broken(), duplicates="error")
    index.add(plain_document("d3", "", "the rotor again"))
    index.commit()
    assert [hit.text for hit in index.search("rotor", model="bm25")] == ["rotor", "rotor", "the rotor again"]
    assert check(tmp_path / "index").unknown_files == ()


@pytest.mark.parametrize("waiting", [1, 1 << 22], ids=["own segment", "in memory"])
def test_a_replacement_that_fails_leaves_the_old_document(tmp_path, monkeypatch, waiting):
    monkeypatch.setattr(commit, "WAITING_CHARACTERS", waiting)
    index = Index.create(tmp_path / "index")
    index.add([plain_document("d1", "", "rotor"), plain_document("d2", "", "rotor")])
    index.commit()
    index.delete("d2")
    with pytest.raises(UsageError):
        index.add([plain_document("d1", "", "seal"), plain_document("d2", "", "seal"), None], replace=True)
    index.commit()
    assert [(hit.document, hit.text) for hit in index.search("rotor seal")] == [("d1", "rotor")]


def test_a_long_addition_among_short_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(commit, "WAITING_CHARACTERS", 20)
    index = Index.create(tmp_path / "index")
    for count in (1, 9, 1, 9):
        index.add([plain_document(f"{count}-{index._write().changes}-{i}", "", f"rotor {i}") for i in range(count)])
    index.commit()
    assert len(index) == len(found(tmp_path / "index", "rotor")) + 10 == 20


def test_dictionaries_are_documents(tmp_path):
    nested = {
        "id": "d2",
        "language": "fr",
        "metadata": {"date": datetime.date(2013, 4, 1), "codes": ("a", "b")},
        "sections": [{"title": "Rotor", "passages": ("Le rotor.", {"id": "p2", "text": "La pompe."})}],
    }
    with Index.create(tmp_path / "index", language="de") as index:
        index.add(PUMP)
        index.add(iter([nested, plain_document("d3", "", "rotor")]))
        index.add({"_id": "d4", "title": "Pumpen", "text": "Der Rotor dreht."})
    index = Index.open(tmp_path / "index")
    assert index.languages == ["de", "en", "fr"]
    assert [hit.document for hit in index.search("dreht", model="bm25")] == ["d4"]
    hit = next(hit for hit in index.search("pompe", language="fr") if hit.passage == "p2")
    assert (hit.path, hit.metadata) == (("Rotor",), {"date": "2013-04-01", "codes": ["a", "b"]})


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"id": "d1", "text": "x"}, "^document 'd1': a document has no key 'text'; use \"passages\""),
        ([{"id": "d1", "passages": ["x", {"tag": "p"}]}], r"^document 'd1': passages\[1\]: the passage has no \"text\""),
        ({"passages": ["x"]}, "^a document without an id: the document has no id"),
        ({"id": "d1", "passages": [{1, 2}]}, "^document 'd1' cannot be expressed in JSON"),
        ({"_id": "d1", "text": " "}, "^document 'd1' is empty"),
        ({"id": "d1", "passages": ["?"]}, "^document 'd1' is empty"),
        ("docs/", r"^cannot add 'docs/', which is no document; read files with perikope\.read"),
        (["docs/a.md"], "^cannot add a value of type str to an index; add documents from perikope.read"),
        (7, "^cannot add a value of type int"),
    ],
)
def test_what_is_no_document_is_named(tmp_path, given, complaint):
    with Index.create(tmp_path / "index") as index, pytest.raises((InputError, UsageError), match=complaint):
        index.add(given)


def test_a_document_is_printed_in_one_line():
    assert repr(plain_document("d1", "Pumps", "A rotor.", "A seal.")) == "Document('d1', 'Pumps', 2 passages, 22 characters)"
