"""How relevant is a passage, given its context? A model is two pure functions of `Matches`, found here by name.

`signals(matches, *, shape parameters)` gives named columns; `combine(signals, *, weights)` gives the score. Signals cost,
combining is nothing, so a grid over weights computes the signals once.
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
    """What of documents a model is about: without any of it, it is a simpler one."""

    of: Literal["titles", "sections", "part", "weighted tags", "logical tags"]
    names: tuple[str, ...] = ()
    """Of the part, or of tags that were written out."""
    table: str = ""
    """Where tags are those of a table."""


Needs = Callable[[Mapping[str, object]], Iterable[Need]]
"""What a model is about, by its parameters."""


def needs_titles(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    """Of models that read titles."""
    return (Need("titles"),)


def needs_nothing(parameters: Mapping[str, object]) -> tuple[Need, ...]:
    """Of models that see any text."""
    return ()


@dataclass(frozen=True, slots=True)
class ModelDefinition:
    """A model as written: its two functions, and the parameters that they declare."""

    name: str
    signals: Callable[..., Signals]
    combine: Callable[..., Column]
    matching_only: bool
    """Whether a passage without any query term is no result: true of models that see no context."""
    shape: Mapping[str, Parameter]
    weights: Mapping[str, Parameter]
    needs: Needs = needs_nothing

    @property
    def needs_store(self) -> bool:
        """Whether it reads vectors that were made before, by `perikope encode`: it then takes the name of a store."""
        return "store" in self.shape

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return (self.combine.__doc__ or "").strip().split("\n")[0]


@dataclass(frozen=True, slots=True)
class Model:
    """A model with its parameters; `str` names it so that it can be parsed back."""

    definition: ModelDefinition
    parameters: Mapping[str, object]

    @property
    def inner(self) -> tuple[Model, ...]:
        """The models that it is built of."""
        values = [value if isinstance(value, tuple) else (value,) for value in self.parameters.values()]
        return tuple(one for value in values for one in value if isinstance(one, Model))

    @property
    def matching_only(self) -> bool:
        """Whether a passage without any query term is no result; a model around others does as all of them do."""
        return all(model.matching_only for model in self.inner) if self.inner else self.definition.matching_only

    @property
    def context_free(self) -> bool:
        """Whether the score of a passage does not depend on which other documents are candidates."""
        return self.definition.matching_only and not self.inner and self.parameters.get("statistics", "collection") == "collection"

    def signals(self, matches: Matches) -> Signals:
        """The named columns, one value a passage."""
        return self.definition.signals(matches, **{name: self.parameters[name] for name in self.definition.shape})

    def combine(self, signals: Signals) -> Column:
        """The score of each passage from its signals."""
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
    """Register a combination, with the signals it combines, as a model under its function's name."""

    def register(combine: Callable[..., Column]) -> Callable[..., Column]:
        name = combine.__name__
        MODELS.add(name, ModelDefinition(name, signals, combine, matching_only, parameters_of(signals), parameters_of(combine), needs))
        return combine

    return register


def parse_model(text: str | Call | Model) -> Model:
    """The model that a text names, its parameters checked against their declaration.

    >>> str(parse_model("qsf_v(alpha=0.5)"))
    'qsf_v(mu=1000.0,content="lm",statistics="documents",alpha=0.5)'
    """
    if isinstance(text, Model):
        return text
    return _parsed(text, MODELS.version) if isinstance(text, str) else _bound(text)


@lru_cache(maxsize=256)
def _parsed(text: str, version: int) -> Model:
    """The same text comes with every search; it is read once per version of the registry."""
    return _bound(parse(text))


def _bound(call: Call) -> Model:
    definition = MODELS[call.name]
    declared = {**definition.shape, **definition.weights}
    if call.positional or call.cutoff is not None:
        raise UsageError(f"{call.name} takes its parameters by name: {', '.join(declared) or 'none'}")
    return Model(definition, bind(call.name, declared, call.arguments))
