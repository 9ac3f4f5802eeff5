"""Learns the weights of the model `position_prior` by the method of Gobeill and Ruch 2012.

Descriptions of patents are divided into tenths. The weight of a tenth compares how often relevant passages are in it
with how often passages returned by a search are in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from perikope.browse.matches import Matches, join
from perikope.browse.models import parse_model
from perikope.browse.models.prior import DESCRIPTION, TENTHS, learn_prior, tenth_of_passage
from perikope.core.cores import usable_cores
from perikope.core.errors import UsageError
from perikope.core.parallel import in_parallel
from perikope.evaluation.learning.examples import JudgedTopics, best_of, check_options
from perikope.fetch import Candidates
from perikope.index.reader import Snapshot
from perikope.query.terms import Query
from perikope.query.topic import Topic
from perikope.search.fetching import documents_of
from perikope.search.naming import rows_of


@dataclass(frozen=True, slots=True)
class LearnedPrior:
    """The weights of the ten tenths of a description, and the counts from which they were learned."""

    weights: tuple[float, ...]
    """One weight per tenth."""
    relevant: tuple[int, ...]
    """Number of relevant passages in each tenth."""
    returned: tuple[int, ...]
    """Number of passages in each tenth that the search returned."""
    elsewhere: int
    """Number of relevant passages outside of descriptions."""
    unknown: tuple[str, ...]
    """Names that are judged relevant but are not passages of the index."""
    training: dict[str, Any]
    """A description of the input, as `JudgedTopics.facts` returns it, with the model and `k`."""

    def values(self) -> dict[str, Any]:
        """The values that `write_table` stores."""
        counts = {"relevant": list(self.relevant), "returned": list(self.returned)}
        return {"weights": list(self.weights), **counts, "training": self.training}


@dataclass(frozen=True, slots=True)
class _TenthCounts:
    """The tenth, from 0, of each relevant and each returned passage of one topic; -1 outside of descriptions."""

    relevant: list[int]
    returned: list[int]
    unknown: list[str]


def learn_prior_of_run(source: JudgedTopics, on_topic: Callable[[], object] = lambda: None) -> LearnedPrior:
    """Learn from all relevant passages of the topics, and from the best `k` passages that the search returns per topic.

    A passage is counted once per topic to which it is relevant, and once per topic for which it is returned. `on_topic`
    is called once per finished topic.
    """
    check_options(source.options)

    def counted(topic: Topic) -> _TenthCounts:
        search, matches = source.look_into(topic)
        relevant_names = [name for name, grade in source.judgements.get(topic.qid, {}).items() if grade > 0]
        # All documents with relevant passages are used, because relevant passages that the search misses are counted.
        judged = _documents_holding(source.snapshot, relevant_names)
        rows = rows_of(source.snapshot, judged, relevant_names)
        unknown = [name for name in relevant_names if name not in rows]
        returned = best_of(search, matches, source.options.k)
        return _TenthCounts(_tenths(judged, np.array(list(rows.values()), np.int64)), _tenths(matches, returned.rows), unknown)

    topics = []
    for _, of_topic in in_parallel(counted, source.topics, source.threads or usable_cores()):
        topics.append(of_topic)
        on_topic()
    relevant = [tenth for topic in topics for tenth in topic.relevant]
    returned = [tenth for topic in topics for tenth in topic.returned]
    for tenths, what in ((relevant, "passage that is judged relevant"), (returned, "passage that the run returns")):
        if max(tenths, default=-1) < 0:
            raise UsageError(
                f"no {what} is in a part named {DESCRIPTION}, the only part that the prior weights; check the parts of the index"
            )
    training = {**source.facts(), "model": str(parse_model(source.options.model)), "k": source.options.k}
    unknown = tuple(dict.fromkeys(name for topic in topics for name in topic.unknown))
    counts = _counts(relevant), _counts(returned)
    return LearnedPrior(learn_prior(relevant, returned), *counts, relevant.count(-1), unknown, training)


def _documents_holding(snapshot: Snapshot, names: list[str]) -> Matches:
    """The matches of an empty query in the documents of the named passages. Tenths of passages need no query."""
    numbers = [number for document in documents_of(dict.fromkeys(names, 0.0)) if (number := snapshot.find_document(document)) >= 0]
    return join(snapshot, Query("", (), ()), Candidates(np.array(numbers, np.int64), np.zeros(len(numbers))))


def _tenths(matches: Matches, rows: Any) -> list[int]:
    tenths: list[int] = tenth_of_passage(matches)[rows].tolist()
    return tenths


def _counts(tenths: list[int]) -> tuple[int, ...]:
    return tuple(tenths.count(tenth) for tenth in range(TENTHS))
