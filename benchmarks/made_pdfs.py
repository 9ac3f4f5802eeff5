"""PDFs that real programs make from our own documentation, so that their headings are known: `pages --made FOLDER`.

Each layout is a source file, a program and its settings. A layout whose program is missing is left out. Expected
headings come from the source, not from the PDF.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from benchmarks.common import ROOT

DOCS = ROOT / "docs"
Heading = tuple[int, str]
"""Level, from 1, and text."""
_MARKDOWN = MarkdownIt().enable("table")
_SIGNS = {"›": ">", "…": "...", "≥": ">=", "≤": "<=", "×": "x", "→": "->", "–": "-", "—": "-", "’": "'", "“": '"', "”": '"', "−": "-"}


@dataclass(frozen=True, slots=True)
class Layout:
    """A PDF to make: the name of the file, its source, the program, and a function of source and result."""

    name: str
    source: Path
    program: str
    make: Callable[[Path, Path], None]

    def is_possible(self) -> bool:
        return self.source.exists() and (shutil.which(self.program) or find_spec(self.program)) is not None


def make_all(folder: Path) -> dict[Path, list[Heading]]:
    """Make the PDFs that are not in the folder yet. Returns the expected headings of each.

    They are kept beside the PDF, since its source may change.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[Path, list[Heading]] = {}
    for layout in LAYOUTS:
        pdf = (folder / f"{layout.name}.pdf").resolve()
        known = pdf.with_suffix(".json")
        if not pdf.exists() and layout.is_possible():
            layout.make(layout.source, pdf)
            known.write_text(json.dumps(expected(layout.source)), "utf-8")
        if pdf.exists():
            made[pdf] = [(level, text) for level, text in json.loads(known.read_text("utf-8"))]
    return made


def expected(source: Path) -> list[Heading]:
    """The headings of a Markdown file without its title, or of a manual page."""
    if source.suffix == ".gz":
        lines = gzip.decompress(source.read_bytes()).decode("utf-8").splitlines()
        found = [re.match(r"\.(SH|SS) +(.+)", line) for line in lines]
        return [(1 if one.group(1) == "SH" else 2, one.group(2).strip('"').replace("\\-", "-")) for one in found if one]
    headings = [(level, "".join(parts)) for kind, level, parts in _blocks(source) if kind == "heading"]
    is_title = bool(headings) and [level for level, _ in headings].count(1) == 1
    return [(level - is_title, _ascii(text)) for level, text in headings[is_title:]]


def _blocks(source: Path) -> Iterator[tuple[str, int, list[str]]]:
    """The blocks of a Markdown file: kind, level of a heading, and texts; a table has one text per row."""
    tokens = _MARKDOWN.parse(_ascii(source.read_text("utf-8")))
    kind, level, rows = "p", 0, []
    for token in tokens:
        if token.type == "heading_open":
            kind, level = "heading", int(token.tag[1])
        elif token.type == "list_item_open":
            kind = "li"
        elif token.type in ("heading_close", "list_item_close"):
            kind = "p"
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "table_close":
            yield "table", 0, ["\t".join(row) for row in rows]
            rows = []
        elif token.type == "fence":
            yield "code", 0, [token.content.rstrip("\n")]
        elif token.type == "inline":
            text = "".join(" " if part.type == "softbreak" else part.content for part in token.children or ())
            if rows:
                rows[-1].append(text)
            else:
                yield kind, level if kind == "heading" else 0, [text]


def _ascii(text: str) -> str:
    """A text that every program has fonts for."""
    return "".join(_SIGNS.get(sign, sign if ord(sign) < 128 else "") for sign in text)


def _plain_source(source: Path, pdf: Path) -> Path:
    """A copy of the source for pandoc, with the first heading as title."""
    # pandoc takes a fence with two words for text.
    text = re.sub(r"^(```\w+) .*$", r"\1", _ascii(source.read_text("utf-8")), flags=re.MULTILINE)
    copy = pdf.with_suffix(".md")
    if expected(source) and text.startswith("# "):
        first, _, rest = text.partition("\n")
        copy.write_text(f"---\ntitle: {json.dumps(first[2:])}\n---\n{rest}", "utf-8")
    return copy


def _run(*command: object, folder: Path) -> None:
    subprocess.run([str(one) for one in command], check=True, capture_output=True, cwd=folder)


def latex(*options: str, before: str = "", tables: bool = True) -> Callable[[Path, Path], None]:
    """pdfLaTeX by pandoc. `before` is put before the document. Two columns allow no tables of pandoc."""

    def make(source: Path, pdf: Path) -> None:
        copy, tex, head = _plain_source(source, pdf), pdf.with_suffix(".tex"), pdf.with_suffix(".head")
        head.write_text(before, "utf-8")
        without = pdf.with_suffix(".lua")
        without.write_text("" if tables else "function Table() return {} end", "utf-8")
        # In the copy, sections are one level lower than in a file without title.
        shift = "--shift-heading-level-by=-1"
        _run("pandoc", "-s", shift, "-H", head, "--lua-filter", without, *options, copy, "-o", tex, folder=pdf.parent)
        for _ in range(3):
            subprocess.run(["pdflatex", "-interaction=nonstopmode", tex.name], check=False, capture_output=True, cwd=pdf.parent)

    return make


def office(*, tagged: bool) -> Callable[[Path, Path], None]:
    """LibreOffice, from a Word file of pandoc."""

    def make(source: Path, pdf: Path) -> None:
        word = pdf.with_suffix(".docx")
        _run("pandoc", "--shift-heading-level-by=-1", _plain_source(source, pdf), "-o", word, folder=pdf.parent)
        settings = json.dumps({"UseTaggedPDF": {"type": "boolean", "value": str(tagged).lower()}})
        home = f"-env:UserInstallation=file://{pdf.parent.resolve()}/office"
        _run("soffice", home, "--headless", "--convert-to", f"pdf:writer_pdf_Export:{settings}", word.name, folder=pdf.parent)

    return make


def _html(source: Path, style: str) -> str:
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>{source.stem}</title><style>{style}</style>"]
    for kind, level, texts in _blocks(source):
        safe = [html.escape(text) for text in texts]
        if kind == "table":
            rows = ["".join(f"<{'td' if number else 'th'}>{cell}" for cell in row.split("\t")) for number, row in enumerate(safe)]
            parts.append(f"<table>{''.join(f'<tr>{row}' for row in rows)}</table>")
        else:
            tag = {"heading": f"h{level}", "code": "pre", "li": "li"}.get(kind, "p")
            parts.append(f"<{tag}>{safe[0]}</{tag}>")
    return "".join(parts)


def browser(style: str, *options: str) -> Callable[[Path, Path], None]:
    """Chromium's print."""

    def make(source: Path, pdf: Path) -> None:
        page = pdf.with_suffix(".html")
        page.write_text(_html(source, style), "utf-8")
        _run("chromium", "--headless", "--no-sandbox", "--disable-gpu", *options, f"--print-to-pdf={pdf}", page, folder=pdf.parent)

    return make


def weasy(style: str) -> Callable[[Path, Path], None]:
    """WeasyPrint."""

    def make(source: Path, pdf: Path) -> None:
        import weasyprint

        weasyprint.HTML(string=_html(source, style)).write_pdf(str(pdf))

    return make


def typst_pages(settings: str) -> Callable[[Path, Path], None]:
    """Typst."""

    def make(source: Path, pdf: Path) -> None:
        import typst

        def quoted(text: str) -> str:
            return json.dumps(text, ensure_ascii=False)

        parts = [settings]
        for kind, level, texts in _blocks(source):
            if kind == "heading":
                parts.append(f"#heading(level: {level}, {quoted(texts[0])})")
            elif kind == "table":
                rows = [row.split("\t") for row in texts]
                width = max(map(len, rows))
                cells = ", ".join(quoted(cell) for row in rows for cell in [*row, *[""] * (width - len(row))])
                parts.append(f"#table(columns: {width}, {cells})")
            else:
                call = {"code": "raw(block: true, {})", "li": "list({})"}.get(kind, "par({})")
                parts.append("#" + call.format(quoted(texts[0])))
        pdf.with_suffix(".typ").write_text("\n\n".join(parts), "utf-8")
        typst.compile(str(pdf.with_suffix(".typ")), output=str(pdf))

    return make


def troff(*options: str, columns: bool = False) -> Callable[[Path, Path], None]:
    """groff: a manual page, or `ms` by pandoc."""

    def make(source: Path, pdf: Path) -> None:
        text = pdf.with_suffix(".roff")
        if source.suffix == ".gz":
            text.write_bytes(gzip.decompress(source.read_bytes()))
        else:
            options = ("-s", "-t", "ms", "-V", "fontfamily=T", "--shift-heading-level-by=-1")
            _run("pandoc", *options, _plain_source(source, pdf), "-o", text, folder=pdf.parent)
            if columns:
                text.write_text(text.read_text("utf-8").replace(".LP", ".2C\n.LP", 1), "utf-8")
        done = subprocess.run(["groff", *options, "-t", "-k", "-Tpdf", text.name], check=True, capture_output=True, cwd=pdf.parent)
        pdf.write_bytes(done.stdout)

    return make


def platypus(source: Path, pdf: Path) -> None:
    """ReportLab's Platypus: a header and a page number on every page, tables with lines, no outline."""
    from reportlab.lib import colors
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, Preformatted, SimpleDocTemplate, Spacer, Table, TableStyle

    styles = getSampleStyleSheet()
    flow: list[Any] = []
    for kind, level, texts in _blocks(source):
        if kind == "table":
            cells = [[Paragraph(html.escape(cell), styles["BodyText"]) for cell in row.split("\t")] for row in texts]
            width = max(map(len, cells))
            rows = [row + [""] * (width - len(row)) for row in cells]
            flow += [Table(rows, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.grey)])), Spacer(1, 8)]
        elif kind == "code":
            flow.append(Preformatted("\n".join(line[:90] for line in texts[0].splitlines()), styles["Code"]))
        else:
            name = ("Title" if level == 1 else f"Heading{level - 1}") if kind == "heading" else "BodyText"
            flow.append(Paragraph(("• " if kind == "li" else "") + html.escape(texts[0]), styles[name]))

    def furniture(canvas: Any, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 810, f"perikope, {source.stem}")
        canvas.drawRightString(523, 30, f"Page {document.page}")

    SimpleDocTemplate(str(pdf), pagesize=(595, 842)).build(flow, onFirstPage=furniture, onLaterPages=furniture)


_NO_OUTLINE = r"\AtBeginDocument{\hypersetup{bookmarks=false}}"
_TWO = "body{columns:2;font:10pt/1.35 serif}h1{column-span:all}table{font-size:8pt}pre{white-space:pre-wrap}"
_THREE = (
    "@page{size:A4 landscape;margin:15mm;@bottom-center{content:counter(page)}}body{columns:3;font:9pt/1.3 sans-serif}"
    "h1,h2,h3{bookmark-level:none}pre{white-space:pre-wrap;font-size:7pt}table{font-size:7pt}"
)
_TYPST = '#set page(columns: 2, numbering: "1")\n#set text(9pt)\n#set heading(bookmarked: false)'

LAYOUTS: Sequence[Layout] = (
    Layout(
        "latex-two-columns", ROOT / "ARCHITECTURE.md", "pdflatex",
        latex("-V", "classoption=twocolumn", before=_NO_OUTLINE, tables=False),
    ),
    Layout(
        "latex-report", DOCS / "guide.md", "pdflatex",
        latex("-N", "--toc", "-V", "documentclass=report", "--top-level-division=chapter", before=_NO_OUTLINE),
    ),
    Layout("latex-koma-outline", DOCS / "performance.md", "pdflatex", latex("-N", "-V", "documentclass=scrartcl")),
    Layout("office", DOCS / "neural.md", "soffice", office(tagged=False)),
    Layout("office-tagged", DOCS / "serving.md", "soffice", office(tagged=True)),
    Layout("browser-two-columns", ROOT / "CONTRIBUTING.md", "chromium", browser(_TWO, "--disable-pdf-tagging")),
    Layout("weasyprint-three-columns", ROOT / "CHANGELOG.md", "weasyprint", weasy(_THREE)),
    Layout("typst-two-columns", DOCS / "keys.md", "typst", typst_pages(_TYPST)),
    Layout("groff-ms", DOCS / "parameters.md", "gropdf", troff("-ms")),
    Layout("groff-ms-two-columns", DOCS / "models.md", "gropdf", troff("-ms", columns=True)),
    Layout("groff-man", Path("/usr/share/man/man8/apt-get.8.gz"), "gropdf", troff("-man")),
    Layout("platypus", DOCS / "formats.md", "reportlab", platypus),
)  # fmt: skip
