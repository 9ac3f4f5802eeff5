"""Bold lines that look like headings and are none: terms that are defined below them, and labels in tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from perikope.formats._extraction.pdf_blocks import PageBlock
from perikope.formats._extraction.pdf_text import Font

USUAL = 0.03
"""The share of lines that begin at a left edge that text usually begins at."""
LEAST_PROSE = 40
"""Characters of the shortest text that a heading without number is above, in a document whose headings have numbers."""
_NUMBERED = re.compile(r"(?:§ ?)?(?:\d{1,3}|[A-Z])(?:\.\d{1,3})*[.:]?\s")


def terms_of(drafts: Sequence[PageBlock], candidates: set[int], body: Font) -> set[int]:
    """Terms: the text below is indented, and other text begins where the term begins.

    A heading that hangs to the left of all text, as in manual pages, is no term.
    """
    lefts: Counter[int] = Counter()
    for number, draft in enumerate(drafts):
        if number not in candidates and draft.block.kind == "p" and draft.block.box and not draft.font.bold:
            lefts[round(draft.block.box[0])] += draft.lines
    usual = {left for left, count in lefts.items() if count >= USUAL * lefts.total()}
    found = {
        number
        for number in candidates
        if number + 1 < len(drafts) and _is_small(drafts[number], body) and _is_defined(drafts[number], drafts[number + 1], usual)
    }
    # One heading may be above an indented paragraph. A list has several terms, and some are the last line of a page.
    edges = Counter(_edge(drafts[number]) for number in found)
    return {
        number
        for number in candidates
        if _is_small(drafts[number], body)
        and edges[_edge(drafts[number])] >= max(3, 0.5 * sum(_is_beside(drafts[other], drafts[number], body) for other in candidates))
    }


def labels_of(drafts: Sequence[PageBlock], candidates: set[int], body: Font) -> set[int]:
    """Labels: in a document whose larger headings have numbers, bold lines without number that are not above prose."""
    large = [number for number in candidates if not _is_small(drafts[number], body)]
    numbered = sum(bool(_NUMBERED.match(drafts[number].block.text)) for number in large)
    if numbered < 3 or numbered < 0.7 * len(large):
        return set()
    return {
        number
        for number in candidates
        if _is_small(drafts[number], body)
        and not _NUMBERED.match(drafts[number].block.text)
        and not (number + 1 < len(drafts) and _is_prose(drafts[number + 1]))
    }


def _is_small(draft: PageBlock, body: Font) -> bool:
    return draft.font.size <= 1.08 * body.size


def _edge(draft: PageBlock) -> int:
    return round(draft.block.box[0] / 2) if draft.block.box else -1


def _is_beside(draft: PageBlock, other: PageBlock, body: Font) -> bool:
    return _is_small(draft, body) and _edge(draft) == _edge(other)


def _is_defined(term: PageBlock, text: PageBlock, usual: set[int]) -> bool:
    if text.block.kind != "p" or not term.block.box or not text.block.box or text.block.page != term.block.page:
        return False
    left, indent = term.block.box[0], text.block.box[0] - term.block.box[0]
    is_usual = any(round(left) + shift in usual for shift in (-1, 0, 1))
    least = (1.2 if text.lines > 1 else 2.5) * term.font.size
    return is_usual and least < indent < 10 * term.font.size


def _is_prose(draft: PageBlock) -> bool:
    return draft.block.kind in ("p", "li") and len(draft.block.text) >= LEAST_PROSE
