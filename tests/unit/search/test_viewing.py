"""What a page needs of a document besides its texts: words, blocks, marks and links."""

from pathlib import Path

import pytest

from perikope.document.tree import Kind, TreeBuilder
from perikope.formats import read
from perikope.search.asking import read_query
from perikope.search.facade import Index
from perikope.search.hits import highlights_in
from perikope.search.options import SearchOptions

GOLDEN = Path(__file__).parents[2] / "golden" / "sources"
SOURCES = sorted(GOLDEN.glob("*.*"))


def indexed(tmp_path, *documents):
    with Index.create(tmp_path / "index") as index:
        index.add(documents)
    return Index.open(tmp_path / "index")


def view_of(tmp_path, source, number=0):
    documents = list(read(GOLDEN / source))
    return indexed(tmp_path, *documents).view(documents[number].id)


def linked(view):
    """The words that refer, with the text that they lead to."""
    return [(text.text[start:end], view.texts[target].text) for text in view.texts for start, end, target in text.links]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_highlights_are_those_of_hits(source, tmp_path):
    documents = list(read(source))
    index = indexed(tmp_path, *documents)
    for document in documents:
        query = " ".join(document.text.split()[:40:3]).replace('"', " ")
        asked = read_query(index.snapshot, query, SearchOptions.of({"language": document.language}))
        view = index.view(document.id, query=query, language=document.language)
        for text in view.texts:
            assert text.highlights == tuple(highlights_in(index.snapshot.analyzer, asked, text.text, text.language))
    assert any(text.highlights for text in view.texts)


def test_links_of_markdown_lead_to_sections(tmp_path):
    view = view_of(tmp_path, "pumps.md")
    # The first passage has three links, one of which leads to a section, and names it. The other has one.
    assert linked(view) == [("the rotor", "The rotor"), ("back", "The rotor")]
    assert [target for text in view.texts for _, _, target in text.links] == [
        number for number, text in enumerate(view.texts) if text.text == "The rotor"
    ]


def test_mentions_lead_to_figures_and_claims(tmp_path):
    view = view_of(tmp_path, "epo.published.xml")
    assert linked(view) == [
        ("Fig. 1", "Es zeigen:\nFig. 1 den Steg."),
        ("Anspruch 2", "Steg nach Anspruch 1 aus Ahorn."),
        ("Anspruch 1", "Steg aus Holz."),
        ("claim 1", "Bridge of wood."),
        ("claim 1", "Bridge of wood, for another state."),
    ]


def test_ranges_and_preceding_claims(tmp_path):
    builder = TreeBuilder("p")
    for number, text in enumerate(["A pump.", "The pump of claim 1.", "As in claims 1 to 2.", "As in any preceding claim."], 1):
        refs = [f"claim-{other}" for other in range(1, number)]
        builder.citations[builder.passage(text, "claim", id=f"claim-{number}", refs=refs)] = f"claim {number}"
    view = indexed(tmp_path, builder.build()).view("p")
    assert linked(view) == [
        ("claim 1", "A pump."),
        ("claims 1", "A pump."),
        ("2", "The pump of claim 1."),
        ("preceding claim", "A pump."),
    ]


def test_a_reference_without_words_is_at_the_end(tmp_path):
    builder = TreeBuilder("p")
    builder.passage("See İ there.", refs=["b", "missing"])
    builder.passage("Here.", id="b")
    view = indexed(tmp_path, builder.build()).view("p")
    assert view.texts[0].links == ((12, 12, 1),)


def test_references_of_an_element_are_at_its_passages(tmp_path):
    builder = TreeBuilder("p")
    with builder.span(Kind.ELEMENT, "claim", id="claim-2"):
        builder.passage("A pump")
        builder.passage("as in claim 1.")
        builder.refer("claim-1")
    builder.citations[builder.passage("A thing.", id="claim-1")] = "claim 1"
    view = indexed(tmp_path, builder.build()).view("p")
    assert [text.links for text in view.texts] == [(), ((6, 13, 2),), ()]


def test_blocks_and_marks(tmp_path):
    view = view_of(tmp_path, "pumps.md")
    around = {text.text: [] for text in view.texts}
    for text in view.texts:
        block = text.block
        while block >= 0:
            around[text.text].insert(0, view.blocks[block].tag)
            block = view.blocks[block].parent
    assert around["nested three"] == ["ul", "ul"]
    assert around["with a second paragraph"] == ["ol", "li"]
    assert around["Part | Material | Note"] == around["hull | PTFE | cross section"] == ["table"]
    assert around["Materials"] == []
    first = next(text for text in view.texts if text.kind == "passage")
    assert [(first.text[start:end], tag) for start, end, tag in first.marks][:3] == [
        ("magnetic coupling", "it"), ("coupling", "b"), ("shaft seal", "code"),
    ]  # fmt: skip


def test_cited_documents_of_the_index_are_found(tmp_path):
    cites = ["b", "EP1000000", "https://example.org/", "missing"]
    patent = {"id": "EP-1000000-A1", "passages": ["A pump"], "metadata": {"publication": "EP1000000A1", "patent": "EP1000000"}}
    citing = {"id": "a", "passages": ["a pump"], "cites": cites}
    view = indexed(tmp_path, {"id": "b", "passages": ["B"]}, patent, citing).view("a")
    assert view.cites == tuple(cites)
    assert view.cites_found == ("b", "EP-1000000-A1", "", "")
