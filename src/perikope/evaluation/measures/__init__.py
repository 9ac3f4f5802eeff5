"""Measures of rankings, such as `nDCG@10`, `AP(rel=2)@100` or `MAP(D)`, with one function per measure.

>>> judgements = {"q1": {"d1#p1": 1, "d2#p4": 1}, "q2": {"d3#p1": 1}}
>>> run = {"q1": {"d1#p1": 9.5, "d1#p2": 7.1, "d2#p4": 6.0}}
>>> evaluate("P@2 RR", judgements, run).mean
{'P@2': 0.25, 'RR': 0.5}
"""

from perikope.evaluation.measures.declaration import MEASURES, Definition, Measure, measure, parse_measure, parse_measures
from perikope.evaluation.measures.evaluation import Evaluation, evaluate, ranked_names

__all__ = [
    "MEASURES",
    "Definition",
    "Evaluation",
    "Measure",
    "evaluate",
    "measure",
    "parse_measure",
    "parse_measures",
    "ranked_names",
]
