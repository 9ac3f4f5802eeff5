"""Queries drawn from a collection, short like users' and long like claims, and the collection's terms for engines."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import numpy as np

from benchmarks.programs import texts
from perikope.index.layout import STOP
from perikope.index.reader import Snapshot
from perikope.text.analysis import words

Queries = dict[str, list[list[str]]]
_NEIGHBOURS = 8
"""As many documents in a row hold a hundred distinct words, however short they are."""


def draw(source: Path, snapshot: Snapshot, count: int, seed: int = 1, *, shapes: bool = False) -> Queries:
    """Draw `count` queries of each length from distinct words of one document, without stop words.

    With `shapes`, the queries are of other kinds: any length from 1 to 30 words, two rare words with two frequent ones,
    and whole paragraphs of 20 to 60 words.

    The words of queries of up to 10 words are drawn in proportion to their frequency in the document. Queries of 100
    words have the words with the highest tf·idf. A document with too few words is joined with the following ones. The
    same seed draws the same queries.
    """
    chance = random.Random(seed)
    number = _lines(source)
    kinds = ("1-30", "rare and frequent", "paragraph") if shapes else ("2-5", "10", "100")
    first = {kind: [chance.randrange(number) for _ in range(count)] for kind in kinds}
    wanted = {at % number for places in first.values() for place in places for at in range(place, place + _NEIGHBOURS)}
    with _opened(source) as stream:
        lines = {at: line for at, line in enumerate(stream) if at in wanted}

    def terms(place: int, least: int) -> list[str]:
        found: list[str] = []
        for at in range(place, place + _NEIGHBOURS):
            if len(set(found)) < least:
                found += _terms(lines[at % number], snapshot)
        return found

    def short(place: int, size: int) -> list[str]:
        occurrences = terms(place, size)
        chance.shuffle(occurrences)
        return list(dict.fromkeys(occurrences))[:size]

    def telling(place: int, size: int) -> list[str]:
        counts = Counter(terms(place, size))
        idf = np.log(snapshot.totals[0] / document_frequency(snapshot, list(counts)))
        weights = {term: count * weight for (term, count), weight in zip(counts.items(), idf.tolist(), strict=True)}
        return sorted(weights, key=lambda term: (-weights[term], term))[:size]

    def mixed(place: int) -> list[str]:
        found = sorted(set(terms(place, 4)))
        frequency = document_frequency(snapshot, found)
        return [found[at] for at in np.argsort(frequency, kind="stable")[[0, 1, -2, -1]].tolist()]

    def paragraph(place: int) -> list[str]:
        occurrences, size = terms(place, 60), chance.randint(20, 60)
        start = chance.randrange(max(1, len(occurrences) - size))
        return list(dict.fromkeys(occurrences[start : start + size]))

    rules: dict[str, Callable[[int], list[str]]] = {
        "1-30": lambda place: short(place, chance.randint(1, 30)),
        "rare and frequent": mixed,
        "paragraph": paragraph,
        "2-5": lambda place: short(place, chance.randint(2, 5)),
        "10": lambda place: short(place, 10),
        "100": lambda place: telling(place, 100),
    }
    return {kind: [rules[kind](place) for place in places] for kind, places in first.items()}


def document_frequency(snapshot: Snapshot, terms: list[str]) -> np.ndarray:
    found = snapshot.statistics([f"en:{term}" for term in terms]).document_frequency
    if not found.all():
        raise RuntimeError(f"the index lacks words of its own collection: {[terms[i] for i in np.flatnonzero(found == 0)[:5]]}")
    return found


def _terms(line: bytes, snapshot: Snapshot) -> list[str]:
    """The terms of a document in reading order, stop words left out."""
    found = (snapshot.analyzer.term(word, "en") for word in words("\n".join(texts(json.loads(line)))))
    return [term for term in found if term is not None]


def _lines(source: Path) -> int:
    with _opened(source) as stream:
        return sum(1 for _ in stream)


def _opened(source: Path) -> AbstractContextManager[IO[bytes]]:
    return gzip.open(source, "rb") if source.suffix == ".gz" else open(source, "rb")


def write_terms(snapshot: Snapshot, target: Path) -> None:
    """All documents as perikope indexed them, one per line: `id<TAB>term term …`, without stop words."""
    if snapshot.languages != ["en"]:
        raise RuntimeError(f"only English collections can be compared, this one holds {snapshot.languages}")
    unfinished = target.with_suffix(".part")
    with open(unfinished, "w", encoding="utf-8") as stream:
        stream.writelines(f"{name}\t{terms}\n" for name, terms in _documents(snapshot))
    unfinished.rename(target)


def _documents(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for segment in snapshot.segments:
        names = [segment.terms.text(number).partition(":")[2] for number in range(len(segment.terms))]
        for document in range(segment.documents):
            yield segment.document_id(document), " ".join([names[token] for token in segment.tokens(document).tolist() if token != STOP])
