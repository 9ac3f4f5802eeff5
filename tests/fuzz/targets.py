"""What is fuzzed: each target is a reader, with files that it can read and that damage is done to."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from perikope.browse.models import parse_model
from perikope.core import grammar
from perikope.core.errors import PerikopeError, UnreadableFile
from perikope.core.names import document_name, split_name
from perikope.document.tree import Document
from perikope.evaluation.io import inex, judgements, runs, topics
from perikope.evaluation.measures import parse_measure
from perikope.fetch.filters import parse_filter
from perikope.formats import FORMATS, Format, documents, read, sources
from perikope.formats.xml import profiles
from perikope.query.publications import parse_publication
from perikope.query.syntax import automatic, parse_tree
from perikope.text.analysis import Analyzer
from tests.support.trees import GOLDEN, check_tree, describe

GOOD = "good.txt"
"""A file that lies beside the damaged one in a folder, and must be read whatever that holds."""


@dataclass(frozen=True)
class Target:
    """A reader, and what it can read."""

    name: str
    seeds: Sequence[bytes]
    run: Callable[[Path], None]
    """Reads a file; what it may raise is a `PerikopeError` and nothing else."""
    suffix: str = ""


def targets() -> list[Target]:
    """All of them; the formats are those that are registered."""
    return [*_formats(), *_archives(), _profile(), *_experiment_files(), *_texts()]


def check(document: Document) -> None:
    """What holds for every document, and for its places in the file."""
    check_tree(document)
    describe(document)
    for place in document.places.values():
        assert place.path.startswith("/") or (not place.path and place.page > 0)
        assert 0 <= place.start <= place.end
        assert len(place.box) in (0, 4)


def _formats() -> list[Target]:
    golden = sorted((GOLDEN / "sources").iterdir())
    targets = []
    for format in (format for _, format in FORMATS.items()):
        examples = [
            path for path in golden if (path.name.endswith(format.suffixes) if format.suffixes else path.name.startswith(f"{format.name}."))
        ]
        suffix = (format.suffixes or format.takes)[0]
        seeds = [path.read_bytes() for path in examples]
        targets.append(Target(format.name, seeds, _reading(format), suffix))
        if format.suffixes:
            targets.append(Target(f"{format.name}, packed", [gzip.compress(seed) for seed in seeds], _reading(format), f"{suffix}.gz"))
    return targets


def _reading(format: Format) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        [source] = sources(path, format=format.name, hashes=False)
        whole = list(documents(source))
        assert whole
        for document in whole:
            check(document)
        if format.split is not None:
            pieces = [describe(document) for piece in format.split(source, 200) for document in documents(piece)]
            assert pieces == [describe(document) for document in whole], "pieces of a file give other documents than the file"

    return run


def _archives() -> list[Target]:
    golden = [path for path in sorted((GOLDEN / "sources").iterdir()) if path.stat().st_size < 4000][:6]
    members = {path.name: path.read_bytes() for path in golden}

    def zipped(inside: dict[str, bytes], method: int) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, data in inside.items():
                archive.writestr(name, data)
        return buffer.getvalue()

    def tarred(inside: dict[str, bytes], mode: str) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
            for name, data in inside.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return buffer.getvalue()

    nested = members | {
        "in.zip": zipped(members, zipfile.ZIP_DEFLATED),
        "in.tar.gz": tarred(members, "w:gz"),
        "x.md.gz": gzip.compress(b"# x"),
    }
    return [
        Target("zip", [zipped(nested, zipfile.ZIP_DEFLATED), zipped(nested, zipfile.ZIP_STORED)], _in_a_folder, ".zip"),
        Target("tar", [tarred(nested, "w")], _in_a_folder, ".tar"),
        *(Target(f"tar.{kind}", [tarred(nested, f"w:{kind}")], _in_a_folder, f".tar.{kind}") for kind in ("gz", "bz2", "xz")),
    ]


def _in_a_folder(path: Path) -> None:
    problems: list[UnreadableFile] = []
    good = False
    for document in read(path.parent, on_problem=problems.append):
        check(document)
        good = good or document.source == GOOD
    assert good, "a file beside a damaged archive was not read"
    for problem in problems:
        _one_line(problem)


def _profile() -> Target:
    golden = {path.name.partition(".")[0]: path for path in sorted((GOLDEN / "sources").iterdir()) if path.suffix in (".xml", ".nxml")}
    folder = files("perikope.formats") / "profiles"
    seeds = [(folder / f"{name}.toml").read_bytes() for name in profiles()]

    def run(path: Path) -> None:
        for source in golden.values():
            try:
                for document in read(source, format=str(path)):
                    check(document)
            except PerikopeError as error:
                _one_line(error)

    return Target("profile", seeds, run, ".toml")


TOPICS = {
    "tsv": b"1\tmagnetic pump\n2\tseal of the rotor\n",
    "jsonl": b'{"qid": "1", "query": "pump"}\n{"qid": 2, "patent": "EP-1-A1", "claims": ["/a/claim[1]"], "filter": "a=b"}\n',
    "trec": b"<top>\n<num> Number: 301\n<title> Pumps\n<desc> Description:\nWhat &amp; why\n</top>\n<top>\n<num> 2\n<title> Rotors\n</top>",
    "trec in XML": b'<?xml version="1.0"?><topics><topic number="1"><query>pump</query><description>d</description></topic></topics>',
    "clef-ip": b"<tid>PSG-1</tid>\n<tfile>EP-1-A1.xml</tfile>\n<tfam-docs>JP-2-A.xml</tfam-docs>\n<tclaims>/a/claim[1]</tclaims>\n",
    "inex": b'<inex-topic-file><topic id="1" ct_no="1"><title>pump</title><castitle>//a[about(., x)]</castitle></topic></inex-topic-file>',
    "beir": b'{"_id": "q1", "text": "what drives a rotor", "metadata": {}}\n',
}
JUDGEMENTS = [
    b"q1 0 d1#p2 1\nq1 0 d2#p1 0\n", b"1 Q0 EP-1-A1 /patent-document/claims/claim[3] 1\n2 Q0 EP-2-A1 /patent-document/abstract/p 0\n",
    b"2009901 Q0 1528075 49158 58542 126 28893:20397 126:28761\n2009901 Q0 77 0 900 0\n",
    b"query-id\tcorpus-id\tscore\nq1\td 1\t2\nq2\td2\t0\n",
]  # fmt: skip
RUNS = [
    b"q1 Q0 d1#p1 1 0.5 me\nq1 Q0 d2 2 0.25 me\n", b"1 Q0 d2 1 0.5 me 10 5\n1 Q0 d1 2 0.25 me 0 7\n",
    b"PSG-1 Q0 EP-1-A1 /patent-document/claims/claim[3] 1 2.5\nPSG-1 Q0 EP-1-A1 /patent-document/abstract/p 2 1.5\n",
]  # fmt: skip


def _experiment_files() -> list[Target]:
    def read_topics(path: Path) -> None:
        for form in ("auto", *topics.TOPIC_FORMS):
            _tolerant(lambda form=form: topics.read_topics(path, form))  # type: ignore[misc]
        for field in ("title,desc", "castitle"):
            _tolerant(lambda field=field: topics.read_topics(path, "auto", field))  # type: ignore[misc]

    def read_judgements(path: Path) -> None:
        for form in ("auto", *judgements.JUDGEMENT_FORMS):
            _tolerant(lambda form=form: judgements.read_judgements(path, form))  # type: ignore[misc]
        _tolerant(lambda: inex.read_judgements(path))

    def read_runs(path: Path) -> None:
        for form in ("auto", "trec", "clef-ip", "inex"):
            _tolerant(lambda form=form: runs.read_run(path, form))  # type: ignore[misc]
        _tolerant(lambda: inex.read_run(path))

    return [
        Target("topics", list(TOPICS.values()), read_topics, ".txt"),
        Target("topics in lines", [TOPICS["jsonl"], TOPICS["beir"]], read_topics, ".jsonl"),
        Target("judgements", JUDGEMENTS, read_judgements, ".txt"),
        Target("runs", RUNS, read_runs, ".txt"),
    ]


FILTERS = [b"year=2010..2013", b"ipc=g06f 17|H04L", b'by!="a|b"', b"date<2001-02-03", b"title~pump*", b"year>=1.5e3", b"ipc!~A61K", b"-x=1"]
QUERIES = [
    b'"state of the art" pumps OR NOT valve', b"(pump AND rotor) NEAR/3 seal*", b"a ADJ b SAME c", b"{en:pump|en:rotor}",
    b"+pump -valve 'x'",
    b'((("a b" OR c) AND d) NEAR e)', "“große Pumpe” NOT (valve OR été)".encode(),
]  # fmt: skip
NAMES = [
    b"bm25(k1=1.2, b=0.75)",
    b"qsf_v(alpha=0.5, content=bm25)",
    b"nDCG@10",
    b"P(rel=2)@5",
    b"AP",
    b"prox(logical=wikipedia)",
    b'f(x="a", y=[1, 2])@3',
]
PUBLICATIONS = [
    b"EP1000000A1",
    b"US 5,973,053",
    b"WO 2004/047228 A2",
    b"JP-10000001-A",
    b"d1#p2",
    b"EP-1-A1#/patent-document[1]/claims[1]/claim[2]",
]
CASTITLES = [b'//article[about(., museum)]//sec[about(.//p, "piano music" -jazz)]', b"//*[about(.//b, x) and about(., (y))]"]


def _texts() -> list[Target]:
    analyzer = Analyzer()

    def nothing(prefix: str, most: int) -> tuple[int, list[str]]:
        return 1, [f"en:{prefix}"]

    def boolean(text: str) -> None:
        tree = str(parse_tree(text, analyzer, ["en", "de"], nothing))
        assert str(parse_tree(tree, analyzer, ["en", "de"], nothing)) == tree, "what is written is not read as the same"

    def call(text: str) -> None:
        parsed = grammar.parse(text)
        assert grammar.parse(grammar.write(parsed)) == parsed, "what is written is not read as the same"

    def filter(text: str) -> None:
        parsed = parse_filter(text)
        assert parse_filter(str(parsed)) == parsed, "what is written is not read as the same"

    return [
        _of_text("filter", FILTERS, [filter]),
        _of_text("Boolean query", QUERIES, [boolean, lambda text: boolean(automatic(text))]),
        _of_text("grammar", NAMES, [call, parse_model, parse_measure]),
        _of_text("names", PUBLICATIONS, [parse_publication, split_name, document_name]),
        _of_text("castitle", CASTITLES, [inex.words_of]),
    ]


def _of_text(name: str, seeds: Sequence[bytes], functions: Sequence[Callable[[str], object]]) -> Target:
    def run(path: Path) -> None:
        # As a command line gives it: what is no UTF-8 becomes half surrogates.
        for text in {os.fsdecode(path.read_bytes()), path.read_text("utf-8", "replace")}:
            for function in functions:
                _tolerant(lambda function=function, text=text: function(text))  # type: ignore[misc]

    return Target(name, seeds, run, ".txt")


def _tolerant(action: Callable[[], object]) -> None:
    """Each form, one after the other: that one refuses a file says nothing of the next."""
    try:
        action()
    except PerikopeError as error:
        _one_line(error)


def _one_line(error: PerikopeError) -> None:
    assert len(str(error).splitlines()) == 1, f"a message of several lines: {error}"
