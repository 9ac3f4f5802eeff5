"""What a text in a search box means."""

from __future__ import annotations

import pytest

from perikope import Index
from perikope.core.errors import UnreadableQuery
from perikope.query.recognition import is_boolean, is_claim
from perikope.search.interpreting import interpret
from tests.support.patents import families

CLAIMS = {
    "en": "A pump comprising a housing and a rotor, wherein the rotor is driven by a magnetic coupling.",
    "de": "Pumpe nach Anspruch 1, dadurch gekennzeichnet, dass der Rotor durch eine magnetische Kupplung angetrieben wird.",
    "fr": "Pompe selon la revendication 1, caractérisée en ce que le rotor est entraîné par un accouplement magnétique.",
    "numbered": "3) The pump of claim 1, in which the rotor is made of steel and of brass.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patents")
    for patent in families()[0].everything:
        (folder / f"{patent.id}.xml").write_text(patent.xml, "utf-8")
    with Index.create(folder / "index") as made:
        from perikope import read

        made.add(read(folder))
        made.add([{"id": "notes", "passages": ["The AND gate of the pump.", "A rotor."]}])
    return Index.open(folder / "index")


@pytest.mark.parametrize(
    "text", ["", "   ", "pump", "what does the pump do?", "at -20 °C", "KX-200", "KX200", 'a 5" pipe', "notes#7", "a#b"]
)
def test_plain_words_are_words(index, text):
    found = interpret(index.snapshot, text)
    assert (found.kind, found.options, found.problem, found.missing) == ("words", {"query": text}, None, "")


@pytest.mark.parametrize(
    "text",
    ["pump AND rotor", '"the pump" rotor', "rot*", "pump NEAR/3 rotor", "pump -seal", "(pump OR gate) rotor", "pumpp~1"],
)
def test_signs_make_a_boolean_query(index, text):
    found = interpret(index.snapshot, text)
    assert (found.kind, found.options, found.problem) == ("boolean", {"query": text, "syntax": "boolean"}, None)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("pump AND (rotor OR gate", "("), ("pump NEAR rotor", "NEAR"), ("pump AND OR rotor", "OR"), ('"pump rotor', '"'),
     ("pump OR", ""), ("pump AND rotor)", ")"),
     ("Straße AND pump NEAR/0 rotor", "NEAR/0"), ("pum*p AND rotor", "*p")],
)  # fmt: skip
def test_an_error_of_a_boolean_query_has_a_place(index, text, wrong):
    found = interpret(index.snapshot, text)
    assert found.kind == "boolean"
    assert text[found.problem.start : found.problem.end] == wrong
    assert found.problem.start == (text.rindex(wrong) if wrong else len(text))
    with pytest.raises(UnreadableQuery) as caught:
        index.search(text, syntax="boolean")
    assert (str(caught.value), caught.value.start) == (found.problem.detail, found.problem.start)


def test_a_query_without_any_term_is_wrong_as_a_whole(index):
    found = interpret(index.snapshot, '"the of"')
    assert (found.problem.start, found.problem.end) == (0, 8)


def test_the_place_of_an_error_in_the_second_query_is_not_one_of_the_first(index):
    with pytest.raises(Exception, match="browse_query: cannot read") as caught:
        index.search("pump", syntax="boolean", browse_query="rotor AND (")
    assert not isinstance(caught.value, UnreadableQuery)


def test_a_publication_number_in_any_spelling_is_a_patent(index):
    id = families()[0].members[0].id
    for text in (id, id.replace("-", ""), f" {id.lower().replace('-', ' ')} "):
        found = interpret(index.snapshot, text)
        assert (found.kind, found.options, found.document) == ("patent", {"patent": id}, id)


def test_an_unknown_publication_number_is_said_to_be_missing(index):
    found = interpret(index.snapshot, "EP 7 654 321 A1")
    assert (found.kind, found.missing) == ("words", "EP7654321A1")


def test_names_and_citations_name_a_passage(index):
    hit = next(hit for hit in index.search("pump coupling rotor", k=50) if hit.citation and hit.language == "en")
    for text in (hit.name, hit.citation, hit.citation.replace("[0", "[").upper()):
        found = interpret(index.snapshot, text)
        assert (found.kind, found.document, found.passage) == ("passage", hit.document, hit.name), text
    assert interpret(index.snapshot, "notes#@2").passage == "notes#@2"
    assert interpret(index.snapshot, f"{hit.document} [9999]").kind == "words"


@pytest.mark.parametrize("text", CLAIMS.values(), ids=CLAIMS)
def test_a_pasted_claim_is_a_claim(index, text):
    found = interpret(index.snapshot, text)
    assert (found.kind, found.options) == ("claims", {"claims": text})


def test_every_claim_and_no_title_of_the_patents_is_a_claim(shared_data):
    """Of the independent claims of real patents, nearly all are recognised; of titles, none."""
    from perikope import read

    claims, others = [], []
    for document in read(shared_data / "patents"):
        for span, citation in document.citations.items():
            text = document.text_of(span)
            if citation == "claim 1" and len(text.split()) >= 12:
                claims.append(is_claim(text))
        others.append(is_claim(document.title) or is_boolean(document.title))
    assert len(claims) > 100
    assert sum(claims) / len(claims) > 0.9
    assert sum(others) / len(others) < 0.02
