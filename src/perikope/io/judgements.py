"""Relevance judgements: TREC qrels, `qid iteration name grade`, of passages (`document#passage`) or documents."""

from __future__ import annotations

import os
from pathlib import Path

from perikope.errors import InputError
from perikope.io.lines import columns, number_in, numbered_lines

Judgements = dict[str, dict[str, int]]
"""Grade by name by query id; names as they stand in the file, percent-encoded."""


def read_judgements(path: str | os.PathLike[str]) -> Judgements:
    r"""The judgements of a TREC qrels file; the second column is not looked at.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "qrels")
    ...     _ = file.write_text("q1 0 d1#p2 1\nq1 0 d2#p1 0\n", encoding="utf-8")
    ...     read_judgements(file)
    {'q1': {'d1#p2': 1, 'd2#p1': 0}}
    """
    path = Path(path)
    judgements: Judgements = {}
    for number, line in numbered_lines(path):
        qid, _, name, grade = columns(line, "qid iteration name grade", path, number)
        judged = judgements.setdefault(qid, {})
        if name in judged:
            raise InputError(f"{name!r} is judged twice for query {qid!r}", path=path, line=number)
        judged[name] = number_in(grade, int, "the grade", path, number)
    return judgements
