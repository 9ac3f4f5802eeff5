"""Characters of text, returned and relevant: the measures of the INEX ad hoc track.

A result is a stretch of a document's text, and a judgement says which text of a document is relevant. Focused results are one list (iP,
AiP). Relevant in context, results are read document by document (gP, gR, AgP): those of one document stand together and do not overlap.
Kamps, Pehcevski, Kazai, Lalmas and Robertson 2008; Arvola, Geva, Kamps, Schenkel, Trotman and Vainio 2011.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Protocol, TypeVar

from perikope.core.errors import InputError
from perikope.core.parameters import Range
from perikope.evaluation.measures.declaration import measure

Ranges = Sequence[tuple[int, int]]
"""Start and length of stretches of text."""


class Stretch(Protocol):
    """A result: `length` characters of a document from `start` on; `perikope.evaluation.io.inex.Extract` is one."""

    @property
    def document(self) -> str:
        """The id of the document."""

    @property
    def start(self) -> int:
        """The place of its first character."""

    @property
    def length(self) -> int:
        """How many characters it has."""


class Relevant(Protocol):
    """The relevant text of a document; `perikope.evaluation.io.inex.RelevantText` is one."""

    @property
    def ranges(self) -> Ranges:
        """Start and length of each stretch; what stands in two of them is relevant once."""


Beta = Annotated[float, Range(0, low_open=True), "Weight β of recall in the F of a document; above 1, recall counts more."]
Tolerance = Annotated[
    int | None, Range(1), "Irrelevant characters after which the reader leaves a document; none reads all that is returned."
]


@measure("iP", level="characters")
def interpolated_precision(ranked: Sequence[Stretch], judged: Mapping[str, Relevant], cutoff: float) -> float:
    """The highest precision at a recall of x or more, both of characters: `max P(r) where R(r) ≥ x`.

    Precision after r results is relevant text found ÷ text returned, recall is relevant text found ÷ relevant text. Relevant text that is
    returned twice is found once, and has to be read twice.

    >>> from perikope.evaluation.io.inex import Extract, RelevantText
    >>> run = [Extract("A", 150, 200, 2.0), Extract("C", 0, 100, 1.0)]
    >>> interpolated_precision(run, {"A": RelevantText(((100, 200),), 200, 500, 100)}, 0.01)
    0.75
    """
    recalls, precisions = _curve(ranked, judged)
    return _highest_from(precisions)[bisect_left(recalls, cutoff)]


@measure("AiP", aliases=("MAiP",), level="characters")
def average_interpolated_precision(ranked: Sequence[Stretch], judged: Mapping[str, Relevant]) -> float:
    """The mean of the interpolated precision at the 101 levels of recall 0.00, 0.01 … 1.00: `Σ_i iP@(i/100) / 101`.

    >>> from perikope.evaluation.io.inex import Extract, RelevantText
    >>> average_interpolated_precision([Extract("A", 100, 200, 1.0)], {"A": RelevantText(((100, 200),), 200, 500, 100)})
    1.0
    """
    recalls, precisions = _curve(ranked, judged)
    highest = _highest_from(precisions)
    return sum(highest[bisect_left(recalls, level / 100)] for level in range(101)) / 101


@measure("gP", level="context")
def generalised_precision(
    ranked: Sequence[Stretch], judged: Mapping[str, Relevant], cutoff: int, *, beta: Beta = 1.0, t2i: Tolerance = None
) -> float:
    """The mean score of the first r documents: `Σ_{i≤r} S(d_i) / r`; a list that is shorter keeps its last value.

    The score of a document is the F of what was read of it, `(1 + β²) P R / (β² P + R)`. With T2I(n), tolerance to irrelevance, the
    reader stops after n characters that are not relevant, and only what was read counts.

    >>> from perikope.evaluation.io.inex import Extract, RelevantText
    >>> generalised_precision([Extract("B", 0, 900, 1.0)], {"B": RelevantText(((0, 300),), 300, 900, 0)}, 10)
    0.5
    """
    scores = [score for score, _ in _documents(ranked, judged, beta, t2i)][:cutoff]
    return sum(scores) / len(scores) if scores else 0.0


@measure("gR", level="context")
def generalised_recall(ranked: Sequence[Stretch], judged: Mapping[str, Relevant], cutoff: int) -> float:
    """Relevant documents among the first r, of all documents with relevant text: `found / R`.

    >>> from perikope.evaluation.io.inex import Extract, RelevantText
    >>> relevant = RelevantText(((0, 300),), 300, 900, 0)
    >>> generalised_recall([Extract("B", 200, 400, 1.0)], {"B": relevant, "C": relevant}, 10)
    0.5
    """
    relevant = sum(bool(_merged(text.ranges)) for text in judged.values())
    found = sum(is_relevant for _, is_relevant in list(_documents(ranked, judged, 1.0, None))[:cutoff])
    return found / relevant if relevant else 0.0


@measure("AgP", aliases=("MAgP",), level="context", short={"T2I": "t2i"})
def average_generalised_precision(
    ranked: Sequence[Stretch], judged: Mapping[str, Relevant], *, beta: Beta = 1.0, t2i: Tolerance = None
) -> float:
    """The generalised precision at the ranks of relevant documents, of all relevant ones: `Σ_{d_r relevant} gP@r / R`.

    β = 1 is the harmonic mean of the papers, 0.25 the default of the official program. `T2I(300)` is the measure with t2i=300; see gP.

    >>> from perikope.evaluation.io.inex import Extract, RelevantText
    >>> relevant = RelevantText(((0, 300),), 300, 900, 0)
    >>> average_generalised_precision([Extract("B", 0, 300, 1.0)], {"B": relevant, "C": relevant})
    0.5
    """
    relevant = sum(bool(_merged(text.ranges)) for text in judged.values())
    total, sum_of_scores = 0.0, 0.0
    for rank, (score, is_relevant) in enumerate(_documents(ranked, judged, beta, t2i), start=1):
        sum_of_scores += score
        total += sum_of_scores / rank if is_relevant else 0.0
    return total / relevant if relevant else 0.0


def in_context(ranked: Iterable[Stretch]) -> list[tuple[str, list[Stretch]]]:
    """The results by document, in order; an error with the line where a document comes back or results overlap."""
    documents: dict[str, list[Stretch]] = {}
    last, taken = "", list[tuple[int, int]]()
    for result in ranked:
        wrong = ""
        if result.document != last:
            wrong = "stand apart from those before: results of one document must stand together" if result.document in documents else ""
            last, taken = result.document, []
        if not _fit(result, taken):
            wrong = "overlap a result before: results of one document must not overlap"
        if wrong:
            where = f"{result.length} characters of {result.document!r} from {result.start} on"
            raise InputError(f"{where} {wrong}", line=getattr(result, "line", 0) or None)
        documents.setdefault(last, []).append(result)
    return list(documents.items())


AnyStretch = TypeVar("AnyStretch", bound=Stretch)


def by_document(ranked: Iterable[AnyStretch]) -> list[AnyStretch]:
    """The results put together by document, at the place of its first; one that overlaps an earlier one is left out."""
    documents: dict[str, list[AnyStretch]] = {}
    taken: dict[str, list[tuple[int, int]]] = {}
    for result in ranked:
        if _fit(result, taken.setdefault(result.document, [])):
            documents.setdefault(result.document, []).append(result)
    return [result for results in documents.values() for result in results]


def _fit(result: Stretch, taken: list[tuple[int, int]]) -> bool:
    """Whether none of its characters is taken; they are afterwards. `taken` are starts and ends in order."""
    start, end = result.start, result.start + result.length
    place = bisect_left(taken, (start, end))
    if start < end and ((place and taken[place - 1][1] > start) or (place < len(taken) and taken[place][0] < end)):
        return False
    if start < end:
        taken.insert(place, (start, end))
    return True


def _curve(ranked: Sequence[Stretch], judged: Mapping[str, Relevant]) -> tuple[list[float], list[float]]:
    """Recall and precision after each result; recall never falls."""
    missing = {document: _merged(text.ranges) for document, text in judged.items()}
    relevant = sum(end - start for ranges in missing.values() for start, end in ranges)
    found, returned = 0, 0
    recalls, precisions = [], []
    for result in ranked:
        left = missing.get(result.document, [])
        overlap, missing[result.document] = _take(left, result.start, result.start + result.length)
        found += overlap
        returned += result.length
        if relevant and returned:
            recalls.append(found / relevant)
            precisions.append(found / returned)
    return recalls, precisions


def _highest_from(precisions: Sequence[float]) -> list[float]:
    """For each place the highest value there or later, and 0 behind the last."""
    return [*reversed(list(accumulate(reversed(precisions), max))), 0.0]


def _documents(ranked: Sequence[Stretch], judged: Mapping[str, Relevant], beta: float, t2i: int | None) -> Iterator[tuple[float, bool]]:
    """The score of each document, and whether it has relevant text."""
    for document, results in in_context(ranked):
        relevant = _merged(judged[document].ranges) if document in judged else []
        if not relevant:
            yield 0.0, False
            continue
        size = sum(end - start for start, end in relevant)
        found, irrelevant = _read(results, relevant, t2i)
        if not found:
            yield 0.0, True
            continue
        precision, recall = found / (found + irrelevant), found / size
        yield (1 + beta**2) * precision * recall / (beta**2 * precision + recall), True


def _read(results: Iterable[Stretch], relevant: Sequence[tuple[int, int]], t2i: int | None) -> tuple[int, int]:
    """Characters read that are relevant, and that are not, by a reader who stops after `t2i` of the latter."""
    found, irrelevant = 0, 0
    for result in results:
        at, last = result.start, result.start + result.length
        for start, end in [(max(start, at), min(end, last)) for start, end in relevant if start < last and end > at] + [(last, last)]:
            irrelevant += start - at
            if t2i is not None and irrelevant >= t2i:
                return found, t2i
            found += end - start
            at = end
    return found, irrelevant


def _take(ranges: list[tuple[int, int]], start: int, end: int) -> tuple[int, list[tuple[int, int]]]:
    """How many characters of the ranges lie from start to end, and the ranges without them."""
    taken, left = 0, []
    for first, last in ranges:
        overlap = max(0, min(last, end) - max(first, start))
        if overlap:
            taken += overlap
            left += [(a, b) for a, b in ((first, start), (end, last)) if a < b]
        else:
            left.append((first, last))
    return taken, left


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Starts and ends of the text in any of the ranges, in order, without overlap."""
    merged: list[tuple[int, int]] = []
    for start, length in sorted(ranges):
        if length <= 0:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], start + length))
        else:
            merged.append((start, start + length))
    return merged
