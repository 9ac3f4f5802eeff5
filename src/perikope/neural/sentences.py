"""The sentences of a collection that self-made topics for training are taken from.

They are drawn from an index by `evaluation.selfmade`, which knows the language and the stop words of each passage, and
kept with the texts. So a machine that trains rankers needs no index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perikope.core.arrays import Integers
from perikope.evaluation.selfmade.topics import draw_drafts
from perikope.index.reader import Snapshot
from perikope.neural.triples import Texts

PASSAGES, TOPICS = 8_000, 2_000
"""Maximum number of passages of the documents that sentences are drawn from, and of sentences."""
_SEED = 1


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences of random documents, at most one per passage."""

    documents: Integers
    """(documents,) Numbers of the documents that sentences were drawn from, increasing. Some may have no sentence."""
    passage: Integers
    """(sentences,) Number of the passage that each sentence is in."""
    start: Integers
    """(sentences,) First character of each sentence, counted in its passage."""
    end: Integers
    """(sentences,) One more than the last character of each sentence."""

    @classmethod
    def of(cls, documents: object, passage: object, start: object, end: object) -> Sentences:
        """Sentences from four sequences of integers."""
        return cls(*(np.asarray(column, np.int64).reshape(-1) for column in (documents, passage, start, end)))


def read_sentences(snapshot: Snapshot, texts: Texts) -> Sentences:
    """Draw sentences from random documents of an index, whose texts are `texts`.

    There are at most `PASSAGES` passages and `TOPICS` sentences. Documents are taken whole, so one large document may
    have more passages. The same index gives the same sentences.
    """
    drawn = np.random.default_rng(_SEED).permutation(len(texts.documents))
    sizes = np.diff(texts.first_passage)[drawn]
    documents = np.sort(drawn[(np.cumsum(sizes) <= PASSAGES) | (np.arange(drawn.size) == 0)])
    numbers = [snapshot.find_document(texts.documents[document]) for document in documents.tolist()]
    rows = []
    for one in draw_drafts(snapshot, numbers, ("sentence",), count=TOPICS, seed=_SEED)["sentence"]:
        first = one.source.document.spans.start[one.draft.answers[0]]
        rows.append((texts.number[one.answers[0]], one.draft.start - first, one.draft.end - first))
    return Sentences.of(documents, *zip(*rows, strict=True)) if rows else Sentences.of(documents, (), (), ())
