"""The page and the rectangle of every passage, compared with what PDFium finds there."""

from __future__ import annotations

import pytest
from benchmarks.pdf_checks import PageTexts, check_pages, compare_headings

from perikope.formats._extraction.pdf import read_pdf
from tests.support.pdfs import paragraph, pdf
from tests.support.trees import GOLDEN
from tests.unit.formats.test_pdf import BODY, report

CROSSING = ["The sentence begins on this page, says a few things and is con-"], ["tinued on the next one, where it ends."]


def crossing():
    return pdf([[*paragraph(760, BODY), *paragraph(100, CROSSING[0])], [*paragraph(780, CROSSING[1]), *paragraph(700, BODY)]])


@pytest.mark.parametrize(
    "data",
    [report(), crossing(), *((GOLDEN / "sources" / name).read_bytes() for name in ("pdf.browser.pdf", "pdf.latex.pdf"))],
    ids=["report", "crossing", "browser", "latex"],
)
def test_all_words_of_every_passage_are_on_its_page_and_in_its_rectangle(data):
    blocks = read_pdf(data).blocks
    passages, right, boxed, _ = check_pages(blocks, PageTexts(data))
    assert passages
    assert (right, boxed) == (passages, passages)


def test_the_check_refuses_another_page_and_words_that_are_missing():
    pages = PageTexts(crossing())
    text = CROSSING[0][0][:-1] + CROSSING[1][0]
    assert pages.holds(text, 1)
    assert not pages.holds(text, 2)
    assert not pages.holds(text + " Or not.", 1)
    assert not pages.holds("Another sentence begins here. " + CROSSING[1][0], 1)
    [block] = [block for block in read_pdf(crossing()).blocks if "begins" in block.text]
    left, bottom, right, top = block.box
    assert pages.is_inside(block.text, 1, block.box)
    assert not pages.is_inside(block.text, 1, (left, bottom + 100, right, top + 100))
    assert not pages.is_inside(block.text, 1, (left, bottom, left + (right - left) / 3, top))


def test_headings_are_compared_by_text_and_depth():
    expected = [("1", "1 Care"), ("2", "1.1 Seals"), ("?", "Abstract"), ("1", "2 Models")]
    count = compare_headings(expected, [(2, "Care"), (3, "1.1. Seals"), (3, "Models"), (2, "More")])
    assert (count.expected, count.right, count.other_level) == (3, 2, 1)
    assert (count.missed, count.besides) == ((), ("More",))
    assert compare_headings(expected, []).missed == ("1 Care", "1.1 Seals", "2 Models")
