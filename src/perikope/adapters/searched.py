"""The index that an adapter searches: on this machine or on a server, with the options of every search."""

from __future__ import annotations

import asyncio
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perikope.client.address import UNIX
from perikope.client.asking import option_values
from perikope.client.connecting import connect
from perikope.core.errors import UsageError
from perikope.search.facade import Index
from perikope.search.hits import Hit
from perikope.search.options import SearchOptions

if TYPE_CHECKING:
    from perikope.client.index import RemoteIndex
    from perikope.client.results import RemoteResults
    from perikope.query.topic import Topic
    from perikope.search.results import Results

T = TypeVar("T")
TOKEN_VARIABLE = "PERIKOPE_TOKEN"
"""The environment variable with the token for a server, if an adapter is given none."""
_ADDRESSES = ("http://", "https://", UNIX)


class SearchedIndex:
    """An index, and the options with which an adapter searches it.

    An index that was given as a folder shows its last commit in every search. An `Index` that was given as an object
    shows the commit that it shows to everybody else.
    """

    def __init__(self, index: Any, *, name: str = "", token: str = "", recipe: str = "", options: Mapping[str, Any] | None = None) -> None:
        """Open an index, and check the options.

        `index` is an `Index`, the result of `perikope.connect`, the folder of an index, or the address of a server. For
        an address, `name` is the name of the index on the server, and `token` may be needed for reading; without it,
        the environment variable `PERIKOPE_TOKEN` is used.
        """
        self.name, self.recipe, self._given = name, recipe, dict(options or {})
        self._is_own = isinstance(index, (str, os.PathLike))
        if self._is_own:
            self.location = str(os.fspath(index))
            """The folder or the address, from which another process can open the same index."""
            self.index: Index | RemoteIndex = _open(self.location, name, token)
            # What the adapter has opened ends with it.
            weakref.finalize(self, self.index.close)
        elif isinstance(index, Index):
            self.index, self.location = index, str(index.folder)
        elif hasattr(index, "search_many") and hasattr(index, "address"):
            self.index, self.location = index, index.address
            self.name = name or index.name
        else:
            raise UsageError(f"an adapter needs an Index, a folder or the address of a server, not a value of type {type(index).__name__}")
        # A server may have models that are not installed here, so it checks their names.
        is_local = isinstance(self.index, Index)
        self.options = SearchOptions.of(self._given).plain() if is_local else option_values(None, recipe, None, self._given)
        """The options that differ from their defaults, as values for JSON."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the same index. A token is not written; it comes from the environment there."""
        return partial(SearchedIndex, name=self.name, recipe=self.recipe, options=self._given), (self.location,)

    def search(self, query: str, given: Mapping[str, Any] | None = None) -> Results | RemoteResults:
        """The results of a search. The given options take precedence over those of the adapter."""
        if self._is_own and isinstance(self.index, Index):
            self.index.refresh()
        return _noted(self.index.search(query, recipe=self.recipe, **{**self._given, **(given or {})}))

    def search_many(self, queries: Iterable[Topic]) -> Iterator[tuple[Any, Results | RemoteResults]]:
        """Pairs of a topic and its results, in order. A topic that cannot be searched for gives a warning."""
        if self._is_own and isinstance(self.index, Index):
            self.index.refresh()
        return self.index.search_many(queries, on_problem=_warn, recipe=self.recipe, **self._given)

    async def run(self, query: str, use: Callable[[Results | RemoteResults], T], given: Mapping[str, Any] | None = None) -> T:
        """Await a search, and what a function makes of its results. Both run in threads."""
        if not isinstance(self.index, Index):
            return await asyncio.to_thread(lambda: use(self.search(query, given)))
        if self._is_own:
            await asyncio.to_thread(self.index.refresh)
        results = await self.index.asearch(query, recipe=self.recipe, **{**self._given, **(given or {})})
        return await asyncio.to_thread(lambda: use(_noted(results)))


def _noted(results: Results | RemoteResults) -> Results | RemoteResults:
    """The same results. If there are none, the notes that say why become warnings, since a framework shows no notes."""
    if not len(results):
        for note in results.notes:
            warnings.warn(f"nothing was found: {note}", stacklevel=4)
    return results


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)


def _open(location: str, name: str, token: str) -> Index | RemoteIndex:
    if location.startswith(_ADDRESSES):
        return connect(location, name, token=token or os.environ.get(TOKEN_VARIABLE, ""))
    if name:
        raise UsageError("the name of an index is for the address of a server; leave it out for a folder")
    return Index.open(Path(location))


def facts_of(hit: Hit, model: str = "") -> dict[str, Any]:
    """What a framework keeps of a hit besides its text, as values for JSON.

    The keys are those of `Hit`, with the `name` of the passage. `metadata` is that of the document.
    """
    facts = {key: value for key, value in hit.to_dict().items() if key != "text"}
    facts |= {"name": hit.name, "path": list(hit.path), "highlights": [list(pair) for pair in hit.highlights]}
    return {**facts, "model": model} if model else facts


def facts_of_hits(results: Results | RemoteResults, *, reasons: bool = False) -> list[tuple[Hit, dict[str, Any]]]:
    """The hits with their facts. With `reasons`, each has the parts of its score; see `perikope.browse.reasons`."""
    found = [(hit, facts_of(hit, results.model)) for hit in results]
    for number, (_, facts) in enumerate(found) if reasons else ():
        because = results.reasons(number)
        facts["reasons"] = [asdict(part) for part in because.parts]
    return found


def titled(path: Sequence[str], text: str) -> str:
    """A text below its heading path, as in the content of a chunk."""
    heading = " › ".join(" ".join(title.split()) for title in path)
    return f"{heading}\n\n{text}" if heading else text
