"""Many topics against one index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from perikope.api import Index
from perikope.errors import UsageError
from perikope.io.runs import Run
from perikope.io.topics import Topic
from perikope.names import split_name


def search_topics(
    index: Index, topics: Iterable[Topic], on_problem: Callable[[str], None], *, candidates: Run | None = None, **options: Any
) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The ranking of each topic, as `write_run` takes them; a topic that cannot be a query is reported and has no results.

    With `candidates`, a run of documents or passages, the documents of each topic are taken from there.
    """
    # Names and parameters are the same for all topics: an error in them is the user's, not a topic's.
    for topic in topics:
        ranking: list[tuple[str, float]] = []
        try:
            index.check_query(topic.query, language=options.get("language", ""))
        except UsageError as error:
            on_problem(f"topic {topic.qid}: {error}")
        else:
            own: dict[str, Any] = {"browse_query": topic.browse} if topic.browse else {}
            if candidates is not None:
                own["candidates"] = documents_of(candidates.get(topic.qid, {}))
            ranking = index.search(topic.query, **options | own).names()
            if not ranking:
                on_problem(f"topic {topic.qid}: no passage holds any of its words")
        yield topic.qid, ranking


def documents_of(scores: Mapping[str, float]) -> dict[str, float]:
    """The documents of ranked documents or passages, each with its best score.

    >>> documents_of({"d1#p1": 2.0, "d2": 1.5, "d1#p2": 1.0})
    {'d1': 2.0, 'd2': 1.5}
    """
    best: dict[str, float] = {}
    for name, score in scores.items():
        document = split_name(name)[0]
        best[document] = max(score, best.get(document, score))
    return best
