"""The provider of perikope's measures for ir_measures. Only this module imports ir_measures at module level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ir_measures
from ir_measures.measures import registry
from ir_measures.providers.base import Any as AnyValue
from ir_measures.util import QrelsConverter, RunConverter

from perikope.core.errors import UsageError
from perikope.core.parameters import bind
from perikope.evaluation.io.inex import Extract, RelevantText
from perikope.evaluation.measures.declaration import MEASURES, Definition, Measure
from perikope.evaluation.measures.evaluation import ranked_names


def offer() -> ir_measures.Provider:
    """Add the measures of perikope and their provider to the registries of ir_measures, and return the provider."""
    if _PROVIDER.NAME not in ir_measures.providers.registry:
        for measure in _MEASURES.values():
            aliases = [alias for alias in measure.definition.aliases if alias.isidentifier()]
            ir_measures.measures.register(measure, aliases, measure.NAME)
        ir_measures.providers.register(_PROVIDER)
        ir_measures.DefaultPipeline.providers.append(_PROVIDER)
    return _PROVIDER


def theirs(measure: Measure) -> ir_measures.Measure:
    """The ir_measures object that is equivalent to a perikope measure."""
    definition = measure.definition
    known = registry.get(definition.name)
    if known is None:
        # The measure was taken from ir_measures, and its name is in the notation of ir_measures.
        borrowed: ir_measures.Measure = ir_measures.parse_measure(definition.name)
        return borrowed
    given = {name: value for name, value in measure.arguments if value != definition.parameters[name].default}
    if measure.cutoff is not None:
        given[known.AT_PARAM] = measure.cutoff
    parameterised: ir_measures.Measure = known(**given)
    return parameterised


class _Offered(ir_measures.Measure):
    """A measure of perikope as a measure of ir_measures."""

    perikope = True
    definition: Definition

    def ours(self) -> Measure:
        """The measure of perikope, with checked parameters and cutoff."""
        parameters = {name: value for name, value in self.params.items() if name != self.AT_PARAM}
        bound = bind(self.definition.name, self.definition.parameters, parameters)
        return Measure(self.definition, tuple(bound.items()), self.definition.checked_cutoff(self.params.get(self.AT_PARAM)))


def _offered(definition: Definition) -> _Offered:
    supported = {}
    for name, parameter in definition.parameters.items():
        types = [parameter.type, *([int] if parameter.type is float else []), *([type(None)] if parameter.optional else [])]
        supported[name] = ir_measures.ParamInfo(dtype=tuple(types), default=parameter.default)
    if definition.takes_cutoff:
        types = [int, float] if definition.cutoff_is_recall else [int]
        extra = {} if definition.needs_cutoff else {"default": definition.default_cutoff}
        supported["cutoff"] = ir_measures.ParamInfo(dtype=tuple(types), required=definition.needs_cutoff, **extra)
    description = (definition.function.__doc__ or "").strip().partition("\n")[0]
    members = {
        "__name__": definition.name,
        "NAME": definition.name,
        "__doc__": definition.function.__doc__,
        "SHORT_DESC": description,
        "SUPPORTED_PARAMS": supported,
        "definition": definition,
    }
    offered: _Offered = type(f"_{definition.name}", (_Offered,), members)()
    return offered


class _Provider(ir_measures.Provider):
    """Computes the measures of perikope for ir_measures."""

    NAME = "perikope"

    def __init__(self, measures: Iterable[_Offered]) -> None:
        super().__init__()
        self.SUPPORTED_MEASURES = [measure(**{name: AnyValue() for name in measure.SUPPORTED_PARAMS}) for measure in measures]

    def _evaluator(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> ir_measures.Evaluator:
        return _Evaluator([measure for measure in measures if isinstance(measure, _Offered)], qrels)

    def run_inputs(self, measures: Iterable[ir_measures.Measure]) -> list[str]:
        """The columns that a run needs for the given measures."""
        return ["query_id", "doc_id", "score", *_character_columns(measures)]

    def qrel_inputs(self, measures: Iterable[ir_measures.Measure]) -> list[str]:
        """The columns that judgements need for the given measures."""
        return ["query_id", "doc_id", "relevance", *_character_columns(measures)]


class _Evaluator(ir_measures.Evaluator):
    def __init__(self, measures: Iterable[_Offered], qrels: Any) -> None:
        self._ours = {measure: measure.ours() for measure in measures}
        needed = {ours.level == "names" for ours in self._ours.values()}
        if needed == {True, False}:
            raise UsageError("measures of names and measures of characters need different judgements; compute them in separate calls")
        self._by_name = needed != {False}
        self._judged: Mapping[str, Mapping[str, Any]] = (
            QrelsConverter(qrels).as_dict_of_dict() if self._by_name else _relevant_text(QrelsConverter(qrels))
        )
        super().__init__(list(self._ours), set(self._judged))

    def _iter_calc(self, run: Any) -> Iterator[ir_measures.Metric]:
        returned: Mapping[str, Any] = RunConverter(run).as_dict_of_dict() if self._by_name else _extracts(RunConverter(run))
        for qid, results in returned.items():
            if qid in self._judged:
                ranked = ranked_names(results) if self._by_name else results
                for measure, ours in self._ours.items():
                    yield ir_measures.Metric(query_id=qid, measure=measure, value=ours(ranked, self._judged[qid]))


def _relevant_text(qrels: QrelsConverter) -> Mapping[str, Mapping[str, Any]]:
    """Relevant text by query id and document, from rows with `start` and `length`.

    A dictionary is returned unchanged.
    """
    if isinstance(qrels.qrels, dict):
        return qrels.qrels
    ranges_of_query: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for row in _rows(qrels.qrels, "judgements"):
        ranges = ranges_of_query.setdefault(str(row.query_id), {}).setdefault(str(row.doc_id), [])
        if row.relevance > 0 and row.length > 0:
            ranges.append((int(row.start), int(row.length)))
    return {
        qid: {document: RelevantText(tuple(ranges), sum(length for _, length in ranges), -1, -1) for document, ranges in documents.items()}
        for qid, documents in ranges_of_query.items()
    }


def _extracts(run: RunConverter) -> Mapping[str, list[Any]]:
    """Ranges of text by query id, best first, from rows with `start` and `length`.

    A dictionary is returned unchanged.
    """
    if isinstance(run.run, dict):
        return run.run
    extracts: dict[str, list[Extract]] = {}
    for row in _rows(run.run, "the run"):
        extracts.setdefault(str(row.query_id), []).append(Extract(str(row.doc_id), int(row.start), int(row.length), float(row.score)))
    return {qid: sorted(results, key=lambda result: -result.score) for qid, results in extracts.items()}


def _rows(table: Any, what: str) -> Iterator[Any]:
    for row in table.itertuples() if hasattr(table, "itertuples") else table:
        if not hasattr(row, "start") or not hasattr(row, "length"):
            raise UsageError(f"measures of characters need the columns start and length; add them to {what}")
        yield row


def _character_columns(measures: Iterable[ir_measures.Measure]) -> list[str]:
    characters = any(isinstance(measure, _Offered) and measure.definition.level != "names" for measure in measures)
    return ["start", "length"] if characters else []


# Measures that ir_measures has under the same name are left out. Tests check that both give the same values.
_MEASURES = {name: _offered(definition) for name, definition in MEASURES.items() if name not in registry}
_PROVIDER = _Provider(_MEASURES.values())
