"""What neural rankers learn from: texts, topics, and triples of a query, a relevant passage and one that is not.

`Texts` and `Topics` are plain data, read from an index once; `collection` keeps them in a file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from perikope.core.arrays import Integers
from perikope.core.errors import UsageError, unknown
from perikope.evaluation.folds import group_of_topic

if TYPE_CHECKING:
    from perikope.index.reader import Snapshot
    from perikope.index.segments import Segment

Source = Literal["random", "same_doc", "relevant_docs", "shared_codes", "mixed", "ranked"]
SOURCES: tuple[Source, ...] = get_args(Source)
"""Where negatives come from; the first five are those of the paper."""
RELEVANT_DOCS_SHARE = 0.4
"""Of `mixed`; the rest is `shared_codes` (Albarede et al. 2023, 5.2.3)."""
_TRIES = 32
_SEPARATOR = ". "


@dataclass(frozen=True)
class Texts:
    """All passages of a collection, document by document."""

    documents: tuple[str, ...]
    first_passage: Integers
    """Where each document's passages begin; one value more than there are documents."""
    names: tuple[str, ...]
    """`document#passage`."""
    passages: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    """The titles above each passage, from the document's own to that of its section."""
    shared: tuple[frozenset[str], ...]
    """What documents may have in common: classification codes, and in a collection without any, values of metadata."""

    @cached_property
    def document_of_passage(self) -> Integers:
        """The document of each passage, by its number."""
        return np.repeat(np.arange(len(self.documents)), np.diff(self.first_passage))

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each passage by its name."""
        return {name: i for i, name in enumerate(self.names)}

    def written(self, *, heading_path: bool) -> list[str]:
        """Each passage as it is encoded."""
        return [with_path(path if heading_path else (), text) for path, text in zip(self.paths, self.passages, strict=True)]

    @cached_property
    def documents_sharing(self) -> dict[str, Integers]:
        """The documents that have each code."""
        found: dict[str, list[int]] = {}
        for document, codes in enumerate(self.shared):
            for code in codes:
                found.setdefault(code, []).append(document)
        return {code: np.array(documents, np.int64) for code, documents in found.items()}


def with_path(path: Sequence[str], text: str) -> str:
    """A passage behind the titles above it.

    >>> with_path(["Pumps", "", "Seals"], "They keep the fluid inside.")
    'Pumps. Seals. They keep the fluid inside.'
    """
    return _SEPARATOR.join([*(" ".join(title.split()).rstrip(".") for title in path if title.strip()), text])


@dataclass(frozen=True, slots=True)
class Topics:
    """Queries and which passages of some texts are relevant for each."""

    qids: tuple[str, ...]
    queries: tuple[str, ...]
    relevant: tuple[Integers, ...]
    judged: tuple[Mapping[str, int], ...]
    """All judgements by name, of passages that the texts hold or not."""
    codes: tuple[frozenset[str], ...]
    """Of the patent that each topic is about; empty where it is about none."""
    ranked: tuple[Integers, ...] = ()
    """The passages that another ranker puts first for each topic, whether relevant or not; none where they are not known."""

    def __len__(self) -> int:
        return len(self.qids)

    @property
    def judgements(self) -> dict[str, Mapping[str, int]]:
        """All judgements by topic."""
        return dict(zip(self.qids, self.judged, strict=True))

    def some(self, rows: Iterable[int]) -> Topics:
        """The topics with these numbers."""
        chosen = list(rows)
        qids, queries = tuple(self.qids[row] for row in chosen), tuple(self.queries[row] for row in chosen)
        relevant, judged = tuple(self.relevant[row] for row in chosen), tuple(self.judged[row] for row in chosen)
        ranked = tuple(self.ranked[row] for row in chosen) if self.ranked else ()
        return Topics(qids, queries, relevant, judged, tuple(self.codes[row] for row in chosen), ranked)


def topics_of(texts: Texts, queries: Mapping[str, str], judgements: Mapping[str, Mapping[str, int]]) -> Topics:
    """The topics that have something relevant in the texts."""
    kept = []
    for qid, query in queries.items():
        judged = judgements.get(qid, {})
        relevant = np.array(sorted(texts.number[name] for name, grade in judged.items() if grade > 0 and name in texts.number), np.int64)
        if relevant.size:
            kept.append((qid, query, relevant, judged))
    if not kept:
        raise UsageError("no topic has anything judged relevant in this index; check that the judgements are of these topics and documents")
    qids, asked, found, judged_of_topic = zip(*kept, strict=True)
    return Topics(qids, asked, found, judged_of_topic, (frozenset(),) * len(kept))


def hold_out(topics: Topics, share: float, seed: int) -> tuple[Topics, Topics]:
    """Topics to learn from, and about this share of them to choose by; those that share a relevant document stay together."""
    group = group_of_topic(topics.qids, topics.judgements)
    leaders = np.array([group[qid] for qid in topics.qids])
    names = sorted(set(group.values()))
    if len(names) < 2:
        raise UsageError("all topics share relevant documents, so none can be held out; give topics to choose by (--validation-topics)")
    chosen: set[str] = set()
    size = 0
    for place in np.random.default_rng([seed, 3]).permutation(len(names)).tolist():
        own = int((leaders == names[place]).sum())
        if size and size + own > max(share * len(topics), 1):
            continue
        chosen.add(names[place])
        size += own
        if size >= share * len(topics) or len(chosen) == len(names) - 1:
            break
    is_held_out = np.isin(leaders, list(chosen))
    return topics.some(np.flatnonzero(~is_held_out).tolist()), topics.some(np.flatnonzero(is_held_out).tolist())


def sources_of(strategy: str) -> tuple[Source, ...]:
    """Where negatives come from, in turn: one source, or several joined by `+`.

    >>> sources_of("same_doc+ranked")
    ('same_doc', 'ranked')
    """
    found: list[Source] = []
    for name in strategy.split("+"):
        known = [source for source in SOURCES if source == name]
        if not known:
            raise unknown("strategy of negatives", name, SOURCES)
        found += known
    return tuple(found)


def draw_negatives(texts: Texts, topics: Topics, topic: int, positive: int, strategy: str, count: int, seed: Sequence[int]) -> Integers:
    """Passages that nobody judged relevant, for a topic and one of its relevant passages (Albarede et al. 2023, 5.2.3).

    `random`: of the whole collection. `same_doc`: of the relevant passage's document. `relevant_docs`: of all documents with something
    relevant. `shared_codes`: of documents that share a code with the topic's patent, or where it has none, with a relevant document.
    `mixed`: `relevant_docs` with probability 0.4, else `shared_codes`. `ranked`: of those that another ranker puts first. Several joined
    by `+` take turns. Where there is nothing else to offer, of the whole collection. The draw depends on the seed alone.
    """
    sources = sources_of(strategy)
    generator = np.random.default_rng(list(seed))
    own = topics.relevant[topic]
    found = [
        _draw(texts, own, _pool(texts, topics, topic, positive, sources[number % len(sources)], generator), generator)
        for number in range(count)
    ]
    return np.array(found, np.int64)


@dataclass(frozen=True, slots=True)
class _Pool:
    """Passages to draw from, as ranges of their numbers."""

    first: Integers
    size: Integers


def _pool(texts: Texts, topics: Topics, topic: int, positive: int, source: Source, generator: np.random.Generator) -> _Pool | None:
    """What negatives are drawn from; None for everything."""
    if source == "mixed":
        source = "relevant_docs" if generator.random() < RELEVANT_DOCS_SHARE else "shared_codes"
    if source == "random":
        return None
    if source == "ranked":
        if not topics.ranked:
            raise UsageError("no ranking was given to draw negatives from")
        return _Pool(topics.ranked[topic], np.ones_like(topics.ranked[topic]))
    if source == "same_doc":
        return _pool_of_documents(texts, texts.document_of_passage[[positive]])
    relevant = np.unique(texts.document_of_passage[topics.relevant[topic]])
    if source == "relevant_docs":
        return _pool_of_documents(texts, relevant)
    codes = topics.codes[topic] or frozenset().union(*(texts.shared[document] for document in relevant.tolist()))
    sharing = [texts.documents_sharing[code] for code in sorted(codes) if code in texts.documents_sharing]
    return _pool_of_documents(texts, np.unique(np.concatenate(sharing))) if sharing else None


def _pool_of_documents(texts: Texts, documents: Integers) -> _Pool:
    first = texts.first_passage[documents]
    return _Pool(first, texts.first_passage[documents + 1] - first)


def _draw(texts: Texts, relevant: Integers, pool: _Pool | None, generator: np.random.Generator) -> int:
    """A passage of a pool, each as likely as any other, that is not relevant; of all where the pool seems to have none."""
    everything = _Pool(np.zeros(1, np.int64), np.array([len(texts.names)]))
    for chosen in (everything if pool is None else pool, everything):
        ends = np.cumsum(chosen.size)
        for _ in range(_TRIES if ends.size and ends[-1] else 0):
            place = int(generator.integers(int(ends[-1])))
            piece = int(np.searchsorted(ends, place, "right"))
            found = int(chosen.first[piece] + place - (ends[piece] - chosen.size[piece]))
            if found not in relevant:
                return found
    raise UsageError("there is no passage that is not relevant; negatives cannot be drawn")


def draw_triples(texts: Texts, topics: Topics, strategy: str = "mixed", *, seed: int = 1, epoch: int = 0, negatives: int = 1) -> Integers:
    """Every relevant passage of every topic with new negatives, in an order drawn by chance: topic, positive, negatives, a row each."""
    rows = []
    for topic, relevant in enumerate(topics.relevant):
        name = zlib.crc32(topics.qids[topic].encode())
        for positive in relevant.tolist():
            drawn = draw_negatives(texts, topics, topic, positive, strategy, negatives, [seed, epoch, name, positive])
            rows.append([topic, positive, *drawn.tolist()])
    order = np.random.default_rng([seed, epoch]).permutation(len(rows))
    return np.array(rows, np.int64)[order]


def join_texts(collections: Sequence[Texts]) -> Texts:
    """Several collections as one; passages of the second come behind those of the first."""
    first = np.cumsum([0, *(len(texts.names) for texts in collections)]).tolist()
    return Texts(
        tuple(document for texts in collections for document in texts.documents),
        np.concatenate([*(texts.first_passage[:-1] + base for texts, base in zip(collections, first, strict=False)), first[-1:]]),
        tuple(name for texts in collections for name in texts.names),
        tuple(passage for texts in collections for passage in texts.passages),
        tuple(path for texts in collections for path in texts.paths),
        tuple(shared for texts in collections for shared in texts.shared),
    )


def join_topics(collections: Sequence[Texts], topics: Sequence[Topics]) -> Topics:
    """The topics of several collections as those of `join_texts`; a ranking to draw from is kept where all have one."""
    first = np.cumsum([0, *(len(texts.names) for texts in collections)]).tolist()
    based = list(zip(topics, first, strict=False))
    with_rankings = all(own.ranked for own in topics)
    return Topics(
        tuple(qid for own in topics for qid in own.qids),
        tuple(query for own in topics for query in own.queries),
        tuple(relevant + base for own, base in based for relevant in own.relevant),
        tuple(judged for own in topics for judged in own.judged),
        tuple(codes for own in topics for codes in own.codes),
        tuple(ranked + base for own, base in based for ranked in own.ranked) if with_rankings else (),
    )


def read_texts(snapshot: Snapshot) -> Texts:
    """All passages of an index, documents in the order of their ids."""
    located = [
        (segment.document_id(local), segment, local) for segment in snapshot.segments for local in np.flatnonzero(segment.alive).tolist()
    ]
    located.sort(key=lambda found: found[0])
    columns: list[tuple[str, str, tuple[str, ...]]] = []
    first = [0]
    for document, segment, local in located:
        columns += passages_of(segment, local, document)
        first.append(len(columns))
    shared = [_codes(segment.metadata(local)) for _, segment, local in located]
    if not any(shared):
        shared = [_values(segment.metadata(local)) for _, segment, local in located]
    names, passages, paths = zip(*columns, strict=True) if columns else ((), (), ())
    return Texts(tuple(id for id, _, _ in located), np.array(first, np.int64), names, passages, paths, tuple(shared))


def passages_of(segment: Segment, local: int, document: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Name, text and titles above of each passage of a document."""
    from perikope.core.names import passage_name, running_number

    text, own, name_of = segment.text(local), segment.passages_of(local), segment.span_namer(local)
    first_span = int(segment["document.first_span"][local])
    paths = _paths(segment, local, text)
    found = []
    for place, passage in enumerate(own):
        span = segment.span_of("passage.span", local, passage)
        name = passage_name(document, name_of(span - first_span) or running_number(place))
        found.append((name, text[segment.characters(span)], paths[int(segment["passage.section"][passage])]))
    return found


def _paths(segment: Segment, local: int, text: str) -> list[tuple[str, ...]]:
    """The titles above what stands in each section, by the section's number in its document."""
    paths: list[tuple[str, ...]] = []
    for section in segment.sections_of(local):
        parent = int(segment["section.parent"][section])
        if parent >= len(paths):
            raise segment.columns.damaged("has a damaged column (section.parent)")
        span = segment.span_of("section.title_span", local, section)
        above = paths[parent] if parent >= 0 else ()
        paths.append((*above, text[segment.characters(span)]) if span >= 0 else above)
    return paths


def _codes(metadata: Mapping[str, Any]) -> frozenset[str]:
    from perikope.fetch.filters import codes_of

    return frozenset(map(str, codes_of(metadata)))


def _values(metadata: Mapping[str, Any]) -> frozenset[str]:
    """Values of metadata as `field=value`."""
    pairs = ((field, value) for field, given in metadata.items() for value in (given if isinstance(given, list) else [given]))
    return frozenset(f"{field}={value}" for field, value in pairs if isinstance(value, (str, int)) and str(value))
