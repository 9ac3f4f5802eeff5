"""`Index`, the main class of the package: make, fill, search and explain an index."""

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
    """An index of documents, which can be searched for passages by many threads at the same time.

    >>> import tempfile
    >>> index = Index.create(tempfile.mkdtemp())
    >>> from perikope.document.tree import TreeBuilder
    >>> builder = TreeBuilder("d1", title="Pumps"); _ = builder.passage("A magnet drives the rotor.")
    >>> index.add([builder.build()]); index.commit()
    >>> [(hit.document, hit.path, hit.text) for hit in index.search("rotor of a pump")]
    [('d1', ('Pumps',), 'A magnet drives the rotor.')]
    """

    def __init__(self, folder: str | PathLike[str], *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> None:
        """Open an index as its last commit left it.

        `memory` is the approximate memory for adding documents, in bytes. `wait` is the time to wait for another writer
        of the same index, in seconds.
        """
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
        """Make an empty index in a new or empty folder.

        `language` is the main language: that of documents that do not state theirs. `stemmer` is
        `snowball`, `porter` or `none`. `stopwords` is `default`, `none` or a list of words. For `memory` see `Index`.
        """
        chosen = stopwords if isinstance(stopwords, str) else tuple(stopwords)
        create(Path(folder), Analyzer(stemmer, chosen), language)  # type: ignore[arg-type]
        return cls(folder, memory=memory)

    @classmethod
    def open(cls, folder: str | PathLike[str], *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> Index:
        """Open an index as its last commit left it; see `Index` for the parameters."""
        return cls(folder, memory=memory, wait=wait)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is searched: the segments of one commit, opened for reading."""
        return self._snapshot

    @property
    def languages(self) -> list[str]:
        """The languages of the documents; the main language of the index is first."""
        return list(self._snapshot.languages)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the text analysis: stemmer and stop words."""
        return dict(self._snapshot.manifest.analysis)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self._snapshot.totals.documents

    @property
    def passages(self) -> int:
        """The number of passages in all documents."""
        return self._snapshot.totals.passages

    @property
    def fingerprint(self) -> str:
        """A checksum of the content, as eight hexadecimal digits; it changes when the content changes."""
        return self._snapshot.manifest.fingerprint

    def add(self, documents: Document | Iterable[Document], *, replace: bool = False) -> None:
        """Add documents, which become searchable with `commit`.

        With `replace`, a new document replaces an indexed document with the same id.
        """
        self._write().add([documents] if isinstance(documents, Document) else documents, replace=replace)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by id, and return the number of deleted documents. They stay searchable until `commit`."""
        return self._write().delete([ids] if isinstance(ids, str) else ids)

    def commit(self) -> None:
        """Write all changes since the last commit to disk, and search the new documents from now on."""
        if self._writer is not None:
            self._show(self._writer.commit())
            self.rollback()

    def rollback(self) -> None:
        """Discard the changes since the last commit."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *details: object) -> None:
        self.rollback()

    def compact(self) -> None:
        """Commit, then merge the segments. This removes the text of deleted documents from the disk."""
        self._show(self._write().compact())
        self.rollback()

    def refresh(self) -> bool:
        """Open the last commit, even if another process made it. Returns whether the index has changed."""
        latest = Snapshot.open(self.folder)
        changed = latest.manifest.generation != self._snapshot.manifest.generation
        if changed:
            self._show(latest)
        return changed

    def _show(self, snapshot: Snapshot) -> None:
        """Replace the snapshot with a later one, which takes over the loaded query encoders."""
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
        """Make a query for `search` from a patent: its words with the highest tf-idf, and conditions on documents.

        `patent` is a file, a publication number or id in the index, or a document. `claims` are the query claims: a
        text, or a list of claims of the patent by number, id or path in the original. Without a patent, `claims` must
        be a text. The best `fetch_words` words of the parts `fetch_from` fetch documents. The best `browse_words` words
        of the parts `browse_from` score passages. See `perikope.query.patent`.

        Results are limited to documents that share a classification code with the patent (`code_filter`, `code_level`),
        were published before its priority date (`date_limit`), and are not in its family (`family_filter`). `family`
        adds ids of documents to the family. The patent itself is never a result.

        `translator` translates text in a language that is not searched: a function of text, source and target language,
        or the URL of a LibreTranslate server. The `notes` of the query say what could not be done as requested.
        """
        return read_patent(self._snapshot, patent, claims, SearchOptions.of(given), family)

    @with_signature()
    def search(
        self, query: Asked, *, recipe: str | Recipe = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> Results:
        """Search for the best `k` passages in the best `documents` documents.

        `query` is a text, a `Topic`, or the result of `patent_query`. Every keyword is an option that `SearchOptions`
        declares; `help(perikope.SearchOptions)` and `perikope search --help` describe them. Keywords take precedence
        over a `recipe` (the system of a paper, or a TOML file; see `perikope recipes`), and a recipe over `options`.

        Restrictions (`filter`, `part`, `must_match` …) leave out documents and passages; they never change a score. The
        conditions of a patent query apply in addition to the given restrictions.
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
        """Explain the score of a passage or element, given by its name (`document#passage`).

        Recipe, options and keywords are the same as in `search`.
        """
        return explain(self._snapshot, query, passage, resolve_options(load_recipe(recipe) if recipe else None, given, options))

    def _check_about_patents(self, query: Asked, given: Mapping[str, Any]) -> None:
        """Raise `UsageError` if an option for patents is given with a text or a finished patent query.

        The option would have no effect.
        """
        about_patents = [name for name in given if name in OPTIONS and OPTIONS[name].group == PATENTS]
        if about_patents and isinstance(query, (str, PatentQuery)):
            raise UsageError(
                f"{about_patents[0]} applies to patents only; search with a topic that has a patent, or pass the option to patent_query"
            )

    def place(self, document: str, passage: str) -> tuple[str, Place | None]:
        """The file that a passage was read from, and the location of the passage in this file.

        The file is named as in the index. The location is None if it was not recorded.
        """
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
        """The number of documents that satisfy all given conditions, which have the same meaning as in `search`."""
        given = {"filter": filter, "ids": ids, "shares_codes_with": shares_codes_with, "code_level": code_level}
        return count_documents(self._snapshot, SearchOptions.of(given))

    def check_query(self, query: str | PatentQuery, *, language: str = "", syntax: str = "words") -> Query:
        """Translate a query into terms of the index. Raises `UsageError` if no term is left.

        For a patent query, the query that fetches documents is returned.
        """
        if isinstance(query, PatentQuery):
            return query.fetch
        options = SearchOptions.of({"language": language, "syntax": syntax})
        return read_query(self._snapshot, query, options.language, options.syntax)

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {self.documents} documents, {self.passages} passages)"
