"""Reads relevance judgements of passages (`document#passage`) or documents. The first line of a file decides its form.

The forms are TREC qrels (`qid iteration name grade`), CLEF-IP (`topic Q0 document xpath relevance`), INEX (characters
of documents), BEIR (TSV with a header), spans (`qid document#passage start end`, characters of passages), and data sets
of the package ir_datasets (`irds:NAME`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from perikope.core.errors import InputError, unknown
from perikope.core.names import is_element_path
from perikope.evaluation.io import beir, clef_ip, inex, irds, spans
from perikope.evaluation.io.judged import JudgedName, Judgements, by_query
from perikope.evaluation.io.lines import columns, number_in, numbered_lines

JUDGEMENT_FORMS = ("trec", "clef-ip", "inex", "beir", "spans")
"""Names of the forms of judgement files."""

COLUMNS = "qid iteration name grade"

__all__ = [
    "JUDGEMENT_FORMS",
    "Judgements",
    "checked_form",
    "disagreement",
    "judged_names",
    "judgement_form",
    "kinds_of_names",
    "read_judgements",
]


def read_judgements(path: str | os.PathLike[str], form: str = "auto") -> Judgements:
    r"""Read the grades of a judgement file, by query id and name.

    `path` is a file, a BEIR folder with one judgement file, or `irds:NAME` for a data set of the package ir_datasets.
    `form` is one of `JUDGEMENT_FORMS`, or `auto`, which chooses the form by the first line; data sets ignore it. The
    forms differ as follows:

    - TREC: the second column is ignored.
    - BEIR: documents are graded. The first line of the file is a header.
    - CLEF-IP: passages are named by their elements (`document#/xpath`).
    - INEX: a document with relevant text has grade 1. `perikope.evaluation.io.inex.read_judgements` returns the ranges.
    - spans: a passage with relevant text has grade 1. `perikope.evaluation.io.spans.read_spans` returns the ranges.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "qrels")
    ...     _ = file.write_text("q1 0 d1#p2 1\nq1 0 d2#p1 0\n", encoding="utf-8")
    ...     read_judgements(file)
    {'q1': {'d1#p2': 1, 'd2#p1': 0}}
    """
    if irds.is_id(path):
        return irds.read_judgements(os.fspath(path))
    path = beir.qrels_file(Path(path))
    form = checked_form(path, form)
    if form == "inex":
        return inex.judged_documents(inex.read_judgements(path))
    if form == "spans":
        return spans.judged_passages(spans.read_spans(path))
    return by_query(judged_names(path, form), path)


def judged_names(path: str | os.PathLike[str], form: str = "auto") -> Iterator[JudgedName]:
    """Yield the judgements of a file that grades names (TREC, CLEF-IP or BEIR), or of a data set, with their lines."""
    if irds.is_id(path):
        for qid, judged in irds.read_judgements(os.fspath(path)).items():
            yield from (JudgedName(0, qid, name, grade) for name, grade in judged.items())
        return
    path = beir.qrels_file(Path(path))
    readers = {"trec": _trec_lines, "clef-ip": clef_ip.judged_names, "beir": beir.judged_names}
    yield from readers[checked_form(path, form)](path)


def checked_form(path: str | os.PathLike[str], form: str) -> str:
    """The form of a judgement file: `form` itself, or if it is `auto`, the form of the file's first line."""
    if form == "auto":
        return judgement_form(path)
    if form not in JUDGEMENT_FORMS:
        raise unknown("form of judgements", form, ["auto", *JUDGEMENT_FORMS])
    return form


def judgement_form(path: str | os.PathLike[str]) -> str:
    """The form of a judgement file, by its first line; `trec` for an empty file and for a data set of ir_datasets.

    Raises an `InputError` if the line has none of the forms.
    """
    if irds.is_id(path):
        return "trec"
    path = beir.qrels_file(Path(path))
    for number, line in numbered_lines(path):
        if beir.is_header(line):
            return "beir"
        if inex.is_judgement(line):
            return "inex"
        if clef_ip.is_judgement(line):
            return "clef-ip"
        if spans.is_span(line) or spans.is_almost_a_span(line):
            return "spans"
        if len(line.split()) == len(COLUMNS.split()):
            return "trec"
        raise InputError(
            f"expected 4 columns ({COLUMNS}), 5 ({clef_ip.JUDGEMENT_COLUMNS}), 6 and more ({inex.JUDGEMENT_COLUMNS} start:length …), "
            f"or the header of BEIR ({' '.join(beir.HEADER)}), found {len(line.split())}",
            path=path,
            line=number,
        )
    return "trec"


def disagreement(judgements: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]]) -> str:
    """The reason why a run and judgements cannot have names in common; empty if they use the same kind of names.

    >>> disagreement({"q1": {"d1#/a[1]/p[2]": 1}}, {"q1": {"d1#p2": 0.5}})
    'names passages by their ids, the judgements by XPath: write it with --run-format clef-ip'
    """
    judged, returned = kinds_of_names(judgements), kinds_of_names(run)
    if "path" in judged and returned == {"id"}:
        return "names passages by their ids, the judgements by XPath: write it with --run-format clef-ip"
    if "id" in judged and returned == {"path"}:
        return "names passages by XPath, the judgements by their ids: write it with --run-format trec"
    for one, other, first, second in ((returned, judged, "documents", "passages"), (judged, returned, "passages", "documents")):
        if one == {"document"} and other and "document" not in other:
            return f"names {first}, the judgements {second}: only measures of documents, such as PRES, can compare them"
    return ""


def kinds_of_names(by_query: Mapping[str, Mapping[str, float]]) -> set[str]:
    """The kinds of names in judgements or in a run: `document`, and for passages, `id` or `path` (XPath).

    >>> sorted(kinds_of_names({"q1": {"d1#/a[1]/p[2]": 1, "d2": 1}}))
    ['document', 'path']
    """
    return {_kind(name) for names in by_query.values() for name in names}


def _kind(name: str) -> str:
    _, mark, passage = name.rpartition("#")
    return "path" if mark and is_element_path(passage) else "id" if mark else "document"


def _trec_lines(path: Path) -> Iterator[JudgedName]:
    for number, line in numbered_lines(path):
        qid, _, name, grade = columns(line, COLUMNS, path, number)
        yield JudgedName(number, qid, name, number_in(grade, int, "the grade", path, number))
