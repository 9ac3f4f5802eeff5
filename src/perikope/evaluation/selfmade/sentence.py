"""Topics from the sentences of passages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from perikope.evaluation.selfmade import Draft, TopicSource, kind
from perikope.text.sentences import sentence_spans

LEAST_WORDS, MOST_WORDS = 5, 40
"""Distinct content words of a sentence that is a query."""
LEAST_REST = 5
"""Distinct content words that the passage must have outside the sentence, so that it can be found without it."""
KEYWORDS = 5
"""Content words of a query of keywords."""


@kind
def sentence(source: TopicSource, chance: Random) -> Iterator[Draft]:
    """A sentence of a passage; the rest of the passage answers it.

    A passage of n sentences is drawn with a weight of √n: a long passage answers more queries than a short one, but not
    n times as many.
    """
    document = source.document
    sentences = {passage: spans for passage in source.passages if len(spans := sentence_spans(document.text_of(passage))) > 1}
    # Sorted by these random keys, passages are drawn by weight and without repetition (Efraimidis and Spirakis 2006).
    key_of_passage = {passage: chance.random() ** (1 / math.sqrt(len(spans))) for passage, spans in sentences.items()}
    for passage in sorted(sentences, key=lambda passage: -key_of_passage[passage]):
        start, end = chance.choice(sentences[passage])
        text, first = document.text_of(passage), document.spans.start[passage]
        rest = f"{text[:start]} {text[end:]}"
        if (
            LEAST_WORDS <= len(source.content_words(text[start:end], passage)) <= MOST_WORDS
            and len(source.content_words(rest, passage)) >= LEAST_REST
        ):
            yield Draft(text[start:end], first + start, first + end, (passage,))


@kind
def keywords(source: TopicSource, chance: Random) -> Iterator[Draft]:
    """Some content words of a sentence in random order; the rest of the passage answers them."""
    for draft in sentence(source, chance):
        content = source.content_words(draft.query, draft.answers[0])
        yield Draft(" ".join(chance.sample(content, KEYWORDS)), draft.start, draft.end, draft.answers)
