"""The report of a study: the tables of any experiment, by topic, and those over seeds (Albarede et al. 2023, Tables 3 to 7 and Figure 4).

A value by topic is the mean over seeds. Over seeds systems are compared by the Mann–Whitney U test: nothing is known of how their values
are spread, and nothing pairs a seed of one with a seed of another. With three seeds each it cannot come to 0.05, with four it can: where no
two systems of a table have seeds enough, they are compared over topics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

from perikope.evaluation.experiment.outcome import ComparisonSettings, Outcome, Sweep, SystemOutcome
from perikope.evaluation.experiment.report import write_report
from perikope.evaluation.experiment.report.findings import ExtraTable, Figure, counted, figure, ranges
from perikope.evaluation.measures import parse_measure
from perikope.evaluation.measures.significance import compare, label
from perikope.neural.graph import SELF
from perikope.neural.study import DEPTH, Study, StudySystem, Workplace, known_values

ALPHA = 0.05
_OVER_SEEDS = (
    "Mean ± standard deviation over seeds, whose number stands behind the name; letters: significantly better than these systems, "
)
_BY_SEEDS = "Mann–Whitney U test over seeds, p ≤ 0.05, not corrected for the number of pairs."
_BY_TOPICS = "paired t-test over topics, each the mean over seeds, p ≤ 0.05, corrected after Holm: so few seeds cannot tell systems apart."
Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By set of topics, measure and topic."""


@dataclass(frozen=True)
class Ran:
    """A system with the values of each of its seeds."""

    name: str
    system: StudySystem
    seeds: Mapping[int, Values]
    jobs: Sequence[Mapping[str, Any]] = ()
    """What was told of each training of the system itself."""

    def over_seeds(self, topics: str, measure: str) -> dict[str, float]:
        """The mean over topics of each seed."""
        return {str(seed): _mean(values[topics][measure].values()) for seed, values in self.seeds.items() if topics in values}

    def by_topic(self, topics: str, measures: Iterable[str]) -> dict[str, dict[str, float]]:
        """The mean over seeds of each topic."""
        own = [values[topics] for values in self.seeds.values() if topics in values]
        return {measure: {qid: _mean(values[measure][qid] for values in own) for qid in own[0][measure]} for measure in measures}

    def is_in(self, topics: str) -> bool:
        """Whether it was measured on these topics."""
        return any(topics in values for values in self.seeds.values())


def write_study_report(place: Workplace, folder: Path) -> tuple[Outcome, list[str]]:
    """Report what is there of a study; returns the outcome, and the jobs that are missing."""
    study = place.study
    ran, missing = gather(place)
    main = [one for one in ran if not one.system.table]
    sweeps = tuple(
        Sweep(topics, tuple(_outcome(study, one, topics) for one in main if one.is_in(topics)))
        for topics in study.report_on
        if any(one.is_in(topics) for one in main)
    )
    outcome = Outcome(study.title, study.description, _facts(place, missing), study.measures, sweeps, ComparisonSettings("t", "holm"))
    outcome.save(folder)
    write_report(outcome, folder, extra_tables(study, ran))
    return outcome, missing


def gather(place: Workplace) -> tuple[list[Ran], list[str]]:
    """Every system that has values, in the order of the file, those with a share of the untrained encoder behind their own."""
    study = place.study
    values: dict[str, dict[int, Any]] = {}
    jobs: dict[str, list[Mapping[str, Any]]] = {}
    missing = []
    for system, seed in study.jobs():
        known = known_values(place.folder, study, system, seed)
        if known is None:
            missing.append(f"{system.name}, seed {seed}")
            continue
        for name, sets in known["values"].items():
            jobs.setdefault(name, []).append(known)
            values.setdefault(name, {})[seed] = {topics: _named(place, topics, own) for topics, own in sets.items()}
    ran = []
    for system in study.systems:
        if system.runs:
            ran.append(Ran(system.name, system, {0: _values_of_runs(place, system)}))
        ran += [Ran(name, system, values[name], jobs.get(name, ())) for name in system.names if name in values]
    return ran, missing


def _named(place: Workplace, topics: str, values: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    qids = place.set_of(topics)[1].qids
    return {measure: dict(zip(qids, own, strict=True)) for measure, own in values.items()}


def _values_of_runs(place: Workplace, system: StudySystem) -> Values:
    found = {}
    for topics in system.runs:
        run, (_, own) = place.runs[system.name, topics], place.set_of(topics)
        judged = dict(zip(own.qids, own.judged, strict=True))
        ranked = {qid: _ranked(run.get(qid, {})) for qid in own.qids}
        measures = {name: parse_measure(name) for name in place.study.measures}
        found[topics] = {name: {qid: float(measure(ranked[qid], judged[qid])) for qid in own.qids} for name, measure in measures.items()}
    return found


def _ranked(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda name: -scores[name])


def _outcome(study: Study, ran: Ran, topics: str) -> SystemOutcome:
    share = ran.name.removeprefix(ran.system.name)
    return SystemOutcome(ran.name, describe(study, ran.system) + share, ran.by_topic(topics, study.measures), notes=_notes(ran, topics))


def _notes(ran: Ran, topics: str) -> tuple[str, ...]:
    system = ran.system
    if not system.trained or 0 in ran.seeds:
        return ()
    shares = [share for job in ran.jobs if (share := job["shares"].get(ran.name, {}).get(topics)) is not None]
    told = [f"share of the neural system {', '.join(f'{share:.2f}' for share in shares)}"] if shares else []
    return (f"mean over {counted(len(ran.seeds), 'seed')}", *told)


def describe(study: Study, system: StudySystem) -> str:
    """What a system is, in one line."""
    if system.model:
        return f"model {system.model}"
    if system.runs:
        return "run of another system, read from a file"
    if system.of:
        return f"fusion of {' and '.join(system.of)}, from 0 to 1 each over the results of a topic; the share is chosen on other topics"
    parts = [f"{study.encoder}, {system.dimension} dimensions"]
    if system.variant:
        parts.append(f"{system.variant}({', '.join(f'{name}={value}' for name, value in study.context_of(system).items())})")
        parts += ["late fusion"] if system.is_late else []
    if system.trained:
        settings = {**study.training, **system.training}
        parts.append(f"trained({', '.join(f'{name}={value}' for name, value in settings.items())})")
        parts.append(f"{system.folds} folds" if system.folds else f"on {', '.join(system.train_on or study.train_on)}")
    elif system.training:
        parts.append(", ".join(f"{name}={value}" for name, value in system.training.items()))
    return "; ".join(parts)


def extra_tables(study: Study, ran: Sequence[Ran]) -> list[ExtraTable]:
    """The tables over seeds, of parameters and of relations."""
    found = []
    neural = [one for one in ran if 0 not in one.seeds]
    groups = dict.fromkeys(one.system.table for one in neural)
    for group in groups:
        for topics in study.report_on:
            own = [one for one in neural if group in (one.system.table, *_also_in(one)) and one.is_in(topics)]
            if own:
                found.append(_over_seeds(study, own, f"{group or 'Over seeds'}: {topics}", topics))
    attentive = [one for one in neural if one.name == one.system.name and one.system.variant]
    return [*found, *_shares_table(attentive), *_relations_tables(attentive)]


def _also_in(ran: Ran) -> tuple[str, ...]:
    """Of a system itself: not of its score mixed with the untrained encoder's."""
    return ran.system.also_in if ran.name == ran.system.name else ()


def _over_seeds(study: Study, ran: Sequence[Ran], title: str, topics: str) -> ExtraTable:
    columns = []
    seeds = [len(one.over_seeds(topics, study.measures[0])) for one in ran]
    is_enough = any(2 / math.comb(one + other, one) <= ALPHA for one, other in combinations(seeds, 2))
    for measure in study.measures:
        values = {one.name: one.over_seeds(topics, measure) for one in ran}
        letters = _letters(ran, topics, measure, over_seeds=is_enough)
        best = max(_mean(own.values()) for own in values.values())
        columns.append([
            Figure(mean, _with_deviation([*own.values()]), figure(mean) == figure(best), ranges(letters.get(name, "")))
            for name, own in values.items()
            for mean in [_mean(own.values())]
        ])  # fmt: skip
    rows = tuple(
        (label(number), f"{one.name} ({seeds[number]})", tuple(column[number] for column in columns)) for number, one in enumerate(ran)
    )
    main = study.measures[0]
    spread = {one.name: [*one.over_seeds(topics, main).values()] for one in ran if len(one.over_seeds(topics, main)) > 1}
    return ExtraTable(title, _OVER_SEEDS + (_BY_SEEDS if is_enough else _BY_TOPICS), study.measures, rows, spread, main)


def _letters(ran: Sequence[Ran], topics: str, measure: str, *, over_seeds: bool) -> Mapping[str, str]:
    """Which systems each system beats significantly: over seeds, or where these are too few for that, over topics."""
    if len(ran) < 2:
        return {}
    if over_seeds:
        seeds = {one.name: one.over_seeds(topics, measure) for one in ran}
        return compare(seeds, test="mannwhitney", correction="none", alpha=ALPHA).letters
    values = {one.name: one.by_topic(topics, [measure])[measure] for one in ran}
    return compare(values, test="t", correction="holm", alpha=ALPHA).letters


def _with_deviation(values: Sequence[float]) -> str:
    if len(values) < 2:
        return figure(values[0])
    mean = _mean(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return f"{figure(mean)} ± {figure(deviation)}"


def _shares_table(ran: Sequence[Ran]) -> list[ExtraTable]:
    layers = max((len(job["lambdas"]) for one in ran for job in one.jobs), default=0)
    rows = []
    for one in ran:
        lambdas = [[job["lambdas"][layer] for job in one.jobs if layer < len(job["lambdas"])] for layer in range(layers)]
        alphas = [job["alpha"] for job in one.jobs]
        cells = [_told([value for value in own if value is not None]) for own in (*lambdas, alphas)]
        if any(cells):
            rows.append(("", one.name, tuple(cells)))
    if not rows:
        return []
    how = "What was learned: λ weighs context against self, α context against content; mean ± deviation over seeds."
    return [ExtraTable("λ and α", how, (*(f"λ, layer {layer + 1}" for layer in range(layers)), "α"), tuple(rows))]


def _told(values: Sequence[float]) -> Figure | None:
    return Figure(_mean(values), _with_deviation(values), False) if values else None


def _relations_tables(ran: Sequence[Ran]) -> list[ExtraTable]:
    names = list(dict.fromkeys(name for one in ran for job in one.jobs for layer in job["importance"] for name in layer))
    names = [name for name in names if name != SELF] + [SELF]
    rows = []
    for one in ran:
        for layer in range(max(len(job["importance"]) for job in one.jobs)):
            own = [job["importance"][layer] for job in one.jobs]
            means = {name: _mean(shares[name] for shares in own) for name in names if all(name in shares for shares in own)}
            cells = tuple(Figure(means[name], f"{100 * means[name]:.1f}", False) if name in means else None for name in names)
            rows.append(("", f"{one.name}, layer {layer + 1}", cells))
    how = (
        "Share of each relation in percent: softmax over relations of the mean weight, with λ self has 1 - λ; mean over seeds. "
        "Weights that nothing uses, as that of self in the last layer of NS, are shown as they are."
    )
    return [ExtraTable("Importance of relations", how, tuple(names), tuple(rows))] if rows else []


def _facts(place: Workplace, missing: Sequence[str]) -> dict[str, str]:
    study = place.study
    facts = {"perikope": version("perikope"), "encoder": study.encoder, "results a topic": str(DEPTH)}
    for name, collection in place.collections.items():
        sets = ", ".join(f"{own} {len(topics):,}" for own, topics in collection.topics.items())
        facts[name] = f"{len(collection.texts.documents):,} documents, {len(collection.texts.names):,} passages; topics: {sets}"
    facts["training"] = json.dumps(dict(study.training), sort_keys=True)
    # Those in the main tables say so there.
    facts |= {system.name: describe(study, system) for system in study.systems if system.table}
    if missing:
        facts["not run"] = f"{counted(len(missing), 'job')} of {len(study.jobs())}: {'; '.join(missing)}"
    return facts


def _mean(values: Iterable[float]) -> float:
    own = list(values)
    return math.fsum(own) / len(own)
