"""Fits the parameters of the default model to one index from self-made topics, and says what was gained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from perikope.browse.models import parse_model
from perikope.core.arrays import Floats
from perikope.core.cores import usable_cores
from perikope.core.errors import UsageError
from perikope.evaluation.adapting.coordinates import cautious_choice, search_coordinates, standard_error
from perikope.evaluation.depth import Depth
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.measures.significance import compare
from perikope.evaluation.measuring import Measuring
from perikope.evaluation.pool import Pool, open_pool
from perikope.evaluation.selfmade.topics import SelfMadeTopics, make_topics
from perikope.evaluation.tuning.scores import scores_of_settings
from perikope.evaluation.tuning.space import Space, read_space
from perikope.evaluation.views import Looking
from perikope.index.reader import Snapshot
from perikope.search.options import LEXICAL, SearchOptions
from perikope.search.own_default import remove_own_default, save_own_default

PARAMETERS = ("titles", "neighbors", "document")
"""The parameters that are fitted: the weights of the context.

Self-made topics do not agree with human judgements about k1 and b, which depend on the length of relevant passages.
"""
KINDS = ("heading", "keywords", "sentence")
"""The kinds of topics. Queries begin with words of the document's title.

This mixture agrees best with human judgements.
"""
RESULTS = 10
"""Results per topic that the measure counts."""
MEASURE = f"nDCG@{RESULTS}"
LEAST_DOCUMENTS = 10
"""Documents with topics that adapting needs at least, half of them to choose a setting and half to test it."""
ALPHA = 0.05
"""Largest p-value of a gain with which a setting is adopted."""
AT_A_TIME = 5
"""Topics per task of a worker process."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What adapting an index found."""

    general: str
    """The model with its general parameters."""
    chosen: str
    """The model that was chosen on the training topics; it is `general` if nothing was better."""
    is_adopted: bool
    """Whether the chosen model is better than the general one on the held-back topics, and significantly."""
    reason: str
    """Why the chosen model was adopted or not, as one clause."""
    kinds: Mapping[str, int]
    """The number of topics of each kind."""
    documents: tuple[int, int]
    """Numbers of documents whose topics chose the setting, and of those whose topics tested it."""
    before: float
    """Mean of the measure on the held-back topics with the general parameters."""
    after: float
    """Mean of the measure on the held-back topics with the chosen parameters."""
    p: float
    """The p-value of the difference on the held-back topics, by a randomisation test over documents."""
    gain_of_kind: Mapping[str, float]
    """Mean gain on the held-back topics of each kind."""
    settings: int
    """Number of settings that were tried."""
    seed: int

    @property
    def model(self) -> str:
        """The model that the index should use: the chosen one if it is adopted, else the general one."""
        return self.chosen if self.is_adopted else self.general

    def facts(self) -> dict[str, Any]:
        """What was measured, for the table of the index. It has no date, so that equal indexes have equal tables."""
        return {
            "measure": MEASURE,
            "topics": dict(self.kinds),
            "documents": {"training": self.documents[0], "held back": self.documents[1]},
            "settings": self.settings,
            "seed": self.seed,
            "before": round(self.before, 6),
            "after": round(self.after, 6),
            "p": round(self.p, 6),
        }


def adapt(
    index: Path,
    model: str = LEXICAL,
    *,
    kinds: Sequence[str] = KINDS,
    parameters: Sequence[str] = PARAMETERS,
    count: int = 100,
    seed: int = 1,
    workers: int | None = None,
    on_progress: Callable[[int], None] = lambda scored: None,
) -> Adaptation:
    """Fit parameters of a model to the documents of an index, without human judgements.

    `model` has the general values of the parameters, and `parameters` are those that are fitted.

    Self-made topics, at most `count` of each kind, are divided by document. One half chooses a setting: a coordinate
    search over the declared grids, then the setting nearest to the general one within a standard error of the best. The
    other half tests it. The setting is adopted if it gains significantly there and no kind of topic loses.

    Nothing is saved; see `settle`. `on_progress` is called with the number of topics scored since the last call.
    """
    made = make_topics(Snapshot.open(index), kinds, count=count, seed=seed, naming="always")
    training, held_back = _halves(made, seed)
    general = str(parse_model(model))
    space = read_space(model, parameters)
    setup = _ScorerSetup(index, made)
    with open_pool(_Scorer, setup, min(workers or usable_cores(), -(-len(made.topics) // AT_A_TIME))) as pool:
        scored = _Scored(made, pool, on_progress)
        tried = search_coordinates(space, lambda around: scored.by_document(around, training))
        chosen = tried.space.settings[cautious_choice(tried)]
        default = tried.space.settings[0]
        test = HeldBackTest.of(made, scored.by_topic(replace(space, settings=(default, chosen)), held_back), seed)
    is_adopted, reason = test.verdict(chosen == default)
    return Adaptation(
        general=general,
        chosen=str(space.model(chosen)),
        is_adopted=is_adopted,
        reason=reason,
        kinds=made.kinds,
        documents=(len(training), len(held_back)),
        before=test.before,
        after=test.after,
        p=test.p,
        gain_of_kind={kind: float(np.mean(gains)) for kind, gains in test.gains_of_kind.items()},
        settings=len(tried.space.settings),
        seed=seed,
    )


def settle(index: Path, adaptation: Adaptation) -> None:
    """Save the chosen model as the default of the index if it is adopted; otherwise remove an earlier default."""
    if adaptation.is_adopted:
        save_own_default(index, adaptation.chosen, adaptation.facts())
    else:
        remove_own_default(index)


def _halves(made: SelfMadeTopics, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of the documents whose topics choose a setting, and of those whose topics test it."""
    documents = sorted({mask.document for mask in made.masks.values()})
    if len(documents) < LEAST_DOCUMENTS:
        raise UsageError(
            f"adapting needs headings or sentences to make topics of in at least {LEAST_DOCUMENTS} documents, and the index has "
            f"{len(documents)}; keep the general weights"
        )
    Random(seed).shuffle(documents)
    half = len(documents) // 2
    return tuple(sorted(documents[:half])), tuple(sorted(documents[half:]))


@dataclass(frozen=True, slots=True)
class _ScorerSetup:
    index: Path
    made: SelfMadeTopics


class _Scorer:
    """Scores the settings of a space for some topics, in a worker process."""

    def __init__(self, setup: _ScorerSetup) -> None:
        made = setup.made
        self.topics = made.topics
        self.looking = Looking(Snapshot.open(setup.index), made.judgements, masks=made.masks)
        self.measure, self.measuring = parse_measure(MEASURE), Measuring(made.judgements, None, setup.index)

    def __call__(self, task: tuple[Space, tuple[int, ...]]) -> list[list[float]]:
        """One row of scores per topic, with one value per setting."""
        space, numbers = task
        options, depth = SearchOptions.of({}), Depth(RESULTS)
        return [
            scores_of_settings(self.looking, self.topics[number], options, space, [self.measure], depth, self.measuring)[0]
            for number in numbers
        ]


class _Scored:
    """Scores of settings on self-made topics, computed by a pool of processes."""

    def __init__(
        self, made: SelfMadeTopics, pool: Pool[tuple[Space, tuple[int, ...]], list[list[float]]], on_progress: Callable[[int], None]
    ) -> None:
        self.made, self.pool, self.on_progress = made, pool, on_progress

    def by_topic(self, space: Space, documents: Sequence[int]) -> dict[str, list[float]]:
        """The score of each setting, by id of the topic, for the topics of some documents."""
        wanted = set(documents)
        numbers = [i for i, topic in enumerate(self.made.topics) if self.made.masks[topic.qid].document in wanted]
        tasks = [(space, tuple(numbers[first : first + AT_A_TIME])) for first in range(0, len(numbers), AT_A_TIME)]
        scores: dict[str, list[float]] = {}
        for (_, chunk), rows in self.pool.results(tasks):
            scores |= {self.made.topics[number].qid: row for number, row in zip(chunk, rows, strict=True)}
            self.on_progress(len(chunk))
        return {topic.qid: scores[topic.qid] for topic in self.made.topics if topic.qid in scores}

    def by_document(self, space: Space, documents: Sequence[int]) -> Floats:
        """The mean score over the topics of each document, with the shape (settings, documents)."""
        return np.array(list(_by_document(self.made, self.by_topic(space, documents)).values())).T


def _by_document(made: SelfMadeTopics, scores: Mapping[str, Sequence[float]]) -> dict[int, Floats]:
    """The mean scores over the topics of each document. Topics of one document are not independent."""
    rows: dict[int, list[Sequence[float]]] = {}
    for qid, row in scores.items():
        rows.setdefault(made.masks[qid].document, []).append(row)
    return {document: np.mean(rows[document], axis=0) for document in sorted(rows)}


@dataclass(frozen=True, slots=True)
class HeldBackTest:
    """The comparison of the general and the chosen setting on held-back topics."""

    before: float
    after: float
    p: float
    gains_of_kind: Mapping[str, Sequence[float]]
    """The gain of each topic, by kind."""

    @classmethod
    def of(cls, made: SelfMadeTopics, scores: Mapping[str, Sequence[float]], seed: int) -> HeldBackTest:
        """Compare the first and the second score of each topic, by id."""
        pairs = _by_document(made, scores)
        columns = {name: {str(document): float(pairs[document][i]) for document in pairs} for i, name in enumerate(("before", "after"))}
        p = compare(columns, test="randomisation", seed=seed).p["before", "after"]
        gains: dict[str, list[float]] = {}
        for qid, (before, after) in scores.items():
            gains.setdefault(made.kind_of_topic[qid], []).append(after - before)
        means = [float(np.mean(list(column.values()))) for column in columns.values()]
        return cls(means[0], means[1], p, dict(sorted(gains.items())))

    def verdict(self, is_general: bool) -> tuple[bool, str]:
        """Whether the chosen setting is adopted, and why."""
        if is_general:
            return False, "no setting is clearly better than the general one on the training topics"
        if self.after <= self.before:
            return False, "held-back topics do not gain"
        if self.p > ALPHA:
            return False, f"the gain on held-back topics is not significant (p = {self.p:.3f})"
        losing = [kind for kind, gains in self.gains_of_kind.items() if float(np.mean(gains)) < -standard_error(gains)]
        if losing:
            return False, f"topics of the kind {losing[0]} lose"
        return True, f"the gain on held-back topics is significant (p = {self.p:.3f})"
