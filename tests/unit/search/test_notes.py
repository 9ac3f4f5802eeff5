"""Notes on what a query probably meant, and hits where a name is expected."""

import pytest

from perikope.document.tree import TreeBuilder
from tests.support.collections import index_of


@pytest.fixture(scope="module")
def index():
    builder = TreeBuilder("d1", title="Pumps")
    builder.passage("The rotor of a pump.")
    builder.passage("A magnet and a shaft.")
    return index_of([builder.build()])


@pytest.mark.parametrize(
    ("query", "operator"),
    [("pump AND magnet", "AND"), ("pump NEAR/3 rotor", "NEAR/3"), ("pump and magnet", ""), ("AND pump", ""), ("pump OR", "")],
)
def test_operators_in_plain_words_are_noted(index, query, operator):
    notes = index.search(query).notes
    expected = f"{operator} is read as a plain word; syntax='boolean' reads it as an operator"
    assert [note for note in notes if "plain word" in note] == ([expected] if operator else [])
    if operator == "AND":
        assert not any("plain word" in note for note in index.search(query, syntax="boolean").notes)


def test_a_hit_can_be_explained_as_it_is(index):
    hit = index.search("rotor")[0]
    assert index.explain("rotor", hit).value == index.explain("rotor", hit.name).value == hit.score
