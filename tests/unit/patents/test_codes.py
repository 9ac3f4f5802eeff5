import pytest

from perikope.patents.codes import LEVELS, Code, parse_code


@pytest.mark.parametrize(
    ("text", "form", "level"),
    [
        ("g06", "G06", "class"),
        ("G06F", "G06F", "subclass"),
        (" G06F 17 ", "G06F17", "group"),
        ("G06F17/", "G06F17", "group"),
        ("G06F 17/30", "G06F17/30", "full"),
        ("g06f17/30", "G06F17/30", "full"),
        ("G06F017/30", "G06F17/30", "full"),
        ("G06F-017/30", "G06F17/30", "full"),
        ("G06F 17/30 (2006.01)", "G06F17/30", "full"),
        ("G06F  17/30        20060101A I20051008RMEP        ", "G06F17/30", "full"),
        ("A61K  31/4725      20060101ALI20051220RMJP        ", "A61K31/4725", "full"),
        ("B65D               20060101S I20051110RMEP        ", "B65D", "subclass"),
        ("A45D    /", "A45D", "subclass"),
        ("G06F0017300000", "G06F17/30", "full"),
        ("A61K0031472500", "A61K31/4725", "full"),
        ("A61K0031000000", "A61K31/00", "full"),
        ("A61K0000000000", "A61K", "subclass"),
        ("A61K2800", "A61K2800", "group"),
        ("Y02T 10/7072", "Y02T10/7072", "full"),
        ("H01R   4/24B3D1", "H01R4/24B3D1", "full"),
        ("C07C  67/347+69/716", "C07C67/347+69/716", "full"),
    ],
)
def test_a_code_has_one_form(text, form, level):
    code = parse_code(text)
    assert (str(code), code.level) == (form, level)
    assert parse_code(form) == code


@pytest.mark.parametrize(
    "text", ["", " ", "G", "G0", "GO6F", "Z99Z 1/00", "GABA", "G06FX", "G06F 0/00", "G06F 12345", "386E094", "062244", "a b", "\0", "é"]
)
def test_what_is_no_code(text):
    assert parse_code(text) is None


@pytest.mark.parametrize(
    ("outer", "inner", "holds"),
    [
        ("G06F", "G06F 17/30", True),
        ("G06", "G06F 17/30", True),
        ("G06F17", "G06F 17/30", True),
        ("G06F17", "G06F 17", True),
        ("G06F17", "G06F 1/16", False),
        ("G06F1", "G06F 17/30", False),
        ("G06F17", "G06F 170/00", False),
        ("G06F17/30", "G06F 17/30", True),
        ("G06F17/30", "G06F 17/3015", False),
        ("H01R4/24", "H01R 4/24B3D1", True),
        ("H01R4/24B3", "H01R 4/24B3D1", True),
        ("H01R4/24B3", "H01R 4/24B31", False),
        ("G06F17/30", "G06F17", False),
    ],
)
def test_what_lies_inside_a_code(outer, inner, holds):
    assert parse_code(outer).holds(parse_code(inner)) is holds


def test_a_code_at_a_level_goes_no_further_than_it_was_given():
    assert [Code("G06").at(level) for level in LEVELS] == ["G06", "G06", "G06", "G06"]
    assert [parse_code("H01R 4/24B3").at(level) for level in LEVELS] == ["H01", "H01R", "H01R4", "H01R4/24B3"]


def test_long_and_hostile_texts_take_no_time():
    for text in ("G06F 17/30" + "A" * 1_000_000, "G" * 1_000_000, "G06F" + " " * 1_000_000 + "1", "G06F 17/30" + " " * 100_000 + "x"):
        parse_code(text)
