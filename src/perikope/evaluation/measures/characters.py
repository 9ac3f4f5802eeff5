"""Measures of the INEX ad hoc track, which count returned and relevant characters.

A result is a range of a document's text, and a judgement says which text of a document is relevant. The measures iP and
AiP are for the focused task, in which results form one list. The measures gP, gR and AgP are for the
relevant-in-context task, in which results are read document by document: the results of a document follow each other
and do not overlap.

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
"""Start and length of ranges of text, in characters."""


class Stretch(Protocol):
    """A result: `length` characters of a document from `start`, such as `perikope.evaluation.io.inex.Extract`."""

    @property
    def document(self) -> str:
        """The id of the document."""

    @property
    def start(self) -> int:
        """The offset of the first character."""

    @property
    def length(self) -> int:
        """Number of characters."""


class Relevant(Protocol):
    """The relevant text of a document, such as `perikope.evaluation.io.inex.RelevantText`."""

    @property
    def ranges(self) -> Ranges:
        """Start and length of each range; ranges may overlap."""


Beta = Annotated[
    float, Range(0, low_open=True), "Weight β of recall in the F measure of a document; above 1, recall has more weight than precision."
]
Tolerance = Annotated[
    int | None, Range(1), "Irrelevant characters after which the reader leaves a document; with none, all returned text is read."
]


@measure("iP", level="characters")
def interpolated_precision(ranked: Sequence[Stretch], judged: Mapping[str, Relevant], cutoff: float) -> float:
    """The highest precision of characters at a recall of x or more: `max P(r) over all r with R(r) ≥ x`.

    After r results, precision is relevant characters returned ÷ characters returned, and recall is relevant characters
    returned ÷ relevant characters. Relevant text that is returned twice is counted once as relevant, twice as returned.

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


@measure("gP", level="context", ranks_documents=True)
def generalised_precision(
    ranked: Sequence[Stretch], judged: Mapping[str, Relevant], cutoff: int, *, beta: Beta = 1.0, t2i: Tolerance = None
) -> float:
    """The mean score of the first r documents, or of all documents if there are fewer: `Σ_{i≤r} S(d_i) / r`.

    The score of a document is the F measure of the text read, `(1 + β²) P R / (β² P + R)`. T2I(n) means tolerance to
    irrelevance: the reader stops after n characters that are not relevant, and only the text up to there is read.

    >>> from perikope.evaluation.io.inex import Extract, RelevantText
    >>> generalised_precision([Extract("B", 0, 900, 1.0)], {"B": RelevantText(((0, 300),), 300, 900, 0)}, 10)
    0.5
    """
    scores = [score for score, _ in _documents(ranked, judged, beta, t2i)][:cutoff]
    return sum(scores) / len(scores) if scores else 0.0


@measure("gR", level="context", ranks_documents=True)
def generalised_recall(ranked: Sequence[Stretch], judged: Mapping[str, Relevant], cutoff: int) -> float:
    """Share of the R documents with relevant text that are among the first r documents: `relevant@r / R`.

    >>> from perikope.evaluation.io.inex import Extract, RelevantText
    >>> relevant = RelevantText(((0, 300),), 300, 900, 0)
    >>> generalised_recall([Extract("B", 200, 400, 1.0)], {"B": relevant, "C": relevant}, 10)
    0.5
    """
    relevant = sum(bool(_merged(text.ranges)) for text in judged.values())
    found_documents = sum(is_relevant for _, is_relevant in list(_documents(ranked, judged, 1.0, None))[:cutoff])
    return found_documents / relevant if relevant else 0.0


@measure("AgP", aliases=("MAgP",), level="context", short={"T2I": "t2i"})
def average_generalised_precision(
    ranked: Sequence[Stretch], judged: Mapping[str, Relevant], *, beta: Beta = 1.0, t2i: Tolerance = None
) -> float:
    """Sum of gP at the ranks of relevant documents, divided by their total number R: `Σ_{d_r relevant} gP@r / R`.

    β = 1 gives the harmonic mean, as in the papers. The official program uses 0.25 by default. `T2I(300)` means
    `AgP(t2i=300)`; gP describes this parameter.

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
    """Group the results by document, in order. Returns pairs of a document id and its results.

    Raises an `InputError` if the results of a document do not follow each other, or if they overlap.
    """
    documents: dict[str, list[Stretch]] = {}
    last, covered = "", list[tuple[int, int]]()
    for result in ranked:
        wrong = ""
        if result.document != last:
            wrong = (
                "come after results of another document: results of one document must be consecutive"
                if result.document in documents
                else ""
            )
            last, covered = result.document, []
        if not _cover(result, covered):
            wrong = "overlap an earlier result: results of one document must not overlap"
        if wrong:
            where = f"{result.length} characters of {result.document!r} from {result.start} on"
            raise InputError(f"{where} {wrong}", line=getattr(result, "line", 0) or None)
        documents.setdefault(last, []).append(result)
    return list(documents.items())


AnyStretch = TypeVar("AnyStretch", bound=Stretch)


def by_document(ranked: Iterable[AnyStretch]) -> list[AnyStretch]:
    """The results grouped by document, in the order of the first result of each document.

    A result that overlaps an earlier result of its document is left out.
    """
    documents: dict[str, list[AnyStretch]] = {}
    covered: dict[str, list[tuple[int, int]]] = {}
    for result in ranked:
        if _cover(result, covered.setdefault(result.document, [])):
            documents.setdefault(result.document, []).append(result)
    return [result for results in documents.values() for result in results]


def _cover(result: Stretch, covered: list[tuple[int, int]]) -> bool:
    """Whether a result overlaps none of the ranges in `covered`, which are sorted pairs of start and end.

    If so, the range of the result is added to `covered`. An empty result overlaps nothing and is not added.
    """
    start, end = result.start, result.start + result.length
    i = bisect_left(covered, (start, end))
    if start < end and ((i and covered[i - 1][1] > start) or (i < len(covered) and covered[i][0] < end)):
        return False
    if start < end:
        covered.insert(i, (start, end))
    return True


def _curve(ranked: Sequence[Stretch], judged: Mapping[str, Relevant]) -> tuple[list[float], list[float]]:
    """The recall and the precision after each result, as two lists. Both are empty if nothing is relevant."""
    missing = {document: _merged(text.ranges) for document, text in judged.items()}
    relevant = sum(end - start for ranges in missing.values() for start, end in ranges)
    relevant_returned, returned = 0, 0
    recalls, precisions = [], []
    for result in ranked:
        left = missing.get(result.document, [])
        overlap, missing[result.document] = _take(left, result.start, result.start + result.length)
        relevant_returned += overlap
        returned += result.length
        if relevant and returned:
            recalls.append(relevant_returned / relevant)
            precisions.append(relevant_returned / returned)
    return recalls, precisions


def _highest_from(precisions: Sequence[float]) -> list[float]:
    """For each index, the highest value at this index or a later one; then one more value, 0."""
    return [*reversed(list(accumulate(reversed(precisions), max))), 0.0]


def _documents(ranked: Sequence[Stretch], judged: Mapping[str, Relevant], beta: float, t2i: int | None) -> Iterator[tuple[float, bool]]:
    """Yield the score of each returned document, and whether the document has relevant text."""
    for document, results in in_context(ranked):
        relevant = _merged(judged[document].ranges) if document in judged else []
        if not relevant:
            yield 0.0, False
            continue
        size = sum(end - start for start, end in relevant)
        relevant_read, irrelevant = _read(results, relevant, t2i)
        if not relevant_read:
            yield 0.0, True
            continue
        precision, recall = relevant_read / (relevant_read + irrelevant), relevant_read / size
        yield (1 + beta**2) * precision * recall / (beta**2 * precision + recall), True


def _read(results: Iterable[Stretch], relevant: Sequence[tuple[int, int]], t2i: int | None) -> tuple[int, int]:
    """The number of relevant characters read and of other characters read.

    The reader stops after `t2i` other characters, or never if `t2i` is None. `relevant` has sorted pairs of start and
    end.
    """
    relevant_read, irrelevant = 0, 0
    for result in results:
        at, last = result.start, result.start + result.length
        for start, end in [(max(start, at), min(end, last)) for start, end in relevant if start < last and end > at] + [(last, last)]:
            irrelevant += start - at
            if t2i is not None and irrelevant >= t2i:
                return relevant_read, t2i
            relevant_read += end - start
            at = end
    return relevant_read, irrelevant


def _take(ranges: list[tuple[int, int]], start: int, end: int) -> tuple[int, list[tuple[int, int]]]:
    """Cut the part between `start` and `end` out of ranges, which are pairs of start and end.

    Returns the number of characters cut out, and the remaining ranges.
    """
    overlapping, left = 0, []
    for first, last in ranges:
        overlap = max(0, min(last, end) - max(first, start))
        if overlap:
            overlapping += overlap
            left += [(a, b) for a, b in ((first, start), (end, last)) if a < b]
        else:
            left.append((first, last))
    return overlapping, left


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Convert pairs of start and length to sorted pairs of start and end, and merge ranges that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for start, length in sorted(ranges):
        if length <= 0:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], start + length))
        else:
            merged.append((start, start + length))
    return merged
