"""Folders of Sentence Transformers as encoders, with the pooling that they state."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import perikope as pk  # noqa: E402
from perikope.core.errors import InputError, UsageError  # noqa: E402
from perikope.neural.encoder import Encoder  # noqa: E402
from perikope.neural.models import encoder_of, open_store  # noqa: E402
from perikope.neural.pooled_vectors import pooled  # noqa: E402
from perikope.neural.sentence_folders import POOLINGS, sentence_folder  # noqa: E402
from perikope.neural.stores.making import EncodeOptions, encode_index  # noqa: E402
from tests.neural.support import tiny_transformer  # noqa: E402

TEXTS = ["the magnet drives the pump", "a valve opens", "the cold water in a warm pump stops the rotor, when a seal closes"]
MODULE = "sentence_transformers.models."


def folder_with(folder, pooling, *, inner="", more=()):
    """A folder as Sentence Transformers saves it; `pooling` is the content of the settings of pooling."""
    for part in tiny_transformer():
        part.save_pretrained(folder / inner)
    steps = [(f"{MODULE}Transformer", inner), (f"{MODULE}Pooling", "1_Pooling"), *((f"{MODULE}{name}", f"9_{name}") for name in more)]
    modules = [{"idx": number, "name": str(number), "path": path, "type": kind} for number, (kind, path) in enumerate(steps)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16, **pooling}))
    return folder


def encoder_in(folder, **options):
    return Encoder.load(str(folder), dimension=0, precision="float32", **options)


def plainly(name, text):
    """Pooling of one text, which has no padding, token by token."""
    transformer, tokenizer = tiny_transformer()
    with torch.inference_mode():
        rows = transformer(**tokenizer([text], return_tensors="pt")).last_hidden_state[0].numpy().astype(np.float64)
    if name == "cls":
        return rows[0]
    if name == "lasttoken":
        return rows[-1]
    if name == "max":
        return np.array([max(column) for column in rows.T])
    if name == "weightedmean":
        return sum((number + 1) * row for number, row in enumerate(rows)) / sum(range(1, len(rows) + 1))
    return sum(rows) / (len(rows) if name == "mean" else len(rows) ** 0.5)


def scaled(vector):
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("name", sorted(POOLINGS))
def test_each_kind_of_pooling_is_what_it_says(tmp_path, name):
    ours = pooled(encoder_in(folder_with(tmp_path, {"pooling_mode": name})), TEXTS)
    for text, vector in zip(TEXTS, ours, strict=True):
        assert vector == pytest.approx(scaled(plainly(name, text)), abs=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", [*sorted(POOLINGS), ["cls", "max"]])
def test_vectors_are_those_of_the_library(tmp_path, name, side):
    library = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    transformer, tokenizer = tiny_transformer()
    tokenizer.padding_side = side
    transformer.save_pretrained(tmp_path / "plain")
    tokenizer.save_pretrained(tmp_path / "plain")
    made = library.SentenceTransformer(modules=[modules.Transformer(str(tmp_path / "plain")), modules.Pooling(16, name)], device="cpu")
    made.save(str(tmp_path / "whole"))
    ours = pooled(encoder_in(tmp_path / "whole"), TEXTS)
    assert ours == pytest.approx(np.asarray(made.encode(TEXTS, normalize_embeddings=True)), abs=1e-5)


def test_settings_of_older_versions_and_a_transformer_in_a_folder_of_its_own(tmp_path):
    old = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
    encoder = encoder_in(folder_with(tmp_path, old, inner="0_Transformer", more=["Normalize"]))
    assert encoder.settings.pooling == "cls+mean"
    assert encoder.pooled_width == 32
    both = np.concatenate([plainly("cls", TEXTS[0]), plainly("mean", TEXTS[0])])
    assert pooled(encoder, TEXTS[:1])[0] == pytest.approx(scaled(both), abs=1e-5)


def test_a_store_keeps_the_pooling_of_its_encoder(tmp_path):
    with pk.Index.create(tmp_path / "i") as index:
        index.add({"id": "d", "passages": TEXTS})
    index = pk.Index.open(tmp_path / "i")
    encode_index(index.snapshot, EncodeOptions(encoder=str(folder_with(tmp_path / "e", {"pooling_mode": ["cls", "max"]})), pooled=True))
    store = open_store(index.snapshot, "dense", "pooled")
    assert (store.codebook.dimension, encoder_of(store).settings.pooling) == (32, "cls+max")
    best = index.search(TEXTS[1], k=3, model="vectors(store=dense)")[0]
    assert best.text == TEXTS[1]
    assert best.score == pytest.approx(1, abs=0.01)


def test_a_folder_with_other_steps_has_token_vectors_only(tmp_path):
    encoder = encoder_in(folder_with(tmp_path, {"pooling_mode": "mean"}, more=["Dense"]))
    assert encoder.settings.pooling == ""
    assert len(list(encoder.encode(TEXTS))) == 3
    with pytest.raises(UsageError, match="steps after pooling"):
        pooled(encoder, TEXTS)


def test_damaged_files_are_named(tmp_path):
    assert sentence_folder(tmp_path).pooling == "mean"
    folder_with(tmp_path, {"pooling_mode": "median"})
    with pytest.raises(InputError, match="kind of pooling that is not known"):
        encoder_in(tmp_path)
    for content in ("{", "{}", "[1]", '[{"type": 1}]', "[" * 100_000):
        (tmp_path / "modules.json").write_text(content)
        with pytest.raises(InputError, match="not a list of modules"):
            encoder_in(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps([{"type": f"{MODULE}Transformer", "path": "../elsewhere"}]))
    with pytest.raises(InputError, match="outside"):
        encoder_in(tmp_path)
