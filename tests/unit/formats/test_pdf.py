"""PDF: the section tree by tags, outline or fonts; pages and rectangles; what is not text is left out."""

from __future__ import annotations

import re

import pypdfium2
import pytest

import perikope as pk
from perikope.core.errors import UnreadableFile
from perikope.document.tree import Kind
from perikope.formats._extraction.pdf_lines import joined_lines
from tests.support.pdfs import Text, paragraph, pdf, scanned
from tests.support.trees import GOLDEN, check_tree, passages, titles

BODY = [
    "A heat pump moves heat from a cold place to a warm place and",
    "it takes electrical power to do so. This is more text, which",
    "goes on and ends with the last line here.",
]
BOLD = "Helvetica-Bold"


@pytest.fixture
def read(tmp_path):
    def read_pdf(data, name="a.pdf"):
        (tmp_path / name).write_bytes(data)
        [document] = pk.read(tmp_path / name)
        check_tree(document)
        return document

    return read_pdf


def headings(document):
    """The titles of sections with their depth."""
    depth, found = {0: 0}, []
    for span in range(1, len(document.spans)):
        depth[span] = depth[document.spans.parent[span]] + 1
        if document.spans.kind[span] == Kind.TITLE and document.spans.parent[span]:
            found.append((depth[span] - 1, document.text_of(span)))
    return found


def report(**options):
    first = [Text(72, 780, "Pumps and their care", 22, BOLD), Text(72, 750, "Ann Cook", 12), Text(72, 700, "1 Care", 15, BOLD)]
    first += [*paragraph(670, BODY), Text(72, 600, "1.1 Seals", 12, BOLD), *paragraph(570, BODY)]
    second = [Text(72, 780, "1.2 Filters", 12, BOLD), *paragraph(750, BODY), Text(72, 660, "2 Models", 15, BOLD), *paragraph(630, BODY)]
    return pdf([first, second], **options)


def test_headings_are_recognised_by_font_and_number(read):
    document = read(report())
    assert document.title == "Pumps and their care"
    assert headings(document) == [(1, "1 Care"), (2, "1.1 Seals"), (2, "1.2 Filters"), (1, "2 Models")]
    assert passages(document)[0] == "Ann Cook"


def test_the_outline_decides_about_levels(read):
    outline = [("Care", 0, 1), ("Seals", 1, 1), ("Filters", 2, 2), ("Models", 0, 2)]
    document = read(report(outline=outline))
    assert headings(document) == [(1, "1 Care"), (2, "1.1 Seals"), (3, "1.2 Filters"), (1, "2 Models")]


def test_every_passage_has_its_page_and_rectangle(read, tmp_path):
    document = read(report())
    original = pypdfium2.PdfDocument(tmp_path / "a.pdf")
    for span in document.of_kind(Kind.PASSAGE):
        place = document.places[span]
        left, bottom, right, top = place.box
        inside = original[place.page - 1].get_textpage().get_text_bounded(left - 1, bottom - 1, right + 1, top + 1)
        assert "".join(inside.split()) == "".join(document.text_of(span).split())
        assert document.citations[span] == f"p. {place.page}"


def test_a_hit_cites_its_page(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.pdf").write_bytes(report())
    with pk.Index.create(tmp_path / "index") as index:
        index.add(pk.read(tmp_path / "docs"))
    hit = next(iter(pk.Index.open(tmp_path / "index").search("filters", keep_unmatched=True)))
    assert hit.path[-1] == "1.2 Filters"
    assert (hit.place.page, hit.citation, len(hit.place.box)) == (2, "a.pdf p. 2", 4)
    assert hit.to_dict()["place"]["page"] == 2


def test_running_headers_and_page_numbers_are_left_out(read):
    pages = []
    for number in range(1, 6):
        page = [
            Text(72, 810, f"Pump manual, chapter {number}", 9),
            *paragraph(760, [f"Page {number} begins.", *BODY]),
            Text(290, 30, f"– {number} –", 9),
        ]
        pages.append(page)
    text = read(pdf(pages)).text
    assert "Pump manual" not in text
    assert "–" not in text
    assert text.count("begins") == 5


def test_a_table_of_contents_is_left_out(read):
    contents = [
        Text(72, 780, "Contents", 15, BOLD),
        Text(72, 750, "1 Care . . . . . . . . . . . . . . . . 2"),
        Text(72, 735, "2 Models . . . . . . . . . 3"),
    ]
    other = [Text(72, 780, "1 Care", 15, BOLD), *paragraph(750, BODY), Text(72, 680, "2 Models", 15, BOLD), *paragraph(650, BODY)]
    document = read(pdf([contents, other]))
    assert [title for _, title in headings(document)] == ["1 Care", "2 Models"]
    assert not re.search(r"\. \. \.|Contents", document.text)


def test_columns_are_read_one_after_the_other_even_if_drawn_line_by_line(read):
    left, right = ([f"{side} line {number} of a column with enough words" for number in range(8)] for side in ("left", "right"))
    page = []
    for number in range(8):
        page += [Text(60, 700 - 12 * number, left[number], 9), Text(320, 700 - 12 * number, right[number], 9)]
    text = read(pdf([page])).text
    assert text.rindex("left line 7") < text.index("right line 0")


def test_columns_in_the_order_of_content_stay(read):
    page = paragraph(700, ["The first column says one thing", "and ends there."], x=60) + paragraph(
        700, ["The second column says another", "and ends, too."], x=320
    )
    assert passages(read(pdf([page]))) == [
        "The first column says one thing and ends there.",
        "The second column says another and ends, too.",
    ]


def test_a_table_has_its_header_as_title(read):
    rows = [("Model", "Power", "Weight"), ("KX-120", "120 W", "4 kg"), ("KX-200", "200 W", "6 kg")]
    page = [*paragraph(760, BODY), Text(72, 700, "Table 1: Models")]
    for number, row in enumerate(rows):
        page += [
            Text(72 + 120 * column, 680 - 16 * number, cell, 10, BOLD if number == 0 else "Helvetica") for column, cell in enumerate(row)
        ]
    document = read(pdf([page]))
    assert titles(document) == ["Model | Power | Weight"]
    assert passages(document)[1:] == ["Table 1: Models", "KX-120 | 120 W | 4 kg", "KX-200 | 200 W | 6 kg"]


def test_lists_and_code_keep_their_tags(read):
    page = [*paragraph(760, BODY), Text(80, 700, "• rubber ring"), Text(80, 686, "• grease")]
    page += [Text(72, 650, "def start():", 9, "Courier"), Text(93.6, 639, "return 1", 9, "Courier")]
    document = read(pdf([page]))
    tags = [(document.labels[document.spans.tag[span]], document.text_of(span)) for span in document.of_kind(Kind.PASSAGE)]
    assert tags[1:] == [("li", "rubber ring"), ("li", "grease"), ("code", "def start():\n    return 1")]


def test_a_line_that_ends_although_the_next_word_fits_ends_its_paragraph(read):
    items = ["the rubber ring", "grease of the kind that is sold for pumps", "a cloth"]
    assert passages(read(pdf([paragraph(760, BODY) + paragraph(720, items, x=90)])))[1:] == items


def test_a_paragraph_goes_on_after_the_page(read):
    pages = [
        paragraph(100, ["The sentence begins on this page and it is con-"]),
        paragraph(780, ["tinued on the next one, where it ends."]),
    ]
    document = read(pdf([[*paragraph(760, BODY), *pages[0]], [*pages[1], *paragraph(700, BODY)]]))
    [span] = [span for span in document.of_kind(Kind.PASSAGE) if "begins" in document.text_of(span)]
    assert document.text_of(span) == "The sentence begins on this page and it is continued on the next one, where it ends."
    assert document.places[span].page == 1


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["a con\x02", "tinued word"], "a continued word"),
        (["a self-", "made word"], "a self-made word"),
        (["a con-", "tinued word"], "a continued word"),
        (["North-", "South"], "North- South"),
    ],
)
def test_words_divided_at_the_end_of_a_line_are_joined(lines, text):
    assert joined_lines(lines) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (scanned(), "has no text, as if it were scanned"),
        (pdf([paragraph(700, BODY)], password="secret"), "is encrypted; save it without a password"),
        (report()[:400], "is damaged or no PDF"),
        (b"", "is damaged or no PDF"),
        (b"hello", "is damaged or no PDF"),
    ],
    ids=["scanned", "encrypted", "cut", "empty", "other"],
)
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_read(tmp_path, data, reason):
    (tmp_path / "bad.pdf").write_bytes(data)
    (tmp_path / "good.pdf").write_bytes(report())
    problems = []
    assert [document.id for document in pk.read(tmp_path, on_problem=problems.append)] == ["good.pdf"]
    [problem] = problems
    assert problem.path == str(tmp_path / "bad.pdf")
    assert reason in problem.reason
    with pytest.raises(UnreadableFile):
        list(pk.read(tmp_path / "bad.pdf"))


def test_without_the_extra_the_file_is_named_with_the_extra(tmp_path, monkeypatch):
    from perikope.formats._extraction import process

    start = process._START.replace("from perikope", "sys.modules['pypdfium2'] = None; from perikope", 1)
    monkeypatch.setattr(process, "_START", start)
    monkeypatch.setattr(process, "_PROCESSES", process.ReadingProcesses())
    (tmp_path / "a.pdf").write_bytes(report())
    (tmp_path / "b.md").write_text("Text.")
    problems = []
    assert [document.id for document in pk.read(tmp_path, on_problem=problems.append)] == ["b.md"]
    assert "[files]" in problems[0].reason
    process._PROCESSES.close()


def test_a_pdf_in_an_archive_is_read(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("docs/a.pdf", report())
    [document] = pk.read(tmp_path / "a.zip")
    assert document.title == "Pumps and their care"


def test_tags_decide_if_there_are_any(read):
    document = read((GOLDEN / "sources" / "pdf.browser.pdf").read_bytes())
    assert headings(document)[:2] == [(1, "Care"), (2, "Seals")]


def test_letters_of_formulas_are_plain_letters():
    from perikope.formats._extraction.pdf_text import _Collector

    collector = _Collector(None, None)
    units = [int.from_bytes("a𝑥₁".encode("utf-16-be")[start : start + 2]) for start in range(0, 8, 2)]
    assert "".join(map(collector._character, units)) == "ax₁"
    assert collector._character(0xDC00) == "\ufffd"
