"""Weights by distance, linear time, and explanations of the propagation models."""

from types import SimpleNamespace

import numpy as np
import pytest

from perikope.browse.models import MODELS, parse_model
from perikope.browse.models.propagation import LISTED, Decay, propagated_from_passages, propagated_from_sections, section_scores
from perikope.browse.signals import fact
from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from tests.support.collections import index_of, plain_document
from tests.support.growth import is_linear

WEIGHTS = ["gauss", "triangle", "exponential", "inverse", "step"]
TREES = {
    "flat": lambda size: np.array([-1]),
    "balanced": lambda size: np.array([-1, *((np.arange(1, size) - 1) // 8)]),
    "chain": lambda size: np.arange(-1, size - 1),
    "chain with a leaf at each section": lambda size: np.array([-1, *((np.arange(1, size) - 1) // 2 * 2)]),
}


def one_document(parent, section_of_passage):
    """Matches with the structure of one document, as far as the propagation columns need it."""
    return SimpleNamespace(
        documents=1,
        parent_of_section=np.asarray(parent, np.int64),
        document_of_section=np.zeros(len(parent), np.int64),
        section_of_passage=np.asarray(section_of_passage, np.int64),
        document_of_passage=np.zeros(len(section_of_passage), np.int64),
        first_passage_of_document=np.array([0, len(section_of_passage)], np.int64),
    )


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("sigma", [1e-300, 0.5, 5.0, 1e300])
def test_a_weight_is_1_at_no_distance_and_never_rises(weight, sigma):
    weights = Decay(weight, sigma).at(np.arange(50))
    assert weights[0] == 1
    assert (np.diff(weights) <= 0).all()
    assert ((weights >= 0) & (weights <= 1)).all()


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ("gauss", [1, 0.882497, 0.606531, 0.324652]),
        ("triangle", [1, 0.5, 0, 0]),
        ("exponential", [1, 0.606531, 0.367879, 0.223130]),
        ("inverse", [1, 0.666667, 0.5, 0.4]),
        ("step", [1, 1, 1, 0]),
    ],
)
def test_the_weights_at_sigma_2(weight, expected):
    assert Decay(weight, 2.0).at(np.arange(4)) == pytest.approx(expected, abs=1e-6)


def test_a_table_of_weights_ends_where_they_are_0():
    assert Decay("triangle", 5.0).table(2, 1000) == pytest.approx([0.6, 0.4, 0.2])
    assert Decay("step", 1.0).table(2, 1000).size == 0
    assert Decay("inverse", 5.0).table(2, 1000).size == 999
    gauss = Decay("gauss", 5.0)
    reach = gauss.table(0, 100_000).size
    assert 185 < reach < 200
    assert gauss.at(np.array(reach - 1)) > 0 == gauss.at(np.array(reach))


@pytest.mark.parametrize("size", [100, 1_000, 10_000])
@pytest.mark.parametrize("aggregate", ["average", "maximum"])
@pytest.mark.parametrize("tree", TREES)
def test_time_grows_with_the_passages(tree, aggregate, size):
    def propagate(passages):
        parent = TREES[tree](passages)
        matches = one_document(parent, np.sort(np.arange(passages) % parent.size))
        score = fact("score", np.linspace(0, 1, passages))
        sections = section_scores(matches, score, aggregate)
        for decay in (Decay("gauss", 5.0), Decay("exponential", 5.0), Decay("step", 3.0)):
            propagated_from_sections(matches, sections, decay, aggregate)
            propagated_from_passages(matches, score, decay, aggregate)

    propagate(2)  # compiles
    assert is_linear(propagate, size, 10)


@pytest.mark.parametrize("aggregate", ["average", "maximum", "weighted"])
def test_an_exponential_weight_by_its_factor_equals_it_by_its_table(aggregate, monkeypatch):
    parent = np.array([-1, 0, 1, 1, 0, 4, 5, 6])
    matches = one_document(parent, np.array([0, 2, 2, 3, 6, 7, 7, 7]))
    score = fact("score", np.array([0.5, 0.1, 0.9, 0.0, 0.3, 0.2, 0.8, 1e-9]))
    decay = Decay("exponential", 3.0)

    def both():
        sections = section_scores(matches, score, aggregate)
        return [
            propagated_from_sections(matches, sections, decay, aggregate).values,
            propagated_from_passages(matches, score, decay, aggregate).values,
        ]

    by_factor = both()
    monkeypatch.setattr(Decay, "factor", None)
    for values, expected in zip(by_factor, both(), strict=True):
        assert values == pytest.approx(expected, rel=1e-12, abs=0)


def test_small_scores_beside_a_large_one_keep_their_digits():
    matches = one_document([-1, 0, 0], [1, 1, 2])
    score = fact("score", np.array([1e9, 1e-9, 3e-9]))
    values = propagated_from_passages(matches, score, Decay("inverse", 1.0), "average").values
    assert values[0] == pytest.approx((1e-9 / 3 + 3e-9 / 5) / 2, rel=1e-12)


@pytest.mark.parametrize("aggregate", ["average", "maximum", "weighted"])
def test_an_only_passage_gets_nothing_from_others(aggregate):
    index = index_of([plain_document("one", "Pumps", "a pump"), plain_document("two", "Pumps", "a pump", "a seal")])
    model = f"qsf_passage_propagate(aggregate={aggregate})"
    context = parse_model(model).signals(index.search("pump").matches)["context"].explain(0).children[0]
    assert (context.value, context.children) == (0, ())
    assert context.label.endswith("there are none")


def nested():
    builder = TreeBuilder("d", title="Pumps")
    builder.passage("the pump")
    with builder.span(Kind.SECTION, "sec"):
        builder.title("Rotor")
        for number in range(2 * LISTED):
            builder.passage("rotor " * (number % 3) + "shaft")
        with builder.span(Kind.SECTION, "sec"):
            builder.passage("a magnet in the rotor")
    with builder.span(Kind.SECTION, "sec"):
        builder.title("Empty")
    return index_of([builder.build(), plain_document("other", "Rotor", "magnet")])


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)


@pytest.mark.parametrize("aggregate", ["average", "maximum", "weighted"])
def test_an_explanation_names_the_passages_that_contribute_most(aggregate):
    name = f"d#@{2 * LISTED + 2}"
    node = nested().explain("rotor magnet", name, model=f"qsf_passage_propagate(aggregate={aggregate})")
    nodes = list(walk(node))
    products = [n for n in nodes if ", at distance" in n.label]
    assert len(products) == LISTED
    assert [n.value for n in products] == sorted((n.value for n in products), reverse=True)
    assert products[0].label == "passage 4, at distance 3"
    left = 2 * LISTED + 1 - LISTED
    rest = f"the largest of the other {left}" if aggregate == "maximum" else f"the other {left} together"
    assert rest in [n.label for n in nodes]


def test_by_the_sum_of_weights_many_neighbours_are_not_worth_more_than_few():
    # Passage 0 has one sibling and passage 2 has three; all have the same score.
    matches = one_document([-1, 0, 0], [1, 1, 2, 2, 2, 2])
    score = fact("score", np.full(6, 0.25))
    for weight in ("gauss", "exponential", "inverse"):
        decay = Decay(weight, 1.0)
        average, weighted = (propagated_from_passages(matches, score, decay, one).values for one in ("average", "weighted"))
        assert average[2] > average[0] * 1.01
        assert weighted == pytest.approx(np.full(6, 0.25))
        above = propagated_from_sections(matches, fact("section", np.full(3, 0.5)), decay, "weighted").values
        assert above == pytest.approx(np.full(6, 0.5))
    assert propagated_from_passages(matches, score, Decay("step", 1.0), "weighted").values.tolist() == [0.0] * 6


def test_an_explanation_names_the_sections_above_and_what_they_hold():
    node = nested().explain("rotor magnet", f"d#@{2 * LISTED + 2}", model="qsf_section_propagate")
    labels = [n.label for n in walk(node)]
    assert [label for label in labels if label.startswith("at distance")] == ["at distance 1", "at distance 2", "at distance 3"]
    last = 2 * LISTED + 2
    for section in (f"section of passage {last}", f"section of passage 2 to {last}", "the whole document"):
        assert f"{section}, average of what is directly below" in labels
    # The passage and the section directly below the root count; the empty section does not.
    assert "sum of 2" in labels


def test_a_weight_or_content_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UsageError, match="gauss"):
        parse_model("qsf_section_propagate(weight=cosine)")
    with pytest.raises(UsageError, match="bm25"):
        parse_model("qsf_v(content=tfidf)")
    with pytest.raises(UsageError, match="above 0"):
        parse_model("qsf_passage_propagate(sigma=0)")


def test_tuning_tries_what_the_paper_tried():
    shape = MODELS["qsf_passage_propagate"].shape
    grids = {name: parameter.grid_values() for name, parameter in shape.items() if name != "mu"}
    assert grids == {
        "content": ("lm",), "statistics": ("documents",), "aggregate": ("average",), "weight": ("gauss",), "sigma": (0.5, 1.0, 2.0, 5.0),
    }  # fmt: skip
