"""Formats: each reads a file of its kind and yields documents; all yield the same tree.

A format is one file in this package with one function:

    @reader("text", suffixes=(".txt",))
    def read(source: Source) -> Iterator[Document]: ...
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from perikope.document import Document
from perikope.errors import InputError, UnreadableFile, UsageError, unknown
from perikope.formats._source import Source, document_id, language_or_nothing, unreadable, walk
from perikope.registry import Registry

__all__ = ["FORMATS", "Format", "Source", "documents", "read", "reader", "sources"]

Reader = Callable[[Source], Iterator[Document]]
Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: its name, the suffixes it is known by, and the function that reads it."""

    name: str
    suffixes: tuple[str, ...]
    read: Reader
    summary: str


FORMATS: Registry[Format] = Registry("format", "perikope.formats")


def reader(name: str, *, suffixes: tuple[str, ...]) -> Callable[[Reader], Reader]:
    """Register a function as the reader of a format; the first line of its docstring is the summary."""

    def register(function: Reader) -> Reader:
        summary = (function.__doc__ or "").strip().partition("\n")[0]
        FORMATS.add(name, Format(name, suffixes, function, summary))
        return function

    return register


def read(
    paths: Path | Iterable[Path],
    *,
    format: str = "auto",
    language: str = "en",
    on_problem: Callable[[UnreadableFile], None] | None = None,
) -> Iterator[Document]:
    """The documents of files and folders, in order; `on_problem` hears of files in folders that had to be skipped.

    >>> read("missing.md")
    Traceback (most recent call last):
    perikope.errors.InputError: missing.md: there is no such file or folder; check the path
    """
    found = sources(paths, format=format, language=language, on_problem=on_problem)
    return _read_all(found, on_problem)


def sources(
    paths: Path | Iterable[Path],
    *,
    format: str = "auto",
    language: str = "en",
    on_problem: Callable[[UnreadableFile], None] | None = None,
) -> Iterator[Source]:
    """The files that `read` would read, each with its format; mistakes in the arguments are found before the first."""
    if format != "auto" and format not in FORMATS:
        raise unknown("format", format, ["auto", *FORMATS.names()])
    code = language_or_nothing(language)
    if not code:
        raise UsageError(f"{language!r} is not a language code; use one such as en, fr or de")
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    template = Source("", "", code, format)
    for path in given:
        if not os.path.exists(path):
            raise InputError("there is no such file or folder; check the path", path=path)
        if not os.path.isdir(path):
            _named(path, template)
    return _find(given, template, on_problem or _raise)


def documents(source: Source) -> Iterator[Document]:
    """The documents of one file; whatever keeps it from being read is an `InputError`."""
    try:
        yield from FORMATS[source.format].read(source)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(source.path, error) from error
    except RecursionError:
        raise UnreadableFile("is nested too deeply to be read; flatten it", path=source.path) from None


def _read_all(found: Iterable[Source], on_problem: Callable[[UnreadableFile], None] | None) -> Iterator[Document]:
    for source in found:
        try:
            yield from documents(source)
        except UnreadableFile as problem:
            if source.named or on_problem is None:
                raise
            on_problem(problem)


def _find(paths: list[str], template: Source, on_problem: Callable[[UnreadableFile], None]) -> Iterator[Source]:
    for path in paths:
        if os.path.isdir(path):
            yield from _in_folder(path, template, on_problem)
        else:
            yield _named(path, template)


def _named(path: str, template: Source) -> Source:
    format = template.format if template.format != "auto" else _format_by_suffix(path)
    if not format:
        names = ", ".join(FORMATS.names())
        raise UsageError(f"cannot tell the format of {path} by its name; say it with --format (format= in Python), one of: {names}")
    return replace(template, path=path, id=document_id(os.path.basename(path)), format=format)


def _in_folder(folder: str, template: Source, on_problem: Callable[[UnreadableFile], None]) -> Iterator[Source]:
    matched = False
    for relative in walk(folder, on_problem):
        by_suffix = _format_by_suffix(relative)
        # A format that was asked for also takes files of unknown suffix, but not those that are plainly something else.
        format = by_suffix if template.format == "auto" else template.format
        if format and by_suffix in ("", format):
            matched = True
            yield replace(template, path=os.path.join(folder, relative), id=document_id(relative), format=format, named=False)
    if not matched:
        suffixes = ", ".join(sorted(suffix for _, known in FORMATS.items() for suffix in known.suffixes))
        raise InputError(f"no file in this folder is of a known format; suffixes known: {suffixes} (also with .gz)", path=folder)


def _format_by_suffix(path: str) -> str:
    name = os.path.basename(path).lower().removesuffix(".gz")
    return next((format.name for _, format in FORMATS.items() if name.endswith(format.suffixes)), "")


def _raise(problem: UnreadableFile) -> None:
    raise problem
