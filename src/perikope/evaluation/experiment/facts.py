"""What a report says about how its figures came about: versions, index, topics, training, and notes."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from perikope import __version__
from perikope.core.errors import UsageError
from perikope.evaluation.experiment.material import Material, topics_digest
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.state import digest
from perikope.query.topic import Topic
from perikope.search.facade import Index


def facts_of(plan: Plan, index: Index, material: Material, notes: Sequence[str]) -> dict[str, str]:
    """The facts of an experiment, by their names in the report."""
    settings = index.settings
    words = settings["stopwords"] if isinstance(settings["stopwords"], str) else f"{len(settings['stopwords'])} words of its own"
    facts = {
        "perikope": __version__,
        "Python": platform.python_version(),
        **{name: _version(name) for name in _packages(plan)},
        "index": index.fingerprint,
        "documents": str(index.documents),
        "passages": str(index.passages),
        "analysis": f"stemmer {settings['stemmer']}, stop words {words}, languages {' '.join(index.languages)}",
        "topics": f"{len(material.topics)}, fingerprint {topics_digest(material.topics, material.judgements)[:16]}",
        "results a topic": str(plan.k),
        "seed": str(plan.seed),
        "plan": digest(plan.source)[:16],
    }
    if plan.training is not None:
        taught = f"{len(material.training_topics)} topics"
        if material.fold:
            taught += f" in {material.folds} folds by {plan.training.folds_by}: each fold is ranked by what the others taught"
        else:
            whose = f", {material.shared} of them among those reported" if material.shared else " of their own"
            taught += f"{whose}, fingerprint {topics_digest(material.training_topics, material.training_judgements)[:16]}"
        facts["training"] = taught
        facts["tuned for"] = plan.training.measure or plan.measures[0]
    if notes:
        facts["notes"] = "; ".join(notes)
    return facts


def _packages(plan: Plan) -> list[str]:
    """The packages that figures depend on."""
    compared = ["scipy"] if len(plan.systems) > 1 and plan.comparison.test != "randomisation" else []
    return ["numpy", "numba", *compared, *(["lightgbm"] if uses_trees(plan) else [])]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def uses_trees(plan: Plan) -> bool:
    """Whether a system of the plan is learned as trees, which needs LightGBM."""
    return any(system.learn == "fusion" and system.method == "lambdamart" for system in plan.systems)


def notes_on_syntax(plan: Plan, index: Index, topics: Sequence[Topic]) -> list[str]:
    """Which systems read topics as Boolean queries where none is written as one: they do what is done with keywords."""
    boolean = [system for system in plan.systems if system.options.get("syntax") == "boolean"]
    if not boolean or any(_is_boolean(topic, index, boolean[0].options.get("language", "")) for topic in topics):
        return []
    names = ", ".join(repr(system.name) for system in boolean)
    return [f'no topic is written as a Boolean query: words are joined by AND, as syntax = "automatic" does, in {names}']


def _is_boolean(topic: Topic, index: Index, language: str) -> bool:
    """Whether a topic says more as a Boolean query than its words do."""
    try:
        trees = [index.check_query(topic.query, language=language, syntax=syntax).tree for syntax in ("boolean", "automatic")]
    except UsageError:
        return False
    return trees[0] != trees[1]
