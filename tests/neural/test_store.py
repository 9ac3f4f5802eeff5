"""Stores of vectors: codes, updates, damage, and ranking."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from click.testing import CliRunner  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from perikope.browse.matches import join  # noqa: E402
from perikope.cli import encode_command  # noqa: E402
from perikope.core.errors import InputError, MissingExtra, PerikopeError, UsageError  # noqa: E402
from perikope.core.locks import take_lock  # noqa: E402
from perikope.fetch import Candidates  # noqa: E402
from perikope.index.vector_stores import store_names  # noqa: E402
from perikope.neural.maxsim import max_sim  # noqa: E402
from perikope.neural.models import add_vectors, colbert_column, vector_column  # noqa: E402
from perikope.neural.stores import store  # noqa: E402
from perikope.neural.stores.check import StoresReport, check_stores  # noqa: E402
from perikope.neural.stores.codebook import CODES, Codebook, nearest  # noqa: E402
from perikope.neural.stores.making import EncodeOptions, encode_index  # noqa: E402
from perikope.neural.stores.store import VectorStore  # noqa: E402
from perikope.neural.stores.update import update_store  # noqa: E402
from perikope.query.terms import parse_query  # noqa: E402
from perikope.search.facade import Index  # noqa: E402
from perikope.search.recipes import load_recipe  # noqa: E402
from tests.neural.support import tiny_encoder  # noqa: E402
from tests.support.collections import index_of, plain_document  # noqa: E402

DOCUMENTS = [
    plain_document("d1", "Pump", "A magnet drives the rotor of the pump.", "The seal keeps the fluid inside.", "Rotor, rotor!"),
    plain_document("d2", "Valve", "The valve opens.", "A magnet closes the valve when the pump stops."),
    plain_document("d3", "Rotor", "Cold water."),
]


def unit(generator, count, dimension=16):
    vectors = generator.normal(size=(count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def index():
    return index_of(DOCUMENTS, [1])


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder()


def make_store(index, encoder, name="tiny", **options):
    return update_store(
        index._snapshot, name, encoder.encode, encoder.dimension, **{"code": "float16", "save_encoder": encoder.save, **options}
    )


def all_of(index, text="magnet rotor"):
    snapshot = index._snapshot
    numbers = np.array([snapshot.find_document(id) for id in ("d3", "d1", "d2") if snapshot.find_document(id) >= 0])
    return join(snapshot, parse_query(text, snapshot.analyzer, ["en"]), Candidates(numbers, np.zeros(numbers.size)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(CODES), st.integers(1, 40))
def test_a_code_gives_back_what_it_took_nearly(seed, code, count):
    generator = np.random.default_rng(seed)
    vectors, lengths = unit(generator, count), generator.uniform(0.01, 40, (count, 1)).astype(np.float32)
    book = Codebook.fit(code, 16, vectors * lengths)
    rows = book.pack(vectors * lengths)
    assert rows.shape == (count, book.bytes_per_vector)
    assert rows.dtype == np.uint8
    unpacked = book.unpack(rows) / lengths
    np.testing.assert_allclose(np.linalg.norm(unpacked, axis=1), 1, atol={"float16": 2e-3, "int8": 0.03, "residual": 2e-3}[code])
    limit = {"float16": 1e-3, "int8": 0.01, "residual": 0.6}[code]
    assert np.abs(unpacked - vectors).max() <= limit
    assert (unpacked * vectors).sum(axis=1).min() > {"float16": 0.999, "int8": 0.99, "residual": 0.6}[code]


def test_a_residual_code_takes_36_bytes_at_128_dimensions_and_is_what_its_definition_says():
    vectors = unit(np.random.default_rng(1), 300, 128)
    book = Codebook.fit("residual", 128, vectors)
    assert book.bytes_per_vector == 36
    packed, unpacked = book.pack(vectors), book.unpack(book.pack(vectors))
    for row, bytes_, back in zip(vectors[:20], packed[:20], unpacked[:20], strict=True):
        centroid = int(np.argmax(book.centroids @ row))
        assert int(bytes_[0]) + 256 * int(bytes_[1]) == centroid
        plain = []
        for i, value in enumerate(row - book.centroids[centroid]):
            level = int(np.argmin(np.abs(book.levels - value)))
            assert int(bytes_[4 + i // 4]) >> 2 * (i % 4) & 3 == level
            plain.append(book.centroids[centroid][i] + book.levels[level])
        np.testing.assert_allclose(back, np.array(plain) / np.linalg.norm(plain), atol=5e-4)


def test_more_like_vectors_are_coded_better_than_one_centroid_would():
    generator = np.random.default_rng(2)
    centres = unit(generator, 4, 32)
    vectors = centres[generator.integers(4, size=500)] + 0.05 * generator.normal(size=(500, 32)).astype(np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    book = Codebook.fit("residual", 32, vectors)
    assert (book.unpack(book.pack(vectors)) * vectors).sum(axis=1).mean() > 0.985


def test_nearest_is_the_largest_product():
    generator = np.random.default_rng(3)
    vectors, centroids = unit(generator, 50), unit(generator, 7)
    assert nearest(vectors, centroids, at_once=8).tolist() == [int(np.argmax([c @ v for c in centroids])) for v in vectors]


def test_a_store_holds_what_the_encoder_makes(index, encoder):
    store = make_store(index, encoder)
    snapshot = index._snapshot
    packed = store.find(snapshot, np.array([snapshot.find_document("d1")]))
    texts = ["Pump. A magnet drives the rotor of the pump.", "Pump. The seal keeps the fluid inside.", "Pump. Rotor, rotor!"]
    wanted = sorted(encoder.encode(texts), key=lambda text: text[0])
    assert packed.passages == 3
    for passage, (_, vectors, position) in enumerate(wanted):
        unpacked, token = packed.vectors(passage)
        np.testing.assert_allclose(unpacked, vectors, atol=1e-3)
        assert token.tolist() == position.tolist()
    assert store.missing(snapshot) == 0
    assert store_names(index.folder) == ["tiny"]


def test_only_new_documents_are_encoded(index, encoder):
    seen = []

    def counting(texts):
        seen.extend(texts)
        return encoder.encode(texts)

    update_store(index._snapshot, "tiny", counting, 8, code="int8", save_encoder=encoder.save)
    assert len(seen) == 6
    seen.clear()
    index.add([plain_document("d4", "Heat", "Warm water.")])
    index.add([plain_document("d3", "Rotor", "Cold water inside.")], replace=True)
    index.commit()
    opened = VectorStore.open(index.folder, "tiny")
    assert opened.missing(index._snapshot) == 2
    with pytest.raises(UsageError, match="perikope encode"):
        opened.find(index._snapshot, np.array([index._snapshot.find_document("d4")]))
    updated = update_store(index._snapshot, "tiny", counting, 8, code="int8")
    assert sorted(seen) == ["Heat. Warm water.", "Rotor. Cold water inside."]
    assert updated.missing(index._snapshot) == 0
    seen.clear()
    index.compact()
    merged = update_store(index._snapshot, "tiny", counting, 8, code="int8")
    assert seen == []
    assert merged.missing(index._snapshot) == 0
    assert merged.documents == 4


def test_how_an_index_was_cut_and_merged_does_not_change_scores(encoder):
    scores = []
    for cuts in ([], [1], [1, 2]):
        index = index_of(DOCUMENTS, cuts)
        store = make_store(index, encoder, code="residual")
        matches = all_of(index)
        column = colbert_column(index._snapshot, matches, store, encoder)
        names = [index._snapshot.document_id(int(matches.number_of_document[d])) for d in matches.document_of_passage]
        scores.append(sorted(zip(names, column.values.tolist(), strict=True)))
    assert scores[0] == scores[1] == scores[2]


def test_colbert_is_max_sim_and_says_which_tokens(index, encoder):
    store = make_store(index, encoder)
    matches = all_of(index, "magnet rotor")
    column = colbert_column(index._snapshot, matches, store, encoder)
    assert column.values.shape == (matches.passages,)
    snapshot = index._snapshot
    for row in range(matches.passages):
        node = column.explain(row)
        assert node.value == column.values[row]
        assert node.recomputed() == pytest.approx(node.value)
        assert [child.label.split(" ~ ")[0] for child in node.children] == ["'[CLS]'", "'magnet'", "'rotor'", "'[SEP]'", "rounding"]
        assert abs(node.children[-1].value) < 1e-5
    first = int(matches.first_passage_of_document[matches.number_of_document.searchsorted(snapshot.find_document("d3"))])
    with torch.inference_mode():
        query, mask = encoder.queries(["magnet rotor"], full=False)
        passage, passage_mask = encoder.passages(["Rotor. Cold water."], full=False)
    products = (query[0][mask[0]] @ passage[0][passage_mask[0]].T).numpy()
    assert column.values[first] == pytest.approx(products.max(axis=1).sum(), abs=5e-3)


def test_elements_have_no_vectors(index, encoder):
    store = make_store(index, encoder)
    snapshot = index._snapshot
    query = parse_query("magnet", snapshot.analyzer, ["en"])
    matches = join(snapshot, query, Candidates(np.array([0]), np.zeros(1)), units="elements")
    with pytest.raises(UsageError, match="passages"):
        colbert_column(snapshot, matches, store, encoder)


def test_vectors_of_ones_own(index):
    snapshot = index._snapshot

    def of_passages(texts):
        return np.array([[len(text), text.count("r"), 1.0] for text in texts])

    store = add_vectors(snapshot, "own", of_passages, lambda text: np.array([0.0, 1.0, 0.5]), 3)
    matches = all_of(index)
    column = vector_column(snapshot, matches, store, np.array([0.0, 1.0, 0.5], np.float32))
    rows = matches.first_passage_of_document
    d1 = matches.number_of_document.searchsorted(snapshot.find_document("d1"))
    assert column.values[rows[d1] + 2] == pytest.approx("Pump. Rotor, rotor!".count("r") + 0.5)
    with pytest.raises(UsageError, match="finite"):
        add_vectors(snapshot, "wrong", lambda texts: np.full((len(texts), 3), np.nan), lambda text: np.zeros(3), 3)
    assert store_names(index.folder) == ["own"]


def test_a_store_is_not_changed_into_another(index, encoder):
    make_store(index, encoder)
    with pytest.raises(UsageError, match="made differently"):
        make_store(index, encoder, code="int8")
    with pytest.raises(UsageError, match="made differently"):
        make_store(index, encoder, heading_path=False)
    with pytest.raises(UsageError, match="there are: tiny"):
        VectorStore.open(index.folder, "other")


@pytest.mark.parametrize("harm", ["manifest", "vectors", "counts", "documents", "version", "centroids", "rows", "keys"])
def test_a_damaged_store_is_refused(index, encoder, harm):
    store = make_store(index, encoder, code="residual")
    folder = store.folder
    inside = next(folder.glob("batch-*"))
    if harm == "manifest":
        (folder / "store.json").write_text("{")
    elif harm == "version":
        content = json.loads((folder / "store.json").read_text())
        (folder / "store.json").write_text(json.dumps({**content, "version": 99}))
    elif harm == "centroids":
        np.save(next(folder.glob("codebooks-*")) / "vectors-centroids.npy", np.zeros((2, 3), np.float32))
    elif harm in ("rows", "keys"):
        path = next(folder.glob(f"locations-*/{harm}.npy"))
        values = np.load(path)
        np.save(path, values + 7 if harm == "rows" else values[1:])
    elif harm == "vectors":
        data = (inside / "vectors.npy").read_bytes()
        (inside / "vectors.npy").write_bytes(data[: len(data) // 2])
    else:
        values = np.load(inside / f"{harm}.npy")
        values[-1] += 1
        np.save(inside / f"{harm}.npy", values)
    with pytest.raises(InputError, match="again"):
        VectorStore(folder)


@pytest.mark.parametrize("code", ["residual", "float16"])
def test_a_byte_that_is_wrong_is_found(index, encoder, code):
    store = make_store(index, encoder, code=code)
    assert check_stores(index.folder) == StoresReport(len(store_names(index.folder)), (), ())
    path = next(store.folder.glob("batch-*")) / "vectors.npy"
    data = bytearray(path.read_bytes())
    data[-5] ^= 0x40
    path.write_bytes(bytes(data))
    problems = check_stores(index.folder).problems
    assert any("vectors.npy: is damaged" in line for line in problems)
    with pytest.raises(InputError, match="damaged"):
        make_store(index, encoder, code=code)


def test_a_byte_of_what_decides_about_all_vectors_is_found_at_once(index, encoder):
    store = make_store(index, encoder, code="residual")
    path = next(store.folder.glob("codebooks-*")) / "vectors-centroids.npy"
    data = bytearray(path.read_bytes())
    data[-5] ^= 0x01
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged"):
        VectorStore(store.folder)


def test_two_writers_of_one_store_exclude_each_other(index, encoder):
    store = make_store(index, encoder)
    with take_lock(store.folder), pytest.raises(PerikopeError, match="unfinished changes in this process"):
        make_store(index, encoder)
    make_store(index, encoder)


def test_a_centroid_that_is_not_there_is_noticed(index, encoder):
    store = make_store(index, encoder, code="residual")
    store.codebooks["vectors"] = replace(store.codebook, centroids=store.codebook.centroids[:0])
    packed = store.find(index._snapshot, np.array([0]))
    with pytest.raises(InputError, match="damaged"):
        packed.vectors(0)
    with pytest.raises(InputError, match="damaged"):
        max_sim(np.ones((2, 8), np.float32), packed)


def test_a_search_ranks_by_a_store(index, encoder):
    make_store(index, encoder, name="tiny")
    results = index.search("magnet rotor", model='colbert(store="tiny")')
    matches = results.matches
    values = colbert_column(index._snapshot, matches, VectorStore.open(index.folder, "tiny"), encoder).values
    assert results[0].score == pytest.approx(values.max(), abs=0.05)  # queries may be encoded in bfloat16
    assert len(index.search("magnet rotor", model='fuse(models=[bm25,colbert(store="tiny")])')) == len(results)
    with pytest.raises(UsageError, match="perikope encode"):
        index.search("magnet", model='colbert(store="none")')
    assert Index.open(index.folder).search("magnet rotor", model='colbert(store="tiny")')[0].name == results[0].name


def test_where_documents_lie_is_known_without_reading_them(index, encoder, monkeypatch):
    make_store(index, encoder, name="tiny")
    index.add([plain_document("d4", "Heat", "Warm water.")])
    index.commit()
    make_store(index, encoder, name="tiny")
    hashed = []
    monkeypatch.setattr(store, "document_key", lambda snapshot, segment, local, *rest: hashed.append(segment.document_id(local)) or b"")
    opened = VectorStore.open(index.folder, "tiny")
    assert opened.missing(index._snapshot) == 0
    assert hashed == []
    index.add([plain_document("d5", "Seal", "A seal.")])
    index.delete(["d2"])
    index.commit()
    assert VectorStore.open(index.folder, "tiny").missing(index._snapshot) == 1
    assert hashed == ["d5"]


def test_damaged_locations_of_a_segments_documents_are_refused(index, encoder):
    folder = make_store(index, encoder).folder
    for path in folder.glob("locations-*/segment-*.npy"):
        np.save(path, np.load(path) + 50)
    with pytest.raises(InputError, match="locations of a segment's documents"):
        VectorStore(folder).missing(index._snapshot)


def test_documents_by_their_vectors_need_share_no_word(index, encoder, tmp_path):
    from perikope.neural.nearest import nearest_documents

    snapshot = index._snapshot
    add_vectors(snapshot, "own", lambda texts: [[float("water" in text), 1.0] for text in texts], lambda text: np.array([1.0, 0.0]), 2)
    assert not len(index.search("liquid", model="bm25"))
    assert nearest_documents(index, "liquid", "own") == {"d3": 1.0, "d1": 0.0, "d2": 0.0}
    assert nearest_documents(index, "liquid", "own", 1) == {"d3": 1.0}
    results = index.search("liquid", model='vectors(store="own")', candidates=nearest_documents(index, "liquid", "own", 1))
    assert [hit.name for hit in results] == ["d3#@1"]
    make_store(index, encoder)
    assert set(nearest_documents(index, "liquid", "tiny")) == {"d1", "d2", "d3"}
    with pytest.raises(UsageError, match="at least 1"):
        nearest_documents(index, "liquid", "own", 0)


def test_the_nearest_documents_are_looked_into_beside_those_with_words(index):
    snapshot = index._snapshot
    add_vectors(snapshot, "own", lambda texts: [[float("water" in text), 1.0] for text in texts], lambda text: np.array([1.0, 0.0]), 2)
    options = {"model": 'vectors(store="own")', "also_nearest": "own"}
    lexical = index.search("rotor", model="qsf_v_title", documents=1)
    both = index.search("rotor", documents=1, **options)
    ids = [snapshot.document_id(number) for number in both.matches.number_of_document.tolist()]
    assert sorted(ids) == sorted({*(hit.document for hit in lexical), "d3"})
    assert both[0].document == "d3"
    # Documents that were fetched by words keep their scores. The others have the score of their words, or 0.
    score = dict(zip(ids, both.matches.score_of_document.tolist(), strict=True))
    every = index.search("rotor", model="qsf_v_title")
    known = {
        snapshot.document_id(n): s for n, s in zip(every.matches.number_of_document.tolist(), every.matches.score_of_document, strict=True)
    }
    assert score == {id: known.get(id, 0.0) for id in ids}
    assert index.search("rotor", documents=1, filter="id=d1|d2", **options)[0].document != "d3"
    assert index.search("liquid", **options)[0].document == "d3"
    assert index.search("pump* NOT rotor", syntax="boolean", **options)[0].document == "d3"
    assert index.search("rotor", also_nearest="own", model="bm25", documents="all").names() == index.search("rotor", model="bm25").names()
    assert index.explain("liquid", "d3#@1", **options).value == pytest.approx(1.0)
    with pytest.raises(UsageError, match="perikope encode"):
        index.search("rotor", also_nearest="none")


def test_an_encoder_gets_the_words_of_a_boolean_query(index):
    asked = []
    rows = lambda texts: np.ones((len(texts), 2))  # noqa: E731
    add_vectors(index, "own", rows, lambda text: asked.append(text) or np.array([1.0, 0.0]), 2)
    index.search('(rotor OR "magnet in pumps") AND pump* NOT valve', syntax="boolean", model='vectors(store="own")')
    index.search("rotor +pump -valve", syntax="automatic", model='vectors(store="own")')
    index.search("Is it a rotor, NOT a pump?", model='vectors(store="own")')
    assert asked == ["rotor magnet pumps pump", "rotor pump", "Is it a rotor, NOT a pump?"]


def test_encode_and_then_the_recipe_need_nothing_else(index, encoder, tmp_path):
    encoder.save(tmp_path / "tiny")
    with pytest.raises(UsageError, match="perikope encode"):
        index.search("magnet rotor", recipe="hybrid")
    done = CliRunner().invoke(encode_command.command, [str(index.folder), "--encoder", str(tmp_path / "tiny")], catch_exceptions=False)
    assert "3 documents" in done.output
    results = index.search("magnet rotor", recipe="hybrid")
    recipe = load_recipe("hybrid")
    assert results.names() == index.search("magnet rotor", model=recipe.options["model"]).names() != []
    assert index.explain("magnet rotor", results[0].name, recipe="hybrid").value == results[0].score
    for other in recipe.models.values():
        assert len(index.search("magnet rotor", model=other)) == len(results)


def test_without_torch_one_line_says_what_to_install(index, encoder, monkeypatch):
    make_store(index, encoder, name="tiny")
    for name in ("perikope.neural.encoder", "perikope.neural.context_vectors"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"this needs torch, which is not installed: pip install '.*\[neural\]'"):
        index.search("magnet rotor", model='colbert(store="tiny")')


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_process_ranks_as_its_parent_does(index, encoder):
    make_store(index, encoder, name="tiny")
    code = """
import multiprocessing, sys, torch
from perikope.search.facade import Index
torch.set_num_threads(2)
def best(_):
    found = index.search("magnet rotor", model='colbert(store="tiny")').names()
    torch.ones(4000, 400).exp().sum()  # large enough for several threads
    return found
index = Index.open(sys.argv[1])
own = best(0)
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.map_async(best, [0]).get(60) == [own] != [[]]
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(index.folder)], check=True, timeout=120)


def test_colbert_says_whether_the_best_token_is_in_a_title(index, encoder):
    make_store(index, encoder, name="tiny")
    results = index.search("rotor water", model='colbert(store="tiny")', k=100)
    (number,) = [number for number, hit in enumerate(results) if hit.name == "d3#@1"]  # encoded as `Rotor. Cold water.`
    origins = {child.label: child.origins for child in results.explain(number).children}
    assert origins["'rotor' ~ 'rotor'"] == (("titles", 1.0),)
    assert origins["'water' ~ 'water'"] == (("passage", 1.0),)
    reasons = results.reasons(number)
    assert sum(part.value for part in reasons.parts) == pytest.approx(results[number].score)


def test_with_refine_the_rest_is_ranked_below_and_says_so(index, encoder):
    make_store(index, encoder, name="tiny", code="residual")
    exact = dict(index.search("magnet rotor", model='colbert(store="tiny")', k=100).names())
    results = index.search("magnet rotor", model='colbert(store="tiny",refine=2)', k=100)
    explanations = [results.explain(number) for number in range(len(results))]
    assert [node.value for node in explanations] == [score for _, score in results.names()]
    by_vectors = ["by centroids" not in node.label for node in explanations]
    assert by_vectors == sorted(by_vectors, reverse=True)
    assert 2 <= sum(by_vectors) < len(results)
    for (name, score), compared in zip(results.names(), by_vectors, strict=True):
        assert not compared or score == pytest.approx(exact[name], abs=1e-6)


def test_who_may_read_the_index_may_read_the_encoder(index, encoder):
    store = make_store(index, encoder)
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.encoder.iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]


def test_a_store_remembers_what_computed_its_vectors(index, encoder, tmp_path):
    pytest.importorskip("onnxscript")
    encoder.save(tmp_path / "tiny")
    made_by = EncodeOptions(name="kept", encoder=str(tmp_path / "tiny"))
    assert encode_index(index.snapshot, made_by).facts["runtime"] == "torch"
    with pytest.raises(UsageError, match="was made differently"):
        encode_index(index.snapshot, replace(made_by, runtime="onnx"))


@pytest.mark.parametrize("code", CODES)
def test_a_store_of_an_empty_index_is_fitted_when_there_is_something(encoder, code):
    index = index_of([], [])
    make_store(index, encoder, code=code)
    index.add(DOCUMENTS)
    index.commit()
    make_store(index, encoder, code=code)
    other = index_of(DOCUMENTS, [1])
    make_store(other, encoder, code=code)
    options = {"model": 'colbert(store="tiny")', "k": 100}
    ranking, wanted = (searched.search("magnet rotor", **options).names() for searched in (index, other))
    assert [name for name, _ in ranking] == [name for name, _ in wanted]
    assert [score for _, score in ranking] == pytest.approx([score for _, score in wanted], abs=1e-6)
    assert ranking[0][1] > 0.1
    assert check_stores(index.folder) == StoresReport(1, (), ())


def test_a_store_without_its_encoder_is_not_given_another(index, encoder, tmp_path):
    encoder.save(tmp_path / "tiny")
    options = EncodeOptions(encoder=str(tmp_path / "tiny"), name="tiny")
    shutil.rmtree(encode_index(index._snapshot, options).encoder)
    for again in (options, EncodeOptions(name="tiny")):
        with pytest.raises(UsageError, match="has lost its encoder"):
            encode_index(index._snapshot, again)


def test_bytes_that_are_no_text_can_be_asked_for(index, encoder):
    make_store(index, encoder)
    results = index.search("rotor \udcff", model='colbert(store="tiny")')
    assert results.names() == index.search("rotor ?", model='colbert(store="tiny")').names()
