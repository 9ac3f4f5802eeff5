"""The cost of filters, and what they save, for perikope alone: `python -m benchmarks filters`.

The same queries run without a filter and with more and more selective ones. Masks are warm, as they are for a filter
that is used more than once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.common import Table, publish
from benchmarks.contest import PERIKOPE, prepare
from benchmarks.fetch import datasets
from benchmarks.queries import draw
from perikope.fetch.filters import Ids, parse_filter
from perikope.fetch.models import parse_fetch_model
from perikope.fetch.search import fetch
from perikope.query.terms import Query


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks filters", description=__doc__)
    parser.add_argument("--collection", default="short", choices=["short", "long", "large"])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    dataset = datasets(options.collection)[0]
    prepare(dataset, [PERIKOPE])
    snapshot, model = dataset.snapshot(), parse_fetch_model("bm25")
    chance = np.random.default_rng(1)
    ids = frozenset(snapshot.document_id(int(number)) for number in chance.choice(snapshot.numbers, 100, replace=False))
    filters = {
        "no filter": None,
        "half of the documents: year<2005": parse_filter("year<2005"),
        "one in 30: year=2007": parse_filter("year=2007"),
        "100 documents by id": Ids(ids),
    }
    points = [(length, k) for length in ("2-5", "10", "100") for k in (10, 1000)]
    table = Table(f"{dataset.title}: ms a query with a filter, medians", ("perikope", *(f"{length} terms, k={k}" for length, k in points)))
    drawn = draw(dataset.sources[0], snapshot, options.queries)
    queries = {
        length: [Query("", tuple(f"en:{term}" for term in terms), (1.0,) * len(terms)) for terms in drawn[length]] for length, _ in points
    }
    for label, condition in filters.items():
        cells = []
        for length, k in points:
            best = np.full(len(queries[length]), np.inf)
            for _ in range(4):
                for i, query in enumerate(queries[length]):
                    started = time.perf_counter()
                    fetch(snapshot, query, model, k, condition)
                    best[i] = min(best[i], time.perf_counter() - started)
            cells.append(f"{1000 * np.median(best):.3f}")
        table.rows.append([label, *cells])
    publish([table], options.markdown)
