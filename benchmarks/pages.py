"""What PDFs cost: `python -m benchmarks pages`.

`effect` renders the pages of conditionalqa to PDF with Chromium and indexes the PDFs. Judgements are mapped by text: a
judged passage becomes the passages of the same document whose text equals it, contains it or is part of it, ignoring
everything but letters and digits. It compares the rankings of the default model. `speed` measures milliseconds per page
of PDF files (`--pdf FILE …`), beside PDFium and kreuzberg alone (to be installed for this). It also counts
the passages whose words are on their page and
in their rectangle. `--headings` compares the headings of these files with those that we counted by hand
(`benchmarks/headings`), or that the sources of the PDFs have (`--made FOLDER`).
"""

from __future__ import annotations

import argparse
import html
import json
import resource
import shutil
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import perikope as pk
from benchmarks.common import SCRATCH, Table, publish, shared_data
from benchmarks.made_pdfs import make_all
from benchmarks.pdf_checks import PageTexts, check_pages, compare_headings, counted_by_hand, letters, listed
from perikope.document.tree import Document, Kind

STYLE = "body{font:11pt/1.4 serif}table{border-collapse:collapse}td,th{border:1px solid;padding:2pt 6pt}"
SHORT = 12
"""Letters of the shortest passage that may be mapped to a part of another passage."""


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pages", description=__doc__)
    parser.add_argument("--markdown", metavar="FILE")
    parser.add_argument("--chromium", default="chromium", metavar="PROGRAM")
    parser.add_argument("--pdf", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--made", type=Path, metavar="FOLDER", help="make PDFs there, and add them to those of --pdf")
    parser.add_argument("--headings", action="store_true", help="compare headings with those that are there")
    parser.add_argument("--hidden", action="store_true", help="compare headings with the outline, which the reader does not see")
    options = parser.parse_args(arguments)
    made = make_all(options.made) if options.made else {}
    files = [*options.pdf, *made]
    if options.headings or options.hidden:
        tables = [headings(files, made, options.hidden)]
    else:
        tables = [speed(files)] if files else [effect(shared_data() / "conditionalqa", options.chromium)]
    publish(tables, options.markdown)


def effect(data: Path, chromium: str) -> Table:
    """nDCG@10 of the default model from JSON Lines and from PDF."""
    table = Table("conditionalqa from JSON Lines and from PDF", ("source", "passages", "judgements mapped", "nDCG@10", "RR"))
    folder = SCRATCH / "pages"
    given = [json.loads(line) for line in (data / "documents.jsonl").read_text("utf-8").splitlines()]
    documents = list(pk.read(data / "documents.jsonl"))
    qrels = [line.split() for line in (data / "qrels.txt").read_text("utf-8").splitlines()]
    table.rows.append(_row("JSON Lines", documents, qrels, {}, data / "topics.tsv", folder))
    for name, extra in (("PDF with tags", ()), ("PDF without tags", ("--disable-pdf-tagging",))):
        pdfs = folder / name.replace(" ", "-")
        render(given, pdfs, chromium, extra)
        read = list(pk.read(pdfs))
        found = mapping(documents, read)
        table.rows.append(_row(name, read, qrels, found, data / "topics.tsv", folder))
    table.notes.append("A judged passage that is mapped to several passages gives its grade to each of them.")
    return table


def render(documents: Sequence[Mapping[str, Any]], folder: Path, chromium: str, extra: Sequence[str]) -> None:
    """Print each document that has no PDF yet."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "page.html"
    for document in documents:
        pdf = folder / f"{document['id']}.pdf"
        if not pdf.exists():
            page.write_text(as_html(document), "utf-8")
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", *extra, f"--print-to-pdf={pdf}"]
            subprocess.run([chromium, *options, str(page)], check=True, capture_output=True)
    page.unlink(missing_ok=True)


def as_html(document: Mapping[str, Any]) -> str:
    title = html.escape(document["title"])
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
    return head + "".join(_html_of(document, 2))


def _html_of(section: Mapping[str, Any], level: int) -> Iterator[str]:
    is_list = is_table = False
    for passage in section.get("passages", ()):
        text, tag = html.escape(passage["text"]), passage["tag"]
        if (tag == "li") != is_list:
            is_list = not is_list
            yield "<ul>" if is_list else "</ul>"
        if (tag == "tr") != is_table:
            is_table = not is_table
            yield "<table>" if is_table else "</table>"
        cells = "".join(f"<td>{cell.strip()}" for cell in text.split("|"))
        yield f"<tr>{cells}" if is_table else f"<li>{text}</li>" if is_list else f"<p>{text}</p>"
    yield "</ul>" if is_list else "</table>" if is_table else ""
    for inner in section.get("sections", ()):
        yield f"<h{min(level, 6)}>{html.escape(inner.get('title', ''))}</h{min(level, 6)}>"
        yield from _html_of(inner, level + 1)


def mapping(original: Sequence[Document], read: Sequence[Document]) -> dict[str, list[str]]:
    """The names of the passages that were read from PDF, by the name of each original passage."""
    of_document = {document.id.removesuffix(".pdf"): document for document in read}
    found: dict[str, list[str]] = {}
    for document in original:
        if document.id not in of_document:
            continue
        other = of_document[document.id]
        texts = {f"{other.id}#{name}": letters(text) for name, text in _passages(other)}
        taken: defaultdict[str, int] = defaultdict(int)
        for name, text in _passages(document):
            wanted = letters(text)
            equal = [there for there, content in texts.items() if content == wanted]
            # Of several equal passages, the n-th is mapped to the n-th.
            chosen = [equal[min(taken[wanted], len(equal) - 1)]] if equal else []
            taken[wanted] += 1
            if not chosen and len(wanted) >= SHORT:
                chosen = [there for there, content in texts.items() if wanted in content or (len(content) >= SHORT and content in wanted)]
            if chosen:
                found[f"{document.id}#{name}"] = chosen
    return found


def _passages(document: Document) -> Iterator[tuple[str, str]]:
    for number, span in enumerate(document.of_kind(Kind.PASSAGE)):
        yield document.span_ids.get(span, f"@{number + 1}"), document.text_of(span)


def _row(
    name: str,
    documents: Sequence[Document],
    qrels: Sequence[Sequence[str]],
    found: Mapping[str, Sequence[str]],
    topics: Path,
    folder: Path,
) -> tuple[str, ...]:
    index_folder = folder / f"{name.replace(' ', '-')}.index"
    shutil.rmtree(index_folder, ignore_errors=True)
    with pk.Index.create(index_folder) as index:
        index.add(documents)
    judged, mapped = defaultdict(dict), 0
    for qid, _, passage, grade in qrels:
        names = found.get(passage, ()) if found else [passage]
        mapped += bool(names)
        for one in names:
            judged[qid][one] = max(int(grade), judged[qid].get(one, 0))
        judged[qid].setdefault("lost", 0)
        if not names:
            # A passage that is lost counts as one that no ranking finds.
            judged[qid][f"lost-{passage}"] = int(grade)
    index = pk.Index.open(index_folder)
    gains, ranks = [], []
    for line in topics.read_text("utf-8").splitlines():
        qid, _, query = line.partition("\t")
        if any(judged.get(qid, {}).values()):
            ranking = [hit for hit, _ in index.search(query, k=10).names()]
            gains.append(ndcg(ranking, judged[qid]))
            ranks.append(next((1 / rank for rank, hit in enumerate(ranking, 1) if judged[qid].get(hit)), 0.0))
    passages = sum(1 for document in documents for _ in document.of_kind(Kind.PASSAGE))
    share = f"{mapped} of {len(qrels)} ({mapped / len(qrels):.1%})"
    return name, f"{passages:,}", share, f"{statistics.fmean(gains):.4f}", f"{statistics.fmean(ranks):.4f}"


def ndcg(ranking: Sequence[str], judged: Mapping[str, int]) -> float:
    from math import log2

    gained = sum(judged.get(hit, 0) / log2(rank + 1) for rank, hit in enumerate(ranking[:10], 1))
    best = sum(grade / log2(rank + 1) for rank, grade in enumerate(sorted(judged.values(), reverse=True)[:10], 1))
    return gained / best


def speed(files: Sequence[Path]) -> Table:
    """What PDFs contain, and CPU milliseconds per page: the text of PDFium, kreuzberg's document, and our blocks."""
    import kreuzberg
    import pypdfium2

    from perikope.formats._extraction.blocks import Unreadable
    from perikope.formats._extraction.pdf import read_pdf

    def page_texts(data: bytes) -> list[str]:
        document = pypdfium2.PdfDocument(data)
        return [document[number].get_textpage().get_text_range() for number in range(len(document))]

    def nodes(data: bytes) -> None:
        config = kreuzberg.ExtractionConfig(include_document_structure=True, use_cache=False, output_format="markdown")
        kreuzberg.extract_bytes_sync(data, "application/pdf", config=config)

    columns = (
        "file", "pages", "headings", "passages", "on their page", "in their rectangle", "on another page too",
        "PDFium, text only", "kreuzberg", "perikope",
    )  # fmt: skip
    table = Table("PDFs: contents, and CPU milliseconds per page", columns)
    for path in files:
        data = path.read_bytes()
        try:
            blocks = read_pdf(data).blocks
        except Unreadable as problem:
            table.rows.append((path.name, str(problem)))
            continue
        pages = PageTexts(data)
        counts = check_pages(blocks, pages)
        times = [f"{seconds / len(pages) * 1000:.1f}" for seconds in _cpu((page_texts, nodes, read_pdf), data)]
        headings = sum(block.kind == "heading" for block in blocks)
        table.rows.append((path.name, str(len(pages)), str(headings), *map(str, counts), *times))
    table.notes.append("All words of a passage must be on its page, or go on at the next one, in the text of PDFium.")
    table.notes.append("The last column of counts is the same check with the page after the next one: what it lets pass by chance.")
    return table


def headings(files: Sequence[Path], known: Mapping[Path, Sequence[tuple[int, str]]], hidden: bool) -> Table:
    """Headings that were found, compared with those that are there.

    They are known from the source of a PDF, counted by hand, or listed in its outline. With `hidden`, the reader does
    not see the outline.
    """
    from perikope.formats._extraction import pdf

    columns = ("file", "expected", "right", "other level", "missed", "besides")
    table = Table("Headings of PDFs" + (", outline hidden from the reader" if hidden else ""), columns)
    sums = [0] * (len(columns) - 1)
    outline_of = pdf.outline_of
    for path in files:
        data = path.read_bytes()
        expected = counted_by_hand(path.stem) or [(str(level), text) for level, text in known.get(path, ())]
        if hidden:
            expected, pdf.outline_of = listed(data, outline_of), lambda document: []
        try:
            found = [(block.level, block.text) for block in pdf.read_pdf(data).blocks if block.kind == "heading"]
        finally:
            pdf.outline_of = outline_of
        count = compare_headings(expected, found)
        row = [count.expected, count.right, count.other_level, len(count.missed), len(count.besides)]
        sums = [total + value for total, value in zip(sums, row, strict=True)]
        table.rows.append((path.name, *map(str, row)))
        table.notes += [f"{path.name} lacks: {text}" for text in count.missed] + [
            f"{path.name} has besides: {text}" for text in count.besides
        ]
    table.rows.append(("all", *map(str, sums)))
    return table


def _cpu(actions: Sequence[Callable[[bytes], Any]], data: bytes) -> list[float]:
    """The least CPU seconds of each action. They take turns, so that all have the same share of a busy machine."""
    best = [float("inf")] * len(actions)
    for _ in range(3):
        for number, action in enumerate(actions):
            before = _used()
            action(data)
            best[number] = min(best[number], _used() - before)
    return best


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
