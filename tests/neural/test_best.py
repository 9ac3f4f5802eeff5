"""After `perikope encode`, a search that names no model uses `hybrid`."""

import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.browse.models import parse_model  # noqa: E402
from perikope.neural import models  # noqa: E402
from perikope.neural.stores.making import EncodeOptions, encode_index  # noqa: E402
from tests.neural.support import tiny_encoder  # noqa: E402
from tests.support.collections import index_of, plain_document  # noqa: E402

DOCUMENTS = [
    plain_document("d1", "Pump", "A magnet drives the rotor of the pump.", "The seal keeps the fluid inside.", "Rotor, rotor!"),
    plain_document("d2", "Valve", "The valve opens.", "A magnet closes the valve when the pump stops."),
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    tiny_encoder().save(folder)
    return str(folder)


@pytest.fixture
def index(encoder):
    made = index_of(DOCUMENTS)
    encode_index(made.snapshot, EncodeOptions(encoder=encoder))
    return made


def test_encode_makes_hybrid_the_default(index):
    results = index.search("magnet rotor")
    assert (results.model, results.notes) == ("hybrid", ())
    assert results.names() == index.search("magnet rotor", recipe="hybrid").names() != []


def test_token_vectors_go_before_pooled_vectors(index, encoder):
    encode_index(index.snapshot, EncodeOptions(encoder=encoder, pooled=True))
    assert index.search("magnet rotor").model == "hybrid"
    shutil.rmtree(index.folder / "neural" / "colbert")
    assert index.search("magnet rotor").model == 'hybrid(store="dense")'


@pytest.mark.parametrize("pooled", [False, True])
def test_hybrid_is_the_weighted_sum_in_standard_deviations(index, encoder, pooled):
    store, by_vectors = ("dense", "vectors") if pooled else ("colbert", "colbert")
    encode_index(index.snapshot, EncodeOptions(encoder=encoder, pooled=pooled))
    matches = index.search("magnet rotor", model="bm25").matches

    def z(model):
        values = parse_model(model).score(matches).values
        return (values - values.mean()) / values.std()

    expected = 0.3 * z("coverage") + 0.7 * z(by_vectors)
    score = parse_model(f"hybrid(store={store},weight=0.7)").score(matches)
    assert score.values == pytest.approx(expected, abs=1e-6)
    assert score.explain(0).value == pytest.approx(expected[0], abs=1e-6)


def test_without_torch_words_rank_and_a_note_says_what_to_install(index, monkeypatch):
    monkeypatch.setattr(models, "_is_installed", lambda package: package != "torch")
    results = index.search("magnet rotor")
    assert results.model == "coverage"
    assert len(results.notes) == 1
    assert "torch" in results.notes[0]
    assert "neural" in results.notes[0]


def test_a_store_that_lost_its_encoder_is_noted(index):
    (encoder,) = (index.folder / "neural" / "colbert").glob("encoder-*")
    shutil.rmtree(encoder)
    results = index.search("magnet rotor")
    assert results.model == "coverage"
    assert ["perikope encode" in note for note in results.notes] == [True]


def test_new_documents_without_vectors_are_noted_with_the_command(index):
    index.add(plain_document("d3", "Rotor", "Cold water."))
    index.commit()
    results = index.search("magnet rotor")
    assert results.model == "coverage"
    assert ["perikope encode" in note and "--name colbert" in note for note in results.notes] == [True]
