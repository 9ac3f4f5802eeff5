"""Search with patents for patents: `python -m benchmarks patents [FOLDER]`.

Every patent of a folder is searched for with its abstract and claims among all others, with and without the filters. A
second table has the ranks of other publications of the same patent, where they may be results.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import SCRATCH, Table, publish, shared_data
from perikope.core.errors import UsageError
from perikope.document.tree import Document
from perikope.fetch.filters import codes_of
from perikope.formats import read
from perikope.patents.codes import parse_code
from perikope.search.facade import Index

MODELS = ("bm25", "qsf_v_title", "qsf_section_propagate", "plm")
BEST = 10
OFF = {"code_filter": False, "date_limit": False, "family_filter": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "all filters": {},
    "all filters, codes by subclass": {"code_level": "subclass"},
    "no code filter": {"code_filter": False},
    "no date limit": {"date_limit": False},
    "no family filter": {"family_filter": False},
    "none": OFF,
    "none, fetched by claims": {**OFF, "fetch_from": "claims"},
    "none, words weighted": {**OFF, "weighted": True},
    "none, English parts only": {**OFF, "language": "en"},
}


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks patents", description=__doc__)
    parser.add_argument("folder", nargs="?", default=shared_data() / "patents", type=Path)
    parser.add_argument("--model", default="qsf_v_title")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    index = _index(options.folder)
    publish([_filters(index, options.model), _pairs(index)], options.markdown)


def _index(folder: Path) -> Index:
    target = SCRATCH / "patents"
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(exist_ok=True)
    skipped: list[str] = []
    index = Index.create(target, stemmer="porter")
    index.add(_distinct(read(folder, on_problem=lambda problem: skipped.append(str(problem)), hashes=False)))
    index.commit()
    print(f"{len(index)} documents, {index.passages} passages of {folder}; {len(skipped)} files skipped", flush=True)
    return index


def _distinct(documents: Iterator[Document]) -> Iterator[Document]:
    seen: set[str] = set()
    for document in documents:
        if document.id not in seen:
            seen.add(document.id)
            yield document


def _metadata(index: Index) -> dict[str, dict[str, Any]]:
    snapshot = index._snapshot
    located = (snapshot.locate(number) for number in range(snapshot.numbers))
    return {segment.document_id(local): segment.metadata(local) for segment, local in located}


def _filters(index: Index, model: str) -> Table:
    metadata = _metadata(index)
    subclasses = {id: {parse_code(code).at("subclass") for code in codes_of(own)} for id, own in metadata.items()}
    searchable = [id for id in metadata if _can_search(index, id)]
    columns = ("filters", "find something", "may be found", "found", "same subclass", "published before", "own family", "ms")
    table = Table(f"{len(searchable)} of {len(metadata)} patents searched against the others, {model}", columns)
    for name, setting in SETTINGS.items():
        allowed, found, best, times = [], [], [], []
        for id in searchable:
            started = time.perf_counter()
            query = index.patent_query(id, **setting)
            results = index.search(query, model=model, k=1000, language=setting.get("language", ""))
            times.append(time.perf_counter() - started)
            ranked = [document for document, _ in results.document_ranking("maxp", 1000)]
            allowed.append(index.count(query.filters))
            found.append(len(ranked))
            best += [(id, other) for other in ranked[:BEST]]
        coded = [bool(subclasses[id] & subclasses[other]) for id, other in best if subclasses[id] and subclasses[other]]
        dated = [
            metadata[other]["date"] < metadata[id]["priority_date"]
            for id, other in best
            if "priority_date" in metadata[id] and "date" in metadata[other]
        ]
        own = sum(metadata[id].get("family") == metadata[other].get("family") is not None for id, other in best)
        shares = [f"{100 * sum(column) / len(column):.0f} %" if column else "" for column in (coded, dated)]
        many = f"{sum(map(bool, found))}"
        table.rows.append([name, many, f"{median(allowed):.0f}", f"{median(found):.0f}", *shares, str(own), f"{1000 * median(times):.0f}"])
    table.notes.append(f"may be found, found: documents, medians; the next three of the {BEST} best documents of each search; ms: medians")
    pairs = [bool(subclasses[id] & subclasses[other]) for id, other in permutations(searchable, 2) if subclasses[id] and subclasses[other]]
    table.notes.append(f"by chance {100 * sum(pairs) / max(len(pairs), 1):.1f} % of two patents share a subclass")
    table.notes.append("the others have neither claims nor an abstract, themselves or in their family")
    return table


def _can_search(index: Index, id: str) -> bool:
    try:
        index.patent_query(id)
    except UsageError:
        return False
    return True


def _pairs(index: Index) -> Table:
    """The rank of the other publications of a patent, where family and later documents may be found."""
    of_patent: dict[str, list[str]] = {}
    for id, own in _metadata(index).items():
        of_patent.setdefault(own.get("patent", id), []).append(id)
    table = Table("Rank of the other publication of the same patent among all documents", ("search with", "finds", *MODELS, "fetched"))
    for id, other in (pair for ids in of_patent.values() for pair in permutations(sorted(ids), 2)):
        setting = OFF if _can_search(index, id) else {**OFF, "fetch_from": "title", "browse_from": "title"}
        query = index.patent_query(id, **setting)
        cells = []
        for model in MODELS:
            ranked = [document for document, _ in index.search(query, model=model).document_ranking("maxp", 1000)]
            cells.append(str(ranked.index(other) + 1) if other in ranked else "-")
        results = index.search(query, model="bm25")
        matches = results.matches
        order = matches.number_of_document[(-matches.score_of_document).argsort(kind="stable")].tolist()
        fetched = [index._snapshot.document_id(number) for number in order]
        name = id if setting is OFF else f"{id} (title)"
        table.rows.append([name, other, *cells, str(fetched.index(other) + 1) if other in fetched else "-"])
    table.notes.append("no filter; documents by their best passage; fetched: rank by form 1 with BM25; (title): has nothing but titles")
    return table
