"""Topics of one language: the language that a file of topics names, or that of the patent of a topic."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from perikope.core.errors import InputError, PerikopeError
from perikope.evaluation.io.topic import Numbered, at_line
from perikope.text.analysis import language_code

SHOWN = 3
"""Number of topics that a note names."""

_UNKNOWN = "und"


def in_language(topics: Sequence[Numbered], language: str, path: str | os.PathLike[str], on_note: Callable[[str], None]) -> list[Numbered]:
    """The topics in a language, such as `en`. Topics of another language are left out.

    A topic whose language is not known is kept. `on_note` receives one sentence about topics that are left out, and one
    about topics whose language is not known. Raises an `InputError` if no topic is left.
    """
    wanted = language_code(language)
    kept: list[Numbered] = []
    others: list[str] = []
    unknown: list[str] = []
    for topic in topics:
        own = _language_of(topic, path)
        if own in (wanted, _UNKNOWN):
            kept.append(topic)
            if own == _UNKNOWN:
                unknown.append(f"{topic.topic.qid} (line {topic.line})")
        else:
            others.append(f"{topic.topic.qid} (line {topic.line}, {own})")
    if topics and not kept:
        raise InputError(f"no topic is in the language {wanted!r}: {_some(others)}; name another language", path=path, line=topics[0].line)
    if others:
        on_note(f"{path}: {len(others)} of {len(topics)} topics are not in the language {wanted!r} and left out: {_some(others)}")
    if unknown and wanted != _UNKNOWN:
        on_note(
            f"{path}: the language of {len(unknown)} of {len(topics)} topics is not known; they are taken to be in {wanted!r}: "
            f"{_some(unknown)}"
        )
    return kept


def _language_of(topic: Numbered, path: str | os.PathLike[str]) -> str:
    """The language of a topic: the one that its file names, else that of its patent's file; `und` if neither says."""
    try:
        named = topic.language or str(topic.topic.options.get("language", "")) or _language_of_patent(topic.topic.patent)
        return language_code(named)
    except PerikopeError as error:
        raise at_line(error, path, topic.line) from error


def _language_of_patent(patent: str) -> str:
    if not patent or not Path(patent).is_file():
        return ""
    # The import loads lxml, which most topics do not need.
    from perikope.formats import read

    return next((document.language for document in read(patent, hashes=False)), "")


def _some(texts: Sequence[str]) -> str:
    return ", ".join(texts[:SHOWN]) + " …" * (len(texts) > SHOWN)
