"""The parts of a score are true: they add up to it, and they come from the texts that made it."""

import math

import pytest

from perikope.browse.reasons import MOST_WORDS, reasons_of
from perikope.browse.signals import Node
from tests.support.collections import index_of, plain_document, structured_document
from tests.support.models import READY
from tests.test_explanations import EXPLAINED, nodes

PASSAGES = [f"d1#@{number}" for number in range(1, 5)]
ORIGINS = {"passage", "titles", "sections", "document", "neighbors", "references", "other"}


@pytest.fixture(scope="module")
def index():
    others = plain_document("d2", "Valves", "The valve opens."), plain_document("d3", "Tanks", "A seal. " + "The tank holds oil. " * 20)
    return index_of([structured_document(), *others], [1])


def parts(node):
    return {part.origin: part.value for part in reasons_of(node).parts}


@pytest.mark.parametrize("model", [*EXPLAINED, "prox_hw", "prox(titles=true)", "fuse(models=[coverage,plm],normalize=zscore)"])
def test_the_parts_of_every_model_add_up_to_the_score(index, model):
    found = set()
    for passage in PASSAGES:
        node = index.explain("rotor seal", passage, model=model)
        reasons = reasons_of(node)
        assert reasons.score == node.value
        assert math.fsum(part.value for part in reasons.parts) == pytest.approx(node.value, rel=1e-9, abs=1e-12)
        assert {part.origin for part in reasons.parts} <= ORIGINS
        sizes = [abs(part.value) for part in reasons.parts]
        assert sizes == sorted(sizes, reverse=True)
        for part in reasons.parts:
            assert set(part.words) <= {"rotor", "seal"}
            if part.value and all(value >= 0 for value in part.words.values()):
                assert math.fsum(part.words.values()) <= part.value * (1 + 1e-9)
        found |= {part.origin for part in reasons.parts if part.value}
    assert found - {"other"}, "no part of the score has an origin"


def test_every_model_is_tested():
    assert {model.partition("(")[0] for model in EXPLAINED} | {"prox_hw"} == {*READY}


EXPECTED = {
    "bm25": {"passage"},
    "lm": {"passage"},
    "pl2": {"passage"},
    "psg": {"passage"},
    "psg_doc": {"passage", "document"},
    "psg_neighbor": {"passage", "document", "neighbors"},
    "plm": {"passage", "document", "neighbors"},
    "prox(logical=all)": {"passage"},
    "prox(logical=[sec])": {"passage", "neighbors"},
    "qsf_v": {"passage", "document"},
    "qsf_v_title": {"passage", "titles", "document"},
    "qsf_section": {"passage", "titles", "document", "sections"},
    "qsf_section_propagate": {"passage", "titles", "document", "sections"},
    "qsf_passage_propagate": {"passage", "titles", "document", "neighbors"},
    "coverage": {"passage", "titles", "document", "neighbors"},
    "first_section": {"document", "sections"},
}
"""The texts that each model reads, by its definition."""


@pytest.mark.parametrize("model", EXPECTED)
def test_a_score_comes_from_the_texts_that_the_model_reads(index, model):
    # With a passage that has no query term, a likelihood or a normalised score may remain, which comes from no text.
    found = {origin for passage in PASSAGES for origin in parts(index.explain("rotor seal", passage, model=model))}
    assert found - {"other"} == EXPECTED[model]
    assert "other" not in parts(index.explain("rotor seal", "d1#@3", model=model))


@pytest.mark.parametrize(
    ("model", "weight", "origin"),
    [
        ("qsf_v", "alpha", "passage"),
        ("qsf_section", "alpha", "sections"),
        ("psg_doc", "lam", "document"),
        ("psg_neighbor", "left", "neighbors"),
        ("coverage", "titles", "titles"),
        ("coverage", "neighbors", "neighbors"),
        ("coverage", "document", "document"),
    ],
)
def test_a_text_without_weight_has_no_part(index, model, weight, origin):
    """If a model gives a text the weight 0, the score owes nothing to it; with a weight, it owes something."""
    without = "1" if (model, weight) == ("qsf_section", "alpha") else "0"
    both = f"{weight}={without},right=0" if weight == "left" else f"{weight}={without}"
    query, passage = "rotor seal", "d1#@3"
    assert parts(index.explain(query, passage, model=f"{model}({both})")).get(origin, 0.0) == 0
    assert parts(index.explain(query, passage, model=model))[origin] > 0


def test_occurrences_in_titles_and_in_the_passage_are_told_apart(index):
    node = index.explain("rotor seal", "d1#@3", model="qsf_v_title(alpha=1,content=bm25)")
    of_passage, of_titles = (next(part for part in reasons_of(node).parts if part.origin == origin) for origin in ("passage", "titles"))
    assert set(of_titles.words) == {"rotor"}  # it stands in the title `Rotor`, and once in the passage
    assert of_passage.words["rotor"] == pytest.approx(of_titles.words["rotor"])
    assert "seal" in of_passage.words


def test_words_are_those_of_the_query():
    index = index_of([plain_document("d", "Couplings", "Magnetic couplings transmit torque. They are coupled by magnets.")], [1])
    for model in ("bm25", "coverage", "plm", "prox", "lm", "psg_doc"):
        words = {word for part in reasons_of(index.explain("Magnets coupling", "d#@1", model=model)).parts for word in part.words}
        assert words == {"Magnets", "coupling"}, model


def test_many_words_are_cut_and_the_value_is_complete():
    words = [f"word{letter}" for letter in "abcdefghijklmnop"]
    index = index_of([plain_document("d", "Title", " ".join(words))], [1])
    node = index.explain(" ".join(words), "d#@1", model="bm25")
    (part,) = reasons_of(node).parts
    assert len(part.words) == MOST_WORDS < len(words)
    assert part.value == pytest.approx(node.value)


def test_results_have_the_reasons_of_their_hits(index):
    results = index.search("rotor seal", model="coverage")
    for number, hit in enumerate(results):
        assert results.reasons(number) == reasons_of(index.explain("rotor seal", hit, model="coverage"))


A, B = Node("a", 3.0, origins=(("passage", 1.0),), word="x"), Node("b", 1.0, origins=(("document", 1.0),))
IDF = Node("idf", 2.0)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (IDF, {"other": 2.0}),
        (Node("", 4.0, "sum", (A, B)), {"passage": 3.0, "document": 1.0}),
        (Node("", 6.0, "sum", (A, B, IDF)), {"passage": 3.0, "document": 1.0, "other": 2.0}),
        (Node("", 6.0, "product", (A, IDF)), {"passage": 6.0}),
        (Node("", 3.0, "product", (A, B)), {"passage": 1.5, "document": 1.5}),
        (Node("", 4.0, "product", (IDF, IDF)), {"other": 4.0}),
        (Node("", 3.0, "max", (A, B)), {"passage": 3.0}),
        (Node("", 1.0, "min", (A, B)), {"document": 1.0}),
        (Node("", -6.0, "affine", (A,), -2.0), {"passage": -6.0}),
        (Node("", 8.0, "affine", (Node("", 4.0, "sum", (A, B)),), 1.0, 4.0), {"passage": 6.0, "document": 2.0}),
        (
            Node("", math.exp(6.0), "exp", (Node("", 6.0, "sum", (A, B, IDF)),)),
            {"passage": 0.75 * math.exp(6), "document": 0.25 * math.exp(6)},
        ),
        (Node("", 4.0, "sum", (A, B), origins=(("sections", 1.0),)), {"sections": 4.0}),
        (Node("", 4.0, "sum", (A, B), origins=(("passage", 0.25), ("titles", 0.75))), {"titles": 3.0, "passage": 1.0}),
        (Node("", 0.5, "affine", (Node("", 0.0, "sum", (), origins=(("passage", 1.0),)),), 1.0, 0.5), {"passage": 0.5}),
        (Node("", 0.0, "sum", ()), {}),
    ],
)
def test_each_operation_passes_its_value_on(node, expected):
    assert parts(node) == pytest.approx(expected)
    assert [part.origin for part in reasons_of(node).parts] == [
        origin for origin, _ in sorted(expected.items(), key=lambda item: (-abs(item[1]), item[0]))
    ]  # fmt: skip


def test_origins_are_stated_once_on_a_path(index):
    """A node that states its origin decides for all nodes below it, so no node below needs to agree with it."""
    for model in EXPLAINED:
        for node in nodes(index.explain("rotor seal", "d1#@3", model=model)):
            assert math.fsum(share for _, share in node.origins) == pytest.approx(1.0 if node.origins else 0.0)
            assert all(share > 0 for _, share in node.origins)
