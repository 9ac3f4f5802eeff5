"""Reads judgements and runs from files, and converts them to the types that measures of each level need.

The form of the judgements decides which measures are possible. TREC, CLEF-IP and BEIR files grade names, and allow
measures of names. INEX files allow measures of characters, and measures of names for documents. With an index, which
has the range of each passage, files that grade names also allow measures of characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.evaluation.measures.characters import by_document
from perikope.evaluation.measures.declaration import Level, Measure, parse_measures
from perikope.evaluation.measures.evaluation import Evaluation, evaluate, merge, ranked_names

if TYPE_CHECKING:
    from perikope.evaluation.io.fitting import FittedJudgements
    from perikope.evaluation.io.spans import PassageRanges


def judgements_in(path: str, form: str = "auto") -> dict[str, dict[str, int]]:
    """Read the judgements of a file with `read_judgements`. Raises an `InputError` if there are none."""
    from perikope.evaluation.io.judgements import read_judgements

    judgements = read_judgements(path, form)
    if not judgements:
        raise InputError("is empty: there is no judgement in it; name another file", path=path)
    return judgements


class JudgementFile:
    """The judgements of a file. `index` is the folder of the index of the judged passages, or empty.

    Measures of characters need the index, unless judgements and run are INEX files.
    """

    def __init__(self, path: str, form: str = "auto", index: str = "") -> None:
        from perikope.evaluation.io.judgements import judgement_form

        self.path = path
        self.index = index
        self.form = judgement_form(path) if form == "auto" else form
        self.names = judgements_in(path, self.form)

    @cached_property
    def ranges(self) -> PassageRanges:
        """The ranges of passages, in characters of source files for INEX judgements, else of documents."""
        from perikope.evaluation.io.spans import PassageRanges

        return PassageRanges(self.index, "file" if self.form == "inex" else "text")

    @cached_property
    def text(self) -> Mapping[str, Mapping[str, Any]]:
        """Relevant text by query id and document. A passage with a relevant grade is relevant as a whole."""
        from perikope.evaluation.io import inex, spans

        if self.form == "inex":
            return inex.read_judgements(self.path)
        judged_spans = spans.read_spans(self.path) if self.form == "spans" else spans.spans_of_judgements(self.fitted.names)
        return spans.relevant_text(judged_spans, self.ranges, self.path)

    @cached_property
    def fitted(self) -> FittedJudgements:
        """The judgements in the names that rankings of the index have."""
        from pathlib import Path

        from perikope.evaluation.io.fitting import fit_judgements
        from perikope.index.reader import Snapshot

        return fit_judgements(self.path, Snapshot.open(Path(self.index)), self.form)

    def names_for(self, run: RunFile) -> dict[str, dict[str, int]]:
        """The judgements, by the names in the file.

        If the run has names of another kind and there is an index, names are those in rankings of the index.
        """
        from perikope.evaluation.io.judgements import disagreement

        return self.fitted.names if self.index and disagreement(self.names, run.names) else self.names

    def run(self, path: str, form: str = "auto") -> RunFile:
        """Read a run that will be measured against these judgements."""
        return RunFile(path, self, form)

    def evaluate(self, measures: str | Iterable[str | Measure], run: RunFile, *, only_run_queries: bool = False) -> Evaluation:
        """Evaluate a run by measures of any level; see `perikope.evaluation.measures.evaluate`."""
        wanted = {measure.asked or str(measure): measure for measure in parse_measures(measures)}
        levels: dict[Level, list[Measure]] = {}
        for measure in wanted.values():
            levels.setdefault(measure.level, []).append(measure)
        evaluations = []
        for level, of_level in levels.items():
            try:
                judged = self.names_for(run) if level == "names" else self._text_for(of_level[0], run.form)
                evaluations.append(evaluate(of_level, judged, run.of(level), only_run_queries=only_run_queries))
            except InputError as error:
                # The error of a measure has the line of the wrong result, but not the path of the run file.
                raise InputError(str(error), path=run.path, line=error.line) if error.path is None else error from error
        return merge(evaluations, wanted)

    def _text_for(self, measure: Measure, run_form: str) -> Mapping[str, Mapping[str, Any]]:
        if not self.index and self.form != "inex":
            raise UsageError(
                f"{measure.asked} counts characters, and {self.path} judges passages: give their index (--index), which has their text, "
                "or use INEX judgements"
            )
        if not self.index and run_form != "inex":
            raise UsageError(
                f"{measure.asked} counts characters, and the run names passages: give their index (--index), which has their text, "
                "or use an INEX run"
            )
        if self.form != "inex" and run_form == "inex":
            raise UsageError(
                f"an INEX run names characters of files, but {self.path} judges passages: use a run of passages, or INEX judgements"
            )
        return self.text


class RunFile:
    """The results of a run file, in the types that measures of each level need."""

    def __init__(self, path: str, judgements: JudgementFile, form: str = "auto") -> None:
        from pathlib import Path

        from perikope.evaluation.io.runs import read_run, run_form

        self.path = path
        self.form = run_form(Path(path)) if form == "auto" else form
        self.names = read_run(path, self.form)
        self._judgements = judgements

    def of(self, level: Level) -> Mapping[str, Any]:
        """The results by query id, for measures of a level. For `context`, a run of passages is grouped by document."""
        if level == "names":
            return self.names
        if level == "context" and self.form != "inex":
            return {qid: by_document(results) for qid, results in self.extracts.items()}
        return self.extracts

    @cached_property
    def extracts(self) -> Mapping[str, list[Any]]:
        """The results as ranges of text, by query id. For a run of passages, only judged queries are included."""
        from perikope.evaluation.io import inex
        from perikope.evaluation.io.spans import extracts_of

        if self.form == "inex":
            return inex.read_run(self.path)
        try:
            judged = {qid: scores for qid, scores in self.names.items() if qid in self._judgements.names}
            return {
                qid: extracts_of([(name, scores[name]) for name in ranked_names(scores)], self._judgements.ranges)
                for qid, scores in judged.items()
            }
        except PerikopeError as error:
            raise InputError(f"the run names an unknown result: {error}", path=self.path) from error
