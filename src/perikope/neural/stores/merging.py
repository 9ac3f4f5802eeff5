"""Merge the batches of a store, so that their number is limited however often the store is updated.

A batch is the folder of vectors that one update wrote. An open store maps two files or more per batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perikope.neural.stores.codebook import CodedDocument
from perikope.neural.stores.store import VectorStore

MAX_BATCHES = 12
"""The maximum number of batches after an update."""
_MERGED = 8
"""The number of batches that are merged if there are too many; those with the fewest documents are chosen."""


def batches_to_merge(held: Sequence[int], live: Sequence[int], new: int) -> list[int]:
    """The numbers of the batches that an update merges into one, in ascending order.

    `held` has the number of documents in each batch, `live` how many of them the index still has, and `new` is the
    number of batches that the update adds. A batch that is mostly deleted is rewritten.

    >>> batches_to_merge([9] * 3, [9, 4, 0], 1)
    [1]
    >>> batches_to_merge([9, *[1] * 11], [9, *[1] * 11], 1)
    [1, 2, 3, 4, 5, 6, 7, 8]
    """
    used = [batch for batch, count in enumerate(live) if count]
    chosen = {batch for batch in used if 2 * live[batch] < held[batch]}
    if len(used) + new > MAX_BATCHES:
        chosen |= set(sorted(used, key=lambda batch: (live[batch], batch))[:_MERGED])
    return sorted(chosen)


def copied(store: VectorStore, locations: Sequence[tuple[int, int]]) -> Iterator[list[CodedDocument]]:
    """The packed vectors of documents, verified: one list per document, with one item per matrix.

    `locations` are pairs of a batch and a number in the batch.
    """
    for batch, number in locations:
        yield [store.packed(batch, number, matrix) for matrix in store.manifest.matrices]
