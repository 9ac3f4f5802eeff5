"""A tiny cross-encoder with random weights as a model."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import BertConfig, BertForSequenceClassification  # noqa: E402

import perikope as pk  # noqa: E402
from perikope.browse.models import parse_model  # noqa: E402
from perikope.core.access import files_forbidden  # noqa: E402
from perikope.core.errors import InputError, UsageError  # noqa: E402
from tests.neural.support import tiny_tokenizer  # noqa: E402

QUERY = "pump with a magnet"


def quoted(folder):
    return json.dumps(str(folder))


def cross_encoder_folder(folder, labels=1, seed=3):
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    configuration = BertConfig(vocab_size=len(tokenizer), num_labels=labels, **shape)
    BertForSequenceClassification(configuration).save_pretrained(folder)
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def cross(tmp_path_factory):
    return cross_encoder_folder(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cross-index") / "i"
    words = ["The magnet drives the pump.", "A seal keeps the fluid inside.", "The valve opens when warm.", "A pump, cold."]
    with pk.Index.create(folder) as made:
        made.add({"id": f"d{number}", "title": "pump", "passages": words[number:] + words[:number]} for number in range(4))
    return pk.Index.open(folder)


def test_the_best_passages_are_ranked_again_and_the_others_follow(index, cross):
    first = index.search(QUERY, k=16)
    again = index.search(QUERY, k=16, model=f"cross_encoder(folder={quoted(cross)},n=5)")
    assert {hit.name for hit in again[:5]} == {hit.name for hit in first[:5]}
    assert [hit.name for hit in again[5:]] == [hit.name for hit in first[5:]]
    assert [hit.score for hit in again] == sorted((hit.score for hit in again), reverse=True)
    everything = index.search(QUERY, k=16, model=f"cross_encoder(folder={quoted(cross)},n=1000)")
    assert len(everything) == len(first)


def test_scores_are_those_of_the_transformer(index, cross):
    model = BertForSequenceClassification.from_pretrained(cross).eval()
    tokenizer = tiny_tokenizer()
    for hit in index.search(QUERY, k=3, model=f"cross_encoder(folder={quoted(cross)},n=16,heading_path=false)"):
        with torch.inference_mode():
            expected = float(model(**tokenizer([QUERY], [hit.text], return_tensors="pt")).logits[0, 0])
        assert hit.score == pytest.approx(expected, abs=1e-5)


def test_a_score_is_explained(index, cross):
    results = index.search(QUERY, k=16, model=f"cross_encoder(folder={quoted(cross)},n=5)")
    for number in (0, 15 if len(results) > 15 else len(results) - 1):
        assert results.explain(number).value == pytest.approx(results[number].score)


def test_folders_that_are_none_are_named(index, tmp_path, cross):
    with pytest.raises(UsageError, match="needs the folder"):
        index.search(QUERY, model="cross_encoder")
    with pytest.raises(UsageError, match="no file config"):
        index.search(QUERY, model=f"cross_encoder(folder={quoted(tmp_path)})")
    with pytest.raises(InputError, match="has 3 outputs"):
        index.search(QUERY, model=f"cross_encoder(folder={quoted(cross_encoder_folder(tmp_path / 'three', labels=3))})")
    with files_forbidden(), pytest.raises(UsageError, match="cannot name"):
        index.search(QUERY, model=f"cross_encoder(folder={quoted(cross)})")


def test_it_is_a_model_like_any_other(index, cross):
    model = f"cross_encoder(folder={quoted(cross)},n=5)"
    found = pk.Index.open(index.folder).search(QUERY, k=3, model=model)
    command = [sys.executable, "-m", "perikope", "search", str(index.folder), QUERY, "--model", model, "-k", "3", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    printed = [(hit["document"], hit["passage"]) for hit in map(json.loads, answer.stdout.splitlines())]
    assert printed == [(hit.document, hit.passage) for hit in found]
    fused = index.search(QUERY, k=3, model=f"fuse(models=[bm25,{model}])")
    assert len(fused) == 3
    assert parse_model(model).obstacle(index.snapshot) == ""
    assert "needs the folder" in parse_model("cross_encoder").obstacle(index.snapshot)


def test_scores_are_those_of_the_sentence_transformers_library(index, cross):
    library = pytest.importorskip("sentence_transformers")
    other = library.CrossEncoder(str(cross), device="cpu")
    for hit in index.search(QUERY, k=4, model=f"cross_encoder(folder={quoted(cross)},n=16,heading_path=false)"):
        expected = other.predict([(QUERY, hit.text)], activation_fn=torch.nn.Identity())[0]
        assert hit.score == pytest.approx(float(expected), abs=1e-5)
