"""The graph of a document from the index, and its pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from perikope.cli.graph_command import command
from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.neural.drawing import render_dot, render_lines, render_svg
from perikope.neural.graph import INVERSE, RELATIONS, DocumentGraph, graph_of, merge_graphs, with_inverses
from tests.support.collections import collections, index_of, plain_document


def manual():
    builder = TreeBuilder("manual", title="Pumps", cites=["d2", "gone", "manual", "d2"])
    builder.passage("A pump moves fluid.", id="p1", refs=["rotor", "p1"])
    with builder.span(Kind.SECTION, "sec", id="rotor"):
        builder.title("Rotor")
        builder.passage("It turns; see the list.", refs=["list", "nowhere"])
        with builder.span(Kind.ELEMENT, "list", id="list"):
            builder.passage("A magnet drives it.", id="p3", refs=["p1"], marks=[("b", 0, 1)])
        with builder.span(Kind.SECTION, "sec"):
            builder.passage("No title above.", refs=["p1", "p1"])
    return builder.build()


@pytest.fixture(scope="module")
def index():
    return index_of([plain_document("d0", "Others", "Text."), manual(), plain_document("d2", "Seals", "A seal.")], cuts=[1, 2])


def pairs(graph, relation):
    return [(graph.names[source], graph.names[target]) for source, target in graph.edges[relation].T.tolist()]


def test_nodes_are_sections_and_passages_in_reading_order(index):
    graph = graph_of(index, "manual")
    root, sec, inner = "/document[1]", "/document[1]/sec[1]", "/document[1]/sec[1]/sec[1]"
    assert graph.names == (root, "p1", sec, "@2", "p3", inner, "@4", "d2")
    assert graph.texts == (
        "Pumps",
        "A pump moves fluid.",
        "Rotor",
        "It turns; see the list.",
        "A magnet drives it.",
        "",
        "No title above.",
        "Seals",
    )
    assert [graph.kind(node)[0] for node in range(graph.nodes)] == list("spsppsps")
    assert graph.passage_node.tolist() == [1, 3, 4, 6]
    assert graph.parent.tolist() == [-1, 0, 0, 2, 2, 2, 5, -1]
    assert graph.heading_path(6) == ("Pumps", "Rotor")


def test_edges_run_as_their_relation_is_read(index):
    graph = graph_of(index, "manual")
    root, sec, inner = "/document[1]", "/document[1]/sec[1]", "/document[1]/sec[1]/sec[1]"
    assert pairs(graph, "order") == [("p1", "@2"), ("@2", "p3"), ("p3", "@4")]
    assert pairs(graph, "structural") == [(root, "p1"), (root, sec), (sec, "@2"), (sec, "p3"), (sec, inner), (inner, "@4")]
    # A reference to a list leads to the section that contains it. References to the passage itself, to unknown ids, and
    # duplicates are skipped.
    assert pairs(graph, "internal") == [("p1", sec), ("@2", sec), ("p3", "p1"), ("@4", "p1")]
    assert pairs(graph, "external") == [(root, "d2")]


def test_a_document_that_is_not_there(index):
    with pytest.raises(UsageError, match="no document 'x'"):
        graph_of(index, "x")


@given(collections(max_size=3), st.data())
def test_graphs_of_random_documents_are_whole(documents, data):
    cuts = data.draw(st.lists(st.integers(0, len(documents)), max_size=2))
    index = index_of(documents, cuts)
    for document in documents:
        graph = graph_of(index, document.id)
        texts = [document.text_of(span) for span in document.of_kind(Kind.PASSAGE)]
        assert [graph.texts[node] for node in graph.passage_node] == texts
        assert graph.nodes == len(texts) + len(list(document.of_kind(Kind.SECTION)))
        assert graph.texts[0] == document.title
        assert graph.edges["structural"].shape[1] == graph.nodes - 1  # a tree
        for name in RELATIONS:
            assert np.array_equal(np.sort(graph.edges[name][::-1], axis=1), np.sort(graph.edges[INVERSE[name]], axis=1))
        assert {name for name, _, _ in graph.list_edges()} <= {"order", "order_i", "structural", "structural_i"}
        ElementTree.fromstring(render_svg(graph))


def test_merged_graphs_lie_side_by_side(index):
    graphs = [graph_of(index, "d0"), graph_of(index, "manual")]
    merged = merge_graphs(graphs)
    assert merged.documents == ("d0", "manual")
    assert merged.passage_node.tolist() == [1, 3, 5, 6, 8]
    assert pairs(merged, "internal") == pairs(graphs[1], "internal")
    assert merged.heading_path(8) == ("Pumps", "Rotor")
    assert merge_graphs([]).nodes == 0


def test_pictures_escape_what_they_show():
    texts = ('<b>"&\x00\\ \ud800', "plain \u2028 text " * 30)
    graph = DocumentGraph(
        ("<d>",), ("/a[1]", "@1"), texts, np.array([False, True]), np.array([-1, 0]), with_inverses({"structural": [[0], [1]]})
    )
    svg = ElementTree.fromstring(render_svg(graph))
    assert any('<b>"&' in (element.text or "") for element in svg.iter())
    assert r'label="<b>\"& \\  "' in render_dot(graph)
    assert max(map(len, render_lines(graph).split("\n"))) <= 100


def test_the_picture_has_a_shape_a_node_and_a_line_an_edge(index):
    graph = graph_of(index, "manual")
    svg = ElementTree.fromstring(render_svg(graph))
    count = {name: len(svg.findall(f"{{http://www.w3.org/2000/svg}}{name}")) for name in ("circle", "rect", "path")}
    lines = sum(graph.edges[name].shape[1] for name in ("order", "structural", "internal", "external"))
    assert count == {"circle": 4, "rect": 4 + 1, "path": lines + 4}  # with the background and the legend


def test_the_command(index, tmp_path):
    folder = str(index.folder)
    run = CliRunner().invoke
    listed = run(command, [folder, "manual"], standalone_mode=False).output
    assert "  ▪ p1 →/document[1]/sec[1]  A pump moves fluid." in listed.splitlines()
    assert "     3 order, and as many order_i" in listed.splitlines()
    content = json.loads(run(command, [folder, "manual", "--json"], standalone_mode=False).output)
    assert content["nodes"][1] == {"name": "p1", "kind": "passage", "text": "A pump moves fluid.", "in": 0}
    assert {"relation": "external_i", "from": 7, "to": 0} in content["edges"]
    assert run(command, [folder, "manual", "--dot"], standalone_mode=False).output.startswith("digraph")
    assert run(command, [folder, "manual", "--svg", str(tmp_path / "graph.svg")], standalone_mode=False).exit_code == 0
    ElementTree.parse(tmp_path / "graph.svg")
    assert isinstance(run(command, [folder, "manual", "--dot", "--json"], standalone_mode=False).exception, UsageError)


def test_graphs_need_no_torch():
    code = "import sys, perikope.neural.graph, perikope.neural.drawing, perikope.neural.sharing; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
