"""JSON Lines: defaults, and a clear error with its line for everything that can be wrong with a record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perikope import formats
from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError, UnreadableFile
from perikope.document.tree import Document, Kind
from perikope.formats import jsonl, line_chunks, read, sources
from tests.support.trees import check_tree, passages


def load(tmp_path: Path, *lines: Any) -> list[Document]:
    path = tmp_path / "input.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), encoding="utf-8")
    return list(read(path, language="fr"))


def nested(depth: int) -> dict[str, Any]:
    section: dict[str, Any] = {"passages": ["deep"]}
    for _ in range(depth - 1):
        section = {"sections": [section]}
    return {"id": "d", "sections": [section]}


def test_null_is_the_same_as_leaving_the_key_out(tmp_path: Path) -> None:
    keys = ["title", "language", "metadata", "cites", "sections", "content"]
    [document] = load(tmp_path, {"id": "d", "passages": [{"text": "a pump", "tag": None, "marks": None}], **dict.fromkeys(keys)})
    assert document.outline() == "section document language=fr\n  passage p 'a pump'\n"


def test_passages_come_before_sections_whatever_the_order_of_the_keys(tmp_path: Path) -> None:
    [document] = load(tmp_path, {"id": "d", "sections": [{"passages": ["second"]}], "passages": ["first"]})
    assert passages(document) == ["first", "second"]


def test_content_tells_passages_elements_and_sections_apart(tmp_path: Path) -> None:
    content = ["a", {"text": "b"}, {"content": ["c"]}, {"title": "t", "passages": ["d"]}, {"title": "", "sections": [{"passages": ["e"]}]}]
    [document] = load(tmp_path, {"id": "d", "content": content})
    tops = [i for i in range(1, len(document.spans)) if document.spans.parent[i] == 0]
    kinds = [(Kind(document.spans.kind[i]), document.labels[document.spans.tag[i]]) for i in tops]
    element, section = (Kind.ELEMENT, "div"), (Kind.SECTION, "sec")
    assert kinds == [(Kind.PASSAGE, "p"), (Kind.PASSAGE, "p"), element, section, element]


def test_an_empty_passage_stays_inside_its_section_and_keeps_the_running_numbers(tmp_path: Path) -> None:
    [document] = load(tmp_path, {"id": "d", "passages": ["x"], "sections": [{"passages": ["", "y"]}, {"sections": [{}]}]})
    check_tree(document)
    assert passages(document) == ["x", "", "y"]


def test_nesting_is_bounded(tmp_path: Path) -> None:
    [document] = load(tmp_path, nested(jsonl.MAX_DEPTH))
    check_tree(document)
    with pytest.raises(InputError, match="nested deeper than 64"):
        load(tmp_path, nested(jsonl.MAX_DEPTH + 1))
    with pytest.raises(InputError, match=r"not valid JSON: .*(depth|recursion)"):
        load(tmp_path, '{"id": "d", "sections": ' + "[" * 100_000)
    with pytest.raises(InputError, match=r"sections\[0\]: a section must be an object, not a list"):
        load(tmp_path, '{"id": "d", "sections": ' + "[" * 1000 + "]" * 1000 + "}")
    with pytest.raises(InputError, match='"metadata" is nested deeper than 64'):
        load(tmp_path, '{"id": "d", "metadata": {"a": ' + "[" * 70 + "]" * 70 + "}}")


def test_reads_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    path.write_text('\ufeff{"id": "d1", "passages": ["one"]}\n\n  \nbroken\n', encoding="utf-8")
    found = read(path)
    assert next(found).id == "d1"
    with pytest.raises(InputError, match=r"input\.jsonl:4: not valid JSON") as caught:
        next(found)
    assert caught.value.line == 4


def test_errors_in_records_are_raised_in_a_folder_too(tmp_path: Path) -> None:
    problems: list[UnreadableFile] = []
    (tmp_path / "a.jsonl").write_text('{"id": "d1", "passages": ["one"]}\nbroken\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.jsonl:2: not valid JSON"):
        list(read(tmp_path, on_problem=problems.append))
    assert problems == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_of_another_program_is_named_and_the_rest_of_the_folder_is_read(tmp_path: Path, workers: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("perikope.build.workers.TASK_BYTES", 64)
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.jsonl").write_text('{"level": "info", "message": "started"}\n' * 50, encoding="utf-8")
    (files / "b.jsonl").write_text('{"id": "d1", "passages": ["one"]}\n' * 1, encoding="utf-8")
    report = build(str(tmp_path / "index"), [str(files)], BuildOptions(workers=workers))
    assert report.documents == 1
    [problem] = report.skipped
    assert (Path(str(problem.path)).name, problem.line) == ("a.jsonl", 1)
    assert "the document has no id" in problem.reason
    with pytest.raises(InputError, match=r"a\.jsonl:\d+: the document has no id"):
        build(str(tmp_path / "named"), [str(files / "a.jsonl")], BuildOptions(workers=workers))


def test_a_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(formats, "MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match=r"input\.jsonl:2: the line is longer than 1 MB"):
        load(tmp_path, {"id": "d0", "passages": ["fine"]}, {"id": "d", "passages": ["a" * (2 << 20)]})
    [source] = sources(tmp_path / "input.jsonl")
    with pytest.raises(InputError, match=r"input\.jsonl:2: the line is longer than 1 MB"):
        list(line_chunks(source, 100))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("[1]", "a line must hold one document, an object in braces, not a list"),
        ('{"id": "d"', "not valid JSON: unexpected end of data at character 12; write one complete object per line"),
        ('{"id": "d", "metadata": {"a": NaN}}', "not valid JSON: .* at character 31"),
        ('{"id": "d", "metadata": {"a": -Infinity}}', "not valid JSON"),
        ('{"id": "d", "metadata": {"a": 1e999}}', "not valid JSON: number is infinity .* at character 31"),
        ('{"id": "d", "passages": ["\\ud800"]}', "not valid JSON: .*surrogate.* at character 27"),
        ('{"id": "d", "passages": ["x"]} {}', "not valid JSON"),
        ({"passages": ["x"]}, 'the document has no id; add "id"'),
        ({"id": " ", "passages": ["x"]}, "the document has no id"),
        ({"id": 7, "passages": ["x"]}, '"id" must be text in quotes, not the number 7'),
        ({"id": "d"}, "document 'd' is empty"),
        ({"id": "d", "passages": ["…"]}, "document 'd' is empty"),
        ({"id": "d", "text": "x"}, "a document has no key 'text'; use \"passages\"; valid: cites, content, id,"),
        ({"id": "a", "body": "pump text"}, "a document has no key 'body'; use \"passages\"; valid: cites, content, id, .* put other data"),
        ({"id": "d", "passages": ["x"], "Contents": "y"}, "a document has no key 'Contents'; use \"passages\""),
        ({"_id": "d", "passages": ["x"]}, "a document has no key '_id'; use \"id\""),
        (
            {"id": "d", "title": "Bell", "claims": ["A bell."]},
            r"a document has no key 'claims'; use \"sections\": \[\{\"part\": \"claims\", \"passages\": \[\"…\"\]\}\]",
        ),
        ({"docno": "d", "passages": ["x"]}, "a document has no key 'docno'; use \"id\""),
        ({"id": "d", "lang": "de", "passages": ["x"]}, "a document has no key 'lang'; use \"language\""),
        ({"id": "d", "meta": {"date": "2013"}, "passages": ["x"]}, "a document has no key 'meta'; use \"metadata\""),
        ({"id": "d", "citations": ["e"], "passages": ["x"]}, "a document has no key 'citations'; use \"cites\""),
        ({"id": "d", "sections": [{"heading": "y"}]}, r"sections\[0\]: a section has no key 'heading'; use \"title\"; valid: content"),
        ({"id": "d", "sections": [{"name": "y", "paragraphs": ["x"]}]}, "a section has no key 'name'; use \"title\""),
        ({"id": "d", "sections": [{"title": "y", "paragraphs": ["x"]}]}, "a section has no key 'paragraphs'; use \"passages\""),
        ({"id": "d", "passages": [{"body": "x"}]}, r"passages\[0\]: a passage has no key 'body'; use \"text\""),
        ({"id": "d", "passages": [{"text": "x", "references": ["p"]}]}, "a passage has no key 'references'; use \"refs\""),
        ({"id": "d", "title": ["x"]}, '"title" must be text in quotes, not a list'),
        ({"id": "d", "passages": "x"}, '"passages" must be a list in brackets, not text'),
        ({"id": "d", "passages": {}}, '"passages" must be a list in brackets, not an object'),
        ({"id": "d", "passages": ["x", 3]}, r'passages\[1\]: a passage must be text or an object with "text", not the number 3'),
        ({"id": "d", "passages": [{"id": "p"}]}, r'passages\[0\]: the passage has no "text"'),
        ({"id": "d", "passages": [{"text": True}]}, '"text" must be text in quotes, not true or false'),
        ({"id": "d", "passages": [{"text": "x", "titel": "y"}]}, "a passage has no key 'titel'; valid: id, language, marks"),
        ({"id": "d", "sections": ["x"]}, r"sections\[0\]: a section must be an object, not text"),
        ({"id": "d", "sections": [{"sections": [{"text": "x"}]}]}, r"sections\[0\]\.sections\[0\]: a section has no key 'text'"),
        ({"id": "d", "content": [{"id": "x"}]}, r'content\[0\]: add "text" if this is a passage'),
        ({"id": "d", "content": [{"text": "x", "content": []}]}, "a passage has no key 'content'"),
        ({"id": "d", "content": [], "passages": ["x"]}, 'give either "content" or "passages"'),
        ({"id": "d", "metadata": [], "passages": ["x"]}, '"metadata" must be an object'),
        ({"id": "d", "cites": "d7", "passages": ["x"]}, '"cites" must be a list of texts'),
        ({"id": "d", "passages": [{"text": "x", "refs": [1]}]}, '"refs" must be a list of texts'),
        ({"id": "d", "language": "english", "passages": ["x"]}, '"language" must be a code such as en'),
        ({"id": "d", "language": "zz", "passages": ["x"]}, "\"language\" must be a code such as en, fr or de, not 'zz'"),
        (
            {"id": "d", "passages": ["x", {"id": "@1", "text": "y"}]},
            r"passages\[1\]: the id '@1' .* ids of the form @3 are running numbers",
        ),
        ({"id": "d", "sections": [{"id": "@12", "passages": ["x"]}]}, "ids of the form @3 are running numbers"),
        ({"id": "d", "passages": [{"id": "p", "text": "x"}, {"id": "p", "text": "y"}]}, r"passages\[1\]: the id 'p' is used twice"),
        *(
            ({"id": "d", "passages": [{"text": "pump", "marks": marks}]}, message)
            for marks, message in [
                ({"b": 1}, '"marks" must be a list'),
                (["b"], "a mark must be"),
                ([["b", 0]], "a mark must be"),
                ([["b", 0, 1.5]], "a mark must be"),
                ([["b", False, True]], "a mark must be"),
                ([[1, 0, 2]], "a mark must be"),
                ([["b", 0, 5]], "0 <= start < end <= 4"),
                ([["b", -1, 2]], "lies outside the text"),
                ([["b", 2, 2]], "lies outside the text"),
            ]
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(record: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path, {"id": "d0", "passages": ["fine"]}, record)
    assert caught.value.line == 2
    assert not isinstance(caught.value, UnreadableFile)
    assert len(str(caught.value).splitlines()) == 1


def test_keys_of_other_tools_are_passed_over_where_ours_are_there(tmp_path: Path) -> None:
    passage = {"text": "a pump", "id": "@p", "doc_id": "d", "name": "n", "heading": "h", "score": 1.5, "lang": None}
    section = {"title": "t", "name": "n", "xml_id": "s", "references": ["r"], "passages": [passage]}
    record = {
        "id": "@1",
        "_id": "7",
        "docno": "8",
        "lang": "de",
        "language": "fr",
        "metadata": {},
        "meta": {},
        "cites": [],
        "references": [],
    }
    [document] = load(tmp_path, {**record, "url": "u", "score": 1, "body": None, "sections": [section]})
    assert document.id == "@1"
    assert document.outline() == "section document language=fr\n  section sec\n    title title 't'\n    passage p #@p 'a pump'\n"


def test_a_number_of_thousands_of_digits_is_refused_in_our_words(tmp_path: Path) -> None:
    for record in ('{"id": "d", "metadata": {"n": %s}}', '{"id": %s}', '{"id": "d", "passages": [{"text": "x", "marks": [["b", 0, %s]]}]}'):
        with pytest.raises(InputError, match=r"input\.jsonl:1: not valid JSON: number is infinity") as caught:
            load(tmp_path, record % ("1" * 5000))
        assert "set_int_max_str_digits" not in str(caught.value)
        assert len(str(caught.value)) < 300


def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    path.write_bytes(b'{"id": "d", "passages": ["caf\xe9"]}\n')
    with pytest.raises(InputError, match=r"input\.jsonl:1: not UTF-8 text \(byte 30\)"):
        list(read(path))


def test_marks_and_big_numbers_are_kept(tmp_path: Path) -> None:
    [document] = load(tmp_path, {"id": "d", "metadata": {"n": 2**63, "x": 0.1}, "passages": [{"text": "pump", "marks": [["b", 0, 2]]}]})
    assert document.metadata == {"n": 2**63, "x": 0.1}
    assert document.outline().endswith("passage p 'pump'\n    mark b 'pu'\n")
