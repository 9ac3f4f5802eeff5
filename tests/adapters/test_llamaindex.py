"""The retriever, the reader and the node parser of LlamaIndex, with the library itself."""

import asyncio
import json

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.node_parser import get_leaf_nodes, get_root_nodes
from llama_index.core.schema import Document, MetadataMode, NodeRelationship, TextNode

import perikope as pk
from perikope.adapters.llamaindex import PerikopeIndexRetriever, PerikopeNodeParser, PerikopeReader, as_llamaindex
from perikope.core.errors import UnreadableFile, UsageError
from perikope.formats import FileLimits
from tests.adapters.conftest import DOCUMENTS, QUERY
from tests.support.pdfs import Text, pdf

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    return path


def test_nodes_are_the_hits_of_a_search(folder, address):
    hits = list(pk.Index.open(folder).search(QUERY, k=3))
    for index in (folder, address, pk.Index.open(folder)):
        retriever = PerikopeIndexRetriever(index, k=3, reasons=True)
        found = retriever.retrieve(QUERY)
        assert [(node.node_id, node.text, node.score) for node in found] == [(hit.name, hit.text, hit.score) for hit in hits]
        assert found[0].metadata["rank"] == 1
        assert found[0].metadata["reasons"]
        assert found[0].node.source_node.node_id == hits[0].document
        assert found[0].get_content(MetadataMode.LLM).startswith("path: KX-200 heat pump › Care › Descaling")
        assert [node.node_id for node in asyncio.run(retriever.aretrieve(QUERY))] == [hit.name for hit in hits]
        assert retriever.retrieve("zebra") == []
        assert TextNode.from_json(found[0].node.to_json()) == found[0].node


def test_filters_and_mistakes(folder):
    assert {node.metadata["document"] for node in PerikopeIndexRetriever(folder, filter="year<2018").retrieve(QUERY)} == {"lv40", "faq"}
    with pytest.raises(UsageError, match="unknown option"):
        PerikopeIndexRetriever(folder, top_k=3)


def tree_of(nodes):
    """Each node by id, after a check that PARENT and CHILD agree."""
    by_id = {node.node_id: node for node in nodes}
    assert len(by_id) == len(nodes)
    for node in nodes:
        for child in node.child_nodes or []:
            assert by_id[child.node_id].parent_node.node_id == node.node_id
        if node.parent_node is not None:
            assert node.node_id in {child.node_id for child in by_id[node.parent_node.node_id].child_nodes}
    return by_id


def test_section_trees_survive_as_relationships(path):
    read = PerikopeReader().load_data(path)
    assert [document.doc_id for document in read] == ["kx 200", "lv40", "faq"]
    nodes = PerikopeNodeParser(budget=12).get_nodes_from_documents(read)
    by_id = tree_of(nodes)
    assert PerikopeNodeParser(budget=12).get_nodes_from_documents(read) == nodes, "documents do not change"
    assert len(get_root_nodes(nodes)) == 3, "one root per document"
    leaves = get_leaf_nodes(nodes)
    chunks = list(pk.split(path, budget=12))
    assert [(leaf.node_id, leaf.text) for leaf in leaves] == [(chunk.id, chunk.text) for chunk in chunks]
    often = next(leaf for leaf in leaves if "three months" in leaf.text)
    above = []
    node = often
    while node.parent_node is not None:
        node = by_id[node.parent_node.node_id]
        above.append(node.metadata["section"])
    assert above == ["Descaling", "Care", "KX-200 heat pump"]
    assert often.metadata["year"] == 2020
    assert often.ref_doc_id == "kx 200"
    ids = [chunk.id for chunk in chunks]
    assert often.relationships[NodeRelationship.NEXT].node_id == ids[ids.index(often.node_id) + 1]
    assert often.get_content(MetadataMode.EMBED) == "path: KX-200 heat pump › Care › Descaling\n\n" + often.text
    for document in read:
        for leaf in leaves:
            if leaf.ref_doc_id == document.doc_id:
                assert document.text[leaf.start_char_idx : leaf.end_char_idx] == leaf.text


def test_other_documents_are_parsed_by_format():
    text = "# Pump\n\nIntro.\n\n## Care\n\nWash it.\n\n## Use\n\nPress start.\n"
    nodes = PerikopeNodeParser().get_nodes_from_documents([Document(text=text, doc_id="m")])
    tree_of(nodes)
    assert [leaf.metadata["path"] for leaf in get_leaf_nodes(nodes)] == ["Pump", "Pump › Care", "Pump › Use"]
    again = PerikopeNodeParser.from_dict(PerikopeNodeParser(budget=50).to_dict())
    assert (again.budget, again.format) == (50, "markdown")
    with pytest.raises(UsageError, match="read the files again"):
        PerikopeNodeParser().get_nodes_from_documents([Document(text="x", metadata={"perikope_tree": {"spans": 3}})])


def test_a_text_that_was_changed_after_reading_is_read_again_with_a_warning(path):
    [read, *_] = PerikopeReader().load_data(path)
    read.set_content("# New\n\nA text of its own.\n")
    with pytest.warns(UserWarning, match="was changed after it was read; it is read as markdown"):
        nodes = PerikopeNodeParser().get_nodes_from_documents([read])
    assert [(leaf.text, leaf.metadata["path"]) for leaf in get_leaf_nodes(nodes)] == [("A text of its own.", "New")]


def test_leaves_are_chunks_also_below_sections_without_text():
    text = "# A\n\n## B\n\n## C\n\n### D\n\nText.\n\n## E\n\n\u200b\n\n### F\n"
    nodes = PerikopeNodeParser().get_nodes_from_documents([Document(text=text, doc_id="m")])
    tree_of(nodes)
    assert [(leaf.text, leaf.metadata["path"]) for leaf in get_leaf_nodes(nodes)] == [("Text.", "A › C › D")]
    assert [node.metadata["section"] for node in nodes if node.child_nodes] == ["A", "C", "D"]
    with pytest.warns(UserWarning, match="'t' has no text besides titles"):
        assert PerikopeNodeParser().get_nodes_from_documents([Document(text="# A\n\n## B\n", doc_id="t")]) == []


def test_pages_of_a_pdf_survive(tmp_path):
    pytest.importorskip("pypdfium2")
    (tmp_path / "a.pdf").write_bytes(pdf([[Text(72, 700, "The first page is short.")], [Text(72, 700, "The second page has a pump.")]]))
    documents = [Document.from_json(document.to_json()) for document in PerikopeReader().load_data(tmp_path / "a.pdf")]
    leaves = get_leaf_nodes(PerikopeNodeParser(join=False).get_nodes_from_documents(documents))
    nodes = list(as_llamaindex(pk.split(tmp_path / "a.pdf", join=False)))
    assert [leaf.metadata["citation"] for leaf in leaves] == ["a.pdf p. 1", "a.pdf p. 2"] == [node.metadata["citation"] for node in nodes]
    assert [leaf.metadata["place"] for leaf in leaves] == [node.metadata["place"] for node in nodes]
    assert leaves[1].metadata["place"]["page"] == 2


def test_bad_files_are_reported_and_the_others_read(tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    (tmp_path / "b.md").write_bytes(b"\0")
    problems: list = []
    documents = PerikopeReader().load_data(tmp_path, on_problem=problems.append, limits=FileLimits(20.0, 1 << 30))
    assert [document.doc_id for document in documents] == ["a.md"]
    assert [problem.path for problem in problems] == [str(tmp_path / "b.md")]
    with pytest.raises(UnreadableFile, match=r"b\.md"):
        PerikopeReader().load_data(tmp_path)


def test_an_empty_document_is_named_and_the_others_become_nodes():
    given = [Document(text=" \n", doc_id="nothing"), Document(text="Text.", doc_id="some")]
    with pytest.warns(UserWarning, match="'nothing' is empty"):
        nodes = PerikopeNodeParser().get_nodes_from_documents(given)
    assert {node.ref_doc_id for node in nodes} == {"some"}
    with pytest.raises(UnreadableFile, match="the document 'bad'"):
        PerikopeNodeParser().get_nodes_from_documents([given[1], Document(text="a\0b", doc_id="bad")])


def test_chunks_become_nodes(path):
    chunks = list(pk.split(path))
    nodes = list(as_llamaindex(chunks))
    assert [(node.node_id, node.get_content(MetadataMode.EMBED)) for node in nodes] == [(chunk.id, chunk.content) for chunk in chunks]
    assert nodes[1].prev_node.node_id == chunks[0].id
    assert nodes[0].prev_node is None


def test_the_name_of_an_index_is_for_a_server(folder):
    with pytest.raises(UsageError, match="leave it out for a folder"):
        PerikopeIndexRetriever(folder, name_of_index="x")
