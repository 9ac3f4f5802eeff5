"""INEX Wikipedia: semantic tags anywhere, every element a result, offsets as judgements count them."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.document.tree import Document, Kind
from perikope.formats import Source, documents, read
from perikope.formats._xml import trees, whole_text
from tests.support.trees import GOLDEN, check_tree, passages, titles

LIGHTHOUSE = GOLDEN / "sources" / "inex.lighthouse.xml"
SEMANTIC = 'wordnetid="100001740" confidence="0.8"'


def article(body: str, *, around: str = "", header: str = "<header><title>T</title><id>12</id></header>") -> Document:
    before, after = (f"<{around} {SEMANTIC}>", f"</{around}>") if around else ("", "")
    text = f'<article xmlns:xlink="http://www.w3.org/1999/xlink">{before}{header}<bdy>{body}</bdy>{after}</article>'
    [document] = documents(Source("a.xml", "a.xml", format="inex", content=text.encode()))
    check_tree(document)
    return document


def tags(document: Document, *kinds: Kind) -> list[str]:
    return [document.labels[document.spans.tag[span]] for span in range(len(document.spans)) if document.spans.kind[span] in kinds]


@pytest.mark.parametrize("around", ["", "person", "header", "article", "title", "sec"])
def test_header_and_body_are_found_inside_a_semantic_tag(around: str) -> None:
    document = article("<p>Text.</p>", around=around)
    assert (document.id, document.title) == ("12", "T")
    assert passages(document) == ["Text."]
    assert titles(document) == ["T"]
    assert tags(document, Kind.ELEMENT) == [*([around] if around else []), "bdy"]


def test_a_semantic_tag_with_blocks_is_an_element_and_one_without_a_mark() -> None:
    document = article(
        f"<sec><st>S</st><event {SEMANTIC}><p>In the <city {SEMANTIC}><link>town</link></city>.</p></event></sec>"
        f"<fact {SEMANTIC}>Loose.</fact>"
    )
    assert tags(document, Kind.ELEMENT) == ["bdy", "event"]
    assert tags(document, Kind.MARK) == ["city", "link", "fact"]
    assert passages(document) == ["In the town.", "Loose."]


def test_a_semantic_tag_is_semantic_whatever_its_name() -> None:
    document = article(f"<p>A <list {SEMANTIC}>b</list> and a <p {SEMANTIC}>c</p>.</p>")
    assert passages(document) == ["A b and a c."]
    assert tags(document, Kind.MARK) == ["list", "p"]


def test_a_tag_that_the_profile_does_not_name_is_kept() -> None:
    document = article(
        "<template><parameters><direction>north</direction><p>At <tt>x</tt> <weblink>w</weblink>.</p></parameters></template>"
        f"<p>A <city {SEMANTIC}>c</city> and a <city>d</city>.</p>"
    )
    assert tags(document, Kind.ELEMENT) == ["bdy", "template", "parameters"]
    assert tags(document, Kind.MARK) == ["direction", "tt", "weblink", "city", "city"]
    assert document.metadata["semantic"] == "city"


def test_sections_lists_and_tables() -> None:
    document = article(
        "Loose.<sec><st>One</st><p>p</p><ss1><st>Two</st><list><entry>e<list><entry>f</entry></list></entry></list><ss2><st>Three</st>"
        "<table><caption>c</caption><row><header>h</header><header>i</header></row><row><col>1</col><cell/><cell>2</cell></row></table>"
        "</ss2></ss1></sec>"
    )
    assert titles(document) == ["T", "One", "Two", "Three"]
    assert passages(document) == ["Loose.", "p", "e", "f", "c", "h | i", "1 | 2"]
    assert tags(document, Kind.SECTION) == ["article", "sec", "ss1", "ss2"]
    assert tags(document, Kind.ELEMENT) == ["bdy", "list", "list", "table"]


def test_links_cite_the_article_they_lead_to() -> None:
    body = '<p><link xlink:type="simple" xlink:href="../123/45123.xml">a</link><link xlink:href="7.xml">b</link><link>c</link></p>'
    assert article(body).cites == ("45123", "7")


def test_metadata() -> None:
    [document] = read(LIGHTHOUSE)
    assert document.metadata == {
        "semantic": ["structure", "artifact", "body_of_water", "person", "event"],
        "category": ["Lighthouses", "Towers of brick"],
        "date": "2008-10-03",
    }


def plain_text(data: str) -> str:
    """The text of a file as the judgements of INEX count it: what is left without the tags."""
    inside = data[data.index("<article") :]
    return html.unescape(re.sub(r"<[^>]*>", "", inside)).removesuffix("\n")


def test_offsets_count_the_characters_between_the_tags() -> None:
    [document] = read(LIGHTHOUSE)
    text = plain_text(LIGHTHOUSE.read_text("utf-8"))
    for passage in document.of_kind(Kind.PASSAGE):
        place = document.places[passage]
        first = document.text_of(passage).split()[0]
        assert text[place.start : place.end].split()[0].startswith(first)
    [entry] = (span for span in document.of_kind(Kind.PASSAGE) if document.text_of(span) == "the bell.")
    assert text[slice(document.places[entry].start, document.places[entry].end)] == "\n\nthe bell."
    whole = document.places[0]
    assert (whole.path, whole.start, whole.end) == ("/article[1]", 0, len(text))


INLINE = st.sampled_from(["b", "it", "link", "br", f"city {SEMANTIC}", "unknown"])
BLOCK = st.sampled_from(["p", "sec", "st", "list", "entry", "table", "row", "col", "template", f"event {SEMANTIC}", "header", "pre"])
TEXT = st.text(alphabet="ab é\n&", max_size=6).map(html.escape)


def content(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    element = st.builds(lambda tag, inside: f"<{tag}>{inside}</{tag.split()[0]}>", INLINE | BLOCK, children)
    return st.lists(element | TEXT, max_size=4).map("".join)


@given(st.recursive(TEXT, content, max_leaves=25))
def test_nothing_is_lost_or_found_twice_and_places_are_right(body: str) -> None:
    data = f"<article><header><title>T</title><id>1</id></header><bdy><p>x</p>{body}</bdy></article>"
    [document] = documents(source := Source("a.xml", "a.xml", format="inex", content=data.encode()))
    check_tree(document)
    [tree] = trees(source)
    whole = whole_text(tree.root)
    assert document.places[0].end == len(whole)
    # Titles of the article and of tables' cells apart, every letter outside a header is in the document, once.
    without_headers = re.sub(r"<header>.*?</header>", "", data) if "<header>" not in body else None
    if without_headers is not None:
        letters = sorted(character for character in html.unescape(re.sub(r"<[^>]*>", "", without_headers)) if not character.isspace())
        found = sorted(c for span in (*document.of_kind(Kind.PASSAGE), *document.of_kind(Kind.TITLE)) for c in document.text_of(span))
        found = [c for c in found if not c.isspace() and c not in "|"]
        found.remove("T")
        assert found == letters
    for span in document.of_kind(Kind.PASSAGE):
        place = document.places[span]
        [element] = tree.root.getroottree().xpath(place.path)
        there = "".join(whole[place.start : place.end].split())
        characters = iter(there)
        assert all(character in characters for character in "".join(document.text_of(span).replace("|", "").split()))
        assert "".join(whole_text(element).split()).find(there) >= 0


def test_an_article_of_another_kind_is_told_apart(tmp_path: Path) -> None:
    for name, text in (
        ("inex.xml", "<article><body wordnetid='1'><header><id>5</id></header><bdy><p>x</p></bdy></body></article>"),
        ("jats.xml", "<article><front><article-meta><article-id>6</article-id></article-meta></front><body><p>x</p></body></article>"),
        ("docbook.xml", "<article><title>t</title><para>x</para></article>"),
    ):
        (tmp_path / name).write_text(text)
        [document] = read(tmp_path / name)
        assert document.id == {"inex.xml": "5", "jats.xml": "6", "docbook.xml": "docbook.xml"}[name]
        assert passages(document) == ["x"]
