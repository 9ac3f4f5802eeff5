"""Text as one vector: the mean over its tokens, of length 1, as sentence-transformers has it for all-MiniLM-L6-v2.

`E_p = normalise(mean_j encoder(p)_j)` over all tokens of p, those at its ends and punctuation included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.nn import functional

from perikope.core.arrays import Floats32, Integers
from perikope.neural.encoder import Encoder

_AT_ONCE = 1 << 14
"""Tokens that are encoded at a time, padding included."""


@torch.inference_mode()
def pooled(encoder: Encoder, texts: Sequence[str], *, query: bool = False) -> Floats32:
    """A row a text; passages and queries are cut as the encoder's settings say. The projection is for tokens, and not used."""
    limit = encoder.settings.query_tokens if query else encoder.settings.passage_tokens
    found = np.zeros((len(texts), int(encoder.transformer.config.hidden_size)), np.float32)  # type: ignore[union-attr, arg-type]
    # Characters tell the order well enough: texts of like length are padded little.
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    start = 0
    while start < len(order):
        longest = min(limit, 2 + len(texts[order[start]]))
        rows = order[start : start + max(_AT_ONCE // longest, 1)]
        start += len(rows)
        batch = encoder.tokenizer([texts[row] for row in rows], truncation=True, max_length=limit, padding=True, return_tensors="pt")
        tokens, mask = (batch[name].to(encoder.device) for name in ("input_ids", "attention_mask"))
        states = encoder.transformer(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
        weights = mask.unsqueeze(-1).to(states.dtype)
        means = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        found[rows] = functional.normalize(means, dim=-1).cpu().numpy()
    return found


def encode_pooled(encoder: Encoder, texts: Sequence[str]) -> Iterator[tuple[int, Floats32, Integers]]:
    """As `Encoder.encode`, with one vector a text."""
    zero: Integers = np.zeros(1, np.int64)
    for number, row in enumerate(pooled(encoder, texts)):
        yield number, row[None, :], zero
