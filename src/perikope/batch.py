"""Many topics against one index."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from perikope.api import Index
from perikope.errors import UsageError
from perikope.io.runs import Run
from perikope.io.topics import Topic
from perikope.names import encode, split_name
from perikope.workers import usable_cores

T = TypeVar("T")
R = TypeVar("R")


def search_topics(
    index: Index,
    topics: Iterable[Topic],
    on_problem: Callable[[str], None],
    *,
    candidates: Run | None = None,
    threads: int | None = None,
    k: int = 10,
    document_ranking: str = "",
    **options: Any,
) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The ranking of each topic, in order, as `write_run` takes them; a topic that cannot be a query is reported and has no results.

    With `candidates`, a run of documents or passages, the documents of each topic are taken from there. Topics are searched by
    several `threads`, as many as the process may use; a ranking does not depend on how many there are. With `document_ranking` (`maxp` …)
    the results are documents, by their passages; see `perikope.document_ranking`.
    """
    options["k"] = 1 if document_ranking else k

    def search(topic: Topic) -> tuple[list[tuple[str, float]], str]:
        try:
            for text in filter(None, (topic.query, topic.browse)):
                index.check_query(text, language=options.get("language", ""), syntax=options.get("syntax", "words"))
        except UsageError as error:
            return [], str(error)
        own = options_of(topic, options)
        if candidates is not None:
            own["candidates"] = documents_of(candidates.get(topic.qid, {}))
        # Names and parameters are the same for all topics: an error in them is the user's, not a topic's.
        results = index.search(topic.query, **own)
        if document_ranking:
            ranking = [(encode(id), score) for id, score in results.document_ranking(document_ranking, k)]
        else:
            ranking = results.names()
        return ranking, "" if ranking else "no passage holds any of its words, or may be found"

    for topic, (ranking, problem) in in_parallel(search, topics, threads or usable_cores()):
        if problem:
            on_problem(f"topic {topic.qid}: {problem}")
        yield topic.qid, ranking


def options_of(topic: Topic, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `Index.search` for a topic, which may bring its own."""
    own: dict[str, Any] = {"browse_query": topic.browse} if topic.browse else {}
    if topic.filter:
        own["filter"] = [*options.get("filter", ()), *topic.filter]
    if topic.shares_codes_with:
        own["shares_codes_with"] = topic.shares_codes_with
    return {**options, **own}


def in_parallel(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[tuple[T, R]]:
    """Each item with its result, in order; only a few are ahead of what was asked for."""
    if threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    waiting: deque[tuple[T, Future[R]]] = deque()
    with ThreadPoolExecutor(threads, "search") as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > 4 * threads:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


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
