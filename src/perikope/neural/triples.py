"""Training data of neural rankers: texts, topics, and triples of a query, a relevant and a non-relevant passage.

`Texts` and `Topics` are plain data that is read from an index once; `collection` keeps it in a file.
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
"""Where negatives can come from; the first five are those of the paper. See `draw_negatives`."""
RELEVANT_DOCS_SHARE = 0.4
"""Share of `relevant_docs` in `mixed`; the rest is `shared_codes` (Albarede et al. 2023, 5.2.3)."""
_TRIES = 32
"""Number of draws from a source before the whole collection is drawn from."""
_SEPARATOR = ". "


@dataclass(frozen=True)
class Texts:
    """All passages of a collection, document by document."""

    documents: tuple[str, ...]
    """Id per document."""
    first_passage: Integers
    """(documents + 1,) Where the passages of each document begin."""
    names: tuple[str, ...]
    """Name per passage: `document#passage`."""
    passages: tuple[str, ...]
    """Text per passage."""
    paths: tuple[tuple[str, ...], ...]
    """Heading path per passage, from the document's title to that of its section."""
    shared: tuple[frozenset[str], ...]
    """Per document, what it may have in common with others: classification codes, or values of metadata in a collection
    without codes."""

    @cached_property
    def document_of_passage(self) -> Integers:
        """The number of each passage's document, (passages,)."""
        return np.repeat(np.arange(len(self.documents)), np.diff(self.first_passage))

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each passage by its name."""
        return {name: i for i, name in enumerate(self.names)}

    def written(self, *, heading_path: bool) -> list[str]:
        """The text of each passage as it is encoded, behind its heading path if `heading_path` is set."""
        return [with_path(path if heading_path else (), text) for path, text in zip(self.paths, self.passages, strict=True)]

    @cached_property
    def documents_sharing(self) -> dict[str, Integers]:
        """The numbers of the documents (documents,) that have each code."""
        numbers_of_code: dict[str, list[int]] = {}
        for document, codes in enumerate(self.shared):
            for code in codes:
                numbers_of_code.setdefault(code, []).append(document)
        return {code: np.array(numbers, np.int64) for code, numbers in numbers_of_code.items()}


def with_path(path: Sequence[str], text: str) -> str:
    """The text of a passage behind its heading path, as one text.

    >>> with_path(["Pumps", "", "Seals"], "They keep the fluid inside.")
    'Pumps. Seals. They keep the fluid inside.'
    """
    return _SEPARATOR.join([*(" ".join(title.split()).rstrip(".") for title in path if title.strip()), text])


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics with the passages of some texts that are relevant for each."""

    qids: tuple[str, ...]
    queries: tuple[str, ...]
    relevant: tuple[Integers, ...]
    """Per topic, the numbers of relevant passages in the texts (relevant passages,)."""
    judged: tuple[Mapping[str, int], ...]
    """Per topic, all judgements by name, also of passages that are not in the texts."""
    codes: tuple[frozenset[str], ...]
    """Per topic, the codes of the patent that it is about; empty if it is not about a patent."""
    ranked: tuple[Integers, ...] = ()
    """Per topic, the best passages of another ranker (passages,), relevant or not; empty if there is no ranking."""

    def __len__(self) -> int:
        return len(self.qids)

    @property
    def judgements(self) -> dict[str, Mapping[str, int]]:
        """All judgements by topic."""
        return dict(zip(self.qids, self.judged, strict=True))

    def aligned(self, first: Topics) -> Topics:
        """The topics of another set, in its order, with the queries, codes and rankings of this set if it has them."""
        return self if self.qids == first.qids else _aligned(self, first)

    def some(self, rows: Iterable[int]) -> Topics:
        """The topics with the numbers `rows`, in this order."""
        chosen = list(rows)
        qids, queries = tuple(self.qids[row] for row in chosen), tuple(self.queries[row] for row in chosen)
        relevant, judged = tuple(self.relevant[row] for row in chosen), tuple(self.judged[row] for row in chosen)
        ranked = tuple(self.ranked[row] for row in chosen) if self.ranked else ()
        return Topics(qids, queries, relevant, judged, tuple(self.codes[row] for row in chosen), ranked)


def _aligned(own: Topics, first: Topics) -> Topics:
    """The topics of `first`, with the queries, codes and rankings of `own` where it has them."""
    row = {qid: number for number, qid in enumerate(own.qids)}
    source = [(own, row[qid]) if qid in row else (first, number) for number, qid in enumerate(first.qids)]
    return Topics(
        first.qids,
        tuple(topics.queries[number] for topics, number in source),
        first.relevant,
        first.judged,
        tuple(topics.codes[number] for topics, number in source),
        tuple(topics.ranked[number] for topics, number in source) if own.ranked and first.ranked else (),
    )


def topics_of(texts: Texts, queries: Mapping[str, str], judgements: Mapping[str, Mapping[str, int]]) -> Topics:
    """The topics that have a relevant passage in the texts, of `queries` and `judgements` by topic id."""
    rows = []
    for qid, query in queries.items():
        judged = judgements.get(qid, {})
        relevant = np.array(sorted(texts.number[name] for name, grade in judged.items() if grade > 0 and name in texts.number), np.int64)
        if relevant.size:
            rows.append((qid, query, relevant, judged))
    if not rows:
        raise UsageError("no topic has a relevant passage in this index; check that the judgements are of these topics and documents")
    qids, queries_of_topic, relevant_of_topic, judged_of_topic = zip(*rows, strict=True)
    return Topics(qids, queries_of_topic, relevant_of_topic, judged_of_topic, (frozenset(),) * len(rows))


def hold_out(topics: Topics, share: float, seed: int) -> tuple[Topics, Topics]:
    """Divide topics at random: returns the topics to train on, and about a `share` of all topics to validate on.

    Topics that share a relevant document stay together.
    """
    group = group_of_topic(topics.qids, topics.judgements)
    leaders = np.array([group[qid] for qid in topics.qids])
    names = sorted(set(group.values()))
    if len(names) < 2:
        raise UsageError("all topics share relevant documents, so none can be held out; give other topics with --validation-topics")
    chosen: set[str] = set()
    size = 0
    for number in np.random.default_rng([seed, 3]).permutation(len(names)).tolist():
        group_size = int((leaders == names[number]).sum())
        if size and size + group_size > max(share * len(topics), 1):
            continue
        chosen.add(names[number])
        size += group_size
        if size >= share * len(topics) or len(chosen) == len(names) - 1:
            break
    is_held_out = np.isin(leaders, list(chosen))
    return topics.some(np.flatnonzero(~is_held_out).tolist()), topics.some(np.flatnonzero(is_held_out).tolist())


def sources_of(strategy: str) -> tuple[Source, ...]:
    """The sources of negatives that a strategy names: one, or several joined by `+`, which take turns.

    >>> sources_of("same_doc+ranked")
    ('same_doc', 'ranked')
    """
    sources: list[Source] = []
    for name in strategy.split("+"):
        known = [source for source in SOURCES if source == name]
        if not known:
            raise unknown("strategy of negatives", name, SOURCES)
        sources += known
    return tuple(sources)


def draw_negatives(texts: Texts, topics: Topics, topic: int, positive: int, strategy: str, count: int, seed: Sequence[int]) -> Integers:
    """`count` passages (count,) that are not relevant for a topic (Albarede et al. 2023, 5.2.3).

    `topic` is the number of the topic, `positive` that of one of its relevant passages. A strategy is one of

    - `random`: passages of the whole collection,
    - `same_doc`: passages of the document of `positive`,
    - `relevant_docs`: passages of all documents with a relevant passage,
    - `shared_codes`: passages of documents that share a code with the topic's patent or, if it has none, with a
      relevant document,
    - `mixed`: `relevant_docs` with probability 0.4, else `shared_codes`,
    - `ranked`: the best passages of another ranker,

    or several joined by `+`, which take turns. If 32 draws from a source give only relevant
    passages, the negative is drawn from the whole collection. The draw depends only on `seed`.
    """
    sources = sources_of(strategy)
    generator = np.random.default_rng(list(seed))
    relevant = topics.relevant[topic]
    negatives = [
        _draw(texts, relevant, _pool(texts, topics, topic, positive, sources[number % len(sources)], generator), generator)
        for number in range(count)
    ]
    return np.array(negatives, np.int64)


@dataclass(frozen=True, slots=True)
class _Pool:
    """Passages to draw from, as ranges of their numbers. Arrays are (ranges,)."""

    first: Integers
    size: Integers


def _pool(texts: Texts, topics: Topics, topic: int, positive: int, source: Source, generator: np.random.Generator) -> _Pool | None:
    """The passages that negatives are drawn from, by source; None stands for the whole collection."""
    if source == "mixed":
        source = "relevant_docs" if generator.random() < RELEVANT_DOCS_SHARE else "shared_codes"
    if source == "random":
        return None
    if source == "ranked":
        if not topics.ranked:
            raise UsageError("the strategy ranked needs a ranking of the topics: set ranked_by, or choose another strategy")
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
    """The passages of `documents` (n,), given by their numbers, as a pool of n ranges."""
    first = texts.first_passage[documents]
    return _Pool(first, texts.first_passage[documents + 1] - first)


def _draw(texts: Texts, relevant: Integers, pool: _Pool | None, generator: np.random.Generator) -> int:
    """A random passage of a pool that is not in `relevant` (n,), with equal probabilities.

    If `_TRIES` draws give only relevant passages, it is drawn from the whole collection.
    """
    everything = _Pool(np.zeros(1, np.int64), np.array([len(texts.names)]))
    for chosen in (everything if pool is None else pool, everything):
        ends = np.cumsum(chosen.size)
        for _ in range(_TRIES if ends.size and ends[-1] else 0):
            drawn = int(generator.integers(int(ends[-1])))
            number = int(np.searchsorted(ends, drawn, "right"))
            passage = int(chosen.first[number] + drawn - (ends[number] - chosen.size[number]))
            if passage not in relevant:
                return passage
    raise UsageError("negatives cannot be drawn: all passages of the collection seem relevant for a topic; check the judgements")


def draw_triples(
    texts: Texts, topics: Topics, strategy: str = "mixed", *, seed: int = 1, epoch: int = 0, negatives: int = 1, draws: int = 1
) -> Integers:
    """`draws` triples per relevant passage of every topic, in random order: (triples, 2 + negatives).

    The columns are the number of the topic, the relevant passage, and its negatives. Every triple has newly drawn
    negatives. Draws depend only on `seed`, `epoch` and the ids of topics. Two epochs with one draw give the triples of
    one epoch with two draws.
    """
    pairs = [(topic, positive) for topic, relevant in enumerate(topics.relevant) for positive in relevant.tolist()]
    names = [zlib.crc32(qid.encode()) for qid in topics.qids]
    triples = np.zeros((len(pairs) * draws, 2 + negatives), np.int64)
    for row, (topic, positive) in enumerate(pairs * draws):
        round_number = epoch * draws + row // len(pairs)
        drawn = draw_negatives(texts, topics, topic, positive, strategy, negatives, [seed, round_number, names[topic], positive])
        triples[row] = topic, positive, *drawn.tolist()
    return triples[np.random.default_rng([seed, epoch]).permutation(len(triples))]


def mix_evenly(triples: Integers, collection_of_triple: Integers) -> Integers:
    """Triples (about as many, 2 + negatives) in which collections take turns, so that each has the same number.

    `triples` (triples, 2 + negatives) are in random order, and `collection_of_triple` (triples,) has the number of each
    one's collection. Triples of small collections are repeated, and some triples of large ones are left out.
    """
    collections = np.unique(collection_of_triple)
    each = -(-len(triples) // max(collections.size, 1))
    rows = [np.resize(np.flatnonzero(collection_of_triple == collection), each) for collection in collections.tolist()]
    mixed: Integers = triples[np.stack(rows, axis=1).reshape(-1)] if rows else triples
    return mixed


def join_texts(collections: Sequence[Texts]) -> Texts:
    """Several collections as one, in their order."""
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
    """The topics of several collections, for the texts of `join_texts`; rankings are kept only if all have one."""
    first = np.cumsum([0, *(len(texts.names) for texts in collections)]).tolist()
    based = list(zip(topics, first, strict=False))
    with_rankings = all(collection.ranked for collection in topics)
    return Topics(
        tuple(qid for collection in topics for qid in collection.qids),
        tuple(query for collection in topics for query in collection.queries),
        tuple(relevant + base for collection, base in based for relevant in collection.relevant),
        tuple(judged for collection in topics for judged in collection.judged),
        tuple(codes for collection in topics for codes in collection.codes),
        tuple(ranked + base for collection, base in based for ranked in collection.ranked) if with_rankings else (),
    )


def read_texts(snapshot: Snapshot) -> Texts:
    """All passages of an index, with documents sorted by id."""
    located = [
        (segment.document_id(local), segment, local) for segment in snapshot.segments for local in np.flatnonzero(segment.alive).tolist()
    ]
    located.sort(key=lambda document: document[0])
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
    """Name, text and heading path of each passage of a document; `local` is its number in the segment."""
    from perikope.core.names import passage_name, running_number

    text, name_of = segment.text(local), segment.span_namer(local)
    first_span = int(segment["document.first_span"][local])
    paths = _paths(segment, local, text)
    passages = []
    for number, passage in enumerate(segment.passages_of(local)):
        span = segment.span_of("passage.span", local, passage)
        name = passage_name(document, name_of(span - first_span) or running_number(number))
        passages.append((name, text[segment.characters(span)], paths[segment.row("passage.section", passage)]))
    return passages


def _paths(segment: Segment, local: int, text: str) -> list[tuple[str, ...]]:
    """The heading path of the passages directly in each section, by the section's number in its document."""
    paths: list[tuple[str, ...]] = []
    for section in segment.sections_of(local):
        parent = segment.row("section.parent", section)
        if parent >= len(paths):
            raise segment.columns.damaged("has a damaged column (section.parent)")
        span = segment.span_of("section.title_span", local, section)
        above = paths[parent] if parent >= 0 else ()
        paths.append((*above, text[segment.characters(span)]) if span >= 0 else above)
    return paths


def _codes(metadata: Mapping[str, Any]) -> frozenset[str]:
    """The classification codes of a document's metadata."""
    from perikope.fetch.filters import codes_of

    return frozenset(map(str, codes_of(metadata)))


def _values(metadata: Mapping[str, Any]) -> frozenset[str]:
    """The values of a document's metadata, as `field=value`."""
    pairs = ((field, value) for field, given in metadata.items() for value in (given if isinstance(given, list) else [given]))
    return frozenset(f"{field}={value}" for field, value in pairs if isinstance(value, (str, int)) and str(value))
