"""`perikope learn prior`: learn a position prior, show it and use it."""

import json

import pytest

from perikope import cli
from perikope.index.saved_tables import read_table
from perikope.search.facade import Index


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return done.value.code, captured.out, captured.err


def document(id, word, part="description"):
    """A description of ten passages of five words, with `word` in every second passage, and an abstract."""
    sections = [
        {"title": word, "part": part, "passages": [f"{word if i % 2 == 0 else 'shaft'} two three four five" for i in range(10)]},
        {"part": "abstract", "passages": [f"about a {word}"]},
    ]
    return {"id": id, "title": "", "sections": sections}


@pytest.fixture
def files(tmp_path, capsys):
    documents = [document("d1", "pump"), document("d2", "rotor"), document("d3", "seal", part="claims")]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    (tmp_path / "topics.tsv").write_text("q1\tpump\nq2\trotor\nq3\tseal\n")
    (tmp_path / "qrels.txt").write_text(
        "q1 0 d1#@1 1\nq1 0 d1#@5 2\nq1 0 d1#@11 1\nq2 0 d2#@1 1\nq2 0 d1#@10 1\nq2 0 d1#@3 0\nq3 0 d3#@1 1\n"
    )
    assert run(capsys, "index", tmp_path / "documents.jsonl", "--to", tmp_path / "idx", "--stemmer", "porter")[0] == 0
    return tmp_path


def given(files):
    return files / "idx", files / "topics.tsv", files / "qrels.txt"


def test_a_prior_is_learned_shown_and_used(files, capsys):
    code, out, err = run(capsys, "learn", "prior", *given(files), "--model", "bm25", "--name", "mine")
    assert code == 0
    # The run returns every second passage of d1 for q1 and of d2 for q2. Relevant are tenths 1 and 5 for q1, and for q2
    # tenths 1 and 10, the latter in a document that is not fetched.
    relevant, returned = [2, 0, 0, 0, 1, 0, 0, 0, 0, 1], [2, 0] * 5
    weights = [(r / 4) / (p / 10) if p else 1.0 for r, p in zip(relevant, returned, strict=True)]
    assert weights == [2.5, 1, 0, 1, 1.25, 1, 0, 1, 0, 1]
    table = read_table("mine", "prior", files / "idx").values
    assert table["weights"] == pytest.approx(weights)
    assert (table["relevant"], table["returned"]) == (relevant, returned)
    lines = [line.split() for line in out.splitlines()]
    assert lines[:2] == [["tenth", "relevant", "returned", "weight"], ["1", "2", "2", "2.50"]]
    assert "learned from 3 topics into" in out
    assert "2 relevant passages in no description" in err, "one in the abstract, one in claims"
    index = Index.open(files / "idx")
    listed = ",".join(map(str, table["weights"]))
    by_name, by_number = (index.search("pump", model=f"position_prior(base=bm25,weights={one})", k=20) for one in ("mine", f"[{listed}]"))
    assert by_name.names() == by_number.names() != index.search("pump", model="bm25", k=20).names()
    code, out, _ = run(capsys, "explain", files / "idx", "pump", "d1#@1", "--model", 'position_prior(base=bm25,weights="mine")')
    assert code == 0
    assert "weight of its position in the description" in out


def test_the_same_is_learned_every_time_and_says_from_what(files, capsys):
    for name in ("one", "two"):
        run(capsys, "learn", "prior", *given(files), "--recipe", "gobeill2012", "--save", name)
    one, two = (read_table(name, "prior", files / "idx").values for name in ("one", "two"))
    assert one == two
    assert one["training"]["topics"] == 3
    assert one["training"]["model"].startswith("position_prior(base=pl2(")
    assert one["training"]["k"] == 1000
    assert one["training"]["search"]["documents"] == 10


def test_what_is_no_passage_of_the_index_is_reported(files, capsys):
    with open(files / "qrels.txt", "a") as file:
        file.write("q1 0 d9#@1 1\nq1 0 d1#@99 1\nq2 0 d1 1\n")
    (files / "topics.tsv").write_text("q1\tpump\nq2\trotor\nq3\tseal\nq4\tshaft\n")
    code, out, err = run(capsys, "learn", "prior", *given(files), "--model", "bm25", "--name", "mine")
    assert code == 1
    assert "3 relevant passages not in the index, such as d9#@1" in err
    assert "skipped: topic q4: nothing is judged relevant" in err
    assert "learned from 3 topics" in out


def test_a_run_that_returns_less_is_another_distribution(files, capsys):
    run(capsys, "learn", "prior", *given(files), "--model", "first_section", "--name", "all")
    run(capsys, "learn", "prior", *given(files), "--model", "first_section", "-k", 1, "--name", "first")
    everything, first = (read_table(name, "prior", files / "idx").values["returned"] for name in ("all", "first"))
    assert everything == [2] * 10
    assert first == [2] + [0] * 9


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--name", "a/b"], "cannot be the name of a table"),
        ([], "--name"),
        (["--name", "x", "--model", "bm52"], "unknown model 'bm52'"),
        (["--name", "x", "--part", "abstract"], "no passage that the run returns is in a part named description"),
        (["--name", "x", "--elements=section"], "leave --elements out"),
        (["--name", "x", "--recipe", "gobeil2012"], "did you mean 'gobeill2012'"),
    ],
)
def test_a_mistake_is_explained_and_nothing_is_saved(files, capsys, arguments, complaint):
    code, _, err = run(capsys, "learn", "prior", *given(files), *arguments)
    assert code == 2
    assert complaint in err
    assert not (files / "idx" / "tables").exists()


def test_judgements_without_descriptions_teach_nothing(files, capsys):
    (files / "qrels.txt").write_text("q3 0 d3#@1 1\n")
    code, _, err = run(capsys, "learn", "prior", *given(files), "--name", "x")
    assert code == 2
    assert "no passage that is judged relevant is in a part named description" in err
    (files / "qrels.txt").write_text("other 0 d3#@1 1\n")
    code, _, err = run(capsys, "learn", "prior", *given(files), "--name", "x")
    assert code == 2
    assert "no topic has a valid query and a relevant judgement" in err


def test_the_help_shows_how(capsys):
    code, out, _ = run(capsys, "learn", "prior", "--help")
    assert code == 0
    assert "perikope learn prior idx topics.tsv qrels.txt" in out
    assert "learn prior" in run(capsys, "learn", "--help")[1]
