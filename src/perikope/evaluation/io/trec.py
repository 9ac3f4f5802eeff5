"""TREC topics: `<top> <num> Number: 301 <title> … <desc> … </top>`, or `<topic number="1">` with its fields in XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from perikope.core.errors import InputError, PerikopeError
from perikope.evaluation.io.lines import beginning
from perikope.evaluation.io.marked_up import TaggedText, characters, pieces, topics_in_xml
from perikope.evaluation.io.topic import Numbered, at_line, from_fields, wanted_fields
from perikope.query.topic import Topic

_LABEL = re.compile(r"\s*(?:Number|Topic|Title|Description|Narrative|Domain|Summary|Concept\(s\)|Factor\(s\)|Definition\(s\))\s*:\s*")
_SHORT = {"description": "desc", "narrative": "narr", "query": "title"}
"""Names of fields in newer files, mapped to the names of the same fields in older files."""


def read_topics(path: Path, field: str) -> Iterator[Numbered]:
    """Yield the topics of a TREC file. `field` names the fields that form the query, such as `title,desc`.

    If `field` is empty, the title is the query.
    """
    head = beginning(path).lower()
    if b"<topic" in head and not re.search(rb"<top\s*>", head):
        topics: Iterator[tuple[int, str, dict[str, str]]] = (
            (line, qid, {_SHORT.get(name, name): text for name, text in texts.items()}) for line, qid, texts in topics_in_xml(path)
        )
    else:
        topics = _blocks(path)
    asked = ",".join(_SHORT.get(name, name) for name in wanted_fields(field or "title"))
    for line, number, texts in topics:
        try:
            # Leading zeros are removed because TREC judgements of topic 051 use the id 51.
            qid = number.lstrip("0") or "0" if number.isdecimal() else number
            yield Numbered(line, Topic(qid, from_fields(asked, texts, qid), fields=texts))
        except PerikopeError as error:
            raise at_line(error, path, line) from error


def _blocks(path: Path) -> Iterator[tuple[int, str, dict[str, str]]]:
    block: list[TaggedText] = []
    any_topic = False
    for piece in pieces(path):
        if not block:
            if piece.tag == "top":
                block, any_topic = [piece], True
            elif piece.text.strip():
                raise InputError("there is text outside of <top> … </top>", path=path, line=piece.text_line)
        elif piece.tag == "top":
            raise InputError("the topic that begins here does not end: there is no </top>", path=path, line=block[0].line)
        elif piece.tag != "/top":
            block.append(piece)
        else:
            if piece.text.strip():
                raise InputError("there is text outside of <top> … </top>", path=path, line=piece.text_line)
            yield block[0].line, *_fields(block, path)
            block = []
    if block:
        raise InputError("the topic that begins here does not end: there is no </top>", path=path, line=block[0].line)
    if not any_topic:
        raise InputError("the file has no topics: no <top>", path=path, line=1)


def _fields(block: list[TaggedText], path: Path) -> tuple[str, dict[str, str]]:
    texts: dict[str, str] = {}
    last = ""
    for tag, text, line in block[1:]:
        if tag.startswith("/"):
            last = ""
        elif tag in texts and tag == "num":
            raise InputError("a topic has two numbers; is a </top> missing?", path=path, line=line)
        else:
            last = tag
            text = _LABEL.sub("", text, count=1) if _LABEL.match(text) else text
        if last:
            texts[last] = f"{texts.get(last, '')} {text}"
    fields = {_SHORT.get(name, name): characters(text) for name, text in texts.items()}
    number = fields.pop("num", "")
    if not number:
        raise InputError("the topic that begins here has no number (<num>)", path=path, line=block[0].line)
    return number, fields
