"""The transformers of PyTerrier, in its pipelines and experiments. No Java is started, and nothing is downloaded."""

import json
import warnings

import pytest

pytest.importorskip("pyterrier")

import pandas as pd
import pyterrier as pt

import perikope as pk
from perikope import cli
from perikope.adapters.pyterrier import PerikopeReranker, PerikopeSearch
from perikope.core.errors import UsageError
from perikope.evaluation.measures import provider
from tests.adapters.conftest import DOCUMENTS, QUERY

MEASURES = "nDCG@10 MAP(D) P@5 RR R@100"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The example of `perikope demo`: index, topics and judgements of passages."""
    folder = tmp_path_factory.mktemp("demo")
    for arguments in (["demo", "--to", folder / "example"], ["index", folder / "example/docs", "--to", folder / "idx"]):
        with pytest.raises(SystemExit) as done:
            cli.main([str(argument) for argument in arguments])
        assert done.value.code == 0
    return folder


def frames(demo):
    topics = [(topic.qid, topic.query) for topic in pk.read_topics(demo / "example/topics.tsv")]
    judged = pk.read_judgements(demo / "example/qrels.txt")
    qrels = [(qid, name, grade) for qid, grades in judged.items() for name, grade in grades.items()]
    return pd.DataFrame(topics, columns=["qid", "query"]), pd.DataFrame(qrels, columns=["qid", "docno", "label"])


def evaluated(capsys, demo, *options):
    """What `perikope run` and `perikope eval` say about the same."""
    run = demo / "our.run"
    found = {}
    for arguments in (
        ["run", demo / "idx", demo / "example/topics.tsv", "--out", run, *options],
        ["eval", demo / "example/qrels.txt", run, "--json", "--measures", MEASURES],
    ):
        with pytest.raises(SystemExit) as done:
            cli.main([str(argument) for argument in arguments])
        assert done.value.code == 0
        found = capsys.readouterr().out
    return json.loads(found)


def test_passages_have_the_columns_of_pyterrier(folder):
    hits = list(pk.Index.open(folder).search(QUERY, k=3))
    frame = PerikopeSearch(folder, k=3, text=True).search(QUERY)
    assert list(frame.columns) == ["qid", "query", "docno", "document", "passage", "score", "rank", "text", "title", "path", "citation"]
    assert frame["docno"].tolist() == [hit.name for hit in hits]
    assert frame["text"].tolist() == [hit.text for hit in hits]
    assert frame["rank"].tolist() == [0, 1, 2]
    assert frame["document"][0] == "kx 200"
    assert frame["score"].is_monotonic_decreasing
    assert frame["score"].tolist() == pytest.approx([hit.score for hit in hits], rel=1e-6)


def test_a_server_gives_the_same_frames(folder, address):
    topics = pd.DataFrame({"qid": ["1", "2", "3"], "query": [QUERY, "zebra", "pump"], "kept": ["a", "b", "c"]})
    for options in ({}, {"document_ranking": "maxp"}, {"filter": "year<2018"}):
        here = PerikopeSearch(folder, **options)(topics)
        pd.testing.assert_frame_equal(here, PerikopeSearch(address, **options)(topics))
        assert set(here["qid"]) == {"1", "3"}
        assert set(here["kept"]) == {"a", "c"}


def test_frames_without_queries_and_queries_without_words_have_no_results(folder):
    search = PerikopeSearch(folder)
    empty = search(pd.DataFrame({"qid": [], "query": []}))
    assert list(empty.columns) == ["qid", "query", "docno", "document", "passage", "score", "rank"]
    assert len(empty) == 0
    with pytest.warns(UserWarning, match="empty"):
        assert len(search(pd.DataFrame({"qid": ["1"], "query": ["?"]}))) == 0


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_query_is_named_and_not_searched_for_as_a_word(folder, missing):
    topics = pd.DataFrame({"qid": ["1", "q7"], "query": ["pump", missing]}, dtype=object)
    with pytest.raises(UsageError, match="query 'q7' is missing"):
        PerikopeSearch(folder)(topics)
    with pytest.raises(UsageError, match="query 'q7' is missing"):
        PerikopeReranker(folder)(topics.assign(docno=DOCUMENTS[0]["id"]))


def test_candidates_of_another_engine_are_ranked_again(folder):
    topics = pd.DataFrame({"qid": ["1"], "query": [QUERY]})
    another = pt.apply.generic(
        lambda frame: pd.DataFrame(
            {"qid": "1", "query": QUERY, "docno": ["lv40", "faq", "missing"], "score": [3.0, 2.0, 1.0], "rank": [0, 1, 2]}
        )
    )
    found = (another >> PerikopeReranker(folder, k=10))(topics)
    assert set(found["document"]) == {"lv40", "faq"}
    expected = pk.Index.open(folder).search(QUERY, k=10, candidates={"lv40": 3.0, "faq": 2.0})
    assert found["docno"].tolist() == [hit.name for hit in expected]
    documents = (another >> PerikopeReranker(folder, document_ranking="maxp"))(topics)
    assert documents["docno"].tolist() == [id for id, _ in expected.document_ranking("maxp")]
    ours = (PerikopeSearch(folder, document_ranking="maxp") >> PerikopeReranker(folder, model="bm25"))(topics)
    assert set(ours["document"]) == {"kx 200", "lv40", "faq"}, "a document with a space in its id is found"


def test_names_of_passages_stand_for_their_documents(folder, address):
    passages = PerikopeSearch(folder, k=5).search(QUERY)
    names = passages[["qid", "query", "docno", "score"]]
    assert "kx%20200#often" in set(names["docno"])
    for index in (folder, address):
        rerank = PerikopeReranker(index, model="bm25")
        found = rerank(names)
        assert set(found["document"]) == set(passages["document"])
        pd.testing.assert_frame_equal(found, rerank(passages))
        best = passages.groupby("document")["score"].max().to_dict()
        expected = pk.Index.open(folder).search(QUERY, k=1000, model="bm25", candidates=best)
        assert found["docno"].tolist() == [hit.name for hit in expected]


def test_candidates_that_the_index_does_not_have_are_named(folder, address):
    unknown = pd.DataFrame({"qid": ["1", "1"], "query": [QUERY] * 2, "docno": ["MARCO_7", "MARCO_8"]})
    for index in (folder, address):
        with pytest.warns(UserWarning, match="none of the candidates of query '1', such as 'MARCO_7'"):
            assert len(PerikopeReranker(index)(unknown)) == 0
    with pytest.warns(UserWarning, match="nothing was found: no document has year<2000"):
        assert len(PerikopeReranker(folder, filter="year<2000")(unknown.assign(docno="faq"))) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(PerikopeReranker(folder)(unknown[:0])) == 0
    for wrong in (float("nan"), None, "high"):
        with pytest.raises(UsageError, match="'MARCO_7' of query '1' has the score"):
            PerikopeReranker(folder)(unknown.assign(score=pd.Series([wrong, 1.0], dtype=object)))


def test_operators_of_pyterrier_work(folder):
    search = PerikopeSearch(folder)
    assert len((search % 2).search("pump")) == 2
    assert pt.inspect.transformer_outputs(search, ["qid", "query"])[:3] == ["qid", "query", "docno"]


def test_an_experiment_without_names_says_what_each_system_is(folder):
    named = f"PerikopeSearch({str(folder)!r}"
    assert repr(PerikopeSearch(folder)) == f"{named})"
    assert (
        repr(PerikopeSearch(folder, model="bm25", k=20, document_ranking="maxp"))
        == f"{named}, model='bm25', k=20, document_ranking='maxp')"
    )
    assert repr(PerikopeReranker(folder, token="secret")) == f"PerikopeReranker({str(folder)!r})"


def test_mistakes_are_named(folder):
    with pytest.raises(UsageError, match="documents have no text"):
        PerikopeSearch(folder, document_ranking="maxp", text=True)
    with pytest.raises(UsageError, match="unknown option"):
        PerikopeSearch(folder, fltr="x")


@pytest.mark.parametrize("model", ["coverage", "bm25", "qsf_v_title"])
def test_an_experiment_equals_perikope_eval(demo, capsys, model):
    topics, qrels = frames(demo)
    expected = evaluated(capsys, demo, "--model", model)
    table = pt.Experiment(
        [PerikopeSearch(demo / "idx", model=model)], topics, qrels, eval_metrics=provider.measures(MEASURES), names=["ours"]
    )
    assert not pt.java.started()
    means = [expected["mean"][measure] for measure in MEASURES.split()]
    found = [table.iloc[0][str(measure)] for measure in provider.measures(MEASURES)]
    assert found == pytest.approx(means, abs=1e-9, rel=0)
    assert any(0 < value < 1 for value in means)


def test_the_name_of_an_index_is_for_a_server(folder):
    with pytest.raises(UsageError, match="leave it out for a folder"):
        PerikopeSearch(folder, name_of_index="x")
