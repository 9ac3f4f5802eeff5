"""Many topics against one index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from perikope.core.errors import InputError, UsageError
from perikope.core.names import encode, split_name
from perikope.core.parallel import in_parallel, usable_cores
from perikope.fetch.prior_art import PatentQuery
from perikope.formats._unpack import stem
from perikope.patents.translation import TranslationError
from perikope.query.patent import Forms
from perikope.query.topic import Topic
from perikope.search.facade import Index, Results

Run = Mapping[str, Mapping[str, float]]
"""Scores by topic and name."""


def search_topics(
    index: Index,
    topics: Iterable[Topic],
    on_problem: Callable[[str], None],
    *,
    candidates: Run | None = None,
    threads: int | None = None,
    k: int = 10,
    document_ranking: str = "",
    ranking_of: Callable[[Results], list[Any]] = Results.names,
    patent_options: Mapping[str, Any] | None = None,
    patent_folder: str | os.PathLike[str] = "",
    on_note: Callable[[str], None] | None = None,
    **options: Any,
) -> Iterator[tuple[str, list[Any]]]:
    """The ranking of each topic, in order, as `write_run` takes them; a topic that cannot be a query is reported and has no results.

    With `candidates`, a run of documents or passages, the documents of each topic are taken from there. Topics are searched by
    several `threads`, as many as the process may use; a ranking does not depend on how many there are. With `document_ranking` (`maxp` …)
    the results are documents, by their passages; see `browse.document_ranking`. `ranking_of` makes of results what a run of another form
    holds.

    A topic may be a patent: `patent_options` are those of `Index.patent_query`, and its file is looked for in `patent_folder` too.
    `on_note` hears what could not be done as it was asked for.
    """
    of_patents = dict(patent_options or {})
    # Wrong for all topics: the user's mistake, not a topic's.
    Forms(**{field.name: of_patents[field.name] for field in fields(Forms) if field.name in of_patents})
    options["k"] = 1 if document_ranking else k

    def search(topic: Topic) -> tuple[list[Any], str, tuple[str, ...]]:
        try:
            query = query_of(index, topic, options, of_patents, patent_folder)
            for text in filter(None, (topic.query, topic.browse)):
                index.check_query(text, language=options.get("language", ""), syntax=options.get("syntax", "words"))
        except (UsageError, InputError, TranslationError) as error:
            return [], str(error), ()
        notes = query.notes if isinstance(query, PatentQuery) else ()
        own = options_of(topic, options)
        if candidates is not None:
            own["candidates"] = documents_of(candidates.get(topic.qid, {}))
        # Names and parameters are the same for all topics: an error in them is the user's, not a topic's.
        results = index.search(query, **own)
        if document_ranking:
            ranking = [(encode(id), score) for id, score in results.document_ranking(document_ranking, k)]
        else:
            ranking = ranking_of(results)
        return ranking, "" if ranking else "no passage holds any of its words, or may be found", notes

    for topic, (ranking, problem, notes) in in_parallel(search, topics, threads or usable_cores()):
        if problem:
            on_problem(f"topic {topic.qid}: {problem}")
        if on_note is not None:
            for note in notes:
                on_note(f"topic {topic.qid}: {note}")
        yield topic.qid, ranking


def query_of(
    index: Index,
    topic: Topic,
    options: Mapping[str, Any],
    patent_options: Mapping[str, Any] | None = None,
    patent_folder: str | os.PathLike[str] = "",
) -> str | PatentQuery:
    """What `Index.search` takes for a topic: its text, or its patent; where it has both, its text fetches and the claims score passages."""
    if not topic.patent:
        return topic.query
    language, level = options.get("language", ""), options.get("code_level", "full")
    patent = index.patent_query(
        _located(topic.patent, os.fspath(patent_folder)),
        topic.claims,
        family=topic.family,
        language=language,
        **{"code_level": level, **(patent_options or {})},
    )
    if not topic.query:
        return patent
    return replace(patent, fetch=index.check_query(topic.query, language=language, syntax=options.get("syntax", "words")))


def _located(patent: str, folder: str) -> str:
    """A patent's file, as it is written or in a folder; where there is none, the number that its name is."""
    for path in (patent, os.path.join(folder, patent)):
        if os.path.isfile(path):
            return path
    name = stem(os.path.basename(patent))
    return name[: -len(".xml")] if name.lower().endswith(".xml") else patent


def options_of(topic: Topic, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `Index.search` for a topic, which may bring its own."""
    own: dict[str, Any] = {"browse_query": topic.browse} if topic.browse else {}
    if topic.filter:
        own["filter"] = [*options.get("filter", ()), *topic.filter]
    if topic.shares_codes_with:
        own["shares_codes_with"] = topic.shares_codes_with
    return {**options, **own}


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
