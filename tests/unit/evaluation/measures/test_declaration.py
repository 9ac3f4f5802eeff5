import pytest

from perikope.core.errors import UsageError
from perikope.evaluation.measures import Measure, parse_measure, parse_measures


@pytest.mark.parametrize(
    ("asked", "written"),
    [("P@5,nDCG@10", "P@5 nDCG@10"), ("MAP(D), RR", "MAP(D)"), ("AP(rel=2),T2I(300, beta=1)", "AP(rel=2) T2I(300, beta=1)")],
)
def test_measures_with_commas_between_them_are_told_to_have_spaces(asked, written):
    with pytest.raises(UsageError) as error:
        parse_measures(asked)
    assert str(error.value).endswith(f"has a comma: separate measures by spaces, {written!r}")
    with pytest.raises(UsageError, match="did you mean 'nDCG'"):
        parse_measures("nDGC@10")


@pytest.mark.parametrize(
    ("asked", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        ("nDCG", "nDCG"),
        ("AP(rel=2)@100", "AP(rel=2)@100"),
        ("AP(rel=1)@100", "AP@100"),
        ("MAP", "AP"),
        ("MAP@100", "AP@100"),
        ("MAP(rel=2)@100", "AP(rel=2)@100"),
        ("MAP(D)", "APD"),
        ("MAP(D, rel=2)", "APD(rel=2)"),
        ("PREC(D)", "PD"),
        ("MRR", "RR"),
        ("MRR@10", "RR@10"),
        ("R@5", "Recall@5"),
        ("Recall", "Recall"),
        ("PRES", "PRES@100"),
        ("PRES@50", "PRES@50"),
        (" P ( rel = 2 ) @ 5 ", "P(rel=2)@5"),
        ("P[5]", "P@5"),
        ("iP[0.01]", "iP@0.01"),
        ("iP[.00]", "iP@0.0"),
        ("iP@0", "iP@0.0"),
        ("iP@1", "iP@1.0"),
        ("MAiP", "AiP"),
        ("gP[10]", "gP@10"),
        ("gP(beta=0.25)[10]", "gP(beta=0.25)@10"),
        ("gR[ 5 ]", "gR@5"),
        ("MAgP", "AgP"),
        ("MAgP(t2i=300)", "AgP(t2i=300)"),
        ("MAgP(t2i=none, beta=1)", "AgP"),
        ("T2I(300)", "AgP(t2i=300)"),
        ("T2I( 500, beta=0.25 )", "AgP(beta=0.25,t2i=500)"),
    ],
)
def test_every_spelling_has_one_canonical_name(asked: str, canonical: str) -> None:
    measure = parse_measure(asked)
    assert str(measure) == repr(measure) == canonical
    assert measure.asked == asked.strip()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("BLEU", r"unknown measure 'BLEU';.* valid: AP, APD, .*nDCG, .*MAP\(D\)"),
        ("nDGC@10", "did you mean 'nDCG'"),
        ("AP(level=2)", "unknown parameter of AP 'level'.* valid: rel"),
        ("nDCG(rel=2)", r"unknown parameter of nDCG 'rel'.* valid: \(none\)"),
        ("AP(2)@10", "AP.2.: parameters of AP are given as name=value; there are: rel"),
        ("MAP(X)", "parameters of MAP are given as name=value"),
        ("AP(rel=0)", "rel=0 is out of range; it must be at least 1"),
        ("AP(rel=1.5)", "rel must be a whole number"),
        ("P", "P needs a cutoff, such as P@10"),
        ("P@0", "the cutoff must be a whole number of at least 1"),
        ("MAP(D)@10", "APD takes no cutoff"),
        ("nDCG@ten", "expected a number after '@'"),
        ("AP(rel=2", "expected ',' or '\\)'"),
        ("nDCG@0.5", "nDCG@0.5: the cutoff must be a whole number of at least 1"),
        ("iP", "iP needs a cutoff, such as iP@0.01"),
        ("iP[10]", "iP@10: the recall must be between 0 and 1, such as iP@0.01"),
        ("iP[0.01", "expected ']' at the end"),
        ("iP[x]", "expected a number after '\\['"),
        ("AiP@10", "AiP takes no cutoff"),
        ("AgP(t2i=0)", "t2i=0 is out of range; it must be at least 1"),
        ("T2I", r"T2I takes one value: T2I\(t2i\), such as T2I\(300\)"),
        ("T2I(300,t2i=3)", "T2I takes one value"),
        ("T2I(0)", "t2i=0 is out of range"),
        ("T2I(300)@10", "AgP takes no cutoff"),
        ("T3I(300)", r"unknown measure 'T3I\(300\)'.* valid: .*T2I\(t2i\)"),
        ("AgP(beta=0)", "beta=0.0 is out of range; it must be above 0"),
        ("nDCG@" + "9" * 5000, "a number has at most 400 characters"),
    ],
)
def test_a_wrong_name_is_answered_with_what_there_is(asked: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_measure(asked)


def test_several_measures_are_cut_at_the_spaces_outside_parentheses() -> None:
    expected = ["nDCG@10", "APD", "AP(rel=2)@5", "PRES@100"]
    assert [str(measure) for measure in parse_measures("nDCG@10  MAP( D ) AP( rel = 2 )[ 5 ]\nPRES@100")] == expected
    assert [str(measure) for measure in parse_measures(["nDCG@10 MAP(D)", parse_measure("AP(rel=2)@5"), "PRES"])] == expected
    assert parse_measures("") == []


def test_measures_are_equal_whatever_they_were_asked_by() -> None:
    assert {parse_measure("MAP"), parse_measure("AP"), parse_measure("AP(rel=1)")} == {parse_measure("AP")}
    assert parse_measure("AP@5") != parse_measure("AP")
    assert isinstance(parse_measure("AP"), Measure)


def test_a_measure_of_characters_does_not_take_names() -> None:
    with pytest.raises(UsageError, match="MAiP counts characters; give it ranges of text"):
        parse_measure("MAiP")(["d1#p1"], {"d1#p1": 1})
