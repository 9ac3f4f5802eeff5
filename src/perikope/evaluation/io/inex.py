"""INEX topics in XML, and INEX judgements and runs, which name ranges of characters (file, offset, length).

Offsets count characters from 0 in the joined text of all text nodes of a file.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.core.files import replacing
from perikope.core.names import document_name
from perikope.document.tree import Place
from perikope.evaluation.io.lines import columns, number_in, numbered_lines
from perikope.evaluation.io.marked_up import topics_in_xml
from perikope.evaluation.io.scores import Run, check_column, each_once, falling
from perikope.evaluation.io.topic import Numbered, at_line, from_fields
from perikope.query.topic import Topic

JUDGEMENT_COLUMNS = "topic Q0 document relevant_characters document_length best_entry_point"
RUN_COLUMNS = "topic Q0 document rank score tag start length"

_RANGE = re.compile(r"([0-9]{1,15}):([0-9]{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RelevantText:
    """The text of a document that is relevant to a topic. A document without ranges was judged not relevant."""

    ranges: tuple[tuple[int, int], ...]
    """Start and length of each range of relevant text, in reading order, without overlap."""
    relevant_characters: int
    document_length: int
    best_entry_point: int
    """The offset at which a reader should begin; -1 if there is none."""
    line: int = field(default=0, compare=False)
    """The line of the judgement file; 0 if the judgement is not from a file."""


@dataclass(frozen=True, slots=True)
class Extract:
    """A result of a run: a range of a document's text."""

    document: str
    start: int
    length: int
    score: float
    line: int = field(default=0, compare=False)
    """The line of the run file, for error messages; 0 if the result is not from a file."""

    @property
    def end(self) -> int:
        """The offset after the last character of the range."""
        return self.start + self.length


InexJudgements = dict[str, dict[str, RelevantText]]
"""Relevant text by topic id and document id."""

InexRun = dict[str, list[Extract]]
"""Results by topic id, in the order of the file."""


def read_topics(path: Path, field: str) -> Iterator[Numbered]:
    """Yield the topics of an INEX file.

    `field` names the field that is the query, such as `castitle`; empty for `title`.

    A castitle is a query by content and structure. Only the words of its conditions are used. A topic without a
    castitle or phrasetitle uses its title instead.
    """
    for line, qid, texts in topics_in_xml(path):
        try:
            texts["castitle"] = words_of(texts.get("castitle", ""))
            for name in ("castitle", "phrasetitle"):
                # Not every topic has these fields. The title then expresses the same query.
                texts[name] = texts.get(name) or texts.get("title", "")
            yield Numbered(line, Topic(qid, from_fields(field or "title", texts, qid), fields=texts))
        except PerikopeError as error:
            raise at_line(error, path, line) from error


def words_of(castitle: str) -> str:
    """The words of the conditions in a query by content and structure (NEXI).

    >>> words_of("//article[about(.//(sec|p), museum) and about(., music -jazz)]//p[about(., 'Satie (composer)')]")
    "museum music -jazz 'Satie (composer)'"
    """
    words = []
    at = castitle.find("about(")
    while at >= 0:
        begin = at + len("about(")
        depth, end, comma, quote = 1, begin, -1, ""
        while end < len(castitle) and depth:
            letter = castitle[end]
            if letter == '"':
                quote = "" if quote else letter
            elif not quote:
                depth += (letter == "(") - (letter == ")")
                if letter == "," and depth == 1 and comma < 0:
                    comma = end
            end += 1
        # An `about` without an end or a comma contains no words to search for.
        if not depth and comma >= 0:
            words.append(castitle[comma + 1 : end - 1].strip())
        at = castitle.find("about(", max(end, begin))
    return " ".join(filter(None, words))


def read_judgements(path: str | os.PathLike[str]) -> InexJudgements:
    """Read the judgements of an INEX file. Its columns are `JUDGEMENT_COLUMNS`, then one `start:length` per range.

    Raises an `InputError` if ranges overlap, lie outside the document, or do not add up to the relevant characters.
    """
    path = Path(path)
    judgements: InexJudgements = {}
    for number, line in numbered_lines(path):
        cells = line.split()
        if len(cells) < 6:
            raise InputError(
                f"expected at least 6 columns ({JUDGEMENT_COLUMNS} start:length …), found {len(cells)}", path=path, line=number
            )
        qid, _, document, *_ = cells
        judged = judgements.setdefault(qid, {})
        if document in judged:
            raise InputError(f"{document!r} is judged twice for topic {qid!r}", path=path, line=number)
        judged[document] = _relevant_text(cells[3:], path, number)
    return judgements


def _relevant_text(cells: Sequence[str], path: Path, line: int) -> RelevantText:
    names = ("the relevant characters", "the length of the document", "the best entry point")
    relevant, length, entry = (number_in(cell, int, name, path, line) for cell, name in zip(cells, names, strict=False))
    ranges = sorted(_range(cell, path, line) for cell in cells[3:])
    wrong = ""
    if relevant < 0 or length < 0:
        wrong = "the numbers of characters must not be negative"
    elif any(start + size > length for start, size in ranges):
        wrong = f"a range goes beyond the end of the document ({length} characters)"
    elif any(start + size > later for (start, size), (later, _) in pairwise(ranges)):
        wrong = "two ranges overlap"
    elif sum(size for _, size in ranges) != relevant:
        wrong = f"the ranges have {sum(size for _, size in ranges)} characters, not {relevant}"
    elif not -1 <= entry <= length or (ranges and entry < 0):
        wrong = f"the best entry point {entry} is not in the document ({length} characters)"
    if wrong:
        raise InputError(wrong, path=path, line=line)
    return RelevantText(tuple(ranges), relevant, length, entry, line)


def _range(cell: str, path: Path, line: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(cell)
    if not match or not int(match[2]):
        raise InputError(f"a range must be start:length, such as 126:28761, not {cell[:40]!r}", path=path, line=line)
    return int(match[1]), int(match[2])


def is_judgement(line: str) -> bool:
    """Whether a line looks like an INEX judgement.

    >>> is_judgement("2009001 Q0 1528075 49158 58542 126 126:28761 28893:20397"), is_judgement("q1 0 d1 1")
    (True, False)
    """
    cells = line.split()
    return len(cells) >= 6 and all(re.fullmatch("-?[0-9]+", cell) for cell in cells[3:6]) and all(map(_RANGE.fullmatch, cells[6:]))


def read_run(path: str | os.PathLike[str]) -> InexRun:
    """Read an INEX run with lines `topic Q0 document rank score tag start length`.

    Results keep the order of the lines.
    """
    path = Path(path)
    run: InexRun = {}
    seen: set[tuple[str, str, int, int]] = set()
    for number, line in numbered_lines(path):
        qid, _, document, rank, score_text, _, start_text, length_text = columns(line, RUN_COLUMNS, path, number)
        number_in(rank, int, "the rank", path, number)
        score = number_in(score_text, float, "the score", path, number)
        if not math.isfinite(score):
            raise InputError(f"the score must be a finite number, not {score_text[:40]!r}", path=path, line=number)
        start = number_in(start_text, int, "the start", path, number)
        length = number_in(length_text, int, "the length", path, number)
        if start < 0 or length < 1:
            raise InputError(
                f"the start of a result must be at least 0 and its length at least 1, not {start} and {length}", path=path, line=number
            )
        if (qid, document, start, length) in seen:
            raise InputError(f"{document} {start} {length} occurs twice in the list of topic {qid!r}", path=path, line=number)
        seen.add((qid, document, start, length))
        run.setdefault(qid, []).append(Extract(document, start, length, score, number))
    return run


def extracts(ranking: Sequence[tuple[str, float]], place_of: Callable[[int], Place | None]) -> list[Extract]:
    """Convert a ranking of passages (name and score, best first) to ranges of characters in the source files.

    `place_of` returns the location of the hit with this index (from 0) in its source file. If several hits have the
    same range, such as an element and its only child, only the first one is kept. Empty hits are left out.
    """
    by_range: dict[tuple[str, int, int], Extract] = {}
    for number, (name, score) in enumerate(ranking):
        place = place_of(number)
        if place is None or not place.path:
            raise UsageError(f"{name} has no position in an XML file, which an INEX run needs; index the XML files themselves")
        document, length = document_name(name), place.end - place.start
        if length > 0:
            by_range.setdefault((document, place.start, length), Extract(document, place.start, length, score))
    return list(by_range.values())


def write_run(path: str | os.PathLike[str], rankings: Iterable[tuple[str, Sequence[Extract]]], tag: str = "perikope") -> None:
    """Write results, best first, as an INEX run with ranks from 1 and strictly decreasing scores."""
    check_column("tag", tag)
    with replacing(path) as file:
        for qid, ranking in each_once(rankings):
            for rank, (result, score) in enumerate(zip(ranking, falling([result.score for result in ranking]), strict=True), start=1):
                check_column("name", result.document)
                file.write(f"{qid} Q0 {result.document} {rank} {score:.9g} {tag} {result.start} {result.length}\n")


def judged_documents(judgements: Mapping[str, Mapping[str, RelevantText]]) -> dict[str, dict[str, int]]:
    """Convert INEX judgements to grades of documents: 1 for a document with relevant text, else 0."""
    return {qid: {document: int(text.relevant_characters > 0) for document, text in judged.items()} for qid, judged in judgements.items()}


def ranked_documents(run: Mapping[str, Sequence[Extract]]) -> Run:
    """Convert an INEX run to scores of documents. A document has the score of its first result.

    Documents keep the order of their first results. A score that does not decrease in this order is lowered.
    """
    ranked: Run = {}
    for qid, results in run.items():
        first: dict[str, float] = {}
        for result in results:
            first.setdefault(result.document, result.score)
        ranked[qid] = dict(zip(first, falling(list(first.values())), strict=True))
    return ranked
