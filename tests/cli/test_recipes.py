"""Recipes and contexts on the command line."""

import json
import subprocess
import sys

import pytest

from tests.cli.test_commands import fails, run

DOCUMENTS = [
    {"id": "d1", "title": "KX-200", "sections": [{"title": "Descaling", "passages": ["Every three months.", "Rinse."]}]},
    {"id": "d2", "title": "Pumps", "passages": ["Descaling of pumps is not needed.", "Every pump has a seal."]},
]


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    return path


@pytest.fixture
def index(files, tmp_path, capsys):
    assert run(capsys, "index", files, "--to", tmp_path / "index", "--stemmer", "porter")[0] == 0
    return tmp_path / "index"


def hits(capsys, *arguments):
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    return [(hit["document"], hit["passage"], hit["score"]) for hit in map(json.loads, out.splitlines())]


def test_a_recipe_is_one_option(index, capsys):
    written_out = ["--fetch", "sim(mu=1000)", "--documents", "1000", "-k", "1500", "--model"]
    model = "qsf_section_propagate(sigma=5,alpha=0.6,beta=0.3)"
    by_name = hits(capsys, "search", index, "descaling pump", "--recipe", "albarede2021")
    assert by_name == hits(capsys, "search", index, "descaling pump", *written_out, model)
    assert len(by_name) == 4
    assert hits(capsys, "search", index, "descaling pump", "--recipe", "albarede2021", "-k", "1") == by_name[:1]
    explicit = hits(capsys, "search", index, "descaling pump", "-k", "10", "--model", "bm25", "--recipe", "albarede2021", "--fetch", "bm25")
    assert explicit == hits(capsys, "search", index, "descaling pump", "--model", "bm25")


def test_a_recipe_of_ones_own_and_a_run(index, tmp_path, capsys):
    (tmp_path / "mine.toml").write_text(
        '[search]\nmodel = "bm25"\nelements = ["sec", "document"]\ngroup_by_document = true\nno_overlap = true\nk = 3\n', "utf-8"
    )
    (tmp_path / "topics.tsv").write_text("1\tdescaling months\n", "utf-8")
    mine = tmp_path / "mine.toml"
    assert run(capsys, "run", index, tmp_path / "topics.tsv", "--recipe", mine, "--out", tmp_path / "a.run")[0] == 0
    options = ["--model", "bm25", "--elements=sec,document", "--group-by-document", "fetch", "--no-overlap", "-k", "3"]
    assert run(capsys, "run", index, tmp_path / "topics.tsv", *options, "--out", tmp_path / "b.run")[0] == 0
    assert (tmp_path / "a.run").read_text() == (tmp_path / "b.run").read_text() != ""


def test_explain_follows_a_recipe(index, capsys):
    code, out, _ = run(capsys, "explain", index, "descaling pump", "d2#@1", "--recipe", "albarede2021")
    assert code == 0
    assert "sections above" in out


def test_recipes_are_listed_and_printed(capsys, tmp_path):
    assert run(capsys, "recipes")[1].splitlines()[2].startswith("carmel2013")
    out = run(capsys, "recipes", "gobeill2012")[1]
    assert "pl2(c=1)\n" in out
    assert "published: Table 1, the best k" in out
    assert "decided: " in out
    (tmp_path / "mine.toml").write_text("[search]\npart = ['a', 'b']\nfetch_parts = {title = 2}\n[protocol]\nx = 'a\\u001bb'\n", "utf-8")
    out = run(capsys, "recipes", tmp_path / "mine.toml")[1]
    assert '["a","b"]' in out
    assert "title=2" in out
    assert "\x1b" not in out
    fails(capsys, "unknown recipe 'carmel'; did you mean 'carmel2013'", "recipes", "carmel")


def test_mistakes_are_one_line(index, tmp_path, capsys):
    fails(capsys, "unknown recipe 'x'", "search", index, "pump", "--recipe", "x")
    (tmp_path / "mine.toml").write_text("[search]\nmodle = 'bm25'\n", "utf-8")
    fails(capsys, "unknown key in [search] 'modle'; did you mean 'model'?", "search", index, "pump", "--recipe", tmp_path / "mine.toml")


def test_another_analysis_is_one_line_on_stderr(index):
    command = [sys.executable, "-m", "perikope", "search", str(index), "pump", "--recipe", "beigbeder2015"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        "perikope: warning: recipe beigbeder2015 expects --stemmer none, the index was made with porter: results will differ",
        "perikope: warning: recipe beigbeder2015 expects --stopwords none, the index was made with default: results will differ",
    ]
    assert "d2" in done.stdout


def test_for_a_model(index, capsys):
    code, out, _ = run(capsys, "search", index, "descaling", "--model", "bm25", "--for-model", "100")
    assert code == 0
    assert out == (
        "=== d2\n--- @1…@2 · characters 6–62 · Pumps\nDescaling of pumps is not needed.\nEvery pump has a seal.\n===\n"
    )  # fmt: skip
    context = json.loads(run(capsys, "search", index, "descaling", "--model", "bm25", "--for-model", "100", "--json")[1])
    assert context["text"] + "\n" == out
    assert context["pieces"][0]["passages"] == ["@1", "@2"]
    code, out, err = run(capsys, "search", index, "descaling", "--for-model", "1")
    assert (code, out, err.count("\n")) == (0, "", 1)
    fails(capsys, "--for-model", "search", index, "descaling", "--for-model", "0")
