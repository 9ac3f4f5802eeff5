"""One segment, opened: its columns by what they say of documents, sections, passages and terms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perikope.errors import IndexFormatError
from perikope.index.columns import Array, ColumnFile
from perikope.index.store import Store
from perikope.names import running_number


class Segment:
    """An immutable, memory-mapped part of an index; documents have local numbers from 0."""

    def __init__(self, path: Path, entry: Mapping[str, Any] | None = None) -> None:
        self.columns = ColumnFile(path, entry)
        facts = self.columns.facts
        self.documents: int = facts["documents"]
        self.indexed_tokens: int = facts["indexed_tokens"]
        self.passages: int = facts["passages"]
        self.passage_tokens: int = facts["passage_tokens"]
        self.labels: list[str] = facts["labels"]
        self.parts: list[str] = [self.labels[number] for number in facts["parts"]]
        self.terms = self.columns.strings("terms")
        self.document_ids = self.columns.strings("document_ids")
        self._text = Store("text", self.columns)
        self._records = Store("records", self.columns)
        self._check_offsets()
        self.term_number = lru_cache(maxsize=1 << 16)(self._find_term)

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    def _find_term(self, name: str) -> int:
        """The number of a term (`language:term`), or -1."""
        return self.terms.find(name.encode("utf-8", "surrogatepass"))

    def postings(self, term: int) -> tuple[Array, Array]:
        """Documents that hold a term, in order, and how often."""
        first, end = self._slice("term.first_posting", term)
        return self["posting.document"][first:end], self["posting.frequency"][first:end]

    def part_postings(self, term: int, part: str) -> tuple[Array, Array]:
        """Documents that hold a term in one part, in order, and how often there."""
        documents, frequencies = self.postings(term)
        if part not in self.parts:
            return documents[:0], frequencies[:0]
        if len(self.parts) == 1:
            return documents, frequencies
        first, end = self._slice("term.first_posting", term)
        first_part = self["posting.first_part"][first : end + 1].astype(np.int64)
        chosen = self["part_posting.part"][first_part[0] : first_part[-1]] == self.parts.index(part)
        document_of_part_posting = np.repeat(documents, np.diff(first_part))
        return document_of_part_posting[chosen], self["part_posting.frequency"][first_part[0] : first_part[-1]][chosen]

    def document_number(self, id: str) -> int:
        """The local number of a document, or -1."""
        wanted = id.encode("utf-8", "surrogatepass")
        order = self["document_id_order"]
        low, high = 0, order.size
        while low < high:
            middle = (low + high) // 2
            if self.document_ids[int(order[middle])] < wanted:
                low = middle + 1
            else:
                high = middle
        return int(order[low]) if low < order.size and self.document_ids[int(order[low])] == wanted else -1

    def document_id(self, document: int) -> str:
        """The id of a document."""
        return self.document_ids[document].decode("utf-8", "surrogatepass")

    def text(self, document: int) -> str:
        """The whole text of a document."""
        return self._text[document].decode("utf-8", "surrogatepass")

    def record(self, document: int) -> dict[str, Any]:
        """Metadata, cited documents and internal references of a document."""
        data = self._records[document]
        record: dict[str, Any] = json.loads(data) if data else {}
        return record

    def passages_of(self, document: int) -> range:
        """The passages of a document, by their number in the segment."""
        return range(*self._slice("document.first_passage", document))

    def sections_of(self, document: int) -> range:
        """The sections of a document, by their number in the segment."""
        return range(*self._slice("document.first_section", document))

    def span_id(self, span: int) -> str | None:
        """The id that the source gave to a span (numbered in the segment), or None."""
        at = int(np.searchsorted(self["id_span"], span))
        if at < self["id_span"].size and self["id_span"][at] == span:
            return self.columns.strings("ids")[at].decode("utf-8", "surrogatepass")
        return None

    def passage_id(self, document: int, passage: int) -> str:
        """The id of a passage (numbered in the segment): its own, or its running number in the document."""
        own = self.span_id(int(self["passage.span"][passage]))
        return own if own is not None else running_number(passage - self.passages_of(document).start)

    def characters(self, span: int) -> slice:
        """Where a span (numbered in the segment) stands in its document's text."""
        return slice(int(self["span.start"][span]), int(self["span.end"][span]))

    def label(self, property: str, span: int) -> str:
        """The `tag`, `part` or `language` of a span (numbered in the segment)."""
        return self.labels[int(self[f"span.{property}"][span])]

    def _slice(self, column: str, number: int) -> tuple[int, int]:
        offsets = self[column]
        return int(offsets[number]), int(offsets[number + 1])

    def _check_offsets(self) -> None:
        """Kernels trust offsets, so they are checked before one can see them."""
        ranges = (
            ("document.first_token", "tokens", self.documents),
            ("document.first_span", "span.kind", self.documents),
            ("document.first_section", "section.parent", self.documents),
            ("document.first_passage", "passage.section", self.documents),
            ("term.first_posting", "posting.document", len(self.terms)),
        )
        for offsets_name, target, count in ranges:
            offsets = self[offsets_name]
            rising = offsets.size == 0 or bool(np.all(offsets[:-1] <= offsets[1:]))
            if offsets.size != count + 1 or offsets[0] != 0 or offsets[-1] != self[target].size or not rising:
                raise IndexFormatError(f"{self.columns.path} has damaged offsets ({offsets_name}): build the index again")
