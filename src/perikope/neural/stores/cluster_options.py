"""The options and files of clusters, by which a search finds the nearest vectors without comparing all of them."""

from __future__ import annotations

from dataclasses import dataclass

from perikope.core.options import Options, option
from perikope.core.parameters import Range
from perikope.core.values import Real, Whole

CLUSTER_FILES = ("centres.npy", "sizes.npy", "ranges.npy", "entries.npy")
"""The files of the clusters of a store."""


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(Options):
    """When a store with one vector per passage has clusters, how they are made, and how much of them a search reads."""

    clusters_from: int = option(
        1_000_000,
        Whole(Range(1)),
        "Fewest passages for which clusters are made and used; fewer are all compared with the query. A filter that leaves fewer "
        "passages has the same effect.",
        metavar="N",
    )
    clusters: int = option(
        0,
        Whole(Range(0, 1_000_000)),
        "Number of clusters; 0 for four times the square root of the number of passages.",
        metavar="N",
    )
    cluster_share: float = option(
        0.1,
        Real(Range(0, 1, low_open=True)),
        "Share of the clusters that a search reads, those nearest to the query.",
        metavar="X",
    )
    cluster_candidates: int = option(
        4,
        Whole(Range(1, 1000)),
        "Number of passages that the clusters give per document that is wanted.",
        metavar="N",
    )
