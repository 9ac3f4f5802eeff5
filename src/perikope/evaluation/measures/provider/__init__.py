"""Registers the measures of perikope in ir_measures, and thereby in PyTerrier, which evaluates with ir_measures.

    from perikope.evaluation.measures import provider

    provider.register()
    ir_measures.calc_aggregate([ir_measures.parse_measure("APD"), ir_measures.nDCG @ 10], qrels, run)

    pt.Experiment(systems, topics, qrels, eval_metrics=provider.measures("MAP(D) PRES@100 nDCG@10"))

ir_measures does not discover providers, so a program must call `register` once. Measures that ir_measures already has
(nDCG, AP, RR, P, R, Success, Judged) are not replaced. Passages have the name `document#passage` in the column of
documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perikope.core.errors import MissingExtra

if TYPE_CHECKING:
    import ir_measures

__all__ = ["measures", "register"]


def register() -> ir_measures.Provider:
    """Register perikope's measures in ir_measures by their canonical names (`APD`, `PRES`), and return the provider.

    A second call changes nothing.
    """
    try:
        from perikope.evaluation.measures.provider.offer import offer
    except ModuleNotFoundError as error:
        if error.name != "ir_measures":
            raise
        raise MissingExtra("ir-measures", "eval") from None
    return offer()


def measures(asked: str) -> list[ir_measures.Measure]:
    """Read names of measures, separated by spaces, as perikope does, and return them as measures of ir_measures.

    Calls `register` first.

    >>> measures("MAP(D) iP[.01] MAgP(t2i=300) nDCG@10 R@5")
    [APD, iP@0.01, AgP(t2i=300), nDCG@10, R@5]
    """
    register()
    from perikope.evaluation.measures.declaration import parse_measures
    from perikope.evaluation.measures.provider.offer import theirs

    return [theirs(measure) for measure in parse_measures(asked)]
