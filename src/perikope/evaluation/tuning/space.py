"""Tuning: which values of a model's parameters rank training topics best?

What is tuned is written where the model is named: `qsf_section(alpha,beta)` tunes two parameters over their declared grids,
`qsf_section(alpha=[0.2,0.4],beta=0.1)` tries two values, and where nothing is marked, as in `qsf_section` or `qsf_section(beta=0.1)`,
everything of its own that has a grid is tuned but what has a value. A parameter of a model inside another has a path: `base.lam`,
`models.2.alpha`. Signals are computed once a topic and shape; weights only combine them anew.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter as Signature
from typing import Any, Literal

import numpy as np

from perikope.browse.models import MODELS, Model, parse_model
from perikope.core.errors import UsageError, unknown
from perikope.core.grammar import Call, parse
from perikope.core.parameters import Parameter

Search = Literal["grid", "random"]
Setting = tuple[object, ...]

MOST_SETTINGS = 100_000
DIGITS = 9
"""Of a mean that decide: what differs less was rounded otherwise."""


@dataclass(frozen=True)
class Space:
    """A model, and the values that some of its parameters may take."""

    call: Call
    values: Mapping[str, tuple[object, ...]]
    """By path, in the order in which settings name them."""
    settings: tuple[Setting, ...]
    """What is tried: one value a path."""

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The model of each setting."""
        return tuple(self.model(setting) for setting in self.settings)

    def model(self, setting: Setting) -> Model:
        """The model with these values."""
        call = self.call
        for path, value in zip(self.values, setting, strict=True):
            call = _with(call, path.split("."), value)
        return parse_model(call)

    @cached_property
    def by_shape(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of settings, those together that have the same signals."""
        shape = MODELS[self.call.name].shape
        places = [i for i, path in enumerate(self.values) if path.split(".")[0] in shape]
        groups: dict[tuple[object, ...], list[int]] = {}
        for number, setting in enumerate(self.settings):
            groups.setdefault(tuple(setting[i] for i in places), []).append(number)
        return tuple(map(tuple, groups.values()))


Wanted = bool | Sequence[str] | Mapping[str, object]
"""Which parameters are tuned: all of the model's own with a grid, or where it has none those of the models inside it (true), those of these
paths, or paths with the values to try (true: the grid)."""


def read_space(
    text: str, wanted: Wanted = (), *, search: Search = "grid", trials: int = 100, seed: int = 1, keep_given: bool = True
) -> Space:
    """What a text and a wish say is to be tried; random search draws so many settings instead of trying all.

    Where all is wanted, what the text gives a value keeps it, if not told otherwise: a recipe's model gives one to everything.

    >>> read_space("qsf_section(alpha,beta=[0.1,0.2])").values["beta"]
    (0.1, 0.2)
    >>> len(read_space("qsf_v", True).settings), len(read_space("qsf_v(alpha=0.3)", True).settings)
    (33, 3)
    """
    call, marked = _take_marks(parse(text))
    chosen: dict[str, tuple[object, ...] | None] = dict(marked)
    if isinstance(wanted, Mapping):
        for path, values in wanted.items():
            chosen[path] = _listed(path, values)
    elif not isinstance(wanted, bool):
        chosen |= dict.fromkeys(wanted)
    if wanted is True and not chosen:
        kept = _given(call) if keep_given else set()
        gridded = [path for path, parameter in _declared(call) if len(parameter.grid_values()) > 1 and path not in kept]
        chosen = dict.fromkeys([path for path in gridded if "." not in path] or gridded)
    declared = dict(_declared(call))
    for path in chosen:
        if path not in declared:
            raise unknown(f"parameter of {call.name}", path, declared)
    parameters = {path: declared[path] for path in declared if path in chosen}
    if not parameters:
        raise UsageError(f"{call.name} has no parameter to tune that has a grid and no value; write those to tune as {call.name}(name)")
    given = {path: _checked(call, path, parameter, chosen[path]) for path, parameter in parameters.items()}
    if search == "random":
        for path, parameter in parameters.items():
            if given[path] is None and not _is_share(parameter):
                _grid(call, path, parameter)
        return _possible(Space(call, dict.fromkeys(parameters, ()), draw_settings(parameters, given, trials, seed)))
    values = {path: given[path] or _grid(call, path, parameter) for path, parameter in parameters.items()}
    if math.prod(map(len, values.values())) > MOST_SETTINGS:
        raise UsageError(f"there are more than {MOST_SETTINGS} settings; tune fewer parameters, or draw some of them: --search random")
    return _possible(Space(call, values, tuple(itertools.product(*values.values()))))


def _possible(space: Space) -> Space:
    if not space.settings:
        raise UsageError("there is no setting to try")
    space.model(space.settings[0])
    return space


def _checked(call: Call, path: str, parameter: Parameter, values: tuple[object, ...] | None) -> tuple[object, ...] | None:
    """The values to try, each once and each allowed: one that is not must be told now, and not when its turn comes."""
    if values is None:
        return None
    if not values:
        raise UsageError(f"{call.name}: {path}=[] has no value to try; list some, or write {path} alone for its declared grid")
    named = replace(parameter, name=path)
    kept: dict[str, object] = {}
    for value in values:
        allowed = named.check(call.name, value)
        if parameter.nested is not None:
            kept.setdefault(str(value), value)
        else:
            # An unquoted word is a call until it is known to be one of the choices.
            kept.setdefault(repr(allowed), allowed if isinstance(value, Call) else value)
    return tuple(kept.values())


def _grid(call: Call, path: str, parameter: Parameter) -> tuple[object, ...]:
    values = parameter.grid_values()
    if len(values) < 2 or any(value is Signature.empty for value in values):
        allowed = parameter.describe_range()
        raise UsageError(f"{call.name}: {path} has no grid of several values; write those to try as {path}=[…] ({allowed})")
    return values


def _listed(path: str, values: object) -> tuple[object, ...] | None:
    if values is True:
        return None
    listed = tuple(values) if isinstance(values, (list, tuple)) else ()
    if not listed:
        raise UsageError(f"{path}: give a list of values to try, or true for the declared grid")
    return tuple(tuple(value) if isinstance(value, list) else value for value in listed)


def _take_marks(call: Call, prefix: str = "") -> tuple[Call, dict[str, tuple[object, ...] | None]]:
    """The call without its marks of what is tuned, and these: bare names, and lists where one value is declared."""
    definition = MODELS[call.name]
    declared = {**definition.shape, **definition.weights}
    marked: dict[str, tuple[object, ...] | None] = {}
    for value in call.positional:
        name = value.name if isinstance(value, Call) and not value.arguments and not value.positional else str(value)
        if name not in declared:
            raise unknown(f"parameter of {call.name}", name, declared)
        marked[prefix + name] = None
    arguments = dict(call.arguments)
    for name, value in call.arguments.items():
        parameter = declared.get(name)
        if parameter is None:
            raise unknown(f"parameter of {call.name}", name, declared)
        holds_model = parameter.nested is not None and parameter.nested.resolve is parse_model
        if holds_model and isinstance(value, Call):
            arguments[name], inner = _take_marks(value, f"{prefix}{name}.")
            marked |= inner
        elif holds_model and isinstance(value, tuple):
            inside = [_take_marks(one, f"{prefix}{name}.{i}.") if isinstance(one, Call) else (one, {}) for i, one in enumerate(value, 1)]
            arguments[name] = tuple(one for one, _ in inside)
            for _, inner in inside:
                marked |= inner
        elif isinstance(value, tuple) and (parameter.nested is None and parameter.type is not tuple):
            marked[prefix + name] = value
            del arguments[name]
    return replace(call, arguments=arguments, positional=()), marked


def _declared(call: Call, prefix: str = "") -> list[tuple[str, Parameter]]:
    """All parameters of a model and of those inside it, by path; shape comes first."""
    definition = MODELS[call.name]
    found: list[tuple[str, Parameter]] = []
    for name, parameter in {**definition.shape, **definition.weights}.items():
        if parameter.nested is None or parameter.nested.resolve is not parse_model:
            found.append((prefix + name, parameter))
        else:
            inner = _inner(call, name, parameter)
            calls = [(f"{name}.", inner)] if isinstance(inner, Call) else [(f"{name}.{i}.", one) for i, one in enumerate(inner, 1)]
            for step, one in calls:
                found += _declared(one, prefix + step)
    return found


def _given(call: Call, prefix: str = "") -> set[str]:
    """The paths of all that a call gives a value, at any depth."""
    found: set[str] = set()
    for name, value in call.arguments.items():
        found.add(prefix + name)
        if isinstance(value, Call):
            found |= _given(value, f"{prefix}{name}.")
        elif isinstance(value, tuple):
            for i, one in enumerate(value, 1):
                found |= _given(one, f"{prefix}{name}.{i}.") if isinstance(one, Call) else set()
    return found


def marked_parameters(text: str) -> list[str]:
    """The paths of what a text marks to be tuned.

    >>> marked_parameters("qsf_section(alpha,beta=[0.1,0.2])"), marked_parameters("qsf_section(alpha=0.1)")
    (['alpha', 'beta'], [])
    """
    call, marked = _take_marks(parse(text))
    return [path for path, _ in _declared(call) if path in marked]


def _inner(call: Call, name: str, parameter: Parameter) -> Call | tuple[Call, ...]:
    """The models inside a call, given or by default."""
    value: Any = call.arguments.get(name, parameter.default)
    if isinstance(value, (tuple, list)):
        return tuple(one if isinstance(one, Call) else parse(str(one)) for one in value)
    return value if isinstance(value, Call) else parse(str(value))


def _with(call: Call, path: Sequence[str], value: object) -> Call:
    """The call with the value of one parameter, at any depth."""
    name, *rest = path
    if not rest:
        return replace(call, arguments={**call.arguments, name: value})
    definition = MODELS[call.name]
    inner = _inner(call, name, {**definition.shape, **definition.weights}[name])
    if isinstance(inner, Call):
        return replace(call, arguments={**call.arguments, name: _with(inner, rest, value)})
    number = int(rest[0]) - 1
    models = tuple(_with(one, rest[1:], value) if i == number else one for i, one in enumerate(inner))
    return replace(call, arguments={**call.arguments, name: models})


def draw_settings(
    parameters: Mapping[str, Parameter], given: Mapping[str, tuple[object, ...] | None], trials: int, seed: int
) -> tuple[Setting, ...]:
    """So many different settings by chance, each parameter by itself.

    A share is drawn from its range, another number from between the ends of its grid, by its logarithm where these lie far apart; what is
    listed, or is no number, from its values.
    """
    if trials < 1:
        raise UsageError(f"trials must be at least 1, not {trials}")
    chance = np.random.default_rng(seed)
    drawn: dict[Setting, None] = {}
    for _ in range(20 * trials):
        drawn[tuple(_draw(parameter, given[path], chance) for path, parameter in parameters.items())] = None
        if len(drawn) == trials:
            break
    return tuple(drawn)


def _draw(parameter: Parameter, given: tuple[object, ...] | None, chance: np.random.Generator) -> object:
    values = given or parameter.grid_values()
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if given or parameter.type not in (int, float) or len(numbers) < 1:
        return values[int(chance.integers(len(values)))]
    low, high = (0.0, 1.0) if _is_share(parameter) else (min(numbers), max(numbers))
    is_wide = low > 0 and high >= 10 * low
    value = math.exp(chance.uniform(math.log(low), math.log(high))) if is_wide else chance.uniform(low, high)
    # Four digits: a setting that people can read, and that no machine rounds otherwise.
    return round(value) if parameter.type is int else float(f"{value:.4g}")


def _is_share(parameter: Parameter) -> bool:
    """Whether it is a number from 0 to 1, which is drawn from its range and needs no grid."""
    limits = parameter.range
    return parameter.type is float and limits is not None and (limits.low, limits.high) == (0, 1)
