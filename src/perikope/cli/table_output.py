"""Tables that were learned, in lines to read."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from perikope.browse.models import combination, prior
from perikope.browse.models.features import FEATURES
from perikope.browse.tags import KIND, TagTable, tag_table
from perikope.cli.output import count, printable
from perikope.index.saved_tables import SavedTable


def lines_of(table: SavedTable) -> str:
    """A table of any kind; what it was learned from stands at the end."""
    if table.kind == KIND:
        lines = [*lines_of_tags(found := tag_table(table)), *([f"learned from {count(found.queries, 'topic')}"] if found.queries else [])]
    elif table.kind == prior.KIND:
        lines = list(lines_of_prior(table.values))
    elif table.kind == combination.KIND:
        lines = list(_lines_of_combination(combination.combination_of(table)))
    else:
        lines = [printable(json.dumps(dict(table.values), ensure_ascii=False))]
    training = table.values.get("training")
    if isinstance(training, dict) and training:
        lines += ["learned from:", *(f"  {printable(name)}: {printable(_written(value))}" for name, value in training.items())]
    return "\n".join(lines)


def lines_of_tags(table: TagTable) -> Iterator[str]:
    """Tags with their weights."""
    width = max(len("tag"), *(len(printable(tag)) for tag in table.rows)) if table.rows else len("tag")
    yield f"{'tag':{width}}  weight  coverage  occurrences  logical"
    for tag, row in table.rows.items():
        coverage = "" if math.isnan(row.coverage) else f"{row.coverage:.2%}"
        logical = "x" if tag in table.logical else ""
        yield f"{printable(tag):{width}}  {row.weight:6.2f}  {coverage:>8}  {row.occurrences or '':11}  {logical}".rstrip()


def lines_of_prior(values: Mapping[str, Any]) -> Iterator[str]:
    """Tenths with their weights, and what these were counted from where that is known."""
    weights = prior.table_weights(values)
    counted = [values.get(name) for name in ("relevant", "returned")]
    yield "tenth  relevant  returned  weight"
    for tenth, weight in enumerate(weights):
        own = [column[tenth] if isinstance(column, list) and len(column) == len(weights) else "" for column in counted]
        yield f"{tenth + 1:5}  {own[0]:8}  {own[1]:8}  {weight:6.2f}"


def _lines_of_combination(found: combination.Combination) -> Iterator[str]:
    width = max(map(len, found.features))
    if isinstance(found, combination.LinearCombination):
        yield f"{'feature':{width}}  weight   ({found.normalize}; heaviest first)"
        for name, weight in sorted(zip(found.features, found.weights, strict=True), key=lambda row: -abs(row[1])):
            yield f"{name:{width}}  {weight:7.4f}  {FEATURES[name].meaning}"
        return
    decisions = Counter(found.features[feature] for tree in found.trees for feature in tree.feature if feature >= 0)
    yield f"{count(len(found.trees), 'tree')}, {count(sum(decisions.values()), 'decision')} ({found.normalize}); decided by"
    for name, times in decisions.most_common():
        yield f"{name:{width}}  {times:6}×  {FEATURES[name].meaning}"


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
