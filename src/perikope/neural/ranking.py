"""Models that look passages up in a store of vectors: `colbert(store=NAME)`, and `vectors(store=NAME)` for vectors of any other model.

They score every passage of the candidates, whether it holds a word of the query or not, and fuse with the lexical models like any other:
`fuse(models=[bm25,colbert(store=minilm)])`. Torch is imported when a query is first encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from perikope.errors import UsageError
from perikope.index.reader import Snapshot
from perikope.matches import Matches
from perikope.models import Signals, model
from perikope.neural.store import Floats, Found, Integers, VectorStore
from perikope.neural.triples import with_path
from perikope.parameters import Grid
from perikope.signals import Column, Node

if TYPE_CHECKING:
    from perikope.neural.encoder import Encoder

DEFAULT_STORE = "colbert"
_PAIRS = 1 << 21
"""Pairs of query and passage tokens that are compared at a time."""
_STORES = 4

QueryEncoder = Callable[[str], Floats]


def max_sim(query: Floats, found: Found) -> NDArray[np.float64]:
    """`Σ_i max_j E_q_i · E_p_j` of a query with each passage; 0 for a passage without a vector."""
    scores = np.zeros(found.first_vector.size - 1)
    size = max(_PAIRS // max(query.shape[0], 1), 1)
    filled = np.flatnonzero(np.diff(found.first_vector) > 0)
    start = 0
    while start < filled.size:
        # Whole passages, so many that their products fit.
        first = int(found.first_vector[filled[start]])
        end = max(int(np.searchsorted(found.first_vector[filled + 1], first + size, "right")), start + 1)
        rows = filled[start:end]
        last = int(found.first_vector[rows[-1] + 1])
        products = found.vectors(first, last) @ query.T
        best = np.maximum.reduceat(products, found.first_vector[rows] - first, axis=0)
        scores[rows] = best.sum(axis=1, dtype=np.float64)
        start = end
    return scores


def colbert_column(snapshot: Snapshot, matches: Matches, store: VectorStore, encoder: Encoder) -> Column:
    """MaxSim of the query and each passage of the candidates; the explanation names the pair of every query token."""
    text = matches.query.text
    query = encode_query(encoder, text)
    found = store.find(snapshot, matches.number_of_document)
    check_passages(store, found, matches)
    values = max_sim(query, found)
    first_vector = found.first_vector
    label = "MaxSim of query and passage"

    def explain(row: int) -> Node:
        own = found.vectors(int(first_vector[row]), int(first_vector[row + 1]))
        if not own.shape[0]:
            return Node(label, 0.0)
        products = own @ query.T
        best = products.argmax(axis=0)
        asked = encoder.written(text, query=True)
        said = encoder.written(_text_of(snapshot, matches, row, store.heading_path), query=False)
        tokens = found.positions(int(first_vector[row]), int(first_vector[row + 1]))
        pairs = [
            Node(f"{asked[i]!r} ~ {said[int(tokens[j])]!r}", float(products[j, i])) for i, j in enumerate(best.tolist()) if i < len(asked)
        ]
        return Node(label, float(sum(pair.value for pair in pairs)), "sum", tuple(pairs))

    return Column(label, values, explain)


def vector_column(snapshot: Snapshot, matches: Matches, store: VectorStore, query: Floats) -> Column:
    """The dot product of a query's vector with each passage's, the best where a passage has several; 0 where it has none."""
    found = store.find(snapshot, matches.number_of_document)
    check_passages(store, found, matches)
    values = max_sim(query.reshape(1, -1), found)
    label = f"similarity by {store.folder.name}"
    return Column(label, values, lambda row: Node(label, float(values[row])))


def check_passages(store: VectorStore, found: Found, matches: Matches) -> None:
    """Raise where what is ranked is not what was encoded."""
    matches.require_passages("a neural model")
    if found.first_vector.size - 1 != matches.passages:
        raise UsageError(f"the store {store.folder.name!r} has other passages than the index; bring it up to date with `perikope encode`")


def encode_query(encoder: Encoder, text: str) -> Floats:
    """The vectors of a query's tokens."""
    import torch

    with torch.inference_mode():
        vectors, mask = encoder.queries([text], full=False)
    found: Floats = vectors[0][mask[0]].float().cpu().numpy()
    return found


def _text_of(snapshot: Snapshot, matches: Matches, row: int, heading_path: bool) -> str:
    from perikope.neural.triples import passages_of

    candidate = int(matches.document_of_passage[row])
    segment, local = snapshot.locate(int(matches.number_of_document[candidate]))
    place = row - int(matches.document_of_passage.searchsorted(candidate))
    _, text, path = passages_of(segment, local, segment.document_id(local))[place]
    return with_path(path if heading_path else (), text)


@lru_cache(maxsize=_STORES)
def _opened(folder: Path, name: str, changed: int) -> VectorStore:
    return VectorStore.open(folder, name)


def open_store(folder: Path, name: str) -> VectorStore:
    """A store, opened once until it is brought up to date."""
    from perikope.neural.store import FOLDER, MANIFEST

    path = folder / FOLDER / name / MANIFEST
    return _opened(folder.resolve(), name, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=_STORES)
def encoder_of(folder: Path) -> Encoder:
    """The encoder that a store was made with, loaded once."""
    from perikope.neural.encoder import Encoder

    return Encoder.load(str(folder))


def snapshot_of(matches: Matches) -> Snapshot:
    """The index that was looked into."""
    if matches.snapshot is None:
        raise UsageError("these matches were put together without an index, so there are no vectors of their passages")
    return matches.snapshot


def colbert_signals(matches: Matches, *, store: Annotated[str, Grid((DEFAULT_STORE,))] = DEFAULT_STORE) -> Signals:
    """MaxSim with the vectors of a store."""
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot.folder, store)
    if opened.encoder is None:
        raise UsageError(f"the store {store!r} holds vectors of your own, and no encoder of queries; rank with vectors(store={store})")
    return {"maxsim": colbert_column(snapshot, matches, opened, encoder_of(opened.encoder))}


@model(colbert_signals)
def colbert(signals: Signals) -> Column:
    """How well each word of the query is matched by the meaning of a word in the passage.

    `Σ_i max_j E_q_i · E_p_j`, a vector a token (Khattab and Zaharia 2020). `store` is made by `perikope encode` and holds the vectors of
    all passages.
    """
    return signals["maxsim"]


def vector_signals(matches: Matches, *, store: Annotated[str, Grid((DEFAULT_STORE,))] = DEFAULT_STORE) -> Signals:
    """The similarity by vectors of the user's own."""
    snapshot = snapshot_of(matches)
    opened = open_store(snapshot.folder, store)
    if store not in QUERY_ENCODERS:
        raise UsageError(
            f"nothing turns queries into vectors of the store {store!r}: set perikope.neural.ranking.QUERY_ENCODERS[{store!r}]"
        )
    query = np.asarray(QUERY_ENCODERS[store](matches.query.text), np.float32)
    if query.shape != (opened.codebook.dimension,) or not np.isfinite(query).all():
        raise UsageError(f"the vector of the query must have {opened.codebook.dimension} finite values, not the shape {query.shape}")
    return {"similarity": vector_column(snapshot, matches, opened, query)}


@model(vector_signals)
def vectors(signals: Signals) -> Column:
    """Similarity by vectors of your own, one a passage, of whatever model you like.

    `E_q · E_p`, the vectors as they were given; `perikope.neural.ranking.add_vectors` takes those of passages and what encodes queries.
    """
    return signals["similarity"]


QUERY_ENCODERS: dict[str, QueryEncoder] = {}
"""What makes a vector of a query, by the store of the passages' vectors."""


def add_vectors(
    snapshot: Snapshot,
    name: str,
    passage_vectors: Callable[[Sequence[str]], Any],
    query_vector: QueryEncoder,
    dimension: int,
    **options: Any,
) -> VectorStore:
    """Make or bring up to date a store of vectors of the user's own: `passage_vectors` takes texts and gives a row each.

    The rows are kept as they are (in float16), so give them length 1 where cosines are wanted.
    """
    from perikope.neural.store import update_store

    def encode(texts: Sequence[str]) -> Any:
        rows = np.asarray(passage_vectors(texts), np.float32) if texts else np.zeros((0, dimension), np.float32)
        if rows.shape != (len(texts), dimension) or not np.isfinite(rows).all():
            raise UsageError(f"{len(texts)} texts must have as many vectors of {dimension} finite values, not the shape {rows.shape}")
        zero: Integers = np.zeros(1, np.int64)
        return ((number, row[None, :], zero) for number, row in enumerate(rows))

    found = update_store(snapshot, name, encode, dimension, **{"code": "float16", "facts": {"own": True}, **options})
    QUERY_ENCODERS[name] = query_vector
    return found
