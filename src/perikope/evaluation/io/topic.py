"""Functions shared by the readers of all topic formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.query.topic import Topic


class Numbered(NamedTuple):
    """A topic and the line of its file on which it begins."""

    line: int
    topic: Topic


Reader = Callable[[Path, str], Iterator[Numbered]]
"""Reads the topics of a file; the second argument names the fields that form the query, empty for the default."""


def checked(topics: Iterator[Numbered], path: object) -> list[Topic]:
    """The topics in order; an error with its line for a missing or repeated query id, or neither query nor patent."""
    by_qid: dict[str, Topic] = {}
    for line, topic in topics:
        try:
            _check(topic)
            if topic.qid in by_qid:
                raise InputError(f"query id {topic.qid!r} occurs twice in the file")
        except InputError as error:
            raise InputError(str(error), path=path, line=line) from error
        by_qid[topic.qid] = topic
    return list(by_qid.values())


def from_fields(field: str, fields: Mapping[str, str], qid: str) -> str:
    """The joined texts of the fields that `field` names, such as `title` or `title,desc`."""
    texts = []
    for name in wanted_fields(field):
        if not fields.get(name):
            available = ", ".join(name for name, text in fields.items() if text) or "nothing"
            raise InputError(f"topic {qid!r} has no {name}; it has {available}")
        texts.append(fields[name])
    return " ".join(texts)


def wanted_fields(field: str) -> list[str]:
    """The names in a list such as `title,desc`.

    >>> wanted_fields("title,desc")
    ['title', 'desc']
    """
    names = [name.strip().lower() for name in field.replace("+", ",").split(",")]
    if not all(names):
        raise UsageError(f"{field!r} is not a list of fields; write it as title or title,desc")
    return names


def without_fields(field: str, form: str) -> None:
    """Raise an error where fields are named for a form of topics that has none."""
    if field:
        raise UsageError(f"{form} topics have no fields to choose from; leave --topic-field (field= in Python) out")


def at_line(error: PerikopeError, path: object, line: int) -> InputError:
    """The error with the file and line in front of its message."""
    return InputError(str(error), path=path, line=line)


def one_line(text: str) -> str:
    """Replace every run of white space by one space."""
    return " ".join(text.split())


def _check(topic: Topic) -> None:
    if not topic.qid:
        raise InputError("the query id is empty")
    if len(topic.qid.split()) > 1:
        # White space separates the columns of run files.
        raise InputError(f"the query id {topic.qid!r} holds white space")
    if not topic.query and not topic.patent:
        raise InputError(f"the query of {topic.qid!r} is empty")
    if topic.claims and not topic.patent:
        raise InputError(f"topic {topic.qid!r} names claims, but no patent")
