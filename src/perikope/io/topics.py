"""Topics: the queries of an experiment, from TSV (`qid<TAB>text`) or JSON Lines (`qid`, `query`, and what may come with it)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perikope.errors import InputError
from perikope.io.lines import numbered_lines


@dataclass(frozen=True, slots=True)
class Topic:
    """One query; `browse` is its second form where passages are scored with another one, `patent` a document to search with.

    `filter` and `shares_codes_with` say which documents may be found for this topic, as the options of a search do for all.
    """

    qid: str
    query: str
    browse: str = ""
    patent: str = ""
    filter: tuple[str, ...] = ()
    shares_codes_with: str = ""


def read_topics(path: str | os.PathLike[str]) -> list[Topic]:
    r"""The topics of a file in its order: JSON Lines where the name ends in `.jsonl` or `.jsonl.gz`, else TSV.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "topics.tsv")
    ...     _ = file.write_text("7\tmagnetic pump\n", encoding="utf-8")
    ...     read_topics(file)
    [Topic(qid='7', query='magnetic pump', browse='', patent='', filter=(), shares_codes_with='')]
    """
    path = Path(path)
    name = path.name.removesuffix(".gz")
    read_line = _from_json if name.endswith(".jsonl") else _from_tsv
    topics: dict[str, Topic] = {}
    for number, line in numbered_lines(path):
        try:
            topic = _checked(read_line(line))
        except InputError as error:
            raise InputError(str(error), path=path, line=number) from error
        if topic.qid in topics:
            raise InputError(f"query id {topic.qid!r} stands in the file twice", path=path, line=number)
        topics[topic.qid] = topic
    return list(topics.values())


def _from_tsv(line: str) -> Topic:
    qid, tab, text = line.partition("\t")
    if not tab:
        raise InputError("expected a query id, a tab and the query; there is no tab")
    return Topic(qid.strip(), text.strip())


def _from_json(line: str) -> Topic:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError("expected a JSON object with qid and query")
    qid = record.get("qid")
    if isinstance(qid, int) and not isinstance(qid, bool):
        record["qid"] = str(qid)
    for key in ("qid", "query"):
        if key not in record:
            raise InputError(f"the object has no {key!r}")
    conditions = record.get("filter") or []
    listed = conditions if isinstance(conditions, list) else [conditions]
    if not all(isinstance(condition, str) for condition in listed):
        raise InputError("'filter' must be a text such as \"date<2013-04-01\", or a list of them")
    texts = {key: _text(record, key) for key in ("qid", "query", "browse", "patent", "shares_codes_with")}
    return Topic(**texts, filter=tuple(listed))


def _text(record: Mapping[str, object], key: str) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{key!r} must be text")
    # JSON can spell half a character, which no file can hold.
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError(f"{key!r} holds half a surrogate pair")
    return value.strip()


def _checked(topic: Topic) -> Topic:
    if not topic.qid:
        raise InputError("the query id is empty")
    if len(topic.qid.split()) > 1:
        # Run files separate their columns by white space.
        raise InputError(f"the query id {topic.qid!r} holds white space")
    if not topic.query:
        raise InputError(f"the query of {topic.qid!r} is empty")
    return topic
