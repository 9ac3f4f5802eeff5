"""The words of a file in reading order, according to other programs. Each function takes a path and returns a text."""

from __future__ import annotations

import csv
import email
import email.header
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, time
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any

SECONDS = 120


class NoWords(Exception):
    """The program is not installed, or cannot read the file."""


def by_pandoc(path: Path, reader: str) -> str:
    """The texts of pandoc's tree. Numbers of list items and notes, which pandoc writes itself, are not part of it."""
    sys.setrecursionlimit(100_000)  # The tree may be nested deeply.
    tree = json.loads(_output("pandoc", "--from", reader, "--to", "json", "--track-changes=accept", "--sandbox", str(path)))
    texts: list[str] = []
    title = tree["meta"].get("title", {})
    if title.get("t") in ("MetaInlines", "MetaBlocks"):
        _gather(title["c"], texts)
        texts.append("\n")
    _gather(tree["blocks"], texts)
    return "".join(texts)


_APART = frozenset((
    "Para", "Plain", "Header", "CodeBlock", "LineBlock", "BlockQuote", "BulletList", "OrderedList", "DefinitionList", "Table", "Div",
    "Space", "SoftBreak", "LineBreak", "Note", "Cell", "Row",
))  # fmt: skip


def _gather(node: Any, texts: list[str]) -> None:
    if isinstance(node, list):
        for child in node:
            # A cell, a row and a term of a list are lists without a name.
            if isinstance(child, list):
                texts.append(" ")
            _gather(child, texts)
        return
    if not isinstance(node, dict) or "t" not in node:
        return
    name, content = node["t"], node.get("c")
    if name in _APART:
        texts.append(" ")
    if name == "Str":
        texts.append(content)
    elif name in ("Code", "CodeBlock", "Math"):
        texts.append(content[-1])
    elif name in ("Link", "Image"):
        # Descriptions of pictures and addresses are no text of the file.
        if name == "Link":
            _gather(content[1], texts)
    elif name == "Cite":
        _gather(content[1], texts)
    elif name not in ("RawInline", "RawBlock"):
        _gather(content, texts)
    if name in _APART:
        texts.append(" ")


def by_asciidoctor(path: Path) -> str:
    """AsciiDoc as the HTML of asciidoctor, read by pandoc, without lines that include a file, which become links."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.adoc"
        whole.write_bytes(re.sub(rb"(?m)^include::.*$", b"", path.read_bytes()))
        page = _output("asciidoctor", "--safe-mode", "secure", "--no-header-footer", "-a", "showtitle", "-o", "-", str(whole))
        made = Path(folder) / "page.html"
        made.write_bytes(page)
        return by_pandoc(made, "html")


def by_pptx(path: Path) -> str:
    """Slides as python-pptx sees them: shapes, groups, tables, charts and notes."""
    import pptx

    texts: list[str] = []
    for slide in pptx.Presentation(str(path)).slides:
        title = slide.shapes.title
        if title is not None:
            texts.append(title.text_frame.text)
        texts += _shapes(shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            texts.append(slide.notes_slide.notes_text_frame.text)
    return "\n".join(texts)


def _shapes(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if getattr(shape, "shapes", None) is not None:
            yield from _shapes(shape.shapes)
        elif shape.is_placeholder and shape.placeholder_format.type is not None and int(shape.placeholder_format.type) in (13, 15, 16):
            continue
        elif shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False) and shape.has_table:
            yield from (cell.text_frame.text for row in shape.table.rows for cell in row.cells)
        elif getattr(shape, "has_chart", False) and shape.has_chart:
            chart = shape.chart
            if chart.has_title and chart.chart_title.has_text_frame:
                yield chart.chart_title.text_frame.text
            for plot in chart.plots:
                yield from (series.name for series in plot.series)
                yield from map(str, plot.categories)


def by_openpyxl(path: Path) -> str:
    """Workbooks as openpyxl sees them, with the names of sheets that have cells."""
    import warnings

    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            book = openpyxl.load_workbook(path, data_only=True)
        except Exception as error:
            raise NoWords(f"openpyxl: {error}") from None
    texts: list[str] = []
    for sheet in book.worksheets:
        cells = [_shown(cell.value, cell.number_format) for row in sheet.iter_rows() for cell in row if cell.value not in (None, "")]
        texts += [sheet.title, *cells] if cells else []
    return "\n".join(texts)


def _shown(value: Any, number_format: str) -> str:
    """A value as a person reads it, as far as openpyxl knows; units in the formats of numbers are left out."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds" if value.second else "minutes") if value.time() != time() else value.date().isoformat()
    if isinstance(value, float):
        value = value * 100 if "%" in number_format else value
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"
    if isinstance(value, time):
        return value.isoformat("seconds" if value.second else "minutes")
    return str(value * 100 if isinstance(value, int) and "%" in number_format else value)


def by_polars(path: Path) -> str:
    """Parquet as polars reads it."""
    import polars

    table = polars.read_parquet(path)
    texts = [*table.columns, *("" if value is None else str(value) for row in table.iter_rows() for value in row)]
    return "\n".join(texts)


def by_cells(path: Path) -> str:
    """The cells of a notebook; those of text as pandoc reads Markdown."""
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "cell.md"
        notebook = json.loads(path.read_text("utf-8"))
        for cell in notebook.get("cells") or [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]:
            text = "".join(cell.get("source", cell.get("input", "")))
            made.write_text(text, "utf-8")
            texts.append(text if cell["cell_type"] == "code" else by_pandoc(made, "gfm"))
    return "\n".join(texts)


def by_csv(path: Path) -> str:
    """The fields of a table by the dialect that its suffix means."""
    text = path.read_text("utf-8-sig")
    return "\n".join(cell for row in csv.reader(io.StringIO(text), delimiter="\t" if path.suffix == ".tsv" else ",") for cell in row)


def by_parts(path: Path) -> str:
    """The subject and the first text of a message, with the functions of Python's e-mail package for version 3.2."""
    message = email.message_from_bytes(path.read_bytes())
    texts = [part for part in message.walk() if part.get_content_type() == "text/plain" and not _is_attached(part)]
    pages = [part for part in message.walk() if part.get_content_type() == "text/html" and not _is_attached(part)]
    subject = "".join(
        text if isinstance(text, str) else text.decode(charset or "ascii", "replace")
        for text, charset in email.header.decode_header(message.get("subject", ""))
    )
    if not texts and not pages:
        raise NoWords("the message has no text")
    chosen = (texts or pages)[0]
    body = chosen.get_payload(decode=True).decode(chosen.get_content_charset() or "ascii", "replace")
    if texts:
        return f"{subject}\n{body}"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "page.html"
        made.write_text(body, "utf-8")
        return f"{subject}\n{by_pandoc(made, 'html')}"


def _is_attached(part: Message) -> bool:
    return (part.get("content-disposition") or "").strip().lower().startswith("attachment")


def by_soffice(path: Path) -> str:
    """The text that LibreOffice saves."""
    with tempfile.TemporaryDirectory() as folder:
        profile = f"-env:UserInstallation=file://{folder}/profile"
        _output("soffice", profile, "--headless", "--convert-to", "txt:Text (encoded):UTF8", "--outdir", folder, str(path))
        made = next(Path(folder).glob("*.txt"), None)
        if made is None:
            raise NoWords("soffice does not read this file")
        return made.read_text("utf-8-sig")


def by_unrtf(path: Path) -> str:
    """The text that unrtf finds, without the lines that it adds."""
    text = _output("unrtf", "--text", "--nopict", str(path)).decode("utf-8", "replace")
    return "\n".join(line for line in text.split("\n") if not line.startswith("###"))


def by_pdftotext(path: Path) -> str:
    """The text that poppler finds."""
    return _output("pdftotext", str(path), "-").decode("utf-8", "replace")


def _output(*command: str) -> bytes:
    if shutil.which(command[0]) is None:
        raise NoWords(f"{command[0]} is not installed")
    try:
        return subprocess.run(command, check=True, capture_output=True, timeout=SECONDS).stdout
    except subprocess.CalledProcessError as error:
        raise NoWords(f"{command[0]}: {error.stderr.decode(errors='replace')[:100]}") from None
    except subprocess.TimeoutExpired:
        raise NoWords(f"{command[0]} takes more than {SECONDS} seconds") from None


_PANDOC = {
    ".docx": "docx",
    ".odt": "odt",
    ".epub": "epub",
    ".rtf": "rtf",
    ".org": "org",
    ".rst": "rst",
    ".tex": "latex",
}

EXTRACTORS: dict[str, Callable[[Path], str]] = {
    **{suffix: partial(by_pandoc, reader=reader) for suffix, reader in _PANDOC.items()},
    ".ipynb": by_cells,
    ".adoc": by_asciidoctor,
    ".asciidoc": by_asciidoctor,
    ".pptx": by_pptx,
    ".xlsx": by_openpyxl,
    ".parquet": by_polars,
    ".csv": by_csv,
    ".tsv": by_csv,
    ".eml": by_parts,
    ".pdf": by_pdftotext,
}
"""The program for each suffix."""
OTHERS: dict[str, dict[str, Callable[[Path], str]]] = {
    "soffice": dict.fromkeys((".docx", ".odt", ".rtf"), by_soffice),
    "unrtf": {".rtf": by_unrtf},
}
"""Other programs, by their name."""
