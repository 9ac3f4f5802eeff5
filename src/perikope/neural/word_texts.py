"""Texts made of random words, with topics: they cover words that a collection does not have.

They guard a training (`guard`) beside the self-made topics of the collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perikope.core.arrays import Floats32, Integers
from perikope.neural.collection import Collection
from perikope.neural.encoder import Encoder
from perikope.neural.graph import DocumentGraph, with_inverses, with_opening
from perikope.neural.self_made import divided_topics
from perikope.neural.triples import Texts

_WORD_DOCUMENTS, _PASSAGES_PER_DOCUMENT = 800, 4
"""Number of documents made of words, and of passages in each."""
_AROUND, _NEAR, _NEARER = 200, 80, 40
"""Numbers of words nearest to the subject of a document: the pool of its passages, and the words that all of them use.
The last number is that of the words of the pool that are nearest to the subject of a passage."""


def of_words(encoder: Encoder, seed: int) -> Collection | None:
    """Documents made of random words of the encoder's vocabulary, with topics; None if the vocabulary has few words.

    Each document has a subject, which is a word, and each passage a word near it. Half of the words of a passage are
    near one of the two by the encoder's input vectors. Queries mix words of the passage, words near its subject, and
    frequent words.
    """
    vocabulary = _vocabulary(encoder)
    if len(vocabulary.words) < _NEARER:
        return None
    generator = np.random.default_rng([seed, 19])
    subjects = generator.integers(len(vocabulary.words), size=_WORD_DOCUMENTS)
    documents = [_document_of_words(vocabulary, pool, generator) for pool in vocabulary.around(subjects)]
    titles, passages, queries = zip(*documents, strict=True)
    names = [f"words-{number}" for number in range(len(documents))]
    texts = Texts(
        tuple(names),
        np.arange(len(documents) + 1) * _PASSAGES_PER_DOCUMENT,
        tuple(f"{name}#{number}" for name in names for number in range(_PASSAGES_PER_DOCUMENT)),
        tuple(passage for of_document in passages for passage in of_document),
        tuple((title,) for title in titles for _ in range(_PASSAGES_PER_DOCUMENT)),
        (frozenset(),) * len(documents),
    )
    graphs = tuple(_plain_graph(name, title, of_document) for name, title, of_document in zip(names, titles, passages, strict=True))
    all_queries = [query for of_document in queries for query in of_document]
    return Collection(texts, graphs, divided_topics(texts, all_queries, np.arange(len(all_queries))))


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The words of a tokenizer that are one token, in the order of their ids: roughly the most frequent ones first."""

    words: list[str]
    vectors: Floats32
    """(words, width) The input vectors of the encoder minus their mean, with length 1."""
    frequency: Any
    """(words,) Assumed probability of each word, falling with its rank; sums to 1."""

    def near(self, word: int, among: Integers, count: int) -> Integers:
        """The `count` words (count,) of `among` (words,) that are nearest to a word by their vectors, nearest first."""
        order: Integers = among[np.argsort(-(self.vectors[among] @ self.vectors[word]), kind="stable")[:count]]
        return order

    def around(self, subjects: Integers) -> list[Integers]:
        """For each of `subjects` (subjects,), the words (at most `_AROUND`,) that are nearest to it, nearest first."""
        count = min(_AROUND, len(self.words))
        found = []
        for start in range(0, subjects.size, 64):
            distances = -(self.vectors[subjects[start : start + 64]] @ self.vectors.T)
            nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
            found += [words[np.argsort(row[words], kind="stable")] for words, row in zip(nearest, distances, strict=True)]
        return found


def _vocabulary(encoder: Encoder) -> _Vocabulary:
    """The words of an encoder's tokenizer. Marks that some tokenizers put before a word (`▁`, `Ġ`) are left out."""
    words = {number: token.lstrip("▁Ġ") for token, number in encoder.tokenizer.get_vocab().items()}
    ids = sorted(number for number, word in words.items() if word.isalpha() and len(word) > 2)
    weights = encoder.transformer.get_input_embeddings().weight.detach().float().cpu().numpy()  # type: ignore[operator, union-attr]
    vectors = weights[ids] - weights[ids].mean(axis=0) if ids else weights[:0]
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    frequency = 1.0 / (np.arange(len(ids)) + 20.0)
    return _Vocabulary([words[number] for number in ids], vectors.astype(np.float32), frequency / max(frequency.sum(), 1e-9))


def _document_of_words(vocabulary: _Vocabulary, pool: Integers, generator: np.random.Generator) -> tuple[str, list[str], list[str]]:
    """Title, passages and queries of one document; the query at a position asks for the passage there.

    `pool` (words,) has the words that are nearest to the subject of the document, nearest first.
    """
    count, words, near = len(vocabulary.words), vocabulary.words, pool[:_NEAR]
    passages, queries = [], []
    for _ in range(_PASSAGES_PER_DOCUMENT):
        nearer = vocabulary.near(int(near[generator.integers(min(20, near.size))]), pool, _NEARER)
        size = int(generator.integers(15, 50))
        frequent = generator.choice(count, size, p=vocabulary.frequency)
        sources = np.stack([generator.choice(nearer, size), generator.choice(near, size), generator.integers(count, size=size), frequent])
        passage = sources[generator.choice(4, size, p=[0.25, 0.225, 0.2625, 0.2625]), np.arange(size)]
        query = np.concatenate(
            [generator.choice(passage, generator.integers(1, 4)), generator.choice(nearer, generator.integers(2, 6)), frequent[:2]]
        )
        passages.append(" ".join(words[word] for word in passage.tolist()))
        queries.append(" ".join(words[word] for word in generator.permutation(query).tolist()))
    return " ".join(words[word] for word in near[:3].tolist()), passages, queries


def _plain_graph(document: str, title: str, passages: Sequence[str]) -> DocumentGraph:
    """The graph of a document whose passages are all directly inside it."""
    nodes = np.arange(1, len(passages) + 1)
    edges = with_inverses({"order": np.stack([nodes[:-1], nodes[1:]]), "structural": np.stack([np.zeros_like(nodes), nodes])})
    is_passage = np.arange(len(passages) + 1) > 0
    parent = np.where(is_passage, 0, -1).astype(np.int64)
    return DocumentGraph((document,), ("",) * is_passage.size, (title, *passages), is_passage, parent, with_opening(edges, nodes))
