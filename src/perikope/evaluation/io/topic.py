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
    language: str = ""
    """The language that the file names for the topic, such as `EN`; empty if it names none."""


Reader = Callable[[Path, str], Iterator[Numbered]]
"""Reads the topics of a file. The second argument names the fields that form the query; it is empty for the default."""


def checked(topics: Iterator[Numbered], path: object) -> list[Numbered]:
    """The topics in the given order, with their lines.

    Raises an `InputError` with the line of a topic if its id is empty or repeated, or if it has no query and no patent.
    """
    by_qid: dict[str, Numbered] = {}
    for numbered in topics:
        line, topic = numbered.line, numbered.topic
        try:
            _check(topic)
            if topic.qid in by_qid:
                raise InputError(f"query id {topic.qid!r} occurs twice in the file")
        except InputError as error:
            raise InputError(str(error), path=path, line=line) from error
        by_qid[topic.qid] = numbered
    return list(by_qid.values())


def from_fields(field: str, fields: Mapping[str, str], qid: str) -> str:
    """The texts of the fields that `field` lists, such as `title` or `title,desc`, joined by spaces.

    Raises an `InputError` if the topic `qid` lacks one of them.
    """
    texts = []
    for name in wanted_fields(field):
        if not fields.get(name):
            available = ", ".join(name for name, text in fields.items() if text) or "(none)"
            raise InputError(f"topic {qid!r} has no field {name!r}; choose from its fields: {available}")
        texts.append(fields[name])
    return " ".join(texts)


def wanted_fields(field: str) -> list[str]:
    """Split a list of field names such as `title,desc` at commas or plus signs.

    >>> wanted_fields("title,desc")
    ['title', 'desc']
    """
    names = [name.strip().lower() for name in field.replace("+", ",").split(",")]
    if not all(names):
        raise UsageError(f"{field!r} is not a list of fields; write it as title or title,desc")
    return names


def without_fields(field: str, form: str) -> None:
    """Raise an error if `field` is not empty. Called for topics of a form that has no fields."""
    if field:
        raise UsageError(f"{form} topics have no fields to choose from; leave --topic-field (field= in Python) out")


def at_line(error: PerikopeError, path: object, line: int) -> InputError:
    """An `InputError` with the message of another error, and with its file and line."""
    return InputError(str(error), path=path, line=line)


def one_line(text: str) -> str:
    """Replace every run of white space by one space."""
    return " ".join(text.split())


def _check(topic: Topic) -> None:
    if not topic.qid:
        raise InputError("the query id is empty")
    if len(topic.qid.split()) > 1:
        # White space separates the columns of run files.
        raise InputError(f"the query id {topic.qid!r} holds white space; remove the white space")
    if not topic.query and not topic.patent:
        raise InputError(f"the query of {topic.qid!r} is empty")
    if topic.claims and not topic.patent:
        raise InputError(f"topic {topic.qid!r} names claims, but no patent; add the patent, or remove the claims")
