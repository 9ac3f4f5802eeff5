"""DOCX and ODT: every character is kept, and styles, notes, tables and tracked changes have their meaning."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

import perikope as pk
from perikope.formats import FileLimits
from perikope.formats._extraction import process
from perikope.formats._extraction.blocks import Extracted, Unreadable
from perikope.formats._extraction.docx import read_docx
from perikope.formats._extraction.odt import read_odt
from perikope.formats._extraction.pptx import read_pptx
from tests.support.trees import GOLDEN

OFFICE = "http://schemas.openxmlformats.org"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
SPACES = (
    f'xmlns:w="{OFFICE}/wordprocessingml/2006/main" xmlns:m="{OFFICE}/officeDocument/2006/math" '
    f'xmlns:mc="{OFFICE}/markup-compatibility/2006" xmlns:wps="urn:shapes" xmlns:v="urn:schemas-microsoft-com:vml"'
)
OASIS = "urn:oasis:names:tc:opendocument:xmlns"
OPEN_SPACES = " ".join(
    [f'xmlns:{name}="{OASIS}:{name}:1.0"' for name in ("office", "text", "table", "style", "meta")]
    + [f'xmlns:draw="{OASIS}:drawing:1.0"', f'xmlns:svg="{OASIS}:svg-compatible:1.0"']
    + ['xmlns:xlink="http://www.w3.org/1999/xlink"', 'xmlns:dc="http://purl.org/dc/elements/1.1/"']
)
LAUGHS = "<!DOCTYPE x [" + "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9)) + '<!ENTITY a0 "laugh">]>'


def packed(parts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def docx(body: str, doctype: str = "", **parts: str) -> bytes:
    """A Word document; `parts` are the contents of parts such as `styles`, and of `core`."""
    files = {"word/document.xml": f"{doctype}<w:document {SPACES}><w:body>{body}</w:body></w:document>"}
    relations = "".join(f'<Relationship Type="{OFFICE}/relationships/{name}" Target="{name}.xml"/>' for name in parts)
    files["word/_rels/document.xml.rels"] = f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{relations}</Relationships>'
    files |= {f"word/{name}.xml": f"<w:{name} {SPACES}>{text}</w:{name}>" for name, text in parts.items() if name != "core"}
    if "core" in parts:
        core = f'xmlns:cp="{OFFICE}/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        files["docProps/core.xml"] = f"<cp:coreProperties {core}>{parts['core']}</cp:coreProperties>"
    return packed(files)


def odt(body: str, styles: str = "", meta: str = "", doctype: str = "", **parts: str) -> bytes:
    automatic = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content = f"<office:body><office:text>{body}</office:text></office:body>"
    files = {
        "content.xml": f"{doctype}<office:document-content {OPEN_SPACES}>{automatic}{content}</office:document-content>",
        "meta.xml": f"<office:document-meta {OPEN_SPACES}><office:meta>{meta}</office:meta></office:document-meta>",
    }
    return packed(files | {name.replace("__", "/") + ".xml": text for name, text in parts.items()})


def p(text: str, properties: str = "", style: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{style}{properties}</w:pPr>{text}</w:p>"


def r(text: str) -> str:
    return f'<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def style(id: str, name: str = "", parent: str = "", properties: str = "") -> str:
    based = f'<w:basedOn w:val="{parent}"/>' if parent else ""
    return f'<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name or id}"/>{based}<w:pPr>{properties}</w:pPr></w:style>'


def tbl(*rows: str) -> str:
    return f"<w:tbl><w:tblPr/>{''.join(rows)}</w:tbl>"


def tr(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


def tc(content: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content if content.startswith('<') else p(r(content))}</w:tc>"


def open_table(*rows: str) -> str:
    return f"<table:table>{''.join(rows)}</table:table>"


def open_row(*cells: str) -> str:
    cells = tuple(cell if cell.startswith("<table:") else f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells)
    return f"<table:table-row>{''.join(cells)}</table:table-row>"


def texts(extracted: Extracted) -> list[tuple[str, str]]:
    return [(f"h{block.level}" if block.kind == "heading" else block.kind, block.text) for block in extracted.blocks]


SIGNS = "AT&amp;T: p&lt;0.05, x &gt; y"
PLAIN = "AT&T: p<0.05, x > y"


def test_word_keeps_every_character():
    styles = style("Heading1", "heading 1") + style("Code", "Source Code") + style("Caption", "caption")
    body = p(r(SIGNS), style="Heading1") + p(r("AT") + r("&amp;") + r("T&#x2014;µ\u00a0🜁")) + p(r(f"  {SIGNS}"), style="Code")
    body += (
        p(r(SIGNS), style="Caption")
        + tbl(tr(tc(SIGNS), tc("b")), tr(tc("c"), tc(SIGNS)))
        + p(r(SIGNS), '<w:numPr><w:numId w:val="1"/></w:numPr>')
    )
    assert texts(read_docx(docx(body, styles=styles))) == [
        ("h1", PLAIN),
        ("p", "AT&T—µ\u00a0🜁"),
        ("code", f"  {PLAIN}"),
        ("caption", PLAIN),
        ("table", f"{PLAIN} | b"),
        ("tr", f"c | {PLAIN}"),
        ("li", PLAIN),
    ]


def test_word_document_becomes_a_tree_with_its_signs(tmp_path):
    (tmp_path / "a.docx").write_bytes(docx(p(r(SIGNS))))
    (tmp_path / "b.odt").write_bytes(odt(f"<text:p>{SIGNS}</text:p>"))
    assert [document.text.strip() for document in pk.read(tmp_path)] == [PLAIN, PLAIN]


def test_no_extra_is_needed(tmp_path, monkeypatch):
    start = process._START.replace("import sys;", "import sys; sys.modules.update(docutils=None, pypdfium2=None);")
    assert start != process._START
    monkeypatch.setattr(process, "_START", start)
    monkeypatch.setattr(process, "_PROCESSES", process.ReadingProcesses())
    files = ("manual.docx", "manual.odt", "training.pptx", "models.xlsx", "manual.rtf", "guide.org", "guide.rst", "book.epub")
    for name in files:
        (tmp_path / name).write_bytes((GOLDEN / "sources" / f"files.{name}").read_bytes())
    problems: list = []
    assert [document.id for document in pk.read(tmp_path, on_problem=problems.append)] == sorted({*files} - {"guide.rst"})
    assert "needs docutils" in str(problems[0])
    process._PROCESSES.close()


def test_word_headings_come_from_names_parents_and_outline_levels():
    styles = (
        style("berschrift2", "heading 2")
        + style("Kapitel", parent="berschrift2")
        + style("Outlined", properties='<w:outlineLvl w:val="2"/>')
    )
    styles += (
        style("Unlisted", parent="Kapitel", properties='<w:outlineLvl w:val="9"/>')
        + style("Ring", parent="Gnir")
        + style("Gnir", parent="Ring")
    )
    body = (
        p(r("a"), style="berschrift2") + p(r("b"), style="Kapitel") + p(r("c"), style="Outlined") + p(r("d"), '<w:outlineLvl w:val="0"/>')
    )
    body += p(r("e"), style="Unlisted") + p(r("f"), style="Ring") + p(r("g"), style="Heading4")
    body += p(r("h"), '<w:outlineLvl w:val="9"/>', "Kapitel") + p("", style="Kapitel")
    found = [("h2", "a"), ("h2", "b"), ("h3", "c"), ("h1", "d"), ("p", "e"), ("p", "f"), ("h4", "g"), ("p", "h")]
    assert texts(read_docx(docx(body, styles=styles))) == found


@pytest.mark.parametrize(
    ("stated", "title", "first"), [("", "Pumps", ("h1", "Care")), ("pumps", "Pumps", ("h1", "Care")), ("Draft", "Draft", ("h1", "Pumps"))]
)
def test_word_title_is_the_stated_one_or_the_one_in_the_text(stated, title, first):
    styles = style("Title") + style("Subtitle", parent="Title") + style("Heading1", "heading 1")
    body = p(r("Pumps"), style="Title") + p(r("Care"), style="Heading1") + p(r("For all"), style="Subtitle")
    found = read_docx(docx(body, styles=styles, core=f"<dc:title>{stated}</dc:title>"))
    assert (found.title, texts(found)[0], texts(found)[-1]) == (title, first, ("p", "For all"))


def test_word_properties():
    core = "<dc:creator>Ann Cook; Bob</dc:creator><cp:keywords>a, b</cp:keywords><dc:subject>s &amp; t</dc:subject>"
    core += "<dc:language>de</dc:language>"
    found = read_docx(docx(p(r("x")), core=core))
    assert found.language == "de"
    assert found.metadata == {"author": ["Ann Cook", "Bob"], "subject": "s & t", "keywords": ["a", "b"]}


def test_word_inline_content_stays_in_its_paragraph():
    run = '<w:r><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:softHyphen/><w:sym w:font="Symbol" w:char="F061"/></w:r>'
    link = f'<w:hyperlink>{r("link")}</w:hyperlink><w:fldSimple w:instr="REF x">{r(" 7")}</w:fldSimple>'
    field = f'<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>PAGE</w:instrText></w:r>{r(" 8")}'
    control = f"<w:sdt><w:sdtPr/><w:sdtContent>{r(' z')}</w:sdtContent></w:sdt>"
    assert texts(read_docx(docx(p(r("a") + run + link + field + control)))) == [("p", "a b\nc-αlink 7 8 z")]


def test_word_formulas_stay_in_their_paragraph():
    def m(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    fraction = f"<m:f><m:num>{m('a+b')}</m:num><m:den>{m('2')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{m('x')}</m:e><m:sup>{m('2')}</m:sup></m:sSup>"
    bracket = f"<m:d><m:e>{power}</m:e></m:d><m:rad><m:deg/><m:e>{m('y')}</m:e></m:rad>"
    body = p(r("if ") + f"<m:oMath>{fraction}{m('&lt;')}{bracket}</m:oMath>" + r(" then"))
    assert texts(read_docx(docx(body))) == [("p", "if (a+b)/2<(x^2)√y then")]


def test_word_tracked_changes_are_read_as_accepted():
    deleted = "<w:rPr><w:del/></w:rPr>"
    body = p(
        r("a") + f"<w:ins>{r(' new')}</w:ins><w:del><w:r><w:delText> old</w:delText></w:r></w:del><w:moveFrom>{r('gone')}</w:moveFrom>"
    )
    body += p(r("first "), deleted) + p(r("second")) + f"<w:ins>{p(r('block'))}</w:ins>"
    body += tbl(tr(tc("k"), tc("v")), tr(tc("x"), tc("y"), properties="<w:del/>"), tr(tc("1"), tc("2"))) + p(r("last"), deleted)
    found = [("p", "a new"), ("p", "first second"), ("p", "block"), ("table", "k | v"), ("tr", "1 | 2"), ("p", "last")]
    assert texts(read_docx(docx(body))) == found


def test_word_lists_quotes_and_contents():
    listed = '<w:numPr><w:numId w:val="1"/></w:numPr>'
    none = '<w:numPr><w:numId w:val="0"/></w:numPr>'
    styles = style("Bullet", properties=listed) + style("Bullet2", parent="Bullet") + style("Quote") + style("TOC1", "toc 1")
    body = (
        p(r("Care 3"), style="TOC1")
        + p(r("a"), style="Bullet2")
        + p(r("b"), none, "Bullet2")
        + p(r("c"), listed)
        + p(r("d"), style="Quote")
    )
    body += p(r("Table 3: e"))
    found = [("li", "a"), ("p", "b"), ("li", "c"), ("blockquote", "d"), ("caption", "Table 3: e")]
    assert texts(read_docx(docx(body, styles=styles))) == found


def test_word_tables_have_headers_merged_cells_and_tables_inside():
    header, span = "<w:tblHeader/>", '<w:gridSpan w:val="2"/>'
    rows = [tr(tc("Size", span), tc(""), properties=header), tr(tc("h"), tc("w"), tc("n"), properties=header)]
    inner = tc(tbl(tr(tc("i"), tc("j")), tr(tc("k"), tc("l"))) + p(r("after")))
    rows += [tr(tc("1", '<w:vMerge w:val="restart"/>'), tc("2"), inner), tr(tc("", "<w:vMerge/>"), tc("3"), tc("4"))]
    assert texts(read_docx(docx(tbl(*rows) + p(r("end"))))) == [
        ("table", "Size | Size | \nh | w | n"),
        ("tr", "1 | 2 | after"),
        ("tr", "1 | 3 | 4"),
        ("table", "i | j"),
        ("tr", "k | l"),
        ("p", "end"),
    ]
    assert texts(read_docx(docx(tbl(tr(tc(p(r("boxed"), style="Heading2"))))))) == [("h2", "boxed")]


def test_word_notes_and_text_boxes_follow_their_paragraph_once():
    box = f"<w:txbxContent>{p(r('in the box'))}</w:txbxContent>"
    shape = (
        f"<mc:AlternateContent><mc:Choice><wps:x>{box}</wps:x></mc:Choice><mc:Fallback><v:x>{box}</v:x></mc:Fallback></mc:AlternateContent>"
    )
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = p(r("a") + f"<w:r>{shape}</w:r>" + note + r("b")) + p(r("c") + note)
    notes = f'<w:footnote w:id="2">{p("<w:r><w:footnoteRef/></w:r>" + r("a &lt; note") + note)}</w:footnote>'
    assert texts(read_docx(docx(body, footnotes=notes))) == [("p", "a b"), ("p", "in the box"), ("p", "a < note"), ("p", "c")]


def test_a_note_stands_between_two_words_and_not_before_a_full_stop():
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = p(r("Mr") + note + note + r("Cook") + note + r(", who")) + f"<w:tbl><w:tr><w:tc>{p(r('a') + note + r('b'))}</w:tc>"
    assert [text for _, text in texts(read_docx(docx(f"{body}<w:tc>{p(r('c'))}</w:tc></w:tr></w:tbl>")))] == ["Mr Cook, who", "", "a b | c"]
    note = "<text:note><text:note-body><text:p>x</text:p></text:note-body></text:note>"
    assert texts(read_odt(odt(f"<text:p>Mr{note}Cook{note}.</text:p>"))) == [("p", "Mr Cook."), ("p", "x"), ("p", "x")]


def test_word_large_initials_belong_to_their_word():
    initial = '<w:framePr w:dropCap="drop" w:lines="3"/>'
    body = p(r("D"), initial) + p(r("rop the seal")) + p(r("A"), initial) + p(r(" tree")) + p(r("B"), '<w:framePr w:w="3"/>')
    assert texts(read_docx(docx(body))) == [("p", "Drop the seal"), ("p", "A tree"), ("p", "B")]


def test_word_shapes_of_other_programs_have_text():
    space = "http://schemas.openxmlformats.org/drawingml/2006/main"
    shape = (
        f'<w:drawing><a:graphic xmlns:a="{space}"><lc:x><a:sp><a:txSp><a:txBody><a:p><a:r><a:t>in it</a:t></a:r></a:p></a:txBody></a:txSp>'
    )
    shape += "</a:sp></lc:x>"
    body = p(r("a") + f"<w:r>{shape}</a:graphic></w:drawing></w:r>")
    assert texts(read_docx(docx(body.replace("lc:x", 'lc:x xmlns:lc="http://x"', 1)))) == [("p", "a"), ("p", "in it")]


def test_word_of_the_strict_standard():
    content = f'<x:document xmlns:x="{STRICT}"><x:body><x:p><x:r><x:t>strict</x:t></x:r></x:p></x:body></x:document>'
    assert texts(read_docx(packed({"word/document.xml": content}))) == [("p", "strict")]


def test_slides_keep_shapes_that_are_written_in_versions():
    space = f'xmlns:p="{OFFICE}/presentationml/2006/main" xmlns:a="{OFFICE}/drawingml/2006/main"'
    space += f' xmlns:r="{OFFICE}/officeDocument/2006/relationships" xmlns:mc="{OFFICE}/markup-compatibility/2006"'

    def sp(text: str) -> str:
        return f"<p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"

    versions = f'<mc:Choice Requires="a14">{sp("With a formula.")}</mc:Choice><mc:Fallback>{sp("As a picture.")}</mc:Fallback>'
    shapes = f"{sp('Before.')}<p:grpSp><mc:AlternateContent>{versions}</mc:AlternateContent></p:grpSp>{sp('After.')}"
    relation = f'<Relationship Id="r1" Type="{OFFICE}/relationships/slide" Target="slide1.xml"/>'
    parts = {
        "ppt/presentation.xml": f'<p:presentation {space}><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{relation}</Relationships>',
        "ppt/slide1.xml": f"<p:sld {space}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>",
    }
    assert [text for _, text in texts(read_pptx(packed(parts)))] == ["Before.", "With a formula.", "After."]


def test_open_document_keeps_text_of_links_and_every_character():
    link = "<text:a><text:span>link <text:span>&amp; more</text:span></text:span></text:a>"
    body = f"<text:h text:outline-level='2'>{SIGNS}</text:h><text:p>a {link} b<text:s text:c='2'/>c<text:tab/>d<text:line-break/>e</text:p>"
    body += "<text:p><text:span><text:a>x</text:a></text:span> \n <text:span>y</text:span></text:p>"
    assert texts(read_odt(odt(body))) == [("h2", PLAIN), ("p", "a link & more b c d\ne"), ("p", "x y")]


def test_open_document_changes_notes_boxes_and_lists():
    removed = "<text:changed-region><text:deletion><text:p>gone</text:p></text:deletion></text:changed-region>"
    removed = f"<text:tracked-changes>{removed}</text:tracked-changes>"
    note = "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>a note</text:p></text:note-body></text:note>"
    box = "<draw:frame> <draw:text-box><text:p>boxed</text:p></draw:text-box> <svg:desc>picture</svg:desc></draw:frame>"
    shape = "<draw:custom-shape><text:p>shaped</text:p></draw:custom-shape>"
    body = f"{removed}<text:p>a<text:change/>b{note}{box}{shape} c<office:annotation><text:p>comment</text:p></office:annotation></text:p>"
    inner = "<text:list><text:list-item><text:p>j</text:p></text:list-item></text:list>"
    body += f"<text:list><text:list-item><text:p>i</text:p>{inner}</text:list-item></text:list>"
    found = [("p", "ab c"), ("p", "a note"), ("p", "boxed"), ("p", "shaped"), ("li", "i"), ("li", "j")]
    assert texts(read_odt(odt(body))) == found


def test_open_document_styles_and_properties():
    styles = "".join(
        f'<style:style style:name="{name}" style:family="paragraph" style:parent-style-name="{parent}"/>'
        for name, parent in (("P1", "Title"), ("P2", "Preformatted_20_Text"), ("Table", "Caption"), ("A", "B"), ("B", "A"))
    )
    body = "".join(
        f'<text:p text:style-name="{name}">{text}</text:p>'
        for name, text in (("P1", "T"), ("P2", "x<text:s/>y"), ("P2", "z"), ("Table", "c"), ("A", "a"))
    )
    meta = "<meta:initial-creator>Ann</meta:initial-creator><meta:keyword>k</meta:keyword>"
    meta += "<dc:language>fr-FR</dc:language><dc:date>2020-02-03T01:02</dc:date>"
    found = read_odt(odt(body, styles, meta))
    assert (found.title, texts(found)) == ("T", [("code", "x y\nz"), ("caption", "c"), ("p", "a")])
    assert (found.language, found.metadata) == ("fr-FR", {"author": ["Ann"], "keywords": ["k"], "modified": "2020-02-03"})


def test_open_document_tables():
    covered = "<table:covered-table-cell/>"
    wide = "<table:table-cell table:number-columns-spanned='2'><text:p>Size</text:p></table:table-cell>"
    high = "<table:table-cell table:number-rows-spanned='2'><text:p>1</text:p></table:table-cell>"
    inner = f"<table:table-cell><text:p>x</text:p>{open_table(open_row('i', 'j'), open_row('k', 'l'))}</table:table-cell>"
    rows = f"<table:table-header-rows>{open_row(wide, covered)}{open_row('h', 'w')}</table:table-header-rows>"
    body = open_table(rows, open_row(high, "2"), open_row(covered, inner))
    assert texts(read_odt(odt(body))) == [
        ("table", "Size | Size\nh | w"),
        ("tr", "1 | 2"),
        ("tr", "1 | x"),
        ("table", "i | j"),
        ("tr", "k | l"),
    ]


def test_open_document_formulas_stand_in_their_paragraph():
    math = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>a</mi> <mo>&lt;</mo> <msup><mi>b</mi><mn>2</mn></msup>'
    math += "<mfrac><mrow><mi>c</mi><mo>+</mo><mi>d</mi></mrow><mi>e</mi></mfrac><annotation>source</annotation></math>"
    body = '<text:p>if <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame> then</text:p>'
    assert texts(read_odt(odt(body, **{"Object 1__content": math}))) == [("p", "if a<b^2(c+d)/e then")]
    assert texts(read_odt(odt(body.replace("./Object 1", "../../etc")))) == [("p", "if then")]


def repeated(count: int) -> str:
    return open_row(f"<table:table-cell table:number-columns-repeated='{count}'><text:p>x</text:p></table:table-cell>", "y")


@pytest.mark.parametrize(
    ("read", "data", "reason"),
    [
        (read_docx, docx(p(r("&a9;")), LAUGHS), "declares entities"),
        (read_odt, odt("<text:p>&a9;</text:p>", doctype=LAUGHS), "declares entities"),
        (read_docx, docx(p(r("x")), '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'), "declares entities"),
        (read_docx, docx(p(r("x"), style="A"), styles=style("A") + " " * (30 << 20)), "unpacks to more than 200 times its size"),
        (read_odt, odt("<text:p>x</text:p>" + " " * (30 << 20)), "unpacks to more than 200 times its size"),
        (read_docx, docx(p(r("x")))[:-30], "is damaged"),
        (read_docx, b"PK\3\4 nothing", "is damaged"),
        (read_docx, packed({"a.txt": "x"}), "has no text"),
        (read_odt, packed({"a.txt": "x"}), "has no text"),
        (read_odt, packed({"content.xml": "<office"}), "is damaged"),
        (read_odt, odt("", **{"META-INF__manifest": "<encryption-data/>"}), "is encrypted"),
        (read_docx, bytes.fromhex("d0cf11e0a1b11ae1") + b"x" * 600, "is encrypted"),
        (read_docx, docx("<w:sdt>" * 5000 + p(r("x")) + "</w:sdt>" * 5000), "is damaged"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value if isinstance(value, str) else value.__name__,
)
def test_hostile_files_have_a_reason(read, data, reason):
    with pytest.raises(Unreadable, match=reason):
        read(data)


def test_a_false_checksum_is_damage():
    data = bytearray(docx(p(r("x"))))
    checksum = struct.pack("<I", zipfile.ZipFile(io.BytesIO(data)).getinfo("word/document.xml").CRC)
    for place in (data.index(checksum), data.rindex(checksum)):
        data[place] ^= 1
    with pytest.raises(Unreadable, match="is damaged"):
        read_docx(bytes(data))


def test_numbers_of_columns_and_spaces_are_limited():
    assert len(read_odt(odt(open_table(repeated(999_999_999), open_row("a", "b")))).blocks[0].text) < 1000
    assert texts(read_odt(odt('<text:p>a<text:s text:c="999999999"/>b</text:p>'))) == [("p", "a b")]
    wide = tbl(tr(tc("x", '<w:gridSpan w:val="999999999"/>'), tc("y")), tr(tc("a"), tc("b")))
    assert len(read_docx(docx(wide)).blocks[0].text) < 1000


def test_hostile_texts_in_a_folder_are_named_and_the_rest_is_read(tmp_path):
    (tmp_path / "a.docx").write_bytes(docx(p(r("&a9;")), LAUGHS))
    (tmp_path / "b.odt").write_bytes(odt("<text:p>x</text:p>" + " " * (30 << 20)))
    (tmp_path / "c.odt").write_bytes(odt("<text:p>good</text:p>"))
    problems: list = []
    documents = list(pk.read(tmp_path, on_problem=problems.append, limits=FileLimits(20.0, 1 << 30)))
    assert [document.id for document in documents] == ["c.odt"]
    assert [problem.path for problem in problems] == [str(tmp_path / "a.docx"), str(tmp_path / "b.odt")]
