"""Save and load a trained ranker as a folder. The files `context.*` exist only if the ranker has graph attention.

model.safetensors, config.json, tokenizer …, perikope-encoder.json     the encoder (`Encoder.save`)
context.json, context.safetensors                                      graph attention, and α of late fusion
ranker.json                                                            whether heading paths are prepended to passages,
                                                                       and the hashes of the other files

A ranker that replaces another is first written to a temporary folder completely. If moving its files is interrupted,
the hashes in `ranker.json` do not fit, and the folder is refused.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from perikope.core import files
from perikope.core.array_files import hash_of
from perikope.core.checked_json import CHECKSUM, has_right_checksum, with_checksum
from perikope.core.errors import InputError, UsageError
from perikope.neural.devices import keeping_random_state
from perikope.neural.encoder import Encoder
from perikope.neural.encoder_files import read_settings, read_small
from perikope.neural.encoder_weights import save_weights
from perikope.neural.hgat import HGAT, LateFusion

CONTEXT_SETTINGS, CONTEXT_WEIGHTS, RANKER = "context.json", "context.safetensors", "ranker.json"
_AGAIN = "train the ranker again"


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
    files.make_folder(folder)
    files.remove_temporaries(folder)
    temporary = files.temporary_path(folder / "ranker")
    try:
        _write(temporary, ranker)
        written = sorted(path for path in temporary.iterdir() if path.is_file())
        content = {"heading_path": ranker.heading_path, "files": {path.name: hash_of(path) for path in written}}
        # Only moving is left, which needs no space.
        for path in written:
            files.put_in_place(path, folder / path.name)
        if ranker.context is None:
            for name in (CONTEXT_SETTINGS, CONTEXT_WEIGHTS):
                files.remove(folder / name)
        with files.replacing(folder / RANKER) as file:
            file.write(json.dumps(with_checksum(content)))
    finally:
        with contextlib.suppress(OSError):
            files.remove_temporaries(folder)


def _write(folder: Path, ranker: SavedRanker) -> None:
    """Write the files of a ranker, except `ranker.json`."""
    ranker.encoder.save(folder)
    if ranker.context is not None:
        weights = {f"context.{name}": value for name, value in ranker.context.state_dict().items()}
        if ranker.fusion is not None:
            weights |= {f"fusion.{name}": value for name, value in ranker.fusion.state_dict().items()}
        save_weights({name: value.detach().float().cpu().contiguous() for name, value in weights.items()}, folder / CONTEXT_WEIGHTS)
        content = {"settings": ranker.context.settings, "late_fusion": ranker.fusion is not None}
        with files.replacing(folder / CONTEXT_SETTINGS) as file:
            file.write(json.dumps(content, indent=1))


def load_ranker(folder: Path, **options: Any) -> SavedRanker:
    """Load a ranker from a folder that `save_ranker` wrote.

    `folder` may also be the folder or the name of an encoder: the ranker then has no context. `options` are the other
    arguments of `Encoder.load`.
    """
    heading_path = _check_files(folder)
    encoder = Encoder.load(str(folder), **options)
    context, fusion = load_context(folder)
    for module in (context, fusion):
        if module is not None:
            module.to(encoder.device).eval()
    return SavedRanker(encoder, context, fusion, heading_path)


def load_context(folder: Path) -> tuple[HGAT | None, LateFusion | None]:
    """Load the graph attention and the late fusion of the ranker saved in a folder.

    Both are None for a ranker without context. The second is None for a ranker without late fusion.
    """
    if not (folder / CONTEXT_SETTINGS).is_file():
        return None, None
    content = read_settings(folder / CONTEXT_SETTINGS, _AGAIN)
    try:
        weights = load_file(folder / CONTEXT_WEIGHTS)
        wanted = {name.removeprefix("context."): value for name, value in weights.items() if name.startswith("context.")}
        # Without memory for weights first: the settings may ask for any amount.
        with torch.device("meta"):
            shapes = {name: value.shape for name, value in HGAT(**content["settings"]).state_dict().items()}
        if shapes != {name: value.shape for name, value in wanted.items()}:
            raise ValueError("shapes")
        with keeping_random_state():
            context = HGAT(**content["settings"])
            fusion = LateFusion() if content["late_fusion"] else None
        context.load_state_dict(wanted)
        if fusion is not None:
            fusion.load_state_dict({"alpha": weights["fusion.alpha"]})
    except (OSError, AttributeError, KeyError, TypeError, ValueError, ArithmeticError, RuntimeError, SafetensorError, UsageError):
        raise InputError(f"does not fit {CONTEXT_SETTINGS}, or is damaged: {_AGAIN}", path=folder / CONTEXT_WEIGHTS) from None
    return context, fusion


def _check_files(folder: Path) -> bool:
    """Compare the files of a saved ranker with their hashes; returns whether heading paths are prepended to passages.

    A folder without `ranker.json`, such as that of an encoder, has no hashes. Neither have rankers of earlier versions.
    """
    path = folder / RANKER
    if not path.is_file():
        return True
    content = read_small(path, _AGAIN)
    heading_path, hashes = content.get("heading_path", True), content.get("files", {})
    if CHECKSUM in content or "files" in content:
        if not has_right_checksum(content) or not isinstance(hashes, dict):
            raise InputError(f"is damaged: {_AGAIN}", path=path)
        wrong = [name for name, known in hashes.items() if not (folder / name).is_file() or hash_of(folder / name) != known]
        if wrong or (CONTEXT_SETTINGS not in hashes and (folder / CONTEXT_SETTINGS).is_file()):
            raise InputError(f"is damaged, or was not saved completely ({', '.join(wrong[:3])[:100]}): {_AGAIN}", path=folder)
    if not isinstance(heading_path, bool):
        raise InputError(f"is damaged: {_AGAIN}", path=path)
    return heading_path
