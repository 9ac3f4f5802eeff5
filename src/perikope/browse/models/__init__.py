"""The registry of models that score passages.

A model consists of two pure functions. `signals(matches, *, …)` returns named columns; its keyword arguments are called
the shape of the model. `combine(signals, *, …)` returns the score; its keyword arguments are called the weights.
Signals are expensive to compute and cheap to combine, so a grid search over weights computes the signals only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from perikope.browse.bounds import HeldTerms, ScoreBound
from perikope.browse.matches import Matches
from perikope.browse.signals import Column
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, parse
from perikope.core.parameters import Parameter, bind, parameters_of
from perikope.core.registry import Registry
from perikope.index.reader import Snapshot

Signals = Mapping[str, Column]
"""Columns by name, each with one value per passage."""


@dataclass(frozen=True, slots=True)
class Need:
    """A feature of documents that a model needs. Without it, the model reduces to a simpler one."""

    of: Literal["titles", "sections", "part", "weighted tags", "logical tags"]
    """Kind of the feature."""
    names: tuple[str, ...] = ()
    """Name of the part, or the tags that the user listed."""
    table: str = ""
    """Name of the saved table that lists the tags; empty if `names` lists them."""


Unmatched = Literal["", "no term", "score 0"]
"""Which passages do not match a model and are therefore no results: none of them, passages without a query term, or
passages with score 0."""

Needs = Callable[[Mapping[str, object]], Iterable[Need]]
"""Function that returns the needs of a model, given the values of its parameters by name."""
Obstacle = Callable[[Snapshot, Mapping[str, object]], str]
"""Function that returns why a model cannot rank all documents of a snapshot, and what to do, in one clause; empty if it
can. It takes the values of the model's parameters by name."""


def needs_titles(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    """The needs of a model that reads titles, whatever its parameters are."""
    return (Need("titles"),)


def needs_nothing(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    """The needs of a model that works on any text: none."""
    return ()


def no_obstacle(snapshot: Snapshot, parameters: Mapping[str, object]) -> str:
    """The obstacle of a model that reads nothing but the index: none."""
    return ""


@dataclass(frozen=True, slots=True)
class ModelDefinition:
    """A registered model: its two functions, and the parameters that these declare."""

    name: str
    signals: Callable[..., Signals]
    combine: Callable[..., Column]
    matching_only: bool
    """Whether passages without a query term are left out of the results. True for models without context."""
    shape: Mapping[str, Parameter]
    """Parameters of `signals`."""
    weights: Mapping[str, Parameter]
    """Parameters of `combine`."""
    needs: Needs = needs_nothing
    """Returns the features of documents that the model needs."""
    zero_is_no_match: bool = False
    """Whether a passage with score 0 does not match the query, as in models of proximity."""
    obstacle: Obstacle = no_obstacle
    """Returns why the model cannot rank all documents of a snapshot; empty if it can."""
    bound: Callable[..., ScoreBound] | None = None
    """Returns a bound of the scores of passages, given a `HeldTerms` and the parameters of the model; None if the model
    has none."""

    @property
    def needs_store(self) -> bool:
        """Whether the model reads vectors stored by `perikope encode`. Such a model has a parameter `store`."""
        return "store" in self.shape

    @property
    def needs_folder(self) -> bool:
        """Whether the model reads a folder of another program. Such a model has a parameter `folder`."""
        return "folder" in self.shape

    @property
    def is_ready(self) -> bool:
        """Whether the model ranks with the index alone."""
        return not (self.needs_store or self.needs_folder)

    @property
    def summary(self) -> str:
        """The first line of the docstring of `combine`."""
        return (self.combine.__doc__ or "").strip().split("\n")[0]


@dataclass(frozen=True, slots=True)
class Model:
    """A model with the values of its parameters. `parse_model(str(model))` returns an equal model."""

    definition: ModelDefinition
    parameters: Mapping[str, object]

    @property
    def inner(self) -> tuple[Model, ...]:
        """The models among the values of the parameters, such as the models that `fuse` combines."""
        values = [value if isinstance(value, tuple) else (value,) for value in self.parameters.values()]
        return tuple(item for value in values for item in value if isinstance(item, Model))

    @property
    def matching_only(self) -> bool:
        """Whether passages without a query term are left out of the results.

        A model with inner models leaves them out if all inner models do.
        """
        return all(model.matching_only for model in self.inner) if self.inner else self.definition.matching_only

    @property
    def unmatched(self) -> Unmatched:
        """Which passages do not match the model. With inner models, a score of 0 must be no match in all of them."""
        if self.matching_only:
            return "no term"
        return "score 0" if self.definition.zero_is_no_match and all(model.unmatched == "score 0" for model in self.inner) else ""

    @property
    def context_free(self) -> bool:
        """Whether the score of a passage is independent of the other candidates."""
        return self.definition.matching_only and not self.inner and self.parameters.get("statistics", "collection") == "collection"

    @property
    def is_bounded(self) -> bool:
        """Whether the scores of passages have a bound. They then do not depend on other candidates."""
        return self.definition.bound is not None and self.parameters.get("statistics", "collection") == "collection"

    def bound(self, held: HeldTerms) -> ScoreBound:
        """The bound of the scores of passages in documents. The model must be bounded."""
        assert self.definition.bound is not None
        return self.definition.bound(held, **self.parameters)

    @property
    def short(self) -> str:
        """The model with the parameters that differ from their defaults. `parse_model` returns an equal model."""
        default = _defaults(self.definition.name, MODELS.version)
        return str(Call(self.definition.name, {name: value for name, value in self.parameters.items() if value != default[name]}))

    def obstacle(self, snapshot: Snapshot) -> str:
        """Why the model, or a model among its parameters, cannot rank all documents of a snapshot; empty if all can."""
        own = self.definition.obstacle(snapshot, self.parameters)
        return own or next(filter(None, (model.obstacle(snapshot) for model in self.inner)), "")

    def signals(self, matches: Matches) -> Signals:
        """The signals by name, each with one value per passage."""
        return self.definition.signals(matches, **{name: self.parameters[name] for name in self.definition.shape})

    def combine(self, signals: Signals) -> Column:
        """The score of each passage, computed from its signals."""
        return self.definition.combine(signals, **{name: self.parameters[name] for name in self.definition.weights})

    def score(self, matches: Matches) -> Column:
        """The score of each passage."""
        return self.combine(self.signals(matches))

    def __str__(self) -> str:
        return str(Call(self.definition.name, self.parameters))


MODELS: Registry[ModelDefinition] = Registry("model", "perikope.browse.models")


def model(
    signals: Callable[..., Signals],
    *,
    matching_only: bool = False,
    zero_is_no_match: bool = False,
    needs: Needs = needs_nothing,
    obstacle: Obstacle = no_obstacle,
    bound: Callable[..., ScoreBound] | None = None,
) -> Callable[[Callable[..., Column]], Callable[..., Column]]:
    """Decorator that registers a `combine` function together with `signals` as a model.

    The name of the model is the name of the decorated function. Registering a function of the same name and module
    again replaces the model, as when a cell of a notebook runs twice. Other models cannot be replaced.
    With `matching_only`, passages without a query term are no results; with `zero_is_no_match`, passages with score 0
    are none. `obstacle` is for models that read more than the index, such as vectors. For `bound` see
    `ModelDefinition`.
    """

    def register(combine: Callable[..., Column]) -> Callable[..., Column]:
        name = combine.__name__
        shape, weights = parameters_of(signals), parameters_of(combine)
        definition = ModelDefinition(name, signals, combine, matching_only, shape, weights, needs, zero_is_no_match, obstacle, bound)
        MODELS.add(name, definition, combine)
        return combine

    return register


def parse_model(text: str | Call | Model | Callable[..., object]) -> Model:
    """The model that a text such as `qsf_v(alpha=0.5)` names, with its parameters checked and defaults filled in.

    A function that is registered as a model stands for this model with its defaults.

    >>> str(parse_model("qsf_v(alpha=0.5)"))
    'qsf_v(mu=1000.0,content="lm",statistics="documents",alpha=0.5)'
    """
    if isinstance(text, Model):
        return text
    if isinstance(text, str):
        return _parsed(text, MODELS.version)
    return _bound(text if isinstance(text, Call) else Call(_name_of(text)))


def _name_of(function: Callable[..., object]) -> str:
    """The name of the model that a function was registered as. Raises `UsageError` if there is no such model."""
    for name, definition in MODELS.items():
        if definition.combine is function:
            return name
    written = getattr(function, "__name__", type(function).__name__)
    raise UsageError(
        f"the function {written} is not a registered model; decorate it with @perikope.model(signals), where signals is the function that "
        "computes what it combines, then pass it or its name as model"
    )


@lru_cache(maxsize=256)
def _parsed(text: str, version: int) -> Model:
    """Parse a model, cached because every search passes the same text. `version` is the version of the registry."""
    return _bound(parse(text))


@lru_cache(maxsize=256)
def _defaults(name: str, version: int) -> Mapping[str, object]:
    """The defaults of a model's parameters. For `version` see `_parsed`."""
    return _bound(Call(name)).parameters


def _bound(call: Call) -> Model:
    definition = MODELS[call.name]
    declared = {**definition.shape, **definition.weights}
    if call.positional or call.cutoff is not None:
        raise UsageError(f"{call.name} takes its parameters by name, as name=value; it has: {', '.join(declared) or 'none'}")
    return Model(definition, bind(call.name, declared, call.arguments))
