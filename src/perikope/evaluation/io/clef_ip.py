"""Topics, judgements and runs of the CLEF-IP task "claims to passages", which names passages by XPath.

A passage is an element of the abstract, the description or the claims of a patent. In perikope the name of a passage is
`document#/xpath`, with a number at every step of the path. Document ids have no leading zeros: `EP-0415270-A1` of
CLEF-IP becomes `EP-415270-A1`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.core.files import replacing
from perikope.core.names import document_name, encode, normal_path, split_name
from perikope.document.tree import Place
from perikope.evaluation.io.judged import JudgedName
from perikope.evaluation.io.lines import columns, number_in, numbered_lines
from perikope.evaluation.io.marked_up import TaggedText, pieces
from perikope.evaluation.io.scores import Run, check_column, each_once, falling
from perikope.evaluation.io.topic import Numbered, at_line, without_fields
from perikope.query.topic import Topic

MAX_DOCUMENTS = 100
"""Maximum number of documents per topic in a run."""

JUDGEMENT_COLUMNS = "topic Q0 document xpath relevance"
RUN_COLUMNS = "topic Q0 document xpath rank score"

_FIELDS = ("tid", "tfile", "lang", "tfam-docs", "tclaims")
_PATENT = re.compile(r"([A-Z]{2})-([A-Z]{0,2}[0-9]{1,15})-([A-Z][0-9]?)", re.ASCII)
_SHORT_EP = re.compile(r"EP-([0-9]{1,6})-")
_PASSAGE = re.compile(r"(/patent-document\[1\]/(?:abstract|description|claims)\[[0-9]+\]/[^/]+)(?:/.+)?")


@lru_cache(maxsize=4096)
def document_of(file: str) -> str:
    """The document id of a patent, from the name of its CLEF-IP file.

    Other names are returned without `.xml` and `.gz`.

    >>> document_of("EP-0415270-A1.xml"), document_of("WO-2003065434-A1")
    ('EP-415270-A1', 'WO-2003065434-A1')
    """
    name = file.removesuffix(".gz").removesuffix(".xml")
    match = _PATENT.fullmatch(name)
    if match is None:
        return name
    # The import loads lxml, which most topics and runs do not need.
    from perikope.patents.numbers import patent_number

    return patent_number(match[1], match[2], match[3]).id


def patent_of(file: str, folder: Path) -> str:
    """The patent of a topic: the path of its file if `folder` or `folder/tfiles` has it, else its document id."""
    if not file or "\0" in file:
        return file
    try:
        for path in (folder / file, folder / "tfiles" / file):
            if path.is_file():
                return str(path)
    except OSError:  # a name that is too long for a file
        pass
    return document_of(file) if file.endswith((".xml", ".xml.gz")) else file


def claims_of(paths: Iterable[str]) -> tuple[str, ...]:
    """The distinct paths in normal form, with a number at every step, in the given order."""
    return tuple(dict.fromkeys(map(normal_path, paths)))


def read_topics(path: Path, field: str) -> Iterator[Numbered]:
    """Yield the topics of a CLEF-IP file.

    The fields of a topic are `<tid>`, `<tfile>`, `<lang>`, `<tfam-docs>` and `<tclaims>`.
    """
    without_fields(field, "CLEF-IP")
    any_topic = False
    for line, fields in _blocks(path):
        any_topic = True
        try:
            for name in ("tid", "tfile"):
                if not fields.get(name):
                    raise InputError(f"the topic has no <{name}>")
            topic = Topic(
                fields["tid"],
                patent=patent_of(fields["tfile"], path.parent),
                claims=claims_of(fields.get("tclaims", "").split()),
                family=tuple(dict.fromkeys(map(document_of, fields.get("tfam-docs", "").split()))),
            )
        except PerikopeError as error:
            raise at_line(error, path, line) from error
        yield Numbered(line, topic, fields.get("lang", ""))
    if not any_topic:
        raise InputError("the file has no topics: no <tid>", path=path, line=1)


def _blocks(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line on which each topic begins, and its fields by tag."""
    fields: dict[str, str] = {}
    first_line, opened = 0, TaggedText("", "", 0)
    for piece in pieces(path):
        tag, text, line = piece
        if opened.tag:
            if tag != f"/{opened.tag}":
                raise InputError(f"<{opened.tag}> is not closed", path=path, line=opened.line)
            opened = TaggedText("", "", 0)
        if tag in _FIELDS:
            if tag == "tid" and "tid" in fields:
                yield first_line, fields
                fields = {}
            if tag in fields:
                raise InputError(f"<{tag}> occurs twice in one topic", path=path, line=line)
            first_line = first_line if fields else line
            fields[tag], opened = text.strip(), piece
        elif text.strip() and (tag.startswith("/") or not tag):
            # Text inside an unknown tag is an extension and is ignored; text outside of any tag is damage.
            raise InputError(f"there is text outside of a field: {text.split()[0][:40]!r}", path=path, line=piece.text_line)
        elif tag in ("topic", "/topic") and fields:
            yield first_line, fields
            fields = {}
    if opened.tag:
        raise InputError(f"<{opened.tag}> is not closed", path=path, line=opened.line)
    if fields:
        yield first_line, fields


def is_judgement(line: str) -> bool:
    """Whether a line looks like a CLEF-IP judgement, which names a passage by its XPath.

    >>> is_judgement("PSG-1 Q0 EP-1000000-A1 /patent-document/claims/claim[3] 1"), is_judgement("q1 0 d1 1")
    (True, False)
    """
    cells = line.split()
    return (len(cells) == 5 and cells[3].startswith("/")) or _listed(line) is not None


def _listed(line: str) -> list[str] | None:
    """The three cells of a line `topic,document,xpath`; None for a line of another form."""
    cells = [cell.strip() for cell in line.split(",")]
    return cells if len(cells) == 3 and cells[2].startswith("/") and all(len(cell.split()) == 1 for cell in cells) else None


def judged_names(path: Path) -> Iterator[JudgedName]:
    """Yield the judgements of a CLEF-IP file.

    A line is `topic Q0 document xpath relevance`, or `topic,document,xpath`, which means grade 1.
    """
    for number, line in numbered_lines(path):
        if listed := _listed(line):
            (qid, document, xpath), grade = listed, 1
        else:
            qid, _, document, xpath, relevance = columns(line, JUDGEMENT_COLUMNS, path, number)
            grade = number_in(relevance, int, "the relevance", path, number)
        yield JudgedName(number, qid, _name(document, xpath, path, number), grade)


def read_run(path: Path) -> Run:
    """Read the scores of a run, by topic and name.

    Ranks decide the order: a score that does not decrease is lowered.
    """
    ranked: dict[str, dict[int, tuple[str, float]]] = {}
    documents: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    for number, line in numbered_lines(path):
        qid, _, document, xpath, rank_text, score_text = columns(line, RUN_COLUMNS, path, number)
        name = _name(document, xpath, path, number)
        rank = number_in(rank_text, int, "the rank", path, number)
        score = number_in(score_text, float, "the score", path, number)
        if not math.isfinite(score):
            raise InputError(f"the score must be a finite number, not {score_text[:40]!r}", path=path, line=number)
        of_topic = ranked.setdefault(qid, {})
        if (qid, name) in seen:
            raise InputError(f"{name!r} occurs twice in the list of topic {qid!r}", path=path, line=number)
        if rank in of_topic:
            raise InputError(f"rank {rank} occurs twice in the list of topic {qid!r}", path=path, line=number)
        seen.add((qid, name))
        documents_of_topic = documents.setdefault(qid, set())
        documents_of_topic.add(document_name(name))
        if len(documents_of_topic) > MAX_DOCUMENTS:
            raise InputError(f"topic {qid!r} has more than {MAX_DOCUMENTS} documents", path=path, line=number)
        of_topic[rank] = name, score
    run: Run = {}
    for qid, of_topic in ranked.items():
        best_first = [of_topic[rank] for rank in sorted(of_topic)]
        run[qid] = dict(zip((name for name, _ in best_first), falling([score for _, score in best_first]), strict=True))
    return run


def by_path(ranking: Sequence[tuple[str, float]], place_of: Callable[[int], Place | None]) -> list[tuple[str, float]]:
    """Rename the passages of a ranking (name and score, best first) by their elements: `document#/xpath`.

    `place_of` returns the location of the hit with this index (from 0) in its source file. In a patent, a hit gets the
    path of the child of abstract, description or claims that contains it, and hits elsewhere are left out. In other
    files, a hit gets the path of its element. If several hits get the same name, only the first one is kept.
    """
    score_of_name: dict[str, float] = {}
    for number, (name, score) in enumerate(ranking):
        place = place_of(number)
        if place is None or not place.path:
            raise UsageError(f"{name} has no position in an XML file, which a CLEF-IP run needs; index the XML files themselves")
        path = normal_path(place.path)
        passage = _PASSAGE.fullmatch(path)
        if passage or not f"{path}/".startswith("/patent-document[1]/"):
            score_of_name.setdefault(f"{document_name(name)}#{encode(passage[1] if passage else path)}", score)
    return list(score_of_name.items())


def write_run(path: str | os.PathLike[str], rankings: Iterable[tuple[str, Sequence[tuple[str, float]]]]) -> None:
    """Write rankings as a CLEF-IP run. Passages must have names `document#/xpath`, as `by_path` gives them.

    A ranking is limited to the passages of its first 100 documents.
    """
    with replacing(path) as file:
        for qid, ranking in each_once(rankings):
            documents = dict.fromkeys(document_name(name) for name, _ in ranking)
            first_documents = set(list(documents)[:MAX_DOCUMENTS])
            lines = [(name, score) for name, score in ranking if document_name(name) in first_documents]
            if len(dict(lines)) < len(lines):
                raise UsageError(f"a passage occurs twice in the list of query {qid!r}")
            for rank, ((name, _), score) in enumerate(zip(lines, falling([score for _, score in lines]), strict=True), start=1):
                # The id is written without percent-encoding, which other programs do not decode.
                document, xpath = split_name(name)
                padded = _SHORT_EP.sub(lambda match: f"EP-{match[1]:0>7}-", document)
                for column in (padded, xpath):
                    check_column("name", column)
                file.write(f"{qid} Q0 {padded} {_short(xpath)} {rank} {score:.9g}\n")


def _name(document: str, xpath: str, path: Path, line: int) -> str:
    try:
        return f"{encode(document_of(document))}#{encode(normal_path(xpath))}"
    except UsageError as error:
        raise at_line(error, path, line) from error


def _short(path: str) -> str:
    """A path in the spelling of CLEF-IP, which omits `[1]` except at the last step.

    >>> _short("/patent-document[1]/claims[1]/claim[1]"), _short("/patent-document[1]/abstract[2]/p[1]")
    ('/patent-document/claims/claim[1]', '/patent-document/abstract[2]/p[1]')
    """
    above, mark, last = normal_path(path).rpartition("/")
    return f"{above.replace('[1]', '')}{mark}{last}"
