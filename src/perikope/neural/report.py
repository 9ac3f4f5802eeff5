"""The parts of an experiment's report about neural rankers: settings, λ, α, and the importance of relations.

The tables follow Tables 5 to 7 of Albarede et al. 2023.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perikope.evaluation.experiment.extras import ExtraTable, Figure
from perikope.evaluation.experiment.outcome import average
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.plan_parts import SystemPlan
from perikope.evaluation.experiment.prepared import COLLECTIONS
from perikope.evaluation.experiment.report.repetitions import deviation_figure
from perikope.neural.collection import Collection
from perikope.neural.graph import SELF
from perikope.neural.ranker_settings import NeuralRanker, NeuralSettings

Finished = Mapping[str, Sequence[Mapping[str, Any]]]
"""The results of the jobs of each ranker, by name; see `ranker_job.run_job`."""


def describe(plan: Plan, system: SystemPlan) -> str:
    """The settings of a ranker in one line."""
    shared: NeuralSettings = plan.shared
    ranker: NeuralRanker = system.ranker
    parts = [f"{shared.encoder}, {ranker.dimension} dimensions"]
    if ranker.variant:
        parts.append(f"{ranker.variant}({_listed(shared.context_of(ranker))})")
        parts += ["late fusion"] if ranker.is_late else []
    if ranker.trained:
        parts.append(f"trained({_listed({**shared.training, **ranker.training})})")
        parts.append(f"{ranker.folds} folds" if ranker.folds else f"on {', '.join(ranker.train_on or shared.train_on)}")
    elif ranker.training:
        parts.append(_listed(ranker.training))
    parts += [f"search({_listed(system.options)})"] if system.options else []
    return "; ".join(parts)


def _listed(settings: Mapping[str, Any]) -> str:
    """Settings as `name=value`, separated by commas."""
    return ", ".join(f"{name}={list(value) if isinstance(value, tuple) else value}" for name, value in settings.items())


def facts(plan: Plan, folder: Path) -> dict[str, str]:
    """Facts for the report, as text by name: the encoder, each collection, and the settings of training.

    The text of a collection has its size and the number of topics of each set.
    """
    lines = {"encoder": plan.shared.encoder}
    for name in plan.collections:
        collection = Collection.load(folder / COLLECTIONS / name)
        # The name of a set has the fingerprint of search options after a ~. All of them have the same topics.
        by_set = {set_name.partition("~")[0]: topics for set_name, topics in collection.topics.items()}
        sets = ", ".join(f"{set_name} {len(topics):,}" for set_name, topics in by_set.items())
        lines[name] = f"{len(collection.texts.documents):,} documents, {len(collection.texts.names):,} passages; topics: {sets}"
    return {**lines, "training": json.dumps(dict(plan.shared.training), sort_keys=True)}


def learned_tables(plan: Plan, finished: Finished) -> list[ExtraTable]:
    """Tables of what graph attention learned: λ and α, and the importance of each relation.

    Tables without rows are left out.
    """
    attentive = {name: jobs for name, jobs in finished.items() if plan.system(name).ranker.variant}
    return [table for table in (_lambdas(attentive), _relations(attentive)) if table.rows]


def _lambdas(finished: Finished) -> ExtraTable:
    """The table of λ per layer and of α, one row per ranker that learned one of them."""
    layers = max((len(job["lambdas"]) for jobs in finished.values() for job in jobs), default=0)
    rows = []
    for name, jobs in finished.items():
        columns = [[job["lambdas"][layer] for job in jobs if layer < len(job["lambdas"])] for layer in range(layers)]
        known = [[value for value in column if value is not None] for column in (*columns, [job["alpha"] for job in jobs])]
        if any(known):
            rows.append(("", name, tuple(deviation_figure(values) if values else None for values in known)))
    how = (
        "Learned weights, as mean ± standard deviation over seeds. λ is the weight of a node's neighbours, 1 - λ of the node itself. "
        "α is the weight of the context score in late fusion, 1 - α of the score of the passage alone."
    )
    return ExtraTable("λ and α", how, (*(f"λ, layer {layer + 1}" for layer in range(layers)), "α"), tuple(rows))


def _relations(finished: Finished) -> ExtraTable:
    """The table of the share of each relation, one row per ranker and layer."""
    names = list(dict.fromkeys(name for jobs in finished.values() for job in jobs for layer in job["importance"] for name in layer))
    names = [name for name in names if name != SELF] + [SELF]
    rows = []
    for ranker, jobs in finished.items():
        for layer in range(max(len(job["importance"]) for job in jobs)):
            shares = [job["importance"][layer] for job in jobs]
            means = {name: average(share[name] for share in shares) for name in names if all(name in share for share in shares)}
            cells = tuple(Figure(means[name], f"{100 * means[name]:.1f}", False) if name in means else None for name in names)
            rows.append(("", f"{ranker}, layer {layer + 1}", cells))
    how = (
        "Share of each relation in percent, as mean over seeds: the softmax over relations of their mean weights. In a layer with λ, "
        "self has the share 1 - λ. Unused weights, such as the weight of self in the last layer of NS, are included."
    )
    return ExtraTable("Importance of relations", how, tuple(names), tuple(rows))
