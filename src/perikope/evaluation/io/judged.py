"""Judgements as the lines of a file state them, before they are collected by topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from perikope.core.errors import InputError

Judgements = dict[str, dict[str, int]]
"""Grades by query id, then by name. Names are percent-encoded."""


class JudgedName(NamedTuple):
    """One line of a judgement file: the grade of a passage, element or document for a query."""

    line: int
    """Number of the line, from 1; 0 if the judgement is not from a file."""
    qid: str
    name: str
    grade: int


def by_query(judged: Iterable[JudgedName], path: object) -> Judgements:
    """Collect judgements by query. Raises an `InputError` with the line of a name that is judged twice for a query."""
    judgements: Judgements = {}
    for line, qid, name, grade in judged:
        of_query = judgements.setdefault(qid, {})
        if name in of_query:
            raise InputError(f"{unquote(name)!r} is judged twice for query {qid!r}", path=path, line=line or None)
        of_query[name] = grade
    return judgements
