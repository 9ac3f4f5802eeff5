import gzip
import json
from pathlib import Path

import pytest

from perikope.core.errors import InputError, UsageError
from perikope.evaluation.io.judgements import judgement_form, read_judgements
from perikope.evaluation.io.topics import read_topics, topic_form
from perikope.formats import read
from perikope.query.topic import Topic

QUERIES = [{"_id": "q1", "text": "what drives\na rotor", "metadata": {}}, {"_id": "q2", "text": "seal"}]
CORPUS = [
    {"_id": "d 1", "title": "Pumps", "text": "A magnet drives the rotor.", "metadata": {"url": "x"}},
    {"_id": "d2", "title": "Only a title", "text": ""},
    {"_id": "d3", "title": "", "text": " "},
    {"_id": "d4", "text": "No title."},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq2\td2\t0\n"


def lines(records: list[dict[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(lines(CORPUS))
    (tmp_path / "queries.jsonl").write_text(lines(QUERIES))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(QRELS)
    return tmp_path


def test_the_queries_of_a_folder(folder: Path) -> None:
    expected = [Topic("q1", "what drives a rotor"), Topic("q2", "seal")]
    assert topic_form(folder) == "beir"
    assert read_topics(folder) == expected
    assert read_topics(folder / "queries.jsonl") == expected
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress((folder / "queries.jsonl").read_bytes()))
    (folder / "queries.jsonl").unlink()
    assert read_topics(folder) == expected


def test_the_judgements_of_a_folder_are_of_documents_by_their_names(folder: Path) -> None:
    expected = {"q1": {"d%201": 2}, "q2": {"d2": 0}}
    assert judgement_form(folder) == "beir"
    assert read_judgements(folder) == expected
    assert read_judgements(folder / "qrels" / "test.tsv") == expected
    (folder / "qrels" / "train.tsv").write_text(QRELS)
    with pytest.raises(UsageError, match=r"several splits; give one of them: .*test\.tsv, .*train\.tsv"):
        read_judgements(folder)


def test_without_a_header_the_form_must_be_said(tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text(QRELS.partition("\n")[2])
    assert read_judgements(path, "beir") == {"q1": {"d%201": 2}, "q2": {"d2": 0}}
    path.write_text("q1\td2\t2\n")
    with pytest.raises(InputError, match="found 3"):
        read_judgements(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1\td9", "expected 3 columns with tabs between"),
        ("q1 d9 1", "expected 3 columns with tabs between"),
        ("q1\t\t1", "an id is empty"),
        ("q1\td9\thigh", "the score must be a whole number"),
        ("q1\td 1\t1", "'d 1' is judged twice"),
    ],
)
def test_a_wrong_judgement_is_named(folder: Path, line: str, message: str) -> None:
    path = folder / "qrels" / "test.tsv"
    path.write_text(f"{QRELS}{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        read_judgements(folder)
    assert (caught.value.path, caught.value.line) == (path, 4)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"_id": 7, "text": "x"}, "'_id' and 'text' must be text"),
        ({"_id": "q", "text": ["x"]}, "'_id' and 'text' must be text"),
        ({"_id": "q", "text": " "}, "the query of 'q' is empty"),
        ({"_id": "q", "text": "\ud800"}, "half a surrogate pair"),
        ({"_id": "q"}, "the object has no 'qid'"),
    ],
)
def test_a_wrong_query_is_named(folder: Path, record: dict[str, object], message: str) -> None:
    path = folder / "queries.jsonl"
    path.write_text(lines([*QUERIES, record]))
    with pytest.raises(InputError, match=message) as caught:
        read_topics(folder)
    assert (caught.value.path, caught.value.line) == (path, 3)


def test_what_is_no_such_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder has no queries\.jsonl; is it a BEIR folder\?"):
        read_topics(tmp_path)
    with pytest.raises(InputError, match=r"the folder has no qrels/\*\.tsv"):
        read_judgements(tmp_path)


def test_a_corpus_is_documents_of_one_passage(folder: Path) -> None:
    documents = list(read(folder / "corpus.jsonl"))
    # The empty one is left out: real collections have some.
    assert [document.id for document in documents] == ["d 1", "d2", "d4"]
    assert documents[0].text == "Pumps\nA magnet drives the rotor."
    assert documents[0].metadata == {"url": "x"}
    assert documents[1].text == "Only a title"


def test_queries_are_not_taken_for_documents(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"queries\.jsonl:1: the file holds the queries of a BEIR folder, not documents; index only its corpus\.jsonl"
    ):
        list(read(folder))
