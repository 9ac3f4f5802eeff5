"""Topics from references inside a document."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from perikope.document.tree import Kind
from perikope.evaluation.selfmade import Draft, TopicSource, kind

LEAST_WORDS, MOST_WORDS = 5, 60
"""Distinct content words of a passage that is a query."""
MOST_ANSWERS = 10
"""A target with more passages is about several things."""


@kind
def reference(source: TopicSource, chance: Random) -> Iterator[Draft]:
    """A passage that refers to a section, table or claim of its document; the passages of the target answer it."""
    document = source.document
    span_of_id = {id: span for span, id in document.span_ids.items()}
    targets: dict[int, list[int]] = {}
    for origin, id in document.references:
        if id in span_of_id:
            targets.setdefault(origin, []).append(span_of_id[id])
    for origin, spans in chance.sample(list(targets.items()), len(targets)):
        passages = source.passages_in(origin) if document.spans.kind[origin] != Kind.SECTION else ()
        if len(passages) != 1:
            continue
        answers = tuple(sorted({passage for span in spans for passage in source.passages_in(span)} - {*passages}))
        text = document.text_of(passages[0])
        if 1 <= len(answers) <= MOST_ANSWERS and LEAST_WORDS <= len(source.content_words(text, passages[0])) <= MOST_WORDS:
            yield Draft(text, document.spans.start[passages[0]], document.spans.end[passages[0]], answers)
