"""Documents, passages and outlines as a page shows them, compared with plain walks over the tree."""

import json
from pathlib import Path

import pytest
from hypothesis import given

from perikope.browse.structure import DocumentOutline
from perikope.core.errors import UsageError
from perikope.document.tree import Kind, Place, TreeBuilder
from perikope.formats import read
from perikope.search.facade import Index
from perikope.search.viewing import view_document
from tests.cli.test_commands import run
from tests.support.collections import collections, index_of, plain_document

SOURCES = sorted((Path(__file__).parents[2] / "golden" / "sources").glob("*.*"))


def above(document, span):
    """The spans around a span, from the nearest to the document."""
    found = []
    while (span := document.spans.parent[span]) >= 0:
        found.append(span)
    return found


def sections_around(document, span):
    return [number for number in above(document, span) if document.spans.kind[number] == Kind.SECTION]


def title(document, section):
    spans = document.spans
    found = [span for span in range(len(spans)) if spans.kind[span] == Kind.TITLE and spans.parent[span] == section]
    return document.text_of(found[0]) if found else ""


def check_outline(index, document):
    tree = index.outline(document.id)
    segment, local = index.snapshot.locate(index.snapshot.find_document(document.id))
    outline = DocumentOutline(segment, local)
    sections = list(document.of_kind(Kind.SECTION))
    ids = list(segment.passage_spans(local).items())
    assert (tree.document, tree.title, len(tree.nodes)) == (document.id, document.title, len(sections))
    for number, (node, span) in enumerate(zip(tree.nodes, sections, strict=True)):
        around = sections_around(document, span)
        inside = [id for id, passage in ids if span in above(document, passage)]
        assert node.parent == (sections.index(around[0]) if around else -1)
        assert node.depth == len(around)
        assert node.title == title(document, span)
        assert tree.path(number) == outline.path(span)
        assert (node.start, node.end) == (document.spans.start[span], document.spans.end[span])
        assert node.passages == len(inside)
        assert node.first_passage == (inside[0] if inside else "")
        assert node.own_passages == sum(sections_around(document, passage)[0] == span for _, passage in ids)
        assert node.id == document.span_ids.get(span, "")


def check_passages(index, document):
    segment, local = index.snapshot.locate(index.snapshot.find_document(document.id))
    ids = list(segment.passage_spans(local).items())
    for number, (id, span) in enumerate(ids):
        view = index.passage(f"{document.id}#{id}", around=2)
        path = [title(document, section) for section in reversed(sections_around(document, span))]
        assert (view.document, view.passage, view.text) == (document.id, id, document.text_of(span))
        assert view.path == tuple(filter(None, path))
        assert [one.id for one in view.before] == [id for id, _ in ids[max(number - 2, 0) : number]]
        assert [one.id for one in view.after] == [id for id, _ in ids[number + 1 : number + 3]]
        for one in (*view.before, *view.after):
            other = dict(ids)[one.id]
            assert one.text == document.text_of(other)
            assert one.same_section == (sections_around(document, other)[0] == sections_around(document, span)[0])
            assert one.path == index.passage(f"{document.id}#{one.id}").path


@given(collections(max_size=2))
def test_any_document(documents):
    index = index_of(documents)
    for document in documents:
        check_outline(index, document)
        check_passages(index, document)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_documents_of_all_formats(path):
    documents = list(read(path))
    index = index_of(documents)
    for document in documents[:2]:
        check_outline(index, document)


def test_passage_has_everything_that_a_hit_has():
    builder = TreeBuilder("EP-1000000-B1", title="Pumps", metadata={"publication": "EP1000000B1"})
    with builder.span(Kind.SECTION, "sec", id="s1", part="claims"):
        builder.title("Rotor")
        span = builder.passage("The rotor turns.", id="p 1")
    builder.passage("A seal.", language="de")
    builder.places[span] = Place("/a[1]/p[1]", 5, 21)
    builder.citations[span] = "[0001]"
    builder.source, builder.member = "a.zip", "a.zip/b.xml"
    index = index_of([builder.build(), plain_document("other", "", "valve")])
    hit = index.search("rotor")[0]
    view = index.passage("EP 1000000 B1#p%201")
    assert view == index.passage(hit.name)
    shared = {**hit.to_dict(), "name": hit.name}
    for name in ("rank", "score", "highlights", "before", "after"):
        del shared[name]
    assert {name: view.to_dict()[name] for name in shared} == shared
    assert (view.before, [one.text for one in view.after], view.after[0].same_section) == ((), ["A seal."], False)
    assert json.loads(json.dumps(view.to_dict()))["after"][0] == {"id": "@2", "text": "A seal.", "path": ["Pumps"], "same_section": False}
    assert index.passage(hit.name, around=0).after == ()


def test_element_has_the_passages_outside_it_as_neighbours():
    builder = TreeBuilder("d1")
    builder.passage("one")
    with builder.span(Kind.ELEMENT, "list"):
        builder.passage("two")
        builder.passage("three")
    builder.passage("four")
    index = index_of([builder.build()])
    view = index.passage("d1#/document[1]/list[1]")
    assert ([one.text for one in view.before], view.text, [one.text for one in view.after]) == (["one"], "two\nthree", ["four"])
    assert index.passage("d1#@2").before[0].same_section


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda index: index.passage("d1"), "'d1' names no passage; write it as document#passage"),
        (lambda index: index.passage("d1#@9"), "document 'd1' has no passage '@9'"),
        (lambda index: index.passage("d9#@1"), "there is no document 'd9'"),
        (lambda index: index.passage("d1#@1", around=-1), "around must be a whole number of at least 0"),
        (lambda index: index.outline("d9"), "there is no document 'd9'"),
        (lambda index: index.view("d9"), "there is no document 'd9'"),
    ],
)
def test_unknown_names_are_errors(call, complaint):
    with pytest.raises(UsageError, match=complaint):
        call(index_of([plain_document("d1", "", "pump")]))


def test_deep_tree_is_a_flat_list():
    """A tree of 3,000 sections inside each other takes linear space, and its JSON is not nested."""
    builder = TreeBuilder("deep")
    depth = 3000
    for _ in range(depth):
        builder.open(Kind.SECTION, "sec")
    builder.passage("pump")
    for _ in range(depth):
        builder.close()
    index = index_of([builder.build()])
    tree = index.outline("deep")
    assert [node.depth for node in tree.nodes] == list(range(depth + 1))
    assert {node.passages for node in tree.nodes} == {1}
    assert len(json.dumps(tree.to_dict())) < 300 * depth
    assert tree.path(depth) == "/document[1]" + "/sec[1]" * depth


def test_view_highlights_and_marks_as_the_function_does():
    index = index_of([plain_document("d1", "Pumps", "A magnet drives the rotor.", "A seal.")])
    assert index.view("d1#@1", query="rotors") == view_document(index.snapshot, "d1#@1", "rotors")
    assert [text.marked for text in index.view("d1#@1").texts] == [False, True, False]


def test_outline_of_the_command_line(tmp_path, capsys):
    index = Index.create(tmp_path / "idx")
    index.add(plain_document("d1", "Pumps", "rotor"))
    index.commit()
    printed = json.loads(run(capsys, "show", index.folder, "d1", "--outline", "--json")[1])
    assert printed == json.loads(json.dumps(index.outline("d1").to_dict()))
