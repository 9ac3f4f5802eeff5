"""Writes the golden sources that other programs make: `python -m tests.golden.make_files`.

It needs python-docx, python-pptx, openpyxl, pyarrow, and the programs soffice, chromium and pdflatex. The files are
kept, since the tests must not need these programs. Each has less than 30 KB.
"""

from __future__ import annotations

import io
import json
import subprocess
import tempfile
import zipfile
from pathlib import Path

from tests.support.trees import GOLDEN

SOURCES = GOLDEN / "sources"
TABLE = [["Model", "Power", "Weight"], ["KX-120", "120 W", "4 kg"], ["KX-200", "200 W", "6 kg"]]
CSS = "body{font:11pt serif}h1,h2,h3,th{font-weight:normal}@page{size:A5;margin:15mm}"
PAGE = f"""<!doctype html><html lang=en><head><title>Pump manual</title><style>{CSS}</style></head><body><h1>Pump manual</h1>
<p>A heat pump moves heat from a cold place to a warm place, and it takes power to do that.</p><h2>Care</h2>
<p>Clean the filter every month.</p><ul><li>rubber ring</li><li>grease</li></ul><h3>Seals</h3><p>Replace the seal.</p>
<table><caption>All models</caption><thead><tr><th>Model<th>Power</thead><tr><td>KX-120<td>120 W<tr><td>KX-200<td>200 W
</table><h2 style="break-before:page">Models</h2><p>All models run on 230 V.</p></body></html>"""
LATEX = r"""\documentclass{article}\usepackage{multicol}\usepackage[margin=2cm]{geometry}
\newcommand{\filler}[1]{A heat pump moves heat from a cold place to a warm place (#1), and it takes power. The refrigerant
evaporates at a low temperature and condenses at a higher one. }
\begin{document}\section{Three columns}\begin{multicols}{3}\filler{one}\filler{two}\filler{three}

\filler{four}\filler{five}\filler{six}\subsection{Inner part}\filler{seven}\filler{eight}\filler{nine}

\filler{ten}\end{multicols}\section{After them}\filler{eleven}\end{document}
"""
CONTAINER = """<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">pump</dc:identifier><dc:title>Pump book</dc:title>
<dc:language>en</dc:language><dc:creator>Ann Cook</dc:creator></metadata><manifest>
<item id="one" href="one.xhtml" media-type="application/xhtml+xml"/><item id="two" href="two.xhtml" media-type="application/xhtml+xml"/>
</manifest><spine><itemref idref="one"/><itemref idref="two"/></spine></package>"""
CHAPTERS = {
    "one.xhtml": "<h1>Care</h1><p>Clean the filter every month.</p><h2>Seals</h2><p>Replace the seal.</p><ul><li>grease</li></ul>",
    "two.xhtml": "<h1>Models</h1><table><tr><th>Model</th><th>Power</th></tr><tr><td>KX-120</td><td>120 W</td></tr></table>",
}


def main() -> None:
    word()
    slides()
    workbook()
    book()
    notebook()
    parquet()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("odt", "rtf"):
            run(folder, "soffice", "--headless", "--convert-to", kind, str(SOURCES / "files.manual.docx"))
            (SOURCES / f"files.manual.{kind}").write_bytes((Path(folder) / f"files.manual.{kind}").read_bytes())
        (Path(folder) / "page.html").write_text(PAGE, "utf-8")
        run(folder, "chromium", "--headless", "--no-sandbox", "--no-pdf-header-footer", "--print-to-pdf=page.pdf", "page.html")
        (SOURCES / "pdf.browser.pdf").write_bytes((Path(folder) / "page.pdf").read_bytes())
        (Path(folder) / "columns.tex").write_text(LATEX, "utf-8")
        run(folder, "pdflatex", "-interaction=batchmode", "columns.tex")
        (SOURCES / "pdf.latex.pdf").write_bytes((Path(folder) / "columns.pdf").read_bytes())


def run(folder: str, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def word() -> None:
    import docx

    document = docx.Document()
    document.core_properties.title, document.core_properties.author = "Pump manual", "Ann Cook"
    document.add_heading("Pump manual", 0)
    document.add_heading("Care", 1)
    document.add_paragraph("Clean the filter every month.")
    document.add_heading("Seals", 2)
    document.add_paragraph("Replace the seal once a year.")
    for item in ("rubber ring", "grease"):
        document.add_paragraph(item, style="List Bullet")
    document.add_heading("Models", 1)
    document.add_paragraph("Table 1: Models", style="Caption")
    table = document.add_table(3, 3)
    for row, cells in enumerate(TABLE):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    document.add_paragraph("All models run on 230 V.")
    document.sections[0].header.paragraphs[0].text = "Pump manual, edition 3"
    document.sections[0].footer.paragraphs[0].text = "confidential"
    document.save(str(SOURCES / "files.manual.docx"))
    _repack(SOURCES / "files.manual.docx")


def slides() -> None:
    import pptx

    presentation = pptx.Presentation()
    first = presentation.slides.add_slide(presentation.slide_layouts[0])
    first.shapes.title.text, first.placeholders[1].text = "Pump training", "For fitters"
    second = presentation.slides.add_slide(presentation.slide_layouts[1])
    second.shapes.title.text, second.placeholders[1].text = "Start the pump", "Open the valve."
    item = second.placeholders[1].text_frame.add_paragraph()
    item.text, item.level = "Press the green button.", 1
    third = presentation.slides.add_slide(presentation.slide_layouts[5])
    third.shapes.title.text = "Models"
    inch = 914400
    table = third.shapes.add_table(3, 3, inch, 2 * inch, 4 * inch, inch).table
    for row, cells in enumerate(TABLE):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    presentation.save(str(SOURCES / "files.training.pptx"))
    _repack(SOURCES / "files.training.pptx")


def workbook() -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Models"
    for row in (["Model", "Power", "Weight"], ["KX-120", 120, 4.5], ["KX-200", 200, 6]):
        book.active.append(row)
    prices = book.create_sheet("Prices")
    for row in (["Model", "Price"], ["KX-120", 250], ["KX-200", None]):
        prices.append(row)
    book.save(SOURCES / "files.models.xlsx")


def _repack(path: Path, leave_out: str = "printerSettings") -> None:
    """Compress an office file as well as possible, and leave out its pictures."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members.items():
            if "thumbnail" not in name and leave_out not in name:
                archive.writestr(name, data)


def book() -> None:
    with zipfile.ZipFile(SOURCES / "files.book.epub", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("book.opf", PACKAGE)
        for name, body in CHAPTERS.items():
            page = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Chapter</title></head><body>{body}</body></html>'
            archive.writestr(name, page)


def notebook() -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Pump notebook\n", "\n", "The *flow* is measured."]},
        {"cell_type": "code", "metadata": {}, "source": ["flow = measure()\n", "print(flow)"], "outputs": [{"text": ["not indexed"]}]},
        {"cell_type": "markdown", "metadata": {}, "source": "## Result\n\nIt is enough."},
    ]
    content = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    (SOURCES / "files.flow.ipynb").write_text(json.dumps(content, indent=1), "utf-8")


def parquet() -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {"model": ["KX-120", "KX-200"], "power": [120, 200], "note": ["quiet", None]}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    (SOURCES / "files.models.parquet").write_bytes(buffer.getvalue())


if __name__ == "__main__":
    main()
