"""Documents become one segment: texts are analysed in batches, everything is kept in columns from the start."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perikope.document import Document, Spans
from perikope.index.columns import ColumnWriter
from perikope.index.lexicon import STOP, Lexicon
from perikope.index.store import StoreWriter
from perikope.kernels.postings import count_units, invert, sum_runs
from perikope.kernels.structure import derive_structure
from perikope.text import Analyzer, language_code

BATCH_CHARACTERS = 1 << 20
"""Texts are analysed together up to this size: a kernel call costs more than a short text."""

_SPAN_COLUMNS = ("kind", "tag", "parent", "start", "end", "part", "language")
_NO_SPANS = Spans()
Array = NDArray[Any]


class SegmentBuilder:
    """Takes documents one by one and writes them as one segment file."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.document_ids: list[str] = []
        self._labels: dict[str, int] = {"": 0}
        self._languages: dict[str, int] = {}
        self._language_list: list[str] = []
        self._lexicon = Lexicon(analyzer, self._language_list)
        self._text = StoreWriter()
        self._records = StoreWriter()
        self._ids: list[tuple[int, bytes]] = []
        self._batch = _Batch()
        self._spans_before = 0
        self._columns: dict[str, list[Array]] = {}

    def __len__(self) -> int:
        return len(self.document_ids)

    def add(self, document: Document) -> None:
        """Take one document."""
        batch = self._batch
        self.document_ids.append(document.id)
        self._text.append(document.text.encode("utf-8", "surrogatepass"))
        self._records.append(_record(document))
        for span, name in document.span_ids.items():
            self._ids.append((self._spans_before + span, name.encode("utf-8", "surrogatepass")))
        self._spans_before += len(document.spans)
        batch.add(document, [self._number(self._labels, label) for label in document.labels])
        if batch.characters >= BATCH_CHARACTERS:
            self._analyse()

    def write(self, path: Path) -> dict[str, object]:
        """Write the segment; returns its entry for the manifest."""
        self._analyse()
        column = {name: np.concatenate(chunks) for name, chunks in self._columns.items()}
        order, names = _sorted_terms(self._lexicon.term_names)
        tokens = order[column.pop("tokens")]
        with ColumnWriter(path) as writer:
            facts = _write_structure(writer, column, tokens)
            facts |= _write_postings(writer, column, tokens, len(names))
            writer.write("tokens", tokens)
            writer.write_strings("terms", names)
            writer.write_strings("document_ids", [name.encode("utf-8", "surrogatepass") for name in self.document_ids])
            writer.write("document_id_order", np.array(sorted(range(len(self)), key=self.document_ids.__getitem__), np.uint32))
            writer.write("id_span", np.array([span for span, _ in self._ids], np.int64))
            writer.write_strings("ids", [name for _, name in self._ids])
            self._text.write("text", writer)
            self._records.write("records", writer)
            facts |= {"documents": len(self), "labels": list(self._labels)}
            return {"file": path.name, **writer.close(facts), "documents": len(self)}

    def _analyse(self) -> None:
        if not self._batch.texts:
            return
        labels = list(self._labels)
        for name, chunk in self._batch.columns(self._lexicon, lambda label: self._language(labels[label])).items():
            self._columns.setdefault(name, []).append(chunk)
        self._batch = _Batch()

    def _language(self, label: str) -> int:
        code = language_code(label)
        if code not in self._languages:
            self._language_list.append(code)
        return self._number(self._languages, code)

    @staticmethod
    def _number(numbers: dict[str, int], label: str) -> int:
        return numbers.setdefault(label, len(numbers))


class _Batch:
    """Documents waiting to be analysed together."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.characters = 0
        self._first_character: list[int] = []
        self._span_count: list[int] = []
        self._spans = {name: array(getattr(_NO_SPANS, name).typecode) for name in _SPAN_COLUMNS}
        self._label_maps: list[int] = []
        self._label_base: list[int] = []

    def add(self, document: Document, label_numbers: list[int]) -> None:
        self.texts.append(document.text)
        self._first_character.append(self.characters)
        self.characters += len(document.text) + 1
        self._span_count.append(len(document.spans))
        self._label_base.append(len(self._label_maps))
        self._label_maps += label_numbers
        for name, column in self._spans.items():
            column.extend(getattr(document.spans, name))

    def columns(self, lexicon: Lexicon, language_of_label: Any) -> dict[str, Array]:
        """Analyse the texts: the columns of these documents, with numbers that count within their document."""
        span = {name: np.array(column, np.int32) for name, column in self._spans.items()}
        document_of_span = np.repeat(np.arange(len(self.texts)), self._span_count)
        first_span = np.cumsum([0, *self._span_count])
        base = np.array(self._label_base)[document_of_span]
        for name in ("tag", "part", "language"):
            span[name] = np.array(self._label_maps, np.int32)[base + span[name]]
        language_labels, inverse = np.unique(span["language"], return_inverse=True)
        language = np.array([language_of_label(label) for label in language_labels], np.int32)[inverse]

        # Documents are joined by a line feed, which no word crosses.
        characters = np.frombuffer("\n".join(self.texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        starts, ends = lexicon.words(characters)
        first_character = np.array(self._first_character)
        first_token = np.searchsorted(starts, np.append(first_character, self.characters))
        span_first = np.searchsorted(starts, span["start"] + first_character[document_of_span])
        span_end = np.searchsorted(starts, span["end"] + first_character[document_of_span])
        places = span["parent"], first_span, first_token, span_first, span_end
        tokens = lexicon.terms(characters, starts, ends, _spread(language, *places))

        own_first = first_token[:-1][document_of_span]
        return {
            "tokens": tokens,
            "token_part": _spread(span["part"], *places),
            "document_tokens": np.diff(first_token),
            "document_spans": np.array(self._span_count),
            **{f"span_{name}": span[name] for name in _SPAN_COLUMNS},
            "span_first_token": (span_first - own_first).astype(np.uint32),
            "span_end_token": (span_end - own_first).astype(np.uint32),
        }


def _spread(values: Array, parent: Array, first_span: Array, first_token: Array, span_first: Array, span_end: Array) -> Array:
    """A property of spans as one of tokens: each token takes that of the deepest span that holds it."""
    roots = first_span[:-1]
    of_token = np.repeat(values[roots], np.diff(first_token)).astype(np.int32)
    document_start = np.repeat(roots, np.diff(first_span))
    of_parent = values[np.where(parent >= 0, document_start + parent, np.arange(values.size))]
    # Only spans that differ from their parent matter, and they are few; deeper spans come later and win.
    for i in np.flatnonzero(values != of_parent):
        of_token[span_first[i] : span_end[i]] = values[i]
    return of_token


def _record(document: Document) -> bytes:
    record: dict[str, object] = {}
    if document.metadata:
        record["metadata"] = document.metadata
    if document.cites:
        record["cites"] = document.cites
    if document.references:
        record["references"] = document.references
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") if record else b""


def _sorted_terms(names: list[bytes]) -> tuple[Array, list[bytes]]:
    """The number of each term in sorted order, and the names in that order; the stop term, the empty name, stays first."""
    by_name = sorted(range(len(names)), key=names.__getitem__)
    order = np.empty(len(names), np.uint32)
    order[by_name] = np.arange(len(names), dtype=np.uint32)
    return order, [names[i] for i in by_name]


def _offsets(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)


def _write_structure(writer: ColumnWriter, column: dict[str, Array], tokens: Array) -> dict[str, object]:
    """Write spans, sections and passages; returns the facts about them."""
    first_token = _offsets(column["document_tokens"])
    first_span = _offsets(column["document_spans"])
    writer.write("document.first_token", first_token)
    writer.write("document.first_span", first_span)
    for name, kind in (("kind", np.uint8), ("tag", np.uint16), ("parent", np.int32), ("start", np.uint32), ("end", np.uint32),
                       ("part", np.uint16), ("language", np.uint16), ("first_token", np.uint32), ("end_token", np.uint32)):  # fmt: skip
        writer.write(f"span.{name}", column[f"span_{name}"].astype(kind))

    section_of_span, parent_of_section, span_of_section, title_of_section, span_of_passage, ends = derive_structure(
        column["span_kind"].astype(np.uint8), column["span_parent"], first_span.astype(np.int64)
    )
    document_of_span = np.repeat(np.arange(first_span.size - 1), column["document_spans"])
    token_base = first_token[:-1].astype(np.int64)[document_of_span]
    first, end = column["span_first_token"], column["span_end_token"]
    indexed_before = np.concatenate([[0], np.cumsum(tokens != STOP)])
    length_of_span = indexed_before[token_base + end] - indexed_before[token_base + first]

    writer.write("document.length", np.diff(indexed_before[first_token.astype(np.int64)]).astype(np.uint32))
    writer.write("document.first_section", _offsets(np.diff(ends[0::2], prepend=0)))
    writer.write("document.first_passage", _offsets(np.diff(ends[1::2], prepend=0)))
    writer.write("section.parent", parent_of_section)
    writer.write("section.span", span_of_section.astype(np.uint64))
    writer.write("section.title_span", title_of_section)
    titled = title_of_section >= 0
    for name, values in (("title_first", first), ("title_end", end), ("title_length", length_of_span)):
        writer.write(f"section.{name}", np.where(titled, values[title_of_section], 0).astype(np.uint32))
    writer.write("passage.span", span_of_passage.astype(np.uint64))
    writer.write("passage.section", section_of_span[span_of_passage].astype(np.uint32))
    for name, values in (("first_token", first), ("end_token", end), ("length", length_of_span)):
        writer.write(f"passage.{name}", values[span_of_passage].astype(np.uint32))
    column["passage_first"] = (token_base + first)[span_of_passage]
    column["passage_end"] = (token_base + end)[span_of_passage]
    return {
        "tokens": int(tokens.size),
        "indexed_tokens": int(indexed_before[-1]),
        "passages": int(span_of_passage.size),
        "passage_tokens": int(length_of_span[span_of_passage].sum()),
    }


def _write_postings(writer: ColumnWriter, column: dict[str, Array], tokens: Array, terms: int) -> dict[str, object]:
    """Write term → documents with the frequency in each part, and the statistics of terms; returns the facts about them."""
    first_token = np.concatenate([[0], np.cumsum(column["document_tokens"])])
    parts, part_of_token = np.unique(column["token_part"], return_inverse=True)
    parts, part_of_token = (parts, part_of_token) if parts.size else (np.zeros(1, np.int32), part_of_token)
    documents = first_token.size - 1
    document_of_token = np.repeat(np.arange(documents), np.diff(first_token))
    part_of_document = document_of_token * parts.size + part_of_token
    # Runs of tokens of one part of one document; a part that is interrupted has several.
    first = np.concatenate([[0], np.flatnonzero(np.diff(part_of_document)) + 1]) if tokens.size else np.zeros(0, np.int64)
    end = np.append(first[1:], tokens.size) if tokens.size else first
    order = np.argsort(part_of_document[first], kind="stable")
    first, end = first[order], end[order]
    posting = invert(tokens, first, end, terms)
    units, unit_of_run = np.unique(part_of_document[first], return_inverse=True)
    by_part = sum_runs(*posting, unit_of_run.astype(np.uint32))
    by_document = sum_runs(*by_part[:3], (units // parts.size).astype(np.uint32))
    writer.write("term.first_posting", by_document[0].astype(np.uint64))
    writer.write("posting.document", by_document[1])
    writer.write("posting.frequency", by_document[2])
    if parts.size > 1:
        writer.write("posting.first_part", by_document[3].astype(np.uint64))
        writer.write("part_posting.part", (units % parts.size)[by_part[1]].astype(np.uint8))
        writer.write("part_posting.frequency", by_part[2])
        lengths = np.bincount(part_of_document[tokens != STOP], minlength=documents * parts.size)
        writer.write("document.part_length", lengths.astype(np.uint32))
    occurrences = np.bincount(tokens, minlength=terms)
    occurrences[STOP] = 0
    passages, passage_occurrences = count_units(tokens, column["passage_first"], column["passage_end"], terms)
    writer.write("term.occurrences", occurrences.astype(np.uint64))
    writer.write("term.passages", passages.astype(np.uint64))
    writer.write("term.passage_occurrences", passage_occurrences.astype(np.uint64))
    return {"parts": parts.tolist(), "terms": terms}
