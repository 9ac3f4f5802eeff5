"""Learning and document runs through the command line."""

import json

import pytest

from perikope import cli


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return done.value.code, captured.out, captured.err


@pytest.fixture
def files(tmp_path, capsys):
    words = ["pump", "rotor", "magnet", "seal", "valve", "shaft"]
    documents = [
        {"id": f"d{i}", "title": words[i % 6], "passages": [f"{words[(i + j) % 6]} of a {words[(i * j) % 6]}" for j in range(4)]}
        for i in range(12)
    ]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    (tmp_path / "topics.tsv").write_text("".join(f"q{i}\t{word}\n" for i, word in enumerate(words)))
    (tmp_path / "qrels.txt").write_text("".join(f"q{i} 0 d{i}#@1 1\nq{i} 0 d{i + 6}#@1 1\n" for i in range(5)))
    assert run(capsys, "index", tmp_path / "documents.jsonl", "--to", tmp_path / "idx")[0] == 0
    return tmp_path


def given(files):
    return files / "idx", files / "topics.tsv", files / "qrels.txt"


def test_fusion_is_learned_measured_and_used(files, capsys):
    code, out, err = run(capsys, "learn", "fusion", *given(files), "--name", "mine", "--folds", 5, "--compare", "bm25", "--compare", "rrf")
    assert code == 1, "a topic without judgements was passed over"
    assert "topic q5: nothing is judged relevant" in err
    systems = {line.split("  ")[0] for line in out.splitlines()[1:-1]}
    assert systems == {"learned, held out", "coverage", "bm25", "rrf"}
    assert "learned from 5 topics into" in out
    before = (files / "idx" / "tables" / "mine.json").read_bytes()
    run(capsys, "learn", "fusion", *given(files), "--name", "mine", "--folds", 5, "--compare", "bm25", "--compare", "rrf")
    assert (files / "idx" / "tables" / "mine.json").read_bytes() == before
    code, out, _ = run(capsys, "search", files / "idx", "pump", "--model", 'learned(name="mine")', "--json", "-k", 2)
    assert code == 0
    assert len(out.splitlines()) == 2


def test_examples_are_exported(files, capsys):
    code, out, _ = run(capsys, "learn", "export", *given(files), "--out", files / "x.txt", "--depth", 3, "--others", 2)
    assert code == 1
    lines = [line for line in (files / "x.txt").read_text().splitlines() if not line.startswith("#")]
    assert f"{len(lines)} examples of 5 topics" in out
    assert any(line.startswith("1 qid:1 ") and line.endswith("# d0#@1 q0") for line in lines)


def test_documents_are_ranked_by_their_passages(files, capsys):
    topics, out = files / "topics.tsv", files / "documents.run"
    assert run(capsys, "run", files / "idx", topics, "--model", "bm25", "--document-ranking", "maxp", "--out", out, "-k", 3)[0] == 0
    lines = [line.split() for line in out.read_text().splitlines()]
    assert {line[2].count("#") for line in lines} == {0}
    assert max(int(line[3]) for line in lines) == 3
    assert run(capsys, "run", files / "idx", topics, "--model", "bm25", "--out", files / "passages.run", "-k", 1)[0] == 0
    best = [line.split() for line in (files / "passages.run").read_text().splitlines()]
    first = [line for line in lines if line[3] == "1"]
    assert [(line[0], line[2].split("#")[0], line[4]) for line in best] == [(line[0], line[2], line[4]) for line in first]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (["learn", "fusion", "--name", "a/b"], "cannot be the name of a table"),
        (["learn", "fusion", "--name", "mine", "--folds", "9"], "--folds must be from 2 to 5"),
        (["learn", "fusion", "--name", "mine", "--model", "bm52"], "unknown model 'bm52'"),
        (["learn", "fusion", "--name", "mine", "--measure", ""], "give at least one measure"),
        (["learn", "fusion", "--name", "mine", "--compare", "bm52"], "unknown model 'bm52'"),
        (["learn", "export", "--out", "no/such/folder/x"], "cannot write"),
    ],
)
def test_a_mistake_is_one_line(files, capsys, command, complaint):
    code, _, err = run(capsys, *command[:2], *given(files), *command[2:])
    assert code == 2
    assert err.count("\n") == 1
    assert complaint in err


def test_a_wrong_way_to_rank_documents_is_explained(files, capsys):
    code, _, err = run(capsys, "run", files / "idx", files / "topics.tsv", "--document-ranking", "minp", "--out", files / "x.run")
    assert code == 2
    assert "unknown document ranking 'minp'" in err
    assert not (files / "x.run").exists()
