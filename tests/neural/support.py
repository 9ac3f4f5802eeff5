"""A tiny encoder with random weights, made on the spot."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: E402
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast  # noqa: E402

from perikope.neural.encoder import Encoder, EncoderSettings  # noqa: E402

torch.set_num_threads(1)  # more only wait for one another on models of this size

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
