import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import InputError, UsageError
from perikope.document.tree import Place
from perikope.evaluation.io.clef_ip import by_path, document_of, write_run
from perikope.evaluation.io.judgements import judgement_form, read_judgements
from perikope.evaluation.io.runs import read_run, run_form
from perikope.evaluation.io.topics import read_topics, topic_form
from perikope.evaluation.measures import ranked_names
from perikope.query.topic import Topic

CLAIM = "/patent-document[1]/claims[1]/claim"

PLAIN = """<tid>PSG-1</tid>
<tfile>EP-1234567-A1.xml</tfile>
<tfam-docs>JP-2003123456-A.xml EP-0680812-A1.xml</tfam-docs>
<tclaims>/patent-document/claims/claim[1] /patent-document/claims/claim[2]
/patent-document/claims/claim[16] </tclaims>

<tid>PSG-2</tid>
<tfile>WO-2004012345-A2.xml</tfile>
<tfam-docs></tfam-docs>
<tclaims>/patent-document/claims/claim</tclaims>
"""

TOPICS = [
    Topic(
        "PSG-1",
        patent="EP-1234567-A1",
        claims=(f"{CLAIM}[1]", f"{CLAIM}[2]", f"{CLAIM}[16]"),
        family=("JP-2003123456-A", "EP-680812-A1"),
    ),
    Topic("PSG-2", patent="WO-2004012345-A2", claims=(f"{CLAIM}[1]",)),
]


def wrapped(text: str) -> str:
    return "<?xml version='1.0'?>\n<topics>\n" + "".join(f"<topic>\n{block}\n</topic>\n" for block in text.split("\n\n")) + "</topics>"


@pytest.mark.parametrize("content", [PLAIN, PLAIN.replace("\n", "\r\n"), PLAIN.replace("tid>", "TID>"), wrapped(PLAIN)])
@pytest.mark.parametrize("name", ["topics.txt", "topics.txt.gz", "topics.xml"])
def test_topics_with_and_without_a_root(tmp_path: Path, content: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    assert topic_form(path) == "clef-ip"
    assert read_topics(path) == TOPICS


@pytest.mark.parametrize("folder", [".", "tfiles"])
def test_a_file_that_lies_beside_the_topics_is_the_patent(tmp_path: Path, folder: str) -> None:
    (tmp_path / "topics.txt").write_text(PLAIN)
    file = tmp_path / folder / "EP-1234567-A1.xml"
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert [topic.patent for topic in read_topics(tmp_path / "topics.txt")] == [str(file), "WO-2004012345-A2"]


def test_what_others_add_to_a_topic_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("<!-- ours\n -->\n<topic>\n<tid>a</tid><lang>EN</lang><tfile>EP-1-A1.xml</tfile></topic>\n")
    assert read_topics(tmp_path / "t") == [Topic("a", patent="EP-1-A1")]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("<tid>a</tid>\n<tfile>x</tfile>\n\n<tid>b</tid>\n", 4, "the topic has no <tfile>"),
        ("<tid>a</tid>\n<tfile>x</tfile>\n<tid></tid>\n<tfile>x</tfile>", 3, "the topic has no <tid>"),
        ("<tid>a</tid>\n<tfile>x\n<tclaims>/a</tclaims>", 2, "<tfile> is not closed"),
        ("<tid>a</tid>\n<tfile>x</tfile>\n<tclaims>/a/b", 3, "<tclaims> is not closed"),
        ("<tid>a</tid>\n<tfile>x</tfile>\n<tfile>y</tfile>", 3, "<tfile> occurs twice in one topic"),
        ("<tid>a</tid>\nEP-1-A1.xml\n<tfile>x</tfile>", 2, "there is text outside of a field: 'EP-1-A1.xml'"),
        ("<tid>a</tid>\n<tfile>x</tfile>\n<tclaims>/a/claim[last()]</tclaims>", 1, "is not the path of an element"),
        ("<tid>a b</tid>\n<tfile>x</tfile>", 1, "the query id 'a b' holds white space"),
        ("<tid>a</tid>\n<tfile>x</tfile>\n<tid>a</tid>\n<tfile>y</tfile>", 3, "query id 'a' occurs twice in the file"),
        ("<!-- no end\n<tid>a</tid>", 1, "does not end"),
        ("<topics></topics>", 1, "no topics"),
    ],
)
def test_a_wrong_topic_is_named_with_its_line(tmp_path: Path, content: str, line: int, message: str) -> None:
    path = tmp_path / "topics.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=message.replace("(", r"\(")) as caught:
        read_topics(path, "clef-ip")
    assert (caught.value.path, caught.value.line) == (path, line)


def test_topics_have_no_fields(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(PLAIN)
    with pytest.raises(UsageError, match="have no fields"):
        read_topics(tmp_path / "t", field="title")


def test_documents_have_our_ids() -> None:
    names = ("EP-0000001-A1.xml", "WO-1978000001-A1.xml", "US-D0435854-S1", "report.xml", "a-b-c", "EP-1-A1.xml.gz")
    assert [document_of(name) for name in names] == ["EP-1-A1", "WO-1978000001-A1", "US-D435854-S1", "report", "a-b-c", "EP-1-A1"]


def test_judgements_by_path_are_names(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(
        "PSG-1 Q0 EP-0680812-A1 /patent-document/claims/claim[3] 1\nPSG-1 Q0 EP-0680812-A1 /patent-document/abstract/p 0\n"
    )
    assert judgement_form(tmp_path / "qrels") == "clef-ip"
    assert read_judgements(tmp_path / "qrels") == {
        "PSG-1": {f"EP-680812-A1#{CLAIM}[3]": 1, "EP-680812-A1#/patent-document[1]/abstract[1]/p[1]": 0}
    }


def test_judgements_with_commas_are_all_relevant(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("PSG-1,EP-0680812-A1,/patent-document/claims/claim[3]\nPSG-1, EP-2-A1, /patent-document/claims/claim\n")
    assert read_judgements(tmp_path / "qrels") == {"PSG-1": {f"EP-680812-A1#{CLAIM}[3]": 1, f"EP-2-A1#{CLAIM}[1]": 1}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("t Q0 EP-1-A1 /a/b", r"expected 5 columns \(topic Q0 document xpath relevance\), found 4"),
        ("t Q0 EP-1-A1 /a/b yes", "the relevance must be a whole number"),
        ("t Q0 EP-1-A1 a/b 1", "'a/b' is not the path of an element"),
        ("t Q0 EP-1-A1 /a[1]/b[1] 1", "judged twice"),
        ("t,EP-1-A1", "found 1"),
    ],
)
def test_a_wrong_judgement_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(f"t Q0 EP-1-A1 /a/b[1] 1\n\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        read_judgements(path)
    assert (caught.value.path, caught.value.line) == (path, 3)


def test_the_ranks_of_a_run_decide(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("t Q0 EP-1-A1 /a/b[2] 2 0.9\nt Q0 EP-0000001-A1 /a/b 1 0.5\nt Q0 EP-2-A1 /a/b 3 0.4\n")
    assert run_form(tmp_path / "run") == "clef-ip"
    run = read_run(tmp_path / "run")
    assert ranked_names(run["t"]) == ["EP-1-A1#/a[1]/b[1]", "EP-1-A1#/a[1]/b[2]", "EP-2-A1#/a[1]/b[1]"]
    assert run["t"]["EP-1-A1#/a[1]/b[1]"] == 0.5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("t Q0 EP-1-A1 /a/b[2] 2", "expected 6 columns"),
        ("t Q0 EP-1-A1 /a/b[2] second 0.5", "the rank must be a whole number"),
        ("t Q0 EP-1-A1 /a/b[2] 2 nan", "finite"),
        ("t Q0 EP-1-A1 b[2] 2 0.5", "is not the path"),
        ("t Q0 EP-1-A1 /a/b[2] 1 0.5", "rank 1 occurs twice"),
        ("t Q0 EP-1-A1 /a[1]/b[1] 2 0.5", "occurs twice in the list"),
    ],
)
def test_a_wrong_line_of_a_run_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "run"
    path.write_text(f"t Q0 EP-1-A1 /a/b 1 0.9\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        read_run(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_a_run_has_at_most_100_documents_a_topic(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text("".join(f"t Q0 d{number} /a/b {number} {-number}\n" for number in range(101)))
    with pytest.raises(InputError, match="more than 100 documents") as caught:
        read_run(path)
    assert caught.value.line == 101
    ranking = [(f"d{number // 2}#/a[1]/b[{number % 2 + 1}]", 1.0) for number in range(202)]
    write_run(path, [("t", ranking)])
    assert list(read_run(path)["t"]) == [name for name, _ in ranking[:200]]


def test_a_run_is_written_as_clef_ip_writes_it(tmp_path: Path) -> None:
    names = [(f"EP-680812-A1#{CLAIM}[1]", 2.0), ("WO-2003000001-A1#/patent-document[1]/abstract[2]/p[1]", 2.0)]
    write_run(tmp_path / "run", [("t", names), ("u", [])])
    assert (tmp_path / "run").read_text() == (
        "t Q0 EP-0680812-A1 /patent-document/claims/claim[1] 1 2\nt Q0 WO-2003000001-A1 /patent-document/abstract[2]/p[1] 2 1.99999988\n"
    )


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 4), st.floats(-5, 5)), unique_by=lambda row: row[:2]), st.booleans())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, float]], packed: bool) -> None:
    path = tmp_path_factory.mktemp("runs") / ("run.gz" if packed else "run")
    ranking = [(f"EP-{document}-B1#{CLAIM}[{claim}]", score) for document, claim, score in rows]
    write_run(path, [("t", ranking)])
    assert ranked_names(read_run(path).get("t", {})) == [name for name, _ in ranking]


def test_hits_are_named_by_the_passage_that_holds_them() -> None:
    paths = [
        f"{CLAIM}[3]/claim-text[1]",
        f"{CLAIM}[3]/claim-text[2]",
        "/patent-document[1]/description[1]/p[4]",
        "/patent-document[1]/bibliographic-data[1]/technical-data[1]/invention-title[1]",
        "/patent-document[1]",
        "/article[1]/body[1]/sec[1]/p[2]",
    ]
    hits = [(f"EP-1-A1#p{number}", 9.0 - number) for number in range(len(paths))]
    found = by_path(hits, lambda number: Place(paths[number], 0, 1))
    assert found == [
        (f"EP-1-A1#{CLAIM}[3]", 9.0),
        ("EP-1-A1#/patent-document[1]/description[1]/p[4]", 7.0),
        ("EP-1-A1#/article[1]/body[1]/sec[1]/p[2]", 4.0),
    ]


def test_a_hit_without_a_place_is_refused() -> None:
    with pytest.raises(UsageError, match="d1#p1 has no position in an XML file, which a CLEF-IP run needs; index the XML files themselves"):
        by_path([("d1#p1", 1.0)], lambda number: None)


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ([("a b", [])], "cannot stand in a run"),
        ([("t", []), ("t", [])], "ranked twice"),
        ([("t", [("d#/a[1]", 1.0), ("d#/a[1]", 0.5)])], "occurs twice"),
        ([("t", [("d#p1", 1.0)])], "is not the path"),
        ([("t", [("report%207#/a[1]", 1.0)])], "'report 7' cannot stand in a run"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, rankings: list[tuple[str, list[tuple[str, float]]]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        write_run(tmp_path / "run", rankings)
    assert os.listdir(tmp_path) == []
