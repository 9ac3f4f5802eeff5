"""Many topics against one index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perikope.api import Index
from perikope.errors import UsageError
from perikope.io.topics import Topic


def search_topics(
    index: Index, topics: Iterable[Topic], on_problem: Callable[[str], None], **options: Any
) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The ranking of each topic, as `write_run` takes them; a topic that cannot be a query is reported and has no results."""
    # Names and parameters are the same for all topics: an error in them is the user's, not a topic's.
    for topic in topics:
        ranking: list[tuple[str, float]] = []
        try:
            index.check_query(topic.query, language=options.get("language", ""))
        except UsageError as error:
            on_problem(f"topic {topic.qid}: {error}")
        else:
            ranking = index.search(topic.query, **options | ({"browse_query": topic.browse} if topic.browse else {})).names()
            if not ranking:
                on_problem(f"topic {topic.qid}: no passage holds any of its words")
        yield topic.qid, ranking
