"""Models that look passages up in a store of vectors: `colbert`, `hgat`, and `vectors` for one vector a passage, of any model.

They score every passage of the candidates, whether it holds a word of the query or not, and fuse with the lexical models like any other:
`fuse(models=[bm25,colbert(store=minilm)])`. Torch is imported when a query is first encoded.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models import Signals, model
from perikope.browse.signals import Column, Node, sum_of
from perikope.core.arrays import Floats, Floats32, Integers
from perikope.core.errors import UsageError
from perikope.core.parameters import Grid, Range
from perikope.index.reader import Snapshot
from perikope.index.saved_tables import check_name
from perikope.neural.maxsim import max_sim, refined_max_sim
from perikope.neural.stores.codebook import Found
from perikope.neural.stores.store import CONTENT, FOLDER, MANIFEST, VECTORS, Kind, VectorStore, written_passages
from perikope.neural.threads import single_threaded

if TYPE_CHECKING:
    from perikope.neural.context_vectors import Part
    from perikope.neural.encoder import Encoder
    from perikope.neural.saved import SavedRanker
    from perikope.search.facade import Index

STORE_OF_TOKENS, STORE_IN_CONTEXT, POOLED_STORE = "colbert", "hgat", "dense"
"""What stores are called where nobody says otherwise."""
_MODEL_OF_KIND: dict[Kind, str] = {"tokens": "colbert", "context": "hgat", "pooled": "vectors", "own": "vectors"}
_STORES = 4

Variant = Literal["", "BASE", "NO", "LB", "NS", "NO_LB", "NO_NS", "LB_NS", "NO_LB_NS"]
QueryEncoder = Callable[[str], Floats32]


def colbert_column(
    snapshot: Snapshot, matches: Matches, store: VectorStore, encoder: Encoder, *, matrix: str = VECTORS, refine: int = 0
) -> Column:
    """MaxSim of the query and each passage of the candidates; the explanation names the pair of every query token."""
    compared = _Compared(snapshot, matches, store, encoder, matrix)
    values, exact = refined_max_sim(compared.query, compared.found, refine)
    label = "MaxSim of query and passage"

    def explain(row: int) -> Node:
        if not exact[row]:
            return Node(f"{label} by centroids, at most that of the last that was compared by vectors", float(values[row]))
        pairs = compared.pairs(row)
        said = compared.said(row)
        nodes = [Node(f"{asked!r} ~ {said(token)}", product) for asked, token, product in pairs]
        return _adding_up(label, float(values[row]), nodes, "rounding")

    return Column(label, values, explain)


def context_column(snapshot: Snapshot, matches: Matches, store: VectorStore, ranker: SavedRanker) -> Column:
    """MaxSim of the query and each passage in its context; the explanation says which neighbour gave how much to which pair."""
    compared = _Compared(snapshot, matches, store, ranker.encoder, VECTORS)
    values = max_sim(compared.query, compared.found)
    label = "MaxSim of query and passage in its context"

    def explain(row: int) -> Node:
        from perikope.neural.context_vectors import parts_of_passage

        pairs, said = compared.pairs(row), compared.said(row)
        parts = parts_of_passage(snapshot, *compared.place(row), ranker) if pairs else []
        nodes = []
        for part in sorted(_by_pair(parts, compared, row), key=lambda found: -abs(sum(found[1]))):
            shares = [Node(f"{asked!r} ~ {said(token)}", share) for (asked, token, _), share in zip(pairs, part[1], strict=True)]
            nodes.append(Node(part[0], math.fsum(share.value for share in shares), "sum", tuple(shares)))
        return _adding_up(label, float(values[row]), nodes, "lost by the code of the store and by rounding")

    return Column(label, values, explain)


def _by_pair(parts: Sequence[Part], compared: _Compared, row: int) -> list[tuple[str, list[float]]]:
    """What each part adds to the pair of every query token."""
    best = compared.best(row)
    return [(part.label, (part.vectors[best] * compared.query).sum(axis=1, dtype=np.float64).tolist()) for part in parts]


def _adding_up(label: str, value: float, nodes: Sequence[Node], rest: str) -> Node:
    """A sum with what is missing in it as its own line."""
    if not nodes:
        return Node(label, value)
    return Node(label, value, "sum", (*nodes, Node(rest, value - math.fsum(node.value for node in nodes))))


class _Compared:
    """A query, the passages of the candidates, and which of their tokens belong together."""

    def __init__(self, snapshot: Snapshot, matches: Matches, store: VectorStore, encoder: Encoder, matrix: str) -> None:
        matches.require_passages("a neural model")
        self._snapshot, self._matches, self._store, self._encoder = snapshot, matches, store, encoder
        self.query = matches.once(("query", store.folder), lambda: encode_query(encoder, matches.query.plain_text))
        self.found = find_passages(snapshot, matches, store, matrix)

    def place(self, row: int) -> tuple[int, int]:
        """The document of a passage, by its number in the index, and which of its passages it is."""
        candidate = int(self._matches.document_of_passage[row])
        return int(self._matches.number_of_document[candidate]), row - int(self._matches.document_of_passage.searchsorted(candidate))

    def best(self, row: int) -> Integers:
        """The vector of a passage that each token of the query found."""
        found: Integers = (self.found.vectors(row)[0] @ self.query.T).argmax(axis=0)
        return found

    def pairs(self, row: int) -> list[tuple[str, int, float]]:
        """Of each token of the query: how it is written, which token of the passage it found, and their product."""
        vectors, position = self.found.vectors(row)
        if not vectors.shape[0]:
            return []
        asked = self._encoder.written(self._matches.query.plain_text, query=True)
        return [
            (asked[i] if i < len(asked) else "", int(position[j]), float(vectors[j] @ self.query[i]))
            for i, j in enumerate(self.best(row).tolist())
        ]

    def said(self, row: int) -> Callable[[int], str]:
        """How a token of a passage is written."""
        document, passage = self.place(row)
        text = written_passages(self._snapshot, document, self._store.heading_path)[passage]
        written = self._encoder.written(text, query=False)
        return lambda token: repr(written[token]) if token < len(written) else "?"


def vector_column(snapshot: Snapshot, matches: Matches, store: VectorStore, query: Floats32) -> Column:
    """The dot product of a query's vector with each passage's, the best where a passage has several; 0 where it has none."""
    matches.require_passages("a neural model")
    values: Floats = max_sim(query.reshape(1, -1), find_passages(snapshot, matches, store, VECTORS))
    label = f"similarity by {store.name}"
    return Column(label, values, lambda row: Node(label, float(values[row])))


def find_passages(snapshot: Snapshot, matches: Matches, store: VectorStore, matrix: str) -> Found:
    """The vectors of all passages of the candidates."""
    found = store.find(snapshot, matches.number_of_document, matrix)
    if found.passages != matches.passages:
        raise UsageError(
            f"the store {store.name!r} has other passages than the index; bring it up to date with "
            f"`perikope encode {snapshot.folder} --name {store.name}`"
        )
    return found


def encode_query(encoder: Encoder, text: str) -> Floats32:
    """The vectors of a query's tokens."""
    import torch

    with torch.inference_mode(), single_threaded():
        vectors, mask = encoder.queries([text], full=False)
    found: Floats32 = vectors[0][mask[0]].float().cpu().numpy()
    return found


@lru_cache(maxsize=_STORES)
def _opened(folder: Path, name: str, changed: int, kind: Kind) -> VectorStore:
    return VectorStore.open(folder, name, kind)


def open_store(folder: Path, name: str, *kinds: Kind) -> VectorStore:
    """A store of one of some kinds, opened once until it is brought up to date."""
    check_name(name)
    path = folder / FOLDER / name / MANIFEST
    found = _opened(folder, name, path.stat().st_mtime_ns if path.is_file() else 0, kinds[0])
    if found.kind not in kinds:
        wanted = " or ".join(kinds)
        raise UsageError(f"the store {name!r} holds {found.kind}, not {wanted}; rank with {_MODEL_OF_KIND[found.kind]}(store={name})")
    return found


@lru_cache(maxsize=_STORES)
def _loaded_encoder(folder: Path, changed: int) -> Encoder:
    from perikope.neural.encoder import Encoder

    _survive_forks()
    return Encoder.load(str(folder))


@lru_cache(maxsize=_STORES)
def _loaded_ranker(folder: Path, changed: int) -> SavedRanker:
    import perikope.neural.encoder  # noqa: F401 - first, since it says which extra is missing

    _survive_forks()
    from perikope.neural.context_vectors import load_for_explanation

    return load_for_explanation(folder)


@cache
def _survive_forks() -> None:
    """Let torch compute on one thread in processes that are forked, as experiments do: those of the parent are not there, and it waits."""
    import torch

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def encoder_of(store: VectorStore) -> Encoder:
    """The encoder that a store was made with, loaded once."""
    folder = encoder_folder(store)
    return _loaded_encoder(folder, folder.stat().st_mtime_ns)


def ranker_of(store: VectorStore) -> SavedRanker:
    """The encoder and attention that a store was made with, loaded once."""
    folder = encoder_folder(store)
    return _loaded_ranker(folder, folder.stat().st_mtime_ns)


def encoder_folder(store: VectorStore) -> Path:
    """The folder of the encoder that a store was made with."""
    if store.encoder is None:
        raise UsageError(f"the store {store.name!r} has lost its encoder: remove {store.folder} and make it again with `perikope encode`")
    return store.encoder


def snapshot_of(matches: Matches) -> Snapshot:
    """The index that was looked into."""
    if matches.snapshot is None:
        raise UsageError("these matches were put together without an index, so there are no vectors of their passages")
    return matches.snapshot


def colbert_signals(
    matches: Matches,
    *,
    store: Annotated[str, Grid((STORE_OF_TOKENS,)), "Name of a store of token vectors, made by `perikope encode`."] = STORE_OF_TOKENS,
    refine: Annotated[
        int, Range(0, 1e9), Grid((0,)), "Number of passages compared exactly, the best by centroids alone; 0 compares all exactly."
    ] = 0,
) -> Signals:
    """MaxSim with the vectors of a store."""
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot.folder, store, "tokens")
    return {"maxsim": colbert_column(snapshot, matches, opened, encoder_of(opened), refine=refine)}


@model(colbert_signals)
def colbert(signals: Signals) -> Column:
    """How well each word of the query is matched by the meaning of a word in the passage.

    `Σ_i max_j E_q_i · E_p_j`, a vector a token (Khattab and Zaharia 2020). `store` is made by `perikope encode` and holds the vectors of
    all passages. With `refine` only so many passages are compared by their vectors, those that are best by the nearest centroids of them.
    """
    return signals["maxsim"]


def hgat_signals(
    matches: Matches,
    *,
    store: Annotated[
        str, Grid((STORE_IN_CONTEXT,)), "Name of a store that `perikope encode` made with a trained ranker."
    ] = STORE_IN_CONTEXT,
    variant: Annotated[Variant, Grid(("",)), "Variant that the store must have been made with; an empty text accepts any."] = "",
) -> Signals:
    """MaxSim with what graph attention made of the passages; in late fusion also with the passages alone, each by its share."""
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot.folder, store, "context")
    facts = opened.facts
    if variant and variant != facts["variant"]:
        raise UsageError(
            f"the store {store!r} was made with the variant {facts['variant']}, not {variant}; leave variant out, or encode anew"
        )
    ranker, alpha = ranker_of(opened), facts["alpha"]
    matches = matches.shared()
    context = context_column(snapshot, matches, opened, ranker)
    if alpha is None:
        return {"context": context}
    content = colbert_column(snapshot, matches, opened, ranker.encoder, matrix=CONTENT)
    return {"content": (1 - alpha) * content, "context": alpha * context}


@model(hgat_signals)
def hgat(signals: Signals) -> Column:
    """How well each word of the query is matched by a word of the passage, as graph attention understands it in its document.

    `Σ_i max_j E_q_i · E_j` with the vectors E of the passage in its context; in late fusion `(1 - α) sim(E_q, E_p) + α sim(E_q, E_context)`
    (equations 4 and 5 of Albarede et al. 2023). `store` is made by `perikope encode --encoder FOLDER` of a trained ranker, whose `variant`
    it has.
    """
    columns = list(signals.values())
    return columns[0] if len(columns) == 1 else sum_of("late fusion of passage and context", columns)


def vector_signals(
    matches: Matches,
    *,
    store: Annotated[str, Grid((POOLED_STORE,)), "Name of a store with one vector per passage."] = POOLED_STORE,
) -> Signals:
    """The similarity by one vector a passage."""
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot.folder, store, "pooled", "own")
    return {"similarity": vector_column(snapshot, matches, opened, query_vectors(snapshot, opened, matches.query.plain_text))}


@model(vector_signals)
def vectors(signals: Signals) -> Column:
    """Similarity by one vector a passage: those of `perikope encode --pooled`, or your own, of whatever model you like.

    `E_q · E_p`. Pooled vectors are the normalised mean of an encoder's tokens; `perikope.neural.models.add_vectors` takes vectors of your
    own, as they are given, and what encodes queries.
    """
    return signals["similarity"]


def query_vectors(snapshot: Snapshot, store: VectorStore, text: str) -> Floats32:
    """The vectors of a query that are compared with those of a store: one row, or one per token for token vectors."""
    if store.kind in ("tokens", "context"):
        return encode_query(encoder_of(store), text)
    encode = snapshot.query_encoders.get(store.name)
    if encode is None and store.kind == "own":
        raise UsageError(
            f"nothing turns queries into vectors of the store {store.name!r}: "
            f"call perikope.neural.models.set_query_encoder(index, {store.name!r}, …) after opening the index"
        )
    query = np.asarray(encode(text) if encode is not None else _pooled_query(encoder_of(store), text), np.float32)
    if query.shape != (store.codebook.dimension,) or not np.isfinite(query).all():
        raise UsageError(f"the vector of the query must have {store.codebook.dimension} finite values, not the shape {query.shape}")
    return query.reshape(1, -1)


def _pooled_query(encoder: Encoder, text: str) -> Floats32:
    from perikope.neural.pooled_vectors import pooled

    with single_threaded():
        return pooled(encoder, [text], query=True)[0]


def set_query_encoder(index: Index | Snapshot, store: str, query_vector: QueryEncoder) -> None:
    """Set what turns queries into vectors of a store, for this open index alone.

    `query_vector` takes a query and returns an array of shape (dimension,). Threads that search at the same time call
    it at the same time. A store of pooled vectors has an encoder of its own, which `query_vector` replaces. It is kept
    while the index is open, also over `commit`, `compact` and `refresh`.
    """
    snapshot = index if isinstance(index, Snapshot) else index.snapshot
    open_store(snapshot.folder, store, "own", "pooled")
    snapshot.query_encoders[store] = query_vector


def add_vectors(
    index: Index | Snapshot,
    name: str,
    passage_vectors: Callable[[Sequence[str]], Any],
    query_vector: QueryEncoder,
    dimension: int,
    **options: Any,
) -> VectorStore:
    """Make or bring up to date a store of vectors of the user's own: `passage_vectors` takes texts and gives a row each.

    The rows are kept as they are (in float16), so give them length 1 where cosines are wanted. `query_vector` takes a query. It belongs to
    this open index; after opening the index again, pass it to `set_query_encoder`, which encodes nothing.
    """
    from perikope.neural.stores.update import update_store

    def encode(texts: Sequence[str]) -> Any:
        rows = np.asarray(passage_vectors(texts), np.float32) if texts else np.zeros((0, dimension), np.float32)
        if rows.shape != (len(texts), dimension):
            raise UsageError(f"{len(texts)} texts must have as many vectors of {dimension} values, not the shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise UsageError("vectors must have finite values: there is an infinite one, or one that is no number")
        zero: Integers = np.zeros(1, np.int64)
        return ((number, row[None, :], zero) for number, row in enumerate(rows))

    snapshot = index if isinstance(index, Snapshot) else index.snapshot
    found = update_store(snapshot, name, encode, dimension, kind="own", **{"code": "float16", **options})
    set_query_encoder(snapshot, name, query_vector)
    return found
