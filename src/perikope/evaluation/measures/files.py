"""Judgements and runs from files, as measures of every level take them.

Which measures can be asked for, the judgements decide: those of names (TREC, CLEF-IP, BEIR) have measures of names; INEX files have
measures of characters, and of names for their documents. With an index, which knows where passages stand, names have characters too.
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
    from perikope.evaluation.io.spans import PassageRanges


def judgements_in(path: str, form: str = "auto") -> dict[str, dict[str, int]]:
    """The judgements of a file as `read_judgements` gives them; one that holds none is an error, since nothing can be measured by it."""
    from perikope.evaluation.io.judgements import read_judgements

    found = read_judgements(path, form)
    if not found:
        raise InputError("is empty: there is no judgement in it", path=path)
    return found


class JudgementFile:
    """The judgements of a file; `index` is the folder of an index that knows where the passages stand."""

    def __init__(self, path: str, form: str = "auto", index: str = "") -> None:
        from perikope.evaluation.io.judgements import judgement_form

        self.path = path
        self.index = index
        self.form = judgement_form(path) if form == "auto" else form
        self.names = judgements_in(path, self.form)

    @cached_property
    def ranges(self) -> PassageRanges:
        """Where passages stand, in the text that the judgements speak of."""
        from perikope.evaluation.io.spans import PassageRanges

        return PassageRanges(self.index, "file" if self.form == "inex" else "text")

    @cached_property
    def text(self) -> Mapping[str, Mapping[str, Any]]:
        """The relevant text of documents, by query id; of judgements of whole passages, all of the relevant ones."""
        from perikope.evaluation.io import inex, spans

        if self.form == "inex":
            return inex.read_judgements(self.path)
        found = spans.read_spans(self.path) if self.form == "spans" else spans.spans_of_judgements(self.names)
        return spans.relevant_text(found, self.ranges, self.path)

    def run(self, path: str, form: str = "auto") -> RunFile:
        """A run to be measured against these judgements."""
        return RunFile(path, self, form)

    def evaluate(self, measures: str | Iterable[str | Measure], run: RunFile, *, only_run_queries: bool = False) -> Evaluation:
        """Measure a run by measures of any level."""
        wanted = {measure.asked or str(measure): measure for measure in parse_measures(measures)}
        levels: dict[Level, list[Measure]] = {}
        for measure in wanted.values():
            levels.setdefault(measure.level, []).append(measure)
        found = []
        for level, of_level in levels.items():
            try:
                judged = self.names if level == "names" else self._text_for(of_level[0], run.form)
                found.append(evaluate(of_level, judged, run.of(level), only_run_queries=only_run_queries))
            except InputError as error:
                # A measure knows the line of a result that it refuses, and not the file.
                raise InputError(str(error), path=run.path, line=error.line) if error.path is None else error from error
        return merge(found, wanted)

    def _text_for(self, measure: Measure, run_form: str) -> Mapping[str, Mapping[str, Any]]:
        if not self.index and self.form != "inex":
            raise UsageError(
                f"{measure.asked} counts characters, and {self.path} names passages: say with --index where these stand, "
                "or give INEX judgements"
            )
        if not self.index and run_form != "inex":
            raise UsageError(
                f"{measure.asked} counts characters, and the run names passages: say with --index where these stand, or give an INEX run"
            )
        if self.form != "inex" and run_form == "inex":
            raise UsageError(
                f"an INEX run counts the characters of files, and {self.path} those of passages: give a run of passages, or INEX judgements"
            )
        return self.text


class RunFile:
    """The results of a file, as measures take them."""

    def __init__(self, path: str, judgements: JudgementFile, form: str = "auto") -> None:
        from pathlib import Path

        from perikope.evaluation.io.runs import read_run, run_form

        self.path = path
        self.form = run_form(Path(path)) if form == "auto" else form
        self.names = read_run(path, self.form)
        self._judgements = judgements

    def of(self, level: Level) -> Mapping[str, Any]:
        """The results for measures of a level; of a run of passages, relevant in context, put together by document."""
        if level == "names":
            return self.names
        if level == "context" and self.form != "inex":
            return {qid: by_document(results) for qid, results in self.extracts.items()}
        return self.extracts

    @cached_property
    def extracts(self) -> Mapping[str, list[Any]]:
        """The results as stretches of text."""
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
            raise InputError(f"{error}, which the run names", path=self.path) from error
