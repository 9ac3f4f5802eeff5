"""The space of settings: the parameters of a model that are tuned, and the values to try.

The notation of a model can mark the parameters to tune:

- `qsf_section(alpha,beta)` tunes two parameters over their declared grids.
- `qsf_section(alpha=[0.2,0.4],beta=0.1)` tries two values of alpha.
- `qsf_section` and `qsf_section(beta=0.1)` mark nothing. With `wanted=True`, every parameter that has a declared grid
  and no value is tuned.

A parameter of a model inside another model has a path, such as `base.lam` or `models.2.alpha`.

A model has two kinds of parameters. Those of its shape change its signals, and its weights only combine the signals.
Settings that differ only in weights share the signals of a topic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True)
class Space:
    """A model, and the settings to try for some of its parameters."""

    call: Call
    """The notation of the model, without marks for tuning."""
    values: Mapping[str, tuple[object, ...]]
    """The values to try, by path of the parameter. The values are empty in a random search."""
    settings: tuple[Setting, ...]
    """The settings to try. Each has one value per parameter, in the order of `values`."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """The value that each parameter has if it is not tuned, by path. The nearest of equally good settings is chosen."""

    @cached_property
    def distances(self) -> tuple[float, ...]:
        """The distance of each setting from the defaults: the number of values that differ, plus how far they are.

        How far numbers are is a share of the span of all tried values. The mean of these shares is below 1, so a
        setting with more default values is always nearer.
        """
        spans = []
        for i, path in enumerate(self.values):
            values = [self.defaults.get(path), *(setting[i] for setting in self.settings)]
            numbers = [float(value) for value in values if isinstance(value, (int, float))]
            spans.append(max(numbers) - min(numbers) if numbers else 0.0)
        return tuple(self._distance(setting, spans) for setting in self.settings)

    def _distance(self, setting: Setting, spans: Sequence[float]) -> float:
        shares = []
        for path, value, span in zip(self.values, setting, spans, strict=True):
            default = self.defaults.get(path)
            if value != default and str(value) != str(default):
                are_numbers = isinstance(value, (int, float)) and isinstance(default, (int, float))
                shares.append(abs(value - default) / span if are_numbers else 1.0)  # type: ignore[operator]
        return len(shares) + sum(shares) / (len(shares) + 1)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The models with the values of each setting, in the order of `settings`."""
        return tuple(self.model(setting) for setting in self.settings)

    def model(self, setting: Setting) -> Model:
        """The model with the values of a setting."""
        call = self.call
        for path, value in zip(self.values, setting, strict=True):
            call = _with(call, path.split("."), value)
        return parse_model(call)

    @cached_property
    def by_shape(self) -> tuple[tuple[int, ...], ...]:
        """The indices of the settings, grouped so that the settings of a group share their signals."""
        shape = MODELS[self.call.name].shape
        columns = [i for i, path in enumerate(self.values) if path.split(".")[0] in shape]
        groups: dict[tuple[object, ...], list[int]] = {}
        for number, setting in enumerate(self.settings):
            groups.setdefault(tuple(setting[i] for i in columns), []).append(number)
        return tuple(map(tuple, groups.values()))


Wanted = bool | Sequence[str] | Mapping[str, object]
"""The parameters to tune, in addition to those that the notation of the model marks.

- True, if nothing is marked: all parameters of the model that have a grid. If there are none, all parameters with a
  grid of the models inside it.
- A list of paths: these parameters, with their declared grids.
- A mapping of paths: these parameters, each with a list of values to try, or True for its declared grid.
"""


def read_space(
    text: str, wanted: Wanted = (), *, search: Search = "grid", trials: int = 100, seed: int = 1, keep_given: bool = True
) -> Space:
    """Read a space from the notation of a model and from `wanted`. A random search draws at most `trials` settings.

    With `wanted=True`, a parameter that has a value in the text is not tuned, unless `keep_given` is false. Models of
    recipes need `keep_given=False`, because a recipe gives every parameter a value.

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
        with_value = _given(call) if keep_given else set()
        gridded = [path for path, parameter in _declared(call) if len(parameter.grid_values()) > 1 and path not in with_value]
        chosen = dict.fromkeys([path for path in gridded if "." not in path] or gridded)
    declared = dict(_declared(call))
    for path in chosen:
        if path not in declared:
            raise unknown(f"parameter of {call.name}", path, declared)
    parameters = {path: declared[path] for path in declared if path in chosen}
    if not parameters:
        raise UsageError(f"{call.name} has no parameter with a grid and without a value; name the parameters to tune: {call.name}(name)")
    given = {path: _checked(call, path, parameter, chosen[path]) for path, parameter in parameters.items()}
    defaults = {path: _default(call, path.split("."), parameter) for path, parameter in parameters.items()}
    if search == "random":
        for path, parameter in parameters.items():
            if given[path] is None and not _is_share(parameter):
                _grid(call, path, parameter)
        return _possible(Space(call, dict.fromkeys(parameters, ()), draw_settings(parameters, given, trials, seed), defaults))
    values = {path: given[path] or _grid(call, path, parameter) for path, parameter in parameters.items()}
    if math.prod(map(len, values.values())) > MOST_SETTINGS:
        raise UsageError(
            f"there are more than {MOST_SETTINGS} settings; tune fewer parameters, or draw settings at random: --search random"
        )
    return _possible(Space(call, values, tuple(itertools.product(*values.values())), defaults))


def _possible(space: Space) -> Space:
    if not space.settings:
        raise UsageError("there is no setting to try; give values to try")
    space.model(space.settings[0])
    return space


def _checked(call: Call, path: str, parameter: Parameter, values: tuple[object, ...] | None) -> tuple[object, ...] | None:
    """The distinct values to try for a parameter, or None for its grid. All values are checked before tuning begins."""
    if values is None:
        return None
    if not values:
        raise UsageError(f"{call.name}: {path}=[] has no value to try; list some, or write {path} alone for its declared grid")
    named = replace(parameter, name=path)
    distinct: dict[str, object] = {}
    for value in values:
        allowed = named.check(call.name, value)
        if parameter.nested is not None:
            distinct.setdefault(str(value), value)
        else:
            # The grammar parses an unquoted word as a call. The check has converted it to one of the choices.
            distinct.setdefault(repr(allowed), allowed if isinstance(value, Call) else value)
    return tuple(distinct.values())


def _grid(call: Call, path: str, parameter: Parameter) -> tuple[object, ...]:
    values = parameter.grid_values()
    if len(values) < 2 or any(value is Signature.empty for value in values):
        allowed = parameter.describe_range()
        raise UsageError(f"{call.name}: {path} has no grid of several values; list values to try: {path}=[…] ({allowed})")
    return values


def _listed(path: str, values: object) -> tuple[object, ...] | None:
    if values is True:
        return None
    listed = tuple(values) if isinstance(values, (list, tuple)) else ()
    if not listed:
        raise UsageError(f"{path}: give a list of values to try, or true for the declared grid")
    return tuple(tuple(value) if isinstance(value, list) else value for value in listed)


def _take_marks(call: Call, prefix: str = "") -> tuple[Call, dict[str, tuple[object, ...] | None]]:
    """Split a call into the call without marks for tuning, and the marked parameters.

    A bare name, whose values are None, and a list for a parameter that takes one value are marks. The result has the
    values to try by path.
    """
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
            inside = [
                _take_marks(model, f"{prefix}{name}.{i}.") if isinstance(model, Call) else (model, {}) for i, model in enumerate(value, 1)
            ]
            arguments[name] = tuple(model for model, _ in inside)
            for _, inner in inside:
                marked |= inner
        elif isinstance(value, tuple) and (parameter.nested is None and parameter.type is not tuple):
            marked[prefix + name] = value
            del arguments[name]
    return replace(call, arguments=arguments, positional=()), marked


def _declared(call: Call, prefix: str = "") -> list[tuple[str, Parameter]]:
    """The paths and declarations of all parameters of a model and of the models inside it, with the shape first."""
    definition = MODELS[call.name]
    declared: list[tuple[str, Parameter]] = []
    for name, parameter in {**definition.shape, **definition.weights}.items():
        if parameter.nested is None or parameter.nested.resolve is not parse_model:
            declared.append((prefix + name, parameter))
        else:
            inner = _inner(call, name, parameter)
            calls = [(f"{name}.", inner)] if isinstance(inner, Call) else [(f"{name}.{i}.", model) for i, model in enumerate(inner, 1)]
            for step, model in calls:
                declared += _declared(model, prefix + step)
    return declared


def _given(call: Call, prefix: str = "") -> set[str]:
    """The paths of all parameters that have a value in a call or in the models inside it."""
    paths: set[str] = set()
    for name, value in call.arguments.items():
        paths.add(prefix + name)
        if isinstance(value, Call):
            paths |= _given(value, f"{prefix}{name}.")
        elif isinstance(value, tuple):
            for i, entry in enumerate(value, 1):
                paths |= _given(entry, f"{prefix}{name}.{i}.") if isinstance(entry, Call) else set()
    return paths


def marked_parameters(text: str) -> list[str]:
    """The paths of the parameters that the notation of a model marks for tuning.

    >>> marked_parameters("qsf_section(alpha,beta=[0.1,0.2])"), marked_parameters("qsf_section(alpha=0.1)")
    (['alpha', 'beta'], [])
    """
    call, marked = _take_marks(parse(text))
    return [path for path, _ in _declared(call) if path in marked]


def _inner(call: Call, name: str, parameter: Parameter) -> Call | tuple[Call, ...]:
    """The model or models that are the value, or else the default, of a parameter."""
    value: Any = call.arguments.get(name, parameter.default)
    if isinstance(value, (tuple, list)):
        return tuple(model if isinstance(model, Call) else parse(str(model)) for model in value)
    return value if isinstance(value, Call) else parse(str(value))


def _default(call: Call, path: Sequence[str], parameter: Parameter) -> object:
    """The value of the parameter at a path if it is not tuned: the value in the call, or else its declared default."""
    name, *rest = path
    if not rest:
        return call.arguments.get(name, parameter.default)
    definition = MODELS[call.name]
    inner = _inner(call, name, {**definition.shape, **definition.weights}[name])
    return _default(inner, rest, parameter) if isinstance(inner, Call) else _default(inner[int(rest[0]) - 1], rest[1:], parameter)


def _with(call: Call, path: Sequence[str], value: object) -> Call:
    """The call with a new value of the parameter at a path, which may be in a model inside it."""
    name, *rest = path
    if not rest:
        return replace(call, arguments={**call.arguments, name: value})
    definition = MODELS[call.name]
    inner = _inner(call, name, {**definition.shape, **definition.weights}[name])
    if isinstance(inner, Call):
        return replace(call, arguments={**call.arguments, name: _with(inner, rest, value)})
    number = int(rest[0]) - 1
    models = tuple(_with(model, rest[1:], value) if i == number else model for i, model in enumerate(inner))
    return replace(call, arguments={**call.arguments, name: models})


def draw_settings(
    parameters: Mapping[str, Parameter], given: Mapping[str, tuple[object, ...] | None], trials: int, seed: int
) -> tuple[Setting, ...]:
    """Draw up to `trials` different settings at random. Parameters are drawn independently:

    - from the given values, if there are any;
    - from [0, 1], if this is the range of the parameter;
    - from the interval between the ends of its grid, if it is a number. The draw is uniform, or uniform in the
      logarithm if the ends differ by a factor of 10 or more;
    - from its grid, if it is not a number.
    """
    if trials < 1:
        raise UsageError(f"the number of trials must be at least 1, not {trials}")
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
    # Four digits are easy to read, and give the same value on every machine.
    return round(value) if parameter.type is int else float(f"{value:.4g}")


def _is_share(parameter: Parameter) -> bool:
    """Whether the range of a parameter is [0, 1]. Such a parameter is drawn from its range and needs no grid."""
    limits = parameter.range
    return parameter.type is float and limits is not None and (limits.low, limits.high) == (0, 1)
