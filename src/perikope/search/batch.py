"""Search one index for many topics."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack

from perikope.core.errors import InputError, UsageError
from perikope.core.names import encode
from perikope.core.parallel import in_parallel, usable_cores
from perikope.index.reader import Snapshot
from perikope.patents.translation import TranslationError
from perikope.query.language import language_name
from perikope.query.topic import Topic
from perikope.search.asking import Prepared
from perikope.search.facade import Index
from perikope.search.fetching import documents_of
from perikope.search.keywords import SearchKeywords
from perikope.search.options import SearchOptions
from perikope.search.recipes import Recipe, load_recipe, resolve_options
from perikope.search.results import Results
from perikope.search.steps import Search, search_for

Run = Mapping[str, Mapping[str, float]]
"""Scores by topic id and then by name of the passage or document."""

NOTHING_FOUND = "no passage contains a word of the query and satisfies all conditions"
"""The message about a topic that has no results."""


def with_candidates(topics: Iterable[Topic], run: Run) -> list[Topic]:
    """The topics, each with the documents that a run has for it as the option `candidates`.

    These documents replace fetching. The run may rank documents or passages.
    """
    return [replace(topic, options={**topic.options, "candidates": documents_of(run.get(topic.qid, {}))}) for topic in topics]


class PreparedTopic:
    """A topic with its search and query, or with the reason why it cannot be searched for."""

    def __init__(self, topic: Topic, ready: tuple[Search, Prepared] | None, problem: str = "") -> None:
        self.topic = topic
        self.problem = problem
        """Why the topic cannot be searched for; empty if it can."""
        self._ready = ready

    @property
    def search(self) -> Search:
        """The search with the options of the topic."""
        assert self._ready is not None, self.problem
        return self._ready[0]

    @property
    def prepared(self) -> Prepared:
        """The query of the topic in terms of the index."""
        assert self._ready is not None, self.problem
        return self._ready[1]


def prepare_topic(snapshot: Snapshot, topic: Topic, options: SearchOptions) -> PreparedTopic:
    """Prepare a topic for searching.

    `options` are for all topics; an error in them is raised. An error in the topic or in its own options becomes the
    `problem` of the result, so that the search for other topics can continue.
    """
    try:
        search = search_for(snapshot, topic, options)
    except UsageError as error:
        Search(snapshot, options)
        return PreparedTopic(topic, None, str(error))
    try:
        return PreparedTopic(topic, (search, search.prepare(topic)))
    except (UsageError, InputError, TranslationError) as error:
        return PreparedTopic(topic, None, str(error))


def notes_on_topics(asked: Iterable[PreparedTopic]) -> str:
    """A sentence that counts the topics whose queries are not as asked, and quotes the first note.

    It is empty if all are as asked. An example is a patent in a language that is not searched.
    """
    notes = [f"topic {topic.topic.qid}: {topic.prepared.notes[0]}" for topic in asked if not topic.problem and topic.prepared.notes]
    if not notes:
        return ""
    return f"{len(notes)} topic{'' if len(notes) == 1 else 's'} could not be searched exactly as asked: {notes[0]}"


def search_topics(
    index: Index,
    topics: Iterable[Topic],
    on_problem: Callable[[str], None],
    *,
    threads: int | None = None,
    document_ranking: str = "",
    ranking_of: Callable[[Results], list[Any]] = Results.names,
    on_note: Callable[[str], None] | None = None,
    recipe: str | Recipe = "",
    options: SearchOptions | None = None,
    **given: Unpack[SearchKeywords],
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the id and the ranking of each topic, in the order of the topics, as `write_run` takes them.

    A topic that cannot be searched for, or that has no results, is reported to `on_problem` and has an empty ranking.
    `on_note` receives sentences about what could not be done as requested.

    `threads` is the number of topics searched at the same time, by default the number of usable cores. It does not
    change the rankings. With `document_ranking` (such as `maxp`), the results are documents, ranked by their passages;
    see `browse.document_ranking`. `ranking_of` converts results into the list that the format of the run needs; the
    default is a list of names and scores. Recipe, options and keywords are the same as in `Index.search`.
    """
    followed = load_recipe(recipe) if recipe else None
    chosen = resolve_options(followed, given, options)
    k = chosen.k
    if document_ranking:
        chosen = chosen.updated({"k": 1})

    def search(topic: Topic) -> tuple[list[Any], str, tuple[str, ...], str]:
        asked = prepare_topic(index.snapshot, topic, chosen)
        if asked.problem:
            return [], asked.problem, (), ""
        for complaint in asked.search.complaints(asked.prepared, followed):
            warnings.warn(complaint, stacklevel=2)
        results = asked.search.run(asked.prepared)
        if document_ranking:
            ranking = [(encode(id), score) for id, score in results.document_ranking(document_ranking, k)]
        else:
            ranking = ranking_of(results)
        return ranking, "" if ranking else NOTHING_FOUND, asked.prepared.notes, asked.prepared.language

    searched: Counter[str] = Counter()
    for topic, (ranking, problem, notes, language) in in_parallel(search, topics, threads or usable_cores()):
        searched[language] += 1
        if problem:
            on_problem(f"topic {topic.qid}: {problem}")
        if on_note is not None:
            for note in notes:
                on_note(f"topic {topic.qid}: {note}")
        yield topic.qid, ranking
    if on_note is not None and any(searched):
        on_note(_note_on_languages(searched))


def _note_on_languages(searched: Counter[str]) -> str:
    """A sentence that counts topics by the language that was detected and searched; empty text for no such language."""
    counted = [f"{count} in {language_name(code)}" for code, count in sorted(searched.items()) if code]
    others = [f"{searched['']} in all languages or in the given one"] if searched[""] else []
    return f"topics were searched in their languages: {', '.join([*counted, *others])}; --language sets the language of all topics"
