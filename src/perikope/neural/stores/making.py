"""Make a store of vectors with an encoder, or update one with the settings that it was made with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from perikope.core.errors import UsageError
from perikope.index.reader import Snapshot
from perikope.index.vector_stores import FOLDER, MANIFEST
from perikope.neural.defaults import DEFAULT, DIMENSION
from perikope.neural.encoder_settings import SETTINGS
from perikope.neural.models import POOLED_STORE, STORE_IN_CONTEXT, STORE_OF_TOKENS, encoder_folder
from perikope.neural.saved import CONTEXT_SETTINGS, CONTEXT_WEIGHTS, RANKER, SavedRanker, load_ranker, save_ranker
from perikope.neural.sentence_folders import MODULES
from perikope.neural.stores.codebook import Code
from perikope.neural.stores.store import VectorStore
from perikope.neural.stores.update import DocumentEncoder, TextSource, update_store_from
from perikope.neural.threads import single_threaded

_MADE_OF = (
    "model*.safetensors", "config.json", MODULES, "*_Pooling/config.json", "tokenizer.json", SETTINGS, CONTEXT_WEIGHTS,
    CONTEXT_SETTINGS, RANKER,
)  # fmt: skip
"""Files in the folder of an encoder or ranker that its vectors depend on."""


@dataclass(frozen=True, slots=True)
class EncodeOptions:
    """Settings of a store. Settings that are not given come from the existing store, or have the default below."""

    name: str = ""
    """Name of the store; by default `dense` with `pooled`, `hgat` for a ranker with graph attention, else `colbert`."""
    encoder: str = ""
    """Name or folder of the encoder, all-MiniLM-L6-v2 by default. The folder of a trained ranker with graph attention
    makes a store of vectors in context."""
    dimension: int | None = None
    """Values per token vector, 128 by default; 0 keeps the encoder's width. A trained encoder has a fixed dimension."""
    code: Code | None = None
    """How vectors are packed: `float16`, `int8` or `residual`. The default is `residual`, which takes the fewest bytes;
    with `pooled` it is `float16`."""
    heading_path: bool | None = None
    """Whether heading paths are prepended to passages; by default as in the training of the ranker, else true."""
    pooled: bool = False
    """Whether to keep one vector per passage instead of one per token: the mean, or what the encoder's folder says."""
    device: str = ""
    """`cpu`, `cuda` or another name that torch knows; by default a GPU if there is one."""
    runtime: str | None = None
    """Program that computes token vectors: `torch` (default), `onnx` or `onnx-int8`; see `Encoder.load`."""
    workers: int = 0
    """Number of processes with one thread each that encode on a CPU; 1 is this process, and 0 is this process with all
    threads of torch, which is slow on a busy machine. Several processes need a main program that can be imported, as
    `multiprocessing` does. As many threads compute clusters."""
    clusters: Mapping[str, Any] = field(default_factory=dict)
    """Options of `ClusterOptions`, for stores with one vector per passage."""


def encode_index(
    snapshot: Snapshot,
    options: EncodeOptions,
    on_document: Callable[[int], None] = lambda passages: None,
    on_pending: Callable[[Sequence[int]], None] = lambda passages: None,
) -> VectorStore:
    """Make a store for an index, or update it; see `update_store_from` for `on_document` and `on_pending`."""
    with single_threaded() if options.workers == 1 else nullcontext():
        return _encode_index(snapshot, options, on_document, on_pending)


def _encode_index(
    snapshot: Snapshot, options: EncodeOptions, on_document: Callable[[int], None], on_pending: Callable[[Sequence[int]], None]
) -> VectorStore:
    name = options.name or _default_name(options)
    folder = snapshot.folder / FOLDER / name
    old = VectorStore(folder) if (folder / MANIFEST).is_file() else None
    if old is not None and old.kind == "own":
        raise UsageError(f"the store {name!r} holds vectors of your own; update it with perikope.neural.models.add_vectors")
    pooled = options.pooled or (old is not None and old.kind == "pooled")
    known = "torch" if old is None else str(old.facts.get("runtime", "torch"))
    runtime = options.runtime or known
    if pooled and runtime != "torch":
        raise UsageError(f"pooled vectors are computed by torch only: use the runtime torch, not {runtime}")
    if pooled and options.dimension is not None:
        raise UsageError("pooled vectors always have the encoder's width: leave out --dimension")
    ranker = _load(options, old, pooled, runtime)
    if options.dimension is not None and ranker.encoder.dimension != (options.dimension or ranker.encoder.width):
        raise UsageError(f"vectors of this encoder have {ranker.encoder.dimension} values: leave out --dimension, or choose another --name")
    if options.heading_path is not None:
        ranker = replace(ranker, heading_path=options.heading_path)
    elif old is not None:
        ranker = replace(ranker, heading_path=old.heading_path)
    source, facts = _source_of(ranker, pooled)
    facts["runtime"] = runtime
    with ExitStack() as stack:
        if isinstance(source, TextSource) and ranker.encoder.device.type == "cpu" and options.workers > 1:
            from perikope.neural.encoding_workers import EncodingWorkers

            workers = EncodingWorkers(ranker.encoder, source.texts, options.workers, pooled=pooled, runtime=runtime)
            source = replace(source, texts=stack.enter_context(workers))
        return update_store_from(
            snapshot,
            name,
            source,
            code=options.code or (old.codebook.code if old is not None else "float16" if pooled else "residual"),
            save_encoder=partial(save_ranker, ranker=ranker) if source.kind == "context" else ranker.encoder.save,
            facts={**_made_by(options, old), **facts},
            on_document=on_document,
            on_pending=on_pending,
            clusters=options.clusters,
            threads=max(options.workers, 1),
        )


def _default_name(options: EncodeOptions) -> str:
    """The name of a store by its kind."""
    if options.pooled:
        return POOLED_STORE
    has_context = bool(options.encoder) and (Path(options.encoder) / CONTEXT_SETTINGS).is_file()
    return STORE_IN_CONTEXT if has_context else STORE_OF_TOKENS


def _load(options: EncodeOptions, old: VectorStore | None, pooled: bool, runtime: str) -> SavedRanker:
    """Load the encoder of the existing store, so that its vectors stay comparable, else that of the options."""
    if old is not None:
        return load_ranker(encoder_folder(old), device=options.device, runtime=runtime)
    # Pooled vectors are not projected.
    dimension = 0 if pooled else DIMENSION if options.dimension is None else options.dimension
    return load_ranker(Path(options.encoder or DEFAULT), dimension=dimension, device=options.device, runtime=runtime)


def _source_of(ranker: SavedRanker, pooled: bool) -> tuple[DocumentEncoder, dict[str, Any]]:
    """The encoder of documents, and for vectors in context the variant and α that the store's manifest keeps."""
    if pooled:
        from perikope.neural.pooled_vectors import encode_pooled

        return TextSource(partial(encode_pooled, ranker.encoder), ranker.encoder.pooled_width, ranker.heading_path, "pooled"), {}
    if ranker.context is None:
        return TextSource(ranker.encoder.encode, ranker.encoder.dimension, ranker.heading_path), {}
    from perikope.neural.context_vectors import ContextSource, alpha_of, variant_of

    if ranker.context.dimension != ranker.encoder.dimension:
        raise UsageError(
            f"the ranker's graph attention needs vectors of {ranker.context.dimension} values, but its encoder has "
            f"{ranker.encoder.dimension}: train again"
        )
    return ContextSource(ranker), {"variant": variant_of(ranker.context), "alpha": alpha_of(ranker)}


def _made_by(options: EncodeOptions, old: VectorStore | None) -> dict[str, Any]:
    """The encoder's name and, for a folder, a hash of its files, because they may change."""
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
