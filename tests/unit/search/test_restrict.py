"""Filters leave out results and never change scores; all documents can be searched, in batches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.query.topic import Topic
from perikope.search import steps
from perikope.search.batch import search_topics
from tests.support.collections import WORDS, collections, index_of, plain_document


def patent(id, codes, date, abstract, claim):
    builder = TreeBuilder(id, title=f"Patent {id}", metadata={"ipc": codes, "date": date})
    with builder.span(Kind.SECTION, "abstract", part="abstract"):
        builder.passage(abstract)
    with builder.span(Kind.SECTION, "claims", part="claims"):
        builder.passage(claim, tag="claim")
    return builder.build()


@pytest.fixture(scope="module")
def index():
    return index_of(
        [
            patent("EP1", ["F04D 13/02"], "2010-05-01", "A pump with a magnet.", "A pump, comprising a magnet."),
            patent("EP2", ["F04D 29/04"], "2012-07-01", "The pump has a rotor.", "A rotor of a pump."),
            patent("EP3", ["G06F 17/30"], "2013-09-01", "A search for a pump.", "A pump, searched."),
            patent("EP4", [], "2014-01-01", "A pump without codes.", "A pump."),
        ],
        [2],
    )


def documents_of(results):
    return sorted({hit.document for hit in results})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["EP1", "EP2", "EP3", "EP4"]),
        ({"filter": "ipc=F04D"}, ["EP1", "EP2"]),
        ({"filter": ["ipc=F04D", "date<2012"]}, ["EP1"]),
        ({"filter": "date>=2013-01-01"}, ["EP3", "EP4"]),
        ({"filter": "id=EP2|EP3"}, ["EP2", "EP3"]),
        ({"shares_codes_with": "EP1"}, []),
        ({"shares_codes_with": "EP1", "code_level": "subclass"}, ["EP2"]),
        ({"filter": "date=2013"}, ["EP3"]),
        ({"filter": "date!=2013-09"}, ["EP1", "EP2", "EP4"]),
        ({"filter": None}, ["EP1", "EP2", "EP3", "EP4"]),
    ],
)
@pytest.mark.parametrize("documents", [10, "all"])
@pytest.mark.parametrize("model", ["bm25", "qsf_v_title"])
def test_only_what_may_be_found_is_found(index, options, expected, documents, model):
    assert documents_of(index.search("pump", model=model, k=100, documents=documents, **options)) == expected


def test_a_filter_does_not_weigh(index):
    whole = dict(index.search("pump magnet", model="bm25", k=100).names())
    some = dict(index.search("pump magnet", model="bm25", k=100, filter="ipc=F04D").names())
    assert some
    assert some == {name: whole[name] for name in some}


def test_parts_and_tags_choose_passages_and_change_no_score(index):
    whole = dict(index.search("pump magnet", k=100).names())
    for options in ({"part": "claims"}, {"tag": ["claim"]}, {"part": ["claims", "abstract"], "tag": "claim"}):
        some = index.search("pump magnet", k=100, **options)
        assert {hit.part for hit in some} == {"claims"}
        assert dict(some.names()) == {name: whole[name] for name in dict(some.names())}
        assert len(some) == 4


def test_conditions_can_be_counted(index):
    assert index.count() == 4
    assert index.count("ipc=F04D") == 2
    assert index.count(["ipc=F04D", "date<2011"]) == 1
    assert index.count(shares_codes_with="EP1", code_level="subclass") == 1


def test_the_title_is_a_part_where_there_are_parts(index):
    assert documents_of(index.search("patent EP2", model="qsf_v", fetch_parts={"title": 2.0})) == ["EP1", "EP2", "EP3", "EP4"]
    assert index.search("EP2", model="qsf_v", fetch_parts={"title": 1.0})[0].document == "EP2"
    assert len(index.search("magnet", model="qsf_v", fetch_parts={"title": 1.0})) == 0


def test_a_topic_may_have_conditions_of_its_own(index):
    topics = [
        Topic("1", "pump"),
        Topic("2", "pump", options={"filter": "ipc=F04D"}),
        Topic("3", "pump", options={"shares_codes_with": "EP2", "filter": ["id=EP1"]}),
    ]
    problems = []
    run = dict(search_topics(index, topics, problems.append, model="bm25", code_level="class"))
    assert [sorted({name.partition("#")[0] for name, _ in run[qid]}) for qid in "123"] == [
        ["EP1", "EP2", "EP3", "EP4"],
        ["EP1", "EP2"],
        ["EP1"],
    ]
    assert problems == []


def test_foreign_candidates_are_filtered_too(index):
    results = index.search("pump", candidates={"EP1": 2.0, "EP3": 1.0}, filter="ipc=G06F")
    assert documents_of(results) == ["EP3"]


def test_a_passage_of_all_documents_can_be_explained(index):
    node = index.explain("pump", "EP3#@1", model="bm25", documents="all")
    assert node.value == dict(index.search("pump", model="bm25", documents="all").names())["EP3#@1"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"filter": "icp=F04D"}, "unknown metadata field 'icp'; did you mean 'ipc'"),
        ({"part": "claim"}, "unknown part 'claim'; did you mean 'claims'"),
        ({"tag": "cl"}, "unknown tag of passages 'cl'"),
        ({"shares_codes_with": "EP9"}, "no document 'EP9'"),
        ({"shares_codes_with": "EP4"}, "'EP4' has no classification codes"),
        ({"filter": {"ipc": "F04D"}}, "filter must be a text"),
        ({"candidates": ["EP1"]}, "a mapping of document ids"),
        ({"candidates": {"EP1": float("nan")}}, "too large or not finite"),
        ({"filter": "date<2013-4-1"}, r"'2013-4-1' is not a valid date at '2013-4-1' \(character 6\); write 2013"),
        ({"filter": "date<=01.04.2013"}, "is not a valid date"),
        ({"filter": "date<2013-02-30"}, "is not a valid date"),
        ({"filter": "date<<2013"}, "expected a value after the operator"),
        ({"filter": "date=2012.."}, "<= or >= for a range with one end"),
        ({"documents": "many"}, "whole number of at least 1 or all"),
        ({"code_level": "grup", "shares_codes_with": "EP1"}, "did you mean 'group'"),
        ({"fetch_parts": {"claim": 1.0}}, "did you mean 'claims'"),
    ],
)
def test_mistakes_are_named(index, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.search("pump", **options)


@settings(max_examples=30, deadline=None)
@given(
    documents=collections(max_size=8),
    query=st.lists(st.sampled_from(WORDS[:5]), min_size=1, max_size=3).map(" ".join),
    k=st.sampled_from([1, 3, 100]),
    cuts=st.lists(st.integers(0, 8), max_size=2),
    model=st.sampled_from(["bm25", "psg", "bm25(statistics=candidates)", "qsf_v"]),
)
def test_all_documents_some_at_a_time(documents, query, k, cuts, model):
    index = index_of(documents, [min(cut, len(documents)) for cut in cuts])
    expected = index.search(query, model=model, k=k, documents=1000)
    before, steps._AT_ONCE = steps._AT_ONCE, 10
    try:
        results = index.search(query, model=model, k=k, documents="all")
    finally:
        steps._AT_ONCE = before
    assert results.names() == expected.names()


def test_an_empty_index_has_nothing():
    index = index_of([plain_document("d1", "", "pump")])
    index.delete(["d1"])
    index.commit()
    assert len(index.search("pump", documents="all", model="bm25")) == 0
    assert len(index.search("pump", documents="all")) == 0
