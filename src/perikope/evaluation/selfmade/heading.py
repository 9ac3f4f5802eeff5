"""Topics from headings."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from perikope.document.tree import Kind
from perikope.evaluation.selfmade import Draft, TopicSource, kind

LEAST_WORDS = 2
"""Content words that a heading needs: one word alone, such as "Introduction", says too little."""
MOST_ANSWERS = 10
"""A section with more passages is about several things, and few of its passages answer its heading."""


@kind
def heading(source: TopicSource, chance: Random) -> Iterator[Draft]:
    """The heading of a section; the passages directly in the section answer it."""
    spans = source.document.spans
    titles = list(source.document.of_kind(Kind.TITLE))
    for title in chance.sample(titles, len(titles)):
        answers = source.passages_of_section.get(spans.parent[title], [])
        text = source.document.text_of(title)
        is_title_of_document = spans.parent[title] == 0
        if is_title_of_document or not 1 <= len(answers) <= MOST_ANSWERS or len(source.content_words(text, title)) < LEAST_WORDS:
            continue
        yield Draft(text, spans.start[title], spans.end[title], tuple(answers))
