"""`perikope split` and `perikope.split`: files become chunks."""

import json

import pytest

import perikope as pk
from perikope.index.duplicates import DuplicateWarning
from tests.cli.test_commands import DOCUMENTS, fails, files, run

__all__ = ["files"]


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_chunks_are_written_one_per_line(files, tmp_path, capsys):
    code, out, err = run(capsys, "split", files, "--to", tmp_path / "chunks.jsonl")
    assert (code, out, err) == (0, f"2 chunks written to {tmp_path / 'chunks.jsonl'}\n", "")
    first, second = lines(tmp_path / "chunks.jsonl")
    assert (first["id"], first["content"], first["path"]) == (
        "d1#17-36",
        "KX-200 › Descaling\n\nEvery three months.",
        ["KX-200", "Descaling"],
    )
    assert second["passages"] == ["d2#p1"]
    assert [chunk.to_dict() for chunk in pk.split(files)] == [
        {**line, "path": tuple(line["path"]), "passages": tuple(line["passages"])} for line in (first, second)
    ]


def test_the_same_files_give_the_same_bytes(files, tmp_path, capsys):
    for name in ("a.jsonl", "b.jsonl"):
        run(capsys, "split", files, "--to", tmp_path / name, "--budget", 4)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert all(line["tokens"] <= 4 for line in lines(tmp_path / "a.jsonl"))


def test_standard_output_has_only_chunks(files, capsys):
    code, out, _ = run(capsys, "split", files, "--to", "-", "--no-join")
    assert code == 0
    assert [json.loads(line)["document"] for line in out.splitlines()] == ["d1", "d2"]


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_split(files, tmp_path, capsys):
    (tmp_path / "broken.md.gz").write_bytes(b"no gzip")
    code, out, err = run(capsys, "split", tmp_path, "--to", tmp_path / "chunks.out")
    assert code == 1
    assert out.startswith("2 chunks written")
    assert "broken.md.gz" in err


def test_files_of_other_formats_are_counted_with_advice(files, tmp_path, capsys):
    (tmp_path / "notes").write_text("A note.")
    code, _, err = run(capsys, "split", tmp_path, "--to", tmp_path / "chunks.out")
    assert code == 0
    assert err.splitlines() == [
        "1 file of other formats passed over: 1 without suffix",
        f"  without suffix: if they are text, `perikope split {tmp_path} --to OTHER.jsonl --format text` reads them as plain text",
    ]


def test_wrong_options_are_named_and_no_file_is_written(files, tmp_path, capsys):
    fails(capsys, "cannot segment by", "split", files, "--to", tmp_path / "x.jsonl", "--segment", "pages")
    fails(capsys, "no such file", "split", tmp_path / "missing.md", "--to", tmp_path / "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()


def test_documents_and_several_paths_are_split_too(files):
    documents = list(pk.read(files))
    assert list(pk.split(documents)) == list(pk.split(iter(documents))) == list(pk.split([files]))
    assert list(pk.split(documents[0])) == list(pk.split(files))[:1]
    assert list(pk.split([])) == []


def test_the_first_document_with_an_id_is_split(tmp_path):
    path = tmp_path / "twice.jsonl"
    path.write_text("".join(json.dumps({**DOCUMENTS[1], "passages": [text]}) + "\n" for text in ("one", "two")))
    with pytest.warns(DuplicateWarning, match="d2"):
        assert [chunk.text for chunk in pk.split(path)] == ["one"]
