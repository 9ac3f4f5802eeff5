"""Formulas of HTML, EPUB, OpenDocument and Word are written as one line, by the same rules."""

from __future__ import annotations

import pytest
from lxml import etree

import perikope as pk
from perikope.document.tree import Kind
from perikope.formats._extraction.docx import read_docx
from perikope.formats._extraction.odt import read_odt
from perikope.formats._formulas import mathml_text
from tests.unit.formats.test_epub import book
from tests.unit.formats.test_office_texts import docx, odt, p, texts

SPACE = "http://www.w3.org/1998/Math/MathML"
QUADRATIC = (
    "<mi>x</mi><mo>=</mo><mfrac><mrow><mo>−</mo><mi>b</mi><mo>±</mo><msqrt><msup><mi>b</mi><mn>2</mn></msup><mo>−</mo><mn>4</mn>"
    "<mi>a</mi><mi>c</mi></msqrt></mrow><mrow><mn>2</mn><mi>a</mi></mrow></mfrac>"
)
IN_WORD = (
    "<m:r><m:t>x=</m:t></m:r><m:f><m:num><m:r><m:t>−b±</m:t></m:r><m:rad><m:deg/><m:e><m:sSup><m:e><m:r><m:t>b</m:t></m:r></m:e>"
    "<m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup><m:r><m:t>−4ac</m:t></m:r></m:e></m:rad></m:num><m:den><m:r><m:t>2a</m:t></m:r>"
    "</m:den></m:f>"
)
LINE = "if x=(−b±√(b^2−4ac))/2a then"


def test_all_formats_write_the_same_line(tmp_path):
    page = f"<p>if <math><semantics><mrow>{QUADRATIC}</mrow><annotation>x=</annotation></semantics></math> then</p>"
    (tmp_path / "a.html").write_text(page)
    prefixed = QUADRATIC.replace("<", "<m:").replace("<m:/", "</m:")
    (tmp_path / "a.epub").write_bytes(book({"a.xhtml": f'<body><p>if <m:math xmlns:m="{SPACE}">{prefixed}</m:math> then</p></body>'}))
    for name in ("a.html", "a.epub"):
        [document] = pk.read(tmp_path / name)
        assert [document.text_of(span) for span in document.of_kind(Kind.PASSAGE)] == [LINE]
    body = '<text:p>if <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame> then</text:p>'
    assert texts(read_odt(odt(body, **{"Object 1__content": f'<math xmlns="{SPACE}">{QUADRATIC}</math>'}))) == [("p", LINE)]
    word = f"<w:r><w:t xml:space='preserve'>if </w:t></w:r><m:oMath>{IN_WORD}</m:oMath><w:r><w:t> then</w:t></w:r>"
    assert texts(read_docx(docx(p(word)))) == [("p", LINE)]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup><msub><mi>a</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msub>",
         "x_i^2a_(n+1)"),
        ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi>", "∑_(i=1)^n i"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot><msqrt><mi>a</mi><mi>b</mi></msqrt>", "3√x√ab"),
        ("<mi>i</mi><mi>sin</mi><mi>θ</mi><mo>+</mo><msup><mi>cos</mi><mn>2</mn></msup><mo>(</mo><mi>x</mi><mo>)</mo>",
         "i sin θ+cos^2(x)"),
        ("<mn>2</mn><mo>&#x2062;</mo><mi>x</mi><mspace width='1em'/><mtext>if </mtext><mi>x</mi><mo>&gt;</mo><mn>0</mn>", "2x if x>0"),
        ("<mfenced open='[' close=']' separators=';'><mi>a</mi><mi>b</mi></mfenced><mfenced><mi>a</mi><mi>b</mi></mfenced>",
         "[a;b](a,b)"),
        ("<mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr><mtr><mtd><mn>0</mn></mtd><mtd><mi>x</mi></mtd></mtr>"
         "</mtable><mo>)</mo>", "(1 0; 0 x)"),
        ("<mover accent='true'><mi>x</mi><mo>¯</mo></mover><munder><mi>lim</mi><mi>n</mi></munder><mi>y</mi>", "x lim_n y"),
        ("<mmultiscripts><mi>X</mi><mi>a</mi><mi>b</mi><mprescripts/><mn>1</mn><none/></mmultiscripts>", "_1X_a^b"),
        ("<mstyle><mi>a</mi><mphantom><mi>no</mi></mphantom></mstyle><menclose><mi>b</mi></menclose>", "ab"),
        ("<mlongdiv><mn>3</mn><mn>435</mn><msgroup><msrow><mn>1</mn><mn>3</mn></msrow><mn>12</mn></msgroup></mlongdiv>", "3 435 13 12"),
        ("<mfrac><mi>a</mi></mfrac><msup/><msqrt/><mi/>", "a√"),
    ],
)  # fmt: skip
def test_constructs_of_mathml(content, line):
    assert mathml_text(etree.fromstring(f"<math>{content}</math>")) == line
    assert mathml_text(etree.fromstring(f'<m:math xmlns:m="{SPACE}">{_prefixed(content)}</m:math>')) == line


def _prefixed(content: str) -> str:
    return content.replace("<", "<m:").replace("<m:/", "</m:")


def test_a_formula_without_content_is_the_text_that_stands_for_it():
    assert mathml_text(etree.fromstring('<math alttext="x squared"/>')) == "x squared"
