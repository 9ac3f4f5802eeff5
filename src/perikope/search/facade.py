"""The front door: an index that is made, filled, searched and explained."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from perikope.browse.signals import Node
from perikope.core.errors import UsageError
from perikope.document.tree import Document, Place
from perikope.fetch.filters import Filter
from perikope.fetch.prior_art import PatentQuery
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, create
from perikope.index.reader import Snapshot
from perikope.query.patent import Claims
from perikope.query.terms import Query
from perikope.search.asking import Asked, read_patent, read_query
from perikope.search.explaining import explain, find_span
from perikope.search.hits import Hit
from perikope.search.keywords import PatentKeywords, SearchKeywords
from perikope.search.options import OPTIONS, PATENTS, SearchOptions, patent_options, with_signature
from perikope.search.recipes import Recipe, load_recipe, resolve_options
from perikope.search.results import Results
from perikope.search.steps import count_documents, search_for
from perikope.text.analysis import Analyzer

__all__ = ["Hit", "Index", "Results"]


class Index:
    """A collection that can be searched for passages; safe to search from many threads.

    >>> import tempfile
    >>> index = Index.create(tempfile.mkdtemp())
    >>> from perikope.document.tree import TreeBuilder
    >>> builder = TreeBuilder("d1", title="Pumps"); _ = builder.passage("A magnet drives the rotor.")
    >>> index.add([builder.build()]); index.commit()
    >>> [(hit.document, hit.path, hit.text) for hit in index.search("rotor of a pump")]
    [('d1', ('Pumps',), 'A magnet drives the rotor.')]
    """

    def __init__(self, folder: str | PathLike[str], *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> None:
        """Open an index; `memory` bounds what adding takes, `wait` is how long to wait for another writer, in seconds."""
        self.folder = Path(folder)
        self.memory = memory
        self.wait = wait
        self._snapshot = Snapshot.open(self.folder)
        self._writer: IndexWriter | None = None

    @classmethod
    def create(
        cls,
        folder: str | PathLike[str],
        *,
        language: str = "en",
        stemmer: str = "snowball",
        stopwords: str | Sequence[str] = "default",
        memory: int = DEFAULT_MEMORY,
    ) -> Index:
        """Make an empty index in a new or empty folder."""
        chosen = stopwords if isinstance(stopwords, str) else tuple(stopwords)
        create(Path(folder), Analyzer(stemmer, chosen), language)  # type: ignore[arg-type]
        return cls(folder, memory=memory)

    @classmethod
    def open(cls, folder: str | PathLike[str], *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> Index:
        """Open an index as its last commit left it."""
        return cls(folder, memory=memory, wait=wait)

    @property
    def snapshot(self) -> Snapshot:
        """What is read: the documents of the last commit, as columns."""
        return self._snapshot

    @property
    def languages(self) -> list[str]:
        """The languages of the documents, the index's own first."""
        return list(self._snapshot.languages)

    @property
    def settings(self) -> dict[str, Any]:
        """How text is analysed: stemmer and stop words."""
        return dict(self._snapshot.manifest.analysis)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return self._snapshot.totals.documents

    @property
    def passages(self) -> int:
        """How many passages they have."""
        return self._snapshot.totals.passages

    @property
    def fingerprint(self) -> str:
        """A short text that differs wherever the content differs."""
        return self._snapshot.manifest.fingerprint

    def add(self, documents: Document | Iterable[Document], *, replace: bool = False) -> None:
        """Take documents; they can be found after `commit`. With `replace`, one that has the same id goes."""
        self._write().add([documents] if isinstance(documents, Document) else documents, replace=replace)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by their ids; they are found until `commit`. Returns how many."""
        return self._write().delete([ids] if isinstance(ids, str) else ids)

    def commit(self) -> None:
        """Make all changes durable and visible at once."""
        if self._writer is not None:
            self._show(self._writer.commit())
            self.rollback()

    def rollback(self) -> None:
        """Forget the changes since the last commit."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *details: object) -> None:
        self.rollback()

    def compact(self) -> None:
        """Commit, and merge all segments; deleted text is gone from the disk afterwards."""
        self._show(self._write().compact())
        self.rollback()

    def refresh(self) -> bool:
        """See what others have committed since; returns whether anything has changed."""
        latest = Snapshot.open(self.folder)
        changed = latest.manifest.generation != self._snapshot.manifest.generation
        if changed:
            self._show(latest)
        return changed

    def _show(self, snapshot: Snapshot) -> None:
        """Search in a later snapshot from now on, with the query encoders of the one before."""
        snapshot.query_encoders.update(self._snapshot.query_encoders)
        self._snapshot = snapshot

    def _write(self) -> IndexWriter:
        if self._writer is None:
            self._writer = IndexWriter(self.folder, memory=self.memory, wait=self.wait)
        return self._writer

    @with_signature(patent_options())
    def patent_query(
        self,
        patent: str | PathLike[str] | Document | None = None,
        claims: Claims = (),
        *,
        family: Iterable[str] = (),
        **given: Unpack[PatentKeywords],
    ) -> PatentQuery:
        """A patent as a query for `search`: its best words by tf-idf, and which documents may be found for it.

        `patent` is a file, a publication number or id in the index, or a document; `claims` are the query claims: a text, or a list of
        those of the patent by number, id or path in the original; without a patent, a text alone. The `fetch_words` best words of
        `fetch_from` fetch documents, the `browse_words` best of `browse_from` score their passages; see `perikope.query.patent`.

        Results are limited to documents that share a classification code with the patent (`code_filter`, `code_level`), were published
        before its priority date (`date_limit`), and are not of its family (`family_filter`), to which `family` adds ids. The patent
        itself is never a result. A text in a language that is not searched is translated by `translator`, if there is one: a function
        of text, source and target language, or the address of a LibreTranslate server. The query's `notes` tell what could not be done.
        """
        return read_patent(self._snapshot, patent, claims, SearchOptions.of(given), family)

    @with_signature()
    def search(
        self, query: Asked, *, recipe: str | Recipe = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> Results:
        """The best `k` passages of the best `documents` documents.

        `query` is a text, a `Topic`, or a patent as `patent_query` makes one. Every keyword is an option that `SearchOptions` declares;
        `help(perikope.SearchOptions)` and `perikope search --help` describe each. Keywords take precedence over a
        `recipe` (a paper's system, or a file of your own; see `perikope recipes`), and a recipe over `options`.

        Restrictions (`filter`, `part`, `must_match` …) leave out documents and passages; they never change a score. A patent brings
        two queries, one that fetches documents and one that scores passages, and conditions that are added to those given here.
        """
        self._check_about_patents(query, given)
        chosen = load_recipe(recipe) if recipe else None
        search = search_for(self._snapshot, query, resolve_options(chosen, given, options))
        prepared = search.prepare(query)
        for complaint in search.complaints(prepared, chosen):
            warnings.warn(complaint, stacklevel=2)
        return search.run(prepared)

    @with_signature()
    def explain(
        self,
        query: Asked,
        passage: str,
        *,
        recipe: str | Recipe = "",
        options: SearchOptions | None = None,
        **given: Unpack[SearchKeywords],
    ) -> Node:
        """Why a passage or element, named `document#passage`, has its score; takes the options of `search`."""
        return explain(self._snapshot, query, passage, resolve_options(load_recipe(recipe) if recipe else None, given, options))

    def _check_about_patents(self, query: Asked, given: Mapping[str, Any]) -> None:
        """An option about patents that would do nothing is a mistake; topics may be of several kinds."""
        about_patents = [name for name in given if name in OPTIONS and OPTIONS[name].group == PATENTS]
        if about_patents and isinstance(query, (str, PatentQuery)):
            raise UsageError(f"{about_patents[0]} is about patents; search with a topic that names one, or give it to patent_query")

    def place(self, document: str, passage: str) -> tuple[str, Place | None]:
        """The file that a passage was read from, as the index names it, and where it stands there, if that was kept."""
        segment, local, span = find_span(self._snapshot, document, passage)
        return segment.source(local)[0], segment.places(local).get(span)

    def count(
        self,
        filter: str | Filter | Sequence[str | Filter] = (),
        *,
        ids: str | Sequence[str] | None = None,
        shares_codes_with: str = "",
        code_level: str = "full",
    ) -> int:
        """How many documents these conditions leave."""
        given = {"filter": filter, "ids": ids, "shares_codes_with": shares_codes_with, "code_level": code_level}
        return count_documents(self._snapshot, SearchOptions.of(given))

    def check_query(self, query: str | PatentQuery, *, language: str = "", syntax: str = "words") -> Query:
        """The query as the index reads it; an error where it holds nothing to look for."""
        if isinstance(query, PatentQuery):
            return query.fetch
        options = SearchOptions.of({"language": language, "syntax": syntax})
        return read_query(self._snapshot, query, options.language, options.syntax)

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {self.documents} documents, {self.passages} passages)"
