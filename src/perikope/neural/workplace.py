"""Data that the jobs of a prepared experiment share: collections, tokens, runs, scores of the untrained encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Floats32, Mask
from perikope.core.names import encode
from perikope.evaluation.experiment.plan import Plan
from perikope.evaluation.experiment.prepared import COLLECTIONS, PreparedExperiment
from perikope.evaluation.experiment.state import digest
from perikope.evaluation.io.runs import Run, read_run
from perikope.neural.collection import Collection
from perikope.neural.encoder import Encoder
from perikope.neural.triples import Topics
from perikope.search.options import SearchOptions

TOKENS = "tokens.npz"
PASSAGES, QUERIES = "passages", "queries"


def set_key(topics: str, options: Mapping[str, Any]) -> str:
    """The name of a set of topics whose queries are made with search options: `collection/set` if there are none."""
    return f"{topics}~{digest(SearchOptions.of(options).plain())[:8]}" if options else topics


def fetched_file(folder: Path, topics: str) -> Path:
    """The path of the run with the documents whose passages are ranked for a set of topics, given by its `set_key`."""
    return folder / COLLECTIONS / f"{topics.replace('/', '-')}.fetched.gz"


@dataclass
class Workplace:
    """The data of a prepared experiment, for its jobs. Each part is read when it is first needed."""

    plan: Plan
    folder: Path
    encoder: str = ""
    """The folder of the encoder on a machine that does not know it by its name; empty for the name in the plan."""
    tokens: Path | None = None
    """The file that `save_tokens` wrote; None to tokenize texts in this process."""
    untrained_scores: dict[tuple[str, int, bool], Floats32] = field(default_factory=dict)
    """Scores of the untrained encoder, (topics, passages), by `set_key`, dimension and use of heading paths."""

    @classmethod
    def open(cls, folder: Path, encoder: str = "", tokens: Path | None = None) -> Workplace:
        """The workplace of a prepared folder."""
        return cls(PreparedExperiment.load(folder).plan, folder, encoder, tokens)

    @cached_property
    def collections(self) -> dict[str, Collection]:
        """The collections by name."""
        return {name: Collection.load(self.folder / COLLECTIONS / name) for name in self.plan.collections}

    @cached_property
    def runs(self) -> dict[tuple[str, str], Run]:
        """The runs of other systems, by system and set of topics."""
        return {(system.name, name): read_run(path) for system in self.plan.systems for name, path in system.runs.items()}

    @cached_property
    def fetched(self) -> dict[str, Mask]:
        """Masks (topics, passages) by `set_key`: true for passages that may be results.

        A set of topics has no mask if all passages may be results.
        """
        masks = {}
        keys = {
            set_key(topics.name, system.options): (topics.name, system.options) for topics in self.plan.sets for system in self.plan.rankers
        }
        for name, (set_name, options) in keys.items():
            if not fetched_file(self.folder, name).is_file():
                continue
            run = read_run(fetched_file(self.folder, name))
            collection, topics = self.set_of(set_name, options)
            number = {encode(document): i for i, document in enumerate(collection.texts.documents)}
            is_fetched = np.zeros((len(topics), len(collection.texts.documents)), bool)
            for row, qid in enumerate(topics.qids):
                is_fetched[row, [number[document] for document in run.get(qid, {}) if document in number]] = True
            masks[name] = is_fetched[:, collection.texts.document_of_passage]
        return masks

    @cached_property
    def encoders(self) -> dict[int, Encoder]:
        """The untrained encoder for each dimension that a ranker has. All of them share the tokens of all texts."""
        name = self.encoder or self.plan.shared.encoder
        dimensions = sorted({system.ranker.dimension for system in self.plan.rankers})
        encoders = {dimension: Encoder.load(name, dimension, device="cpu", precision="float32") for dimension in dimensions}
        first = encoders[dimensions[0]]
        saved = np.load(self.tokens) if self.tokens else None
        for kind, texts in self._texts().items():
            first.remember(texts, query=kind == QUERIES, cut=(saved[kind], saved[f"first {kind}"]) if saved else None)
        for encoder in encoders.values():
            encoder.share_remembered(first)
        return encoders

    def save_tokens(self, path: Path) -> None:
        """Tokenise all texts and write the tokens to a file, for the other processes of the experiment."""
        encoder = Encoder.load(self.encoder or self.plan.shared.encoder, device="cpu", precision="float32")
        arrays = {}
        for kind, texts in self._texts().items():
            arrays[kind], arrays[f"first {kind}"] = encoder.cut(texts, query=kind == QUERIES)
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def _texts(self) -> dict[str, list[str]]:
        """All passages with and without heading paths, all titles, and all queries; each text once."""
        passages: dict[str, None] = {}
        queries: dict[str, None] = {}
        for collection in self.collections.values():
            for heading_path in (False, True):
                passages |= dict.fromkeys(collection.texts.written(heading_path=heading_path))
            passages |= dict.fromkeys(text for graph in collection.graphs for text in graph.texts)
            queries |= dict.fromkeys(query for topics in collection.topics.values() for query in topics.queries)
        return {PASSAGES: [*passages], QUERIES: [*queries]}

    def set_of(self, name: str, options: Mapping[str, Any] | None = None) -> tuple[Collection, Topics]:
        """The collection and the topics for `name`, which has the form `collection/set`.

        `options` are the search options that the queries of the topics are made with.
        """
        collection, _, topics = set_key(name, options or {}).partition("/")
        return self.collections[collection], self.collections[collection].topics[topics]
