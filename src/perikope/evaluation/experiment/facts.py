"""The facts section of a report: versions, indexes, topics and training settings that the figures depend on."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from perikope import __version__
from perikope.browse.structure import tags_of_passages
from perikope.core.errors import UsageError
from perikope.document.segmentation import selected_tags
from perikope.evaluation.depth import too_deep_for
from perikope.evaluation.experiment.lexical import LexicalSystems
from perikope.evaluation.experiment.material import topics_digest
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.plan_parts import CollectionPlan, SystemPlan
from perikope.evaluation.experiment.state import digest
from perikope.evaluation.measures import parse_measures
from perikope.query.topic import Topic
from perikope.search.facade import Index
from perikope.search.recipes import differences


def facts_of(plan: Plan, parts: Sequence[LexicalSystems], notes: Sequence[str]) -> dict[str, str]:
    """The facts of an experiment, by their names in the report. `parts` has one element per reported set of topics."""
    facts = {"perikope": __version__, "Python": platform.python_version(), **{name: _version(name) for name in _packages(plan)}}
    for part in parts:
        of_set = _facts_of_set(part)
        facts |= {part.topics.name: "; ".join(f"{name} {value}" for name, value in of_set.items())} if plan.names_sets else of_set
    facts |= {"results per topic": str(plan.depth), "seed": str(plan.seed), "plan": digest(plan.source)[:16]}
    if any(part.topics.training is not None for part in parts) and not plan.kind:
        facts |= _facts_of_training(plan, parts)
    if notes:
        facts["notes"] = "; ".join(notes)
    return facts


def _facts_of_set(part: LexicalSystems) -> dict[str, str]:
    """Facts about the index and the topics of one set of topics."""
    index, material = part.index, part.material
    settings = index.settings
    words = settings["stopwords"] if isinstance(settings["stopwords"], str) else f"{len(settings['stopwords'])} words from a file"
    return {
        "index": index.fingerprint,
        "documents": str(len(index)),
        "passages": str(index.passages),
        "analysis": f"stemmer {settings['stemmer']}, stop words {words}, languages {' '.join(index.languages)}",
        "topics": f"{len(material.topics)}, fingerprint {topics_digest(material.topics, material.judgements)[:16]}",
    }


def _facts_of_training(plan: Plan, parts: Sequence[LexicalSystems]) -> dict[str, str]:
    """Facts about training: the number of training topics, the folds, and the measure that tuning maximises."""
    facts: dict[str, str] = {}
    for part in parts:
        training, material = part.topics.training, part.material
        if training is None:
            continue
        taught = f"{len(material.training_topics)} topics"
        if material.fold:
            taught += f" in {material.folds} folds by {training.folds_by}: each fold is ranked by what the others taught"
        else:
            whose = f", {material.shared} of them among those reported" if material.shared else " of their own"
            taught += f"{whose}, fingerprint {topics_digest(material.training_topics, material.training_judgements)[:16]}"
        prefix = f"{part.topics.name}: " if plan.names_sets else ""
        facts |= {f"{prefix}training": taught, "tuned for": part.tuning_measure}
    return facts


def _packages(plan: Plan) -> list[str]:
    """The names of the installed packages that the figures depend on."""
    compared = ["scipy"] if len(plan.systems) > 1 and plan.comparison.test != "randomisation" else []
    return ["numpy", "numba", *compared, *(["lightgbm"] if uses_trees(plan) else [])]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def uses_trees(plan: Plan) -> bool:
    """Whether a system of the plan learns regression trees, which needs the package LightGBM."""
    return any(system.learn == "fusion" and system.method == "lambdamart" for system in plan.systems)


def notes_on_syntax(plan: Plan, index: Index, topics: Sequence[Topic]) -> list[str]:
    """A list of one note if a system has `syntax = "boolean"` and no topic is a Boolean query, else an empty list."""
    boolean = [system for system in plan.systems if system.options.get("syntax") == "boolean"]
    if not boolean or any(_is_boolean(topic, index, system) for topic in topics for system in boolean):
        return []
    names = ", ".join(repr(system.name) for system in boolean)
    return [f'no topic is written as a Boolean query: words are joined by AND, as syntax = "automatic" does, in {names}']


def notes_on_fields(plan: Plan, topics: Sequence[Topic]) -> list[str]:
    """One note per `browse_field` that some topics lack, but not all."""
    notes = []
    for field in dict.fromkeys(system.browse_field for system in plan.systems if system.browse_field):
        lacking = [topic.qid for topic in topics if not topic.fields.get(field)]
        if 0 < len(lacking) < len(topics):
            more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
            notes.append(
                f"{len(lacking)} of {len(topics)} topics have no field {field} ({', '.join(lacking[:3])}{more}): "
                "their passages are scored by the query"
            )
    return notes


def notes_on_depth(plan: Plan) -> list[str]:
    """One note per measure that needs more results per topic than the plan's `k`."""
    return [
        f"{measure} needs at least {measure.cutoff:,} results per topic, but k = {plan.depth.results:,}: its figures are wrong; "
        "give a larger k, or leave k out"
        for measure in too_deep_for(plan.depth, parse_measures(plan.measures))
    ]


def notes_on_index(plan: Plan, collection: CollectionPlan, index: Index) -> list[str]:
    """One note per setting in `[expects]` that an index does not have.

    If the index takes the place of documents, languages and passages that the file leaves out are noted too.
    """
    made, wanted, found = collection.build, dict(plan.expects), differences(plan.expects, index.settings, index.languages)
    replaces_documents = collection.index is not None
    if replaces_documents and made.languages:
        wanted["languages"] = ",".join(made.languages)
        if others := [language for language in index.languages if language not in made.languages]:
            found.append(f"expects --languages {wanted['languages']}, the index also has text in {' '.join(others)}")
    if replaces_documents and (tags := selected_tags(made.segment)):
        wanted["segment"] = made.segment
        others = [tag or "no tag" for tag in tags_of_passages(index.snapshot) if tag not in tags]
        if others:
            found.append(f"expects --segment {made.segment}, the index also has passages with {_listed(others)}")
    how = " ".join(f"--{name} {value}" for name, value in wanted.items())
    return [
        f"the experiment {difference}: figures will differ; index the documents with {how}, or give documents in place of the index"
        for difference in found
    ]


def _listed(tags: Sequence[str]) -> str:
    """The first tags of a list, and the number of the others."""
    return f"other tags ({', '.join(tags[:3])}{f' and {len(tags) - 3} more' if len(tags) > 3 else ''})"


def _is_boolean(topic: Topic, index: Index, system: SystemPlan) -> bool:
    """Whether the text of a topic that a system scores with means something else than its words joined by AND."""
    text, language = topic.fields.get(system.browse_field) or topic.query, system.options.get("language", "")
    try:
        trees = [index.check_query(text, language=language, syntax=syntax).tree for syntax in ("boolean", "automatic")]
    except UsageError:
        return False
    return trees[0] != trees[1]
