"""Builds one segment from documents. Texts are analysed in batches, and all data is collected as columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from perikope.core.arrays import Array
from perikope.core.errors import InputError
from perikope.document.tree import Document, Spans
from perikope.index import layout
from perikope.index.columns import ColumnWriter, narrow
from perikope.index.facets import FacetBuilder
from perikope.index.layout import STOP, PostingsWriter, offsets
from perikope.index.lexicon import Lexicon
from perikope.index.store import StoreWriter
from perikope.kernels.postings import count_units, invert, invert_parts
from perikope.kernels.structure import derive_structure
from perikope.kernels.tokens import encode_tokens
from perikope.text.analysis import Analyzer, language_code

BATCH_CHARACTERS = 1 << 20
"""The number of characters of texts that are analysed together. For a short text alone, the call would cost too
much."""

_BYTES_PER_TOKEN, _BYTES_PER_SPAN, _BYTES_PER_DOCUMENT, _BYTES_PER_TERM = 34, 150, 400, 400
"""Peak memory in bytes, which is reached when the segment is written. The values were measured with
benchmarks/memory.py and rounded up."""

_SPAN_COLUMNS = ("kind", "tag", "parent", "start", "end", "part", "language")
_NO_SPANS = Spans()


class SegmentBuilder:
    """Collects documents and writes them as one segment file."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.document_ids: list[bytes] = []
        self._labels: dict[str, int] = {"": 0}
        self._parts: dict[int, int] = {}
        self._sources: dict[tuple[str, str], int] = {}
        self._document_source: list[int] = []
        self._languages: dict[str, int] = {}
        self._language_list: list[str] = []
        self._lexicon = Lexicon(analyzer, self._language_list)
        self._text = StoreWriter()
        self._records = StoreWriter()
        self._facets = FacetBuilder()
        self._id_names: list[bytes] = []
        self._id_spans = array("I")
        self._id_counts = array("I")
        self._batch = _Batch()
        self._columns: dict[str, list[Array]] = {}
        self._tokens = 0
        self._spans = 0

    def __len__(self) -> int:
        return len(self.document_ids)

    @property
    def memory(self) -> int:
        """The estimated peak memory for building and writing the segment, in bytes."""
        return (
            _BYTES_PER_TOKEN * self._tokens + _BYTES_PER_SPAN * self._spans + _BYTES_PER_DOCUMENT * len(self)
            + _BYTES_PER_TERM * self._lexicon.size + 2 * (self._text.compressed_size + self._records.compressed_size)
            + self._facets.memory
        )  # fmt: skip

    def add(self, document: Document, record: bytes | None = None) -> None:
        """Add one document. Pass its `encode_record` if you have it, so that it is not made again."""
        if record is None:
            record = encode_record(document)
        self.document_ids.append(document.id.encode("utf-8", "surrogatepass"))
        self._document_source.append(self._source(document))
        self._text.append(document.text.encode("utf-8", "surrogatepass"))
        self._records.append(record)
        self._facets.add(document.metadata)
        self._id_counts.append(len(document.span_ids))
        for span, name in document.span_ids.items():
            self._id_spans.append(span)
            self._id_names.append(name.encode("utf-8", "surrogatepass"))
        self._batch.add(document, self._labels)
        if self._batch.characters >= BATCH_CHARACTERS:
            self._analyse()

    def write(self, path: Path) -> dict[str, Any]:
        """Write the segment; returns its entry for the manifest. The builder cannot be used afterwards."""
        self._analyse()
        column = {name: np.concatenate(self._columns.pop(name)) for name in list(self._columns)}
        column |= {"document_source": np.array(self._document_source, np.uint32)}
        names = self._lexicon.term_names
        occurrences = np.bincount(column["tokens"], minlength=len(names))
        occurrences[STOP] = 0
        by_name = np.array(sorted(range(len(names)), key=names.__getitem__))
        number_of_term = _by_frequency(occurrences, by_name)
        tokens = number_of_term[column.pop("tokens")]
        first_token = offsets(column["document_tokens"])
        with ColumnWriter(path) as writer:
            facts = _write_structure(writer, column, tokens, first_token)
            _write_terms(writer, names, by_name, number_of_term, occurrences)
            self._write_postings(writer, column, tokens, first_token, len(names))
            codes, first_code = encode_tokens(tokens, first_token)
            writer.write("tokens", codes)
            writer.write("document.first_code", narrow(first_code))
            self._write_names(writer)
            self._facets.write(writer)
            self._text.write("text", writer)
            self._records.write("records", writer)
            facts |= {"documents": len(self), "labels": list(self._labels), "parts": list(self._parts), "languages": self._language_list}
            return {**writer.close(facts), "documents": len(self), "tokens": facts["tokens"]}

    def _write_names(self, writer: ColumnWriter) -> None:
        layout.write_document_ids(writer, self.document_ids)
        layout.write_offsets(writer, "document.first_id", np.array(self._id_counts, np.int64))
        writer.write("id.span", narrow(np.array(self._id_spans, np.uint32)))
        writer.write_strings("ids", self._id_names)
        writer.write_strings("sources", [name.encode("utf-8", "surrogatepass") for name, _ in self._sources])
        writer.write_strings("source_hashes", [code.encode() for _, code in self._sources])

    def _write_postings(self, writer: ColumnWriter, column: dict[str, Array], tokens: Array, first_token: Array, terms: int) -> None:
        postings = invert(tokens, first_token, terms)
        with PostingsWriter(writer.path.parent, len(self._parts)) as out:
            if len(self._parts) > 1:
                part_of_token = column.pop("token_part")
                out.append(*postings, *invert_parts(tokens, part_of_token, first_token, *postings[:2]))
                cell = np.repeat(np.arange(len(self)), np.diff(first_token)) * len(self._parts) + part_of_token
                writer.write("document.part_length", narrow(np.bincount(cell[tokens != STOP], minlength=len(self) * len(self._parts))))
            else:
                out.append(*postings)
            del postings
            out.write(writer)
        passages, passage_occurrences = count_units(tokens, column["passage_first"], column["passage_end"], terms)
        writer.write("term.passages", narrow(passages))
        writer.write("term.passage_occurrences", narrow(passage_occurrences))

    def _analyse(self) -> None:
        """Analyse the texts of the batch, collect their columns and begin a new batch."""
        if not self._batch.texts:
            return
        if len(self._labels) > 1 << 16:
            raise InputError(
                "there are more than 65,536 different tags, parts and languages; use tags for kinds of elements, not for names"
            )
        labels = list(self._labels)
        columns = self._batch.columns(self._lexicon, lambda label: self._language(labels[label]), self._part)
        self._tokens += columns["tokens"].size
        self._spans += columns["span_kind"].size
        for name, chunk in columns.items():
            self._columns.setdefault(name, []).append(chunk)
        self._batch = _Batch()

    def _language(self, label: str) -> int:
        code = language_code(label)
        if code not in self._languages:
            self._language_list.append(code)
        return self._languages.setdefault(code, len(self._languages))

    def _part(self, label: int) -> int:
        number = self._parts.setdefault(label, len(self._parts))
        if number >= layout.MAX_PARTS:
            raise InputError(layout.TOO_MANY_PARTS)
        return number

    def _source(self, document: Document) -> int:
        # The hash distinguishes files of two indexed folders that have the same path in their folder.
        return self._sources.setdefault((document.source, document.source_hash), len(self._sources))


class _Batch:
    """Documents that are analysed together."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.characters = 0
        self._first_character: list[int] = []
        self._span_count: list[int] = []
        self._spans = {name: array(getattr(_NO_SPANS, name).typecode) for name in _SPAN_COLUMNS}
        self._label_maps: list[int] = []
        self._label_base: list[int] = []
        self._base_of_labels: dict[tuple[str, ...], int] = {}

    def add(self, document: Document, numbers: dict[str, int]) -> None:
        """Add a document. `numbers` has the number of each label; new labels are added to it with the next numbers."""
        self.texts.append(document.text)
        self._first_character.append(self.characters)
        self.characters += len(document.text) + 1
        self._span_count.append(len(document.spans))
        base = self._base_of_labels.get(document.labels)
        if base is None:
            base = self._base_of_labels[document.labels] = len(self._label_maps)
            self._label_maps += [numbers.setdefault(label, len(numbers)) for label in document.labels]
        self._label_base.append(base)
        for name, column in self._spans.items():
            column.extend(getattr(document.spans, name))

    def columns(self, lexicon: Lexicon, language_of_label: Callable[[int], int], part_of_label: Callable[[int], int]) -> dict[str, Array]:
        """Analyse the texts; returns the columns of the documents by name.

        Positions and spans are numbered within their document. The two functions map the number of a label to the
        number of its language and of its part.
        """
        span: dict[str, Array] = {name: np.array(column, np.int32) for name, column in self._spans.items()}
        document_of_span = np.repeat(np.arange(len(self.texts)), self._span_count)
        first_span = offsets(np.array(self._span_count))
        base = np.array(self._label_base)[document_of_span]
        for name in ("tag", "part", "language"):
            span[name] = np.array(self._label_maps, np.int32)[base + span[name]]

        # Texts are joined by a line feed, which is never part of a word.
        characters = np.frombuffer("\n".join(self.texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        starts, ends = lexicon.words(characters)
        first_character = np.array(self._first_character)
        first_token = np.searchsorted(starts, np.append(first_character, self.characters).astype(np.int32))
        span_base = first_character[document_of_span].astype(np.int32)
        span_first = np.searchsorted(starts, span["start"] + span_base)
        span_end = np.searchsorted(starts, span["end"] + span_base)
        tree = span["parent"], first_span, first_token, span_first, span_end
        languages = _spread(_renumber(span["language"], language_of_label), *tree)
        first_token_of_document = first_token[:-1][document_of_span]
        return {
            "tokens": lexicon.terms(characters, starts, ends, languages),
            "token_part": _spread(_renumber(span["part"], part_of_label), *tree).astype(np.uint8),
            "document_tokens": np.diff(first_token).astype(np.uint32),
            "document_spans": np.array(self._span_count, np.uint32),
            "span_kind": span["kind"].astype(np.uint8),
            **{f"span_{name}": span[name].astype(np.uint16) for name in ("tag", "part", "language")},
            **{f"span_{name}": span[name] for name in ("parent", "start", "end")},
            "span_first_token": (span_first - first_token_of_document).astype(np.uint32),
            "span_end_token": (span_end - first_token_of_document).astype(np.uint32),
        }


def _renumber(labels: Array, number_of: Callable[[int], int]) -> Array:
    """Apply `number_of` to every label of an array. The function is called once per distinct label."""
    distinct, inverse = np.unique(labels, return_inverse=True)
    return np.array([number_of(int(label)) for label in distinct], np.int32)[inverse]


def _spread(values: Array, parent: Array, first_span: Array, first_token: Array, span_first: Array, span_end: Array) -> Array:
    """Give each token the value of the deepest span that contains it. `values` has one value per span."""
    roots = first_span[:-1]
    of_token = np.repeat(values[roots], np.diff(first_token)).astype(np.int32)
    document_start = np.repeat(roots, np.diff(first_span))
    of_parent = values[np.where(parent >= 0, document_start + parent, np.arange(values.size))]
    # Only the few spans whose value differs from their parent's matter. Deeper spans come later and overwrite values.
    for i in np.flatnonzero(values != of_parent):
        of_token[span_first[i] : span_end[i]] = values[i]
    return of_token


def encode_record(document: Document) -> bytes:
    """The record of a document as JSON: all stored data except text and tree. Empty if there is no such data.

    Raises `InputError` if the metadata have a value that JSON cannot express.
    """
    record: dict[str, object] = {}
    if document.metadata:
        record["metadata"] = document.metadata
    if document.cites:
        record["cites"] = document.cites
    if document.references:
        record["references"] = document.references
    if document.member:
        record["member"] = document.member
    if in_xml := [[span, place.path, place.start, place.end] for span, place in document.places.items() if place.path or not place.page]:
        record["places"] = in_xml
    if on_pages := [[span, place.page, *place.box] for span, place in document.places.items() if place.page]:
        record["pages"] = on_pages
    if document.citations:
        record["citations"] = list(document.citations.items())
    try:
        return orjson.dumps(record) if record else b""
    except TypeError as error:
        raise InputError(
            f"the metadata of document {document.id!r} cannot be stored: {error}; use text, numbers, dates, lists, or dictionaries of these"
        ) from None


def _by_frequency(occurrences: Array, by_name: Array) -> Array:
    """The new number of each term: 0 for the stop term, then by decreasing frequency.

    So most tokens have small numbers. `by_name` lists the terms in the order of their names.
    """
    order = by_name[np.argsort(-occurrences[by_name], kind="stable")]
    order = np.concatenate([[STOP], order[order != STOP]])
    number = np.empty(by_name.size, np.uint32)
    number[order] = np.arange(by_name.size, dtype=np.uint32)
    return number


def _write_terms(writer: ColumnWriter, names: list[bytes], by_name: Array, number_of_term: Array, occurrences: Array) -> None:
    in_order = np.argsort(number_of_term)
    writer.write_strings("terms", [names[i] for i in in_order])
    writer.write("term_of_name", number_of_term[by_name].astype(np.uint32))
    writer.write("term.occurrences", narrow(occurrences[in_order]))


def _write_structure(writer: ColumnWriter, column: dict[str, Array], tokens: Array, first_token: Array) -> dict[str, Any]:
    """Write the columns of documents, spans, sections and passages; returns the numbers of tokens and passages."""
    first_span = offsets(column["document_spans"])
    section_of_span, parent_of_section, span_of_section, title_of_section, span_of_passage, ends = derive_structure(
        column["span_kind"], column["span_parent"], first_span
    )
    document_of_span = np.repeat(np.arange(first_span.size - 1), column["document_spans"])
    span_base, token_base = first_span[document_of_span], first_token[document_of_span]
    first, end = column["span_first_token"], column["span_end_token"]
    indexed_before = np.concatenate([[0], np.cumsum(tokens != STOP)])
    length = indexed_before[token_base + end] - indexed_before[token_base + first]
    titled = title_of_section >= 0
    base_of_section = span_base[span_of_section]

    written: dict[str, Array] = {f"span.{name}": column[f"span_{name}"] for name in layout.OF_SPAN}
    written |= {
        "document.tokens": column["document_tokens"],
        "document.length": np.diff(indexed_before[first_token]),
        "document.source": column["document_source"],
        "section.span": span_of_section - base_of_section,
        "section.parent": parent_of_section,
        "section.title_span": np.where(titled, title_of_section - base_of_section, -1),
        "passage.span": span_of_passage - span_base[span_of_passage],
        "passage.section": section_of_span[span_of_passage],
        "passage.first_token": first[span_of_passage],
        "passage.end_token": end[span_of_passage],
        "passage.length": length[span_of_passage],
    }
    for name, values in (("title_first", first), ("title_end", end), ("title_length", length)):
        written[f"section.{name}"] = np.where(titled, values[title_of_section], 0)
    for name, values in written.items():
        writer.write(name, narrow(values))
    layout.write_offsets(writer, "document.first_span", column["document_spans"])
    layout.write_offsets(writer, "document.first_section", np.diff(ends[0::2], prepend=0))
    layout.write_offsets(writer, "document.first_passage", np.diff(ends[1::2], prepend=0))
    column["passage_first"] = (token_base + first)[span_of_passage]
    column["passage_end"] = (token_base + end)[span_of_passage]
    return {
        "tokens": int(tokens.size),
        "indexed_tokens": int(indexed_before[-1]),
        "passages": int(span_of_passage.size),
        "passage_tokens": int(length[span_of_passage].sum()),
    }
