"""The form of a file is seen from its content; what is damaged is an error that names the line, never anything else."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import InputError, UsageError
from perikope.evaluation.io import inex
from perikope.evaluation.io.judgements import JUDGEMENT_FORMS, disagreement, judgement_form, read_judgements
from perikope.evaluation.io.runs import RUN_FORMS, read_run, run_form, write_run
from perikope.evaluation.io.topics import TOPIC_FORMS, read_topics, topic_form
from tests.unit.evaluation.io.test_clef_ip import PLAIN
from tests.unit.evaluation.io.test_inex import JUDGED, TOPICS
from tests.unit.evaluation.io.test_trec import NEW, OLD

TOPIC_FILES = {
    "tsv": "q1\tpump\nq2\tmagnetic pump\n",
    "jsonl": '{"qid": "q1", "query": "pump"}\n{"qid": "q2", "patent": "EP1", "claims": ["/a/claim[2]"], "family": "EP-2-A1"}\n',
    "trec": OLD,
    "clef-ip": PLAIN,
    "inex": TOPICS,
}
JUDGEMENT_FILES = {
    "trec": "q1 0 d1#p1 1\nq1 0 d2 0\n",
    "clef-ip": "t Q0 EP-1-A1 /patent-document/claims/claim[3] 1\nt Q0 EP-1-A1 /patent-document/abstract/p 1\n",
    "inex": JUDGED,
    "beir": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
    "spans": "q1\td1#p1\t0\t12\nq1\td1#p1\t20\t31\n",
}
RUN_FILES = {
    "trec": "q1 Q0 d1#p1 1 0.5 me\nq1 Q0 d2 2 0.25 me\n",
    "clef-ip": "t Q0 EP-1-A1 /patent-document/claims/claim[3] 1 0.5\nt Q0 EP-1-A1 /patent-document/abstract/p 2 0.25\n",
    "inex": "1 Q0 d2 1 0.5 me 10 5\n1 Q0 d1 2 0.25 me 0 7\n",
}

READERS: list[tuple[Callable[..., Any], dict[str, str]]] = [
    (read_topics, TOPIC_FILES),
    (read_judgements, JUDGEMENT_FILES),
    (read_run, RUN_FILES),
]
ALL = [(read, form, content) for read, files in READERS for form, content in files.items()]


@pytest.mark.parametrize(
    ("form_of", "files", "forms"),
    [(topic_form, TOPIC_FILES, TOPIC_FORMS), (judgement_form, JUDGEMENT_FILES, JUDGEMENT_FORMS), (run_form, RUN_FILES, RUN_FORMS)],
)
@pytest.mark.parametrize("name", ["file", "file.gz", "file.txt"])
def test_a_form_is_seen_from_the_content(
    tmp_path: Path, form_of: Callable[[Path], str], files: dict[str, str], forms: Any, name: str
) -> None:
    for form, content in files.items():
        path = tmp_path / name
        data = ("\ufeff\n" + content).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        assert form_of(path) == form
    # A folder is the only other form.
    assert set(forms) - set(files) <= {"beir"}


@pytest.mark.parametrize(("read", "form", "content"), ALL)
def test_a_form_that_is_said_gives_the_same(tmp_path: Path, read: Callable[..., Any], form: str, content: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    assert read(path, form) == read(path)
    assert read(path)


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ('{"qid": 1,\t"query": "x"}', "jsonl"),
        ("{x}\tpump", "tsv"),
        ('<topic id="1"><tid>1</tid><tfile>x</tfile></topic>', "clef-ip"),
        ("<!-- <top> -->\n" + TOPICS, "inex"),
        (NEW, "trec"),
        ("", "tsv"),
    ],
)
def test_topics_that_look_like_another_form(tmp_path: Path, content: str, form: str) -> None:
    path = tmp_path / "topics"
    path.write_text(content)
    assert topic_form(path) == form


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 pump", "has none of the known forms of topics .*--topic-format"),
        ("<q>\tpump", "no topics of a known form.*--topic-format"),
        ("<html><p>x</p></html>", "no topics of a known form.*--topic-format"),
        (OLD + PLAIN, r"tags of several forms of topics \(clef-ip, trec\)"),
        ("<topic><title>x</title></topic>", "no topics of a known form"),
    ],
)
def test_nothing_is_guessed(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "topics"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_topics(path)
    assert caught.value.line == 1


@pytest.mark.parametrize("content", ["q1 d1 1", "q1 Q0 d1 1 0.5 tag", "q1", "1 Q0 d 1 0.5 me 10 5"])
def test_judgements_of_no_form(tmp_path: Path, content: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(f"\n{content}\n")
    with pytest.raises(InputError, match=r"expected 4 columns .* 5 .* 6 and more .* or the header of BEIR") as caught:
        read_judgements(path)
    assert caught.value.line == 2


@pytest.mark.parametrize("read", [read_topics, read_judgements, read_run])
def test_an_unknown_form_lists_those_there_are(tmp_path: Path, read: Callable[..., Any]) -> None:
    (tmp_path / "x").write_text("q1\tx")
    with pytest.raises(UsageError, match=r"unknown form of .*'clefip'; did you mean 'clef-ip'.* valid: auto,"):
        read(tmp_path / "x", "clefip")


def test_an_unknown_form_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown form of runs 'x'"):
        write_run(tmp_path / "run", [], form="x")


@pytest.mark.parametrize(
    ("judged", "returned", "said"),
    [
        ("d#/a[1]", "d#p1", "clef-ip"),
        ("d#p1", "d#/a[1]", "trec"),
        ("d#p1", "d#@1", ""),
        ("d", "d#p1", "names passages, the judgements documents: only measures of documents, such as PRES, can compare them"),
        ("d#/a[1]", "d", "names documents, the judgements passages: only measures of documents, such as PRES, can compare them"),
        ("d#p1", "d", "names documents, the judgements passages: only measures of documents, such as PRES, can compare them"),
        ("d", "d", ""),
        ("d#/a[1]", "d#/a[2]", ""),
    ],
)
def test_names_of_two_kinds(judged: str, returned: str, said: str) -> None:
    complaint = disagreement({"q": {judged: 1}}, {"q": {returned: 1.0}})
    assert complaint.endswith(said)
    assert bool(complaint) == bool(said)


def refuses_or_reads(read: Callable[..., Any], path: Path, form: str) -> None:
    """Any content gives a value or one error of ours, which names a line unless the file is compressed."""
    try:
        read(path, form)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        if not path.name.endswith(".gz"):
            assert error.line, str(error)  # noqa: PT017


@pytest.mark.parametrize(("read", "form", "content"), ALL)
def test_damaged_files_are_refused_with_a_line(tmp_path: Path, read: Callable[..., Any], form: str, content: str) -> None:
    chance = random.Random(11)
    good = content.encode()
    for turn in range(200):
        damaged = bytearray(good)
        for _ in range(turn % 7):
            damaged[chance.randrange(len(damaged))] = chance.choice(b'\0\t\n <>/&"#,:0-\xff' + bytes([chance.randrange(256)]))
        cut = chance.randrange(1, len(damaged) + 1) if turn % 2 else len(damaged)
        again = chance.randrange(cut) if turn % 5 == 0 else cut
        path = tmp_path / "file"
        path.write_bytes(damaged[:cut] + damaged[again:cut])
        refuses_or_reads(read, path, "auto")
        refuses_or_reads(read, path, form)


@pytest.mark.parametrize("read", [read_topics, read_judgements, read_run])
@pytest.mark.parametrize("form", ["auto", "tsv", "jsonl", "trec", "clef-ip", "inex", "beir"])
@given(content=st.binary(max_size=200) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_random_bytes_are_refused_with_a_line(
    tmp_path_factory: pytest.TempPathFactory, read: Callable[..., Any], form: str, content: bytes
) -> None:
    if form not in {read_topics: [*TOPIC_FORMS], read_judgements: [*JUDGEMENT_FORMS], read_run: [*RUN_FORMS]}[read] + ["auto"]:
        return
    path = tmp_path_factory.mktemp("random") / "file"
    path.write_bytes(content)
    refuses_or_reads(read, path, form)


@pytest.mark.parametrize(("read", "form", "content"), ALL)
def test_truncated_archives_are_refused(tmp_path: Path, read: Callable[..., Any], form: str, content: str) -> None:
    whole = gzip.compress(content.encode() * 50)
    path = tmp_path / "file.gz"
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        refuses_or_reads(read, path, "auto")
        refuses_or_reads(read, path, form)


@pytest.mark.parametrize("start", ["<!--", "<", "<top>", "<tid>", "<!x", "<?x", "<top a", "about(", "&a"])
def test_time_is_linear_in_what_nobody_closes(tmp_path: Path, start: str) -> None:
    # A quadratic reader would not come back from this.
    path = tmp_path / "topics"
    path.write_text(start * (3_000_000 // len(start)))
    for form in ("trec", "clef-ip"):
        with pytest.raises(InputError):
            read_topics(path, form)


def test_a_castitle_that_nobody_closes_takes_linear_time() -> None:
    assert inex.words_of("about(" * 300_000) == ""
