"""Split files into chunks for other programs, without an index."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any

from perikope.build.workers import preparing
from perikope.core.numbers import check_whole
from perikope.document.chunks import Chunk, TokenCount, chunks_of, count_tokens
from perikope.document.pieces import CHUNK_TOKENS
from perikope.document.tree import Document
from perikope.formats import OnIgnored, OnProblem, read
from perikope.index.duplicates import Duplicate, DuplicateWarning

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def split(
    given: Paths | Document | Iterable[Document],
    *,
    budget: int = CHUNK_TOKENS,
    tokens: TokenCount = count_tokens,
    join: bool = True,
    segment: str = "markup",
    format: str = "auto",
    language: str = "en",
    languages: Sequence[str] = (),
    on_problem: OnProblem | None = None,
    on_ignored: OnIgnored | None = None,
    on_link: OnIgnored | None = None,
) -> Iterator[Chunk]:
    """Yield the chunks of files, folders and archives, or of documents, in reading order.

    A chunk is one passage, or several consecutive passages of one section if `join` is true. Its `content`, which is
    the heading path and the text, has at most `budget` tokens; `tokens` counts them, by default as words. `segment`
    and `languages` are options of `perikope index`, and the others are those of `perikope.read`. If several documents
    have the same id, the first one is split, and a warning names the others.

    >>> from perikope.document.tree import TreeBuilder
    >>> builder = TreeBuilder("d1", title="Pumps")
    >>> _ = builder.passage("A magnet drives the rotor.")
    >>> [chunk.content for chunk in split(builder.build())]
    ['Pumps\\n\\nA magnet drives the rotor.']
    """
    check_whole("the budget of a chunk", budget, 1)
    prepare = preparing(segment, languages)
    reading = partial(read, format=format, language=language, on_problem=on_problem, on_ignored=on_ignored, on_link=on_link, hashes=False)
    documents = _documents(given, reading)
    return (
        chunk
        for document in _without_duplicates(documents)
        for prepared in prepare(document)
        for chunk in chunks_of(prepared, budget=budget, tokens=tokens, join=join)
    )


def _documents(given: Paths | Document | Iterable[Document], reading: Callable[[Any], Iterator[Document]]) -> Iterable[Document]:
    """The given documents, or those of the given paths."""
    if isinstance(given, Document):
        return [given]
    if not isinstance(given, (str, PathLike)):
        items = iter(given)
        first = next(items, None)
        if first is None:
            return []
        given = chain([first], items)  # type: ignore[assignment]
        if isinstance(first, Document):
            return given  # type: ignore[return-value]
    return reading(given)


def _without_duplicates(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield the documents whose ids are new. A warning names the others when all documents were read."""
    source_of: dict[str, str] = {}
    left_out = []
    for document in documents:
        source = document.member or document.source
        if document.id in source_of:
            left_out.append(Duplicate(document.id, source, source_of[document.id]))
        else:
            source_of[document.id] = source
            yield document
    if left_out:
        warnings.warn(DuplicateWarning(left_out), stacklevel=2)
