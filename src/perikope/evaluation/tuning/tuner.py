"""Tunes one model on topics with judgements, for the command `perikope tune`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from perikope.evaluation.depth import Depth
from perikope.evaluation.folds import fold_of_topic
from perikope.evaluation.learning.examples import judged_topics
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.measuring import Measuring
from perikope.evaluation.pool import default_workers, open_pool
from perikope.evaluation.tuning.outcome import TuningOutcome
from perikope.evaluation.tuning.scores import outcome_of, scores_of_settings
from perikope.evaluation.tuning.space import Space
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic
from perikope.search.options import SearchOptions

AT_A_TIME = 5
"""Topics per task of a worker process."""


@dataclass(frozen=True, slots=True)
class _Setup:
    index: Path
    topics: tuple[Topic, ...]
    judgements: Mapping[str, Mapping[str, int]]
    space: Space
    measures: tuple[str, ...]
    options: SearchOptions
    documents: tuple[Any, ...]
    text: str
    depth: Depth


class _Scores:
    """Scores all settings for a chunk of topics, in a worker process."""

    def __init__(self, setup: _Setup) -> None:
        self.setup = setup
        self.looking = Looking(Snapshot.open(setup.index), setup.judgements)
        self.measures = [parse_measure(measure) for measure in setup.measures]
        self.measuring = Measuring(setup.judgements, (setup.text, "auto") if setup.text else None, setup.index)

    def __call__(self, numbers: tuple[int, ...]) -> list[list[list[float]]]:
        """Score the topics with the given indices. Returns one row per topic and measure.

        A row has the scores of all settings with the first number of documents, then with the second, and so on.
        """
        return [self._rows(self.setup.topics[number]) for number in numbers]

    def _rows(self, topic: Topic) -> list[list[float]]:
        rows: list[list[float]] = [[] for _ in self.measures]
        for documents in self.setup.documents:
            options = self.setup.options.updated({"documents": documents})
            scores = scores_of_settings(self.looking, topic, options, self.setup.space, self.measures, self.setup.depth, self.measuring)
            for row, more in zip(rows, scores, strict=True):
                row += more
        return rows


def tune(
    index: Path,
    topics: Sequence[Topic],
    judgements: Mapping[str, Mapping[str, int]],
    space: Space,
    measures: str | Sequence[str],
    options: SearchOptions,
    *,
    documents: Sequence[Any] = (),
    folds: int = 5,
    seed: int = 1,
    text: str = "",
    depth: Depth | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_note: Callable[[str], None] = lambda note: None,
) -> tuple[TuningOutcome, list[str]]:
    """Tune a space on topics with judgements. Returns the outcome, and one line per topic that was left out.

    If several `measures` are given, the first is maximised that depends on most of the tuned parameters.

    `options` are the search options; their model is ignored. `documents` has numbers of documents to fetch, which are
    tuned like a parameter. If it is empty, `options.documents` is used. `text` is the path of the judgement file, for
    measures that count characters. `depth` is where rankings are cut, by default at `options.k`. With `folds`, the
    outcome has the results of a cross-validation; 0 means none.
    """
    problems: list[str] = []
    usable = judged_topics(Snapshot.open(index), topics, judgements, options, problems.append, on_note)
    documents = tuple(documents) or (options.documents,)
    names = (measures,) if isinstance(measures, str) else tuple(measures)
    setup = _Setup(index, usable, judgements, space, names, options, documents, text, depth or Depth(options.k))
    qids = [topic.qid for topic in usable]
    fold = fold_of_topic(qids, folds, seed) if folds else {}
    rows: dict[int, list[list[float]]] = {}
    tasks = [tuple(range(first, min(first + AT_A_TIME, len(usable)))) for first in range(0, len(usable), AT_A_TIME)]
    with open_pool(_Scores, setup, min(workers or default_workers(), len(tasks))) as pool:
        for numbers, scores_of_topics in pool.results(tasks):
            rows |= dict(zip(numbers, scores_of_topics, strict=True))
            on_progress(len(rows), len(usable))
    swept = space
    if len(documents) > 1:
        values = {"documents": tuple(documents), **space.values}
        settings = tuple((n, *setting) for n in documents for setting in space.settings)
        swept = replace(space, values=values, settings=settings, defaults={**space.defaults, "documents": options.documents})
    outcomes = []
    for number, measure in enumerate(names):
        scores = np.ascontiguousarray(np.array([rows[topic][number] for topic in range(len(usable))]).T)
        outcomes.append(outcome_of(swept, scores, qids, parse_measure(measure), fold)[0])
    return min(outcomes, key=lambda outcome: len(outcome.idle)), problems
