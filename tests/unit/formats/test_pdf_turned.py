"""PDF: pages in landscape, and text that runs upwards, downwards, upside down or obliquely."""

from __future__ import annotations

import io

import pypdfium2
import pytest
from benchmarks.pdf_checks import PageTexts, check_pages

import perikope as pk
from perikope.core.errors import InputWarning
from perikope.formats._extraction.blocks import Unreadable
from perikope.formats._extraction.pdf import read_pdf
from tests.support.pdfs import Text, paragraph, pdf, scanned, turned
from tests.unit.formats.test_pdf import BODY, BOLD

PAGE = [Text(72, 520, "1 Wide pages", 15, BOLD), *paragraph(490, BODY), Text(72, 400, "2 More", 15, BOLD), *paragraph(380, BODY)]
UPRIGHT = [Text(72, 780, "3 Upright", 15, BOLD), *paragraph(740, BODY)]


def blocks_of(data):
    return [(block.kind, block.text, block.page) for block in read_pdf(data).blocks]


@pytest.mark.parametrize(("angle", "rotate"), [(90, 90), (270, 270), (90, 0), (270, 0), (180, 180), (180, 0)])
def test_turned_pages_read_like_upright_ones(angle, rotate):
    data = pdf([turned(PAGE, angle)], rotate=rotate)
    assert blocks_of(data) == blocks_of(pdf([PAGE]))
    assert [kind for kind, _, _ in blocks_of(data)] == ["heading", "p", "heading", "p"]


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_rectangles_of_turned_text_are_those_of_the_page(angle):
    data = pdf([turned(PAGE, angle)], rotate=angle)
    blocks = read_pdf(data).blocks
    passages, right, boxed, _ = check_pages(blocks, PageTexts(data))
    assert (passages, right, boxed) == (2, 2, 2)
    left, bottom, right, top = blocks[0].box
    assert 0 <= left < right <= 595
    assert 0 <= bottom < top <= 842
    assert (right - left < top - bottom) == (angle != 180)


def test_a_page_in_landscape_stands_between_its_neighbours():
    data = pdf([UPRIGHT, turned(PAGE, 90), UPRIGHT])
    assert [page for _, _, page in blocks_of(data)] == [1, 2, 2, 2, 2, 3, 3]
    assert [text for kind, text, page in blocks_of(data) if page == 2 and kind == "p"] == [" ".join(BODY)] * 2


def test_much_text_beside_the_page_is_kept_and_little_is_left_out():
    stamp = [Text(20, 300, "Draft of 3 May, not for print", 10, angle=90)]
    assert blocks_of(pdf([UPRIGHT + stamp])) == blocks_of(pdf([UPRIGHT]))
    table = turned(paragraph(200, [f"{line} ({number})" for number in range(3) for line in BODY]), 90)
    blocks = read_pdf(pdf([[*table, *UPRIGHT, *(one for top in (680, 640, 600, 560) for one in paragraph(top, BODY))]])).blocks
    assert blocks[0].text == " ".join(BODY)
    assert "(2)" in blocks[-1].text
    assert blocks[-1].page == 1
    assert blocks[-1].box[2] - blocks[-1].box[0] < blocks[-1].box[3] - blocks[-1].box[1]


def test_oblique_text_is_read_only_if_there_is_no_other():
    mark = [Text(100, 300, "Confidential and secret", 40, angle=45)]
    assert blocks_of(pdf([UPRIGHT + mark])) == blocks_of(pdf([UPRIGHT]))
    assert "Confidential" in " ".join(text for _, text, _ in blocks_of(pdf([mark])))


def test_pages_that_have_only_pictures_are_named(tmp_path):
    whole = pypdfium2.PdfDocument(pdf([UPRIGHT, [], UPRIGHT]))
    whole.import_pages(pypdfium2.PdfDocument(scanned()))
    stored = io.BytesIO()
    whole.save(stored)
    # The second page is blank, so that nothing is lost.
    assert read_pdf(stored.getvalue()).metadata["pages_without_text"] == [4]
    (tmp_path / "a.pdf").write_bytes(stored.getvalue())
    with pytest.warns(InputWarning, match=r"a\.pdf: 1 of 4 pages has no text, as if scanned \(p\. 4\); the rest is read"):
        assert list(pk.read(tmp_path / "a.pdf"))
    assert "pages_without_text" not in read_pdf(pdf([UPRIGHT])).metadata
    with pytest.raises(Unreadable, match="scanned"):
        read_pdf(scanned())
