"""The position prior: its parameters, the tenths of passages, and learning."""

import pytest

from perikope.browse.models import parse_model
from perikope.browse.models.prior import learn_prior, tenth_of_passage
from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from tests.support.collections import index_of, plain_document

TEN = "[1,2,3,4,5,6,7,8,9,10]"


def test_it_stands_around_any_model():
    model = parse_model(f"position_prior(base=position_prior(base=plm(sigma=500)),weights={TEN})")
    assert "sigma=500.0" in str(model)
    assert str(parse_model(str(model))) == str(model)
    assert str(parse_model("position_prior").parameters["base"]) == 'pl2(c=1.0,statistics="candidates")'


@pytest.mark.parametrize("weights", ["[1,2,3]", "[1,1,1,1,1,1,1,1,1,-1]", '["a",1,1,1,1,1,1,1,1,1]', "[]"])
def test_weights_are_uniform_or_ten_numbers(weights):
    index = index_of([plain_document("d1", "Pump", "A pump.")])
    with pytest.raises(UsageError, match="a list of ten numbers from 0"):
        index.search("pump", model=f"position_prior(weights={weights})")


def test_a_table_that_is_not_there_is_named():
    index = index_of([plain_document("d1", "Pump", "A pump.")])
    with pytest.raises(UsageError, match="flat"):
        index.search("pump", model='position_prior(weights="flat")')


def test_a_base_that_is_no_model_is_refused():
    index = index_of([plain_document("d1", "Pump", "A pump.")])
    with pytest.raises(UsageError, match="must be the name of a model, not 5"):
        index.search("pump", model="position_prior(base=5)")


def test_a_base_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="plm"):
        parse_model("position_prior(base=plms)")


def test_tenths_are_counted_in_tokens_and_by_the_middle():
    builder = TreeBuilder("d1", title="A pump")
    with builder.span(Kind.SECTION, "sec", part="abstract"):
        builder.passage("pump " * 50)
    with builder.span(Kind.SECTION, "sec", part="description"):
        builder.title("pump")
        for length in (40, 10, 30, 20):
            builder.passage("pump " * length)
    index = index_of([builder.build(), plain_document("d2", "Pump", "pump")])
    matches = index.search("pump").matches
    # The middles are at 20, 45, 65 and 90 of 100 tokens: a border belongs to the tenth that begins there.
    assert sorted(tenth_of_passage(matches).tolist()) == [-1, -1, 2, 4, 6, 9]
    assert set(matches.parts) == {"abstract", "description", ""}


def test_what_stands_between_pieces_of_a_description_does_not_count():
    builder = TreeBuilder("d1")
    with builder.span(Kind.SECTION, "sec", part="description"):
        builder.passage("pump " * 10)
        builder.passage("pump " * 10)
    with builder.span(Kind.SECTION, "sec", part="claims"):
        builder.passage("pump " * 500)
    with builder.span(Kind.SECTION, "sec", part="description"):
        builder.title("pump " * 70)
        builder.passage("pump " * 20)
    index = index_of([builder.build()])
    assert tenth_of_passage(index.search("pump").matches).tolist() == [1, 3, -1, 7]
    # Elements overlap, and each token counts once.
    matches = index.search("pump", model="bm25", elements=True).matches
    tenths = dict(zip(matches.span_of_passage.tolist(), tenth_of_passage(matches).tolist(), strict=True))
    assert [tenth for _, tenth in sorted(tenths.items())] == [-1, 0, 0, 1, -1, -1, 5, 9]


def test_a_part_without_returned_passages_weighs_one():
    weights = learn_prior([0, 0, 1, 3], [0, 1, 1, 2])
    assert weights == (2.0, 0.5, 0.0, *[1.0] * 7)


def test_nothing_to_learn_from_is_uniform_where_nothing_was_returned():
    assert learn_prior([], []) == (1.0,) * 10
    assert learn_prior([3], []) == (1.0,) * 10


def test_passages_outside_of_descriptions_teach_nothing():
    assert learn_prior([-1, 0, 1], [0, 1, -1, -1]) == learn_prior([0, 1], [0, 1])


def test_there_are_ten_tenths():
    with pytest.raises(UsageError, match="from 0 to 9"):
        learn_prior([10], [1])
