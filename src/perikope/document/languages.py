"""Documents with the text of some languages only.

Patents repeat titles, abstracts and claims in several languages. An index of one language leaves the others out. Its
lengths and statistics then count the text of that language only (Gobeill and Ruch 2012).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from perikope.core.arrays import Integers
from perikope.document.tree import Document, Kind, Spans

NAMES = "bibliography"
"""The part with names of people and companies. Names belong to no language, so they are always kept."""

_TEXTS = (Kind.PASSAGE, Kind.TITLE)


def keep_languages(document: Document, languages: Collection[str]) -> Document | None:
    """The document without passages and titles in other languages; None if nothing is left.

    Sections and elements without any text are left out too. Names are kept; see `NAMES`.
    """
    spans, labels = document.spans, document.labels
    dropped = [
        span
        for span, kind in enumerate(spans.kind)
        if kind in _TEXTS and labels[spans.language[span]] not in languages and labels[spans.part[span]] != NAMES
    ]
    if not dropped:
        return document
    is_kept = np.ones(len(document.text) + 1, bool)
    for span in dropped:
        # The line feed after a block is removed with it.
        is_kept[spans.start[span] : spans.end[span] + 1] = False
    text = "".join(character for character, kept in zip(document.text, is_kept, strict=False) if kept).removesuffix("\n")
    if not any(map(str.isalnum, text)):
        return None
    place = np.minimum(np.cumsum(is_kept) - is_kept, len(text))
    return _without(document, set(dropped), text, place)


def _without(document: Document, dropped: set[int], text: str, place: Integers) -> Document:
    """The document with another text and without some spans. `place` is the new place of each character."""
    old, new = document.spans, Spans()
    number = [-1] * len(old)
    for span in range(len(old)):
        start, end = int(place[old.start[span]]), int(place[old.end[span]])
        while end > start and text[end - 1] == "\n":
            end -= 1
        was_empty = old.start[span] == old.end[span]
        parent = old.parent[span]
        if span in dropped or (parent >= 0 and (number[parent] < 0 or (start == end and not was_empty))):
            continue
        around = number[parent] if parent >= 0 else -1
        number[span] = new.append(old.kind[span], old.tag[span], around, start, end, old.part[span], old.language[span])
    ids = {number[span]: id for span, id in document.span_ids.items() if number[span] >= 0}
    known = set(ids.values())
    return replace(
        document,
        text=text,
        spans=new,
        span_ids=ids,
        references=tuple((number[span], target) for span, target in document.references if number[span] >= 0 and target in known),
        places={number[span]: place for span, place in document.places.items() if number[span] >= 0},
        citations={number[span]: citation for span, citation in document.citations.items() if number[span] >= 0},
    )
