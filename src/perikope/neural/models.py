"""Models that score passages by a store of vectors: `colbert`, `hgat`, `vectors` for one vector per passage, `hybrid`.

These models score every passage of the candidate documents, even passages without a word of the query. They can be
fused with lexical models: `fuse(models=[bm25,colbert(store=minilm)])`. Torch is imported when the first query is
scored.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Signals, model, parse_model
from perikope.browse.signals import Column, Node, Origins, sum_of, z_score
from perikope.core.arrays import Floats, Floats32, Integers
from perikope.core.errors import MissingExtra, PerikopeError, UsageError
from perikope.core.files import identity_of
from perikope.core.grammar import Call
from perikope.core.parameters import Grid, Range
from perikope.index.ranges import ranges
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import check_name
from perikope.index.vector_stores import FOLDER, MANIFEST
from perikope.neural.maxsim import max_sim, refined_max_sim
from perikope.neural.stores.codebook import PackedVectors
from perikope.neural.stores.manifest import CONTENT, KINDS, VECTORS, Kind
from perikope.neural.stores.store import VectorStore, heading_paths, written_passages
from perikope.neural.threads import single_threaded
from perikope.neural.triples import with_path
from perikope.search.options import LEXICAL

if TYPE_CHECKING:
    from perikope.neural.context_vectors import LabelledShare
    from perikope.neural.encoder import Encoder
    from perikope.neural.saved import SavedRanker
    from perikope.search.facade import Index

STORE_OF_TOKENS, STORE_IN_CONTEXT, POOLED_STORE = "colbert", "hgat", "dense"
"""Default names of stores of token vectors, of vectors in context, and of one vector per passage."""
_MODEL_OF_KIND: dict[Kind, str] = {"tokens": "colbert", "context": "hgat", "pooled": "vectors", "own": "vectors"}
"""The model that ranks with a store, by the kind of the store."""
_COMPARED_ON_SHARDS: tuple[Kind, ...] = ("pooled", "own")
"""The kinds of stores with which the shards of a cluster compare queries."""
_PACKAGES = ("torch", "transformers", "safetensors")
"""Packages that encode queries."""
_PASSAGE: Origins = (("passage", 1.0),)
_TITLES: Origins = (("titles", 1.0),)
_STORES = 4
"""Maximum number of stores that are kept open, and of encoders that are kept in memory."""

Variant = Literal["", "BASE", "NO", "LB", "NS", "NO_LB", "NO_NS", "LB_NS", "NO_LB_NS"]
QueryEncoder = Callable[[str], Floats32]
"""A function that takes a query and returns its vector (dimension,)."""


def colbert_column(
    snapshot: Snapshot, matches: Matches, store: VectorStore, encoder: Encoder, *, matrix: str = VECTORS, refine: int = 0
) -> Column:
    """The MaxSim score of the query with each passage of the matches; explanations have one line per query token.

    `matrix` is the name of a matrix of the store: `vectors`, or `content` for passages alone. `refine` is the number of
    passages to compare by their vectors; 0 compares all. See `refined_max_sim`.
    """
    comparison = _StoreComparison(snapshot, matches, store, encoder, matrix)
    values, exact = refined_max_sim(comparison.query, comparison.packed, refine)
    label = "MaxSim of query and passage"

    def explain(row: int) -> Node:
        if not exact[row]:
            return Node(f"{label} by centroids, limited to the smallest score by vectors", float(values[row]))
        pairs, written, tokens_of_titles = comparison.pairs(row), comparison.written_tokens(row), comparison.tokens_of_titles(row)
        nodes = [
            Node(f"{query_token!r} ~ {written(position)}", product, origins=_TITLES if position < tokens_of_titles else _PASSAGE)
            for query_token, position, product in pairs
        ]
        return _adding_up(label, float(values[row]), nodes, "rounding")

    return Column(label, values, explain)


def context_column(snapshot: Snapshot, matches: Matches, store: VectorStore, ranker: SavedRanker) -> Column:
    """The MaxSim score of the query with each passage in its context.

    Explanations have one line per neighbour, and below it one line per query token.
    """
    comparison = _StoreComparison(snapshot, matches, store, ranker.encoder, VECTORS)
    values = max_sim(comparison.query, comparison.packed)
    label = "MaxSim of query and passage in its context"

    def explain(row: int) -> Node:
        from perikope.neural.context_vectors import shares_of_passage

        pairs, written = comparison.pairs(row), comparison.written_tokens(row)
        shares = shares_of_passage(snapshot, *comparison.locate(row), ranker) if pairs else []
        nodes = []
        for share, products in sorted(_by_pair(shares, comparison, row), key=lambda item: -abs(sum(item[1]))):
            of_tokens = [
                Node(f"{query_token!r} ~ {written(position)}", product)
                for (query_token, position, _), product in zip(pairs, products, strict=True)
            ]
            value, origins = math.fsum(node.value for node in of_tokens), ((share.origin, 1.0),)
            nodes.append(Node(share.label, value, "sum", tuple(of_tokens), origins=origins))
        return _adding_up(label, float(values[row]), nodes, "lost by the code of the store and by rounding")

    return Column(label, values, explain)


def _by_pair(shares: Sequence[LabelledShare], comparison: _StoreComparison, row: int) -> list[tuple[LabelledShare, list[float]]]:
    """Each share, and its parts of the dot products of query tokens with their best passage tokens."""
    best = comparison.best(row)
    return [(share, (share.vectors[best] * comparison.query).sum(axis=1, dtype=np.float64).tolist()) for share in shares]


def _adding_up(label: str, value: float, nodes: Sequence[Node], rest: str) -> Node:
    """The explanation of `value` as the sum of `nodes`. A last line, labelled `rest`, has the difference."""
    if not nodes:
        return Node(label, value)
    return Node(label, value, "sum", (*nodes, Node(rest, value - math.fsum(node.value for node in nodes))))


class _StoreComparison:
    """Compares a query with the passages of the matches by the vectors of a store.

    The attribute `query` (query tokens, dimension) has the vectors of the query. The attribute `packed` has the vectors
    of the passages. A row is the number of a passage in the matches.
    """

    def __init__(self, snapshot: Snapshot, matches: Matches, store: VectorStore, encoder: Encoder, matrix: str) -> None:
        matches.require_passages("a neural model")
        self._snapshot, self._matches, self._store, self._encoder = snapshot, matches, store, encoder
        self.query = matches.once(("query", store.folder), lambda: encode_query(encoder, matches.query.plain_text))
        self.packed = find_passages(snapshot, matches, store, matrix)

    def locate(self, row: int) -> tuple[int, int]:
        """The number of the row's document in the snapshot, and the number of the passage in the document."""
        candidate = int(self._matches.document_of_passage[row])
        return int(self._matches.number_of_document[candidate]), row - int(self._matches.document_of_passage.searchsorted(candidate))

    def best(self, row: int) -> Integers:
        """For each query token, the number of the passage vector with the largest dot product: (query tokens,)."""
        best: Integers = (self.packed.vectors(row)[0] @ self.query.T).argmax(axis=0)
        return best

    def pairs(self, row: int) -> list[tuple[str, int, float]]:
        """For each query token: its text, the position of the best passage token, and the dot product of both.

        Returns an empty list if the passage has no vectors.
        """
        vectors, position = self.packed.vectors(row)
        if not vectors.shape[0]:
            return []
        query_tokens = self._encoder.written(self._matches.query.plain_text, query=True)
        return [
            (query_tokens[i] if i < len(query_tokens) else "", int(position[j]), float(vectors[j] @ self.query[i]))
            for i, j in enumerate(self.best(row).tolist())
        ]

    def tokens_of_titles(self, row: int) -> int:
        """The number of tokens before the text of the row's passage: those of its heading path, if it was encoded."""
        if not self._store.heading_path:
            return 0
        document, passage = self.locate(row)
        path = heading_paths(self._snapshot, document)[passage]
        # The last token only marks the end of a text.
        return len(self._encoder.written(with_path(path, ""), query=False)) - 1 if path else 0

    def written_tokens(self, row: int) -> Callable[[int], str]:
        """A function that takes a token position and returns the quoted token of the row's passage at this position.

        It returns `?` for a position beyond the end of the passage.
        """
        document, passage = self.locate(row)
        text = written_passages(self._snapshot, document, self._store.heading_path)[passage]
        written = self._encoder.written(text, query=False)
        return lambda position: repr(written[position]) if position < len(written) else "?"


def vector_column(snapshot: Snapshot, matches: Matches, store: VectorStore, query: Floats32) -> Column:
    """The largest dot product of `query` with the vectors of each passage; 0 for a passage without vectors.

    `query` is (dimension,) or (1, dimension).
    """
    matches.require_passages("a neural model")
    values = _compared(snapshot, matches, store, query.reshape(1, -1))
    label = f"similarity by {store.name}"
    return Column(label, values, lambda row: Node(label, float(values[row]))).of("passage")


def _compared(snapshot: Snapshot, matches: Matches, store: VectorStore, query: Floats32) -> Floats:
    """The MaxSim score of each passage of the matches. The shards of a cluster compare, and send scores only.

    Documents are compared one by one, so that scores do not depend on how documents are divided; see `max_sim`.
    """
    first, values = matches.first_passage_of_document, np.zeros(matches.passages)
    passages = np.diff(first)
    for at, scores in snapshot.ask_about(_compared_here, matches.number_of_document, store.name, query, beside=(passages,)):
        values[ranges(first[:-1][at], first[1:][at])] = scores
    return values


def _compared_here(snapshot: Snapshot, documents: Integers, passages: Integers, name: str, query: Floats32) -> Floats:
    """The scores of the passages of some documents, of which the matches have as many `passages` (documents,)."""
    store = open_store(snapshot, name, *KINDS)
    packed = store.find(snapshot, documents)
    _check_passages(snapshot, store, packed, int(passages.sum()))
    return max_sim(query, packed)


def find_passages(snapshot: Snapshot, matches: Matches, store: VectorStore, matrix: str) -> PackedVectors:
    """The vectors of all passages of the matches, in their order; `matrix` is the name of a matrix of the store."""
    packed = store.find(snapshot, matches.number_of_document, matrix)
    _check_passages(snapshot, store, packed, matches.passages)
    return packed


def _check_passages(snapshot: Snapshot, store: VectorStore, packed: PackedVectors, passages: int) -> None:
    if packed.passages != passages:
        raise UsageError(
            f"the store {store.name!r} does not have the same passages as the index; update it with {store.updated_by(snapshot.folder)}"
        )


def encode_query(encoder: Encoder, text: str) -> Floats32:
    """Encode a query as one vector per token: (query tokens, dimension)."""
    import torch

    with torch.inference_mode(), single_threaded():
        vectors, mask = encoder.queries([text], full=False)
    query: Floats32 = vectors[0][mask[0]].float().cpu().numpy()
    return query


def open_store(snapshot: Snapshot, name: str, *kinds: Kind) -> VectorStore:
    """Open a store of an index; raises `UsageError` if the kind of the store is not one of `kinds`.

    The snapshot keeps an open store and returns it again until the manifest of the store changes.
    """
    check_name(name)
    changed = identity_of(snapshot.folder / FOLDER / name / MANIFEST)
    kept = snapshot.stores.get(name)
    if kept is None or kept[0] != changed:
        kept = snapshot.stores[name] = changed, VectorStore.open(snapshot.folder, name, kinds[0])
    store: VectorStore = kept[1]
    if store.kind not in kinds:
        wanted = " or ".join(kinds)
        raise UsageError(f"the store {name!r} is of kind {store.kind}, not {wanted}; rank with {_MODEL_OF_KIND[store.kind]}(store={name})")
    return store


@lru_cache(maxsize=_STORES)
def _loaded_encoder(folder: Path, hashes: tuple[tuple[str, str], ...]) -> Encoder:
    """Load an encoder once per set of `hashes` of its files."""
    from perikope.neural.encoder import Encoder

    _survive_forks()
    return Encoder.load(str(folder))


@lru_cache(maxsize=_STORES)
def _loaded_ranker(folder: Path, hashes: tuple[tuple[str, str], ...]) -> SavedRanker:
    """Load a ranker once per set of `hashes` of its files."""
    import perikope.neural.encoder  # noqa: F401 - imported first, because its error names the extra to install

    _survive_forks()
    from perikope.neural.context_vectors import load_for_explanation

    return load_for_explanation(folder)


@cache
def _survive_forks() -> None:
    """Make torch use one thread in forked processes, such as those of experiments.

    A forked process has none of the parent's threads, and torch would wait for them.
    """
    import torch

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def encoder_of(store: VectorStore) -> Encoder:
    """The encoder that a store was made with. It is loaded at the first call and kept."""
    return _loaded_encoder(encoder_folder(store), store.encoder_hashes)


def ranker_of(store: VectorStore) -> SavedRanker:
    """The encoder and graph attention that a store was made with. They are loaded at the first call and kept."""
    return _loaded_ranker(encoder_folder(store), store.encoder_hashes)


def encoder_folder(store: VectorStore) -> Path:
    """The folder of the encoder that a store was made with, after the hashes of its files were compared.

    Raises `UsageError` if the folder is missing, and `InputError` if a file of it is damaged.
    """
    if store.encoder is None:
        raise UsageError(f"the store {store.name!r} has lost its encoder: remove {store.folder}, then run `perikope encode` again")
    store.check_encoder()
    return store.encoder


def snapshot_of(matches: Matches) -> Snapshot:
    """The snapshot of the index that matches come from; raises `UsageError` if they were made without an index."""
    if matches.snapshot is None:
        raise UsageError("neural models need an index, and these matches were made without one; use `Index.search`")
    return matches.snapshot


def obstacle_of_store(snapshot: Snapshot, parameters: Mapping[str, object]) -> str:
    """Why the store of a model cannot rank all documents of a snapshot; empty if it can. Torch is not imported."""
    try:
        opened = open_store(snapshot, str(parameters["store"]), *KINDS)
    except PerikopeError as error:
        return str(error)
    if not snapshot.is_local and opened.kind not in _COMPARED_ON_SHARDS:
        return (
            f"the store {opened.name!r} has vectors of tokens, which are compared on one machine only, and this cluster runs on several; "
            "open its folder with perikope.Index.open"
        )
    if missing := sum(count for _, count in snapshot.ask(_without_vectors, opened.name)):
        documents = "1 document has" if missing == 1 else f"{missing} documents have"
        return f"{documents} no vectors; add them with {opened.updated_by(snapshot.folder)}"
    return "" if opened.name in snapshot.query_encoders else _obstacle_of_encoder(opened)


def _without_vectors(snapshot: Snapshot, name: str) -> int:
    """The number of documents of one shard that have no vectors in a store."""
    return open_store(snapshot, name, *KINDS).missing(snapshot)


def _obstacle_of_encoder(store: VectorStore) -> str:
    """Why queries cannot be encoded for a store; empty if they can."""
    if store.kind == "own":
        return f"it has no query encoder; call perikope.neural.models.set_query_encoder(index, {store.name!r}, …) after opening the index"
    try:
        encoder_folder(store)
    except UsageError as error:
        return str(error)
    missing = next((package for package in _PACKAGES if not _is_installed(package)), "")
    return str(MissingExtra(missing, "neural")) if missing else ""


@cache
def _is_installed(package: str) -> bool:
    """Whether a package can be imported. It is looked up once, because that takes as long as a small search."""
    return find_spec(package) is not None


def colbert_signals(
    matches: Matches,
    *,
    store: Annotated[str, Grid((STORE_OF_TOKENS,)), "Name of a store of token vectors, made by `perikope encode`."] = STORE_OF_TOKENS,
    refine: Annotated[
        int, Range(0, 1e9), Grid((0,)), "Number of passages that are compared exactly, chosen by an approximate score; 0 for all."
    ] = 0,
) -> Signals:
    """The signal `maxsim`: the MaxSim score of each passage with the token vectors of a store."""
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot, store, "tokens")
    return {"maxsim": colbert_column(snapshot, matches, opened, encoder_of(opened), refine=refine)}


@model(colbert_signals, obstacle=obstacle_of_store)
def colbert(signals: Signals) -> Column:
    """MaxSim: the sum, over query tokens, of the similarity to the most similar passage token.

    `Σ_i max_j E_q_i · E_p_j` with one vector per token (Khattab and Zaharia 2020). `perikope encode` makes the `store`,
    which contains the vectors of all passages. With `refine`, only the best passages by an approximate score are
    compared exactly. The approximate score replaces each vector by the nearest centroid.
    """
    return signals["maxsim"]


def hgat_signals(
    matches: Matches,
    *,
    store: Annotated[
        str, Grid((STORE_IN_CONTEXT,)), "Name of a store that `perikope encode` made with a trained ranker."
    ] = STORE_IN_CONTEXT,
    variant: Annotated[
        Variant, Grid(("",)), "Variant of graph attention that the store must have been made with; an empty text accepts any variant."
    ] = "",
) -> Signals:
    """The signal `context`: the MaxSim score of each passage in its context.

    With late fusion, there is also the signal `content`, the score of the passage alone. Both then are multiplied by
    their weights.
    """
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot, store, "context")
    facts = opened.facts
    if variant and variant != facts["variant"]:
        raise UsageError(
            f"the store {store!r} was made with the variant {facts['variant']}, not {variant}; leave out variant, or make another store"
        )
    ranker, alpha = ranker_of(opened), facts["alpha"]
    with matches.sharing() as shared:
        context = context_column(snapshot, shared, opened, ranker)
        if alpha is None:
            return {"context": context}
        content = colbert_column(snapshot, shared, opened, ranker.encoder, matrix=CONTENT)
    return {"content": (1 - alpha) * content, "context": alpha * context}


@model(hgat_signals, obstacle=obstacle_of_store)
def hgat(signals: Signals) -> Column:
    """MaxSim with vectors of the passage in the context of its document, by graph attention.

    `Σ_i max_j E_q_i · E_j` with the vectors E of the passage in its context. A ranker with late fusion computes
    `(1 - α) sim(E_q, E_p) + α sim(E_q, E_context)` (equations 4 and 5 of Albarede et al. 2023). `perikope encode
    --encoder FOLDER` makes the `store`, where FOLDER is the folder of a trained ranker.
    """
    columns = list(signals.values())
    return columns[0] if len(columns) == 1 else sum_of("late fusion of passage and context", columns)


def vector_signals(
    matches: Matches,
    *,
    store: Annotated[str, Grid((POOLED_STORE,)), "Name of a store with one vector per passage."] = POOLED_STORE,
) -> Signals:
    """The signal `similarity`: the dot product of the query vector with the vector of each passage."""
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot, store, "pooled", "own")
    return {"similarity": vector_column(snapshot, matches, opened, query_vectors(snapshot, opened, matches.query.plain_text))}


@model(vector_signals, obstacle=obstacle_of_store)
def vectors(signals: Signals) -> Column:
    """Similarity of the query vector with one vector per passage, from `perikope encode --pooled` or any other model.

    The score is `E_q · E_p`. Pooled vectors are the mean of an encoder's token vectors, or what a folder of Sentence
    Transformers states instead, scaled to length 1. Vectors of other models are added with
    `perikope.neural.models.add_vectors` and are not scaled.
    """
    return signals["similarity"]


def hybrid_signals(
    matches: Matches,
    *,
    store: Annotated[str, Grid((STORE_OF_TOKENS,)), "Name of a store of vectors, made by `perikope encode`."] = STORE_OF_TOKENS,
) -> Signals:
    """The signals `words`, the score of `coverage`, and `meaning`, the score by the vectors, both normalised."""
    shared = matches.shared()
    opened = open_store(snapshot_of(matches), store, *KINDS)
    by_vectors = parse_model(Call(_MODEL_OF_KIND[opened.kind], {"store": store}))
    words = z_score(parse_model(LEXICAL).score(shared)).named("score by words")
    return {"words": words, "meaning": z_score(by_vectors.score(shared)).named("score by vectors")}


@model(hybrid_signals, obstacle=obstacle_of_store)
def hybrid(
    signals: Signals,
    *,
    weight: Annotated[float, Range(0, 1), Grid((0.4, 0.5, 0.6, 0.7)), "Weight w of the vectors; words have weight 1 - w."] = 0.6,
) -> Column:
    """Words and meaning: the score of `coverage`, and the similarity of query and passage by the vectors of a store.

    `(1 - w) z(coverage(p)) + w z(sim(p))`, where z subtracts the mean over the candidate passages and divides by their
    standard deviation. The kind of the store decides which model computes sim: `colbert`, `hgat` or `vectors`.
    `perikope encode` makes the store. `fuse` combines any other models.
    """
    return sum_of("score by words and vectors", [(1 - weight) * signals["words"], weight * signals["meaning"]])


def query_vectors(snapshot: Snapshot, store: VectorStore, text: str) -> Floats32:
    """Encode a query for a store: (query tokens, dimension) for token vectors, (1, dimension) for other stores."""
    if store.kind in ("tokens", "context"):
        return encode_query(encoder_of(store), text)
    encode = snapshot.query_encoders.get(store.name)
    if encode is None and store.kind == "own":
        raise UsageError(
            f"the store {store.name!r} has no query encoder: "
            f"call perikope.neural.models.set_query_encoder(index, {store.name!r}, …) after opening the index"
        )
    query = np.asarray(encode(text) if encode is not None else _pooled_query(encoder_of(store), text), np.float32)
    if query.shape != (store.codebook.dimension,) or not np.isfinite(query).all():
        raise UsageError(f"the query encoder must return {store.codebook.dimension} finite values; check its array, of shape {query.shape}")
    return query.reshape(1, -1)


def _pooled_query(encoder: Encoder, text: str) -> Floats32:
    """The pooled vector (dimension,) of a query, scaled to length 1."""
    from perikope.neural.pooled_vectors import pooled

    with single_threaded():
        return pooled(encoder, [text], query=True)[0]


def set_query_encoder(index: Index | Snapshot, store: str, query_vector: QueryEncoder) -> None:
    """Set the function that turns queries into vectors of a store, for this open index only.

    `query_vector` takes a query and returns an array (dimension,). It must be safe to call from several threads at
    once. For a store of pooled vectors, the function replaces the encoder of the store. It is kept while the index is
    open, even after `commit`, `compact` and `refresh`.
    """
    snapshot = index if isinstance(index, Snapshot) else index.snapshot
    open_store(snapshot, store, "own", "pooled")
    snapshot.query_encoders[store] = query_vector


def add_vectors(
    index: Index | Snapshot,
    name: str,
    passage_vectors: Callable[[Sequence[str]], Any],
    query_vector: QueryEncoder,
    dimension: int,
    **options: Any,
) -> VectorStore:
    """Make or update a store with the vectors of any model, one per passage.

    `passage_vectors` takes texts and returns their vectors (texts, dimension). The store does not scale them, and keeps
    them as float16 by default. Scale them to length 1 for cosine similarity.

    `query_vector` takes a query and returns its vector (dimension,). It is not saved with the index. After opening the
    index again, pass it to `set_query_encoder`; passages are not encoded again.

    `options` are arguments of `perikope.neural.stores.update.update_store`.
    """
    from perikope.neural.stores.update import update_store

    def encode(texts: Sequence[str]) -> Any:
        rows = np.asarray(passage_vectors(texts), np.float32) if texts else np.zeros((0, dimension), np.float32)
        if rows.shape != (len(texts), dimension):
            raise UsageError(f"passage_vectors must return an array of shape {(len(texts), dimension)}, not {rows.shape}")
        if not np.isfinite(rows).all():
            raise UsageError("passage_vectors must return finite values, not infinity or NaN")
        zero: Integers = np.zeros(1, np.int64)
        return ((number, row[None, :], zero) for number, row in enumerate(rows))

    snapshot = index if isinstance(index, Snapshot) else index.snapshot
    opened = update_store(snapshot, name, encode, dimension, kind="own", **{"code": "float16", **options})
    set_query_encoder(snapshot, name, query_vector)
    return opened
