"""Number the sections and passages of candidate documents, and check them, in the columns of `Matches`.

The rows of each segment are read into their place in the columns of all segments. These kernels then number them there
in one pass. Kernels that read the columns later check no bounds, so every number is checked here.
"""

from __future__ import annotations

from typing import NamedTuple

from perikope.core.arrays import Integers, Mask
from perikope.kernels.gather import NumberColumn, number_at
from perikope.kernels.jit import kernel

SOUND, BAD_TREE, BAD_RANGE, BAD_SPAN, BAD_PART = range(5)
"""Results of the kernels: all rows are sound, or what is wrong with a row."""


class SectionRows(NamedTuple):
    """Columns of the sections of one segment."""

    document: Integers
    """Set by `number_sections`."""
    parent: Integers
    """Before, the number of the parent in its document, or -1; afterwards, its number in all rows."""
    title_first: Integers
    title_end: Integers
    title_length: Integers


class PassageRows(NamedTuple):
    """Columns of the passages or elements of one segment."""

    document: Integers
    """Set by `number_passages`."""
    section: Integers
    """Before, the number of the section in its document; afterwards, its number in all rows."""
    first_token: Integers
    end_token: Integers
    length: Integers
    span: Integers
    part: Integers
    """Set by `number_passages`: the label of the part."""


class JoinedDocuments(NamedTuple):
    """The candidates of one segment."""

    passages: Integers
    """Number of passages or elements of each document."""
    sections: Integers
    spans: Integers
    first_span: Integers
    """First span of each document in the segment."""
    tokens: Integers
    """Number of tokens of each document."""
    base: int
    """Number of candidates in the segments before this one."""
    base_of_sections: int
    """Number of sections in the segments before this one."""


@kernel
def number_sections(documents: JoinedDocuments, rows: SectionRows) -> int:
    """Set the document of each section, and number its parent in all rows. Parents must come before their children."""
    state = SOUND
    row = 0
    for document in range(documents.sections.size):
        base = documents.base_of_sections + row
        tokens = documents.tokens[document]
        for number in range(documents.sections[document]):
            parent = rows.parent[row]
            if parent < -1 or parent >= number:
                state = BAD_TREE
            first, end = rows.title_first[row], rows.title_end[row]
            if first > end or end > tokens or rows.title_length[row] > end - first:
                state = BAD_RANGE
            rows.document[row] = documents.base + document
            rows.parent[row] = parent + base if parent >= 0 else -1
            row += 1
    return state


@kernel
def number_passages(documents: JoinedDocuments, rows: PassageRows, part_of_span: NumberColumn, seen: Mask) -> int:
    """Set the document and the label of the part of each passage, and number its section in all rows.

    `part_of_span` has the label of the part of each span of the segment. `seen` has one flag per label; those of the
    labels that occur are set. A passage must not end before it begins, nor after its document, and must not have more
    indexed tokens than tokens.
    """
    state = SOUND
    row = 0
    base_of_sections = documents.base_of_sections
    for document in range(documents.passages.size):
        tokens, sections, spans = documents.tokens[document], documents.sections[document], documents.spans[document]
        first_span = documents.first_span[document]
        for _ in range(documents.passages[document]):
            section, span = rows.section[row], rows.span[row]
            if section < 0 or section >= sections:
                state = BAD_TREE
            first, end = rows.first_token[row], rows.end_token[row]
            if first > end or end > tokens or rows.length[row] > end - first:
                state = BAD_RANGE
            rows.document[row] = documents.base + document
            rows.section[row] = section + base_of_sections
            if span < 0 or span >= spans:
                state = BAD_SPAN
            else:
                part = number_at(part_of_span, first_span + span)
                if part < 0 or part >= seen.size:
                    state = BAD_PART
                else:
                    seen[part] = True
                rows.part[row] = part
            row += 1
        base_of_sections += sections
    return state
