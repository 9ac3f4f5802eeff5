"""Headings of PDFs without tags: lines that look like headings and are none, and headings that are hard to see."""

from __future__ import annotations

import io

import pytest
from reportlab.pdfgen.canvas import Canvas

import perikope as pk
from tests.support.pdfs import Text, paragraph, pdf
from tests.support.trees import check_tree, passages
from tests.unit.formats.test_pdf import BODY, BOLD, headings


@pytest.fixture
def read(tmp_path):
    def read_pdf(data):
        (tmp_path / "a.pdf").write_bytes(data)
        [document] = pk.read(tmp_path / "a.pdf")
        check_tree(document)
        return document

    return read_pdf


def titles(document):
    return [title for _, title in headings(document)]


def test_bullets_that_are_drawn_after_the_text_belong_to_it(read):
    page = [*paragraph(760, BODY), *paragraph(700, ["The first item has a text that is too long for one line and", "goes on."])]
    page += [Text(72, 676, "The second item is short", 10), Text(62, 700, "•"), Text(62, 676, "•")]
    document = read(pdf([page]))
    tags = [document.labels[document.spans.tag[span]] for span in document.of_kind(pk.Kind.PASSAGE)]
    assert tags == ["p", "li", "li"]
    assert passages(document)[1:] == ["The first item has a text that is too long for one line and goes on.", "The second item is short"]


def test_terms_above_indented_text_are_no_headings(read):
    page = [Text(54, 800, "OPTIONS", 10, BOLD), *paragraph(780, BODY)]
    for number, term in enumerate(("--quiet", "--yes", "--force", "--help")):
        page += [Text(72, 720 - 60 * number, term, 10, BOLD), *paragraph(706 - 60 * number, BODY, x=100)]
    page += [Text(54, 460, "FILES", 10, BOLD), *paragraph(440, BODY)]
    document = read(pdf([page]))
    assert titles(document) == ["OPTIONS", "FILES"]
    assert "--quiet" in passages(document)


def test_headings_at_the_top_of_pages_are_no_running_headers(read):
    names, pages = ["Care", "Seals", "Filters", "Models"], []
    for number in range(8):
        first = paragraph(780, BODY) if number % 2 else [Text(72, 780, names[number // 2], 12, BOLD)]
        pages.append([*first, *paragraph(740, BODY), *paragraph(680, BODY), Text(300, 30, str(number + 1))])
    document = read(pdf(pages))
    assert [document.title, *titles(document)] == names


def test_labels_without_number_are_no_headings_where_headings_have_numbers(read):
    page = []
    for number in range(3):
        top = 800 - 150 * number
        page += [Text(72, top, f"{number + 1} Section", 14, BOLD), *paragraph(top - 24, BODY), Text(72, top - 90, "Remark", 10, BOLD)]
        page += [Text(72, top - 104, "short")]
    page += [Text(72, 320, "Acknowledgements", 10, BOLD), *paragraph(306, BODY), Text(72, 240, "Note:", 10, BOLD), *paragraph(226, BODY)]
    assert titles(read(pdf([page]))) == ["1 Section", "2 Section", "3 Section", "Acknowledgements"]


def test_a_centred_line_below_the_title_is_no_heading_and_a_date_has_no_number(read):
    page = [Text(230, 800, "By-Laws", 24, BOLD), Text(220, 770, "of the Club", 14, BOLD), Text(240, 740, "17 February 1987", 12)]
    for number, name in enumerate(("Name", "Purpose", "Officers")):
        page += [Text(72, 690 - 90 * number, name, 14, BOLD), *paragraph(670 - 90 * number, BODY)]
    document = read(pdf([page]))
    assert document.title == "By-Laws"
    assert titles(document) == ["Name", "Purpose", "Officers"]


def test_a_large_line_of_fixed_width_is_a_heading(read):
    page = [Text(72, 780, "Files", 16, BOLD), *paragraph(750, BODY), Text(72, 690, "setup.cfg", 13, "Courier-Bold"), *paragraph(670, BODY)]
    page += [Text(72, 600, "Other files", 16, BOLD), *paragraph(570, BODY)]
    assert "setup.cfg" in titles(read(pdf([page])))


def test_an_entry_of_the_outline_whose_text_is_garbled_names_the_heading_at_its_height(read):
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(595, 842), invariant=True)
    texts = ["First part", "Second part", "AP(rel=1)", "Fourth part"]
    for number, text in enumerate(texts):
        top = 780 - 120 * number
        for one in [Text(72, top, text, 10, BOLD), *paragraph(top - 20, BODY)]:
            canvas.setFont(one.font, one.size)
            canvas.drawString(one.x, one.y, one.text)
        canvas.bookmarkHorizontalAbsolute(text, top + 12)
        canvas.addOutlineEntry("37637700" if "rel" in text else text, text, 0)
    canvas.save()
    assert titles(read(buffer.getvalue())) == texts


def test_a_table_of_contents_may_have_lines_without_a_page(read):
    contents = [Text(72, 780, "Contents", 15, BOLD), Text(72, 750, "Part I:", 10, BOLD), Text(72, 735, "1 Care 2", 10, BOLD)]
    contents += [Text(72, 720, "2 Models 3", 10, BOLD), Text(72, 705, "Part II:", 10, BOLD), Text(72, 690, "3 Repair 4", 10, BOLD)]
    contents += [Text(72, 675, "4 Parts 5", 10, BOLD)]
    other = []
    for number, name in enumerate(("Care", "Models", "Repair", "Parts")):
        other += [Text(72, 780 - 120 * number, f"{number + 1} {name}", 15, BOLD), *paragraph(750 - 120 * number, BODY)]
    assert titles(read(pdf([contents, other]))) == ["1 Care", "2 Models", "3 Repair", "4 Parts"]


def test_cells_of_a_table_do_not_go_on_after_the_page(read):
    first = [*paragraph(760, BODY), Text(72, 60, "0.651 0.543 12 0.591")]
    document = read(pdf([first, [Text(72, 780, "system of the table"), *paragraph(740, BODY)]]))
    assert "0.651 0.543 12 0.591" in passages(document)


def test_text_is_no_heading_if_there_is_more_small_print(read):
    sentence = ["The rotor turns in the housing, and a seal keeps the water inside."]
    page = [Text(72, 800, "Care", 14, BOLD), *paragraph(776, sentence), Text(72, 740, "Seals", 14, BOLD), *paragraph(716, sentence)]
    page += [line for top in (600, 540) for line in paragraph(top, BODY, size=8)]
    assert titles(read(pdf([page]))) == ["Care", "Seals"]
