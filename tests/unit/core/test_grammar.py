import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.core.grammar import MAX_DEPTH, Call, parse


def test_a_name_alone():
    assert parse(" bm25 ") == Call("bm25")


def test_parameters_of_every_type():
    call = parse('f(a=1, b=-0.5, c=1e3, d="x\\"y", e=\'z\', g=true, h=none, i=[1, [2]], j=word)')
    assert dict(call.arguments) == {
        "a": 1, "b": -0.5, "c": 1000.0, "d": 'x"y', "e": "z", "g": True, "h": None, "i": (1, (2,)), "j": Call("word"),
    }  # fmt: skip


def test_calls_nest():
    call = parse("position_prior(base=plm(kernel=gauss, sigma=500))")
    assert call.arguments["base"] == Call("plm", {"kernel": Call("gauss"), "sigma": 500})


def test_positional_values_and_a_cutoff():
    assert parse("fuse(bm25, psg(), weight=0.5)@100") == Call("fuse", {"weight": 0.5}, (Call("bm25"), Call("psg")), 100)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a name at the end"),
        ("bm25(", "expected a name at the end"),
        ("bm25(k1=1", "expected ',' or '\\)' at the end"),
        ("bm25(k1=1))", "did not expect anything more at '\\)'"),
        ("bm25(k1=1,k1=2)", "'k1' is given twice"),
        ("nDCG@x", "expected a number after '@'"),
        ("f(a=[1,2)", "expected ',' or '\\]'"),
        ("(" * 5, "expected a name"),
        ("f(x=" + "[" * 40, f"nested deeper than {MAX_DEPTH}"),
        ("f(x=" * 5000, f"nested deeper than {MAX_DEPTH}"),
    ],
)
def test_a_mistake_is_pointed_at(text, complaint):
    with pytest.raises(UsageError, match=complaint):
        parse(text)


names = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True).filter(lambda name: name not in ("true", "false", "none"))
plain = st.one_of(st.integers(-1000, 1000), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8), st.booleans(), st.none())
values = st.recursive(
    plain,
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.builds(Call, names, st.dictionaries(names, inner, max_size=2))),
    max_leaves=6,
)


@given(
    st.builds(
        Call, names, st.dictionaries(names, values, max_size=3), st.lists(values, max_size=2).map(tuple), st.none() | st.integers(0, 99)
    )
)
def test_what_is_written_parses_back(call):
    assert parse(str(call)) == call


@pytest.mark.parametrize("text", ["nDCG@1e400", "P(rel=1e400)", "f(x=-1e999)"])
def test_a_number_beyond_all_bounds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the number is too large"):
        parse(text)
