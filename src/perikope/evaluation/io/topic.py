"""What the readers of topics share, whatever form their file has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.query.topic import Topic


class Numbered(NamedTuple):
    """A topic and the line that it stands in."""

    line: int
    topic: Topic


Reader = Callable[[Path, str], Iterator[Numbered]]
"""Reads the topics of a file of one form; the second argument names the fields that make the query, empty for the usual one."""


def checked(topics: Iterator[Numbered], path: object) -> list[Topic]:
    """The topics in order, each with an id of its own and something to search with; what is wrong is named with its line."""
    found: dict[str, Topic] = {}
    for line, topic in topics:
        try:
            _check(topic)
            if topic.qid in found:
                raise InputError(f"query id {topic.qid!r} stands in the file twice")
        except InputError as error:
            raise InputError(str(error), path=path, line=line) from error
        found[topic.qid] = topic
    return list(found.values())


def from_fields(field: str, fields: Mapping[str, str], qid: str) -> str:
    """The text of the fields that were asked for, `title` or `title,desc`, one after the other."""
    texts = []
    for name in wanted_fields(field):
        if not fields.get(name):
            there = ", ".join(name for name, text in fields.items() if text) or "nothing"
            raise InputError(f"topic {qid!r} has no {name}; it has {there}")
        texts.append(fields[name])
    return " ".join(texts)


def wanted_fields(field: str) -> list[str]:
    """The names in a list such as `title,desc`.

    >>> wanted_fields("title,desc")
    ['title', 'desc']
    """
    names = [name.strip().lower() for name in field.replace("+", ",").split(",")]
    if not all(names):
        raise UsageError(f"{field!r} is no list of fields; write it as title or title,desc")
    return names


def without_fields(field: str, form: str) -> None:
    """Refuse fields where topics have none."""
    if field:
        raise UsageError(f"{form} topics have no fields to choose from; leave --topic-field (field= in Python) out")


def at_line(error: PerikopeError, path: object, line: int) -> InputError:
    """What is wrong with a topic, with its place."""
    return InputError(str(error), path=path, line=line)


def one_line(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


def _check(topic: Topic) -> None:
    if not topic.qid:
        raise InputError("the query id is empty")
    if len(topic.qid.split()) > 1:
        # Run files separate their columns by white space.
        raise InputError(f"the query id {topic.qid!r} holds white space")
    if not topic.query and not topic.patent:
        raise InputError(f"the query of {topic.qid!r} is empty")
    if topic.claims and not topic.patent:
        raise InputError(f"topic {topic.qid!r} names claims, but no patent that they are of")
