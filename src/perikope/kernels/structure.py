"""Find the section of each span, and the title of each section."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Integers, Integers32
from perikope.kernels.jit import kernel

SECTION, PASSAGE, TITLE = 0, 1, 2
"""Kinds of spans, as in `perikope.document.tree.Kind`."""


@kernel
def derive_structure(
    kind: Bytes, parent: Integers32, first_span: Integers
) -> tuple[Integers32, Integers32, Integers, Integers, Integers, Integers]:
    """Find the sections, passages and titles of documents among their spans.

    `kind` and `parent` have one value per span; parents are counted from the first span of their document. `first_span`
    has the first span of each document, and at the end the number of spans. Returns six arrays:

    - the nearest section of each span, counted in its document; a section is its own nearest section
    - the parent of each section, counted in its document, or -1
    - the span of each section
    - the span of each section's title, or -1 if it has none
    - the span of each passage
    - two values per document: the number of sections, and of passages, up to the end of this document
    """
    spans = kind.size
    section_of_span = np.empty(spans, np.int32)
    section_count = 0
    passage_count = 0
    for i in range(spans):
        section_count += kind[i] == SECTION
        passage_count += kind[i] == PASSAGE
    parent_of_section = np.empty(section_count, np.int32)
    span_of_section = np.empty(section_count, np.int64)
    title_of_section = np.empty(section_count, np.int64)
    title_of_section[:] = -1
    span_of_passage = np.empty(passage_count, np.int64)
    ends = np.empty(2 * (first_span.size - 1), np.int64)
    section = 0
    passage = 0
    for document in range(first_span.size - 1):
        base = first_span[document]
        first_section = section
        for i in range(base, first_span[document + 1]):
            above = section_of_span[base + parent[i]] if parent[i] >= 0 else -1
            if kind[i] == SECTION:
                section_of_span[i] = section - first_section
                parent_of_section[section] = above
                span_of_section[section] = i
                section += 1
                continue
            section_of_span[i] = above
            if kind[i] == PASSAGE:
                span_of_passage[passage] = i
                passage += 1
            elif kind[i] == TITLE and kind[base + parent[i]] == SECTION and title_of_section[first_section + above] < 0:
                title_of_section[first_section + above] = i
        ends[2 * document] = section
        ends[2 * document + 1] = passage
    return section_of_span, parent_of_section, span_of_section, title_of_section, span_of_passage, ends
