"""The registry of models that score passages. A model is two pure functions.

`signals(matches, *, shape parameters)` returns named columns; `combine(signals, *, weights)` returns the score. Signals
are expensive and combining them is cheap, so a grid over weights computes the signals once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from perikope.browse.matches import Matches
from perikope.browse.signals import Column
from perikope.core.errors import UsageError
from perikope.core.grammar import Call, parse
from perikope.core.parameters import Parameter, bind, parameters_of
from perikope.core.registry import Registry

Signals = Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class Need:
    """A document feature that a model needs; without it the model reduces to a simpler one."""

    of: Literal["titles", "sections", "part", "weighted tags", "logical tags"]
    names: tuple[str, ...] = ()
    """Name of the part, or the tags that the user listed."""
    table: str = ""
    """Name of the table that lists the tags; empty if `names` does."""


Needs = Callable[[Mapping[str, object]], Iterable[Need]]
"""Returns the needs of a model with the given parameters."""


def needs_titles(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    """The needs of a model that reads titles."""
    return (Need("titles"),)


def needs_nothing(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    """The needs of a model that works on any text."""
    return ()


@dataclass(frozen=True, slots=True)
class ModelDefinition:
    """A registered model: its two functions and their declared parameters."""

    name: str
    signals: Callable[..., Signals]
    combine: Callable[..., Column]
    matching_only: bool
    """Whether passages without a query term are left out of the results: true for models that see no context."""
    shape: Mapping[str, Parameter]
    """Parameters of `signals`."""
    weights: Mapping[str, Parameter]
    """Parameters of `combine`."""
    needs: Needs = needs_nothing

    @property
    def needs_store(self) -> bool:
        """Whether the model reads vectors that `perikope encode` stored: it then has a parameter `store`."""
        return "store" in self.shape

    @property
    def summary(self) -> str:
        """The first line of the model's docstring."""
        return (self.combine.__doc__ or "").strip().split("\n")[0]


@dataclass(frozen=True, slots=True)
class Model:
    """A model with the values of its parameters; `parse_model` reads what `str` returns."""

    definition: ModelDefinition
    parameters: Mapping[str, object]

    @property
    def inner(self) -> tuple[Model, ...]:
        """The models among the parameters, such as those that `fuse` combines."""
        values = [value if isinstance(value, tuple) else (value,) for value in self.parameters.values()]
        return tuple(item for value in values for item in value if isinstance(item, Model))

    @property
    def matching_only(self) -> bool:
        """Whether passages without a query term are left out; with inner models, whether all of these do so."""
        return all(model.matching_only for model in self.inner) if self.inner else self.definition.matching_only

    @property
    def context_free(self) -> bool:
        """Whether the score of a passage is independent of the other candidates."""
        return self.definition.matching_only and not self.inner and self.parameters.get("statistics", "collection") == "collection"

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
    signals: Callable[..., Signals], *, matching_only: bool = False, needs: Needs = needs_nothing
) -> Callable[[Callable[..., Column]], Callable[..., Column]]:
    """Decorator that registers a `combine` function, with its `signals`, as a model under the function's name."""

    def register(combine: Callable[..., Column]) -> Callable[..., Column]:
        name = combine.__name__
        MODELS.add(name, ModelDefinition(name, signals, combine, matching_only, parameters_of(signals), parameters_of(combine), needs))
        return combine

    return register


def parse_model(text: str | Call | Model) -> Model:
    """The model that a text names, with its parameters checked.

    >>> str(parse_model("qsf_v(alpha=0.5)"))
    'qsf_v(mu=1000.0,content="lm",statistics="documents",alpha=0.5)'
    """
    if isinstance(text, Model):
        return text
    return _parsed(text, MODELS.version) if isinstance(text, str) else _bound(text)


@lru_cache(maxsize=256)
def _parsed(text: str, version: int) -> Model:
    """Parse a model once per version of the registry, because the same text comes with every search."""
    return _bound(parse(text))


def _bound(call: Call) -> Model:
    definition = MODELS[call.name]
    declared = {**definition.shape, **definition.weights}
    if call.positional or call.cutoff is not None:
        raise UsageError(f"{call.name} takes its parameters by name: {', '.join(declared) or 'none'}")
    return Model(definition, bind(call.name, declared, call.arguments))
