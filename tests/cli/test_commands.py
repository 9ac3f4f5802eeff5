"""The commands as a new user calls them, in a new process or in this one."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from perikope import cli

DOCUMENTS = [
    {
        "id": "d1",
        "title": "KX-200",
        "sections": [{"title": "Descaling", "passages": [{"id": "p1", "text": "Every three months."}]}],
    },
    {"id": "d2", "title": "Pumps", "passages": [{"id": "p1", "text": "Descaling of pumps is not needed."}]},
]


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command, without the line that names the model of a search."""
    code, out, err = run_unchanged(capsys, *arguments)
    return code, out, "".join(line for line in err.splitlines(keepends=True) if not line.startswith("perikope: ranked by "))


def run_unchanged(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return done.value.code, captured.out, captured.err


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    return path


@pytest.fixture
def index(files, tmp_path, capsys):
    assert run(capsys, "index", files, "--to", tmp_path / "index")[0] == 0
    return tmp_path / "index"


def fails(capsys, complaint, *arguments):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert err.count("\n") == 1, "an error is one line"
    assert err.startswith("perikope: error: ")
    assert complaint in err


def test_index_and_search(index, capsys):
    code, out, _ = run(capsys, "search", index, "how often descaling the KX-200")
    assert code == 0
    assert out.index("d1#p1") < out.index("d2#p1")
    assert "KX-200 › Descaling" in out
    assert "Every three months." in out


def test_search_as_json(index, capsys):
    code, out, _ = run(capsys, "search", index, "descaling", "--json", "-k", 1)
    hit = json.loads(out)
    assert code == 0
    assert hit["document"] in ("d1", "d2")
    assert set(hit) >= {"rank", "score", "document", "passage", "path", "text", "highlights", "before", "after", "metadata"}


def test_search_for_a_word_that_is_nowhere(index, capsys):
    assert run(capsys, "search", index, "zeppelin")[:2] == (0, "no passage contains any of these words\n")


def test_append(index, tmp_path, capsys):
    more = tmp_path / "more.jsonl.gz"
    with gzip.open(more, "wt") as file:
        file.write(json.dumps({"id": "d3", "passages": ["A zeppelin."]}) + "\n")
    assert run(capsys, "index", more, "--to", index, "--append")[0] == 0
    assert "d3#@1" in run(capsys, "search", index, "zeppelin")[1]


def test_explain(index, capsys):
    code, out, _ = run(capsys, "explain", index, "descaling", "d1#p1")
    assert code == 0
    assert "covered by the titles above" in out
    tree = json.loads(run(capsys, "explain", index, "descaling", "d1#p1", "--json")[1])
    assert tree["operation"] == "sum"


def test_run_and_eval(index, tmp_path, capsys):
    topics, qrels, out = tmp_path / "topics.tsv", tmp_path / "qrels.txt", tmp_path / "run.txt"
    topics.write_text("1\thow often descaling the KX-200\n2\tzeppelin\n")
    qrels.write_text("1 0 d1#p1 1\n2 0 d2#p1 1\n")
    code, _, err = run(capsys, "run", index, topics, "--out", out)
    assert code == 1
    assert "topic 2: no passage matches the query" in err
    assert out.read_text().splitlines()[0].startswith("1 Q0 d1#p1 1 ")
    code, table, _ = run(capsys, "eval", qrels, out, "--measures", "RR MAP(D)")
    assert code == 0
    assert table.split() == ["run", "RR", "MAP(D)", "queries", str(out), "0.5000", "0.5000", "2"]
    record = json.loads(run(capsys, "eval", qrels, out, "--measures", "RR", "--json", "--per-query")[1])
    assert record["per_query"] == {"RR": {"1": 1.0, "2": 0.0}}


def test_run_on_the_documents_of_another_run(index, tmp_path, capsys):
    topics, theirs, out = tmp_path / "topics.tsv", tmp_path / "their.run", tmp_path / "run.txt"
    topics.write_text("1\tdescaling\n")
    theirs.write_text("1 Q0 d2 1 9.5 x\n1 Q0 elsewhere 2 8.5 x\n")
    assert run(capsys, "run", index, topics, "--candidates", theirs, "--out", out)[0] == 0
    assert [line.split()[2] for line in out.read_text().splitlines()] == ["d2#p1"]


@pytest.mark.parametrize("command", ["models", "measures", "formats"])
def test_lists(command, capsys):
    code, out, _ = run(capsys, command)
    assert code == 0
    assert len(out.splitlines()) >= 4


def test_one_model_shows_its_parameters(capsys):
    _, out, _ = run(capsys, "models", "qsf_v")
    assert "alpha=0.8  in [0, 1]; tuning tries 0.0, 0.1" in out
    assert "      Weight α of the passage; its document has weight 1 - α.\n" in out


def test_one_measure_shows_its_parameters(capsys):
    code, out, _ = run(capsys, "measures", "MAgP")
    assert code == 0
    assert out.startswith("AgP(beta=1.0,t2i=none)\n")
    assert (
        "  beta=1.0  above 0\n      Weight β of recall in the F measure of a document; above 1, recall has more weight than precision.\n"
        in out
    )
    assert ">>>" not in out
    fails(capsys, "unknown measure 'MAgQ'; did you mean 'MAgP'?", "measures", "MAgQ")


@pytest.mark.parametrize("command", [(), *((name,) for name in cli.command_names())])
def test_help_has_an_example(command):
    shown = CliRunner().invoke(cli.perikope, [*command, "--help"])
    assert shown.exit_code == 0
    assert "Example" in shown.output


def test_mistakes_in_names_and_values(index, capsys):
    fails(capsys, "unknown model 'bm52'; did you mean 'bm25'? valid: bm25,", "search", index, "x", "--model", "bm52")
    fails(capsys, "unknown parameter of qsf_v 'alfa'; did you mean 'alpha'?", "search", index, "x", "--model", "qsf_v(alfa=1)")
    fails(capsys, "alpha=2.0 is out of range; it must be in [0, 1]", "search", index, "x", "--model", "qsf_v(alpha=2)")
    fails(capsys, "cannot read 'qsf_v(': expected", "search", index, "x", "--model", "qsf_v(")
    fails(capsys, "unknown fetch model 'tfidf'", "search", index, "x", "--fetch", "tfidf")
    fails(capsys, "unknown measure 'nDCF'", "eval", os.devnull, os.devnull, "--measures", "nDCF")
    fails(capsys, "unknown command 'serch'; did you mean 'search'? valid: index, search,", "serch", index)
    fails(capsys, "Missing argument", "search", index)


def test_mistakes_in_queries_and_places(index, tmp_path, capsys):
    fails(capsys, "the query is empty", "search", index, "")
    fails(capsys, "only stop words", "search", index, "the of")
    fails(capsys, "is not an index", "search", tmp_path, "pump")
    fails(capsys, "is not an index", "search", tmp_path / "nowhere", "pump")
    fails(capsys, "no passage 'p9'", "explain", index, "descaling", "d1#p9")


def test_mistakes_in_input_leave_nothing_behind(files, tmp_path, capsys):
    def index_fails(content, complaint, *options):
        path = tmp_path / "bad.jsonl"
        path.write_text(content)
        fails(capsys, complaint, "index", path, "--to", tmp_path / "new", *options)
        assert not (tmp_path / "new").exists()

    good = json.dumps(DOCUMENTS[0]) + "\n"
    index_fails(good + "{", "bad.jsonl:2: not valid JSON")
    index_fails(good + '{"title": "x"}', "bad.jsonl:2: the document has no id")
    index_fails(good + '{"id": "d9", "passages": []}', "bad.jsonl:2: document 'd9' is empty")
    index_fails(good + good, "document 'd1' is given twice", "--duplicates", "error")
    index_fails(good, "unknown format 'djvu'", "--format", "djvu")
    index_fails(good, "unknown stemmer", "--stemmer", "lovins")
    index_fails(good, "words:0", "--segment", "words:0")
    index_fails(good, "cannot read the list of stop words", "--stopwords", "nowhere.txt")
    index_fails(good, "is not a language code", "--language", "english!")
    fails(capsys, "nowhere", "index", tmp_path / "nowhere", "--to", tmp_path / "new")


def test_a_failed_append_leaves_the_index_as_it_was(index, tmp_path, capsys):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"id": "d3", "passages": ["text"]}) + "\n{")
    fails(capsys, "bad.jsonl:2", "index", path, "--to", index, "--append")
    assert "d3" not in run(capsys, "search", index, "text descaling")[1]


def test_unreadable_files_of_a_folder_are_counted(tmp_path, capsys):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.md").write_text("# Pumps\n\nA rotor turns.\n")
    (folder / "bad.md").write_bytes(b"\xff\x00bad")
    (folder / "empty.txt").write_text("")
    (folder / "picture.png").write_bytes(b"x")
    code, out, err = run(capsys, "index", folder, "--to", tmp_path / "index")
    assert code == 1
    assert "1 document added" in out
    assert "1 file of other formats passed over: 1 .png" in out
    assert out.splitlines()[-1].startswith("search it: perikope search ")
    assert "2 files could not be read, or not completely:" in err
    assert "warning" not in err
    assert "bad.md" in err
    assert "empty.txt" in err


def test_code_is_shown_line_by_line_and_can_be_left_out(tmp_path, capsys):
    code = "def pump(speed):\n\tif speed:\n        return 'a\x1b[31m  b'\n\n" + "\n".join(f"line_{n} = valve" for n in range(99))
    (tmp_path / "a.md").write_text(f"# Rotor\n\nThe pump has a rotor.\n\n```py\n{code}\n```\n")
    run(capsys, "index", tmp_path / "a.md", "--to", tmp_path / "index")
    out = run(capsys, "search", tmp_path / "index", "speed", "--model", "bm25")[1]
    assert "     def pump(speed):\n         if speed:\n             return 'a [31m  b'\n\n     line_0 = valve\n" in out
    assert out.endswith(" = valve\n     …\n")
    assert "line_98" not in out
    assert "line_98 = valve\n" in run(capsys, "search", tmp_path / "index", "valve", "--full", "--tag", "code")[1]
    out = run(capsys, "search", tmp_path / "index", "pump valve", "--without-tag", "code", "--json")[1]
    assert [json.loads(line)["tag"] for line in out.splitlines()] == ["p"]
    fails(capsys, "unknown tag of passages 'cod'; did you mean 'code'?", "search", tmp_path / "index", "pump", "--without-tag", "cod")


def test_a_table_row_is_found_by_its_columns(tmp_path, capsys):
    table = "| Pump | Flow | Noise |\n|---|---|---|\n| MC-8 | 12 | 31 |\n| LV-40 | 9 | 44 |\n"
    (tmp_path / "a.md").write_text(f"# Data\n\nNothing else.\n\n{table}")
    (tmp_path / "b.html").write_text("<h1>Other</h1><p>The MC-8 is old.</p>")
    run(capsys, "index", tmp_path, "--to", tmp_path / "index")
    out = run(capsys, "search", tmp_path / "index", "noise and flow of the MC-8", "-k", "1", "--model", "qsf_v_title")[1]
    assert "Data › Pump | Flow | Noise\n     MC-8 | 12 | 31" in out


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    path = tmp_path / "evil.jsonl"
    path.write_text(json.dumps({"id": "d1", "title": "a\x1b]0;owned\x07", "passages": ["pump \x1b[31mred"]}) + "\n")
    run(capsys, "index", path, "--to", tmp_path / "index")
    out = run(capsys, "search", tmp_path / "index", "pump")[1]
    assert "\x1b" not in out
    assert "\x07" not in out


def test_the_demo_finds_by_context_what_words_alone_do_not(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    code, out, _ = run(capsys, "demo")
    assert code == 0
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    shown = readme[readme.index("» how often") :].partition("```")[0]
    assert [line for line in shown.splitlines() if line not in out.splitlines()] == []
    assert out.count("(the answer has rank 1)") == 3
    assert "\n  perikope serve example/docs --open\n" in out, "the demo says how to open the page"
    assert out.count("bm25: each passage alone   (the answer has rank 1)") == 0


def test_check_names_what_is_damaged(index, capsys):
    assert run(capsys, "check", index)[:2] == (0, f"{index} is undamaged: 2 documents\n")
    segment = next(index.glob("segment-*"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    code, _, err = run(capsys, "check", index)
    assert code == 1
    assert segment.name in err
    assert "0 of 2 documents are in undamaged segments" in err


def test_delete_and_compact(index, capsys):
    assert run(capsys, "index", "--to", index, "--delete", "d1")[0] == 0
    assert "d1#" not in run(capsys, "search", index, "descaling months")[1]
    assert run(capsys, "compact", index)[0] == 0
    assert b"Every three months" not in b"".join(path.read_bytes() for path in index.iterdir())
    fails(capsys, "no document 'd1'", "index", "--to", index, "--delete", "d1")
    fails(capsys, "give files or folders", "index", "--to", index)
    fails(capsys, "'1Q' is not a size", "index", index, "--to", index, "--memory", "1Q")


def test_warmup_says_where_compiled_code_is_kept(capsys):
    code, out, _ = run(capsys, "warmup")
    assert code == 0
    assert "kernels compiled in" in out


def test_a_reader_that_leaves_early_is_no_error(index):
    command = f"{sys.executable} -m perikope search {index} descaling --model bm25 | head -c 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
