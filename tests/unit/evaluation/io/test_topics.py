import gzip
import json
from pathlib import Path

import pytest

from perikope.core.errors import InputError
from perikope.evaluation.io.topics import read_topics
from perikope.query.topic import Topic


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
    assert read_topics(tmp_path / name) == [Topic("7", "pump", "EP1", options={"browse_query": "magnetic pump"}), Topic("q8", "seal")]


def test_a_patent_may_stand_instead_of_a_query(tmp_path: Path) -> None:
    path = tmp_path / "topics.jsonl"
    records = [
        {"qid": "1", "patent": "EP 1 000 000 A1", "claims": ["/patent-document/claims/claim[3]"], "family": ["NL-1-C2", "EP-0000007-A1"]},
        {"qid": "2", "patent": "mine.xml", "claims": "/a/claim /a[1]/claim[1] /a/claim[2]", "query": "pump"},
        {"qid": "3", "patent": "EP-0000007-A1.xml", "claims": None, "family": "EP-8-A1 EP-9-A1.xml"},
    ]
    path.write_text("\n".join(json.dumps(record) for record in records))
    (tmp_path / "mine.xml").touch()
    assert read_topics(path) == [
        Topic(
            "1",
            patent="EP 1 000 000 A1",
            claims=("/patent-document[1]/claims[1]/claim[3]",),
            family=("NL-1-C2", "EP-7-A1"),
        ),
        Topic("2", "pump", patent=str(tmp_path / "mine.xml"), claims=("/a[1]/claim[1]", "/a[1]/claim[2]")),
        Topic("3", patent="EP-7-A1", family=("EP-8-A1", "EP-9-A1")),
    ]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("t.tsv", "q2 pump", "there is no tab"),
        ("t.tsv", "q2\t  ", "the query of 'q2' is empty"),
        ("t.tsv", "\tpump", "the query id is empty"),
        ("t.tsv", "q 2\tpump", "the query id 'q 2' holds white space"),
        ("t.tsv", "q1\tpump", "query id 'q1' occurs twice in the file"),
        ("t.jsonl", '{"qid": "2", "query": "pump", "filtr": "a=1"}', "unknown key 'filtr'; did you mean 'filter'"),
        ("t.jsonl", '{"qid": "2", "query": "pump", "must-match": true}', "did you mean 'must_match'"),
        ("t.jsonl", '{"qid": "2", "query": "pump", "k": 3}', "'k' is an option of a whole search"),
        ("t.jsonl", '{"qid": "2", "query": "pump", "browse": "a", "browse_query": "b"}', "give one of them"),
        ("t.jsonl", "{", "not JSON"),
        ("t.jsonl", "[" * 100_000, "not JSON"),
        ("t.jsonl", '["q2", "pump"]', "expected a JSON object"),
        ("t.jsonl", '{"qid": "q2"}', "the object has no 'query'"),
        ("t.jsonl", '{"qid": "q2", "patent": ""}', "the query of 'q2' is empty"),
        ("t.jsonl", '{"qid": "q2", "patent": 7}', "'patent' must be text"),
        ("t.jsonl", '{"qid": "q2", "patent": "EP1", "claims": ["3"]}', "'3' is not the path of an element"),
        ("t.jsonl", '{"qid": "q2", "patent": "EP1", "claims": [3]}', "'claims' must be a text or a list of texts"),
        ("t.jsonl", '{"qid": "q2", "query": "pump", "claims": ["/a/claim"]}', "names claims, but no patent"),
        ("t.jsonl", '{"qid": "q2", "patent": "EP1", "family": {"x": 1}}', "'family' must be text"),
        ("t.jsonl", '{"query": "pump"}', "the object has no 'qid'"),
        ("t.jsonl", '{"qid": true, "query": "pump"}', "'qid' must be text"),
        ("t.jsonl", '{"qid": "q2", "query": ["pump"]}', "'query' must be text"),
        ("t.jsonl", '{"qid": "q2", "query": " "}', "the query of 'q2' is empty"),
        ("t.jsonl", '{"qid": "q2", "query": "\\ud800"}', "'query' holds half a surrogate pair"),
        ("t.jsonl", '{"qid": "q1", "query": "pump"}', "query id 'q1' occurs twice in the file"),
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
