"""PyTerrier: a retriever and a re-ranker, which return passages or documents. No Java is started.

| column | content |
|---|---|
| `qid`, `query` | as given; other columns of the queries are kept |
| `docno` | the name of the passage (`document#passage`) or, for documents, their names, as in run files |
| `document`, `passage` | the ids of both; documents have no `passage` |
| `score`, `rank` | scores strictly decrease, as in run files; ranks begin with 0 |
| `text`, `title`, `path`, `citation` | of the passage; only with `text=True` |

So `pt.Experiment` gives what `perikope run` and `perikope eval` give.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from perikope.adapters.searched import SearchedIndex
from perikope.core.errors import MissingExtra, UsageError
from perikope.core.names import encode, split_name
from perikope.evaluation.io.scores import falling
from perikope.query.topic import Topic

try:
    import pandas
    import pyterrier
except ModuleNotFoundError as missing:
    raise MissingExtra(missing.name or "pyterrier", "pyterrier") from None

if TYPE_CHECKING:
    from perikope.client.results import RemoteResults
    from perikope.search.results import Results

__all__ = ["PerikopeReranker", "PerikopeSearch"]

DEPTH = 1000
"""The default number of results per query, as in `perikope run`."""
ASKED = 1000
"""The most candidates of a query without results that are looked for in the index."""
RANKED = ("docno", "document", "passage", "score", "rank")
OF_TEXT = ("text", "title", "path", "citation")


class PerikopeSearch(pyterrier.Transformer):
    """Searches an index for each query, from PyTerrier.

    `index` is an `Index`, a folder, or the address of a server, for which `name_of_index` may be needed. With
    `document_ranking` (`maxp`, `sump` …) documents are returned instead of passages. With `text`, results have the
    columns of `OF_TEXT`. Every other keyword is an option of a search; `k` is 1000 by default.
    """

    def __init__(
        self, index: Any, *, name_of_index: str = "", token: str = "", recipe: str = "", document_ranking: str = "",
        text: bool = False, **given: Any,
    ) -> None:  # fmt: skip
        """Open the index, and check the options; see the class."""
        self._searched = SearchedIndex(index, name=name_of_index, token=token, recipe=recipe, options={"k": DEPTH, **given})
        self._document_ranking, self._text = document_ranking, text
        if document_ranking and text:
            raise UsageError("documents have no text of a passage; leave text out, or leave document_ranking out")

    def __repr__(self) -> str:
        """The index and what was asked for; an experiment without `names` shows it as the name of the system."""
        asked = {name: value for name, value in self._searched.options.items() if (name, value) != ("k", DEPTH)}
        own = {
            "name_of_index": self._searched.name, "recipe": self._searched.recipe, "document_ranking": self._document_ranking,
            "text": self._text,
        }  # fmt: skip
        asked |= {name: value for name, value in own.items() if value}
        named = "".join(f", {name}={value!r}" for name, value in asked.items())
        return f"{type(self).__name__}({self._searched.location!r}{named})"

    def transform(self, topics: pandas.DataFrame) -> pandas.DataFrame:
        """The results of a data frame of queries, best first. A query without a word has no results.

        Raises `UsageError` if a query is missing (None or NaN), as the retrievers of PyTerrier fail.
        """
        pyterrier.validate.query_frame(topics, extra_columns=["query"])
        rows = topics.to_dict("records")
        kept = [column for column in topics.columns if column not in (*RANKED, *OF_TEXT)]
        found = self._found([Topic(str(row["qid"]), _query(row)) for row in rows])
        return self._framed(rows, kept, found)

    def _found(self, topics: list[Topic]) -> Iterator[tuple[int, Results | RemoteResults]]:
        """The number of each query with results, and the results."""
        number_of = {id(topic): number for number, topic in enumerate(topics)}
        for topic, results in self._searched.search_many(topics):
            yield number_of[id(topic)], results

    def _framed(
        self, rows: list[dict[str, Any]], kept: list[str], found: Iterable[tuple[int, Results | RemoteResults]]
    ) -> pandas.DataFrame:  # fmt: skip
        named = (*RANKED, *(OF_TEXT if self._text else ()))
        columns: dict[str, list[Any]] = {name: [] for name in (*kept, *named)}
        for number, results in found:
            ranking = self._ranking(results)
            for name in kept:
                columns[name] += [rows[number][name]] * len(ranking)
            for rank, (docno, score) in enumerate(
                zip((docno for docno, _ in ranking), falling([score for _, score in ranking]), strict=True)
            ):
                document, passage = split_name(docno)
                for name, value in zip(RANKED, (docno, document, passage, float(score), rank), strict=True):
                    columns[name].append(value)
            if self._text:
                for hit in results:
                    for name in OF_TEXT:
                        columns[name].append(" › ".join(hit.path) if name == "path" else getattr(hit, name))
        types = {"score": "float64", "rank": "int64"}
        return pandas.DataFrame(columns).astype(types)

    def _ranking(self, results: Results | RemoteResults) -> list[tuple[str, float]]:
        if not self._document_ranking:
            return results.names()
        k = int(self._searched.options.get("k", DEPTH))
        return [(encode(document), score) for document, score in results.document_ranking(self._document_ranking, k)]


class PerikopeReranker(PerikopeSearch):
    """Ranks passages of documents that another engine has found, or these documents again.

    The candidates of a query are the ids in the column `document` or, if there is none, the names in `docno`. The name
    of a passage (`document#passage`) stands for its document. The column `score` is the score of a candidate, which
    some models use; without it, all have score 1. Documents that the index does not have are ignored; a warning says so
    if it has none of a query. For other arguments see `PerikopeSearch`.
    """

    def transform(self, candidates: pandas.DataFrame) -> pandas.DataFrame:
        """The results of a data frame of candidates, best first."""
        pyterrier.validate.columns(candidates, includes=["qid", "query", "docno"])
        scores = candidates["score"] if "score" in candidates.columns else [1.0] * len(candidates)
        found: dict[str, dict[str, float]] = {}
        rows: dict[str, dict[str, Any]] = {}
        for row, score in zip(candidates.to_dict("records"), scores, strict=True):
            qid = str(row["qid"])
            rows.setdefault(qid, row)
            of_query = found.setdefault(qid, {})
            for document in [str(row["document"])] if "document" in row else _documents_named(str(row["docno"])):
                of_query[document] = max(_score(score, qid, document), of_query.get(document, float("-inf")))
        kept = [name for name in candidates.columns if name in ("qid", "query") or name.startswith("query_")]
        return self._framed(list(rows.values()), kept, self._reranked(rows, found))

    def _reranked(
        self, rows: Mapping[str, Mapping[str, Any]], found: Mapping[str, dict[str, float]]
    ) -> Iterator[tuple[int, Results | RemoteResults]]:  # fmt: skip
        for number, (qid, row) in enumerate(rows.items()):
            if query := _query(row).strip():
                results = self._searched.search(query, {"candidates": found[qid]})
                if not len(results):
                    self._warn_of_unknown(qid, list(found[qid]))
                yield number, results

    def _warn_of_unknown(self, qid: str, candidates: list[str]) -> None:
        """Warn if the index has none of the candidates of a query without results."""
        if not self._searched.index.count(ids=candidates[:ASKED]):
            message = f"the index has none of the candidates of query {qid!r}, such as {candidates[0][:80]!r}"
            warnings.warn(f"{message}; docno must be the ids of its documents, or names of their passages", stacklevel=2)


def _documents_named(docno: str) -> set[str]:
    """The ids of documents that a `docno` may mean: the name of a document or passage, or an id as it is."""
    return {docno, split_name(docno)[0]}


def _query(row: Mapping[str, Any]) -> str:
    """The query of a row. A missing one is an error: its text, such as `nan`, would be searched for as a word."""
    query = row["query"]
    if pandas.isna(query):
        raise UsageError(f"query {str(row['qid'])!r} is missing (it is {query!r}); give it a text, or leave its row out")
    return str(query)


def _score(value: Any, qid: str, document: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise UsageError(f"the candidate {document[:80]!r} of query {qid!r} has the score {value!r}; the column score must have numbers")
    return score
