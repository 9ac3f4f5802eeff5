"""Reads topics, which are queries with ids and options, from files of several forms, by the content of a file.

The forms are TSV (`qid<TAB>text`), JSON Lines (`qid`, `query` or `patent`, and options of a search), TREC, CLEF-IP
claims to passages, INEX, BEIR, and data sets of the package ir_datasets (`irds:NAME`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError, PerikopeError, UsageError, unknown
from perikope.core.options import checked_options
from perikope.evaluation.io import beir, clef_ip, inex, irds, trec
from perikope.evaluation.io.languages import in_language
from perikope.evaluation.io.lines import beginning, numbered_lines
from perikope.evaluation.io.topic import Numbered, Reader, at_line, checked, without_fields
from perikope.query.topic import Topic
from perikope.search.options import OPTIONS, TOPIC, SearchOptions, options_on

__all__ = ["TOPIC_FORMS", "read_topics", "topic_form"]


def read_topics(
    path: str | os.PathLike[str],
    form: str = "auto",
    field: str = "",
    language: str = "",
    on_note: Callable[[str], None] = lambda note: None,
) -> list[Topic]:
    r"""Read the topics of a file, in the order of the file.

    `form` is one of `TOPIC_FORMS`, or `auto`, which chooses the form by the content. `field` names the fields of a TREC
    or INEX topic that form the query, such as `title,desc` or `castitle`. If it is empty, the title is the query.

    With a `language`, such as `en`, topics of other languages are left out. `on_note` receives a sentence about them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "topics.tsv")
    ...     _ = file.write_text("7\tmagnetic pump\n", encoding="utf-8")
    ...     [(topic.qid, topic.query) for topic in read_topics(file)]
    [('7', 'magnetic pump')]
    """
    numbered = _read(path, form, field)
    return [topic.topic for topic in (in_language(numbered, language, path, on_note) if language else numbered)]


def _read(path: str | os.PathLike[str], form: str, field: str) -> list[Numbered]:
    if irds.is_id(path):
        return checked(irds.read_topics(os.fspath(path), field), path)
    path = Path(path)
    if form == "auto":
        form = topic_form(path)
    if form not in TOPIC_FORMS:
        raise unknown("form of topics", form, ["auto", *TOPIC_FORMS])
    path = beir.queries_file(path) if form == "beir" else path
    return checked(TOPIC_FORMS[form](path, field), path)


def topic_form(path: Path) -> str:
    """The form of a topic file, by its content and the suffix of its name.

    Raises an `InputError` if these do not determine the form.
    """
    if path.is_dir():
        return "beir"
    name = path.name.removesuffix(".gz")
    if name.endswith(".jsonl"):
        return "jsonl"
    data = beginning(path).lstrip()
    first = data.partition(b"\n")[0]
    if data.startswith(b"<"):
        return _marked_up(path, data)
    if first.startswith(b"{") and (b"\t" not in first or _is_object(first)):
        return "jsonl"
    if b"\t" in first or name.endswith(".tsv") or not first:
        return "tsv"
    raise InputError(
        f"the file has none of the known forms of topics ({', '.join(TOPIC_FORMS)}): its first line is not query id, tab and query; "
        "correct it, or name the form (--topic-format)",
        path=path,
        line=next((number for number, _ in numbered_lines(path)), 1),
    )


_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_TOPIC_ID = re.compile(rb"<(?:inex_)?topic\s[^<>]*?\b(number|num|id|topic_id|topic-id)\s*=", re.IGNORECASE)
_DECISIVE = (
    ("clef-ip", re.compile(rb"<(?:tid|tfile)\s*>", re.IGNORECASE)),
    ("trec", re.compile(rb"<top\s*>", re.IGNORECASE)),
    ("inex", re.compile(rb"<(?:inex-topic-file|inex_topic|castitle)\b", re.IGNORECASE)),
)
"""Forms of topics with markup, each with a pattern that occurs only in files of this form."""


def _marked_up(path: Path, data: bytes) -> str:
    data = _COMMENT.sub(b"", data)
    forms = [form for form, pattern in _DECISIVE if pattern.search(data)]
    if not forms and (id := _TOPIC_ID.search(data)):
        forms = ["trec" if id[1].lower() in (b"number", b"num") else "inex"]
    if len(forms) == 1:
        return forms[0]
    what = (
        f"tags of several forms of topics ({', '.join(forms)})" if forms else "no topics of a known form: no <top>, <tid> or <topic id=…>"
    )
    raise InputError(f"the file has {what}; correct it, or name the form (--topic-format)", path=path, line=1)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _read_tsv(path: Path, field: str) -> Iterator[Numbered]:
    without_fields(field, "TSV")
    for number, line in numbered_lines(path):
        qid, tab, text = line.partition("\t")
        if not tab:
            raise InputError("expected a query id, a tab and the query; there is no tab", path=path, line=number)
        yield Numbered(number, Topic(qid.strip(), text.strip()))


def _read_json_lines(path: Path, field: str) -> Iterator[Numbered]:
    without_fields(field, "JSON Lines")
    for number, line in numbered_lines(path):
        try:
            yield Numbered(number, _from_json(line, path.parent))
        except PerikopeError as error:
            raise at_line(error, path, number) from error


def _from_json(line: str, folder: Path) -> Topic:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError("expected a JSON object with qid and query")
    if "qid" not in record and "query" not in record and beir.is_query(record):
        return beir.query_of(record)
    qid = record.get("qid")
    if isinstance(qid, int) and not isinstance(qid, bool):
        record["qid"] = str(qid)
    if "qid" not in record:
        raise InputError("the object has no 'qid'")
    if "query" not in record and "patent" not in record:
        raise InputError("the object has no 'query', nor a 'patent' to search with")
    texts = {key: text_in(record, key) for key in ("qid", "query", "patent")}
    texts["patent"] = clef_ip.patent_of(texts["patent"], folder)
    claims = clef_ip.claims_of(_words(record, "claims"))
    family = tuple(map(clef_ip.document_of, _words(record, "family")))
    return Topic(**texts, claims=claims, family=family, options=_options(record))


_KEYS = ("qid", "query", "patent", "claims", "family")


def _options(record: Mapping[str, Any]) -> dict[str, Any]:
    """The search options in the JSON object of a topic. The key `browse` means `browse_query`.

    Raises an `InputError` for a key that looks like a misspelt option. Other unknown keys are ignored, because they may
    belong to other programs.
    """
    if "browse" in record and "browse_query" in record:
        raise InputError("'browse' is short for 'browse_query'; give one of them")
    if "browse" in record:
        record = {**{name: value for name, value in record.items() if name != "browse"}, "browse_query": text_in(record, "browse")}
    for name in record:
        if name in OPTIONS and name not in options_on(TOPIC):
            raise InputError(f"{name!r} is an option of a whole search, not of one topic; give it once for all topics")
        if name not in (*_KEYS, *OPTIONS) and (near := get_close_matches(name.replace("-", "_"), (*_KEYS, *OPTIONS), 1, 0.85)):
            raise InputError(f"unknown key {name!r}; did you mean {near[0]!r}?")
    given = {name: record[name] for name in options_on(TOPIC) if record.get(name) not in (None, "")}
    try:
        return checked_options(SearchOptions, given)
    except UsageError as error:
        raise InputError(str(error)) from None


def _words(record: Mapping[str, object], key: str) -> list[str]:
    value = record.get(key)
    if not isinstance(value, list):
        return text_in(record, key).split()
    if not all(isinstance(item, str) and item.strip() for item in value):
        raise InputError(f"{key!r} must be a text or a list of texts")
    return [text_in({key: item}, key) for item in value]


def text_in(record: Mapping[str, object], key: str) -> str:
    """The text under a key of a JSON object, without white space at its ends; empty if the key is missing or null."""
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{key!r} must be text")
    # JSON can contain half a surrogate pair, which no UTF-8 file can hold.
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError(f"{key!r} holds half a surrogate pair; correct its \\u escapes")
    return value.strip()


TOPIC_FORMS: Mapping[str, Reader] = {
    "tsv": _read_tsv,
    "jsonl": _read_json_lines,
    "trec": trec.read_topics,
    "clef-ip": clef_ip.read_topics,
    "inex": inex.read_topics,
    "beir": _read_json_lines,
}
"""The reader of each form of topic files, by the name of the form."""
