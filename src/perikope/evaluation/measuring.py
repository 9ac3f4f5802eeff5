"""Figures of a topic's ranking by measures of every level: of names, and of the characters that names stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from perikope.core.errors import UsageError
from perikope.evaluation.io.spans import extracts_of
from perikope.evaluation.measures import Measure
from perikope.evaluation.measures.characters import by_document
from perikope.evaluation.measures.files import JudgementFile

Ranked = Sequence[tuple[str, float]]
"""Names with their scores, best first."""

TextFile = tuple[str, str]
"""A file of judgements and its form."""


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """A topic under a system."""

    values: tuple[float, ...]
    """In the order of the measures."""
    ranks: tuple[int, ...]
    """Of the relevant results, rising."""
    relevant: int


class Measuring:
    """Measures rankings against the judgements of names, and where measures count characters, against relevant text."""

    def __init__(self, judgements: Mapping[str, Mapping[str, int]], text: TextFile | None, index: Path) -> None:
        """`text` is the file that says which text is relevant; it is read when it is asked for."""
        self.judgements = judgements
        self._text, self._index = text, index

    @cached_property
    def _file(self) -> JudgementFile:
        if self._text is None:
            raise UsageError("the measure counts characters, and no file says which text is relevant")
        return JudgementFile(*self._text, str(self._index))

    def value(self, measure: Measure, qid: str, ranking: Ranked) -> float:
        """The value of a topic."""
        return self.values([measure], qid, ranking)[0]

    def values(self, measures: Sequence[Measure], qid: str, ranking: Ranked) -> tuple[float, ...]:
        """The value of a topic by each measure."""
        names = [name for name, _ in ranking]
        stretches: list[Any] | None = None
        found = []
        for measure in measures:
            if measure.level == "names":
                found.append(measure(names, self.judgements.get(qid, {})))
                continue
            if stretches is None:
                stretches = extracts_of(list(ranking), self._file.ranges)
            results = by_document(stretches) if measure.level == "context" else stretches
            found.append(measure(results, self._file.text.get(qid, {})))
        return tuple(found)

    def figures(self, measures: Sequence[Measure], qid: str, ranking: Ranked) -> TopicFigures:
        """All that is reported of a topic."""
        relevant = {name for name, grade in self.judgements.get(qid, {}).items() if grade > 0}
        ranks = tuple(rank for rank, (name, _) in enumerate(ranking, 1) if name in relevant)
        return TopicFigures(self.values(measures, qid, ranking), ranks, len(relevant))
