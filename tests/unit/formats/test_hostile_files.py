"""Hostile files: each is named with one reason, within its time and memory, and the rest is read."""

from __future__ import annotations

import io
import os
import sys
import zipfile
import zlib

import pytest

import perikope as pk
from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import UnreadableFile
from perikope.formats import FileLimits
from perikope.formats._extraction import process
from tests.support.pdfs import Text, pdf
from tests.support.trees import GOLDEN

SECRET = "the secret of the machine"
LAUGHS = "<!DOCTYPE x [" + "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9)) + '<!ENTITY a0 "laugh">]>'
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)


def word(body: str, doctype: str = "", extra: dict[str, bytes] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr("_rels/.rels", RELATIONS)
        archive.writestr(
            "word/document.xml", f'<?xml version="1.0"?>{doctype}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
        )
        for name, data in (extra or {}).items():
            archive.writestr(name, data)
    return buffer.getvalue()


def run_of(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def raw_pdf(content: bytes, page: str = "") -> bytes:
    """A PDF of one page with this content stream, compressed."""
    packed = zlib.compress(content, 1)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>{page}>>".encode(),
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(packed), packed),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    return b"%PDF-1.4\n" + b"".join(b"%d 0 obj%bendobj\n" % item for item in enumerate(objects, 1)) + b"trailer<</Root 1 0 R/Size 6>>\n"


def good() -> bytes:
    return pdf([[Text(72, 700, "A good file has a sentence.")]])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "good.pdf").write_bytes(good())
    return tmp_path


def read(folder, limits=None):
    problems: list = []
    documents = list(pk.read(folder, on_problem=problems.append, limits=limits or FileLimits(20.0, 1 << 30)))
    return documents, problems


def with_processes(monkeypatch, start: str) -> None:
    monkeypatch.setattr(process, "_START", start)
    monkeypatch.setattr(process, "_PROCESSES", process.ReadingProcesses())


@pytest.mark.parametrize("kind", ["zip", "entities"])
def test_a_bomb_in_an_office_file_is_named(folder, kind):
    bomb = word(run_of("x" * (100 << 20))) if kind == "zip" else word(run_of("&a9;"), LAUGHS)
    assert len(bomb) < 1 << 20
    (folder / "bomb.docx").write_bytes(bomb)
    documents, problems = read(folder, FileLimits(20.0, 600 << 20))
    assert "good.pdf" in [document.id for document in documents]
    assert [problem.path for problem in problems] == [str(folder / "bomb.docx")]


def test_a_page_of_a_gigabyte_is_named(folder):
    (folder / "bomb.pdf").write_bytes(raw_pdf(b" " * (1 << 30) + b"BT /F 12 Tf (never) Tj ET"))
    documents, problems = read(folder, FileLimits(60.0, 800 << 20))
    assert [document.id for document in documents] == ["good.pdf"]
    [problem] = problems
    assert problem.path == str(folder / "bomb.pdf")


def test_text_without_end_is_ended_in_time(folder):
    words = b"endless words " * 10
    lines = [b"BT /F 1 Tf 1 0 0 1 %d %d Tm (%b) Tj ET" % (number % 500, number % 700, words) for number in range(60_000)]
    (folder / "long.pdf").write_bytes(raw_pdf(b"\n".join(lines)))
    documents, [problem] = read(folder, FileLimits(3.0, 1 << 30))
    assert [document.id for document in documents] == ["good.pdf"]
    assert "takes more than 3 seconds to read" in problem.reason or "MB of memory" in problem.reason


def test_pages_that_contain_themselves_are_named(folder):
    loop = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9999999>>endobj\n"
    (folder / "loop.pdf").write_bytes(loop + b"trailer<</Root 1 0 R/Size 3>>\n")
    documents, problems = read(folder)
    assert [document.id for document in documents] == ["good.pdf"]
    assert len(problems) == 1


def test_deep_nesting_is_named_or_read(folder):
    deep = "".join("<w:tbl><w:tr><w:tc>" for _ in range(20_000)) + run_of("deep") + "".join("</w:tc></w:tr></w:tbl>" for _ in range(20_000))
    (folder / "deep.docx").write_bytes(word(deep))
    (folder / "deep.pdf").write_bytes(raw_pdf(b"q " * 100_000 + b"BT /F 12 Tf (deep) Tj ET"))
    (folder / "deep.ipynb").write_text('{"cells":' + "[" * 100_000 + "]" * 100_000 + "}")
    (folder / "deep.rst").write_text("\n".join(" " * depth + "- deep" for depth in range(3000)))
    documents, problems = read(folder)
    assert "good.pdf" in [document.id for document in documents]
    assert len(documents) + len(problems) == 5


def test_external_files_are_never_read(folder, tmp_path_factory):
    secret = tmp_path_factory.mktemp("other") / "secret.txt"
    secret.write_text(SECRET)
    entity = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]>'
    (folder / "a.docx").write_bytes(word(run_of("before &e; after"), entity))
    (folder / "a.rst").write_text(f"Title\n=====\n\n.. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\nText.\n")
    (folder / "a.tex").write_text(f"\\section{{A}}\nText. \\input{{{secret}}} \\include{{{secret}}} \\write18{{touch {folder}/made}}\n")
    (folder / "a.org").write_text(f'* A\nText.\n#+INCLUDE: "{secret}"\n')
    (folder / "a.adoc").write_text(f"= A\n\nText.\n\ninclude::{secret}[]\n")
    (folder / "a.rtf").write_text(r"{\rtf1 Text.{\field{\*\fldinst INCLUDETEXT " + str(secret) + r"}{\fldrslt }}\par}")
    documents, problems = read(folder)
    assert len(documents) >= 5
    assert str(folder / "a.docx") in [problem.path for problem in problems if "declares entities" in problem.reason]
    assert not any(SECRET in document.text or "secret of" in str(document.metadata) for document in documents)
    assert not (folder / "made").exists()


def test_macros_and_embedded_archives_are_not_followed(folder):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("inner.txt", SECRET)
    files = {"word/embeddings/a.zip": inner.getvalue(), "word/vbaProject.bin": b"Sub AutoOpen() " + SECRET.encode()}
    (folder / "a.docx").write_bytes(word(run_of("Plain text."), extra=files))
    (folder / "a.eml").write_bytes(
        b"Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nPlain text.\n--b\n"
        b'Content-Type: text/plain; name="s.txt"\nContent-Disposition: attachment; filename="s.txt"\n\n' + SECRET.encode() + b"\n--b--\n"
    )
    documents, problems = read(folder)
    assert sorted(document.id for document in documents) == ["a.docx", "a.eml", "good.pdf"]
    assert not problems
    assert not any(SECRET in document.text for document in documents)


def test_a_library_that_ends_the_process_ends_one_file(folder, monkeypatch):
    crash = process._START.replace(
        "main()",
        "import perikope.formats._extraction.serving as serving, os; real = serving._extract; "
        "serving._extract = lambda kind, data: os.kill(os.getpid(), 11) if b'crash' in data else real(kind, data); main()",
    )
    with_processes(monkeypatch, crash)
    (folder / "a.pdf").write_bytes(b"crash")
    (folder / "z.pdf").write_bytes(good())
    documents, [problem] = read(folder)
    assert [document.id for document in documents] == ["good.pdf", "z.pdf"]
    assert "ends the library that reads it" in problem.reason
    process._PROCESSES.close()


def test_a_process_that_failed_because_of_earlier_files_is_replaced(folder, monkeypatch):
    once = process._START.replace(
        "main()",
        "import perikope.formats._extraction.serving as serving, os; real = serving._extract; seen = []; "
        "serving._extract = lambda kind, data: (os.abort() if seen else seen.append(1), real(kind, data))[1]; main()",
    )
    with_processes(monkeypatch, once)
    (folder / "z.pdf").write_bytes(good())
    documents, problems = read(folder)
    assert (len(documents), problems) == (2, [])
    process._PROCESSES.close()


def test_a_build_skips_hostile_files_and_takes_its_limits_from_the_options(folder, tmp_path_factory, monkeypatch):
    with_processes(monkeypatch, "import time; time.sleep(60)")
    index = tmp_path_factory.mktemp("i") / "index"
    (folder / "b.md").write_text("Some text.")
    report = build(str(index), [str(folder)], BuildOptions(file_seconds=0.3))
    assert report.documents == 1
    [problem] = report.skipped
    assert problem.reason == "takes more than 0.3 seconds to read; allow more (--file-seconds), or split the file"


def test_a_forked_process_does_not_use_the_processes_of_its_parent(folder):
    [document] = pk.read(folder / "good.pdf")
    [idle] = process._PROCESSES._idle
    child = os.fork()
    if child == 0:
        taken = process._PROCESSES.take()
        os._exit(0 if taken is not idle else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [document] == list(pk.read(folder / "good.pdf"))


def sheet(rows: str, extra: str = "", doctype: str = "") -> bytes:
    """A workbook with one sheet that has these rows."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>'
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'{relations}<Relationship Id="r1" Type="{office}/worksheet" Target="s.xml"/></Relationships>'
        )
        archive.writestr("xl/s.xml", f'{doctype}<worksheet xmlns="{main}"><sheetData>{rows}</sheetData>{extra}</worksheet>')
    return buffer.getvalue()


def slides(slide: str, relations: str = "") -> bytes:
    """A presentation with one slide, which uses other parts."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    spaces = f'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="{office}"'
    spaces += ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    head = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "ppt/presentation.xml",
            f'<p:presentation {spaces}><p:sldIdLst><p:sldId r:id="r1"/><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>',
        )
        archive.writestr(
            "ppt/_rels/presentation.xml.rels", f'{head}<Relationship Id="r1" Type="{office}/slide" Target="s.xml"/></Relationships>'
        )
        archive.writestr("ppt/s.xml", f"<p:sld {spaces}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>")
        archive.writestr("ppt/_rels/s.xml.rels", f"{head}{relations}</Relationships>")
    return buffer.getvalue()


TEXT_SHAPE = "<p:sp><p:txBody><a:p><a:r><a:t>Plain words.</a:t></a:r></a:p></p:txBody></p:sp>"


def test_hostile_workbooks_slides_and_rtf_are_named_or_read_once(folder):
    cell = '<row r="1"><c r="A1" t="inlineStr"><is><t>{}</t></is></c></row>'
    (folder / "bomb.xlsx").write_bytes(sheet(cell.format("x" * (9 << 20)) * 20))
    (folder / "entities.xlsx").write_bytes(sheet(cell.format("&a9;"), doctype=LAUGHS))
    merged = "<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 1000 + "</mergeCells>"
    (folder / "merged.xlsx").write_bytes(sheet(cell.format("words") + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>', merged))
    (folder / "deep.pptx").write_bytes(slides("<p:grpSp>" * 20_000 + "</p:grpSp>" * 20_000))
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    cycle = f'<Relationship Id="r1" Type="{office}/notesSlide" Target="s.xml"/><Relationship Id="r2" Type="{office}/chart" Target="s.xml"/>'
    (folder / "cycle.pptx").write_bytes(slides(TEXT_SHAPE, cycle))
    (folder / "deep.rtf").write_bytes(b"{\\rtf1 " + b"{" * 1_000_000 + b"deep")
    (folder / "binary.rtf").write_bytes(b"{\\rtf1 before{\\pict\\bin999999999 " + b"x" * 100 + b"} after\\par}")
    documents, problems = read(folder)
    assert sorted(os.path.basename(str(problem.path)) for problem in problems) == ["bomb.xlsx", "deep.pptx", "deep.rtf", "entities.xlsx"]
    texts = {document.id: document.text for document in documents}
    assert texts["cycle.pptx"].count("Plain words.") == 1
    assert texts["merged.xlsx"].count("words") == 2
    assert "before" in texts["binary.rtf"]


def test_a_book_and_a_message_have_the_limit_of_time(folder, monkeypatch):
    with_processes(monkeypatch, "import time; time.sleep(60)")
    for name in ("files.book.epub", "files.letter.eml", "files.flow.ipynb"):
        (folder / name).write_bytes((GOLDEN / "sources" / name).read_bytes())
    _, problems = read(folder, FileLimits(0.3, 1 << 30))
    assert len(problems) == 4
    assert all("takes more than 0.3 seconds to read" in problem.reason for problem in problems)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_a_library_that_does_not_fit_into_the_memory_is_not_called_missing(tmp_path):
    (tmp_path / "a.parquet").write_bytes((GOLDEN / "sources" / "files.models.parquet").read_bytes())
    process._PROCESSES.close()
    with pytest.raises(UnreadableFile) as raised:
        list(pk.read(tmp_path / "a.parquet", limits=FileLimits(20.0, 60 << 20)))
    assert raised.value.reason == "needs more than 60 MB of memory to read; allow more (--file-memory)"
    assert list(pk.read(tmp_path / "a.parquet", limits=FileLimits(20.0, 1 << 30)))
