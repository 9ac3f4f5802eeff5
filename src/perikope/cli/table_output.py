"""Print learned tables as lines of text."""

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
    """A learned table as text, followed by the data that it was learned from, if known."""
    if table.kind == KIND:
        tags = tag_table(table)
        lines = [*lines_of_tags(tags), *([f"learned from {count(tags.queries, 'topic')}"] if tags.queries else [])]
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
    """Yield a line of headings, then one line per tag with its weight."""
    width = max(len("tag"), *(len(printable(tag)) for tag in table.rows)) if table.rows else len("tag")
    yield f"{'tag':{width}}  weight  coverage  occurrences  logical"
    for tag, row in table.rows.items():
        coverage = "" if math.isnan(row.coverage) else f"{row.coverage:.2%}"
        logical = "x" if tag in table.logical else ""
        yield f"{printable(tag):{width}}  {row.weight:6.2f}  {coverage:>8}  {row.occurrences or '':11}  {logical}".rstrip()


def lines_of_prior(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line of headings, then one line per tenth with its weight and, if known, its counts."""
    weights = prior.table_weights(values)
    counted = [values.get(name) for name in ("relevant", "returned")]
    yield "tenth  relevant  returned  weight"
    for tenth, weight in enumerate(weights):
        counts = [column[tenth] if isinstance(column, list) and len(column) == len(weights) else "" for column in counted]
        yield f"{tenth + 1:5}  {counts[0]:8}  {counts[1]:8}  {weight:6.2f}"


def _lines_of_combination(learned: combination.Combination) -> Iterator[str]:
    width = max(map(len, learned.features))
    if isinstance(learned, combination.LinearCombination):
        yield f"{'feature':{width}}  weight   ({learned.normalize}; largest first)"
        for name, weight in sorted(zip(learned.features, learned.weights, strict=True), key=lambda row: -abs(row[1])):
            yield f"{name:{width}}  {weight:7.4f}  {FEATURES[name].meaning}"
        return
    decisions = Counter(learned.features[feature] for tree in learned.trees for feature in tree.feature if feature >= 0)
    yield f"{count(len(learned.trees), 'tree')}, {count(sum(decisions.values()), 'decision')} ({learned.normalize}); decided by"
    for name, times in decisions.most_common():
        yield f"{name:{width}}  {times:6}×  {FEATURES[name].meaning}"


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
