"""How well does each setting rank topics, and which one is best?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from perikope.core.arrays import Floats
from perikope.core.errors import UsageError
from perikope.evaluation.figures import quick
from perikope.evaluation.measures import Measure
from perikope.evaluation.measuring import Measuring
from perikope.evaluation.tuning.outcome import FoldOutcome, TuningOutcome
from perikope.evaluation.tuning.space import Space
from perikope.evaluation.views import Looking, View
from perikope.query.topic import Topic
from perikope.search.batch import PreparedTopic
from perikope.search.options import SearchOptions

DIGITS = 9
"""Of a mean that decide: what differs less was rounded otherwise."""


def scores_of_settings(
    looking: Looking, topic: Topic, options: SearchOptions, space: Space, measure: Measure, k: int, measuring: Measuring
) -> list[float]:
    """The measure of each setting for one topic; 0 where it is no query."""
    asked = looking.prepare(topic, options)
    if asked.problem:
        return [0.0] * len(space.settings)
    return scores_in_view(looking.view(asked), space, measure, k, looking, asked, measuring)


def scores_in_view(
    view: View, space: Space, measure: Measure, k: int, looking: Looking, asked: PreparedTopic, measuring: Measuring
) -> list[float]:
    """As `scores_of_settings`, where the topic was looked into already; a setting that the model refuses has no number."""
    scores = [math.nan] * len(space.settings)
    refusal: UsageError | None = None
    by_places = quick(measure, view.judged)
    for numbers in space.by_shape:
        own, signals = view, None
        for number in numbers:
            model = space.models[number]
            if asked.search.matches_depend_on_model:
                own = looking.view(asked, model)
                signals = model.signals(own.matches)
                by_places = quick(measure, own.judged)
            elif signals is None:
                signals = model.signals(own.matches)
            try:
                score = model.combine(signals)
            except UsageError as error:  # values that are fine by themselves may not go together
                refusal = error
                continue
            if by_places is not None:
                scores[number] = by_places(own.places(score, k, matching_only=model.matching_only))
            else:
                ranking = own.rank(score, k, matching_only=model.matching_only)
                ranked = list(zip(own.names(ranking), ranking.scores.tolist(), strict=True))
                scores[number] = measuring.value(measure, asked.topic.qid, ranked)
    if refusal is not None and all(map(math.isnan, scores)):
        raise refusal
    return scores


def choose(scores: Floats, columns: Iterable[int]) -> tuple[int, float]:
    """The best setting by its mean over some topics, which are columns of `scores`, and that mean; of equal ones the first."""
    own = scores[:, list(columns)]
    means = [math.fsum(row) / max(len(row), 1) for row in own.tolist()]
    possible = [number for number, mean in enumerate(means) if not math.isnan(mean)]
    best = max(possible, key=lambda number: (round(means[number], DIGITS), -number))
    return best, means[best]


def outcome_of(
    space: Space, scores: Floats, qids: Sequence[str], measure: Measure, fold: Mapping[str, int]
) -> tuple[TuningOutcome, list[int]]:
    """What was chosen on all topics, and for each fold without its own; without folds on all. With the numbers of the folds' settings.

    `scores` has a row a setting and a column a topic, in the order of `qids`; topics in `fold` that were not scored say nothing.
    """
    every = range(len(qids))
    best, _ = choose(scores, every)
    means = [math.fsum(row) / max(len(row), 1) for row in scores.tolist()]
    tried = [number for number, mean in enumerate(means) if not math.isnan(mean)]
    folds, chosen = [], []
    for number in range(max(fold.values(), default=-1) + 1):
        others = [i for i in every if fold[qids[i]] != number]
        own = [i for i in every if fold[qids[i]] == number]
        if not others:
            raise UsageError(f"fold {number + 1} leaves no topic to tune on; use fewer folds, or more topics")
        setting, mean = choose(scores, others)
        held_out = math.fsum(scores[setting, own].tolist()) / max(len(own), 1)
        folds.append(FoldOutcome(dict(zip(space.values, space.settings[setting], strict=True)), mean, held_out, len(own)))
        chosen.append(setting)
    tuned = TuningOutcome(
        tuple(space.values),
        tuple(space.settings[number] for number in tried),
        tuple(means[number] for number in tried),
        dict(zip(space.values, space.settings[best], strict=True)),
        measure.asked or str(measure),
        tuple(folds),
        len(qids),
    )
    return tuned, chosen or [best]
