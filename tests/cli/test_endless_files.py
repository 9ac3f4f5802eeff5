"""Options that read a file refuse devices, pipes and huge files in one line, without reading them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import contextlib, io, json, resource, sys
from perikope.cli import main
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for arguments in json.loads(sys.argv[1]):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, errors.getvalue()]), flush=True)
"""

PLAN = """
title = "Endless"
measures = ["nDCG@10"]
collection = { documents = ["d.md"] }
topics = { file = "topics.jsonl", judgements = "qrels" }
systems = [{ name = "passage", model = "bm25" }]
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="devices and limits are those of Linux")


def commands(file: str, toml: str, index: str, topics: str, qrels: str, run: str) -> dict[str, list[str]]:
    """Commands in which an option or an argument names the file; `toml` is another name of it, and so is
    the name that ends in txt."""
    return {
        "stop words": ["index", topics, "--format", "jsonl", "--to", f"{index}-new", "--stopwords", file],
        "profile": ["index", topics, "--to", f"{index}-new", "--format", toml],
        "document": ["index", file, "--format", "text", "--to", f"{index}-new"],
        "synonyms": ["search", index, "pump", "--synonyms", file],
        "recipe": ["search", index, "pump", "--recipe", toml],
        "recipe shown": ["recipes", toml],
        "ids": ["search", index, "pump", "--ids", file],
        "candidates": ["search", index, "pump", "--candidates", file],
        "patent": ["search", index, "--patent", toml.removesuffix("toml") + "txt"],
        "topics": ["run", index, file, "--out", f"{index}.run"],
        "topics in TSV": ["run", index, file, "--topic-format", "tsv", "--out", f"{index}.run"],
        "judgements": ["eval", file, run],
        "run": ["eval", qrels, file],
        "tuning": ["tune", index, file, qrels],
        "learning": ["learn", "tags", index, topics, file, "--name", "x"],
        "experiment": ["experiment", toml, "--out", f"{index}-out"],
        "documents of an experiment": ["experiment", f"{index}.plan.toml", "--documents", file, "--out", f"{index}-out"],
    }


@pytest.mark.parametrize("kind", ["device", "pipe", "sparse file"])
def test_an_endless_file_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    file, toml, index = tmp_path / "endless", tmp_path / "endless.toml", tmp_path / "idx"
    if kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        with file.open("wb") as sparse:
            sparse.truncate(1 << 40)
    toml.symlink_to(file)
    toml.with_suffix(".txt").symlink_to(file)
    topics, qrels, run = tmp_path / "topics.jsonl", tmp_path / "qrels", tmp_path / "run"
    topics.write_text('{"qid": "1", "query": "pump"}\n')
    qrels.write_text("1 0 d.md#@1 1\n")
    run.write_text("1 Q0 d.md#@1 1 1.0 x\n")
    (tmp_path / "d.md").write_text("The pump.")
    (tmp_path / "idx.plan.toml").write_text(PLAN)
    asked = commands(*map(str, (file, toml, index, topics, qrels, run)))
    if kind == "pipe":
        # Files of lines may be pipes, so that a shell can unpack them: perikope eval qrels <(zcat run.gz)
        for name in ("ids", "candidates", "topics in TSV", "judgements", "run", "learning"):
            asked.pop(name)
    made = ["index", str(tmp_path / "d.md"), "--to", str(index)]
    given = json.dumps([made, *asked.values()])
    done = subprocess.run([sys.executable, "-c", PROGRAM, given], capture_output=True, text=True, timeout=300, check=False)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert outcomes[0][0] == 0
    assert len(outcomes) == len(asked) + 1, done.stderr[-1000:]
    for name, (code, errors) in zip(asked, outcomes[1:], strict=True):
        assert (name, code, errors.count("\n")) == (name, 2, 1), errors
        reasons = ("is not a regular file", "is too large for", "is larger than", "is longer than")
        assert any(reason in errors for reason in reasons), (name, errors)
