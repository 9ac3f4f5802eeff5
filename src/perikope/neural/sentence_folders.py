"""Folders of Sentence Transformers: where the transformer is, and how token vectors become one vector.

The file `modules.json` lists the steps: a transformer, pooling, and perhaps others. Scaling to length 1 changes
nothing, since all vectors are scaled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from perikope.core.errors import InputError
from perikope.neural.encoder_files import read_settings

MODULES = "modules.json"
_AGAIN = "save or download the encoder again"
_MAX_BYTES = 1 << 20
_OLD_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The keys of older versions, in the order in which they are joined, with the names of newer ones."""
BETWEEN = "+"
"""What separates the names of several kinds of pooling, whose vectors are joined."""


@dataclass(frozen=True, slots=True)
class SentenceFolder:
    """What a folder says about its steps."""

    transformer: Path
    """The folder of the transformer and its tokenizer."""
    pooling: str
    """The kinds of pooling, joined by `BETWEEN`; empty if the folder has a step that is not known here."""


def sentence_folder(folder: Path) -> SentenceFolder:
    """Read `modules.json`. A folder without it has a transformer and the mean over tokens."""
    if not (folder / MODULES).is_file():
        return SentenceFolder(folder, "mean")
    transformer, pooling = folder, "mean"
    for module in _modules(folder):
        kind, place = module["type"].rpartition(".")[2], folder / module.get("path", "")
        if not place.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"names a folder outside: {_AGAIN}", path=folder / MODULES)
        if kind == "Transformer":
            transformer = place
        elif kind == "Pooling":
            pooling = _pooling_of(place / "config.json")
        elif kind != "Normalize":
            pooling = ""
            break
    return SentenceFolder(transformer, pooling)


def _modules(folder: Path) -> list[dict[str, str]]:
    path = folder / MODULES
    try:
        with path.open("rb") as file:
            modules = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        modules = None
    if not isinstance(modules, list) or not all(
        isinstance(module, dict) and isinstance(module.get("type"), str) and isinstance(module.get("path", ""), str) for module in modules
    ):
        raise InputError(f"is not a list of modules, or is damaged: {_AGAIN}", path=path)
    return modules


def _pooling_of(path: Path) -> str:
    content = read_settings(path, _AGAIN)
    stated = content.get("pooling_mode") or [name for key, name in _OLD_NAMES.items() if content.get(key)] or "mean"
    names = [stated] if isinstance(stated, str) else stated
    if not isinstance(names, list) or not all(isinstance(name, str) and name in POOLINGS for name in names):
        raise InputError(f"has a kind of pooling that is not known; known are {', '.join(POOLINGS)}", path=path)
    return BETWEEN.join(names)


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    return (states * mask).sum(1) / mask.sum(1).clamp(min=1)


def _weighted_mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean with weight 1 for the first token, 2 for the second, and so on."""
    weights = mask.cumsum(1) * mask
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def _at(states: Tensor, position: Tensor) -> Tensor:
    return states[torch.arange(len(states), device=states.device), position]


POOLINGS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": lambda states, mask: _at(states, mask[..., 0].argmax(1)),
    "lasttoken": lambda states, mask: _at(states, mask.shape[1] - 1 - mask[..., 0].flip(1).argmax(1)),
    "max": lambda states, mask: states.masked_fill(mask == 0, -torch.inf).amax(1),
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda states, mask: (states * mask).sum(1) / mask.sum(1).clamp(min=1).sqrt(),
    "weightedmean": _weighted_mean,
}
"""The kinds of pooling: functions of token vectors (texts, tokens, width) and their mask (texts, tokens, 1)."""


def pool(pooling: str, states: Tensor, mask: Tensor) -> Tensor:
    """One vector per text, (texts, width of all kinds together). `mask` (texts, tokens) is 0 for padding."""
    weights: Any = mask.unsqueeze(-1).to(states.dtype)
    return torch.cat([POOLINGS[name](states, weights) for name in pooling.split(BETWEEN)], dim=-1)
