"""Which passages satisfy a Boolean query, inside and across; and how a search is restricted to them."""

import pytest

from perikope.browse.satisfaction import BooleanEvaluator, satisfied
from perikope.core.errors import UsageError
from perikope.query.boolean import And, Near, Not, Word
from perikope.query.terms import Query
from tests.support.collections import index_of, plain_document


@pytest.fixture(scope="module")
def index():
    return index_of(
        [
            plain_document(
                "d1",
                "Magnetic couplings",
                "The heat pump has a steel shaft.",  # @1
                "A seal of the art of sealing keeps oil from the pump",  # @2
                "station, where two valves stand.",  # @3
                "Rotors turn.",  # @4
            ),
            plain_document("d2", "", "The pump has no valve.", "State of the art: a pump, a pump and a valve."),
        ]
    )


def names_of(index, query, **options):
    hits = index.search(query, syntax="boolean", must_match=True, model="psg_doc", k=100, **options)
    return sorted(hit.name for hit in hits)


@pytest.mark.parametrize(
    ("query", "inside", "across"),
    [
        ("pump valve", ["d2#@1", "d2#@2"], ["d1#@1", "d1#@2", "d1#@3", "d2#@1", "d2#@2"]),
        ("pump -valve", ["d1#@1", "d1#@2"], []),
        ("pump OR rotor", ["d1#@1", "d1#@2", "d1#@4", "d2#@1", "d2#@2"], ["d1#@1", "d1#@2", "d1#@4", "d2#@1", "d2#@2"]),
        ('"pump station"', [], ["d1#@2", "d1#@3"]),
        ('"heat pump"', ["d1#@1"], ["d1#@1"]),
        ('"pump heat"', [], []),
        ('"state of the art"', ["d2#@2"], ["d2#@2"]),
        ('"art of sealing"', ["d1#@2"], ["d1#@2"]),
        ('"seal of the art"', ["d1#@2"], ["d1#@2"]),
        ('"magnetic couplings"', [], []),  # a title is outside all passages
        ("coupling rotor", [], ["d1#@4"]),  # and belongs to the document
        ("oil ADJ/3 pump", ["d1#@2"], ["d1#@2"]),
        ("oil ADJ/2 pump", [], []),
        ("pump ADJ/3 oil", [], []),
        ("pump NEAR/3 oil", ["d1#@2"], ["d1#@2"]),
        ("pump NEAR/4 valve", ["d2#@1", "d2#@2"], ["d1#@2", "d1#@3", "d2#@1", "d2#@2"]),
        ("pump NEAR/5 pump", ["d2#@2"], ["d2#@2"]),  # two pumps, not one
        ("pump SAME valve", ["d2#@1", "d2#@2"], ["d2#@1", "d2#@2"]),
        ("(heat SAME shaft) rotor", [], ["d1#@1", "d1#@4"]),
        ("pump NOT (pump SAME valve)", ["d1#@1", "d1#@2"], ["d1#@1", "d1#@2"]),
        ("pum*", ["d1#@1", "d1#@2", "d2#@1", "d2#@2"], ["d1#@1", "d1#@2", "d2#@1", "d2#@2"]),
        ("zebra", [], []),
        ("zebra*", [], []),
        ("the*", [], []),
        ("pump zebra", [], []),
    ],
)
def test_searches_that_must_match(index, query, inside, across):
    assert names_of(index, query) == inside
    assert names_of(index, query, across_passages=True) == across


def test_near_counts_words_between_the_ends_of_its_matches(index):
    # The distance counts from the end of the phrase (3 words), not from its beginning (4 words).
    assert names_of(index, '"heat pump" ADJ/3 steel') == ["d1#@1"]
    assert names_of(index, '"heat pump" ADJ/2 steel') == []


def test_words_between_the_ends_count_only_if_they_are_its_own():
    between = index_of([plain_document("d1", "", "heat", "rotor", "pump", "seal")])
    assert names_of(between, "heat NEAR/3 pump OR (rotor zebra)", across_passages=True) == ["d1#@1", "d1#@3"]
    assert names_of(between, "(heat AND rotor) NEAR/3 pump", across_passages=True) == ["d1#@1", "d1#@2", "d1#@3"]


def test_plain_words_must_all_be_there(index):
    names = [hit.name for hit in index.search("the pump and valves", must_match=True, model="bm25", documents="all")]
    assert sorted(names) == ["d2#@1", "d2#@2"]


def test_words_under_not_neither_fetch_nor_weigh_nor_light_up(index):
    assert [hit.document for hit in index.search("rotor -state", syntax="boolean", model="bm25")] == ["d1"]
    plain = index.search("pump", model="psg").names()
    assert index.search("pump -valve", syntax="boolean", model="psg").names() == plain
    hit = index.search('art -"pump"', syntax="automatic", model="bm25")[0]
    assert [hit.text[start:end] for start, end in hit.highlights] == ["art"]


def test_expansion_keeps_the_query(index):
    names = names_of(index, "pump valve", expand="rm3(documents=2,terms=5)")
    assert names == ["d2#@1", "d2#@2"]
    query = index.search("pump -valve", syntax="boolean", expand="bo1(documents=1)").matches.query
    assert "en:valv" not in query.terms


def test_the_query_that_scores_is_the_one_that_must_match(index):
    hits = index.search("rotor", browse_query='"heat pump"', syntax="boolean", must_match=True)
    assert [hit.name for hit in hits] == ["d1#@1"]


def test_an_unknown_syntax_is_named(index):
    with pytest.raises(UsageError, match="boolean"):
        index.search("pump", syntax="bolean")


def test_wildcards_have_a_limit():
    words = " ".join(f"pump{i}" for i in range(501))
    big = index_of([plain_document("d1", "", words)])
    with pytest.raises(UsageError, match=r"pump\* matches at least 501 terms"):
        big.search("pump*", syntax="boolean")
    assert len(big.search("pump5*", syntax="boolean")) == 1


def test_not_has_no_place(index):
    tree = Near(Word(("en:pump",)), Not(Word(("en:valv",))), 3, False)
    matches = index.search("pump valve").matches
    with pytest.raises(UsageError, match="has no position"):
        BooleanEvaluator(matches).inside(tree)


def test_terms_that_were_not_looked_for_occur_nowhere(index):
    matches = index.search("pump valve").matches
    assert not BooleanEvaluator(matches).inside(And((Word(("en:pump",)), Word(("en:heat",))))).any()
    assert BooleanEvaluator(matches).inside(Word(("en:heat", "en:pump"))).any()


@pytest.mark.parametrize("model", ["bm25", "lm", "psg_neighbor", "plm", "qsf_section_propagate", "first_matching_section"])
def test_a_query_without_terms_in_documents_of_somebody_else(index, model):
    options = {"syntax": "boolean", "model": model, "candidates": {"d1": 1.0}}
    assert not len(index.search("the*", must_match=True, expand="bo1", **options))
    assert all(hit.score == hit.score for hit in index.search("the*", **options))


def test_empty_matches(index):
    matches = index.search("zebra", syntax="boolean").matches
    assert satisfied(matches).tolist() == satisfied(matches, across=True).tolist() == []
    assert Query("", (), (), Word(())).boolean == Word(())
