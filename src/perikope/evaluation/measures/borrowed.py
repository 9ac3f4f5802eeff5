"""Measures that perikope takes from the package ir_measures if it is installed, such as `Rprec` or `RBP(p=0.8)`."""

from __future__ import annotations

import math
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from perikope.core.errors import UsageError, unknown
from perikope.core.grammar import Call, write
from perikope.evaluation.measures.declaration import Definition

if TYPE_CHECKING:
    import ir_measures


def borrow(call: Call) -> Definition | None:
    """The measure with this name in ir_measures; None if there is no such measure or ir_measures is not installed.

    Raises an error if ir_measures has the measure but cannot compute it.
    """
    try:
        from ir_measures.measures import registry
    except ImportError:
        return None
    theirs = registry.get(call.name)
    # `provider` may have registered measures of perikope in ir_measures. They are not taken from there.
    if theirs is None or getattr(theirs, "perikope", False):
        return None
    if call.positional:
        raise UsageError(
            f"{call}: parameters of {call.name} are given as name=value; there are: {', '.join(_parameters(theirs)) or '(none)'}"
        )
    given = dict(call.arguments)
    if call.cutoff is not None:
        given[theirs.AT_PARAM] = call.cutoff
    return _definition(theirs(**_checked(theirs, given)))


def _parameters(theirs: ir_measures.Measure) -> list[str]:
    """The names of the parameters of a measure, except the cutoff, which is written after the @."""
    return [name for name in theirs.SUPPORTED_PARAMS if name != theirs.AT_PARAM]


def _checked(theirs: ir_measures.Measure, given: Mapping[str, object]) -> dict[str, object]:
    """Convert the values of parameters to the types that ir_measures declares.

    Raises a `UsageError` for wrong parameters. ir_measures would only raise an assertion without a message.
    """
    declared = theirs.SUPPORTED_PARAMS
    name = str(theirs)
    values = {}
    for parameter, value in given.items():
        if parameter not in declared:
            if parameter == theirs.AT_PARAM:
                raise UsageError(f"{name} takes no cutoff; ask for {name} without @")
            raise unknown(f"parameter of {name}", parameter, _parameters(theirs))
        kind = declared[parameter].dtype
        values[parameter] = float(value) if kind is float and isinstance(value, int) and not isinstance(value, bool) else value
        if not declared[parameter].validate(values[parameter]):
            raise UsageError(f"{name}: {parameter} must be {_described(declared[parameter])}, not {write(value)}")
    _demand(theirs, [parameter for parameter, info in declared.items() if info.required and parameter not in values], values)
    return values


def _described(declared: ir_measures.ParamInfo) -> str:
    if isinstance(declared.choices, (list, tuple, set)):
        return " or ".join(write(choice) for choice in declared.choices)
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(declared.dtype, "another value")


def _demand(theirs: ir_measures.Measure, missing: Iterable[str], given: Mapping[str, object]) -> None:
    """Raise an error with an example if required parameters are missing."""
    lacking = [*missing]
    if lacking:
        kinds = {parameter: info.dtype for parameter, info in theirs.SUPPORTED_PARAMS.items()}
        usual = {"max_rel": 3, theirs.AT_PARAM: 10}
        example = {parameter: 0.1 if kinds[parameter] is float else usual.get(parameter, 1) for parameter in lacking}
        words = ["a cutoff" if parameter == theirs.AT_PARAM == "cutoff" else parameter for parameter in lacking]
        raise UsageError(f"{theirs} needs {' and '.join(words)}, such as {theirs(**{**given, **example})}")


@cache
def _definition(theirs: ir_measures.Measure) -> Definition:
    import ir_measures

    name = str(theirs)
    if not ir_measures.DefaultPipeline.supports(theirs):
        raise UsageError(_unsupported(theirs))
    if not isinstance(theirs.aggregator(), ir_measures.MeanAgg):
        raise UsageError(f"{name} is not a mean over queries, which perikope requires; choose another measure")
    function = partial(_value, theirs)
    function.__doc__ = f"{getattr(theirs, 'SHORT_DESC', '') or name} (from ir_measures)"  # type: ignore[attr-defined,unused-ignore]
    return Definition(name, (), function, {}, takes_cutoff=False, needs_cutoff=False, default_cutoff=None)


def _unsupported(theirs: ir_measures.Measure) -> str:
    """The error message for a measure that no installed program computes, with the package to install if possible."""
    import ir_measures

    providers = ir_measures.DefaultPipeline.providers
    for provider in providers:
        if provider.supports(theirs):
            how = provider.install_instructions() or "see the documentation of ir_measures"
            # A shell would read the brackets of an extra as a pattern.
            command = shlex.join(how.split()) if how.startswith("pip ") else how
            return f"{theirs} needs {provider.NAME}, which is not installed: {command}"
    for known in (known for provider in providers for known in provider.SUPPORTED_MEASURES if known.NAME == theirs.NAME):
        # A program that computes the measure may need more parameters than the measure declares.
        _demand(theirs, [parameter for parameter, wanted in known.params.items() if _is_missing(theirs, parameter, wanted)], theirs.params)
    return f"no program that ir_measures knows computes {theirs} with these parameters; leave some of them out"


def _is_missing(theirs: ir_measures.Measure, parameter: str, wanted: Any) -> bool:
    return parameter not in theirs.params and not wanted.validate(theirs[parameter])


MOST_GRADE = 4
"""Highest grade that gdeval accepts, the program that ir_measures runs for ERR. It fails on higher grades."""


def _value(theirs: ir_measures.Measure, ranked: Sequence[str], judged: Mapping[str, int]) -> float:
    import ir_measures

    scores: dict[str, Any] = {name: -float(rank) for rank, name in enumerate(ranked)}
    # pytrec_eval writes outside its memory on a negative grade; trec_eval counts such a grade as 0.
    grades = {name: max(grade, 0) for name, grade in judged.items()}
    if theirs.NAME == "ERR" and (most := max(grades.values(), default=0)) > MOST_GRADE:
        raise UsageError(f"{theirs} takes grades up to {MOST_GRADE}, but the judgements have {most}; lower them, or use another measure")
    try:
        # The query id is 1, because gdeval takes only numbers as ids.
        value = float(ir_measures.calc_aggregate([theirs], {"1": grades}, {"1": scores})[theirs]) if scores and grades else 0.0
    except AssertionError as error:
        # Each parameter is valid, but not their combination.
        raise UsageError(f"{theirs}: {' '.join(str(error).split())}, says ir_measures") from error
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(f"{theirs}: the program that ir_measures runs for it failed ({type(error).__name__})") from None
    # Some measures have no value if nothing is relevant or returned. The value of such a query is 0 here.
    return 0.0 if math.isnan(value) else value
