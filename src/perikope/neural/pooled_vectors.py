"""Encode text as one vector: by default the mean over its tokens, scaled to length 1.

`E_p = normalise(mean_j encoder(p)_j)` over all tokens of p, including punctuation and the tokens that the tokenizer
adds at both ends. This is what sentence-transformers computes for all-MiniLM-L6-v2. The folder of another encoder may
state another kind of pooling, such as the vector of the first token; see `sentence_folders`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.nn import functional

from perikope.core.arrays import Floats32, Integers
from perikope.core.errors import UsageError
from perikope.neural.encoder import Encoder
from perikope.neural.sentence_folders import pool


@torch.inference_mode()
def pooled(encoder: Encoder, texts: Sequence[str], *, query: bool = False) -> Floats32:
    """Encode each text as one vector: (texts, `pooled_width`). The encoder's projection is not used.

    Texts are cut to `query_tokens` of the encoder's settings if `query` is true, else to `passage_tokens`.
    """
    limit = encoder.settings.query_tokens if query else encoder.settings.passage_tokens
    if not encoder.settings.pooling:
        raise UsageError(
            "this encoder has steps after pooling that are not known here: encode token vectors (without --pooled), "
            "or add its vectors with perikope.neural.models.add_vectors"
        )
    vectors = np.zeros((len(texts), encoder.pooled_width), np.float32)
    ids = encoder.tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"] if len(texts) else []
    # Texts of similar length are encoded together, so a batch needs little padding.
    order = sorted(range(len(texts)), key=lambda row: -len(ids[row]))
    start = 0
    while start < len(order):
        rows = order[start : start + max(encoder.batch_tokens // max(len(ids[order[start]]), 1), 1)]
        start += len(rows)
        batch = encoder.tokenizer.pad({"input_ids": [ids[row] for row in rows]}, return_tensors="pt")
        tokens, mask = (batch[name].to(encoder.device) for name in ("input_ids", "attention_mask"))
        states = encoder.transformer(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
        vectors[rows] = functional.normalize(pool(encoder.settings.pooling, states, mask), dim=-1).cpu().numpy()
    return vectors


def encode_pooled(encoder: Encoder, texts: Sequence[str]) -> Iterator[tuple[int, Floats32, Integers]]:
    """Yield for each text its number, its vector (1, `pooled_width`), and its token position: 0, as (1,)."""
    zero: Integers = np.zeros(1, np.int64)
    for number, row in enumerate(pooled(encoder, texts)):
        yield number, row[None, :], zero
