"""The proximity models: their parameters, and how they evaluate queries."""

import numpy as np
import pytest

from perikope.browse.models import parse_model
from perikope.browse.models.proximity import Shape
from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from tests.support.collections import index_of, plain_document


@pytest.fixture(scope="module")
def index():
    builder = TreeBuilder("d1", tag="article", title="Pumps")
    with builder.span(Kind.SECTION, "sec"):
        builder.title("Rotor of a pump")
        builder.passage("A magnet drives the rotor.", marks=[("b", 2, 8)])
        with builder.span(Kind.ELEMENT, "list"):
            builder.passage("Magnets near the rotor", "item")
            builder.passage("the heat of a pump", "item")
    other = plain_document("d2", "", "rotor rotor rotor", "a magnet far from it")
    return index_of([builder.build(), other], stopwords="none")


def scores(index, query, model, **options):
    options = {"syntax": "boolean", "elements": True, "k": 100} | options
    return {name: score for name, score in index.search(query, model=model, **options).names() if score > 0}


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("prox(k=0)", "k=0 is out of range"),
        ("prox(shape=square)", "unknown value of prox's shape 'square'"),
        ("prox(logical=5)", 'logical must be "all", a tag, a list of tags'),
        ("prox(logical=[])", 'logical must be "all", a tag, a list of tags'),
        ("prox(logical=nothing)", "unknown table of tags 'nothing'"),
        ("prox(titles=maybe)", "titles"),
        ("prox_h(weights=5)", "weights must be the name of a table"),
        ("prox_h(weights=tags())", "contains no weights; write them as tags"),
        ("prox_h(weights=tags(b=-1))", "weight of the tag 'b' must be a number from 0"),
        ('prox_hw(weights=tags(b="x"))', "weight of the tag 'b' must be a number from 0"),
        ("prox_h(weights=absent)", "unknown table of tags 'absent'"),
    ],
)
def test_mistakes_are_named(index, model, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.search("rotor", model=model)


def test_names_parse_back():
    for text in ("prox(logical=[sec,p],titles=true)", "prox_h(weights=tags(b=1.4,h1=2))", "prox_hw(weights=mine,logical=beigbeder2015)"):
        model = parse_model(text)
        assert str(parse_model(str(model))) == str(model)


def test_words_without_operators_are_joined_by_and(index):
    plain = scores(index, "magnet rotor", "prox", syntax="words")
    assert plain == scores(index, "magnet AND rotor", "prox")
    # In the second document they do not reach each other.
    assert set(plain) == {f"d1#/article[1]{path}" for path in ("", "/sec[1]", "/sec[1]/p[1]", "/sec[1]/list[1]", "/sec[1]/list[1]/item[1]")}


def test_a_phrase_is_one_word_as_long_as_it_is(index):
    score_of_element = scores(index, '"near the rotor"', "prox(k=2)")
    # Tokens 0 to 3 of the item: the word before it, then the three of the phrase.
    assert score_of_element["d1#/article[1]/sec[1]/list[1]/item[1]"] == pytest.approx((0.5 + 3) / 4)
    assert scores(index, '"rotor near"', "prox(k=2)") == {}


def test_near_and_same_count_where_they_hold(index):
    item = "d1#/article[1]/sec[1]/list[1]/item[1]"
    near = scores(index, "magnet NEAR/3 rotor", "prox(k=1)")
    assert near[item] == pytest.approx(2 / 4)
    assert scores(index, "magnet NEAR/2 rotor", "prox(k=1)") == {}
    # The words are adjacent, but in two elements.
    assert scores(index, "rotor ADJ/1 magnet", "prox(k=1)") == {}
    assert scores(index, '"rotor magnets"', "prox(k=1)") == {}
    same = scores(index, "magnet SAME drives", "prox(k=1)")
    assert same["d1#/article[1]/sec[1]/p[1]"] == pytest.approx(2 / 5)
    assert same == scores(index, "magnet SAME drives", "prox(k=1)", elements=["article", "sec", "p"])
    assert scores(index, "heat SAME magnet", "prox") == {}


def test_titles_reach_the_whole_element(index):
    item = "d1#/article[1]/sec[1]/list[1]/item[2]"
    assert item not in scores(index, "rotor AND heat", "prox")
    score_of_element = scores(index, "rotor AND heat", "prox(titles=true,k=3)")
    # In "the heat of a pump", heat reaches two words to each side.
    assert score_of_element[item] == pytest.approx((2 / 3 + 1 + 2 / 3 + 1 / 3) / 5)
    everywhere = scores(index, "pump", "prox(titles=true)")
    assert set(everywhere.values()) == {1.0}
    assert scores(index, "pump", "prox_h(titles=true,weights=tags(title=1.5))")["d1#/article[1]/sec[1]/p[1]"] == 1.5


def test_the_deepest_tag_with_a_weight_counts(index):
    name = "d1#/article[1]/sec[1]/p[1]"
    for weights, expected in (("b=2,p=3", 2), ("p=3,sec=5", 3), ("sec=5", 5), ("item=7", 1), ("b=0,p=3", 0)):
        assert scores(index, "magnet", f"prox_h(k=1,weights=tags({weights}))").get(name, 0) == pytest.approx(expected / 5)


def test_logical_elements_bound_the_reach(index):
    item = "d1#/article[1]/sec[1]/list[1]/item[2]"
    assert item not in scores(index, "near", "prox")
    assert item in scores(index, "near", "prox(logical=[list])")
    # Only the document is a logical element, so all its words can reach each other.
    assert item in scores(index, "drives", "prox(logical=[article])") == scores(index, "drives", "prox(logical=article)")
    assert scores(index, "drives", "prox(logical=beigbeder2015)").keys() >= {"d1#/article[1]/sec[1]/p[1]"}


def test_rescored_documents(index):
    """Documents are ordered by a mix of their fetch score and of the model's score of the whole document."""
    options = {"model": "prox", "group_by_document": "fetch", "elements": ["article", "document"], "keep_unmatched": True}
    fetched = [hit.document for hit in index.search("magnet rotor", **options)]
    assert fetched == ["d2", "d1"]
    rescored = index.search("magnet rotor", rescore="prox", rescore_weight=1.0, **options)
    assert [hit.document for hit in rescored] == ["d1", "d2"]
    assert rescored.matches.score_of_document.tolist() == pytest.approx([1.0, 0.0])
    half = index.search("magnet rotor", rescore="prox", rescore_weight=0.5, **options).matches.score_of_document
    assert half.tolist() == pytest.approx([0.5, 0.5])
    with pytest.raises(UsageError, match="rescore_weight"):
        index.search("magnet", rescore="prox", rescore_weight=2.0)


@pytest.mark.parametrize("name", ["triangle", "gauss", "cosine", "circle", "rectangle"])
def test_shapes_begin_at_their_height_and_fall(name):
    for weighs in ("none", "height", "both"):
        for weight in (0.0, 0.3, 1.0, 2.5):
            table = Shape(name, 10, weighs).table(weight, 1000)
            if weight == 0 and weighs != "none":
                assert table.size == 0
            else:
                assert table[0] == (1.0 if weighs == "none" else weight)
                assert (np.diff(table) <= 0).all()
                assert (table > 0).all()
    assert Shape(name, 100_000, "both").table(1e6, 50).size == 50


@pytest.fixture(scope="module")
def by_frequency():
    """`common` occurs in four documents, `middle` in three, `rare` in two, and `single` in one."""
    words = ["common", "middle", "rare", "single"]
    return index_of([plain_document(f"d{count}", "", " ".join(words[:count])) for count in range(1, 5)], stemmer="none")


@pytest.mark.parametrize("model", ["prox(k=20{})", "prox_h(k=20,weights=tags(p=2){})", "prox_hw(k=20,weights=tags(p=2){})"])
def test_the_rarest_operands_of_and(by_frequency, model):
    strict, soft = model.format(""), model.format(",rarest={}")
    query = "common AND rare AND middle AND absent"
    # All documents are browsed, whatever the query fetches.
    everywhere = {"candidates": {f"d{count}": 1.0 for count in range(1, 5)}}
    assert scores(by_frequency, query, strict, **everywhere) == {}
    for count, kept in ((1, "rare"), (2, "rare AND middle"), (9, "common AND rare AND middle")):
        expected = scores(by_frequency, kept, strict, **everywhere)
        assert scores(by_frequency, query, soft.format(count), **everywhere) == expected != {}
        without = scores(by_frequency, f"{kept} AND NOT single", strict, **everywhere)
        assert scores(by_frequency, f"{query} AND NOT single", soft.format(count), **everywhere) == without != {}


@pytest.mark.parametrize("query", ["rare OR middle", "rare", "absent AND nowhere"])
def test_the_rarest_operands_of_a_query_that_is_no_and_of_known_words(by_frequency, query):
    assert scores(by_frequency, query, "prox(rarest=1)") == scores(by_frequency, query, "prox")


def test_the_rarest_operand_may_be_a_phrase_or_an_or(by_frequency):
    query = 'common AND (rare OR single) AND "rare single"'
    for count, kept in ((1, '"rare single"'), (2, '(rare OR single) AND "rare single"')):
        assert scores(by_frequency, query, f"prox(rarest={count})") == scores(by_frequency, kept, "prox") != {}
