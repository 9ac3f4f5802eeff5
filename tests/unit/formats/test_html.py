"""HTML: titles, boilerplate, loose text, tables, encodings and hostile pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document, Kind
from perikope.formats import read
from tests.support.growth import is_linear
from tests.support.trees import check_tree, passages, titles


def load(tmp_path: Path, page: str | bytes) -> Document:
    path = tmp_path / "page.html"
    path.write_bytes(page if isinstance(page, bytes) else page.encode())
    [document] = read(path)
    check_tree(document)
    return document


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<title>Pumps</title><p>x", ["Pumps"]),
        ("<h1>Pumps</h1><p>x", ["Pumps"]),
        ("<title>Pumps - Site</title><h1>Pumps</h1><p>x", ["Pumps"]),
        ("<title>Pumps</title><h1>Pumps and seals</h1><p>x", ["Pumps and seals"]),
        ("<title>Site</title><h1>Pumps</h1><p>x", ["Site", "Pumps"]),
        ("<title>Pump</title><h1>Pumps</h1><p>x", ["Pump", "Pumps"]),
        ("<h2>First</h2><h1>Pumps</h1><p>x", ["First", "Pumps"]),
        ("<h1>A</h1><h1>B</h1><p>x", ["A", "B"]),
        ("<title>T</title><h1><img src=x></h1><p>x", ["T"]),
        ("<title>T</title><blockquote><h1>T</h1></blockquote><p>x", ["T"]),
        ("<div hidden><h1>Menu</h1></div><h1>Pumps <span aria-hidden=true>#</span></h1><p>x", ["Pumps"]),
        ("<h1><button>Pumps</button></h1><p>x", ["Pumps"]),
    ],
)
def test_titles(page: str, expected: list[str], tmp_path: Path) -> None:
    assert titles(load(tmp_path, page)) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<nav>n</nav><p>x</p><footer>f</footer>", ["n", "x", "f"]),
        ("<nav>n</nav><main><p>x</p><aside>a</aside></main><footer>f</footer>", ["x"]),
        ("<nav>n</nav><article>x<article>y</article></article>between<article>z</article>", ["x", "y", "z"]),
        ("<article>a</article><div role=main>x</div>", ["x"]),
        ("<main><script>1</script></main><article> </article><p>x</p>", ["x"]),
        ("<main></main><p>x</p>", ["x"]),
    ],
)
def test_boilerplate_stays_out_where_content_is_marked(page: str, expected: list[str], tmp_path: Path) -> None:
    assert passages(load(tmp_path, page)) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("a <b>b</b> c<div>d<p>e</p>f <i>g</i></div>h", ["a b c", "d", "e", "f g", "h"]),
        ("<p>a<!-- no -->b<script>no</script>c<template>no</template></p>", ["abc"]),
        ("<p>a\n\t b&nbsp; c<br>d<wbr>e</p>", ["a b c de"]),
        ("<table><tr><td>a<td><ul><li>b<li>c</ul><tr><th> <td></table>", ["a | b c"]),
        ("<pre>\n\n  a\n   <b>b</b><br>c<div>d</div>e\n\n</pre>", ["  a\n   b\nc\nd\ne"]),
        ("<ul><li><p>a</p><p>b</p></li><li>c</ul>", ["a", "b", "c"]),
        ("<a href=x><div>a</div><div>b</div></a>", ["a", "b"]),
        ("<my-note>a</my-note> <math><mi>x</mi><annotation>no</annotation></math>", ["a x"]),
        ("<p>&lt;b&gt; &amp;eacute; &eacute; &#x1F600;</p>", ["<b> &eacute; é 😀"]),
        ("<select><option>no</select><textarea>no</textarea><p>x", ["x"]),
    ],
)
def test_runs_of_text_are_passages(page: str, expected: list[str], tmp_path: Path) -> None:
    assert passages(load(tmp_path, page)) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a <span hidden>no</span>b</p><div hidden><p>no</p></div>c", ["a b", "c"]),
        ("<p>a<span style='color: red; DISPLAY : none'>no</span>b<span style='visibility:hidden!important'>no</span>c</p>", ["abc"]),
        ("<p>a<span style='display:none-such; --visibility:hidden-not'>b</span></p>", ["ab"]),
        ("<p>a<i aria-hidden=TRUE>no</i>b<i aria-hidden=false>c</i></p>", ["abc"]),
        ("<p hidden=until-found>a</p><p hidden=hidden>no</p>", ["a"]),
        ("<p>a<button>no</button>b<input value=no>c</p><option>no</option><datalist><option>no</datalist><button>no</button>", ["a b c"]),
        ("<h2><button style='color:red'>t</button></h2><h2><button hidden>no</button>u</h2><p>a", ["a"]),
        ("<body hidden style='display:none'><main aria-hidden=true><p>a<i hidden>no</i></main>", ["a"]),
        ("<article hidden><p>no</p></article><article><button>no</button></article><p>a", ["a"]),
    ],
)
def test_what_readers_do_not_see_is_no_text(page: str, expected: list[str], tmp_path: Path) -> None:
    document = load(tmp_path, page)
    assert passages(document) == expected
    assert "no" not in document.text


def paths(document: Document) -> dict[str, str]:
    """The titles above each passage, from the top, by the passage's text."""
    title_of = {document.spans.parent[i]: document.text_of(i) for i in document.of_kind(Kind.TITLE)}
    found = {}
    for passage in document.of_kind(Kind.PASSAGE):
        above, span = [], passage
        while (span := document.spans.parent[span]) >= 0:
            above.append(title_of.get(span, ""))
        found[document.text_of(passage)] = " > ".join(reversed([title for title in above if title]))
    return found


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<h1>T</h1><section><h2>I</h2><p>a</section><p>b", {"a": "T > I", "b": "T"}),
        ("<h1>T</h1><h2>A</h2><section>a<h3>I</h3>b<section><h4>J</h4>c</section>d</section>e", {"a": "T > A", "b": "T > A > I",
            "c": "T > A > I > J", "d": "T > A > I", "e": "T > A"}),
        ("<main><article><h2>A</h2>a</article>b<article><h2>B</h2>c</article></main>", {"a": "A", "b": "", "c": "B"}),
        ("<h2>A</h2><aside><h3>I</h3>a</aside>b<nav><h3>N</h3>c</nav>d", {"a": "A > I", "b": "A", "c": "A > N", "d": "A"}),
        ("<h2>A</h2><div><h3>I</h3>a</div>b", {"a": "A > I", "b": "A > I"}),
        ("<h2>A</h2>a<section><h2>B</h2>b</section>c", {"a": "A", "b": "B", "c": ""}),
        ("<h2>A</h2><blockquote><section><h3>I</h3>a</section>b</blockquote>c", {"I": "A", "a": "A", "b": "A", "c": "A"}),
        ("<h2>A</h2><table><tr><td><section><h3>I</h3>a</section>b</table>c", {"a": "A > I", "b": "A", "c": "A"}),
        ("<h1>T</h1><h2>A</h2><h3>B</h3>a<h2></h2>b", {"a": "T > A > B", "b": "T"}),
        ("<h1>T</h1><h2>A</h2><h3>B</h3>a<h3> <img></h3>b", {"a": "T > A > B", "b": "T > A"}),
        ("<h1>T</h1><h2>A</h2><p>a</p><h2 hidden>B</h2>b", {"a": "T > A", "b": "T > A"}),
    ],
)  # fmt: skip
def test_a_heading_holds_until_the_next_one_or_the_end_of_its_section(page: str, expected: dict[str, str], tmp_path: Path) -> None:
    assert paths(load(tmp_path, page)) == expected


def test_an_id_that_looks_like_a_running_number_is_none(tmp_path: Path) -> None:
    assert list(load(tmp_path, "<p>a<p id='@1'>b<h2 id='@7'>t</h2><p id='@x'>c").span_ids.values()) == ["@x"]


def test_rows_of_a_table_inside_a_layout_table_are_rows(tmp_path: Path) -> None:
    page = "<table><tr><td>left</td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>"
    assert passages(load(tmp_path, page)) == ["left", "a | b"]


def test_a_section_takes_the_id_of_its_heading_or_of_the_division_it_opens(tmp_path: Path) -> None:
    page = "<div id=a><h2>A</h2><p>x</div><div id=b><p>y</p><h2>B</h2></div><section id=c><h2 id=d>D</h2>z</section><h2>E</h2>"
    document = load(tmp_path, page)
    by_title = {document.text_of(i): document.span_ids.get(document.spans.parent[i], "") for i in document.of_kind(Kind.TITLE)}
    assert by_title == {"A": "a", "B": "", "D": "d", "E": ""}


def test_links(tmp_path: Path) -> None:
    page = "<base href='http://no.fetch/'><p><a href='#a'>a</a><a href='#b'></a><a href='page.html#c'>c</a><a href='x.html?q=1#y'>x</a>"
    page += "<a href='//host/p'>h</a><a href='ftp://no'>f</a><a href='http://[bad'>b</a><a>n</a><a href='data:x'>d</a></p>"
    document = load(tmp_path, page)
    assert [target for _, target in document.references] == ["a", "c"]
    assert document.cites == ("x.html?q=1", "//host/p")


def test_a_reference_in_a_heading_is_one_of_its_section(tmp_path: Path) -> None:
    document = load(tmp_path, "<h2>A</h2><h2>See <a href='#x'>x</a></h2><p id=x>y")
    [(source, target)] = document.references
    assert (document.spans.kind[source], target) == (Kind.SECTION, "x")


def test_languages(tmp_path: Path) -> None:
    page = "<html lang=de-AT><body lang='no such'><h2 lang=fr>t</h2><p>a</p><div xml:lang=it>b<p lang=''>c</p></div><p>d"
    document = load(tmp_path, page)
    languages = [document.labels[document.spans.language[i]] for i in document.of_kind(Kind.PASSAGE)]
    assert (document.language, languages) == ("de", ["de", "it", "it", "de"])


@pytest.mark.parametrize("tag", ["zz-broken", "xx", "qqq", "eng", "x-default", "english", ""])
def test_a_language_that_is_none_is_not_said(tag: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(f"<html lang='{tag}'><p>a<p lang=nds>b", encoding="utf-8")
    [document] = read(path, language="de")
    languages = [document.labels[document.spans.language[i]] for i in document.of_kind(Kind.PASSAGE)]
    assert (document.language, languages) == ("de", ["de", "nds"])


def test_language_and_headings_hold_across_marked_content(tmp_path: Path) -> None:
    page = "<div lang=fr><article><h2>A</h2><p>a</article></div><article>b</article>"
    document = load(tmp_path, page)
    first, second = document.of_kind(Kind.PASSAGE)
    assert document.labels[document.spans.language[first]] == "fr"
    assert document.labels[document.spans.language[second]] == "en"
    assert document.spans.parent[second] == 0


@pytest.mark.parametrize(
    "page",
    [
        "<p>café".encode(),
        "\ufeff<p>café".encode(),
        '<meta charset="bogus"><p>café'.encode(),
        "<p>café".encode("latin-1"),
        "<p>café".encode("utf-16"),
        '<meta charset="iso-8859-1"><p>café'.encode("latin-1"),
        '<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>café</p></body></html>'.encode(),
        '<meta charset="koi8-r"><p>caf&eacute;'.encode("koi8-r"),
    ],
)
def test_encodings(page: bytes, tmp_path: Path) -> None:
    assert passages(load(tmp_path, page)) == ["café"]


def test_repeated_metadata_becomes_a_list(tmp_path: Path) -> None:
    page = "<meta name=author content=A><meta name=AUTHOR content=B><meta name=date content=2013><meta name=robots content=x><p>x"
    assert load(tmp_path, page).metadata == {"author": ["A", "B"], "date": "2013"}


def test_many_hidden_elements_take_linear_time(tmp_path: Path) -> None:
    def read(times: int) -> None:
        load(tmp_path, "<p>" + "<i hidden><b hidden>no</b></i>some text and a <button>no</button>word " * times)

    assert is_linear(read, 4_000)


@pytest.mark.parametrize("tag", ["div", "b", "blockquote", "ul><li", "table><tr><td"])
def test_hostile_nesting_is_refused_and_not_cut_off(tag: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="nested too deeply"):
        load(tmp_path, "<p>before</p>" + f"<{tag}>" * 100_000 + "deep")


def test_entities_from_outside_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET", encoding="utf-8")
    page = f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{tmp_path}/secret"><!ENTITY y "{"z" * 99}">]><p>a &x; &y;</p>'
    assert "SECRET" not in load(tmp_path, page).text


@pytest.mark.parametrize(
    ("table", "title", "rows"),
    [
        ("<tr><th>A<th>B<tr><td>1<td>2", ["A | B"], ["1 | 2"]),
        ("<tr><td><th>A<th>B<tr><th>r<td>1<td>2", ["| A | B"], ["r | 1 | 2"]),
        ("<thead><tr><td>A<td>B<tbody><tr><th>x<th>y<tr><td>1<td>2", ["A | B"], ["x | y", "1 | 2"]),
        ("<thead><tr><th colspan=2>AB<tr><th>a<th>b<tbody><tr><td>1<td>2", ["AB\na | b"], ["1 | 2"]),
        ("<caption>C</caption><tr><th>A<tr><td>1", ["A"], ["C", "1"]),
        ("<tr><th>A<th>B", [], ["A | B"]),
        ("<tr><th>k<td>v<tr><th>l<td>w", [], ["k | v", "l | w"]),
        ("<tr><td>A<td>B<tr><td>1<td>2", [], ["A | B", "1 | 2"]),
        ("<tr><th> <tr><td>1<td>2", [], ["1 | 2"]),
        (f"<tr><th>{'long ' * 101}<tr><td>1", [], ["long " * 100 + "long", "1"]),
    ],
)
def test_rows_have_the_header_of_their_table_as_title(table: str, title: list[str], rows: list[str], tmp_path: Path) -> None:
    document = load(tmp_path, f"<table id=t>{table}</table>")
    assert (titles(document), passages(document)) == (title, rows)
    kind = Kind.SECTION if title else Kind.ELEMENT
    assert [document.labels[document.spans.tag[span]] for span in document.of_kind(kind) if span] == ["table"]


def test_a_reference_to_a_header_row_leads_to_its_table(tmp_path: Path) -> None:
    document = load(tmp_path, "<p><a href='#h'>x</a><table><tr id=h><th>A<tr><td>1</table>")
    [(_, target)] = document.references
    assert document.span_ids == {next(span for span in document.of_kind(Kind.SECTION) if span): target}


def test_a_layout_table_with_headers_is_no_section(tmp_path: Path) -> None:
    page = "<table><tr><th>side</th><th>top</th></tr><tr><td><table><tr><th>A<tr><td>1</table></td><td><h2>H</h2>x</td></tr></table>"
    assert paths(load(tmp_path, page)) == {"side": "", "top": "", "1": "A", "x": "H"}


def test_long_preformatted_text_is_cut_at_natural_places_and_named_code(tmp_path: Path) -> None:
    lines = "\n".join(f"step {number}" if number % 9 else "\nnext" for number in range(900))
    page = f"<pre id=x>{lines}</pre><div class='highlight-python3 notranslate'><div class=highlight><pre>a\n  b</pre></div></div>"
    page += "<pre><code class='language-rust ignore'>c</code></pre><pre class=language-none>d</pre>"
    document = load(tmp_path, page)
    found = [document.text_of(i) for i in document.of_kind(Kind.PASSAGE) if document.labels[document.spans.tag[i]] == "code"]
    assert "\n\n".join(found[:-3]) == lines.strip("\n")
    assert found[-3:] == ["a\n  b", "c", "d"]
    assert max(map(len, found)) <= 1500
    assert document.span_ids == {next(document.of_kind(Kind.ELEMENT)): "x"}
    assert document.metadata["code_language"] == ["python3", "rust"]


@pytest.mark.parametrize("label", ["utf-16", "UTF-16LE", "utf-16be", "unicode", "ucs-2", "utf-32"])
@pytest.mark.parametrize("declaration", ['<meta charset="{}">', "<meta charset={}>", '<meta http-equiv=x content="text/html; charset={}">'])
@pytest.mark.parametrize("words", ["The pump.", "Die Pumpe läuft."])
def test_a_declared_utf16_in_single_bytes_means_utf8(label: str, declaration: str, words: str, tmp_path: Path) -> None:
    page = f"<html><head>{declaration.format(label)}<title>T</title></head><body><p>{words}</p></body></html>"
    (tmp_path / "a.html").write_bytes(page.encode())
    (document,) = read(tmp_path / "a.html")
    assert words in document.text
    (tmp_path / "b.html").write_bytes(page.encode("utf-16"))
    (document,) = read(tmp_path / "b.html")
    assert words in document.text


def test_a_declared_utf16_with_bytes_that_are_no_utf8_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes('<meta charset="utf-16"><p>Die Pumpe l\xe4uft, ja.</p>'.encode("latin-1"))
    (document,) = read(tmp_path / "a.html")
    assert "Die Pumpe l" in document.text
    assert "uft, ja." in document.text


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<p>a pump<sup><a href="#n1">1</a></sup>, 10<sup><a href="#n2">2</a></sup>', "a pump 1, 10 2"),
        ('<p>a pump<a href="#n1" role="doc-noteref"><sup>1</sup></a>.', "a pump 1."),
        ('<p>a pump<a href="#n1" epub:type="noteref">1</a>.', "a pump 1."),
        ('<p>a pump<a href="#n1"><sup>1</sup></a>.', "a pump 1."),
        ('<p>a pump<sup class="reference"><a href="#n1">[1]</a></sup>', "a pump [1]"),
        ("<p>H<sub>2</sub>O at 5 m<sup>3</sup>", "H2O at 5 m3"),
        ('<p>see <a href="x.html">E=mc<sup>2</sup></a>', "see E=mc2"),
        ('<p>A note. <a href="#r1" role="doc-backlink">\u21a9\ufe0e</a>', "A note."),
        ('<p>a pu<span epub:type="pagebreak" id="p12">12</span>mp', "a pump"),
        ('<p>a <span role="doc-pagebreak" id="p12"/>pump with a casing of steel', "a pump with a casing of steel"),
        ('<p><span class="linenum">5</span>Sing, goddess<span class="line-number">6</span>', "5 Sing, goddess 6"),
    ],
)
def test_numbers_of_notes_lines_and_pages_are_not_glued_to_words(page: str, expected: str, tmp_path: Path) -> None:
    assert passages(load(tmp_path, page)) == [expected]
