"""Computes the scores of settings on topics, and chooses the best setting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from perikope.core.arrays import Floats
from perikope.core.errors import UsageError
from perikope.evaluation.depth import Depth
from perikope.evaluation.figures import quick
from perikope.evaluation.measures import Measure
from perikope.evaluation.measuring import Measuring
from perikope.evaluation.tuning.outcome import DIGITS, FoldOutcome, TuningOutcome
from perikope.evaluation.tuning.space import Space
from perikope.evaluation.views import Looking, View
from perikope.query.topic import Topic
from perikope.search.batch import PreparedTopic
from perikope.search.options import SearchOptions


def scores_of_settings(
    looking: Looking, topic: Topic, options: SearchOptions, space: Space, measures: Sequence[Measure], depth: Depth, measuring: Measuring
) -> list[list[float]]:
    """The values of measures for one topic: one list per measure, with one value per setting.

    All values are 0 if the query of the topic is not valid.
    """
    asked = looking.prepare(topic, options)
    if asked.problem:
        return [[0.0] * len(space.settings) for _ in measures]
    view = looking.view(asked)
    return [scores_in_view(view, space, measure, depth, looking, asked, measuring) for measure in measures]


def scores_in_view(
    view: View, space: Space, measure: Measure, depth: Depth, looking: Looking, asked: PreparedTopic, measuring: Measuring
) -> list[float]:
    """The value of a measure in the view of one topic with each setting.

    The value is NaN for a setting that the model rejects. Raises the error of the model if it rejects all settings.
    """
    scores = [math.nan] * len(space.settings)
    refusal: UsageError | None = None
    by_ranks = quick(measure, view.judged)
    for numbers in space.by_shape:
        view_of_setting, signals = view, None
        for number in numbers:
            model = space.models[number]
            if asked.search.matches_depend_on_model:
                view_of_setting = looking.view(asked, model)
                signals = model.signals(view_of_setting.matches)
                by_ranks = quick(measure, view_of_setting.judged)
            elif signals is None:
                signals = model.signals(view_of_setting.matches)
            try:
                score = model.combine(signals)
            except UsageError as error:  # each value is valid, but the combination of values may not be
                refusal = error
                continue
            if by_ranks is not None:
                scores[number] = by_ranks(view_of_setting.judged_ranks(score, depth, model))
            else:
                ranking = view_of_setting.rank(score, depth, model)
                ranked = list(zip(view_of_setting.names(ranking), ranking.scores.tolist(), strict=True))
                scores[number] = measuring.value(measure, asked.topic.qid, ranked)
    if refusal is not None and all(map(math.isnan, scores)):
        raise refusal
    return scores


def choose(scores: Floats, columns: Iterable[int], distance: Sequence[float]) -> tuple[int, float]:
    """The index of the setting with the highest mean over some topics, and that mean.

    `scores` has the shape (settings, topics). `columns` are the indices of the topics. Of settings with equal means,
    the one with the smallest `distance` from the defaults is chosen, and of these the first.
    """
    means = [math.fsum(row) / max(len(row), 1) for row in scores[:, list(columns)].tolist()]
    possible = [number for number, mean in enumerate(means) if not math.isnan(mean)]
    best = max(possible, key=lambda number: (round(means[number], DIGITS), -distance[number], -number))
    return best, means[best]


def outcome_of(
    space: Space, scores: Floats, qids: Sequence[str], measure: Measure, fold: Mapping[str, int]
) -> tuple[TuningOutcome, list[int]]:
    """Choose settings by their scores. Returns the outcome, and the index of the setting chosen for each fold.

    Without folds, the list has one index, chosen on all topics. The setting of a fold is chosen on the topics of the
    other folds. `scores` has the shape (settings, topics), with topics in the order of `qids`. `fold` has the fold of
    each topic, by id; it may have more topics than `qids`.
    """
    every = range(len(qids))
    best, _ = choose(scores, every, space.distances)
    means = [math.fsum(row) / max(len(row), 1) for row in scores.tolist()]
    tried = [number for number, mean in enumerate(means) if not math.isnan(mean)]
    folds, chosen = [], []
    for number in range(max(fold.values(), default=-1) + 1):
        others = [i for i in every if fold[qids[i]] != number]
        held_out_topics = [i for i in every if fold[qids[i]] == number]
        if not others:
            raise UsageError(f"fold {number + 1} leaves no topic to tune on; use fewer folds, or more topics")
        setting, mean = choose(scores, others, space.distances)
        held_out_mean = math.fsum(scores[setting, held_out_topics].tolist()) / max(len(held_out_topics), 1)
        folds.append(FoldOutcome(dict(zip(space.values, space.settings[setting], strict=True)), mean, held_out_mean, len(held_out_topics)))
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
