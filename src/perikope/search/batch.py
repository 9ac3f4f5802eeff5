"""Search one index for many queries or topics, in several threads or processes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from perikope.browse.candidate_set import expect_searches
from perikope.browse.models import parse_model
from perikope.core.cores import usable_cores
from perikope.core.errors import InputError, UsageError
from perikope.core.names import encode
from perikope.core.parallel import can_fork, in_parallel, in_processes
from perikope.fetch.prior_art import PatentQuery
from perikope.index.reader import Snapshot
from perikope.patents.translation import TranslationError
from perikope.query.language import language_name
from perikope.query.topic import Topic
from perikope.search.all_names import expect_names
from perikope.search.asking import Asked, Prepared, check_about_patents
from perikope.search.best import BestModel, best_model
from perikope.search.fetching import documents_of
from perikope.search.keywords import SearchKeywords
from perikope.search.options import BEST, SearchOptions
from perikope.search.recipes import Recipe, load_recipe, resolve_options
from perikope.search.results import Results
from perikope.search.steps import Search, search_for

if TYPE_CHECKING:
    from perikope.search.facade import Index

A = TypeVar("A", bound="str | Topic | PatentQuery")
R = TypeVar("R")

Run = Mapping[str, Mapping[str, float]]
"""Scores by topic id and then by name of the passage or document."""

PORTION = 16
"""Topics whose terms are looked up together. A process takes so many at a time."""

_ALONE = 3
"""So many queries are searched before processes are forked. From the third on, candidates that they share are kept."""

NOTHING_FOUND = "no passage matches the query and satisfies all conditions"
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
    ready = _prepare(snapshot, topic, options)
    return PreparedTopic(topic, None, ready.why) if isinstance(ready, _Refused) else PreparedTopic(topic, ready)


@dataclass(frozen=True, slots=True)
class _Refused:
    """A query that cannot be searched for."""

    why: str


def _prepare(snapshot: Snapshot, asked: Asked, options: SearchOptions, best: BestModel | None = None) -> tuple[Search, Prepared] | _Refused:
    """The search for a query, and the query in terms of the index. An error in `options` is raised."""
    try:
        search = search_for(snapshot, asked, options, best)
    except UsageError as error:
        Search(snapshot, options)
        return _Refused(str(error))
    return _prepared_by(search, asked)


def _prepared_by(search: Search, asked: Asked) -> tuple[Search, Prepared] | _Refused:
    """A search, and a query in terms of its index."""
    try:
        return search, search.prepare(asked)
    except (UsageError, InputError, TranslationError) as error:
        return _Refused(str(error))


def _search_all(
    snapshot: Snapshot,
    queries: Iterable[Asked],
    options: SearchOptions,
    recipe: Recipe | None,
    threads: int | None,
    finish: Callable[[Prepared, Results], R],
    best: BestModel | None,
    *,
    copied: bool = False,
) -> Iterator[tuple[Asked, R | _Refused]]:
    """Yield each query with `finish` of its prepared form and its results, in the order of the queries.

    `best` is the best model of the index if the options name none. All queries are ranked by the same model. `copied`
    says that results of `finish` can be copied from another process, so that processes may do the work.
    """
    shared: list[Search] = []

    def prepare(asked: Asked) -> tuple[Search, Prepared] | _Refused:
        if isinstance(asked, Topic) and asked.options:
            return _prepare(snapshot, asked, options, best)
        if not shared:
            shared.append(Search(snapshot, options, best))
        return _prepared_by(shared[0], asked)

    def search(asked: Asked, ready: tuple[Search, Prepared] | _Refused) -> R | _Refused:
        if isinstance(ready, _Refused):
            return ready
        chosen, prepared = ready
        for complaint in chosen.complaints(prepared, recipe):
            warnings.warn(complaint, stacklevel=2)
        return finish(prepared, chosen.run(prepared))

    def search_portion(portion: Sequence[Asked]) -> Iterator[R | _Refused]:
        ready = [prepare(asked) for asked in portion]
        _look_up(snapshot, [each[1] for each in ready if not isinstance(each, _Refused)])
        yield from map(search, portion, ready)

    threads = threads or usable_cores()
    if not copied or not _is_lexical(options, best):
        return in_parallel(lambda asked: search(asked, prepare(asked)), queries, threads)
    listed = list(queries)
    if threads > 1 and snapshot.is_local and can_fork():
        return _in_processes(search_portion, listed, threads)
    if threads > 1:
        return in_parallel(lambda asked: search(asked, prepare(asked)), listed, threads)
    portions = (listed[at : at + PORTION] for at in range(0, len(listed), PORTION))
    return ((asked, found) for portion in portions for asked, found in zip(portion, search_portion(portion), strict=True))


def _look_up(snapshot: Snapshot, queries: Iterable[Prepared]) -> None:
    """Look up and verify the terms of several queries at once, which takes hardly longer than those of one.

    The shards of a cluster verify the terms when they read their postings.
    """
    terms = dict.fromkeys(term for prepared in queries for query in prepared.queries for term in query.ungrouped.terms)
    table, rows = snapshot.find_terms(list(terms))
    if not snapshot.is_local:
        return
    for i, segment in enumerate(snapshot.segments):
        table.require_postings(i, segment, rows)


def _in_processes(work: Callable[[Sequence[Asked]], Iterable[R]], queries: Sequence[Asked], processes: int) -> Iterator[tuple[Asked, R]]:
    # What the first queries compile and keep (see `expect_searches`) need not be made again by every process.
    yield from zip(queries[:_ALONE], work(queries[:_ALONE]), strict=True)
    yield from in_processes(work, queries[_ALONE:], min(processes, len(queries) - _ALONE), PORTION) if len(queries) > _ALONE else ()


def _is_lexical(options: SearchOptions, best: BestModel | None) -> bool:
    """Whether no neural model takes part in a search. Those run in threads: processes would load them once each."""
    named = [text for text in (options.model, options.rescore) if text not in ("", BEST)]
    models = [*map(parse_model, named), *([best.model] if best is not None else [])]
    return not options.also_nearest and all(model.definition.is_ready for model in models)


def search_many(
    snapshot: Snapshot,
    queries: Iterable[Asked] | Mapping[str, str],
    given: Mapping[str, Any],
    *,
    threads: int | None,
    on_problem: Callable[[str], None] | None,
    recipe: Recipe | None,
    options: SearchOptions | None,
) -> Iterator[tuple[Asked, Results]]:
    """Yield each query with its results; see `Index.search_many`. Wrong options raise an error at once."""
    asked = listed_queries(queries)
    chosen = resolve_options(recipe, given, options)
    Search(snapshot, chosen)  # raises an error if the options do not fit the index
    outcomes = _search_all(
        snapshot, _checked(asked, given), chosen, recipe, threads, lambda prepared, results: results, best_model(snapshot, chosen)
    )
    return _many(outcomes, on_problem)


def listed_queries(queries: Iterable[A] | Mapping[str, str]) -> Iterable[A | Topic]:
    """The queries one by one. A dictionary from ids to texts becomes topics; a single query is an error."""
    if isinstance(queries, (str, Topic)) or not isinstance(queries, Iterable):
        raise UsageError("search_many takes several queries, such as a list of texts or topics; use search for a single one")
    return (Topic(id, text) for id, text in queries.items()) if isinstance(queries, Mapping) else queries


def report_refusal(number: int, asked: object, why: str, on_problem: Callable[[str], None] | None) -> None:
    """Report why a query cannot be searched for, or raise `UsageError` if nobody wants reports. `number` is from 1."""
    message = f"topic {asked.qid}: {why}" if isinstance(asked, Topic) else f"query {number}: {why}"
    if on_problem is None:
        raise UsageError(message)
    on_problem(message)


def _checked(queries: Iterable[Asked], given: Mapping[str, Any]) -> Iterator[Asked]:
    for asked in queries:
        check_about_patents(asked, given)
        yield asked


def _many(
    outcomes: Iterator[tuple[Asked, Results | _Refused]], on_problem: Callable[[str], None] | None
) -> Iterator[tuple[Asked, Results]]:
    for number, (asked, outcome) in zip(count(1), outcomes, strict=False):
        if not isinstance(outcome, _Refused):
            yield asked, outcome
            continue
        report_refusal(number, asked, outcome.why, on_problem)


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
    page = {"k": chosen.k, "offset": chosen.offset}
    best = best_model(index.snapshot, chosen)
    if not document_ranking:
        topics = list(topics)
        expect_names(index.snapshot, chosen.k * len(topics))
        expect_searches(index.snapshot, len(topics))
    in_common = (*((best.note,) if best is not None and best.note else ()), *_notes_in_common(index.snapshot, chosen))
    if on_note is not None:
        for note in in_common:
            on_note(note)
    if document_ranking:
        chosen = chosen.updated({"k": 1, "offset": 0})

    def finish(prepared: Prepared, results: Results) -> tuple[list[Any], tuple[str, ...], str]:
        if document_ranking:
            ranking: list[Any] = [(encode(id), score) for id, score in results.document_ranking(document_ranking, **page)]
        else:
            ranking = ranking_of(results)
        return ranking, prepared.notes, prepared.language

    searched: Counter[str] = Counter()
    for topic, outcome in _search_all(index.snapshot, topics, chosen, followed, threads, finish, best, copied=True):
        assert isinstance(topic, Topic)
        ranking, notes, language = ([], (), "") if isinstance(outcome, _Refused) else outcome
        searched[language] += not isinstance(outcome, _Refused)
        if not ranking:
            on_problem(f"topic {topic.qid}: {outcome.why if isinstance(outcome, _Refused) else NOTHING_FOUND}")
        if on_note is not None:
            for note in notes:
                if note not in in_common:
                    on_note(f"topic {topic.qid}: {note}")
        yield topic.qid, ranking
    if on_note is not None and any(searched):
        on_note(_note_on_languages(searched))


def _note_on_languages(searched: Counter[str]) -> str:
    """A sentence that counts topics by the language that was detected; the empty code counts all other topics."""
    counted = [f"{number} in {language_name(code)}" for code, number in sorted(searched.items()) if code]
    others = [f"{searched['']} in all languages or in the given one"] if searched[""] else []
    return f"topics were searched in their languages: {', '.join([*counted, *others])}; language='CODE' sets the language of all topics"


def _notes_in_common(snapshot: Snapshot, options: SearchOptions) -> tuple[str, ...]:
    """Notes on conditions that hold for all topics; none if only the options of a topic make a valid search."""
    try:
        return Search(snapshot, options).notes
    except UsageError:
        return ()
