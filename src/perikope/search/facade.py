"""`Index`, the main class of the package: make, fill, search and explain an index."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from perikope.browse.signals import Node
from perikope.core.errors import UsageError
from perikope.core.numbers import check_whole
from perikope.document.tree import Document, Place
from perikope.fetch.field_values import field_values
from perikope.fetch.filters import Filter
from perikope.fetch.prior_art import PatentQuery
from perikope.index.commit import DEFAULT_MEMORY, IndexWriter, PendingCommit, create
from perikope.index.duplicates import DEFAULT_DUPLICATES, DEFAULT_REPLACE, Duplicate, DuplicateWarning, check_duplicates
from perikope.index.info import IndexInfo, describe
from perikope.index.reader import Snapshot
from perikope.index.stored import stored_document
from perikope.query.completion import SuggestedWord, complete
from perikope.query.patent import Claims
from perikope.query.publications import find_publication, parse_publication
from perikope.query.terms import Query
from perikope.search.asking import Asked, read_patent, read_query
from perikope.search.awaiting import SearchThreads
from perikope.search.explaining import explain, find_span
from perikope.search.hits import Hit
from perikope.search.keywords import PatentKeywords, SearchKeywords
from perikope.search.landscape import BINS, LISTED, SIGMA, Landscape, read_landscape
from perikope.search.options import SearchOptions, patent_options, with_signature
from perikope.search.outline import DocumentTree, document_tree
from perikope.search.passage_view import PassageView, view_passage
from perikope.search.recipes import Recipe, load_recipe, resolve_options
from perikope.search.results import Results
from perikope.search.running import run_search
from perikope.search.steps import allowed_documents, count_documents
from perikope.search.viewing import DocumentView, view_document
from perikope.text.analysis import Analyzer

if TYPE_CHECKING:
    from perikope.build.indexing import BuildReport

__all__ = ["Hit", "Index", "Results"]

T = TypeVar("T")
Given = Document | Mapping[str, Any]
"""A document to add: a `Document`, or a dictionary with the keys of a line of JSON Lines."""


Conditions = str | Filter | Sequence[str | Filter]
"""Conditions on documents, such as `year>=2010`; see the option `filter` of a search."""


class Index:
    """An index of documents, which can be searched for passages by many threads at the same time.

    >>> import tempfile
    >>> index = Index.create(tempfile.mkdtemp())
    >>> index.add({"id": "d1", "title": "Pumps", "passages": ["A magnet drives the rotor."]})
    >>> index.commit()
    >>> [(hit.document, hit.path, hit.text) for hit in index.search("rotor of a pump")]
    [('d1', ('Pumps',), 'A magnet drives the rotor.')]

    A `with` block commits the changes and closes the index at its end. If the block raises an error, it discards the
    changes instead, and a note on the error says so.
    """

    def __init__(self, folder: str | PathLike[str], *, memory: int = DEFAULT_MEMORY, wait: float = 0.0) -> None:
        """Open an index as its last commit left it.

        `memory` is the approximate memory for adding documents, in bytes. `wait` is the time to wait for another writer
        of the same index, in seconds.
        """
        self.folder = Path(folder)
        self.memory = memory
        self.wait = wait
        self._snapshot: Snapshot | None = self._open()
        self._writer: IndexWriter | None = None
        self._threads = SearchThreads()

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

    def _open(self) -> Snapshot | None:
        return Snapshot.open(self.folder)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is searched: the segments of one commit, opened for reading."""
        if self._snapshot is None:
            raise UsageError(f"the index {self.folder} was closed; open it again with Index.open({str(self.folder)!r})")
        return self._snapshot

    def ask_answering(self, ask: Callable[[Index], T]) -> T:
        """What a function returns for this index.

        An index on several machines may leave out shards that do not answer, if it was opened so.
        """
        return ask(self)

    @property
    def languages(self) -> list[str]:
        """The languages of the documents; the main language of the index is first."""
        return list(self.snapshot.languages)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the text analysis: stemmer and stop words."""
        return dict(self.snapshot.manifest.analysis)

    def __len__(self) -> int:
        """The number of documents."""
        return self.snapshot.totals.documents

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.snapshot.find_document(id) >= 0

    def get(self, id: str) -> Document | None:
        """The document with this id, as it was added; None if the index has no such document.

        A patent may be named by its publication number in any spelling, such as `EP 1 000 000 A1`.
        """
        snapshot = self.snapshot
        number = snapshot.find_document(id)
        if number < 0 and parse_publication(id) is not None:
            with suppress(UsageError):
                number = find_publication(snapshot, id)
        return stored_document(*snapshot.locate(number)) if number >= 0 else None

    def documents(self, filter: Conditions = ()) -> Iterator[Document]:
        """The documents of the index one by one, as they were added; with `filter`, those that satisfy all conditions.

        The documents are those of the moment of the call, even if the index changes before the last one is read.
        """
        snapshot = self.snapshot
        numbers = allowed_documents(snapshot, SearchOptions.of({"filter": filter})).nonzero()[0].tolist()
        return (stored_document(*snapshot.locate(number)) for number in numbers)

    @property
    def passages(self) -> int:
        """The number of passages in all documents."""
        return self.snapshot.totals.passages

    def info(self) -> IndexInfo:
        """What the index contains: languages, parts, metadata fields with examples, segments, stores, tables and sizes.

        This reads the metadata values of all documents. `to_dict()` of the result makes plain values for JSON.
        """
        return describe(self.snapshot)

    @property
    def fingerprint(self) -> str:
        """A checksum of the content, as eight hexadecimal digits; it changes when the content changes."""
        return self.snapshot.manifest.fingerprint

    def add(self, documents: Given | Iterable[Given], *, replace: bool = DEFAULT_REPLACE, duplicates: str = DEFAULT_DUPLICATES) -> None:
        """Add documents, which become searchable with `commit`.

        A document is a `Document` (from `perikope.read` or a `TreeBuilder`), or a dictionary with the keys of a line of
        JSON Lines. A data frame of pandas, polars or Arrow has one document per row; see `perikope.formats._frames`.
        With `replace`, a new document replaces a document with the same id from before this call. Otherwise the first
        document with an id is kept, and a warning names the others; with `duplicates="error"` they are an error. After
        an error, none of the given documents is added; documents of earlier calls still are.
        """
        check_duplicates(duplicates)
        left_out: list[Duplicate] = []
        on_duplicate = left_out.append if duplicates == "first" else None
        self._write().add(self._made(documents), replace=replace, on_duplicate=on_duplicate)
        if left_out:
            warnings.warn(DuplicateWarning(left_out), stacklevel=2)

    def _made(self, given: Given | Iterable[Given]) -> Iterable[Document]:
        """The given documents. Dictionaries become documents when they are read."""
        # Formats, processes and HTTP are imported where they are needed: a search needs none of them.
        from perikope.formats._frames import is_frame, records_of
        from perikope.formats.jsonl import document_from

        if is_frame(given):
            given = records_of(given)
        if isinstance(given, (str, bytes, PathLike)):
            raise UsageError(f"cannot add {str(given)!r}, which is no document; read files with perikope.read: index.add(perikope.read(…))")
        listed = [given] if isinstance(given, (Document, Mapping)) else given
        if not isinstance(listed, Iterable):
            raise UsageError(f"cannot add a value of type {type(given).__name__} to an index; add a document, or several as an iterable")
        language = self.snapshot.manifest.language
        return (document_from(item, language) if isinstance(item, Mapping) else item for item in listed)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by id, and return the number of deleted documents. They stay searchable until `commit`."""
        return self._write().delete([ids] if isinstance(ids, str) else ids)

    def sync(
        self,
        paths: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        format: str = "auto",
        language: str | None = None,
        languages: Sequence[str] = (),
        segment: str = "markup",
        duplicates: str = DEFAULT_DUPLICATES,
        workers: int = 1,
    ) -> BuildReport:
        """Make the index equal to files and folders: read what is new or changed, delete what is gone, and commit.

        Documents that were not read from files stay. Files that cannot be read are left out, with a warning; the report
        lists them. The keywords are options of `perikope index`, with the same meaning. `workers` is the number of
        processes that read; more than one needs `if __name__ == "__main__":` in a script.
        """
        from perikope.build.indexing import BuildOptions, build

        _ = self.snapshot  # raises an error if the index was closed
        if self._writer is not None and self._writer.changes:
            raise UsageError(f"{self.folder} has uncommitted changes ({self._writer.changes}); commit() or rollback() them before sync()")
        self.rollback()
        listed = [paths] if isinstance(paths, (str, PathLike)) else paths
        options = BuildOptions(
            format=format, language=language, languages=tuple(languages), segment=segment, duplicates=duplicates,
            sync=True, memory=self.memory, workers=workers, wait=self.wait,
        )  # fmt: skip
        report = build(str(self.folder), [str(fspath(path)) for path in listed], options)
        self.refresh()
        if report.skipped:
            first = "; ".join(str(problem) for problem in report.skipped[:3])
            warnings.warn(f"{len(report.skipped)} files could not be read completely: {first}", stacklevel=2)
        if report.duplicates:
            warnings.warn(DuplicateWarning(report.duplicates), stacklevel=2)
        return report

    def commit(self) -> None:
        """Write all changes since the last commit to disk, and search the new documents from now on."""
        _ = self.snapshot  # raises an error if the index was closed
        if self._writer is not None:
            self._show(self._writer.commit())
            self.rollback()

    @property
    def pending_commit(self) -> PendingCommit | None:
        """By what the next commit is recognised in the manifest; None if the index has not been changed."""
        return None if self._writer is None else self._writer.pending

    def rollback(self) -> None:
        """Discard the changes since the last commit."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        """Release the files of the index. Results of earlier searches can still be read.

        Changes since the last commit are discarded, with a warning; `rollback` discards them without one.
        """
        if self._writer is not None:
            self._writer.warn_of_loss()
        self.rollback()
        self._threads.close()
        self._snapshot = None

    def __enter__(self) -> Index:
        _ = self.snapshot  # raises an error if the index was closed
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                if self._snapshot is not None:
                    self.commit()
            elif self._writer is not None:
                changes = f" ({self._writer.changes})" if self._writer.changes else ""
                error.add_note(f"The index {self.folder} was rolled back to its last commit{changes}.")
        finally:
            self.rollback()
            self.close()

    def compact(self) -> None:
        """Commit, then merge the segments. This removes the text of deleted documents from the disk."""
        self._show(self._write().compact())
        self.rollback()

    def refresh(self) -> bool:
        """Open the last commit, even if another process made it. Returns whether the index has changed."""
        shown = self.snapshot
        latest = Snapshot.open(self.folder, shown)
        if latest is shown:
            return False
        self._show(latest)
        return True

    def _show(self, snapshot: Snapshot) -> None:
        """Replace the snapshot with a later one, which takes over the loaded query encoders and open stores."""
        snapshot.query_encoders.update(self.snapshot.query_encoders)
        snapshot.stores.update(self.snapshot.stores)
        self._snapshot = snapshot

    def _write(self) -> IndexWriter:
        if self._writer is None:
            self._writer = IndexWriter(self.folder, memory=self.memory, wait=self.wait, before=self.snapshot)
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
        return read_patent(self.snapshot, patent, claims, SearchOptions.of(given), family)

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
        results, complaints = run_search(self.snapshot, query, recipe, options, given)
        for complaint in complaints:
            warnings.warn(complaint, stacklevel=2)
        return results

    @with_signature()
    async def asearch(
        self, query: Asked, *, recipe: str | Recipe = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> Results:
        """Await a search: `search` for asyncio programs, with the same arguments and results.

        The search runs in a thread, so the event loop goes on. Hits are read from the index when they are asked for;
        `await asyncio.to_thread(list, results)` reads them in a thread too. If the await is cancelled, a search that
        has begun runs to its end, and its results are dropped.
        """
        return await self._threads.run(partial(self.search, query, recipe=recipe, options=options, **given))

    @with_signature()
    def asearch_many(
        self, queries: Iterable[Asked], *, recipe: str | Recipe = "", options: SearchOptions | None = None, **given: Unpack[SearchKeywords]
    ) -> AsyncIterator[tuple[Asked, Results]]:
        """Iterate over pairs of a query and its results with `async for`, in the given order.

        The searches run in threads, one per core. The other arguments are the same as in `search`. A query that cannot
        be searched for raises an error when its turn comes.
        """
        return self._threads.map(partial(self.search, recipe=recipe, options=options, **given), queries)

    @with_signature()
    def search_many(
        self,
        queries: Iterable[Asked] | Mapping[str, str],
        *,
        threads: int | None = None,
        on_problem: Callable[[str], None] | None = None,
        recipe: str | Recipe = "",
        options: SearchOptions | None = None,
        **given: Unpack[SearchKeywords],
    ) -> Iterator[tuple[Asked, Results]]:
        """Search for many queries in several threads, and yield pairs of a query and its results, in the given order.

        `queries` are texts, topics or patent queries, or a dictionary from ids to texts, which become topics. `threads`
        is the number of queries that are searched for at the same time, by default the number of usable cores; it does
        not change the results. Recipe, options and keywords are the same as in `search`.

        A query that cannot be searched for, such as an empty text, raises an error. With `on_problem`, the function
        gets the message instead, and the query is left out. A query without results has empty results.

        >>> import tempfile
        >>> index = Index.create(tempfile.mkdtemp())
        >>> index.add({"id": "d1", "passages": ["A magnet drives the rotor."]})
        >>> index.commit()
        >>> for query, results in index.search_many(["rotor", "?", "valve"], on_problem=print):
        ...     print(query, len(results))
        rotor 1
        query 2: the query is empty; give at least one word
        valve 0
        """
        from perikope.search.batch import search_many

        chosen = load_recipe(recipe) if recipe else None
        return search_many(self.snapshot, queries, given, threads=threads, on_problem=on_problem, recipe=chosen, options=options)

    @with_signature()
    def explain(
        self,
        query: Asked,
        passage: str | Hit,
        *,
        recipe: str | Recipe = "",
        options: SearchOptions | None = None,
        **given: Unpack[SearchKeywords],
    ) -> Node:
        """Explain the score of a passage or element, given by its name (`document#passage`) or as a hit of a search.

        Recipe, options and keywords are the same as in `search`.
        """
        name = passage.name if isinstance(passage, Hit) else passage
        return explain(self.snapshot, query, name, resolve_options(load_recipe(recipe) if recipe else None, given, options))

    def view(self, name: str, *, query: str = "", language: str = "") -> DocumentView:
        """A document with its titles and passages in reading order, for a reader.

        `name` is the id of a document, a patent number in any spelling, or the name of a passage or element
        (`document#passage`), which is then marked. Words that match the `query` are highlighted; `language` is that of
        the query, as in `search`.
        """
        return view_document(self.snapshot, name, query, language)

    def passage(self, name: str, *, around: int = 2) -> PassageView:
        """A passage or element, given by its name (`document#passage`), with its heading path, source and neighbours.

        Neighbours are up to `around` passages on either side, from the same document.
        """
        return view_passage(self.snapshot, name, around=around)

    def outline(self, id: str) -> DocumentTree:
        """The sections of a document with their titles, as a flat list of nodes that name their parents.

        `id` is the id of the document or, for a patent, its number in any spelling.
        """
        return document_tree(self.snapshot, id)

    def landscape(
        self,
        query: Asked,
        document: str,
        *,
        bins: int = BINS,
        sigma: float = SIGMA,
        listed: int = LISTED,
        language: str = "",
        syntax: str = "words",
        fuzzy: int = 0,
        synonyms: str | Sequence[str] = (),
    ) -> Landscape:
        """The relevance landscape of a document: how near each of its places is to the words of a query, from 0 to 1.

        The document is cut into `bins` of equal size. An occurrence has the more influence the nearer it is: a Gaussian
        of width `sigma`, in tokens. See `perikope.search.landscape` for the formula. The first `listed` occurrences are
        listed. The other keywords are options of `search` that say how the query is read.
        """
        options = SearchOptions.of({"language": language, "syntax": syntax, "fuzzy": fuzzy, "synonyms": synonyms})
        return read_landscape(self.snapshot, query, document, options, bins=bins, sigma=sigma, listed=listed)

    def place(self, document: str, passage: str) -> tuple[str, Place | None]:
        """The file that a passage was read from, and the location of the passage in this file.

        The file is named as in the index. The location is None if it was not recorded.
        """
        segment, local, span = find_span(self.snapshot, document, passage)
        return segment.source(local)[0], segment.places(local).get(span)

    def count(
        self,
        filter: Conditions = (),
        *,
        ids: str | Sequence[str] | None = None,
        shares_codes_with: str = "",
        code_level: str = "full",
    ) -> int:
        """The number of documents that satisfy all given conditions, which have the same meaning as in `search`."""
        given = {"filter": filter, "ids": ids, "shares_codes_with": shares_codes_with, "code_level": code_level}
        return count_documents(self.snapshot, SearchOptions.of(given))

    def suggest(self, prefix: str, *, k: int = 10, language: str = "") -> tuple[SuggestedWord, ...]:
        """Words of the index that complete the last word of what a user has typed so far, most frequent first.

        At most `k` words are returned, and none if `prefix` does not end with a letter or digit. `language` is that of
        the typed text, or `all`; by default it is found as for a query. See `perikope.query.completion` for the limits.
        """
        return complete(self.snapshot, prefix, k=k, language=language)

    def values(self, field: str, *, prefix: str = "", k: int = 20, filter: Conditions = ()) -> dict[str, int]:
        """The `k` most frequent values of a metadata field, each with its number of documents, most frequent first.

        With `prefix`, only values that begin with it; upper and lower case are the same. With `filter`, values are
        counted in the documents that satisfy all conditions, which have the same meaning as in `search`.
        """
        check_whole("k", k, 1)
        snapshot = self.snapshot
        allowed = allowed_documents(snapshot, SearchOptions.of({"filter": filter})) if filter else None
        return field_values(snapshot, field, prefix=prefix, k=k, allowed=allowed)

    def check_query(self, query: str | PatentQuery, *, language: str = "", syntax: str = "words") -> Query:
        """Translate a query into terms of the index. Raises `UsageError` if no term is left.

        For a patent query, the query that fetches documents is returned.
        """
        if isinstance(query, PatentQuery):
            return query.fetch
        options = SearchOptions.of({"language": language, "syntax": syntax})
        return read_query(self.snapshot, query, options)

    def __repr__(self) -> str:
        if self._snapshot is None:
            return f"Index({str(self.folder)!r}, closed)"
        return f"Index({str(self.folder)!r}, {len(self)} documents, {self.passages} passages)"
