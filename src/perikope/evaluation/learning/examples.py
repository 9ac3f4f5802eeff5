"""Training examples: passages of topics with their features and grades."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perikope.browse.matches import Matches
from perikope.browse.models.features import FEATURES, FeatureNormalization, normalized_features
from perikope.browse.models.shortlist import SHORTLIST
from perikope.browse.ranking import Ranking
from perikope.core.arrays import Floats, Integers
from perikope.core.cores import usable_cores
from perikope.core.errors import UsageError
from perikope.core.parallel import in_parallel
from perikope.index.reader import Snapshot
from perikope.query.topic import Topic
from perikope.search.batch import notes_on_topics, prepare_topic
from perikope.search.naming import names_of, rows_of
from perikope.search.options import SearchOptions
from perikope.search.steps import Search, search_for

Judgements = Mapping[str, Mapping[str, int]]


def check_options(options: SearchOptions) -> None:
    """Raise an error if the options rank elements instead of passages."""
    if options.elements:
        raise UsageError("weights are learned from passages; leave --elements out")


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings for choosing examples: judged passages, the best passages of a model, and a random sample of the rest.

    Each sampled passage has a weight, the number of passages of the rest divided by the size of the sample. Passages
    that are rare among the candidates thus stay rare among the weighted examples.
    """

    depth: int = 200
    """Number of best passages of the model."""
    others: int = 200
    """Size of the random sample of the rest."""
    seed: int = 1
    """Seed of the random sample."""

    def __post_init__(self) -> None:
        if self.depth < 0 or self.others < 0 or self.depth + self.others == 0:
            raise UsageError("depth and others must be at least 0, and not both 0")


@dataclass(frozen=True, slots=True)
class Group:
    """The examples of one topic, sorted by document id, then by position."""

    qid: str
    names: tuple[str, ...]
    features: Floats
    """Values of features, with the shape (examples, features). The columns are in the order of `FEATURES`."""
    grades: Integers
    """One grade per example; 0 for a passage without a judgement or with a negative grade."""
    stands_for: Floats
    """The weight of each example: the number of candidate passages that it represents."""


@dataclass(frozen=True, slots=True)
class JudgedTopics:
    """Topics with their judgements, and the search that retrieves their passages."""

    snapshot: Snapshot
    topics: tuple[Topic, ...]
    judgements: Judgements
    options: SearchOptions
    """The options of the search. The best passages of its model become examples, as they are the hardest to order."""
    normalize: FeatureNormalization = "zscore"
    threads: int | None = None

    def look_into(self, topic: Topic) -> tuple[Search, Matches]:
        """Run the search for a topic. Returns the search and its matches."""
        search = search_for(self.snapshot, topic, self.options)
        return search, search.matches(search.candidates(search.prepare(topic)))

    def groups(self, sampling: Sampling) -> Iterator[Group]:
        """Yield the examples of each topic, in the order of the topics."""

        def examples(topic: Topic) -> Group:
            search, matches = self.look_into(topic)
            ranking = best_of(search, matches, max(sampling.depth, 1))
            judged = self.judgements.get(topic.qid, {})
            return group_of(topic.qid, self.snapshot, matches, ranking, judged, sampling, self.normalize)

        return (group for _, group in in_parallel(examples, self.topics, self.threads or usable_cores()))

    def facts(self) -> dict[str, Any]:
        """A description of the input as values for JSON, which is stored with the learned result."""
        judged = "".join(
            f"{topic.qid} {name} {grade}\n" for topic in self.topics for name, grade in sorted(self.judgements.get(topic.qid, {}).items())
        )
        texts = "".join("\t".join([topic.qid, topic.query, *_details(topic)]) + "\n" for topic in self.topics)
        return {
            "topics": len(self.topics),
            "topics_sha256": _digest(texts),
            "judgements_sha256": _digest(judged),
            "index": self.snapshot.manifest.fingerprint,
            "search": self.options.updated({"candidates": None, "translator": None}).plain(),
        }


def best_of(search: Search, matches: Matches, k: int) -> Ranking:
    """Rank matches by the model of a search, and return the best `k` passages."""
    score, eligible = search.results_by(matches, search.model, search.model.score(matches))
    return search.eligibility.rank(matches, score, k, eligible, search.eligibility.groups(matches))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _details(topic: Topic) -> list[str]:
    """The patent, the claims and the options of a topic, as texts."""
    claims = [topic.claims] if isinstance(topic.claims, str) else topic.claims
    return [topic.patent, *claims, *(f"{name}={value}" for name, value in sorted(topic.options.items()))]


def judged_topics(
    snapshot: Snapshot,
    topics: Iterable[Topic],
    judgements: Judgements,
    options: SearchOptions,
    on_problem: Callable[[str], None],
    on_note: Callable[[str], None] = lambda note: None,
) -> tuple[Topic, ...]:
    """The topics that have a valid query and a relevant judgement.

    `on_problem` is called with one line per other topic. `on_note` is called with a sentence if some
    topics could not be searched as asked. Raises an error if no topic is left.
    """
    usable, asked = [], []
    for topic in topics:
        if not any(grade > 0 for grade in judgements.get(topic.qid, {}).values()):
            on_problem(f"topic {topic.qid}: nothing is judged relevant")
            continue
        asked.append(prepare_topic(snapshot, topic, options))
        if asked[-1].problem:
            on_problem(f"topic {topic.qid}: {asked[-1].problem}")
        else:
            usable.append(topic)
    if note := notes_on_topics(asked):
        on_note(note)
    if not usable:
        raise UsageError("no topic has a valid query and a relevant judgement; check that the judgements are of these topics")
    return tuple(usable)


def group_of(
    qid: str,
    snapshot: Snapshot,
    matches: Matches,
    ranking: Ranking,
    judged: Mapping[str, int],
    sampling: Sampling,
    normalize: FeatureNormalization,
) -> Group:
    """The examples of a topic, chosen from its matches. All are on the shortlist, because others have no features.

    `ranking` must have at least `sampling.depth` passages, or all passages if there are fewer.
    """
    listed = SHORTLIST.of(matches)
    rows_of_judged = rows_of(snapshot, matches, judged)
    is_example = np.zeros(matches.passages, bool)
    is_example[ranking.rows[: sampling.depth]] = True
    is_example[list(rows_of_judged.values())] = True
    # Sorted by document id, so that the sample does not depend on the order in which documents were indexed.
    by_id = np.lexsort((np.arange(matches.passages), matches.id_rank_of_document()[matches.document_of_passage]))
    is_listed = np.zeros(matches.passages, bool)
    is_listed[listed.rows] = True
    is_example &= is_listed
    rest = by_id[(is_listed & ~is_example)[by_id]]
    generator = np.random.default_rng([sampling.seed, zlib.crc32(qid.encode())])
    drawn = generator.choice(rest, min(sampling.others, rest.size), replace=False)
    stands_for = np.ones(matches.passages)
    stands_for[drawn] = rest.size / max(drawn.size, 1)
    is_example[drawn] = True
    rows = by_id[is_example[by_id]]
    grades = np.zeros(matches.passages, np.int64)
    for name, row in rows_of_judged.items():
        grades[row] = max(judged[name], 0)
    columns = normalized_features(listed.matches, FEATURES, normalize)
    at = np.searchsorted(listed.rows, rows)
    table = np.stack([column.values[at] for column in columns.values()], axis=1)
    return Group(qid, tuple(names_of(snapshot, matches, rows)), table, grades[rows], stands_for[rows])
