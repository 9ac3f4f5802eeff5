"""Examples: passages of topics with their features and grades."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perikope.browse.models import Model
from perikope.browse.models.features import FEATURES, FeatureNormalization, normalized_features
from perikope.browse.signals import Floats
from perikope.core.errors import InputError, UsageError
from perikope.core.parallel import in_parallel, usable_cores
from perikope.fetch.prior_art import PatentQuery
from perikope.query.topic import Topic
from perikope.search.batch import options_of, query_of
from perikope.search.facade import Index, Results

Integers = NDArray[np.int64]
Judgements = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which candidate passages of a topic are learned from: the judged ones, the best of a model, and some of the others.

    Drawn ones stand for all that were not taken, so that what is rare among the candidates stays rare in what is learned from.
    """

    depth: int = 200
    """So many of the best by the model."""
    others: int = 200
    """So many of the rest, drawn."""
    seed: int = 1

    def __post_init__(self) -> None:
        if self.depth < 0 or self.others < 0 or self.depth + self.others == 0:
            raise UsageError("depth and others must be at least 0, and not both 0")


@dataclass(frozen=True, slots=True)
class Group:
    """The examples of one topic, in the order of document ids and positions."""

    qid: str
    names: tuple[str, ...]
    features: Floats
    """A row an example, a column a feature of `FEATURES`."""
    grades: Integers
    """0 where nobody judged."""
    stands_for: Floats
    """How many candidate passages each example stands for."""


@dataclass(frozen=True, slots=True)
class Source:
    """Topics, judgements and the searches that examples come from."""

    index: Index
    topics: tuple[Topic, ...]
    judgements: Judgements
    model: Model
    """What finds the passages that are hard to tell apart."""
    normalize: FeatureNormalization = "zscore"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of `Index.search`: how documents are fetched."""
    threads: int | None = None
    patent_folder: str = ""
    """Where the files of topics that are patents are looked for too."""

    def query(self, topic: Topic) -> str | PatentQuery:
        """What is searched for: a text, or a patent."""
        return query_of(self.index, topic, self.options, patent_folder=self.patent_folder)

    def search(self, topic: Topic, k: int) -> Results:
        """The best `k` passages of a topic, with all candidates."""
        return self.index.search(self.query(topic), model=self.model, k=k, **options_of(topic, self.options))

    def groups(self, sampling: Sampling) -> Iterator[Group]:
        """The examples of each topic, in order."""

        def examples(topic: Topic) -> Group:
            results = self.search(topic, max(sampling.depth, 1))
            return group_of(topic.qid, results, self.judgements.get(topic.qid, {}), sampling, self.normalize)

        return (group for _, group in in_parallel(examples, self.topics, self.threads or usable_cores()))

    def facts(self) -> dict[str, Any]:
        """What must be the same for the same to be learned."""
        judged = "".join(
            f"{topic.qid} {name} {grade}\n" for topic in self.topics for name, grade in sorted(self.judgements.get(topic.qid, {}).items())
        )
        texts = "".join("\t".join([topic.qid, topic.query, topic.browse, *_of_patent(topic)]) + "\n" for topic in self.topics)
        return {
            "topics": len(self.topics),
            "topics_sha256": _digest(texts),
            "judgements_sha256": _digest(judged),
            "index": self.index.fingerprint,
            "search": {name: value for name, value in sorted(self.options.items()) if value},
        }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _of_patent(topic: Topic) -> list[str]:
    return [topic.patent, *topic.claims] if topic.patent else []


def judged_topics(
    index: Index,
    topics: Iterable[Topic],
    judgements: Judgements,
    on_problem: Callable[[str], None],
    *,
    language: str = "",
    syntax: str = "words",
    patent_folder: str = "",
) -> tuple[Topic, ...]:
    """The topics that are queries and have something relevant; the others are reported and passed over."""
    kept = []
    for topic in topics:
        if not any(grade > 0 for grade in judgements.get(topic.qid, {}).values()):
            on_problem(f"topic {topic.qid}: nothing is judged relevant")
            continue
        try:
            query_of(index, topic, {"language": language, "syntax": syntax}, patent_folder=patent_folder)
            for text in filter(None, (topic.query, topic.browse)):
                index.check_query(text, language=language, syntax=syntax)
        except (UsageError, InputError) as error:
            on_problem(f"topic {topic.qid}: {error}")
        else:
            kept.append(topic)
    if not kept:
        raise UsageError("no topic has anything judged relevant; check that the judgements are of these topics")
    return tuple(kept)


def group_of(qid: str, results: Results, judged: Mapping[str, int], sampling: Sampling, normalize: FeatureNormalization) -> Group:
    """The examples of a topic from its results, which must hold at least `depth` passages where there are so many."""
    matches = results.matches
    rows_of_judged = results.rows_of(judged)
    taken = np.zeros(matches.passages, bool)
    taken[results.ranking.rows[: sampling.depth]] = True
    taken[list(rows_of_judged.values())] = True
    # In the order of ids: how the index came to be must not decide which passages are drawn.
    by_id = np.lexsort((np.arange(matches.passages), matches.place_of_document()[matches.document_of_passage]))
    rest = by_id[~taken[by_id]]
    generator = np.random.default_rng([sampling.seed, zlib.crc32(qid.encode())])
    drawn = generator.choice(rest, min(sampling.others, rest.size), replace=False)
    stands_for = np.ones(matches.passages)
    stands_for[drawn] = rest.size / max(drawn.size, 1)
    taken[drawn] = True
    rows = by_id[taken[by_id]]
    grades = np.zeros(matches.passages, np.int64)
    for name, row in rows_of_judged.items():
        grades[row] = max(judged[name], 0)
    columns = normalized_features(matches, FEATURES, normalize)
    table = np.stack([column.values[rows] for column in columns.values()], axis=1)
    return Group(qid, tuple(results.names_of(rows)), table, grades[rows], stands_for[rows])
