"""Edge cases of `plm` and `psg_neighbor`: explanations and errors."""

import math
from dataclasses import replace

import pytest

from perikope.browse.matches import Matches
from perikope.browse.models import parse_model
from perikope.core.errors import UsageError
from perikope.document.tree import TreeBuilder
from tests.support.collections import index_of, plain_document

FILLER = plain_document("z", "Nothing", "To be found.")


@pytest.fixture(scope="module")
def index():
    builder = TreeBuilder("d1", title="Pump")
    for text in ("The pump and the rotor.", "***", "A seal. " * 30, "Pump, pump, pump, pump, pump, pump and pump."):
        builder.passage(text)
    return index_of([builder.build(), FILLER])


@pytest.mark.parametrize("kernel", ["gauss", "trapezoid"])
@pytest.mark.parametrize("unit", ["token", "char"])
def test_many_occurrences_are_explained_by_the_largest_and_the_rest(index, kernel, unit):
    node = index.explain("pump rotor", "d1#@3", model=f"plm(kernel={kernel},unit={unit},sigma=30)")
    plm = node.children[0].children[0].children[0]
    pump, rotor = plm.children
    weight, area = pump.children
    assert pump.label == "'pump' in the document"
    assert [child.operation for child in area.children] == ["fact"] * 6
    assert area.children[-1].label == "the other 4 occurrences outside"
    assert rotor.children[1].label == "area of 1×, in 21 points"
    assert f"at {unit}" in area.children[0].label
    values = [child.value for child in area.children[:-1]]
    assert values == sorted(values, reverse=True)
    assert math.isclose(plm.recomputed(), plm.value, rel_tol=1e-9)
    assert math.isclose(weight.value, math.log(2))


def test_occurrences_are_told_by_where_they_stand(index):
    node = index.explain("rotor", "d1#@1", model="plm")
    assert node.children[0].children[0].children[0].children[0].children[1].children[0].label == "inside, at token 5"
    node = index.explain("rotor", "d1#@3", model="plm")
    assert node.children[0].children[0].children[0].children[0].children[1].children[0].label == "1 before, at token 5"


@pytest.mark.parametrize("kernel", ["gauss", "trapezoid"])
@pytest.mark.parametrize("unit", ["token", "char"])
def test_a_passage_without_a_word_has_nothing_but_its_document(index, kernel, unit):
    model = parse_model(f"plm(kernel={kernel},unit={unit},lam=0)")
    score = model.score(index.search("pump rotor").matches)
    assert score.values[1] == 0
    assert (score.values[[0, 2, 3]] > 0).all()
    assert score.explain(1).value == 0


def test_a_title_is_context_too(index):
    """The document's title contains the only occurrence near the first passage."""
    titled = index_of([plain_document("d1", "Pump", "A seal.", *["Nothing here."] * 50, "Pump"), FILLER])
    untitled = index_of([plain_document("d1", "Seal", "A seal.", *["Nothing here."] * 50, "Pump"), FILLER])
    scores = [{hit.passage: hit.score for hit in one.search("pump", model="plm(sigma=5,lam=0)", k=100)} for one in (titled, untitled)]
    assert scores[0]["@1"] > 1e-3
    assert scores[1]["@1"] < 1e-9


def test_a_wide_kernel_makes_all_passages_equal(index):
    for kernel in ("gauss", "trapezoid"):
        values = parse_model(f"plm(kernel={kernel},sigma=1e12,lam=0)").score(index.search("pump").matches).values
        assert values[[0, 2, 3]] == pytest.approx([1 / 3] * 3, abs=1e-9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("plm(sigma=0)", "sigma=0.0 is out of range; it must be above 0"),
        ("plm(points=0)", "points=0 is out of range"),
        ("plm(kernel=cosine)", "gauss"),
        ("plm(unit=word)", "token"),
        ("psg_neighbor(neighbors=0)", "neighbors=0 is out of range"),
        ("bm25(statistics=documents)", "candidates"),
    ],
)
def test_a_parameter_that_is_wrong_is_refused(model, message):
    with pytest.raises(UsageError, match=message):
        parse_model(model)


def test_neighbours_leave_something_for_the_passage(index):
    with pytest.raises(UsageError, match="add up to more than 1"):
        index.search("pump", model="psg_neighbor(left=0.75,right=0.5)")
    assert len(index.search("pump", model="psg_neighbor(left=0.75,right=0.25)")) == 4


def test_characters_of_matches_without_texts_are_refused(index):
    matches = replace(index.search("pump").matches, characters=Matches.__dataclass_fields__["characters"].default)
    with pytest.raises(UsageError, match="use unit=token"):
        parse_model("plm(unit=char)").score(matches)


@pytest.mark.parametrize("content", ["bm25", "lm"])
def test_the_passage_can_be_scored_in_another_way(index, content):
    matches = index.search("pump rotor").matches
    for model in ("psg_doc", "psg_neighbor"):
        other = parse_model(f"{model}(content={content})").score(matches).values
        assert (other != parse_model(model).score(matches).values).any()
