from typing import Annotated, Literal

import pytest

from perikope.core.errors import UsageError
from perikope.core.grammar import parse
from perikope.core.parameters import Grid, Nested, Range, bind, parameters_of


def resolve(value):
    return f"<{value}>"


def declared(
    matches,
    *,
    alpha: Annotated[float, Range(0, 1), Grid(step=0.1)] = 0.6,
    k: Annotated[int, Range(1)] = 20,
    mu: Annotated[float, Range(0, low_open=True), Grid((500.0, 1000.0))] = 1000.0,
    kernel: Literal["gauss", "trapezoid"] = "gauss",
    base: Annotated[object, Nested(resolve)] = "bm25",
    needed: float,
    perhaps: float | None = None,
    bases: Annotated[tuple[object, ...], Nested(resolve, each=True)] = ("a", "b"),
    weights: Annotated[tuple[float, ...] | None, Range(0, 2)] = None,
    spread: Literal["minmax", "none"] = "minmax",
): ...


PARAMETERS = parameters_of(declared)


def bound(**given):
    return bind("model", PARAMETERS, {"needed": 1, **given})


def test_only_keyword_parameters_count():
    assert list(PARAMETERS) == ["alpha", "k", "mu", "kernel", "base", "needed", "perhaps", "bases", "weights", "spread"]


def test_defaults_are_filled_in_and_nested_things_resolved():
    expected = {"alpha": 0.6, "k": 20, "mu": 1000.0, "kernel": "gauss", "base": "<bm25>", "needed": 1.0, "perhaps": None}
    assert bound() == expected | {"bases": ("<a>", "<b>"), "weights": None, "spread": "minmax"}


def test_values_take_the_declared_type():
    assert isinstance(bound(alpha=1)["alpha"], float)
    assert bound(kernel=parse("trapezoid"))["kernel"] == "trapezoid"
    assert bound(base=parse("plm(sigma=2)"))["base"] == "<plm(sigma=2)>"
    assert bound(bases=(parse("plm(sigma=2)"), "x"))["bases"] == ("<plm(sigma=2)>", "<x>")
    assert bound(weights=(1, 0.5))["weights"] == (1.0, 0.5)
    assert type(bound(k=1e3)["k"]) is int
    assert all(isinstance(weight, float) for weight in bound(weights=(1, 2))["weights"])
    assert bound(spread=parse("f(x=none)").arguments["x"])["spread"] == "none", "also a word of the language"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"alpha": 1.5}, r"model: alpha=1.5 is out of range; it must be in \[0, 1\]"),
        ({"alpha": float("nan")}, "out of range"),
        ({"alpha": True}, "alpha must be a number, not true"),
        ({"alpha": "much"}, 'alpha must be a number, not "much"'),
        ({"k": 0}, "k=0 is out of range; it must be at least 1"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"k": -1e9}, "k=-1000000000 is out of range"),
        ({"k": 1e300}, "k must be a whole number, not 1e\\+300"),
        ({"k": 10**400}, "k is too large a number"),
        ({"alpha": 10**400}, "alpha is too large a number"),
        ({"mu": 0}, "mu=0.0 is out of range; it must be above 0"),
        ({"kernel": "box"}, "unknown value of model's kernel 'box'; valid: gauss, trapezoid"),
        ({"bases": parse("psg")}, r"bases must be a list such as \[a,b\(c=1\)\], not psg"),
        ({"bases": ()}, "bases must be a list"),
        ({"bases": ("a", 5)}, "each of bases must be a name, not 5"),
        ({"weights": 1.0}, "weights must be a list, not 1.0"),
        ({"weights": (1.0, "x")}, 'each of weights must be a number, not "x"'),
        ({"weights": (1.0, 3.0)}, r"each of weights=3.0 is out of range; it must be in \[0, 2\]"),
        ({"alfa": 1}, "unknown parameter of model 'alfa'; did you mean 'alpha'\\?"),
    ],
)
def test_a_wrong_value_names_what_is_allowed(given, complaint):
    with pytest.raises(UsageError, match=complaint):
        bound(**given)


def test_a_parameter_without_default_must_be_given():
    with pytest.raises(UsageError, match="model needs needed"):
        bind("model", PARAMETERS, {})


def test_grids_come_from_the_declaration():
    assert PARAMETERS["alpha"].grid_values() == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert PARAMETERS["mu"].grid_values() == (500.0, 1000.0)
    assert PARAMETERS["kernel"].grid_values() == ("gauss", "trapezoid")
    assert PARAMETERS["k"].grid_values() == (20,)
