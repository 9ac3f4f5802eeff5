"""Draws drafts from a sample of documents, and makes topics, judgements and masks of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np

from perikope.browse.masking import TokenMask
from perikope.core import files
from perikope.core.errors import UsageError
from perikope.core.names import passage_name, running_number
from perikope.document.tree import Kind
from perikope.evaluation.selfmade import KINDS, Draft, TopicSource
from perikope.index.reader import Snapshot
from perikope.index.stored import stored_document
from perikope.query.topic import Topic
from perikope.text.analysis import fold, word_spans, words

ALL_KINDS = ("heading", "keywords", "reference", "sentence")
Naming = Literal["never", "always", "both"]
"""Whether queries begin with words of the title of their document; `both` makes two topics of each draft."""
NAMED = "_in_document"
"""Ends the name of a kind whose queries begin with words of the document's title."""
DOCUMENTS_PER_TOPIC = 4
"""Documents that are read at most for each topic of a kind, drawn at random. Some documents have no draft of a kind."""
TITLE_WORDS = 8
"""Words of the document's title that a query begins with, at most."""


@dataclass(frozen=True, slots=True)
class SelfMadeTopics:
    """Topics with their judgements and masks."""

    topics: tuple[Topic, ...] = ()
    judgements: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Grades by id of the topic, then by name of the passage."""
    masks: Mapping[str, TokenMask] = field(default_factory=dict)
    """The words that the query of each topic was taken from, by id of the topic."""
    kind_of_topic: Mapping[str, str] = field(default_factory=dict)
    """The kind of each topic, by id. The name of a kind ends in `_in_document` if the query names its document."""

    @property
    def kinds(self) -> dict[str, int]:
        """The number of topics of each kind, sorted by name."""
        return dict(sorted(Counter(self.kind_of_topic.values()).items()))

    def of_kind(self, kind: str) -> list[Topic]:
        """The topics of one kind."""
        return [topic for topic in self.topics if self.kind_of_topic[topic.qid] == kind]


@dataclass(frozen=True, slots=True)
class DrawnDraft:
    """A draft with its document."""

    number: int
    """Number of the document in the index."""
    source: TopicSource
    draft: Draft

    @property
    def query(self) -> str:
        """The query on one line."""
        return _one_line(self.draft.query)

    @property
    def answers(self) -> list[str]:
        """Names of the passages that answer the query."""
        document, passages = self.source.document, self.source.passages
        ids = [document.span_ids.get(span) or running_number(passages.index(span)) for span in self.draft.answers]
        return [passage_name(document.id, id) for id in ids]

    @property
    def mask(self) -> TokenMask:
        """The words that the query was taken from."""
        starts, _ = word_spans(self.source.document.text)
        first, end = np.searchsorted(starts, [self.draft.start, self.draft.end]).tolist()
        return TokenMask(self.number, first, end)


def make_topics(
    snapshot: Snapshot,
    kinds: Sequence[str] = ALL_KINDS,
    *,
    count: int = 50,
    seed: int = 1,
    naming: Naming = "both",
) -> SelfMadeTopics:
    """Make at most `count` topics of each kind from a random sample of at most `4 * count` documents.

    `naming` says whether queries begin with words of the title of their document. A document without a title gives
    topics without one. The same index, kinds, count, seed and naming give the same topics.
    """
    if not kinds or count < 1:
        raise UsageError("name at least one kind of topic, and make at least one topic of each kind")
    alive = np.concatenate([np.zeros(0, bool), *(segment.alive for segment in snapshot.segments)])
    numbers = np.flatnonzero(alive).tolist()
    sample = Random(seed).sample(numbers, min(DOCUMENTS_PER_TOPIC * count, len(numbers)))
    drawn = draw_drafts(snapshot, sample, kinds, count=count, seed=seed)
    topics, judgements, masks, kind_of_topic = [], {}, {}, {}
    for kind in kinds:
        for number, chosen in enumerate(drawn[kind], 1):
            mask, answers = chosen.mask, dict.fromkeys(chosen.answers, 1)
            texts = _queries(kind, chosen, naming)
            for name, text in texts.items():
                qid = f"{name}-{number}"
                topics.append(Topic(qid, text, options={"syntax": "words"}))
                judgements[qid], masks[qid], kind_of_topic[qid] = answers, mask, name
    return SelfMadeTopics(tuple(topics), judgements, masks, kind_of_topic)


def draw_drafts(
    snapshot: Snapshot, documents: Sequence[int], kinds: Sequence[str], *, count: int, seed: int
) -> dict[str, list[DrawnDraft]]:
    """For each kind, at most `count` drafts in random order, from as many of `documents` as possible.

    Documents are given by their numbers in the index.
    """
    per_document = max(1, -(-2 * count // max(len(documents), 1)))
    drafts: dict[str, list[DrawnDraft]] = {kind: [] for kind in kinds}
    documents_with_title: Counter[str] = Counter()
    for number in documents:
        source = TopicSource(stored_document(*snapshot.locate(number)), snapshot.analyzer)
        documents_with_title.update({_key(source.document.text_of(title)) for title in source.document.of_kind(Kind.TITLE)})
        for kind in kinds:
            # Each document and kind has its own random numbers, so that one kind does not change the topics of another.
            chance = Random(f"{seed} {kind} {source.document.id}")
            drafts[kind] += [DrawnDraft(number, source, draft) for draft in islice(KINDS[kind](source, chance), per_document)]
    return {kind: _distinct(drafts[kind], documents_with_title, count, Random(f"{seed} {kind}")) for kind in kinds}


def _distinct(drawn: list[DrawnDraft], documents_with_title: Counter[str], count: int, chance: Random) -> list[DrawnDraft]:
    """At most `count` drafts in random order, without queries that occur twice or are titles in two documents."""
    repeated = Counter(_key(one.query) for one in drawn)
    distinct = [one for one in drawn if repeated[key := _key(one.query)] == 1 and documents_with_title[key] <= 1]
    return chance.sample(distinct, min(count, len(distinct)))


def _key(query: str) -> str:
    """The form in which queries are compared."""
    return fold(_one_line(query))


def _queries(kind: str, drawn: DrawnDraft, naming: Naming) -> dict[str, str]:
    """The queries of a draft, by name of their kind."""
    title = " ".join(words(drawn.source.document.title)[:TITLE_WORDS])
    if naming == "never" or not title:
        return {kind: drawn.query}
    named = {f"{kind}{NAMED}": f"{title} {drawn.query}"}
    return named if naming == "always" else {kind: drawn.query, **named}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def write_topics(made: SelfMadeTopics, folder: Path) -> None:
    """Write `topics.tsv` (id and query) and `qrels.txt` (TREC) to a folder, for inspection.

    A run of these topics finds the words that queries were taken from, because the masks are not written.
    """
    files.make_folder(folder)
    with files.replacing(folder / "topics.tsv") as file:
        file.writelines(f"{topic.qid}\t{topic.query}\n" for topic in made.topics)
    with files.replacing(folder / "qrels.txt") as file:
        file.writelines(f"{qid} 0 {name} {grade}\n" for qid, judged in made.judgements.items() for name, grade in judged.items())
