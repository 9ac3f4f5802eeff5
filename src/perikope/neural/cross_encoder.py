"""A cross-encoder in a local folder, as a model that ranks the best passages of another model again.

    perikope search idx "pump with a magnetic coupling" --model 'cross_encoder(folder="/models/mine",n=50)'

The folder has a transformer with one output and its tokenizer, as Sentence Transformers saves it. Torch is imported
when the first query is scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Model, Signals, model, parse_model
from perikope.browse.signals import Column, Node, fact
from perikope.core.access import check_access
from perikope.core.arrays import Floats, Integers
from perikope.core.errors import InputError, MissingExtra, UsageError
from perikope.core.files import identity_of
from perikope.core.parameters import Grid, Nested, Range
from perikope.index.reader import Snapshot
from perikope.neural.encoder_files import CONFIGURATION, read_settings
from perikope.neural.models import snapshot_of
from perikope.neural.stores.store import written_passages
from perikope.neural.threads import single_threaded
from perikope.search.options import LEXICAL

__all__ = ["cross_encoder"]

BATCH = 16
"""The number of passages that are compared with a query at a time."""
BELOW = 1.0
"""Distance between the lowest score of the passages that are ranked again and the highest of all others."""
_LONGEST = 512
_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def obstacle_of_folder(snapshot: Snapshot, parameters: Mapping[str, object]) -> str:
    """Why the folder of a model cannot be used; empty if it can. Torch is not imported."""
    try:
        _checked_folder(str(parameters["folder"]))
    except UsageError as error:
        return str(error)
    return ""


def cross_encoder_signals(
    matches: Matches,
    *,
    folder: Annotated[str, Grid(("",)), "Folder of a cross-encoder: a transformer with one output, and its tokenizer."] = "",
    n: Annotated[int, Range(1, 100_000), Grid((50, 100)), "Number of passages that are ranked again, the best ones by `first`."] = 100,
    first: Annotated[Model, Nested(parse_model, describes="a model"), "Model that ranks all passages."] = LEXICAL,  # type: ignore[assignment]
    heading_path: Annotated[bool, Grid((True,)), "Whether the heading path is put before the text of a passage."] = True,
) -> Signals:
    """The signals `first`, the score of the first model, `again`, that of the cross-encoder, and `listed`.

    `listed` is 1 for passages that are ranked again, and 0 for all others, for which `again` is 0 too.
    """
    matches.require_passages("a cross-encoder")
    snapshot = snapshot_of(matches)
    ranked = first.score(matches.shared())
    # Equal scores are in the order of passages, so the list is the same every time.
    rows = np.sort(np.argsort(-ranked.values, kind="stable")[:n])
    scores: Floats = np.zeros(matches.passages)
    if rows.size:
        scores[rows] = _scores(folder, matches.query.plain_text, _texts(snapshot, matches, rows, heading_path))
    listed = np.zeros(matches.passages)
    listed[rows] = 1.0
    again = Column("score by the cross-encoder", scores, lambda row: Node("score by the cross-encoder", float(scores[row]))).of("passage")
    return {"first": ranked, "again": again, "listed": fact("ranked again", listed)}


@model(cross_encoder_signals, obstacle=obstacle_of_folder)
def cross_encoder(signals: Signals) -> Column:
    """The score of a cross-encoder for the best passages of another model; all others follow in their order.

    A cross-encoder reads query and passage together. It is slow, so it compares the best `n` passages only. The score
    of another passage p is `first(p) - max first + min again - 1`: the order of the first model, below all of these.
    """
    first, again, is_listed = signals["first"], signals["again"], signals["listed"].values > 0
    if is_listed.all():
        return again
    lowest = float(again.values[is_listed].min()) if is_listed.any() else 0.0
    others = first.affine("first model, moved below", 1.0, lowest - BELOW - float(first.values[~is_listed].max()))
    values = np.where(is_listed, again.values, others.values)
    return Column("score", values, lambda row: (again if is_listed[row] else others).explain(row))


def _texts(snapshot: Snapshot, matches: Matches, rows: Integers, heading_path: bool) -> list[str]:
    """The texts of passages, given by their rows. Each document is read once."""
    texts: list[str] = []
    written: tuple[int, Sequence[str]] = (-1, ())
    for row in rows.tolist():
        candidate = int(matches.document_of_passage[row])
        if written[0] != candidate:
            written = candidate, written_passages(snapshot, int(matches.number_of_document[candidate]), heading_path)
        texts.append(written[1][row - int(matches.first_passage_of_document[candidate])])
    return texts


def _scores(folder: str, query: str, texts: Sequence[str]) -> Floats:
    """The output of a cross-encoder for a query and each text."""
    path = _checked_folder(folder)
    tokenizer, transformer = _loaded(str(path), identity_of(path / CONFIGURATION))
    import torch

    found = []
    with torch.inference_mode(), single_threaded():
        for start in range(0, len(texts), BATCH):
            some = list(texts[start : start + BATCH])
            longest = min(int(tokenizer.model_max_length), _LONGEST)
            tokens = tokenizer([query] * len(some), some, padding=True, truncation=True, max_length=longest, return_tensors="pt")
            found.append(transformer(**tokens).logits.float().numpy()[:, 0].astype(np.float64))
    scores: Floats = np.concatenate(found)
    if not np.isfinite(scores).all():
        raise InputError("gives scores that are no finite numbers; choose another cross-encoder", path=folder)
    return scores


def _checked_folder(folder: str) -> Path:
    """The folder of a cross-encoder. Raises `UsageError` if it is none."""
    if not folder:
        raise UsageError('cross_encoder needs the folder of a cross-encoder: cross_encoder(folder="/path/to/folder")')
    check_access(folder, "a cross-encoder", "where the index is")
    if not (Path(folder) / CONFIGURATION).is_file():
        raise UsageError(f"{folder!r} is not the folder of a cross-encoder: it has no file {CONFIGURATION}")
    return Path(folder)


@lru_cache(maxsize=2)
def _loaded(folder: str, identity: tuple[int, ...]) -> tuple[Any, Any]:
    """The tokenizer and the transformer of a folder. They are loaded again if the configuration was replaced."""
    try:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "torch", "neural") from None
    read_settings(Path(folder) / CONFIGURATION, "save or download the cross-encoder again")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **_LOCAL)
        transformer = AutoModelForSequenceClassification.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **_LOCAL)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be loaded as a cross-encoder: {str(error)[:200]}", path=folder) from None
    if transformer.config.num_labels != 1:
        raise InputError(f"has {transformer.config.num_labels} outputs; a cross-encoder that ranks has one", path=folder)
    return tokenizer, transformer.eval()
