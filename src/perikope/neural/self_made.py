"""Self-made topics for training: a query is a sentence of a passage, and the passage without it is the answer.

`evaluation.selfmade` draws the sentences (`sentences`). It masks the words of a query in the matches of lexical models.
Encoders read texts, so here the sentence is cut out of its passage (Lee et al. 2019, Latent retrieval for weakly
supervised open domain question answering). Such topics show what a ranker knows about texts in general, apart from the
topics that it is trained on. `guard` uses them to keep that knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perikope.core.arrays import Integers
from perikope.neural.collection import Collection
from perikope.neural.graph import DocumentGraph
from perikope.neural.triples import Texts, Topics

LEARNED, MEASURED = "learned", "measured"
"""Names of the two sets of topics of a guarding collection: to train with, and to measure on. If there are several
documents, no document has topics of both sets."""
MEASURED_PASSAGES, MEASURED_TOPICS = 1_500, 200
"""Maximum number of passages and of topics in `MEASURED`."""


def self_made(collection: Collection) -> Collection:
    """The documents that the sentences of a collection were drawn from, with the self-made topics of these sentences.

    Passages lack the sentence that became a query. Graphs are kept if the collection has them.
    """
    texts, sentences = collection.texts, collection.sentences
    passages = np.flatnonzero(np.isin(texts.document_of_passage, sentences.documents))
    remaining = {number: texts.passages[number] for number in passages.tolist()}
    queries = []
    for number, start, end in zip(sentences.passage.tolist(), sentences.start.tolist(), sentences.end.tolist(), strict=True):
        text = texts.passages[number]
        queries.append(" ".join(text[start:end].split()))
        remaining[number] = f"{text[:start].rstrip()} {text[end:].lstrip()}".strip()
    cut = tuple(remaining.values())
    made = Texts(
        tuple(texts.documents[document] for document in sentences.documents.tolist()),
        np.concatenate([[0], np.cumsum(np.diff(texts.first_passage)[sentences.documents])]).astype(np.int64),
        tuple(texts.names[number] for number in passages.tolist()),
        cut,
        tuple(texts.paths[number] for number in passages.tolist()),
        (frozenset(),) * sentences.documents.size,
    )
    graphs = [collection.graphs[document] for document in sentences.documents.tolist()] if collection.graphs else []
    graphs = [_with_passages(graph, cut[made.first_passage[i] : made.first_passage[i + 1]]) for i, graph in enumerate(graphs)]
    return Collection(made, tuple(graphs), divided_topics(made, queries, np.searchsorted(passages, sentences.passage)))


def _with_passages(graph: DocumentGraph, passages: Sequence[str]) -> DocumentGraph:
    """A graph with other texts of its passages, given in reading order."""
    texts = list(graph.texts)
    for node, passage in zip(graph.passage_node.tolist(), passages, strict=True):
        texts[node] = passage
    return replace(graph, texts=tuple(texts))


def divided_topics(texts: Texts, queries: Sequence[str], rows: Integers) -> dict[str, Topics]:
    """Topics with one relevant passage each, `rows` (topics,), as the sets `LEARNED` and `MEASURED`.

    The first documents have the topics of `MEASURED`. If there is one document only, both sets have all topics.
    """
    few = (texts.first_passage[1:] <= MEASURED_PASSAGES) & (np.arange(len(texts.documents)) < -(-len(texts.documents) // 5))
    few[:1] = True
    is_measured = few[texts.document_of_passage[rows]]
    measured, learned = np.flatnonzero(is_measured), np.flatnonzero(~is_measured)
    everything = Topics(
        tuple(f"{number}" for number in range(len(queries))),
        tuple(queries),
        tuple(rows[[number]] for number in range(len(queries))),
        tuple({texts.names[row]: 1} for row in rows.tolist()),
        (frozenset(),) * len(queries),
    )
    if not measured.size or not learned.size:
        measured = learned = np.arange(len(queries))
    return {LEARNED: everything.some(learned.tolist()), MEASURED: everything.some(measured[:MEASURED_TOPICS].tolist())}
