"""A tiny encoder with random weights, and an experiment with tiny rankers."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: E402
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast  # noqa: E402

from perikope.evaluation.io.runs import write_run  # noqa: E402
from perikope.neural.encoder import Encoder  # noqa: E402
from perikope.neural.encoder_settings import EncoderSettings  # noqa: E402

torch.set_num_threads(1)  # with models of this size, several threads only wait for one another

WORDS = [
    "a",
    "the",
    "of",
    "in",
    "pump",
    "rotor",
    "magnet",
    "seal",
    "valve",
    "fluid",
    "keeps",
    "drives",
    "opens",
    "closes",
    "stops",
    "when",
    "inside",
    "heat",
    "water",
    "cold",
    "warm",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]


def tiny_tokenizer():
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *WORDS, *".,;:!?-", *(f"##{c}" for c in "sx")])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def tiny_transformer(seed: int = 1):
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=192, hidden_dropout_prob=0.1,
    )  # fmt: skip
    return BertModel(config).eval(), tokenizer


def tiny_encoder(dimension: int = 8, seed: int = 1, **settings) -> Encoder:
    transformer, tokenizer = tiny_transformer(seed)
    return Encoder(transformer, tokenizer, dimension, EncoderSettings(**settings)).eval()


SUBJECTS = {"pump": "the pump keeps water", "valve": "a valve opens", "rotor": "the rotor drives a magnet", "seal": "a seal stops fluid"}
EXPERIMENT = """
kind = "neural"
title = "tiny"
measures = ["nDCG@10", "MAP(D)"]
report_on = ["pumps/asked"]
train_on = ["pumps/learned"]
encoder = "{encoder}"

[training]
epochs = 1
batch = 4
frozen_layers = 0
strategy = "same_doc+ranked"
negatives = 2

[context]
heads = 2
layers = 1
residual = true

[collections.pumps]
documents = ["documents.jsonl"]
topics.learned = {{ file = "topics.tsv", judgements = "qrels.txt", sample = 3 }}
topics.asked = {{ file = "topics.tsv", judgements = "qrels.txt" }}

[[systems]]
name = "other"
runs = {{ "pumps/asked" = "other.run" }}

[[systems]]
name = "words"
model = "bm25"

[[systems]]
name = "untrained"
trained = false
dimension = 8

[[systems]]
name = "plain"
dimension = 8
seeds = 2
kept = 0.5
untrained_shares = [0.25]

[[systems]]
name = "context"
dimension = 8
variant = "NO_LB_NS"
context = {{ layers = 2, relations = ["order", "order_i", "structural", "opening"] }}

[[systems]]
name = "folds"
dimension = 8
folds = 2
variant = "BASE"
neighbours_learn = true
training = {{ strategy = "same_doc" }}

[[systems]]
name = "other + plain"
of = ["other", "plain"]

[[systems]]
name = "other + plain, mixed"
of = ["other", "plain, 0.25 untrained"]
"""


def write_experiment(folder):
    """Write the file of an experiment with tiny rankers, and all files that it names; returns its path."""
    documents, topics, qrels, run = [], [], [], []
    for number, (word, text) in enumerate(SUBJECTS.items()):
        passages = [{"id": f"p{i}", "text": f"{text} {extra}"} for i, extra in enumerate(["inside", "when cold", "when warm"])]
        documents.append({"id": word, "title": word, "passages": passages})
        topics.append(f"{number}\t{word} inside")
        qrels.append(f"{number} 0 {word}#p0 1")
        run.append((str(number), [(f"{word}#p1", 2.0), (f"{word}#p0", 1.0)]))
    (folder / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    (folder / "topics.tsv").write_text("\n".join(topics) + "\n")
    (folder / "qrels.txt").write_text("\n".join(qrels) + "\n")
    write_run(folder / "other.run", run)
    tiny_encoder(dimension=0).save(folder / "encoder")
    path = folder / "tiny.toml"
    path.write_text(EXPERIMENT.format(encoder=folder / "encoder"))
    return path
