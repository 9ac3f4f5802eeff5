"""Synonyms and near terms in a search: what is found, what counts, and how it is explained."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.query.topic import Topic
from tests.support.collections import index_of, plain_document
from tests.support.examples import scaled
from tests.support.models import READY
from tests.test_explanations import nodes

RULES = ["plane, aeroplane, airliner", "nyc, new york, big apple", "lift => elevator"]


@pytest.fixture(scope="module")
def index():
    texts = [
        ["The plane has two wings.", "A wing of the aeroplane, and the plane."],
        ["An aeroplane over New York.", "The elevator of an airliner."],
        ["A lift for nyc.", "York is a new town; the apple is big."],
        ["Wings and planes, planes and wings."],
    ]
    return index_of([plain_document(f"d{number}", "Planes" * (number == 3), *text) for number, text in enumerate(texts)], [2])


def found(index, query, **options):
    return {hit.name for hit in index.search(query, **{"k": 100, "model": "bm25", **options})}


def scores(results):
    return dict(results.names())


def test_synonyms_are_found_and_highlighted(index):
    assert found(index, "plane") == {"d0#@1", "d0#@2", "d3#@1"}
    assert found(index, "plane", synonyms=RULES) == {"d0#@1", "d0#@2", "d1#@1", "d1#@2", "d3#@1"}
    hit = next(hit for hit in index.search("plane", synonyms=RULES, k=100) if hit.name == "d1#@2")
    assert [hit.text[start:end] for start, end in hit.highlights] == ["airliner"]


def test_words_without_their_own_entry_are_replaced(index):
    assert found(index, "lift", synonyms=RULES) == {"d1#@2"}
    assert found(index, "elevator", synonyms=RULES) == {"d1#@2"}


@pytest.mark.parametrize("syntax", ["words", "boolean"])
@pytest.mark.parametrize("model", READY)
def test_rules_that_do_not_apply_change_nothing(index, model, syntax):
    without = index.search("plane wings", model=model, k=100, syntax=syntax).names()
    assert index.search("plane wings", model=model, k=100, syntax=syntax, synonyms=["car, auto", "plane crash => crash"]).names() == without


@pytest.mark.parametrize("fetch", ["bm25", "pl2", "dph", "lm", "sim"])
@pytest.mark.parametrize("model", READY)
def test_five_unknown_synonyms_do_not_change_a_score(index, model, fetch):
    rule = ["plane, aerodyne, airscrew, airframe, aircraft, airplane"]
    options = {"model": model, "fetch": fetch, "k": 100}
    assert index.search("plane wings", **options, synonyms=rule).names() == index.search("plane wings", **options).names()


texts = st.lists(
    st.lists(st.lists(st.sampled_from(["plane", "jet", "wing", "rotor"]), min_size=1, max_size=6), min_size=1, max_size=3), max_size=5
)


@settings(max_examples=scaled(30))
@given(texts, st.sampled_from(["lm", "lm(mu=5)", "qsf_v_title", "qsf_section", "prox"]), st.sampled_from(["lm", "lm(mu=3)"]))
def test_a_word_with_a_synonym_is_scored_as_if_texts_used_one_word(drawn, model, fetch):
    """Query likelihood depends on occurrences only. The document frequency of a group is not that of the union."""
    sentences = [[" ".join(words) for words in document] for document in drawn]
    mixed = index_of([plain_document(f"d{i}", "", *document) for i, document in enumerate(sentences)], [1] if len(drawn) > 1 else [])
    one = index_of(
        [plain_document(f"d{i}", "", *(text.replace("jet", "plane") for text in document)) for i, document in enumerate(sentences)]
    )
    options = {"model": model, "fetch": fetch, "k": 100}
    with_synonyms = scores(mixed.search("jet wing", synonyms=["plane, jet"], **options))
    assert with_synonyms == pytest.approx(scores(one.search("plane wing", **options)), rel=1e-12)


def test_statistics_of_a_group_are_the_largest_document_frequency_and_the_sum_of_occurrences(index):
    matches = index.search("plane", synonyms=RULES).matches
    assert matches.query.terms == ("en:plane|en:aeroplan|en:airlin",)
    counts = matches.statistics
    assert counts.document_frequency.tolist() == [2]  # plane: d0 and d3; aeroplane: d0 and d1
    assert counts.collection_frequency.tolist() == [2 + 3 + 2 + 1]
    assert counts.passage_frequency.tolist() == [3]
    assert counts.passage_collection_frequency.tolist() == [2 + 2 + 2 + 1]
    singles = matches.with_negated()
    assert singles.query.terms == ("en:plane", "en:aeroplan", "en:airlin")


def test_words_that_are_synonyms_of_each_other_are_one_word_with_both_weights(index):
    query = index.search("plane aeroplane wing", synonyms=RULES).matches.query
    assert dict(zip(query.terms, query.weights, strict=True)) == {"en:plane|en:aeroplan|en:airlin": 2.0, "en:wing": 1.0}


def test_synonyms_of_several_words_share_the_weight_of_one_word(index):
    query = index.search("nyc", synonyms=RULES).matches.query
    assert dict(zip(query.terms, query.weights, strict=True)) == {
        "en:nyc": 1.0, "en:new": 0.25, "en:york": 0.25, "en:big": 0.25, "en:appl": 0.25,
    }  # fmt: skip
    query = index.search("new york wing", synonyms=RULES).matches.query
    assert dict(zip(query.terms, query.weights, strict=True)) == {
        "en:new": 1.0, "en:york": 1.0, "en:nyc": 1.0, "en:big": 0.5, "en:appl": 0.5, "en:wing": 1.0,
    }  # fmt: skip


def test_synonyms_of_several_words_are_phrases_where_all_words_must_match(index):
    must = {"must_match": True, "synonyms": RULES}
    assert found(index, "nyc", **must) == {"d1#@1", "d2#@1"}
    assert found(index, "new york", **must) == {"d1#@1", "d2#@1", "d2#@2"}  # plain words need not be side by side
    assert found(index, '"new york"', syntax="boolean", **must) == {"d1#@1", "d2#@1"}
    assert found(index, "plane AND nyc", syntax="boolean", **must) == {"d1#@1"}
    assert found(index, "airliner NOT lift", syntax="boolean", **must) == {"d0#@1", "d0#@2", "d1#@1", "d3#@1"}
    assert found(index, '"the plane"', syntax="boolean", **must) == {"d0#@1", "d0#@2", "d1#@1", "d1#@2", "d3#@1"}
    assert found(index, '"wing of the airliner"', syntax="boolean", **must) == {"d0#@2", "d3#@1"}
    assert found(index, "nyc NEAR/3 plane", syntax="boolean", **must) == {"d1#@1"}
    assert found(index, "{plane} AND wing", syntax="boolean", **must) == {"d0#@1", "d0#@2", "d3#@1"}


@pytest.mark.parametrize("expand", ["bo1(documents=2)", "rm3(documents=2)"])
def test_expansion_adds_to_a_group_and_not_beside_it(index, expand):
    query = index.search("plane", synonyms=RULES, expand=expand).matches.query
    assert query.terms[0] == "en:plane|en:aeroplan|en:airlin"
    assert not {"en:plane", "en:aeroplan", "en:airlin"} & {*query.terms}
    assert len(query.terms) > 1
    assert index.search("plane", synonyms=RULES, browse_expand=expand, model="bm25").matches.query.terms[0] == query.terms[0]


@pytest.mark.parametrize("model", [*READY, "psg_doc", "plm"])
@pytest.mark.parametrize("options", [{"synonyms": RULES}, {"synonyms": RULES, "syntax": "boolean"}])
def test_values_with_synonyms_are_explained(index, model, options):
    node = index.explain("plane wing", "d1#@1", model=model, **options)
    for one in nodes(node):
        assert one.recomputed() == pytest.approx(one.value, rel=1e-9, abs=1e-12), one.label
    assert node.value == scores(index.search("plane wing", model=model, k=100, **options)).get("d1#@1", node.value)


def test_an_explanation_names_the_synonym_that_occurs(index):
    labels = [node.label for node in nodes(index.explain("plane", "d1#@1", synonyms=RULES, model="bm25"))]
    assert "'aeroplan' (aeroplane, synonym of plane) occurs 1×" in labels
    labels = [node.label for node in nodes(index.explain("plane", "d0#@2", synonyms=RULES, model="psg_doc"))]
    assert "'plane' occurs 1×, 'aeroplan' (aeroplane, synonym of plane) occurs 1×" in labels
    assert "'plane' occurs 2×, 'aeroplan' (aeroplane, synonym of plane) occurs 1×" in labels  # of the document
    labels = [node.label for node in nodes(index.explain("plane", "d3#@1", synonyms=RULES, model="qsf_v_title"))]
    assert "'plane' occurs 3×" in labels  # one is in the title
    labels = [node.label for node in nodes(index.explain("nyc", "d1#@1", synonyms=RULES, model="bm25"))]
    assert "'york' (in new york, synonym of nyc) occurs 1×" in labels
    labels = [node.label for node in nodes(index.explain("plane", "d1#@1", synonyms=RULES, model="plm"))]
    assert any("'aeroplan' (aeroplane, synonym of plane)" in label for label in labels)
    labels = [node.label for node in nodes(index.explain("plane", "d1#@1", synonyms=RULES, model="prox"))]
    assert any("aeroplane, synonym of plane" in label for label in labels)


def test_words_that_no_document_contains_match_near_words(index):
    assert found(index, "aeropalne") == set()
    assert found(index, "aeropalne", fuzzy=1) == found(index, "aeroplane")
    assert found(index, "airlinnre", fuzzy=1) == set()
    assert found(index, "airlinnre", fuzzy=2) == found(index, "airliner")
    assert found(index, "plaen AND wing", fuzzy=1, syntax="boolean", must_match=True) == found(index, "plane wing", must_match=True)
    assert index.search("aeropalne wing", fuzzy=1).names() == index.search("aeroplane wing").names()
    labels = [node.label for node in nodes(index.explain("aeropalne", "d1#@1", fuzzy=1, model="bm25"))]
    assert "'aeroplan' (near aeropalne) occurs 1×" in labels


def test_words_of_the_index_and_numbers_have_no_stand_ins(index):
    assert index.search("plane 1234 xy", fuzzy=2, model="bm25").matches.query.terms == ("en:plane", "en:1234", "en:xy")


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("aeropalne~1", "{aeroplan}"),
        ("aeropalne~", "{aeroplan}"),
        ("aeroplen~2", "{aeroplan}"),
        ("aeorplen~1", "{}"),
        ("plaen~1 AND winsg~", "{plane} AND {wing}"),
        ('"the plaen~1"', "{plane}"),
        ("plane~1", "{plane}"),
        ("NOT plaen~ wings", "NOT {plane} {wing}"),
    ],
)
def test_fuzzy_words_match_near_terms(index, query, same):
    options = {"syntax": "boolean", "must_match": True}
    assert found(index, query, **options) == (found(index, same, **options) if same != "{}" else set())


def test_near_terms_count_as_one_word(index):
    fuzzy = index.search("plan~1", syntax="boolean", model="bm25")
    assert fuzzy.matches.query.terms == ("en:plan|en:plane",)
    assert fuzzy.matches.query.weights == (1.0,)
    assert all(math.isfinite(hit.score) for hit in fuzzy)


def test_a_tilde_in_plain_words_is_text(index):
    assert index.search("plane~1").matches.query.terms == ("en:plane", "en:1")


def test_a_patent_is_searched_as_is(index):
    claims = Topic("1", claims="A plane with wings")
    results = index.search(claims, synonyms=RULES, k=100)
    assert results.notes[-1] == "the option synonyms applies to queries in words; the words of the patent are searched as they are"
    assert results.names() == index.search(claims, k=100).names()


def test_synonyms_that_leave_only_stop_words_are_an_error(index):
    with pytest.raises(UsageError, match="leave only stop words"):
        index.search("foo", synonyms=["foo => the"])


def test_a_file_in_a_recipe_is_relative_to_the_recipe(index, tmp_path):
    (tmp_path / "words.txt").write_text("plane, aeroplane, airliner\n")
    (tmp_path / "mine.toml").write_text('[search]\nmodel = "bm25"\nk = 100\nsynonyms = "words.txt"\n')
    assert (
        index.search("plane", recipe=str(tmp_path / "mine.toml")).names()
        == index.search("plane", k=100, model="bm25", synonyms=RULES).names()
    )
