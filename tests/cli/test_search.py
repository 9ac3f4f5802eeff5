"""`perikope search`: messages without results, candidates from a run, and documents as results."""

import json

import pytest

from tests.cli.test_commands import fails, run
from tests.support.collections import index_of, plain_document


@pytest.fixture(scope="module")
def index():
    documents = [plain_document("d 1", "Pumps", "The pump has a shaft.", "A valve."), plain_document("d2", "", "A pump, a pump, a seal.")]
    return index_of(documents).folder


def said(capsys, *arguments):
    code, out, err = run(capsys, "search", *arguments)
    assert (code, err) == (0, "")
    return out.rstrip("\n")


def test_that_no_passage_satisfies_a_query_is_not_that_none_holds_its_words(index, capsys):
    assert said(capsys, index, "shaft valve", "--must-match") == "no passage satisfies the query"
    assert said(capsys, index, "shaft seal", "--across") == "no passage satisfies the query"
    assert said(capsys, index, "shaft AND valve", "--must-match", "--syntax", "boolean", "--filter", "id=d2") == (
        "no passage that meets the conditions satisfies the query"
    )
    assert said(capsys, index, "zeppelin") == "no passage contains any of these words"
    assert run(capsys, "search", index, "pump", "--filter", "id=d9") == (
        0, "no document meets the conditions\n", "perikope: note: no document has the id 'd9'; similar names: d2\n",
    )  # fmt: skip


def test_operators_in_small_letters_are_pointed_out(index, capsys):
    boolean = ["--must-match", "--syntax", "boolean"]
    assert said(capsys, index, "(shaft or zeppelin) valve", *boolean) == (
        "no passage satisfies the query; operators are written in capitals: AND, OR, NOT"
    )
    assert said(capsys, index, "shaft or zeppelin", "--must-match") == (
        "no passage satisfies the query; AND, OR and NOT, in capitals, are operators with --syntax boolean"
    )
    assert said(capsys, index, "pump", "--browse-query", "shaft not valve", *boolean).endswith("AND, OR, NOT")
    assert "d%201#@1" in said(capsys, index, "shaft OR zeppelin", *boolean)


def test_a_budget_that_holds_no_hit_says_what_the_best_needs(index, capsys):
    code, out, err = run(capsys, "search", index, "shaft", "--model", "bm25", "--for-model", "3")
    assert (code, out) == (0, "")
    needed = int(err.removeprefix("perikope: note: no hit fits into 3 words; the best hit alone needs "))
    assert run(capsys, "search", index, "shaft", "--model", "bm25", "--for-model", needed - 1)[1] == ""
    assert "The pump has a shaft." in said(capsys, index, "shaft", "--model", "bm25", "--for-model", needed)
    assert run(capsys, "search", index, "zeppelin", "--for-model", "9") == (0, "", "no passage contains any of these words\n")


def test_documents_are_ranked_by_their_passages(index, capsys):
    options = [index, "pump", "--model", "bm25", "--document-ranking", "sump"]
    lines = said(capsys, *options).splitlines()
    assert [line.split()[0] for line in lines] == ["1.", "2."]
    assert {line.split("  ")[2].strip() for line in lines} == {"d 1", "d2"}
    hits = [json.loads(line) for line in said(capsys, *options, "--json", "-k", 1).splitlines()]
    assert [(hit["rank"], hit["document"]) for hit in hits] == [(1, lines[0].split("  ")[-1])]
    assert said(capsys, index, "zeppelin", "--document-ranking", "maxp") == "no passage contains any of these words"
    fails(capsys, "leave one of them out", "search", *options, "--for-model", "9")
    fails(capsys, "unknown", "search", index, "pump", "--document-ranking", "minp")


def test_documents_of_a_run_are_looked_into(index, tmp_path, capsys):
    run_file = tmp_path / "other.run"
    run_file.write_text("7 Q0 d%201#@2 1 0.5 x\n")
    hits = [json.loads(line) for line in said(capsys, index, "pump", "--candidates", run_file, "--json").splitlines()]
    assert {hit["document"] for hit in hits} == {"d 1"}
    run_file.write_text("7 Q0 d2 1 0.5 x\n8 Q0 d2 1 0.5 x\n")
    fails(capsys, "has 2 topics; give a run with one topic", "search", index, "pump", "--candidates", run_file)


def test_a_query_of_several_words_without_quotes(index, capsys):
    hint = "put a query of several words in quotes"
    fails(capsys, f"unexpected extra argument (shaft); {hint} (see `perikope search --help`)", "search", index, "pump", "shaft")
    fails(capsys, f"unexpected extra argument (d2#@1); {hint}", "explain", index, "pump", "shaft", "d2#@1")
    _, _, err = run(capsys, "show", index, "d2", "pump")
    assert "unexpected extra argument (pump)" in err
    assert "quotes" not in err


def test_a_query_that_begins_with_a_dash(index, capsys):
    fails(capsys, "write -- before a query that begins with -", "search", index, "-shaft pump", "--syntax", "automatic")
    assert "d2#@1" in said(capsys, index, "--syntax", "automatic", "--must-match", "--", "-shaft pump")
    code, _, err = run(capsys, "search", index, "pump", "--modle", "bm25")
    assert code == 2
    assert "behind" not in err


def test_a_small_score_is_not_printed_as_zero(index, capsys):
    for options in (("--model", "lm"), ("--model", "lm", "--document-ranking", "maxp")):
        shown = said(capsys, index, "pump shaft rotor", *options)
        assert "  1. " in shown
        assert " 0.0000 " not in shown


def test_a_search_by_proximity_says_why_it_finds_nothing(index, capsys):
    assert "needs all words near each other: join words by OR" in said(capsys, index, "zeppelin pump", "--model", "prox")
    assert said(capsys, index, "zeppelin", "--model", "prox") == "no passage contains any of these words"
    assert " 0.0000 " in said(capsys, index, "zeppelin pump", "--model", "prox", "--keep-unmatched")
