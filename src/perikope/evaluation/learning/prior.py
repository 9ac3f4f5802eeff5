"""Where in descriptions does the relevant stand, against what a run returns? The weights of `position_prior` (Gobeill and Ruch 2012)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perikope.browse.models.prior import DESCRIPTION, TENTHS, learn_prior, tenth_of_passage
from perikope.core.errors import UsageError
from perikope.core.parallel import in_parallel, usable_cores
from perikope.evaluation.learning.examples import Source
from perikope.fetch.prior_art import PatentQuery
from perikope.query.topic import Topic
from perikope.search.batch import documents_of
from perikope.search.facade import Results


@dataclass(frozen=True, slots=True)
class LearnedPrior:
    """The weights of the ten tenths, and what they were counted from."""

    weights: tuple[float, ...]
    relevant: tuple[int, ...]
    """Relevant passages in each tenth."""
    returned: tuple[int, ...]
    """Passages in each tenth that the run returned."""
    elsewhere: int
    """Relevant passages that stand in no description."""
    unknown: tuple[str, ...]
    """What is judged relevant and is no passage of the index."""
    training: dict[str, Any]

    def values(self) -> dict[str, Any]:
        """As `write_table` takes it."""
        counts = {"relevant": list(self.relevant), "returned": list(self.returned)}
        return {"weights": list(self.weights), **counts, "training": self.training}


@dataclass(frozen=True, slots=True)
class _Counted:
    """Tenths of one topic's passages, -1 outside of descriptions."""

    relevant: list[int]
    returned: list[int]
    unknown: list[str]


def learn_prior_of_run(source: Source, k: int, on_topic: Callable[[], object] = lambda: None) -> LearnedPrior:
    """Learn from the relevant passages of all topics, found or not, and from the best `k` passages that a search returns for each.

    A passage counts once for every topic that it is relevant to, or returned for.
    """
    if source.options.get("elements"):
        raise UsageError("the prior is learned from passages; leave --elements out")

    def counted(topic: Topic) -> _Counted:
        found = source.search(topic, k)
        wanted = [name for name, grade in source.judgements.get(topic.qid, {}).items() if grade > 0]
        # Fetched or not: what a run misses belongs to the judgements all the same.
        holding = documents_of(dict.fromkeys(wanted, 0.0))
        query = source.query(topic)
        query = replace(query, filters=()) if isinstance(query, PatentQuery) else query
        judged = source.index.search(query, candidates=holding, documents=max(len(holding), 1), k=1, **_reading(source))
        rows = judged.rows_of(wanted)
        unknown = [name for name in wanted if name not in rows]
        return _Counted(_tenths(judged, np.array(list(rows.values()), np.int64)), _tenths(found, found.ranking.rows), unknown)

    topics = []
    for _, of_topic in in_parallel(counted, source.topics, source.threads or usable_cores()):
        topics.append(of_topic)
        on_topic()
    relevant = [tenth for topic in topics for tenth in topic.relevant]
    returned = [tenth for topic in topics for tenth in topic.returned]
    for tenths, what in ((relevant, "passage that is judged relevant"), (returned, "passage that the run returns")):
        if max(tenths, default=-1) < 0:
            raise UsageError(
                f"no {what} stands in a part named {DESCRIPTION}, and the prior is about no other; check the parts of the index"
            )
    plain = {name: value for name, value in sorted(source.options.items()) if value and isinstance(value, (str, int, float))}
    training = {**source.facts(), "search": plain, "model": str(source.model), "k": k}
    unknown = tuple(dict.fromkeys(name for topic in topics for name in topic.unknown))
    counts = _counts(relevant), _counts(returned)
    return LearnedPrior(learn_prior(relevant, returned), *counts, relevant.count(-1), unknown, training)


def _reading(source: Source) -> dict[str, Any]:
    """How queries are read, without what says which documents or passages may be found."""
    return {name: source.options[name] for name in ("language", "syntax") if name in source.options}


def _tenths(results: Results, rows: Any) -> list[int]:
    tenths: list[int] = tenth_of_passage(results.matches)[rows].tolist()
    return tenths


def _counts(tenths: list[int]) -> tuple[int, ...]:
    return tuple(tenths.count(tenth) for tenth in range(TENTHS))
