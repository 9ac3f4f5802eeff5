"""The component of Haystack, in a pipeline that is written and read again. Its telemetry is off."""

import asyncio
import json
import os

import pytest

pytest.importorskip("haystack")
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"

from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder

import perikope as pk
from perikope.adapters.haystack import PerikopePassageRetriever, as_haystack
from perikope.core.errors import UsageError
from tests.adapters.conftest import DOCUMENTS, QUERY

PROMPT = "{% for document in documents %}[{{ document.id }}] {{ document.content }}\n{% endfor %}{{ question }}"


def test_documents_are_the_hits_of_a_search(folder, address):
    hits = list(pk.Index.open(folder).search(QUERY, k=3))
    for index in (folder, address, pk.Index.open(folder)):
        retriever = PerikopePassageRetriever(index, k=3, reasons=True)
        found = retriever.run(query=QUERY)["documents"]
        assert [(one.id, one.content, one.score) for one in found] == [(hit.name, hit.text, hit.score) for hit in hits]
        assert found[0].meta["path"] == list(hits[0].path)
        assert found[0].meta["reasons"]
        assert asyncio.run(retriever.run_async(query=QUERY))["documents"] == found
        assert retriever.run(query="zebra") == {"documents": []}
        with pytest.warns(UserWarning, match="nothing was found: no document has year=1900"):
            assert retriever.run(QUERY, {"filter": "year=1900"}) == {"documents": []}
        assert {one.meta["document"] for one in retriever.run(QUERY, {"filter": "year<2018", "k": 9})["documents"]} == {"lv40", "faq"}
        assert Document.from_dict(found[0].to_dict()) == found[0]


def test_a_pipeline_is_written_and_read_again(folder, address):
    for index in (folder, address):
        pipeline = Pipeline()
        pipeline.add_component("retriever", PerikopePassageRetriever(index, options={"k": 2, "filter": ["year>=2015"]}, heading=True))
        pipeline.add_component("prompt", PromptBuilder(PROMPT, required_variables=["documents", "question"]))
        pipeline.connect("retriever.documents", "prompt.documents")
        asked = {"retriever": {"query": QUERY}, "prompt": {"question": "How often?"}}
        answer = pipeline.run(asked)
        assert "[kx%20200#@5] KX-200 heat pump › Care › Descaling\n\nRinse the pump." in answer["prompt"]["prompt"]
        again = Pipeline.loads(pipeline.dumps(), allowed_modules=[PerikopePassageRetriever.__module__])
        assert again.run(asked) == answer
        assert again.to_dict() == pipeline.to_dict()


def test_a_token_is_never_written(address):
    pipeline = Pipeline()
    pipeline.add_component("retriever", PerikopePassageRetriever(address, token="secret-token"))
    assert "secret-token" not in pipeline.dumps()


def test_mistakes_are_named(folder):
    with pytest.raises(UsageError, match="unknown option"):
        PerikopePassageRetriever(folder, options={"top_k": 3})


def test_chunks_become_documents(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    chunks = list(pk.split(path))
    found = list(as_haystack(chunks))
    assert [(one.id, one.content, one.meta["after"]) for one in found] == [(chunk.id, chunk.content, chunk.after) for chunk in chunks]
    assert [Document.from_dict(one.to_dict()) for one in found] == found


def test_keywords_are_options_and_are_written(folder):
    retriever = PerikopePassageRetriever(folder, k=1, options={"k": 2, "filter": ["year>=2015"]})
    written = retriever.to_dict()["init_parameters"]
    assert written["options"] == {"k": 1, "filter": ["year>=2015"]}
    again = PerikopePassageRetriever.from_dict(retriever.to_dict())
    assert [document.id for document in again.run(QUERY)["documents"]] == [document.id for document in retriever.run(QUERY)["documents"]]
    with pytest.raises(UsageError, match="leave it out for a folder"):
        PerikopePassageRetriever(folder, name_of_index="x")
