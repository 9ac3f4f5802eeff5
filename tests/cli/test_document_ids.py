"""Every option and command that takes the id of a document takes a patent number in any spelling."""

import gzip
import json

import pytest

from perikope.query.publications import parse_publication
from tests.cli.test_commands import fails, run
from tests.support.collections import index_of, plain_document
from tests.support.patents import families

FAMILY = families()[0]
PATENT = FAMILY.members[0]
COUNTRY, NUMBER, KIND = PATENT.id.split("-")
SPELLINGS = [
    PATENT.id,
    *(f"{COUNTRY}{NUMBER}{KIND}", f"{COUNTRY} {NUMBER} {KIND}", f"{COUNTRY} {int(NUMBER):,} {KIND}", f"{COUNTRY}0{NUMBER}{KIND}"),
    *(PATENT.id.lower(), f"{COUNTRY}{NUMBER}{KIND}".lower(), f" {COUNTRY}-{NUMBER} {KIND} "),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patents")
    for patent in FAMILY.everything:
        (folder / f"{patent.id}.xml").write_text(patent.xml, encoding="utf-8")
    return folder


def indexed(folder, to, capsys):
    assert run(capsys, "index", folder, "--to", to)[0] == 0
    return to


@pytest.fixture
def index(folder, tmp_path, capsys):
    return indexed(folder, tmp_path / "idx", capsys)


def printed(capsys, *arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, ""), arguments
    return out


def hits(capsys, index, *arguments):
    return [json.loads(line) for line in printed(capsys, "search", index, "pump", "--language", "en", "--json", *arguments).splitlines()]


def test_all_spellings_are_one_document(index, folder, tmp_path, capsys):
    """One test for all, because every command opens the index again."""
    passage = hits(capsys, index, "--filter", f"id={PATENT.id}")[0]["passage"]
    ids = tmp_path / "ids.txt"

    def outputs(spelling):
        ids.write_text(spelling + "\n", encoding="utf-8")
        return (
            printed(capsys, "explain", index, "pump", f"{spelling}#{passage}"),
            printed(capsys, "locate", index, f"{spelling}#{passage}", "--in", folder),
            json.loads(printed(capsys, "graph", index, spelling, "--json")),
            run(capsys, "search", index, "pump", "--language", "en", "--shares-codes-with", spelling, "--code-level", "class"),
            printed(capsys, "search", index, "pump", "--language", "en", "--filter", f"id={spelling}"),
            printed(capsys, "search", index, "pump", "--language", "en", "--filter", f"id!={spelling}"),
            printed(capsys, "search", index, "pump", "--language", "en", "--ids", ids),
        )

    expected = outputs(SPELLINGS[0])
    for spelling in SPELLINGS[1:]:
        assert outputs(spelling) == expected, spelling


def test_a_filter_by_number_without_kind_keeps_all_publications(index, capsys):
    found = hits(capsys, index, "--filter", f"id={COUNTRY}{NUMBER}", "-k", 1000)
    assert {hit["document"] for hit in found} == {patent.id for patent in FAMILY.members if patent.id.startswith(f"{COUNTRY}-{NUMBER}-")}


def test_deleting_never_guesses(index, capsys):
    publications = [patent.id for patent in FAMILY.members if patent.id.startswith(f"{COUNTRY}-{NUMBER}-")]
    assert len(publications) > 1
    fails(capsys, "names several documents", "index", "--to", index, "--delete", f"{COUNTRY}{NUMBER}")
    assert "1 removed" in printed(capsys, "index", "--to", index, "--delete", f"{COUNTRY} {NUMBER} {KIND}")
    fails(capsys, "but these publications", "index", "--to", index, "--delete", PATENT.id)


def test_an_exact_id_takes_precedence_and_case_does_not_count(capsys):
    index = index_of([plain_document(id, "", "a pump") for id in ("EP1A1", "EP-1-A1", "Read.md", "READ.md", "Notes.md")]).folder
    for id in ("EP1A1", "EP-1-A1", "Read.md"):
        assert f"  {id}#@1" in printed(capsys, "search", index, "pump", "--filter", f"id={id}", "--model", "bm25")
        assert json.loads(printed(capsys, "graph", index, id, "--json"))["nodes"]
    assert json.loads(printed(capsys, "graph", index, "notes.MD", "--json"))["nodes"]
    fails(capsys, "'read.MD' names several documents", "graph", index, "read.MD")
    assert len(printed(capsys, "search", index, "pump", "--filter", "id=read.MD", "--model", "bm25", "--json").splitlines()) == 2
    fails(capsys, "there is no document 'note.md'", "graph", index, "note.md")


def test_ids_that_are_not_there_are_named_once_for_all_topics(index, tmp_path, capsys):
    topics, ids, out = tmp_path / "topics.tsv", tmp_path / "ids.txt", tmp_path / "out.run"
    topics.write_text("1\tpump\n2\tshaft\n", encoding="utf-8")
    ids.write_text("\n".join([PATENT.id, "x1", "x2", "x3", "x4"]), encoding="utf-8")
    _, _, err = run(capsys, "run", index, topics, "--ids", ids, "--filter", "kind=Q7", "--out", out)
    assert [line for line in err.splitlines() if "note" in line] == [
        line for line in err.splitlines() if line.startswith(("  note: no document has kind=Q7;", "  note: 4 of 5 ids are not in "))
    ]
    assert err.count("note") == 2


def test_a_topic_with_a_value_that_no_document_has_is_named(index, tmp_path, capsys):
    topics = tmp_path / "topics.jsonl"
    topics.write_text('{"qid": "1", "query": "pump", "filter": "kind=Q7"}\n{"qid": "2", "query": "pump"}\n', encoding="utf-8")
    _, _, err = run(capsys, "run", index, topics, "--out", tmp_path / "out.run")
    assert "note: topic 1: no document has kind=Q7; the values of kind are" in err
    assert "topic 2" not in err.replace("note: topic 2", "")


def test_a_line_of_megabytes_is_no_id(folder, tmp_path, capsys):
    """A packed file of a few kilobytes can unpack to such a line, and looking for it would take seconds."""
    ids = tmp_path / "ids.gz"
    ids.write_bytes(gzip.compress(b"D-1\n" + bytes(1 << 22)))
    fails(
        capsys,
        f"{ids}:2: an id has at most 65536 characters; write one id per line",
        "search",
        indexed(folder, tmp_path / "idx", capsys),
        "pump",
        "--ids",
        ids,
    )


def test_a_long_text_is_no_publication_number():
    """No pattern is looked for in it."""
    assert parse_publication("EP 1000000 A1").id == "EP-1000000-A1"
    assert parse_publication("EP" + " " * 400 + "1000000 A1") is None
