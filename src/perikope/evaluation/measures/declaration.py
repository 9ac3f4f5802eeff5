"""Declares measures and reads their notation.

    @measure("AP", aliases=("MAP",))
    def average_precision(
        ranked: Sequence[str], judged: Mapping[str, int], cutoff: int | None = None, *,
        rel: Annotated[int, Range(1)] = 1,
    ) -> float: ...

A measure is a pure function of the results of one query, best first, and of its judgements. The level of a measure says
which types these have:

    names       names of passages or documents, and grades by name
    characters  ranges of text, and relevant text by document
    context     like characters, but the results of a document must follow each other

A measure with an argument `cutoff` takes a cutoff, and needs one if the argument has no default. A cutoff is a number
of results or, if the argument is declared as a float, a level of recall. Parameters are keyword-only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal, TypeVar, get_type_hints

from perikope.core.errors import UsageError, unknown
from perikope.core.grammar import Call, parse
from perikope.core.installation import install_command
from perikope.core.parameters import Parameter, bind, parameters_of
from perikope.core.registry import Registry

Function = TypeVar("Function", bound=Callable[..., float])
Level = Literal["names", "characters", "context"]


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A declared measure: its function, aliases, parameters, and whether it takes a cutoff."""

    name: str
    aliases: tuple[str, ...]
    function: Callable[..., float]
    parameters: Mapping[str, Parameter]
    takes_cutoff: bool
    needs_cutoff: bool
    default_cutoff: float | None
    level: Level = "names"
    cutoff_is_recall: bool = False
    """Whether the cutoff is a level of recall from 0 to 1, not a number of results."""
    short: Mapping[str, str] = field(default_factory=dict)
    """Short names, each with the parameter that its value sets. With T2I and t2i, `T2I(300)` means `t2i=300`."""
    ranks_documents: bool = False
    """Whether the measure ranks documents by their results, so that the cutoff is a number of documents."""

    @property
    def example(self) -> str:
        """An example of the notation of the measure, such as `P@10`."""
        return self.name + (("@0.01" if self.cutoff_is_recall else "@10") if self.needs_cutoff else "")

    def checked_cutoff(self, given: float | None) -> float | None:
        """The given cutoff, or the default if it is None. Raises an error if the measure does not take this cutoff."""
        if given is None:
            if self.needs_cutoff:
                raise UsageError(f"{self.name} needs a cutoff, such as {self.example}")
            return self.default_cutoff
        if not self.takes_cutoff:
            raise UsageError(f"{self.name} takes no cutoff; ask for {self.name} without @{given}")
        if self.cutoff_is_recall:
            if not 0 <= given <= 1:
                raise UsageError(f"{self.name}@{given}: the recall must be between 0 and 1, such as {self.example}")
            return float(given)
        if given < 1 or given != int(given):
            raise UsageError(f"{self.name}@{given}: the cutoff must be a whole number of at least 1, such as {self.name}@10")
        return int(given)


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """A measure with values of its parameters and a cutoff. `str` gives its canonical name."""

    definition: Definition
    arguments: tuple[tuple[str, object], ...] = ()
    """The name and value of each parameter."""
    cutoff: float | None = None
    asked: str = field(default="", compare=False)
    """The name as the user wrote it; empty if the measure was not read from text."""

    @property
    def level(self) -> Level:
        """The kind of results that the measure takes."""
        return self.definition.level

    def __call__(self, ranked: Sequence[Any], judged: Mapping[str, Any]) -> float:
        """The value for one query. `ranked` has its results, best first, and `judged` its judgements.

        For the level `names`, results are names, and judgements are grades by name.
        """
        if self.level != "names" and ranked and isinstance(ranked[0], str):
            raise UsageError(f"{self.asked or self} counts characters; give it ranges of text, not names of passages")
        cutoff = (self.cutoff,) if self.definition.takes_cutoff else ()
        return self.definition.function(ranked, judged, *cutoff, **dict(self.arguments))

    def __str__(self) -> str:
        declared = self.definition.parameters
        changed = {name: value for name, value in self.arguments if value != declared[name].default}
        return str(Call(self.definition.name, changed, cutoff=self.cutoff))

    __repr__ = __str__


MEASURES: Registry[Definition] = Registry("measure", "perikope.evaluation.measures")


def measure(
    name: str,
    aliases: Iterable[str] = (),
    *,
    level: Level = "names",
    short: Mapping[str, str] | None = None,
    ranks_documents: bool = False,
) -> Callable[[Function], Function]:
    """A decorator that registers a function as a measure.

    An alias may have a word in parentheses, such as `MAP(D)`. With `short={"T2I": "t2i"}`, `T2I(300)` means the measure
    with `t2i=300`. `ranks_documents` means that a cutoff counts documents, not results.
    """

    def register(function: Function) -> Function:
        cutoff = inspect.signature(function).parameters.get("cutoff")
        needs = cutoff is not None and cutoff.default is inspect.Parameter.empty
        default = None if cutoff is None or needs else cutoff.default
        is_recall = get_type_hints(function).get("cutoff") is float
        declared = parameters_of(function)
        definition = Definition(
            name, tuple(aliases), function, declared, cutoff is not None, needs, default, level, is_recall, short or {}, ranks_documents
        )
        MEASURES.add(name, definition, function)
        return function

    return register


def parse_measure(text: str) -> Measure:
    """Read a measure from its canonical name, such as `APD`, or from an alias, such as `MAP(D)`.

    >>> parse_measure("MAP(D)"), parse_measure("MAP(rel=2)@100"), parse_measure("PRES")
    (APD, AP(rel=2)@100, PRES@100)
    >>> parse_measure("MAP(D)").asked
    'MAP(D)'
    >>> parse_measure("iP[.01]"), parse_measure("gP[10]"), parse_measure("MAgP(t2i=300)")
    (iP@0.01, gP@10, AgP(t2i=300))
    >>> parse_measure("T2I(300)") == parse_measure("MAgP(t2i=300)")
    True
    """
    call = _in_full(parse(text))
    borrowed = None if call.name in _definitions() else _borrowed(call)
    if borrowed is not None:
        return Measure(borrowed, asked=text.strip())
    definition = _find(call)
    arguments = bind(definition.name, definition.parameters, call.arguments)
    return Measure(definition, tuple(arguments.items()), definition.checked_cutoff(call.cutoff), text.strip())


def parse_measures(asked: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """Read measures from a text of names separated by spaces, or from a list of names and measures.

    >>> parse_measures("nDCG@10 MAP( D ) PRES@50")
    [nDCG@10, APD, PRES@50]
    """
    if isinstance(asked, Measure):
        return [asked]
    if isinstance(asked, str):
        return [_parse_one(piece) for piece in _pieces(asked)]
    return [measure for entry in asked for measure in parse_measures(entry)]


def _parse_one(text: str) -> Measure:
    try:
        return parse_measure(text)
    except UsageError as error:
        parts = _pieces(text, ",")
        if parts in ([], [text]):
            raise
        raise UsageError(f"{text!r} has a comma: separate measures by spaces, {' '.join(parts)!r}") from error


def _pieces(text: str, also: str = "") -> list[str]:
    """Split a text at white space and at the character `also`, but not inside parentheses or brackets."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if (character.isspace() or character == also) and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece for piece in pieces if piece]


def _definitions() -> dict[str, Definition]:
    """The declared measures by name and by alias."""
    definitions = dict(MEASURES.items())
    return definitions | {alias: definition for definition in definitions.values() for alias in definition.aliases}


def _in_full(call: Call) -> Call:
    """Expand a short name: `T2I(300)` becomes `AgP(t2i=300)`. Any other call is returned unchanged."""
    for name, definition in MEASURES.items():
        if call.name in definition.short:
            parameter = definition.short[call.name]
            if len(call.positional) != 1 or parameter in call.arguments:
                raise UsageError(f"{call.name} takes one value: {call.name}({parameter}), such as {call.name}(300)")
            return Call(name, {parameter: call.positional[0], **call.arguments}, cutoff=call.cutoff)
    return call


def _borrowed(call: Call) -> Definition | None:
    """The measure with this name in ir_measures; None if there is no such measure or ir_measures is not installed."""
    from perikope.evaluation.measures.borrowed import borrow

    return borrow(call)


def _find(call: Call) -> Definition:
    # `MAP(D)` is parsed as a call of MAP with the value D. `MAP(D, rel=2)` is looked up as `MAP(D)`.
    spelling = str(Call(call.name, positional=call.positional))
    definitions = _definitions()
    if spelling in definitions:
        return definitions[spelling]
    if call.name in definitions:
        known = definitions[call.name]
        names = ", ".join(known.parameters) or "(none)"
        raise UsageError(f"{spelling}: parameters of {call.name} are given as name=value; there are: {names}")
    short = [f"{name}({parameter})" for definition in dict(MEASURES.items()).values() for name, parameter in definition.short.items()]
    complaint = unknown("measure", spelling, [*definitions, *short])
    if find_spec("ir_measures") is None:
        raise UsageError(f"{complaint}; for the measures of ir_measures: {install_command('eval')}")
    raise complaint
