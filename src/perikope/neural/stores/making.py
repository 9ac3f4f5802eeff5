"""Making stores: which encoder, what is kept of a passage, and under which name; a store is brought up to date as it was made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from perikope.core.errors import UsageError
from perikope.index.reader import Snapshot
from perikope.neural.defaults import DEFAULT, DIMENSION
from perikope.neural.encoder import SETTINGS
from perikope.neural.models import POOLED_STORE, STORE_IN_CONTEXT, STORE_OF_TOKENS, encoder_folder
from perikope.neural.saved import CONTEXT_SETTINGS, CONTEXT_WEIGHTS, RANKER, SavedRanker, load_ranker, save_ranker
from perikope.neural.stores.codebook import Code
from perikope.neural.stores.store import FOLDER, MANIFEST, VectorStore
from perikope.neural.stores.update import DocumentEncoder, TextSource, update_store_from

_MADE_OF = ("model*.safetensors", "config.json", "tokenizer.json", SETTINGS, CONTEXT_WEIGHTS, CONTEXT_SETTINGS, RANKER)
"""Files of a folder that decide what vectors are; training keeps others beside them."""


@dataclass(frozen=True, slots=True)
class EncodeOptions:
    """What a store is made with; what is left out is as the store has it, or as it is best for its kind."""

    name: str = ""
    encoder: str = ""
    """A name or a folder; one of a trained ranker that sees passages in their documents makes a store of that."""
    dimension: int | None = None
    code: Code | None = None
    heading_path: bool | None = None
    pooled: bool = False
    """One vector a passage."""
    device: str = ""
    runtime: str | None = None
    """Of token vectors: see `Encoder.load`; torch where not given."""


def encode_index(snapshot: Snapshot, options: EncodeOptions, on_document: Callable[[int], None] = lambda passages: None) -> VectorStore:
    """Make a store of an index, or bring it up to date."""
    name = options.name or _default_name(options)
    folder = snapshot.folder / FOLDER / name
    old = VectorStore(folder) if (folder / MANIFEST).is_file() else None
    if old is not None and old.kind == "own":
        raise UsageError(f"the store {name!r} holds vectors of your own; bring it up to date with perikope.neural.models.add_vectors")
    pooled = options.pooled or (old is not None and old.kind == "pooled")
    known = "torch" if old is None else str(old.facts.get("runtime", "torch"))
    runtime = options.runtime or known
    if pooled and runtime != "torch":
        raise UsageError(f"one vector a passage is computed by torch alone: leave out {runtime}")
    if pooled and options.dimension is not None:
        raise UsageError("one vector a passage is as long as the encoder's own: leave out --dimension")
    ranker = _load(options, old, pooled, runtime)
    if options.dimension is not None and ranker.encoder.dimension != (options.dimension or ranker.encoder.width):
        raise UsageError(f"vectors of this encoder have {ranker.encoder.dimension} values: leave out --dimension, or choose another --name")
    if options.heading_path is not None:
        ranker = replace(ranker, heading_path=options.heading_path)
    elif old is not None:
        ranker = replace(ranker, heading_path=old.heading_path)
    source, facts = _source_of(ranker, pooled)
    facts["runtime"] = runtime
    return update_store_from(
        snapshot,
        name,
        source,
        code=options.code or (old.codebook.code if old is not None else "float16" if pooled else "residual"),
        save_encoder=partial(save_ranker, ranker=ranker) if source.kind == "context" else ranker.encoder.save,
        facts={**_made_by(options, old), **facts},
        on_document=on_document,
    )


def _default_name(options: EncodeOptions) -> str:
    if options.pooled:
        return POOLED_STORE
    has_context = bool(options.encoder) and (Path(options.encoder) / CONTEXT_SETTINGS).is_file()
    return STORE_IN_CONTEXT if has_context else STORE_OF_TOKENS


def _load(options: EncodeOptions, old: VectorStore | None, pooled: bool, runtime: str) -> SavedRanker:
    """The encoder of the store, where it is there: the same name later means the same vectors."""
    if old is not None:
        return load_ranker(encoder_folder(old), device=options.device, runtime=runtime)
    # One vector a passage is not projected.
    dimension = 0 if pooled else DIMENSION if options.dimension is None else options.dimension
    return load_ranker(Path(options.encoder or DEFAULT), dimension=dimension, device=options.device, runtime=runtime)


def _source_of(ranker: SavedRanker, pooled: bool) -> tuple[DocumentEncoder, dict[str, Any]]:
    if pooled:
        from perikope.neural.pooled_vectors import encode_pooled

        return TextSource(partial(encode_pooled, ranker.encoder), ranker.encoder.width, ranker.heading_path, "pooled"), {}
    if ranker.context is None:
        return TextSource(ranker.encoder.encode, ranker.encoder.dimension, ranker.heading_path), {}
    from perikope.neural.context_vectors import ContextSource, alpha_of, variant_of

    if ranker.context.dimension != ranker.encoder.dimension:
        raise UsageError(f"the attention takes vectors of {ranker.context.dimension} values, the encoder gives {ranker.encoder.dimension}")
    return ContextSource(ranker), {"variant": variant_of(ranker.context), "alpha": alpha_of(ranker)}


def _made_by(options: EncodeOptions, old: VectorStore | None) -> dict[str, Any]:
    """Which encoder: its name, and of a folder the hash of what it is made of, since another may lie there later."""
    if old is not None and not options.encoder:
        return {name: old.facts.get(name) for name in ("encoder", "weights")}
    name = options.encoder or DEFAULT
    if not Path(name).is_dir():
        return {"encoder": name, "weights": ""}
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(path for pattern in _MADE_OF for path in Path(name).glob(pattern)):
        with path.open("rb") as file:
            digest.update(path.name.encode() + hashlib.file_digest(file, "blake2b").digest())
    return {"encoder": Path(name).resolve().name, "weights": digest.hexdigest()}
