"""Documents, topics and judgements of the package ir_datasets, such as `irds:beir/scifact/test`.

The package downloads missing data sets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from perikope.core.errors import InputError, MissingExtra, PerikopeError, UsageError
from perikope.core.names import encode
from perikope.document.tree import Document
from perikope.evaluation.io.topic import Numbered, from_fields, one_line
from perikope.formats.jsonl import document_from
from perikope.query.topic import Topic

PREFIX = "irds:"
TEXTS = ("abstract", "text", "body", "contents", "content", "main_content", "paragraph")
"""Fields of documents that are text."""
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")


def is_id(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a data set of ir_datasets (`irds:NAME`) and not a file.

    >>> is_id("irds:beir/scifact/test"), is_id("topics.tsv")
    (True, False)
    """
    return isinstance(path, str) and path.startswith(PREFIX)


def read_documents(id: str, *, language: str = "en") -> Iterator[Document]:
    """Yield the documents of a data set, for `Index.add`.

    A field `title` is the title. The fields of `TEXTS` are the text; blank lines separate paragraphs. If a document has
    none of them, its default text is used. All other fields are metadata. `language` is that of the documents.
    """
    dataset = _dataset(id, "docs")
    with _translated_errors(id):
        for document in dataset.docs_iter():
            fields = {name: value for name, value in document._asdict().items() if name != "doc_id" and value not in (None, "")}
            texts = {name: value for name, value in fields.items() if name in TEXTS and isinstance(value, str) and value.strip()}
            title = fields.get("title") if isinstance(fields.get("title"), str) else None
            passages = [piece for text in texts.values() or [document.default_text()] for piece in _PARAGRAPH.split(text.strip()) if piece]
            metadata = {name: value for name, value in fields.items() if name not in texts and name != "title" and _is_plain(value)}
            if passages or title:
                record = {"id": str(document.doc_id), "title": title, "passages": passages, "metadata": metadata}
                yield document_from(record, language)


def _is_plain(value: object) -> bool:
    """Whether a value can be metadata: a text, a number, or a list of them."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, (str, int, float)) for item in value)
    return isinstance(value, (str, int, float))


def read_topics(id: str, field: str) -> Iterator[Numbered]:
    """Yield the queries of a data set. `field` names the fields that form the query, such as `title`.

    If `field` is empty, the query is the default text of ir_datasets. `Numbered.line` counts queries from 1.
    """
    dataset = _dataset(id, "queries")
    with _translated_errors(id):
        for number, query in enumerate(dataset.queries_iter(), start=1):
            # ir_datasets has other field names than TREC: description, not desc.
            texts = {name: one_line(value) for name, value in query._asdict().items() if isinstance(value, str) and name != "query_id"}
            text = from_fields(field, texts, query.query_id) if field else one_line(query.default_text())
            yield Numbered(number, Topic(str(query.query_id), text))


def read_judgements(id: str) -> dict[str, dict[str, int]]:
    """Read the grades of documents from a data set."""
    dataset = _dataset(id, "qrels")
    judgements: dict[str, dict[str, int]] = {}
    with _translated_errors(id):
        for judgement in dataset.qrels_iter():
            judgements.setdefault(str(judgement.query_id), {})[encode(str(judgement.doc_id))] = int(judgement.relevance)
    return judgements


def _dataset(id: str, what: str) -> Any:
    try:
        ir_datasets = import_module("ir_datasets")
    except ImportError:
        raise MissingExtra("ir_datasets", "irds") from None
    name = id.removeprefix(PREFIX)
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise UsageError(f"ir_datasets has no data set {name!r}; see https://ir-datasets.com for its names") from None
    if not getattr(dataset, f"has_{what}")():
        raise UsageError(f"the data set {name!r} of ir_datasets has no {what}; name one of its parts, such as {name}/test")
    return dataset


@contextmanager
def _translated_errors(id: str) -> Iterator[None]:
    """Convert any error of ir_datasets into an `InputError` that names the data set."""
    try:
        yield
    except PerikopeError:
        raise
    except Exception as error:
        reason = one_line(str(error.args[0] if error.args else error))[:300] or type(error).__name__
        raise InputError(f"ir_datasets cannot read the data set: {reason}", path=id) from error
