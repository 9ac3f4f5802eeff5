"""The retrievers and the compressor of LangChain, with the library itself."""

import asyncio
import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.load import dumpd, dumps, load
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import perikope as pk
from perikope.adapters.langchain import PerikopeCompressor, PerikopeContextRetriever, PerikopeRetriever, as_langchain, context_of
from perikope.core.errors import UsageError
from perikope.search.context import count_words
from perikope.search.options import OPTIONS
from tests.adapters.conftest import DOCUMENTS, QUERY

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")


@pytest.fixture(params=["folder", "index", "address", "connection"])
def retriever(request, folder):
    """The same retriever on everything that can be searched."""
    match request.param:
        case "folder":
            yield PerikopeRetriever(folder, k=3)
        case "index":
            yield PerikopeRetriever(pk.Index.open(folder), k=3)
        case "address":
            yield PerikopeRetriever(request.getfixturevalue("address"), k=3)
        case "connection":
            with pk.connect(request.getfixturevalue("address")) as index:
                yield PerikopeRetriever(index, k=3)


def test_documents_are_the_hits_of_a_search(retriever, folder):
    found = retriever.invoke(QUERY)
    hits = list(pk.Index.open(folder).search(QUERY, k=3))
    assert [document.id for document in found] == [hit.name for hit in hits]
    assert [document.page_content for document in found] == [hit.text for hit in hits]
    first, hit = found[0].metadata, hits[0]
    assert (first["score"], first["rank"], first["path"]) == (hit.score, 1, list(hit.path))
    assert (first["before"], first["after"], first["citation"], first["place"]) == (hit.before, hit.after, hit.citation, hit.place)
    assert first["metadata"] == hit.metadata
    json.dumps(first)


def test_awaiting_gives_the_same_documents(retriever):
    assert asyncio.run(retriever.ainvoke(QUERY)) == retriever.invoke(QUERY)
    assert asyncio.run(retriever.ainvoke(QUERY)) == retriever.invoke(QUERY), "a second event loop works too"


def test_options_of_a_search_can_be_given_to_the_retriever_and_to_a_call(retriever):
    assert {document.metadata["document"] for document in retriever.invoke(QUERY, filter="year<2018", k=10)} == {"lv40", "faq"}
    assert len(retriever.invoke(QUERY, k=1)) == 1
    assert len(retriever.invoke(QUERY)) == 3


def test_a_search_without_results_gives_no_documents(retriever):
    assert retriever.invoke("zebra") == []
    assert asyncio.run(retriever.ainvoke("zebra")) == []


def test_mistakes_are_errors_of_perikope(folder, retriever):
    with pytest.raises(UsageError, match="did you mean 'filter'"):
        PerikopeRetriever(folder, filtre="year>2000")
    with pytest.raises(UsageError, match="empty"):
        retriever.invoke(" ")
    with pytest.raises(UsageError, match="type int"):
        PerikopeRetriever(7)
    with pytest.raises(UsageError, match="leave it out for a folder"):
        PerikopeRetriever(folder, name_of_index="x")


def test_no_option_of_a_search_has_the_name_of_a_field():
    assert not set(OPTIONS) & set(PerikopeContextRetriever.model_fields)


def test_reasons_add_up_to_the_score(retriever):
    document = retriever.model_copy(update={"reasons": True}).invoke(QUERY)[0]
    parts = document.metadata["reasons"]
    assert sum(part["value"] for part in parts) == pytest.approx(document.metadata["score"])
    assert {part["origin"] for part in parts} >= {"titles"}


def test_the_content_can_begin_with_the_heading_path(folder):
    document = PerikopeRetriever(folder, heading=True, k=1).invoke("how often descaling KX-200")[0]
    assert document.page_content.startswith("KX-200 heat pump › Care › Descaling\n\n")


def test_a_retriever_is_written_and_read_again(retriever):
    written = json.loads(dumps(retriever))
    assert written["kwargs"]["options"] == {"k": 3}
    again = load(dumpd(retriever), allowed_objects=[PerikopeRetriever], valid_namespaces=["perikope"])
    assert again.invoke(QUERY) == retriever.invoke(QUERY)
    assert pickle.loads(pickle.dumps(retriever)).invoke(QUERY) == retriever.invoke(QUERY)


def test_a_token_is_never_written(address):
    retriever = PerikopeRetriever(address, token="secret-token")
    for text in (dumps(retriever), repr(retriever), str(retriever.model_dump()), repr(pickle.dumps(retriever))):
        assert "secret-token" not in text


def test_many_threads_and_tasks_search_at_the_same_time(retriever):
    queries = ["descaling", "pump", "filter", "lint", "zebra"] * 8
    expected = [retriever.invoke(query) for query in queries]
    assert retriever.batch(queries) == expected
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(retriever.invoke, queries)) == expected

    async def all_at_once():
        return await asyncio.gather(*(retriever.ainvoke(query) for query in queries))

    assert asyncio.run(all_at_once()) == expected


def test_a_folder_shows_its_last_commit(tmp_path):
    with pk.Index.create(tmp_path / "i") as index:
        index.add(DOCUMENTS[1])
    retriever = PerikopeRetriever(tmp_path / "i")
    assert retriever.invoke("zebra") == []
    with pk.Index.open(tmp_path / "i") as index:
        index.add({"id": "z", "passages": ["A zebra."]})
    assert [document.id for document in retriever.invoke("zebra")] == ["z#@1"]
    assert [document.id for document in asyncio.run(retriever.ainvoke("zebra"))] == ["z#@1"]


@pytest.mark.filterwarnings("ignore:no hit fits")
@pytest.mark.parametrize("budget", [1, 25, 40, 500])
def test_a_context_stays_within_its_budget(folder, address, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("error" if budget > 1 else "ignore")
        here = PerikopeContextRetriever(folder, budget=budget, k=5).invoke(QUERY)
    assert count_words(context_of(here)) <= budget
    expected = pk.Index.open(folder).search(QUERY, k=5).context(budget)
    assert context_of(here) == expected.text
    assert here == PerikopeContextRetriever(address, budget=budget, k=5).invoke(QUERY)
    assert asyncio.run(PerikopeContextRetriever(address, budget=budget, k=5).ainvoke(QUERY)) == here


def test_a_budget_in_which_nothing_fits_is_no_silence(folder, address):
    needed = pk.Index.open(folder).search(QUERY, k=5).context(1).needed
    for index in (folder, address):
        with pytest.warns(UserWarning, match=f"no hit fits into 5 tokens; the best hit alone needs {needed}"):
            assert PerikopeContextRetriever(index, budget=5, k=5).invoke(QUERY) == []
        assert len(PerikopeContextRetriever(index, budget=needed, k=5).invoke(QUERY)) == 1
        assert PerikopeContextRetriever(index, budget=1).invoke("zeppelin") == []
    found = PerikopeRetriever(folder, k=3).invoke(QUERY)
    with pytest.warns(UserWarning, match="no hit fits into 2 tokens; the best hit alone needs"):
        assert PerikopeCompressor(budget=2).compress_documents(found, QUERY) == []


def test_a_context_counts_tokens_as_it_is_told(folder):
    found = PerikopeContextRetriever(folder, budget=150, tokens=len, k=5).invoke(QUERY)
    assert found
    assert len(context_of(found)) <= 150


def test_the_compressor_keeps_the_order_and_the_budget(folder):
    found = PerikopeRetriever(folder, k=10).invoke("pump")
    for heading in (False, True):
        given = PerikopeRetriever(folder, k=10, heading=heading).invoke("pump")
        kept = PerikopeCompressor(budget=40).compress_documents(list(reversed(given)), "pump")
        assert kept[0] == given[-1], "a re-ranker before it decides"
        assert 0 < len(kept) < len(given)
        assert count_words(context_of(kept)) <= 40
    assert PerikopeCompressor().compress_documents([*found, found[0]], "pump") == found, "a text is kept once"
    with pytest.raises(UsageError, match="PerikopeRetriever"):
        PerikopeCompressor().compress_documents([Document(page_content="x")], "pump")


def test_a_chain_gets_context_with_citable_names(folder):
    retrieve = PerikopeContextRetriever(folder, budget=100)
    chain = {"context": retrieve | RunnableLambda(context_of), "question": RunnablePassthrough()} | RunnableLambda(lambda asked: asked)
    answer = chain.invoke("how often descaling")
    assert "=== kx%20200" in answer["context"]
    assert "KX-200 heat pump › Care › Descaling" in answer["context"]


def test_chunks_become_documents(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    chunks = list(pk.split(path))
    documents = list(as_langchain(chunks))
    assert [(document.id, document.page_content) for document in documents] == [(chunk.id, chunk.content) for chunk in chunks]
    assert documents[2].metadata["path"] == ["KX-200 heat pump", "Care", "Descaling"]
    assert load(dumpd(documents[0]), allowed_objects="core") == documents[0]


def test_a_context_cites_pages_and_publications():
    def document(start, citation, **facts):
        known = {"document": "a.pdf", "passage": f"@{start}", "start": start, "end": start + 1, "path": [], "citation": citation}
        return Document(page_content="Seals.", metadata={**known, **facts})

    text = context_of([
        document(1, "a.pdf p. 3", metadata={}),
        document(3, "EP1130000B1 [0042]", metadata={"publication": "EP1130000B1"}),
        document(5, "a.pdf p. 4", cited="p. 4…p. 5"),
        document(7, ""),
    ])  # fmt: skip
    headings = [line for line in text.split("\n") if line.startswith("---")]
    assert [heading.partition(" · characters")[0] for heading in headings] == [
        "--- @1 · p. 3",
        "--- @3 · EP1130000B1 [0042]",
        "--- @5 · p. 4…p. 5",
        "--- @7",
    ]
