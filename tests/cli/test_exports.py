"""Results as CSV, spreadsheets and RIS, counts of metadata values, and documents with title and date."""

import csv
import io
import json
import sys
import zipfile

import pytest

from perikope.search.exports import csv_file, export, ris_file
from perikope.search.facade import Index
from perikope.search.hits import Hit, RankedDocument
from tests.cli.test_commands import fails, run

PATENT = {
    "publication": "EP1000000B1", "country": "EP", "date": "2003-05-14", "application_date": "1998-12-09", "ipc": ["F04D13/08", "F04B1/00"],
    "inventor": ["Brine, Jane", "Weir, Al"], "applicant": ["Shaft Ltd", "Deep plc"], "priorities": ["GB-1-A", "GB-2-A"],
}  # fmt: skip
DOCUMENTS = [
    {"id": "p1", "title": "Rotor\tpump", "metadata": PATENT, "passages": [{"id": "a", "text": "A rotor,\nand \"more\"."}, "The rotor."]},
    {"id": "j1", "title": "Rotors", "metadata": {"journal": "Annals", "doi": "10.1/2", "year": 2009, "authors": "Ada", "ipc": "F04D13/08"},
     "passages": ["On the rotor."]},
    {"id": "x1", "metadata": {"note": "=1+1"},
     "passages": ["=HYPERLINK(\"http://x\") rotor", "-rotor", "+rotor", "@rotor", "\u001b[31m rotor"]},
]  # fmt: skip


@pytest.fixture
def index(tmp_path, capsys):
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    assert run(capsys, "index", tmp_path / "d.jsonl", "--to", tmp_path / "idx")[0] == 0
    return tmp_path / "idx"


def searched(capsys, index, *options):
    code, out, err = run(capsys, "search", index, "rotor", "-k", 50, *options)
    assert code == 0
    return out, err


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_the_columns_of_a_data_frame_that_people_read(index, capsys):
    rows = table(searched(capsys, index, "--csv")[0])
    hits = list(Index.open(index).search("rotor", k=50))
    assert [(row["document"], row["passage"]) for row in rows] == [(hit.document, hit.passage) for hit in hits]
    assert [float(row["score"]) for row in rows] == [hit.score for hit in hits]
    first = next(row for row in rows if row["passage"] == "a")
    assert first["text"] == 'A rotor,\nand "more".'
    assert first["metadata.ipc"] == "F04D13/08; F04B1/00"
    assert next(row for row in rows if row["document"] == "j1")["metadata.year"] == "2009"
    assert "highlights" not in first
    assert "before" not in first


def test_no_cell_begins_like_a_formula(index, capsys):
    rows = table(searched(capsys, index, "--csv")[0])
    cells = [value for row in rows for name, value in row.items() if name != "passage"]
    assert {"@1", "a"} <= {row["passage"] for row in rows}, "ids stay as they are"
    assert not [value for value in cells if value[:1] in tuple("=+-@\t\r\n") and value]
    texts = {row["text"] for row in rows}
    assert {'\'=HYPERLINK("http://x") rotor', "'-rotor", "'+rotor", "'@rotor"} <= texts
    assert "'=1+1" in cells


def test_numbers_stay_numbers():
    document = RankedDocument(1, -2.5, "d", "", {"loss": -3, "name": "-3"}, "")
    assert (
        csv_file([document], RankedDocument).decode() == "rank,score,document,title,source,metadata.loss,metadata.name\n1,-2.5,d,,,-3,'-3\n"
    )


def test_a_file_takes_its_form_from_its_name(index, tmp_path, capsys):
    out, err = searched(capsys, index, "--out", tmp_path / "r.csv")
    assert (out, err) == (f"8 results written to {tmp_path / 'r.csv'}\n", "")
    assert (tmp_path / "r.csv").read_bytes().startswith(b"\xef\xbb\xbfrank,score")
    assert (tmp_path / "r.csv").read_text("utf-8-sig") == searched(capsys, index, "--csv")[0]
    searched(capsys, index, "--out", tmp_path / "r.jsonl")
    assert (tmp_path / "r.jsonl").read_text() == searched(capsys, index, "--json")[0]
    searched(capsys, index, "--ris", "--out", tmp_path / "references.txt")
    assert (tmp_path / "references.txt").read_bytes().startswith(b"TY  - ")


def test_ris_has_one_record_per_document(index, capsys):
    out = searched(capsys, index, "--ris")[0]
    records = {text.split("ID  - ")[1].split("\n")[0].strip(): text.split("\n") for text in out.replace("\r", "").split("ER  - \n") if text}
    assert set(records) == {"p1", "j1", "x1"}
    assert records["p1"][:13] == [
        "TY  - PAT", "TI  - Rotor pump", "AU  - Brine, Jane", "AU  - Weir, Al", "PB  - Shaft Ltd; Deep plc", "SN  - EP1000000B1",
        "C1  - 1998-12-09", "C3  - EP", "OP  - GB-1-A; GB-2-A", "PY  - 2003", "DA  - 2003/05/14/", "KW  - F04D13/08", "KW  - F04B1/00",
    ]  # fmt: skip
    assert 'N1  - p1#a: A rotor, and "more".' in records["p1"]
    assert records["j1"][:6] == ["TY  - JOUR", "TI  - Rotors", "AU  - Ada", "T2  - Annals", "DO  - 10.1/2", "PY  - 2009"]
    assert records["x1"][:2] == ["TY  - GEN", "TI  - x1"]
    assert "\x1b" not in out


def test_a_line_break_cannot_add_a_field_to_a_record():
    document = RankedDocument(1, 1.0, "d", "A\r\nER  - \r\nTY  - JOUR", {"author": "x\nUR  - y"}, "")
    lines = ris_file([document], RankedDocument).decode().split("\r\n")
    assert [line[:2] for line in lines] == ["TY", "TI", "AU", "ID", "ER", ""]


def test_a_spreadsheet_holds_text_as_text(index, tmp_path, capsys):
    pytest.importorskip("xlsxwriter")
    searched(capsys, index, "--out", tmp_path / "r.xlsx")
    with zipfile.ZipFile(tmp_path / "r.xlsx") as book:
        sheet, strings = book.read("xl/worksheets/sheet1.xml").decode(), book.read("xl/sharedStrings.xml").decode()
    assert "<f>" not in sheet, "no formulas"
    assert "hyperlink" not in sheet
    assert "=HYPERLINK(" in strings
    assert '<c r="A2" s="1"><v>1</v></c>' in sheet or '<c r="A2"><v>1</v></c>' in sheet
    assert sheet.count("<row ") == 9


def test_a_spreadsheet_takes_any_text(tmp_path):
    pytest.importorskip("xlsxwriter")
    document = RankedDocument(1, float("nan"), "d\ud800", "x" * 40_000, {"a": 10**20, "b": True, "c": "\x00\x1b"}, "")
    assert export("xlsx", [document], RankedDocument)[:2] == b"PK"
    assert export("xlsx", [], Hit)[:2] == b"PK"


def test_a_missing_package_is_named(index, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    fails(capsys, "xlsxwriter, which is not installed", "search", index, "rotor", "--out", tmp_path / "r.xlsx")
    assert not (tmp_path / "r.xlsx").exists()


def test_forms_that_conflict(index, tmp_path, capsys):
    fails(capsys, "--csv and --ris are different forms", "search", index, "rotor", "--csv", "--ris")
    fails(capsys, "give the file with --out FILE.xlsx", "search", index, "rotor", "--xlsx")
    fails(capsys, "the form of r.txt is not known", "search", index, "rotor", "--out", "r.txt")
    fails(capsys, "there is no folder", "search", index, "rotor", "--out", tmp_path / "nowhere" / "r.csv")
    fails(capsys, "--for-model prints one text", "search", index, "rotor", "--for-model", 10, "--csv")
    fails(capsys, "--facets prints counts after the results", "search", index, "rotor", "--facets", "ipc", "--csv")


def test_an_empty_table_says_why_on_standard_error(index, capsys):
    code, out, err = run(capsys, "search", index, "zeppelin", "--csv")
    assert (code, out.count("\n")) == (0, 1)
    assert "no passage contains any of these words" in err


def test_facets_count_documents_of_all_results_not_only_of_the_page(index, capsys):
    out = run(capsys, "search", index, "rotor", "-k", 1, "--facets", "ipc", "--facets", "country")[1]
    assert "ipc: 2 values in the documents of the results\n  2  F04D13/08\n  1  F04B1/00\n" in out
    assert "country: 1 value in the documents of the results\n  1  EP\n" in out
    lines = run(capsys, "search", index, "rotor", "-k", 1, "--facets", "ipc", "--json")[1].splitlines()
    assert json.loads(lines[-1]) == {"facets": {"ipc": {"F04D13/08": 2, "F04B1/00": 1}}}
    assert len(lines) == 2


def test_facets_follow_filters_and_refuse_what_they_cannot_count(index, capsys):
    opened = Index.open(index)
    assert opened.search("rotor", filter="country=EP").facets("ipc") == {"F04B1/00": 1, "F04D13/08": 1}
    assert opened.search("zeppelin").facets("ipc") == {}
    fails(capsys, "unknown metadata field 'ipx'; did you mean 'ipc'", "search", index, "rotor", "--facets", "ipx")
    with pytest.raises(Exception, match="to a number"):
        opened.search("rotor", model="bm25", documents="all").facets("ipc")


def test_documents_have_titles_and_dates(index, capsys):
    out = run(capsys, "search", index, "rotor", "--document-ranking", "maxp")[1]
    lines = {line.split()[2]: line.split()[3:] for line in out.splitlines()}
    assert lines == {"p1": ["2003-05-14", "Rotor", "pump"], "j1": ["2009", "Rotors"], "x1": []}
    first = json.loads(run(capsys, "search", index, "rotor", "--document-ranking", "maxp", "-k", 1, "--json")[1])
    assert set(first) == {"rank", "score", "model", "document", "title", "metadata", "source"}
    page = run(capsys, "search", index, "rotor", "--document-ranking", "maxp", "-k", 1, "--offset", 1)[1]
    assert page.split()[:3] == out.splitlines()[1].split()[:3]
    rows = table(run(capsys, "search", index, "rotor", "--document-ranking", "sump", "--csv")[1])
    assert [row["rank"] for row in rows] == ["1", "2", "3"]


def test_control_characters_of_documents_do_not_reach_a_table(index, capsys):
    out, _ = searched(capsys, index, "--csv")
    assert "[31m rotor" in out
    assert "\x1b" not in out


def test_a_name_and_an_option_that_ask_for_different_forms_are_a_mistake(index, tmp_path, capsys):
    fails(capsys, "and --csv ask for different forms", "search", index, "rotor", "--csv", "--out", tmp_path / "a.ris")
