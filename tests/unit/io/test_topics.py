import gzip
import json
from pathlib import Path

import pytest

from perikope.errors import InputError
from perikope.io.topics import Topic, read_topics


def test_tsv_topics_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_text("10\t pump with a\tmagnetic coupling \n\n9\tseal\n", encoding="utf-8")
    assert read_topics(path) == [Topic("10", "pump with a\tmagnetic coupling"), Topic("9", "seal")]


@pytest.mark.parametrize("name", ["topics.jsonl", "topics.jsonl.gz"])
def test_json_lines_topics(tmp_path: Path, name: str) -> None:
    records = [
        {"qid": 7, "query": "pump", "browse": "magnetic pump", "patent": "EP1", "other": []},
        {"qid": "q8", "query": "seal", "browse": None},
    ]
    content = "\n".join(json.dumps(record) for record in records).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert read_topics(tmp_path / name) == [Topic("7", "pump", "magnetic pump", "EP1"), Topic("q8", "seal")]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("t.tsv", "q2 pump", "there is no tab"),
        ("t.tsv", "q2\t  ", "the query of 'q2' is empty"),
        ("t.tsv", "\tpump", "the query id is empty"),
        ("t.tsv", "q 2\tpump", "the query id 'q 2' holds white space"),
        ("t.tsv", "q1\tpump", "query id 'q1' stands in the file twice"),
        ("t.jsonl", "{", "not JSON"),
        ("t.jsonl", "[" * 100_000, "not JSON"),
        ("t.jsonl", '["q2", "pump"]', "expected a JSON object"),
        ("t.jsonl", '{"qid": "q2"}', "the object has no 'query'"),
        ("t.jsonl", '{"query": "pump"}', "the object has no 'qid'"),
        ("t.jsonl", '{"qid": true, "query": "pump"}', "'qid' must be text"),
        ("t.jsonl", '{"qid": "q2", "query": ["pump"]}', "'query' must be text"),
        ("t.jsonl", '{"qid": "q2", "query": " "}', "the query of 'q2' is empty"),
        ("t.jsonl", '{"qid": "q2", "query": "\\ud800"}', "'query' holds half a surrogate pair"),
        ("t.jsonl", '{"qid": "q1", "query": "pump"}', "query id 'q1' stands in the file twice"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, name: str, line: str, message: str) -> None:
    path = tmp_path / name
    first = '{"qid": "q1", "query": "x"}' if name.endswith("jsonl") else "q1\tx"
    path.write_text(f"{first}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_topics(path)
    assert (caught.value.path, caught.value.line) == (path, 3)
    assert str(caught.value).startswith(f"{path}:3: ")
