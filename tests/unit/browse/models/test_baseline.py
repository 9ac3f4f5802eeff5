"""The baselines that return one section per document, if elements are ranked."""

import pytest

from perikope.document.tree import Kind, TreeBuilder
from tests.support.collections import index_of, plain_document


def page():
    """An article whose body has a preface, two sections, and a section in the second one."""
    builder = TreeBuilder("d1", tag="article", title="Museums")
    with builder.span(Kind.ELEMENT, "bdy"):
        builder.passage("A preface with pumps.")
        with builder.span(Kind.SECTION, "sec"):
            builder.title("History")
            builder.passage("Nothing here.")
        with builder.span(Kind.SECTION, "sec"):
            builder.title("Collection")
            with builder.span(Kind.SECTION, "ss1"):
                builder.passage("All pumps and valves.")
    return builder.build()


@pytest.fixture(scope="module")
def index():
    return index_of([page(), plain_document("d2", "Valves", "Pumps, pumps and pumps.")])


def names(results):
    return [name for name, _ in results.names()]


FIRST, SECOND = "d1#/article[1]/bdy[1]/sec[1]", "d1#/article[1]/bdy[1]/sec[2]"


@pytest.mark.parametrize(("model", "section"), [("first_section", FIRST), ("first_matching_section", SECOND)])
def test_one_section_per_document_or_a_document_without_sections(index, model, section):
    found = index.search("pumps", model=model, elements=True, no_overlap=True, group_by_document="fetch")
    assert names(found) == ["d2#/document[1]", section]
    assert names(index.search("pumps", model=model, elements=True, k=2)) == ["d2#/document[1]", section]


def test_a_document_in_which_no_section_has_a_query_term_returns_its_first_section(index):
    found = index.search("preface", model="first_matching_section", elements=True, no_overlap=True)
    assert names(found) == [FIRST]


def test_a_section_that_may_not_be_a_result_is_passed_over(index):
    found = index.search("pumps", model="first_section", elements=["article", "p"], no_overlap=True, filter="id=d1")
    assert names(found) == ["d1#/article[1]"]


def test_scores_are_explained(index):
    node = index.explain("pumps", FIRST, model="first_section", elements=True)
    assert node.value == pytest.approx(node.recomputed())
    assert node.value > 1
