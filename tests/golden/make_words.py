"""Writes sources with much that readers lose, and the words of all files: `python -m tests.golden.make_words`.

The words are those that other programs find (`benchmarks/word_sources.py`: pandoc, LibreOffice, python-pptx,
openpyxl, asciidoctor, polars, pdftotext). They are kept in `tests/golden/words`, since the tests must not need
these programs.
"""

from __future__ import annotations

from datetime import datetime

from benchmarks.word_sources import EXTRACTORS, OTHERS, NoWords
from benchmarks.words import words_in

from tests.golden.make_files import SOURCES, _repack
from tests.support.trees import GOLDEN

WORDS = GOLDEN / "words"
RTF = rb"""{\rtf1\ansi\ansicpg1252\deff0\uc1
{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial CYR;}{\f2\fcharset128 MS Gothic;}}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s2\outlinelevel1 heading 2;}}
{\info{\title Pump codes}{\author Ann Cook}}
{\header\pard Never read this header\par}
\pard\s1 Signs\par
\pard\plain A \'fcber a < b & c > d, \u8364?100, caf\u233e, \'93quoted\'94 and \u-10179?\u-8704? end.\par
{\pard\f1 \'cd\'e0\'f1\'ee\'f1\par}
{\pard\f2 \'83\'7c\'83\'93\'83\'76\par}
\pard\s2 Notes\par
\pard\plain Text{\footnote\pard\plain The note below.} goes on.{\v hidden words}{\*\unknown never this}\par
\trowd\trhdr\cellx1000\cellx2000\pard\intbl Model\cell Power\cell\row
\trowd\cellx1000\cellx2000\pard\intbl KX-120\cell 120 W\par second line\cell\row
\pard {\field{\*\fldinst HYPERLINK "http://example.org"}{\fldrslt linked text}} last.\par
}"""
ORG = """#+TITLE: Pump notes
* TODO [#A] Care of /pumps/ :work:
:PROPERTIES:
:CUSTOM_ID: care
:END:
Clean a < b & c > d with *bold* =verbatim= and [[https://example.org][a link]][fn:1].
- term :: its description
  goes on
- [ ] open item

  with a second paragraph
1. one
   - nested
#+BEGIN_QUOTE
Quoted text.
#+END_QUOTE
# never this comment
#+BEGIN_EXAMPLE
,* star
#+END_EXAMPLE
: fixed text
| Model | Power |
|-------+-------|
| KX-120 | 120 W |

[fn:1] The note below.
* Second heading
Last words.
"""


def main() -> None:
    (SOURCES / "files.codes.rtf").write_bytes(RTF)
    (SOURCES / "files.notes.org").write_text(ORG, "utf-8")
    slides()
    workbook()
    WORDS.mkdir(exist_ok=True)
    for path in sorted(SOURCES.iterdir()):
        # pandoc 2.17 does not know code pages of RTF, and leaves out the text of links.
        extract = OTHERS["soffice"][".rtf"] if path.suffix == ".rtf" else EXTRACTORS.get(path.suffix)
        if extract is not None and path.name.startswith(("files.", "pdf.")):
            try:
                words = words_in(extract(path))
            except NoWords as problem:
                raise SystemExit(f"{path.name}: {problem}") from None
            (WORDS / f"{path.name}.txt").write_text(" ".join(words) + "\n", "utf-8")


def slides() -> None:
    import pptx
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    inch = 914400
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Signs & groups"
    outer = slide.shapes.add_group_shape()
    outer.shapes.add_textbox(0, 0, inch, inch).text_frame.text = "a < b > c"
    inner = outer.shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, inch, inch).text_frame.text = "deep in a group"
    data = CategoryChartData()
    data.categories = ["spring", "autumn"]
    data.add_series("boiler", ("3", "4"))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, inch, inch, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Heat by season"
    slide.notes_slide.notes_text_frame.text = "Tell them about frost."
    plain = presentation.slides.add_slide(presentation.slide_layouts[6])
    plain.shapes.add_textbox(0, 0, inch, inch).text_frame.text = "A slide without title"
    presentation.save(str(SOURCES / "files.groups.pptx"))
    _repack(SOURCES / "files.groups.pptx", leave_out="embeddings")


def workbook() -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Signs"
    for row in (
        ["A < B & C"],
        ["Model", "Bought", "Share", "Works"],
        ["KX-120", datetime(2013, 4, 1), 0.5, True],
        ["KX-200", None, 1.25, False],
    ):
        sheet.append(row)
    sheet["B3"].number_format, sheet["C3"].number_format = "dd/mm/yyyy", "0%"
    sheet.merge_cells("A1:D1")
    hidden = book.create_sheet("Hidden")
    hidden.sheet_state = "hidden"
    hidden.append(["hidden words", 0.1 + 0.2])
    book.save(SOURCES / "files.signs.xlsx")


if __name__ == "__main__":
    main()
