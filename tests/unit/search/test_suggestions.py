"""Corrections of words that no document contains."""

import pytest

from perikope.document.tree import TreeBuilder
from perikope.query import spelling
from perikope.search.suggestions import Suggestions
from tests.cli.test_commands import run
from tests.support.collections import index_of, plain_document

PASSAGES = [
    "A magnetic coupling drives the pump.",
    "Pumps and valves are happy with a magnet, Receivers receive.",
    "Each pump has an EP1000 code; the organisation of relief valves relieves us.",
]


@pytest.fixture(scope="module")
def index():
    return index_of([plain_document(f"d{number}", "", text) for number, text in enumerate(PASSAGES)], [1])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("pumpp", "pump"),
        ("pmup", "pump"),
        ("magneticc", "magnetic"),  # the mistake is in the ending, which the stemmer does not recognise
        ("couplnig", "coupling"),
        ("mganetic", "magnetic"),
        ("recieve", "receive"),  # nearer than "receivers", which has the same term
        ("hapyp", "happy"),  # the term is happi
        ("Organizatoin", "organisation"),
        ("teh", "the"),  # a stop word, which is not in the dictionary
        ("valvves", "valves"),
    ],
)
def test_nearest_word_of_the_index_is_suggested(index, typed, meant):
    results = index.search(f"{typed} of a pump")
    assert results.suggestions.words[typed][0] == meant
    assert results.suggestions.query == f"{meant} of a pump"
    assert results.notes == (f'no document contains "{typed}". Did you mean "{meant} of a pump"?',)


@pytest.mark.parametrize("query", ["pump", "PUMPING", "coupled magnets", "xq", "EP1001", "zeppelin", "cut", "pump AND NOT pumpp"])
def test_nothing_is_suggested_for_known_words_numbers_short_words_and_negated_words(index, query):
    results = index.search(query, syntax="boolean")
    assert not results.suggestions
    assert results.notes == ()


def test_known_words_do_not_scan_the_dictionary(index, monkeypatch):
    monkeypatch.setattr(spelling, "near_names", None)
    assert index.search("magnetic pump").suggestions == Suggestions()
    with pytest.raises(TypeError):
        _ = index.search("magnetic pumpp").suggestions


def test_corrections_keep_operators_signs_and_capitals(index):
    assert index.search("(Pumpp OR magnettic) AND valve", syntax="boolean").suggestions.query == "(pump OR magnetic) AND valve"
    assert index.search("Recievers").suggestions.words == {"Recievers": ("Receivers", "relieves")}
    assert index.search("+pumpp -valve", syntax="automatic").suggestions.query == "+pump -valve"
    assert index.search("valve", browse_query="pumpp").suggestions == Suggestions({"pumpp": ("pump",)}, "")


def test_words_are_looked_for_in_the_searched_languages():
    builder = TreeBuilder("f", language="fr")
    builder.passage("La pompe.")
    index = index_of([plain_document("e", "", "The pump."), builder.build()])
    assert index.search("pommpe", language="en").suggestions == Suggestions({"pommpe": ()}, "")
    assert index.search("pommpe", language="fr").suggestions.words == {"pommpe": ("pompe",)}


def test_words_of_deleted_documents_are_not_suggested():
    index = index_of([plain_document("a", "", "A pump."), plain_document("b", "", "A valve.")])
    index.delete("a")
    index.commit()
    assert not index.search("pumpp").suggestions


def test_words_without_stems_are_compared_whole():
    index = index_of([plain_document("a", "", "A magnetic pump.")], stemmer="none")
    assert index.search("magneticc").suggestions.words == {"magneticc": ("magnetic",)}
    assert not index.search("pumpping").suggestions


def test_command_prints_the_corrected_query_with_and_without_hits(index, capsys):
    code, out, err = run(capsys, "search", index.folder, "pumpp")
    assert (code, out) == (0, "no passage contains any of these words\n")
    assert err == 'perikope: note: no document contains "pumpp". Did you mean "pump"?\n'
    code, out, err = run(capsys, "search", index.folder, "magnetic pumpp", "-k", "1")
    assert "magnetic coupling" in out
    assert err.endswith('Did you mean "magnetic pump"?\n')
