"""Figures of a measure against what varies between sweeps or systems: fetched documents, or a parameter of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perikope.core.errors import UsageError
from perikope.core.grammar import Call, parse, write
from perikope.evaluation.experiment.extras import ExtraFigure, Series
from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome

FEWEST = 3
"""Number of systems that must differ in one parameter only, so that they make a line."""


def progressions(outcome: Outcome) -> list[ExtraFigure]:
    """The figures of an outcome: measures by the number of fetched documents, then measures by parameters."""
    return [*_by_documents(outcome), *(figure for sweep in outcome.sweeps for figure in _by_parameter(outcome, sweep))]


def _by_documents(outcome: Outcome) -> Iterable[ExtraFigure]:
    """One figure per set of topics and measure, if the set has sweeps with several numbers of fetched documents."""
    for topics in dict.fromkeys(sweep.topics for sweep in outcome.sweeps):
        sweeps = sorted((sweep for sweep in outcome.sweeps if sweep.topics == topics), key=lambda sweep: sweep.documents)
        if len({sweep.documents for sweep in sweeps}) < 2:
            continue
        names = dict.fromkeys(system.name for sweep in sweeps for system in sweep.systems if not system.table)
        of_set = f": {topics}" if _has_many_sets(outcome) else ""
        for measure in outcome.measures:
            series = tuple(Series(name, _means(sweeps, name, measure)) for name in names)
            caption = "Mean over topics, for each number of documents whose passages are ranked."
            yield ExtraFigure(f"{measure} by fetched documents{of_set}", "documents fetched", measure, series, caption)


def _has_many_sets(outcome: Outcome) -> bool:
    return len({sweep.topics for sweep in outcome.sweeps}) > 1


def _means(sweeps: Sequence[Sweep], name: str, measure: str) -> tuple[tuple[float, float], ...]:
    return tuple((float(sweep.documents), system.mean(measure)) for sweep in sweeps for system in sweep.systems if system.name == name)


def _by_parameter(outcome: Outcome, sweep: Sweep) -> Iterable[ExtraFigure]:
    """One figure per parameter and measure, with one line per group of systems that differ in this parameter only."""
    reference = next((system for system in sweep.systems if system.name == outcome.comparison.reference), None)
    for parameter, groups in _groups(sweep.systems).items():
        for measure in outcome.measures:
            series = [
                Series(name, tuple((value, system.mean(measure)) for value, system in sorted(group.items())))
                for name, group in groups.items()
            ]
            ends = [x for line in series for x, _ in line.points]
            if reference is not None:
                series.append(Series(reference.name, tuple((end, reference.mean(measure)) for end in sorted(set(ends)))))
            label = f": {sweep.label}" if len(outcome.sweeps) > 1 else ""
            caption = f"Mean over topics of systems that differ in {parameter} only."
            yield ExtraFigure(f"{measure} by {parameter}{label}", parameter, measure, tuple(series), caption)


def _groups(systems: Sequence[SystemOutcome]) -> dict[str, dict[str, Mapping[float, SystemOutcome]]]:
    """Systems whose models differ in one number only, by parameter, then by the notation of the rest of the model."""
    groups: dict[str, dict[str, dict[float, SystemOutcome]]] = {}
    for system in systems:
        call = _model(system)
        for parameter, value in call.arguments.items() if call is not None else ():
            if call is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
                groups.setdefault(parameter, {}).setdefault(_rest(call, parameter), {})[float(value)] = system
    lines = {parameter: {rest: group for rest, group in by_rest.items() if len(group) >= FEWEST} for parameter, by_rest in groups.items()}
    return {parameter: dict(zip(_short(list(by_rest)), by_rest.values(), strict=True)) for parameter, by_rest in lines.items() if by_rest}


def _short(models: Sequence[str]) -> list[str]:
    """The notations of models without the arguments that all of them share."""
    calls = [parse(model) for model in models]
    arguments = [dict(_written(call)) for call in calls]
    shared = set.intersection(*(set(written) for written in arguments))
    return [
        f"{call.name}({', '.join(left)})" if (left := [one for one in written if one not in shared]) else call.name
        for call, written in zip(calls, arguments, strict=True)
    ]


def _model(system: SystemOutcome) -> Call | None:
    try:
        return parse(system.model) if system.model else None
    except UsageError:
        return None


def _rest(call: Call, parameter: str) -> str:
    """The notation of a model without one parameter."""
    parts = [text for text, name in _written(call) if name != parameter]
    return f"{call.name}({', '.join(parts)})" if parts else call.name


def _written(call: Call) -> list[tuple[str, str]]:
    """The arguments of a call in its notation, each with its name; the name is empty for an argument without one."""
    return [(write(value), "") for value in call.positional] + [(f"{name}={write(value)}", name) for name, value in call.arguments.items()]
