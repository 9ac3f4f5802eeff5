"""Reads and checks the systems of a plan: models, recipes, runs, rankers and fusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perikope.browse.models import parse_model
from perikope.core.configuration import SUFFIX
from perikope.core.errors import PerikopeError, unknown
from perikope.core.grammar import parse
from perikope.evaluation.experiment.kinds import SystemKind
from perikope.evaluation.experiment.outcome import slug
from perikope.evaluation.experiment.plan_keys import RANKER_OPTIONS, ExperimentKeys, RepeatedSystemKeys, SystemKeys
from perikope.evaluation.experiment.plan_parts import SystemPlan, TopicSet
from perikope.evaluation.tuning.space import marked_parameters, read_space
from perikope.search.recipes import load_recipe


def read_systems(
    keys: ExperimentKeys, folder: Path, sets: Sequence[TopicSet], kind: SystemKind | None, shared: Any
) -> tuple[SystemPlan, ...]:
    """The systems of a file, in order.

    A model that fuses systems may only name systems above it. A fusion with a ranker may name any other system.
    """
    if not keys.systems:
        raise keys.wrong("systems", "is empty; add at least one table [[systems]]")
    systems: dict[str, SystemPlan] = {}
    for system_keys in keys.systems:
        if not system_keys.name.strip():
            raise system_keys.wrong("name", "is missing; give every system a name")
        if system_keys.name in systems:
            raise system_keys.wrong("name", "is used twice; give every system a different name")
        if kind is not None and not system_keys.given & {"model", "recipe", "run", "runs"}:
            system = _repeated(system_keys, kind, shared, keys)
        elif system_keys.given & {"run", "runs"} and not system_keys.given & {"model", "recipe"}:
            system = _other_run(system_keys, folder, sets)
        else:
            system = _system(system_keys, folder, keys, systems, trains=all(topics.training is not None for topics in sets))
        if slug(system.name) in {slug(other) for other in systems}:
            raise keys.wrong("systems", f"has two names that differ in no letter or digit, such as {system.name!r}; rename one of them")
        systems[system.name] = system
    for system_keys in keys.systems:
        if systems[system_keys.name].fuses:
            _check_fusion(system_keys, systems)
        _check_tables(system_keys, systems)
    return tuple(systems.values())


def _repeated(keys: SystemKeys, kind: SystemKind, shared: Any, experiment: ExperimentKeys) -> SystemPlan:
    """A ranker of the experiment's kind, or a fusion with one."""
    assert isinstance(keys, RepeatedSystemKeys)
    if keys.of:
        if extra := sorted(keys.given - {"name", "of", "table", "also_in"}):
            raise keys.wrong(extra[0], "does not apply to a fusion; remove it")
        return SystemPlan(keys.name, of=keys.of, table=keys.table, also_in=keys.also_in)
    if of_search := [key for key in ("tune", "search", "trials", "learn", "method", "min_occurrences") if key in keys.given]:
        raise keys.wrong(of_search[0], "does not apply to a ranker; remove it, or give the system a model")
    options = {**experiment.search, **keys.options}
    for name in options:
        if name not in (*RANKER_OPTIONS, "documents"):
            location = keys.location.inner("options") if name in keys.options else experiment.location.inner("search")
            raise location.wrong(name, f"does not apply to the ranker {keys.name!r}; write it in the options of systems that have a model")
    if "documents" in keys.options:
        raise keys.location.inner("options").wrong("documents", "is the same for all systems; write documents = … above all tables")
    used = {name: value for name, value in options.items() if name != "documents"}
    return SystemPlan(keys.name, table=keys.table, also_in=keys.also_in, options=used, **kind.read_system(keys, shared))


def _check_fusion(keys: SystemKeys, systems: Mapping[str, SystemPlan]) -> None:
    rankers = [name for system in systems.values() if system.ranker is not None for name in (system.name, *system.derived)]
    for part in keys.of:
        if part not in systems and part not in rankers:
            raise keys.wrong("of", f"is wrong: {unknown('system', part, [*systems, *rankers])}")
    if sorted(part in rankers for part in keys.of) != [False, True] or any(systems[part].fuses for part in keys.of if part in systems):
        raise keys.wrong("of", "must name two systems for a fusion: one that has runs or a model, and a ranker")


def _check_tables(keys: SystemKeys, systems: Mapping[str, SystemPlan]) -> None:
    tables = list(dict.fromkeys(system.table for system in systems.values() if system.table))
    for title in systems[keys.name].also_in:
        if title not in tables:
            raise keys.wrong("also_in", f"is wrong: {unknown('table', title, tables)}")


def _other_run(keys: SystemKeys, folder: Path, sets: Sequence[TopicSet]) -> SystemPlan:
    """A system whose runs another program has made."""
    if extra := sorted(keys.given - {"name", "run", "runs"}):
        raise keys.wrong(extra[0], "does not apply to a system with run or runs; remove it")
    names = [topics.name for topics in sets]
    if keys.run:
        if keys.runs or len(names) > 1:
            raise keys.wrong("run", "is for one set of topics; write runs, a table with one file per set")
        return SystemPlan(keys.name, runs={names[0]: folder / keys.run})
    for name in keys.runs:
        if name not in names:
            raise keys.wrong("runs", f"is wrong: {unknown('reported set of topics', name, names)}")
    if not keys.runs:
        raise keys.wrong("run", "is empty; name a file")
    return SystemPlan(keys.name, runs={name: folder / file for name, file in keys.runs.items()})


def _system(keys: SystemKeys, folder: Path, experiment: ExperimentKeys, others: Mapping[str, SystemPlan], *, trains: bool) -> SystemPlan:
    """A system that searches, whose model may be tuned, learned or fused.

    `trains`: whether there are training topics.
    """
    if keys.run or keys.runs or not (keys.model or keys.recipe):
        raise keys.wrong("model", "or recipe, or run, must be given; a run cannot be combined with a model or recipe")
    system = _searching(keys, folder, experiment.search)
    if keys.tune is not False:
        return _tuned(keys, system, experiment.seed, trains)
    if extra := [key for key in ("search", "trials") if key in keys.given]:
        raise keys.wrong(extra[0], "is only for tuning; write tune = true as well, or remove it")
    if "of" in keys.given:
        return _put_together(keys, system, others)
    _check_model(keys, system.model)
    if "learn" in keys.given:
        return _learned(keys, system, trains)
    if of_learning := [key for key in ("method", "min_occurrences") if key in keys.given]:
        raise keys.wrong(of_learning[0], "is only for learning; write learn = … as well, or remove it")
    return system


def _searching(keys: SystemKeys, folder: Path, common: Mapping[str, Any]) -> SystemPlan:
    """A system with its model and search options, before tuning or learning. `common` are the options of [search]."""
    recipe = str(folder / keys.recipe) if keys.recipe.endswith(SUFFIX) else keys.recipe
    of_recipe = keys.check("recipe", lambda: load_recipe(recipe)).options if recipe else {}
    if "documents" in keys.options:
        raise keys.location.inner("options").wrong("documents", "is the same for all systems; write it in [sweep] or in [search]")
    options = {**common, **of_recipe, **keys.options}
    model = keys.model or str(options.get("model", ""))
    return SystemPlan(
        keys.name, model, recipe, options={name: options[name] for name in options if name not in ("model", "k", "documents")}
    )


def _check_model(keys: SystemKeys, model: str) -> None:
    try:
        parse_model(model)
    except PerikopeError as error:
        if marked := keys.check("model", lambda: marked_parameters(model)):
            raise keys.wrong(
                "model", f"has parameters without a value ({', '.join(marked)}); add tune = true, or give each a value"
            ) from error
        raise keys.wrong("model", f"is wrong: {error}") from error


def _tuned(keys: SystemKeys, system: SystemPlan, seed: int, trains: bool) -> SystemPlan:
    if keys.given & {"learn", "of"}:
        raise keys.wrong("tune", "cannot be combined with learn or of; remove one of them")
    if not trains:
        raise keys.wrong("tune", "needs topics to tune on: write [training] with folds, or with topics and judgements")
    # Values that the user writes in `model` are kept. A recipe gives every parameter a value, and these may be tuned.
    space = keys.check(
        "tune",
        lambda: read_space(system.model, keys.tune, search=keys.search, trials=keys.trials, seed=seed, keep_given=bool(keys.model)),
    )
    return replace(system, space=space)


def _put_together(keys: SystemKeys, system: SystemPlan, others: Mapping[str, SystemPlan]) -> SystemPlan:
    for other in keys.of:
        if other not in others:
            raise keys.wrong("of", f"is wrong: {unknown('system above this one', other, others)}")
        if not others[other].searches or others[other].learn == "fusion" or others[other].of:
            raise keys.wrong("of", f"cannot name {other!r}: only models can be fused, not runs, learned fusions or other fusions")
    call = keys.check("model", lambda: parse(system.model))
    if call.name not in ("fuse", "rrf") or "models" in call.arguments:
        raise keys.wrong("model", "must be fuse or rrf without the parameter models, because the key of names the systems")
    if len(keys.of) < 2:
        raise keys.wrong("of", "must name at least two systems")
    return replace(system, of=keys.of)


_LEARNERS = {"fusion": ("learned",), "prior": ("position_prior",), "tags": ("prox_h", "prox_hw")}
"""The models whose weights can be learned, by the value of `learn`."""


def _learned(keys: SystemKeys, system: SystemPlan, trains: bool) -> SystemPlan:
    if not keys.learn:
        raise keys.wrong("learn", f"is empty; write one of {', '.join(_LEARNERS)}, or leave it out")
    if not trains:
        raise keys.wrong("learn", "needs topics to learn from: write [training] with folds, or with topics and judgements")
    name, models = parse(system.model).name, _LEARNERS[keys.learn]
    if name not in models:
        raise keys.wrong("model", f"must be {' or '.join(models)} with learn = {keys.learn!r}, not {name}")
    for key, learn in (("method", "fusion"), ("min_occurrences", "tags")):
        if key in keys.given and keys.learn != learn:
            raise keys.wrong(key, f"is only for learn = {learn!r}; remove it")
    return replace(system, learn=keys.learn, method=keys.method, min_occurrences=keys.min_occurrences)
