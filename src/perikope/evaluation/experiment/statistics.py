"""Tables of statistics: the size of each collection, judgements per topic, and the length of queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from perikope.evaluation.experiment.extras import ExtraTable, Figure
from perikope.evaluation.experiment.lexical import LexicalSystems
from perikope.evaluation.experiment.plan_parts import SystemPlan
from perikope.evaluation.views import Looking
from perikope.query.boolean import words_of
from perikope.query.terms import Query
from perikope.search.options import SearchOptions

COLUMNS = ("number", "minimum", "mean", "deviation", "maximum")

StatisticsRow = tuple[str, str, tuple[Figure | None, ...]]


def statistics_tables(parts: Sequence[LexicalSystems]) -> tuple[ExtraTable, ...]:
    """One table per reported set of topics."""
    return tuple(_table(part, f": {part.topics.name}" if len(parts) > 1 else "") for part in parts)


def _table(part: LexicalSystems, of_set: str) -> ExtraTable:
    material = part.material
    judged = [material.judgements.get(topic.qid, {}) for topic in material.topics]
    rows = [
        _counted("documents", len(part.index)),
        _counted("passages", part.index.passages),
        _counted("topics", len(material.topics)),
        *([_counted("training topics", len(material.training_topics))] if material.training_topics else []),
        _spread("judged results per topic", [len(grades) for grades in judged]),
        _spread("relevant results per topic", [sum(grade > 0 for grade in grades.values()) for grades in judged]),
        *_queries(part),
    ]
    how = "The collection and the topics that are reported. The words of a query are counted once each, without operators and stop words."
    return ExtraTable(f"Collection and topics{of_set}", how, COLUMNS, tuple(rows), head="Statistic")


def _counted(name: str, count: int) -> StatisticsRow:
    return ("", name, (Figure(count, f"{count:,}"), None, None, None, None))


def _spread(name: str, values: Sequence[int]) -> StatisticsRow:
    """A row with the number, minimum, mean, standard deviation and maximum of values."""
    if not values:
        return _counted(name, 0)
    mean = sum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) if len(values) > 1 else 0.0
    ends = [Figure(end, f"{end:,}") for end in (min(values), max(values))]
    return (
        "",
        name,
        (Figure(len(values), f"{len(values):,}"), ends[0], *(Figure(one, f"{one:.2f}") for one in (mean, deviation)), ends[1]),
    )


def _queries(part: LexicalSystems) -> Iterable[StatisticsRow]:
    """Rows with the number of words per query: one per group of systems that read the topics in the same way."""
    read: list[tuple[SearchOptions, list[SystemPlan]]] = []
    for system in part.systems:
        if system.searches:
            options = system.search_options(1, part.plan.depth.results)
            same = next((known for other, known in read if (other, known[0].browse_field) == (options, system.browse_field)), None)
            if same is None:
                read.append((options, [system]))
            else:
                same.append(system)
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for options, systems in read:
        groups.setdefault(_lengths(part, options, systems[0]), []).extend(system.name for system in systems)
    for (fetch, browse), names in groups.items():
        of_systems = f" ({', '.join(names)})" if len(groups) > 1 else ""
        if fetch == browse:
            yield _spread(f"words per query{of_systems}", fetch)
        else:
            yield _spread(f"words per query that fetches documents{of_systems}", fetch)
            yield _spread(f"words per query that scores passages{of_systems}", browse)


def _lengths(part: LexicalSystems, options: SearchOptions, system: SystemPlan) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of words of the queries that fetch, and of those that score.

    Topics without a usable query are left out.
    """
    looking = Looking(part.index.snapshot, {})
    prepared = (looking.prepare(topic, system.for_topic(topic, options)) for topic in part.material.topics)
    asked = [topic for topic in prepared if not topic.problem]
    return tuple(_words(topic.prepared.fetch) for topic in asked), tuple(_words(topic.prepared.scoring) for topic in asked)


def _words(query: Query) -> int:
    """The number of words of a query. A word that is searched in several languages is counted once."""
    return len(list(words_of(query.tree))) if query.tree is not None else len(query.words) or len(query.terms)
