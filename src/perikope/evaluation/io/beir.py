"""BEIR folders: `corpus.jsonl` (read by `perikope.formats.jsonl`), `queries.jsonl` and `qrels/*.tsv` with a header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from perikope.core.errors import InputError, UsageError
from perikope.core.names import encode
from perikope.evaluation.io.judged import JudgedName
from perikope.evaluation.io.lines import number_in, numbered_lines
from perikope.evaluation.io.topic import one_line
from perikope.query.topic import Topic

HEADER = ("query-id", "corpus-id", "score")


def is_query(record: Mapping[str, object]) -> bool:
    """Whether a JSON object is a BEIR query."""
    return "_id" in record and "text" in record


def query_of(record: Mapping[str, object]) -> Topic:
    """The topic of one line of `queries.jsonl`."""
    qid, text = record["_id"], record["text"]
    if not isinstance(qid, str) or not isinstance(text, str):
        raise InputError("'_id' and 'text' must be text")
    if any("\ud800" <= character <= "\udfff" for character in qid + text):
        raise InputError("'_id' or 'text' holds half a surrogate pair; correct its \\u escapes")
    return Topic(qid, one_line(text))


def queries_file(path: Path) -> Path:
    """The query file of a BEIR folder; a path that is not a folder is returned as it is."""
    return _first_file([path / "queries.jsonl", path / "queries.jsonl.gz"], path, "queries.jsonl") if path.is_dir() else path


def qrels_file(path: Path) -> Path:
    """The only judgement file of a BEIR folder; a path that is not a folder is returned as it is."""
    if not path.is_dir():
        return path
    files = sorted(file for pattern in ("*.tsv", "*.tsv.gz") for file in (path / "qrels").glob(pattern))
    if len(files) > 1:
        raise UsageError(f"{path} has judgements for several splits; give one of them: {', '.join(str(file) for file in files)}")
    return _first_file(files, path, "qrels/*.tsv")


def is_header(line: str) -> bool:
    """Whether a line is the header of a BEIR judgement file."""
    return tuple(line.split()) == HEADER


def judged_names(path: Path) -> Iterator[JudgedName]:
    """Yield the grades of documents in a file with lines `query-id<TAB>corpus-id<TAB>score`."""
    for i, (number, line) in enumerate(numbered_lines(path)):
        if i == 0 and is_header(line):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != len(HEADER):
            raise InputError(f"expected 3 columns with tabs between ({', '.join(HEADER)}), found {len(cells)}", path=path, line=number)
        qid, document, score = cells
        if not qid or not document:
            raise InputError("an id is empty; give the ids of query and document", path=path, line=number)
        # Ids are percent-encoded, as in runs.
        yield JudgedName(number, qid, encode(document), number_in(score, int, "the score", path, number))


def _first_file(candidates: list[Path], folder: Path, what: str) -> Path:
    for path in candidates:
        if path.is_file():
            return path
    raise InputError(f"the folder has no {what}; is it a BEIR folder?", path=folder)
