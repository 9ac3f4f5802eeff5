"""The five steps of a search, called one by one."""

import pickle

import pytest

from perikope.browse.models import parse_model
from perikope.core.errors import UsageError
from perikope.query.topic import Topic
from perikope.search.batch import prepare_topic, with_candidates
from perikope.search.naming import PassageNames, names_of, rows_of
from perikope.search.options import SearchOptions
from perikope.search.steps import Search, count_documents, search_for
from tests.support.collections import index_of, plain_document

DOCUMENTS = [
    plain_document("d1", "Pumps", "A magnet drives the rotor of the pump.", "The seal keeps the fluid inside.", "Rotor and magnet."),
    plain_document("d2", "Valves", "The valve opens.", "A magnet closes the valve when the pump stops."),
    plain_document("d3", "Rotors", "Nothing of interest here.", "Pumps have rotors."),
]


@pytest.fixture(scope="module")
def index():
    return index_of(DOCUMENTS, [2])


def test_the_steps_are_the_search(index):
    options = SearchOptions(model="qsf_v", k=4, expand="bo1", browse_expand="rm3", rescore="bm25")
    search = Search(index.snapshot, options)
    prepared = search.prepare("magnet pump")
    fetched = search.candidates(prepared)
    matches = search.matches(fetched)
    results = search.results(prepared, search.rank(matches))
    assert results.names() == index.search("magnet pump", options=options).names() == search.run(prepared).names()
    assert len(results) == 4


def test_matches_serve_many_models(index):
    search = Search(index.snapshot, SearchOptions())
    matches = search.matches(search.candidates(search.prepare("magnet pump")))
    for name in ("bm25", "psg_doc", "qsf_section"):
        ranked = search.rank(matches, parse_model(name))
        names = names_of(index.snapshot, matches, ranked.ranking.rows)
        assert names == [other for other, _ in index.search("magnet pump", model=name).names()]


def test_a_mistake_in_options_is_told_before_a_query_is_read(index):
    with pytest.raises(UsageError, match="has a part"):
        Search(index.snapshot, SearchOptions(part="claims"))
    with pytest.raises(UsageError, match="unknown metadata field"):
        Search(index.snapshot, SearchOptions(filter="ipc=F04D"))
    search = Search(index.snapshot, SearchOptions())
    with pytest.raises(UsageError, match="only stop words"):
        search.prepare("the of")
    problem = prepare_topic(index.snapshot, Topic("1", "the of"), SearchOptions()).problem
    assert problem == "the query 'the of' contains only stop words; add another word"
    wrong = Topic("1", "pump", options={"filter": "nofield=1"})
    assert "unknown metadata field 'nofield'" in prepare_topic(index.snapshot, wrong, SearchOptions()).problem
    with pytest.raises(UsageError, match="has a part"):
        prepare_topic(index.snapshot, wrong, SearchOptions(part="claims"))


def test_options_of_a_topic_take_precedence_and_conditions_add_up(index):
    options = SearchOptions(filter="id=d1|d2", ids=["d1", "d3"], browse_query="seal", k=3)
    topic = Topic("1", "pump", options={"filter": "id=d2|d3", "browse_query": "valve"})
    combined = search_for(index.snapshot, topic, options).options
    assert combined.filter == ("id=d1|d2", "id=d2|d3")
    assert (combined.browse_query, combined.k, combined.ids) == ("valve", 3, ("d1", "d3"))
    assert search_for(index.snapshot, Topic("1", "pump"), options).options is options
    both = search_for(index.snapshot, Topic("1", "pump", options={"ids": ["d1", "d2"]}), options.updated({"filter": ()}))
    assert {hit.document for hit in both.run(both.prepare("pump rotor valve"))} == {"d1"}


def test_ids_restrict_also_where_none_is_left(index):
    asked = Topic("1", "pump", options={"ids": ["d2"]})
    assert len(index.search(asked, ids=["d1"])) == 0
    assert count_documents(index.snapshot, SearchOptions(ids=["d1", "d9"])) == 1


def test_candidates_of_a_run_belong_to_topics(index):
    topics = with_candidates([Topic("1", "pump"), Topic("2", "pump")], {"1": {"d3#@1": 2.0, "d2": 1.0}})
    assert [topic.options["candidates"] for topic in topics] == [{"d3": 2.0, "d2": 1.0}, {}]
    assert {hit.document for hit in index.search(topics[0])} == {"d2", "d3"}
    assert len(index.search(topics[1])) == 0


def test_what_streams(index):
    def streams(**options):
        return Search(index.snapshot, SearchOptions.of({"documents": "all", **options})).streams

    assert streams(model="bm25")
    assert not streams(model="qsf_v")
    assert not streams(model="bm25", documents=3)
    assert not any(
        streams(model="bm25", **{name: value})
        for name, value in {"expand": "bo1", "browse_expand": "bo1", "rescore": "lm", "one_per": "x", "candidates": {}}.items()
        if name != "one_per"
    )


def test_names_and_rows_are_inverse(index):
    search = Search(index.snapshot, SearchOptions())
    matches = search.matches(search.candidates(search.prepare("magnet")))
    names = PassageNames(index.snapshot).of(matches).tolist()
    assert rows_of(index.snapshot, matches, [*names, "d9#@1"]) == {name: row for row, name in enumerate(names)}


def test_options_travel_to_other_processes():
    options = SearchOptions(candidates={"d1": 1.0}, fetch_parts={"title": 2.0}, filter=["id=d1"], elements=True)
    assert pickle.loads(pickle.dumps(options)) == options
