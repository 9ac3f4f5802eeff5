"""A collection for neural rankers: texts, graphs, sets of topics and sentences for self-made topics in one file.

The file is made once from an index. A machine that trains rankers needs only this file, not the index.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.checked_json import parse_object
from perikope.core.errors import InputError
from perikope.core.files import replacing_binary
from perikope.index.reader import Snapshot
from perikope.neural.graph import FORWARD, DocumentGraph, read_graph, with_inverses, with_opening
from perikope.neural.sentences import Sentences, read_sentences
from perikope.neural.triples import Texts, Topics, read_texts


@dataclass(frozen=True)
class Collection:
    """Texts, the graph of each document, and sets of topics by name."""

    texts: Texts
    graphs: tuple[DocumentGraph, ...]
    """One graph per document, or none at all."""
    topics: Mapping[str, Topics]
    sentences: Sentences = field(default_factory=lambda: Sentences.of((), (), (), ()))
    """Sentences for self-made topics."""

    @classmethod
    def read(
        cls,
        snapshot: Snapshot,
        topics: Mapping[str, Topics] | None = None,
        texts: Texts | None = None,
        *,
        with_graphs: bool = True,
    ) -> Collection:
        """Read the texts of an index, sentences for self-made topics, and the graphs of all documents if needed.

        `topics` are sets of topics by name. `texts` are the texts of the index if they were read before; None reads
        them.
        """
        texts = texts or read_texts(snapshot)
        documents = texts.documents if with_graphs else ()
        graphs = tuple(read_graph(snapshot, snapshot.find_document(document)) for document in documents)
        return cls(texts, graphs, dict(topics or {}), read_sentences(snapshot, texts))

    def save(self, path: Path) -> None:
        """Write the collection to one file, as LZMA-compressed JSON; missing folders are made."""
        texts = self.texts
        content = {
            "perikope": "collection",
            "documents": texts.documents,
            "first_passage": texts.first_passage.tolist(),
            "names": texts.names,
            "passages": texts.passages,
            "paths": texts.paths,
            "shared": [sorted(codes) for codes in texts.shared],
            "graphs": [_plain_graph(graph) for graph in self.graphs],
            "topics": {name: _plain_topics(topics) for name, topics in self.topics.items()},
            "sentences": {name: column.tolist() for name, column in asdict(self.sentences).items()},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing_binary(path) as file:
            file.write(lzma.compress(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")))

    @classmethod
    def load(cls, path: Path) -> Collection:
        """Read a collection from a file that `save` wrote."""
        try:
            content = parse_object(lzma.decompress(path.read_bytes()))
            texts = Texts(
                tuple(content["documents"]),
                np.array(content["first_passage"], np.int64),
                tuple(content["names"]),
                tuple(content["passages"]),
                tuple(map(tuple, content["paths"])),
                tuple(map(frozenset, content["shared"])),
            )
            graphs = tuple(
                _graph(plain, texts.documents[number], texts.passages[texts.first_passage[number] : texts.first_passage[number + 1]])
                for number, plain in enumerate(content["graphs"])
            )
            topics = {name: _topics(plain) for name, plain in content["topics"].items()}
            return cls(texts, graphs, topics, Sentences.of(**content["sentences"]))
        except (OSError, EOFError, lzma.LZMAError, ValueError, TypeError, KeyError, IndexError):
            raise InputError("is not a collection file, or is damaged; remove it and prepare the experiment again", path=path) from None


def join_graphs(collections: Sequence[Collection]) -> list[DocumentGraph]:
    """The graphs of the documents of several collections, in the order of documents in `join_texts`."""
    return [graph for collection in collections for graph in collection.graphs]


def _plain_graph(graph: DocumentGraph) -> list[Any]:
    """A graph as values for JSON: names, titles, passage flags, parents and edges.

    Texts of passages are left out, because the file has them under `passages`.
    """
    titles = ["" if is_passage else text for text, is_passage in zip(graph.texts, graph.is_passage.tolist(), strict=True)]
    edges = {name: graph.edges[name].tolist() for name in FORWARD if graph.edges[name].size}
    return [list(graph.names), titles, graph.is_passage.astype(int).tolist(), graph.parent.tolist(), edges]


def _graph(plain: Sequence[Any], document: str, passages: Sequence[str]) -> DocumentGraph:
    """The graph of a document from what `_plain_graph` returned and the texts of its passages, in order."""
    names, titles, is_passage, parent, edges = plain
    remaining = iter(passages)
    texts = tuple(next(remaining) if passage else title for title, passage in zip(titles, is_passage, strict=True))
    pairs = {name: np.array(nodes, np.int64).reshape(2, -1) for name, nodes in edges.items()}
    mask = np.array(is_passage, bool)
    all_edges = with_opening(with_inverses(pairs), np.flatnonzero(mask))
    return DocumentGraph((document,), tuple(names), texts, mask, np.array(parent, np.int64), all_edges)


def _plain_topics(topics: Topics) -> dict[str, Any]:
    """A set of topics as values for JSON."""
    return {
        "qids": topics.qids,
        "queries": topics.queries,
        "relevant": [passages.tolist() for passages in topics.relevant],
        "judged": [dict(judgements) for judgements in topics.judged],
        "codes": [sorted(codes) for codes in topics.codes],
        "ranked": [passages.tolist() for passages in topics.ranked],
    }


def _topics(plain: Mapping[str, Any]) -> Topics:
    """The set of topics from what `_plain_topics` returned."""
    return Topics(
        tuple(plain["qids"]),
        tuple(plain["queries"]),
        tuple(np.array(passages, np.int64) for passages in plain["relevant"]),
        tuple(plain["judged"]),
        tuple(map(frozenset, plain["codes"])),
        tuple(np.array(passages, np.int64) for passages in plain["ranked"]),
    )
