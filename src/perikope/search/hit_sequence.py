"""Hits in order, wherever they come from: what results of an index and results of a server have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perikope.search.hits import Hit
from perikope.search.views import results_html, results_text

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def note_on_missing(shards: Sequence[int]) -> tuple[str, ...]:
    """The sentence for the user about shards that did not answer, if there are any.

    >>> note_on_missing([2])
    ('shard 2 of the cluster does not answer: its documents are missing from the results',)
    """
    if not shards:
        return ()
    named = f"shard {shards[0]} of the cluster does" if len(shards) == 1 else f"shards {', '.join(map(str, shards))} of the cluster do"
    return (f"{named} not answer: {'its' if len(shards) == 1 else 'their'} documents are missing from the results",)


class HitSequence(Sequence[Hit]):
    """Hits, best first, with what a search says about them."""

    model: str
    """The model that ranked, with the parameters that differ from their defaults, as in `bm25(k1=0.6)`."""

    @property
    @abstractmethod
    def missing_shards(self) -> tuple[int, ...]:
        """The numbers of the shards of a cluster that did not answer, so that their documents are missing."""

    @property
    def complete(self) -> bool:
        """Whether all documents were searched. Only a cluster from which partial answers are asked may lack some."""
        return not self.missing_shards

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user about what could not be done as requested, and about words that may be misspelt."""

    def __repr__(self) -> str:
        return results_text(self, self.notes)

    def _repr_html_(self) -> str:
        """The hits as a notebook shows them."""
        return results_html(self, self.notes)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The hits as dictionaries that can be written as JSON, with the same keys as `perikope search --json`.

        If shards of a cluster are missing, each says so: `complete` is false, and `missing_shards` lists them.
        """
        missing = {} if self.complete else {"complete": False, "missing_shards": list(self.missing_shards)}
        return [{**hit.to_dict(), "model": self.model, **missing} for hit in self]

    def to_pandas(self) -> pandas.DataFrame:
        """The hits as a pandas data frame: one row per hit, with a column `metadata.NAME` for each metadata field.

        pandas must be installed.
        """
        from perikope.search.frames import to_pandas

        return to_pandas(list(self))

    def to_polars(self) -> polars.DataFrame:
        """The hits as a polars data frame, with the same columns as `to_pandas`. polars must be installed."""
        from perikope.search.frames import to_polars

        return to_polars(list(self))

    def to_arrow(self) -> pyarrow.Table:
        """The hits as an Arrow table, with the same columns as `to_pandas`. pyarrow must be installed."""
        from perikope.search.frames import to_arrow

        return to_arrow(list(self))

    def names(self) -> list[tuple[str, float]]:
        """The name (`document#passage`) and score of each hit, as in a run file."""
        return [(hit.name, hit.score) for hit in self]
