"""MaxSim of queries and passages as tensors, as training computes it; `maxsim` computes it for stored vectors."""

from __future__ import annotations

from perikope.core.errors import MissingExtra

try:
    import torch
    from torch import Tensor
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None


def similarity(queries: Tensor, query_mask: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
    """MaxSim of every query with every passage, (queries, passages): `Σ_i max_j E_q_i · E_p_j`.

    `queries` is (queries, query tokens, dimension) with `query_mask` (queries, query tokens); `passages` is (passages,
    passage tokens, dimension) with `passage_mask` (passages, passage tokens). Tokens whose mask is false are ignored. A
    passage without other tokens has 0.
    """
    products = torch.einsum("qid,pjd->qpij", queries, passages)
    return _max_sum(products, query_mask[:, None, :], passage_mask[None, :, None, :])


def _max_sum(products: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
    """Sum over query tokens of the maximum over passage tokens, (queries, passages).

    `products` is (queries, passages, query tokens, passage tokens). `query_mask` (queries, 1, query tokens) and
    `passage_mask` (1, passages, 1, passage tokens) are true for tokens that are used.
    """
    lowest = torch.finfo(products.dtype).min
    best = products.masked_fill(~passage_mask, lowest).amax(-1)
    counted = query_mask & passage_mask.any(-1)
    return (best.masked_fill(~counted, 0.0)).sum(-1)
