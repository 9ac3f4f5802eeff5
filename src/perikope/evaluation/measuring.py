"""Measures the ranking of a topic by measures of any level, of names or of characters."""

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
"""Names of passages with their scores, best first."""

TextFile = tuple[str, str]
"""The path of a judgement file and its form."""


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """The values of one system for one topic."""

    values: tuple[float, ...]
    """One value per measure."""
    ranks: tuple[int, ...]
    """Ranks of the relevant results, ascending."""
    relevant: int
    """Number of passages that are judged relevant."""


class Measuring:
    """Measures rankings against grades of names or, for measures that count characters, against relevant text."""

    def __init__(self, judgements: Mapping[str, Mapping[str, int]], text: TextFile | None, index: Path) -> None:
        """`text` is the file that says which text is relevant, or None. It is read when a measure needs it.

        `index` is the folder of the index.
        """
        self.judgements = judgements
        self._text, self._index = text, index

    @cached_property
    def _file(self) -> JudgementFile:
        if self._text is None:
            raise UsageError("the measure counts characters, but no file says which text is relevant; give a file of judgements")
        return JudgementFile(*self._text, str(self._index))

    def value(self, measure: Measure, qid: str, ranking: Ranked) -> float:
        """The value of one measure for a topic's ranking."""
        return self.values([measure], qid, ranking)[0]

    def values(self, measures: Sequence[Measure], qid: str, ranking: Ranked) -> tuple[float, ...]:
        """The value of each measure for a topic's ranking."""
        names = [name for name, _ in ranking]
        extracts: list[Any] | None = None
        values = []
        for measure in measures:
            if measure.level == "names":
                values.append(measure(names, self.judgements.get(qid, {})))
                continue
            if extracts is None:
                extracts = extracts_of(list(ranking), self._file.ranges)
            results = by_document(extracts) if measure.level == "context" else extracts
            values.append(measure(results, self._file.text.get(qid, {})))
        return tuple(values)

    def figures(self, measures: Sequence[Measure], qid: str, ranking: Ranked) -> TopicFigures:
        """The values of all measures for a topic's ranking, the ranks of relevant results, and their total number."""
        relevant = {name for name, grade in self.judgements.get(qid, {}).items() if grade > 0}
        ranks = tuple(rank for rank, (name, _) in enumerate(ranking, 1) if name in relevant)
        return TopicFigures(self.values(measures, qid, ranking), ranks, len(relevant))
