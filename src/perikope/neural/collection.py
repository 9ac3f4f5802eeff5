"""A collection as neural rankers learn and are measured on it: texts, graphs and sets of topics, in one file.

It is read from an index once; a machine that has torch and no index can go on from the file.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.errors import InputError
from perikope.core.files import replacing_binary
from perikope.index.reader import Snapshot
from perikope.neural.graph import FORWARD, DocumentGraph, read_graph, with_inverses, with_opening
from perikope.neural.triples import Texts, Topics, read_texts


@dataclass(frozen=True)
class Collection:
    """Texts, the graph of each document, and topics by the name of their set."""

    texts: Texts
    graphs: tuple[DocumentGraph, ...]
    topics: Mapping[str, Topics]

    @classmethod
    def read(cls, snapshot: Snapshot, topics: Mapping[str, Topics] | None = None, texts: Texts | None = None) -> Collection:
        """All documents of an index."""
        own = texts or read_texts(snapshot)
        graphs = tuple(read_graph(snapshot, snapshot.find_document(document)) for document in own.documents)
        return cls(own, graphs, dict(topics or {}))

    def save(self, path: Path) -> None:
        """Write it as one file of compressed JSON."""
        texts = self.texts
        content = {
            "perikope": "collection",
            "documents": texts.documents,
            "first_passage": texts.first_passage.tolist(),
            "names": texts.names,
            "passages": texts.passages,
            "paths": texts.paths,
            "shared": [sorted(own) for own in texts.shared],
            "graphs": [_plain_graph(graph) for graph in self.graphs],
            "topics": {name: _plain_topics(topics) for name, topics in self.topics.items()},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing_binary(path) as file:
            file.write(lzma.compress(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")))

    @classmethod
    def load(cls, path: Path) -> Collection:
        """Read what `save` wrote."""
        try:
            content = json.loads(lzma.decompress(path.read_bytes()))
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
            return cls(texts, graphs, {name: _topics(plain) for name, plain in content["topics"].items()})
        except (OSError, EOFError, lzma.LZMAError, ValueError, TypeError, KeyError, IndexError):
            raise InputError("holds no collection, or is damaged", path=path) from None


def join_graphs(collections: Sequence[Collection]) -> list[DocumentGraph]:
    """The graphs of several collections, as `join_texts` puts their documents."""
    return [graph for collection in collections for graph in collection.graphs]


def _plain_graph(graph: DocumentGraph) -> list[Any]:
    """Without what the texts have already."""
    titles = ["" if own else text for text, own in zip(graph.texts, graph.is_passage.tolist(), strict=True)]
    edges = {name: graph.edges[name].tolist() for name in FORWARD if graph.edges[name].size}
    return [list(graph.names), titles, graph.is_passage.astype(int).tolist(), graph.parent.tolist(), edges]


def _graph(plain: Sequence[Any], document: str, passages: Sequence[str]) -> DocumentGraph:
    names, titles, is_passage, parent, edges = plain
    own = iter(passages)
    texts = tuple(next(own) if passage else title for title, passage in zip(titles, is_passage, strict=True))
    pairs = {name: np.array(found, np.int64).reshape(2, -1) for name, found in edges.items()}
    passages_there = np.array(is_passage, bool)
    all_edges = with_opening(with_inverses(pairs), np.flatnonzero(passages_there))
    return DocumentGraph((document,), tuple(names), texts, passages_there, np.array(parent, np.int64), all_edges)


def _plain_topics(topics: Topics) -> dict[str, Any]:
    return {
        "qids": topics.qids,
        "queries": topics.queries,
        "relevant": [own.tolist() for own in topics.relevant],
        "judged": [dict(own) for own in topics.judged],
        "codes": [sorted(own) for own in topics.codes],
        "ranked": [own.tolist() for own in topics.ranked],
    }


def _topics(plain: Mapping[str, Any]) -> Topics:
    return Topics(
        tuple(plain["qids"]),
        tuple(plain["queries"]),
        tuple(np.array(own, np.int64) for own in plain["relevant"]),
        tuple(plain["judged"]),
        tuple(map(frozenset, plain["codes"])),
        tuple(np.array(own, np.int64) for own in plain["ranked"]),
    )
