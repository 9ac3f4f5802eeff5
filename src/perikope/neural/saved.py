"""Save and load a trained ranker as a folder. The files `context.*` exist only if the ranker has graph attention.

model.safetensors, config.json, tokenizer …, perikope-encoder.json     the encoder (`Encoder.save`)
context.json, context.safetensors                                      graph attention, and α of late fusion
ranker.json                                                            whether heading paths are prepended to passages
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from perikope.core.errors import InputError
from perikope.core.files import replacing
from perikope.core.reading import read_saved
from perikope.neural.encoder import Encoder, keeping_random_state, save_weights
from perikope.neural.hgat import HGAT, LateFusion

CONTEXT_SETTINGS, CONTEXT_WEIGHTS, RANKER = "context.json", "context.safetensors", "ranker.json"


@dataclass(frozen=True)
class SavedRanker:
    """A ranker as it is saved: an encoder and, if passages are encoded in context, graph attention."""

    encoder: Encoder
    context: HGAT | None = None
    """Graph attention; None if passages are encoded alone."""
    fusion: LateFusion | None = None
    """Late fusion of the scores of the passage alone and of its context; None if the ranker has no late fusion."""
    heading_path: bool = True
    """Whether the heading path is prepended to the text of a passage before it is encoded."""


def save_ranker(folder: Path, ranker: SavedRanker) -> None:
    """Write a ranker to a folder, from which `load_ranker` can load it; files of an earlier ranker are replaced."""
    ranker.encoder.save(folder)
    if ranker.context is not None:
        weights = {f"context.{name}": value for name, value in ranker.context.state_dict().items()}
        if ranker.fusion is not None:
            weights |= {f"fusion.{name}": value for name, value in ranker.fusion.state_dict().items()}
        save_weights({name: value.detach().float().cpu().contiguous() for name, value in weights.items()}, folder / CONTEXT_WEIGHTS)
        content = {"settings": ranker.context.settings, "late_fusion": ranker.fusion is not None}
        with replacing(folder / CONTEXT_SETTINGS) as file:
            file.write(json.dumps(content, indent=1))
    else:
        for name in (CONTEXT_SETTINGS, CONTEXT_WEIGHTS):
            (folder / name).unlink(missing_ok=True)
    with replacing(folder / RANKER) as file:
        file.write(json.dumps({"heading_path": ranker.heading_path}))


def load_ranker(folder: Path, **options: Any) -> SavedRanker:
    """Load a ranker from a folder that `save_ranker` wrote.

    `folder` may also be the folder or the name of an encoder: the ranker then has no context. `options` are the other
    arguments of `Encoder.load`.
    """
    encoder = Encoder.load(str(folder), **options)
    context, fusion = load_context(folder)
    path = folder / RANKER
    written = _read(path) if path.is_file() else {}
    heading_path = written.get("heading_path", True)
    for module in (context, fusion):
        if module is not None:
            module.to(encoder.device).eval()
    return SavedRanker(encoder, context, fusion, bool(heading_path))


def load_context(folder: Path) -> tuple[HGAT | None, LateFusion | None]:
    """Load the graph attention and the late fusion of the ranker saved in a folder.

    Both are None for a ranker without context. The second is None for a ranker without late fusion.
    """
    if not (folder / CONTEXT_SETTINGS).is_file():
        return None, None
    content = _read(folder / CONTEXT_SETTINGS)
    try:
        weights = load_file(folder / CONTEXT_WEIGHTS)
        with keeping_random_state():
            context = HGAT(**content["settings"])
            fusion = LateFusion() if content["late_fusion"] else None
        context.load_state_dict({name.removeprefix("context."): value for name, value in weights.items() if name.startswith("context.")})
        if fusion is not None:
            fusion.load_state_dict({"alpha": weights["fusion.alpha"]})
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError):
        raise InputError(f"does not fit {CONTEXT_SETTINGS}, or is damaged: train the ranker again", path=folder / CONTEXT_WEIGHTS) from None
    return context, fusion


def _read(path: Path) -> dict[str, Any]:
    """The content of a JSON file; raises `InputError` if it is not a JSON object."""
    try:
        content = read_saved(path)
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict):
        raise InputError("is not a settings file, or is damaged: train the ranker again", path=path)
    return content
