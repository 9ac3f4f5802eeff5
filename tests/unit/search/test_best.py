"""A search that names no model uses the best model that the index offers."""

import json

import numpy as np
import pytest

from perikope.core.errors import PerikopeError, UsageError
from perikope.evaluation.experiment.plan import load_plan
from perikope.neural.models import add_vectors, set_query_encoder
from perikope.query.topic import Topic
from perikope.search import batch, steps
from perikope.search.batch import search_topics
from perikope.search.best import best_model
from perikope.search.facade import Index
from perikope.search.options import SearchOptions
from perikope.search.own_default import save_own_default
from tests.cli.test_commands import run_unchanged as run
from tests.support.collections import index_of, plain_document

DOCUMENTS = [
    plain_document("d1", "Pump", "A magnet drives the rotor of the pump.", "The seal keeps the fluid inside.", "Rotor, rotor!"),
    plain_document("d2", "Valve", "The valve opens.", "A magnet closes the valve when the pump stops."),
]
HYBRID = 'hybrid(store="dense")'


@pytest.fixture
def index():
    return index_of(DOCUMENTS)


def vectors_of(texts):
    return np.array([[len(text) % 7, 1.0] for text in texts]) if texts else np.zeros((0, 2))


def query_vector(text):
    return np.array([1.0, 0.5])


def with_vectors(index):
    add_vectors(index, "dense", vectors_of, query_vector, 2)
    return index


def test_without_vectors_and_default_it_is_coverage(index):
    results = index.search("magnet rotor")
    assert results.model == "coverage"
    assert results.names() == index.search("magnet rotor", model="coverage").names() != []
    assert not results.notes


def test_vectors_of_all_documents_make_it_hybrid(index):
    results = with_vectors(index).search("magnet rotor")
    assert results.model == HYBRID
    assert results.names() == index.search("magnet rotor", model=HYBRID).names()
    assert not results.notes


def test_the_default_of_the_index_goes_before_vectors(index):
    save_own_default(with_vectors(index).folder, "coverage(b=0.25)", {})
    results = index.search("magnet rotor")
    assert results.model == "coverage(b=0.25)"
    assert results.names() == index.search("magnet rotor", model="coverage(b=0.25)").names()


def test_a_named_model_goes_before_all(index):
    save_own_default(with_vectors(index).folder, "coverage(b=0.25)", {})
    assert index.search("magnet rotor", model="bm25").model == "bm25"
    assert index.search("magnet rotor", recipe="carmel2013").model == "plm(sigma=2000.0)"


def test_documents_without_vectors_are_noted_and_words_rank(index):
    with_vectors(index).add(plain_document("d3", "Rotor", "Cold water."))
    index.commit()
    results = index.search("magnet rotor")
    assert results.model == "coverage"
    assert len(results.notes) == 1
    assert HYBRID in results.notes[0]
    assert "1 document has no vectors" in results.notes[0]
    assert "add_vectors" in results.notes[0]
    with_vectors(index)
    assert index.search("magnet rotor").model == HYBRID


def test_a_store_without_query_encoder_is_noted(index):
    with_vectors(index)
    opened = Index.open(index.folder)
    results = opened.search("magnet rotor")
    assert results.model == "coverage"
    assert ["set_query_encoder" in note for note in results.notes] == [True]
    set_query_encoder(opened, "dense", query_vector)
    assert opened.search("magnet rotor").model == HYBRID


def test_a_damaged_store_is_noted(index):
    with_vectors(index)
    (index.folder / "neural" / "dense" / "store.json").write_text("no manifest")
    results = index.search("magnet rotor")
    assert results.model == "coverage"
    assert ["damaged" in note for note in results.notes] == [True]


def test_an_own_default_that_cannot_rank_is_passed_over_with_one_note(index):
    save_own_default(index.folder, "fuse(models=[coverage,vectors(store=gone)])", {})
    results = index.search("magnet rotor")
    assert results.model == "coverage"
    assert len(results.notes) == 1
    assert "gone" in results.notes[0]
    assert with_vectors(index).search("magnet rotor").model == HYBRID


def test_a_damaged_default_is_an_error(index):
    save_own_default(index.folder, "coverage", {}).write_text("{}")
    with pytest.raises(PerikopeError, match="table"):
        index.search("magnet rotor")
    assert index.search("magnet rotor", model="bm25")


@pytest.mark.parametrize(
    "options",
    [
        {"elements": True}, {"elements": ("p",)}, {"documents": "all"}, {"syntax": "boolean"}, {"must_match": True},
        {"browse_expand": "bo1"}, {"one_per": "document"}, {"no_overlap": True}, {"group_by_document": "score"}, {"rescore": "coverage"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("vectors", [False, True])
def test_the_default_works_with_every_kind_of_search(index, options, vectors):
    results = (with_vectors(index) if vectors else index).search("magnet", **options)
    assert len(results)
    assert results.model == (HYBRID if vectors and "elements" not in options else "coverage")
    assert index.explain("magnet", results[0], **options).value == pytest.approx(results[0].score)


def test_patents_and_rankings_of_documents_work_with_the_default(index):
    assert index.search(index.patent_query(claims="A magnet and a rotor")).model == "coverage"
    assert index.search("magnet").document_ranking("maxp")


def test_a_batch_finds_the_model_once(index, monkeypatch):
    with_vectors(index)
    calls = []
    for module in (batch, steps):
        monkeypatch.setattr(module, "best_model", lambda *given: calls.append(1) or best_model(*given))
    found = list(index.search_many(["magnet", "rotor", "valve"]))
    assert [results.model for _, results in found] == [HYBRID] * 3
    assert len(calls) == 1


def test_a_batch_says_once_why_words_rank(index):
    with_vectors(index).add(plain_document("d3", "Rotor", "Cold water."))
    index.commit()
    notes = []
    list(search_topics(index, [Topic("1", "magnet"), Topic("2", "rotor")], print, on_note=notes.append))
    assert ["no vectors" in note for note in notes] == [True]
    assert all("no vectors" in results.notes[0] for _, results in index.search_many(["magnet", "rotor"]))


def test_best_can_be_given_and_an_empty_model_cannot(index):
    assert index.search("magnet", model="best").model == "coverage"
    assert SearchOptions.of({"model": "best"}) == SearchOptions()
    with pytest.raises(UsageError, match="model is empty"):
        index.search("magnet", model="")


def test_the_command_names_the_model_in_one_line(index, capsys):
    code, _, err = run(capsys, "search", index.folder, "magnet")
    assert code == 0
    assert err == "perikope: ranked by coverage, the best model of this index; --model selects another one\n"
    assert run(capsys, "search", index.folder, "magnet", "--model", "bm25")[2] == ""


@pytest.mark.parametrize("form", [(), ("--document-ranking", "maxp"), ("--for-model", "50")])
def test_json_names_the_model(index, capsys, form):
    for given, named in (((), "coverage"), (("--model", "bm25(k1=0.5)"), "bm25(k1=0.5)")):
        out = run(capsys, "search", index.folder, "magnet", "--json", *form, *given)[1]
        assert {json.loads(line)["model"] for line in out.splitlines()} == {named}


def test_run_names_the_model_and_writes_it(index, capsys, tmp_path):
    save_own_default(index.folder, "coverage(b=0.25)", {})
    (tmp_path / "topics.tsv").write_text("1\tmagnet\n")
    out = run(capsys, "run", index.folder, tmp_path / "topics.tsv", "--out", tmp_path / "my.run")[1]
    assert "ranked with coverage(" in out
    assert "b=0.25" in out
    assert (tmp_path / "my.run").read_text().split()[5] == "coverage"


def test_experiments_name_their_models(index, tmp_path):
    """Neither vectors nor the default of an index changes an experiment."""
    (tmp_path / "topics.tsv").write_text("1\tmagnet\n")
    (tmp_path / "qrels.txt").write_text("1 0 d1#@1 1\n")
    lines = ['title = "t"', 'measures = ["AP"]', f"[collection]\nindex = {json.dumps(str(index.folder))}"]
    lines += ['[topics]\nfile = "topics.tsv"\njudgements = "qrels.txt"', '[[systems]]\nname = "a"\nmodel = "bm25"']
    (tmp_path / "e.toml").write_text("\n".join(lines) + "\n")
    (system,) = load_plan(str(tmp_path / "e.toml")).systems
    assert system.search_options(10, 10).model == "qsf_v_title"
    (tmp_path / "e.toml").write_text("\n".join(lines).replace('model = "bm25"', 'model = "best"') + "\n")
    with pytest.raises(PerikopeError, match="best"):
        load_plan(str(tmp_path / "e.toml"))
