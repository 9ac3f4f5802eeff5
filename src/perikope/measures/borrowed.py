"""Measures that ir_measures has and we do not, such as `Rprec`, `Bpref` or `RBP(p=0.8)`: taken from there where it is installed."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from perikope.errors import UsageError
from perikope.grammar import Call
from perikope.measures.declaration import Definition

if TYPE_CHECKING:
    import ir_measures


def borrow(call: Call) -> Definition | None:
    """The measure of this name in ir_measures, or None where it has none or is not installed; an error where it cannot be computed."""
    try:
        from ir_measures.measures import registry
    except ImportError:
        return None
    found = registry.get(call.name)
    # Our own come from here, whether they are offered there or not.
    if found is None or call.positional or getattr(found, "perikope", False):
        return None
    cutoff = {} if call.cutoff is None else {found.AT_PARAM: call.cutoff}
    theirs = found(**call.arguments, **cutoff)
    try:
        theirs.validate_params()
    except AssertionError as error:
        raise UsageError(f"{call}: {error}, says ir_measures") from error
    return _definition(theirs)


@cache
def _definition(theirs: ir_measures.Measure) -> Definition:
    import ir_measures

    name = str(theirs)
    if not ir_measures.DefaultPipeline.supports(theirs):
        raise UsageError(f"{name} needs a package that ir_measures does not find; see its documentation of providers")
    if not isinstance(theirs.aggregator(), ir_measures.MeanAgg):
        raise UsageError(f"{name} is no average over queries and cannot stand in a table of those")
    function = partial(_value, theirs)
    function.__doc__ = f"{getattr(theirs, 'SHORT_DESC', '') or name} (from ir_measures)"  # type: ignore[attr-defined,unused-ignore]
    return Definition(name, (), function, {}, takes_cutoff=False, needs_cutoff=False, default_cutoff=None)


def _value(theirs: ir_measures.Measure, ranked: Sequence[str], judged: Mapping[str, int]) -> float:
    import ir_measures

    scores: dict[str, Any] = {name: -float(rank) for rank, name in enumerate(ranked)}
    # pytrec_eval writes outside its memory on a negative grade; to trec_eval such a grade is worth 0.
    grades = {name: max(grade, 0) for name, grade in judged.items()}
    try:
        value = float(ir_measures.calc_aggregate([theirs], {"q": grades}, {"q": scores})[theirs]) if scores and grades else 0.0
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(f"{theirs}: the program that ir_measures runs for it failed ({type(error).__name__})") from None
    # Some have no value where nothing is relevant or returned; here such a query counts 0.
    return 0.0 if math.isnan(value) else value
