"""Elements as results: their names, texts and context."""

import pytest

from perikope.browse.structure import DocumentOutline
from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from tests.support.collections import index_of, plain_document


def document():
    builder = TreeBuilder("report #7", tag="article", title="Pumps")
    builder.passage("A pump moves fluid.")
    with builder.span(Kind.SECTION, "sec", part="claims"):
        builder.title("Rotor")
        builder.passage("The rotor turns.", marks=[("b", 4, 9)])
        builder.passage("The rotor stops.")
    with builder.span(Kind.SECTION, "sec"):
        with builder.span(Kind.ELEMENT, "a/b [1]%"):
            builder.passage("A rotor of a pump.", "item")
        builder.passage("", "p")
    return builder.build()


@pytest.fixture(scope="module")
def index():
    return index_of([document(), plain_document("d2", "Valves", "The valve opens.")], [1])


PATHS = [
    "/article[1]", "/article[1]/p[1]", "/article[1]/sec[1]", "/article[1]/sec[1]/p[1]", "/article[1]/sec[1]/p[2]", "/article[1]/sec[2]",
    "/article[1]/sec[2]/a%2Fb %5B1%5D%25[1]", "/article[1]/sec[2]/a%2Fb %5B1%5D%25[1]/item[1]",
]  # fmt: skip


def test_elements_have_paths_that_find_them(index):
    results = index.search("rotor pump", model="qsf_v", elements=True, k=100)
    assert sorted(hit.passage for hit in results) == sorted(PATHS)
    outline = DocumentOutline(index._snapshot.segments[0], 0)
    for hit in results:
        assert outline.path(outline.find(hit.passage)) == hit.passage
        assert index.explain("rotor pump", hit.name, model="qsf_v", elements=True).value == hit.score
    assert [hit.name for hit in results] == [name for name, _ in results.names()]
    assert outline.find("/article[1]/sec[1]/p[1]/b[1]") == -1
    assert outline.path(0) == "/article[1]"


def test_hits_have_their_text_and_surroundings(index):
    hits = {hit.passage: hit for hit in index.search("rotor pump", model="qsf_v", elements=True, k=100)}
    section = hits["/article[1]/sec[1]"]
    assert section.text == "Rotor\nThe rotor turns.\nThe rotor stops."
    assert (section.tag, section.part, section.path) == ("sec", "claims", ("Pumps",))
    assert (section.before, section.after) == ("A pump moves fluid.", "A rotor of a pump.")
    assert document().text[section.start : section.end] == section.text
    assert [section.text[first:last] for first, last in section.highlights] == ["Rotor", "rotor", "rotor"]
    whole = hits["/article[1]"]
    assert (whole.path, whole.before, whole.after) == ((), "", "")
    assert hits["/article[1]/sec[1]/p[2]"].path == ("Pumps", "Rotor")
    assert hits["/article[1]/sec[1]/p[2]"].before == "The rotor turns."


def test_only_some_tags_or_parts(index):
    hits = index.search("rotor pump", model="bm25", elements=["sec", "item"], k=100)
    assert {hit.tag for hit in hits} == {"sec", "item"}
    assert [hit.tag for hit in index.search("rotor", model="bm25", elements="sec", part="claims")] == ["sec"]
    assert {hit.part for hit in index.search("rotor", model="bm25", elements=True, part="claims")} == {"claims"}
    titles = index.search("rotor pump", model="bm25", elements=["title"])
    assert {hit.text for hit in titles} == {"Pumps", "Rotor"}


def test_all_documents_some_at_a_time(index, monkeypatch):
    monkeypatch.setattr("perikope.search.steps._AT_ONCE", 5)
    for options in ({}, {"no_overlap": True}, {"group_by_document": "score"}):
        every = index.search("rotor pump valve", model="bm25", elements=True, documents="all", k=3, **options)
        assert every.names() == index.search("rotor pump valve", model="bm25", elements=True, k=3, **options).names()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"elements": ["sex"]}, "unknown tag of elements 'sex'; did you mean 'sec'"),
        ({"elements": ["b"]}, "unknown tag of elements 'b'"),
        ({"elements": True, "tag": "p"}, "tag and without_tag restrict passages, not elements"),
        ({"group_by_document": "id"}, "unknown order of documents 'id'"),
    ],
)
def test_mistakes_are_named(index, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        index.search("rotor", **options)


def test_explaining_what_is_no_element(index):
    with pytest.raises(UsageError, match=r"no element '/article\[1\]/sec\[9\]' that can be a result; its elements are /article\[1\],"):
        index.explain("rotor", "report%20%237#/article[1]/sec[9]")
    with pytest.raises(UsageError, match="the document was not fetched"):
        index.explain("rotor", "d2#/document[1]")
    with pytest.raises(UsageError, match=r"has no element '/article\[1\]/p\[1\]'"):
        index.explain("rotor", "report%20%237#/article[1]/p[1]", elements=["sec"])


def test_models_of_single_units_score_elements(index):
    for model in ("bm25", "lm", "pl2", "psg", "psg_doc", "plm", "qsf_v", "qsf_v_title", "prox", "prox_h"):
        results = index.search("rotor pump", model=model, elements=True, k=100, keep_unmatched=True)
        assert len(results) == len(PATHS)


def test_grouped_results_stand_side_by_side(index):
    names = [hit.document for hit in index.search("pump rotor valve", model="bm25", elements=True, k=100, group_by_document="score")]
    assert sorted(names, key=names.index) == names
