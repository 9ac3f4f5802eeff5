"""Formats: each format reads one kind of file and yields documents.

A format is one module of this package with one registered function:

    @reader("text", suffixes=(".txt",))
    def read(source: Source) -> Iterator[Document]: ...

This package opens packed files and archives. A format reads a stream of unpacked bytes and need not know its origin.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from perikope.core.errors import InputError, InputWarning, UnreadableFile, UsageError, unknown
from perikope.core.file_limits import FILE_LIMITS, FileLimits
from perikope.core.registry import Registry
from perikope.document.tree import Document
from perikope.formats import _archives
from perikope.formats._other_files import group_of, links_outside, suffix_of, summary, with_text
from perikope.formats._source import MAX_BYTES, Source, check_packed, check_size, document_id, file_hash, language_or_nothing, unreadable
from perikope.formats._unpack import DAMAGE, is_packed, stem
from perikope.formats._walk import walk

__all__ = [
    "FORMATS",
    "FileEntry",
    "FileLimits",
    "Format",
    "Source",
    "document_id",
    "documents",
    "file_hash",
    "files",
    "is_archive",
    "is_read",
    "line_chunks",
    "read",
    "reader",
    "sources",
]

CHUNK = 4 << 20
"""Bytes per piece that a worker gets: about a thousand documents, so that the transfer costs little per document."""

_WAY_OUT = "To leave such files out, use perikope.read(…, on_problem=print), or index.sync(folder), which lists them in its report."
"""The note on the error for a file in a folder or an archive, if the caller of `read` gives no `on_problem`."""

Reader = Callable[[Source], Iterator[Document]]
Splitter = Callable[[Source, int], Iterator[Source]]
OnProblem = Callable[[UnreadableFile], None]
OnIgnored = Callable[[str], None]
Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: its name, the suffixes of its files, and the function that reads them."""

    name: str
    suffixes: tuple[str, ...]
    read: Reader
    summary: str
    split: Splitter | None = None
    """Cuts a file into pieces of whole documents, for several workers; None if each file holds one document."""
    takes: tuple[str, ...] = ()
    """Further suffixes; files with them are read as this format only if the user names the format."""
    whole: bool = False
    """Whether each file is read as a whole, so that a file of more than `MAX_BYTES` is refused before it is hashed."""
    contained: bool = False
    """Whether the reader runs in a process of its own, with limits of time and memory, as it may get hostile files."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file on disk that is to be read."""

    id: str
    """The default id of the file's document, and the value of `Document.source` for all documents of the file."""
    path: str
    format: str
    """The name of the format; `tar` or `zip` for an archive."""
    named: bool = True
    """Whether the user named the file itself, and not the folder that holds it."""


FORMATS: Registry[Format] = Registry("format", "perikope.formats")


def reader(
    name: str, *, suffixes: tuple[str, ...], split: Splitter | None = None, whole: bool = False, contained: bool = False
) -> Callable[[Reader], Reader]:
    """Decorator that registers a function as the reader of a format.

    The first line of the function's docstring becomes `Format.summary`.
    """

    def register(function: Reader) -> Reader:
        summary = (function.__doc__ or "").strip().partition("\n")[0]
        FORMATS.add(name, Format(name, suffixes, function, summary, split, whole=whole, contained=contained), function)
        return function

    return register


def read(
    paths: Path | Iterable[Path],
    *,
    format: str = "auto",
    language: str = "en",
    on_problem: OnProblem | None = None,
    on_ignored: OnIgnored | None = None,
    on_link: OnIgnored | None = None,
    hashes: bool = True,
    limits: FileLimits = FILE_LIMITS,
) -> Iterator[Document]:
    """Yield the documents of files, archives and folders, in the given order.

    `on_problem` is called with the error for each file in a folder or an archive that cannot be read, and for each file
    that can be read only in part. Without `on_problem` the error is raised, with a note on how to leave such files out.
    If a file in `paths` itself cannot be read at all, the error is always raised.

    `on_ignored` is called with the path of each file in a folder or an archive that is not of a wanted format; without
    it, a warning at the end counts those that may hold text. `on_link`, or else `on_ignored`, is called with the path
    of each link that leads outside its folder, which is not followed.

    If `hashes` is false, `Document.source_hash` is empty, which saves time. `limits` are the time and the memory that
    one file may take if its format, such as PDF, is read in a process of its own.

    >>> read("missing.md")
    Traceback (most recent call last):
    perikope.core.errors.InputError: missing.md: there is no such file or folder; check the path
    """
    given = _listed(paths)
    ignored: Counter[str] = Counter()

    def ignore(path: str) -> None:
        ignored[suffix_of(path)] += 1

    entries = files(given, format=format, on_problem=on_problem, on_ignored=on_ignored or ignore, on_link=on_link)
    all_sources = sources_of(
        entries, format=format, language=language, on_problem=on_problem, on_ignored=on_ignored or ignore, hashes=hashes, limits=limits
    )
    return _read_all(all_sources, on_problem, given, ignored)


def sources(
    paths: Path | Iterable[Path],
    *,
    format: str = "auto",
    language: str = "en",
    on_problem: OnProblem | None = None,
    on_ignored: OnIgnored | None = None,
    hashes: bool = True,
    select: Callable[[FileEntry, str], bool] | None = None,
    limits: FileLimits = FILE_LIMITS,
) -> Iterator[Source]:
    """Yield the sources whose documents `read` yields: one source per file or member of an archive.

    A wrong argument raises an error at once, before any source is read. `select` gets the entry and the hash of each
    file (the hash is empty without `hashes`) and returns whether to read the file. A member of an archive can be read
    only until the next source is taken; `Source.carried` returns a copy without this limit.
    """
    entries = files(paths, format=format, on_problem=on_problem, on_ignored=on_ignored)
    return sources_of(
        entries,
        format=format,
        language=language,
        on_problem=on_problem,
        on_ignored=on_ignored,
        hashes=hashes,
        select=select,
        limits=limits,
    )


def sources_of(
    entries: Iterable[FileEntry],
    *,
    format: str = "auto",
    language: str = "en",
    on_problem: OnProblem | None = None,
    on_ignored: OnIgnored | None = None,
    hashes: bool = True,
    select: Callable[[FileEntry, str], bool] | None = None,
    limits: FileLimits = FILE_LIMITS,
) -> Iterator[Source]:
    """Yield the sources of the entries that `files` returned, so that folders are listed only once; see `sources`."""
    code = language_or_nothing(language)
    if not code:
        raise UsageError(f"{language!r} is not a language code; use one such as en, fr or de")
    return _sources(entries, Source("", "", code, format, limits=limits), _reporter(on_problem), on_ignored or _pass_over, hashes, select)


def files(
    paths: Path | Iterable[Path],
    *,
    format: str = "auto",
    on_problem: OnProblem | None = None,
    on_ignored: OnIgnored | None = None,
    on_link: OnIgnored | None = None,
    on_refused: OnIgnored | None = None,
) -> Iterator[FileEntry]:
    """Yield an entry for each file on disk that `read` opens; an archive is one file.

    Arguments are as for `read`. `on_link` is called instead of `on_ignored` with the path of each link that leads
    outside its folder. `on_refused` is called with the path of each file of another format that cannot be opened, such
    as a pipe or a link whose target cannot be reached. Wrong arguments, and a given folder that cannot be listed, raise
    an error.
    """
    if format != "auto":
        format_named(format)
    given = _listed(paths)
    for path in given:
        _check_exists(path)
        if not os.path.isdir(path):
            _named(path, format)
    ignore = on_ignored or _pass_over
    return _find(given, _Listing(format, _reporter(on_problem), ignore, on_link or ignore, on_refused or _pass_over))


def format_named(name: str) -> Format:
    """The format with a name. A name that ends in `.toml` is the path of an XML profile, which describes a format."""
    if name.endswith(".toml"):
        from perikope.formats.xml import format_of

        return format_of(name)
    if known := FORMATS.packaged(name):
        return known
    if name not in FORMATS:
        raise unknown("format", name, ["auto", *FORMATS.names(), "PROFILE.toml"])
    return FORMATS[name]


def is_read(suffix: str) -> bool:
    """Whether files with this suffix are read, as a format or as an archive.

    >>> is_read(".md"), is_read(".md.gz"), is_read(".zip"), is_read(".png")
    (True, True, True, False)
    """
    return bool(_format_of(f"file{suffix}", "auto"))


def without_reader(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of suffixes whose files may hold text, and which no format reads.

    >>> without_reader({".md": 2, ".abw": 1, ".png": 3})
    {'.abw': 1}
    """
    return {suffix: number for suffix, number in with_text(counts).items() if not is_read(suffix)}


def is_archive(path: str) -> bool:
    """Whether a file is an archive of files, by its name."""
    return bool(_archives.archive_kind(path))


def documents(source: Source) -> Iterator[Document]:
    """Yield the documents of one source: a file, a member of an archive, or a piece of a file.

    Raises `InputError` if the source cannot be read.
    """
    try:
        for document in _reader_of(format_named(source.format))(source):
            # `Source.finish` sets `source`; a format that does not call it leaves `source` empty.
            if document.source != source.source:
                document = replace(document, source=source.source, source_hash=source.source_hash, member=source.member)
            yield document
    except DAMAGE as error:
        raise unreadable(source.path, error) from error
    except RecursionError:
        raise UnreadableFile("is nested too deeply to be read; flatten it", path=source.path) from None


def _reader_of(format: Format) -> Reader:
    if not format.contained:
        return format.read
    # Imported here, because most folders have no such files.
    from perikope.formats._extraction.documents import contained

    return contained


def line_chunks(source: Source, size: int = CHUNK) -> Iterator[Source]:
    """Cut a source whose documents are lines into portable pieces for several workers.

    Each piece is a source that holds whole lines and the number of its first line. All pieces but the last have at
    least `size` bytes.
    """
    has_lines, line = False, 1
    try:
        with source.open() as stream:
            while data := stream.read(size):
                if not data.endswith(b"\n"):
                    rest = stream.readline(MAX_BYTES + 1)
                    if len(rest) > MAX_BYTES:
                        number = line + data.count(b"\n")
                        raise InputError(f"the line is longer than {MAX_BYTES >> 20} MB; split the document", path=source.path, line=number)
                    data += rest
                if data.strip(b"\xef\xbb\xbf \t\r\n"):
                    has_lines = True
                    yield replace(source, content=data, first_line=line)
                line += data.count(b"\n")
    except DAMAGE as error:
        raise unreadable(source.path, error) from error
    if not has_lines:
        raise UnreadableFile("is empty; remove it or write one document per line", path=source.path)


def _read_all(
    all_sources: Iterable[Source], on_problem: OnProblem | None, given: list[str], ignored: Mapping[str, int]
) -> Iterator[Document]:
    report = _reporter(on_problem)
    for source in all_sources:
        try:
            yield from documents(source)
        except UnreadableFile as problem:
            if source.named and not problem.partly:
                raise
            report(problem)
    passed_over = without_reader(ignored)
    if passed_over:
        message = f"files that no format reads were passed over: {summary(passed_over)}; on_ignored=print lists them"
        warnings.warn(InputWarning(message, path=", ".join(given)), stacklevel=3)


def _listed(paths: Path | Iterable[Path]) -> list[str]:
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def _sources(
    entries: Iterable[FileEntry],
    template: Source,
    on_problem: OnProblem,
    on_ignored: OnIgnored,
    hashes: bool,
    select: Callable[[FileEntry, str], bool] | None,
) -> Iterator[Source]:
    for entry in entries:
        try:
            is_archive = entry.format in _archives.KINDS
            if not is_archive and format_named(entry.format).whole:
                check_size(entry.path)
            # The hash is computed before the file is read: a change in between is then noticed at the next comparison.
            digest = file_hash(entry.path) if hashes else ""
            if select is not None and not select(entry, digest):
                continue
            source = replace(
                template, path=entry.path, id=entry.id, format=entry.format, named=entry.named, source=entry.id, source_hash=digest
            )
            if not is_archive and is_packed(entry.path) and not format_named(entry.format).whole:
                # Documents are taken one by one, before the end of the file is reached.
                check_packed(entry.path)
            if is_archive:
                yield from _in_archive(source, template.format, on_problem, on_ignored)
            else:
                yield source
        except UnreadableFile as problem:
            if entry.named:
                raise
            on_problem(problem)


def _in_archive(archive: Source, asked: str, on_problem: OnProblem, on_ignored: OnIgnored) -> Iterator[Source]:
    matched = False

    def report(problem: UnreadableFile) -> None:
        nonlocal matched
        matched = True
        on_problem(problem)

    format_of = partial(_format_of, asked=asked)
    members = _archives.members(archive.path, archive.id, archive.format, format_of=format_of, on_problem=report, on_ignored=on_ignored)
    for member in members:
        matched = True
        yield replace(archive, path=member.path, id=member.id, format=member.format, named=False, content=member.stream)
    if archive.named and not matched:
        raise InputError(f"no file in this archive is of a known format; {_known_suffixes()}", path=archive.path)


def _check_exists(path: str) -> None:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("there is no such file or folder; check the path", path=path) from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


@dataclass(frozen=True, slots=True)
class _Listing:
    """How folders are listed: the format that the user asked for, and the functions that are told what is left out."""

    asked: str
    on_problem: OnProblem
    on_ignored: OnIgnored
    on_link: OnIgnored
    on_refused: OnIgnored


def _find(paths: list[str], listing: _Listing) -> Iterator[FileEntry]:
    for path in paths:
        if os.path.isdir(path):
            yield from _in_folder(path, listing)
        else:
            yield _named(path, listing.asked)


def _named(path: str, asked: str) -> FileEntry:
    format = _format_of(path, "auto")
    if asked != "auto" and format not in _archives.KINDS:
        format = asked
    if not format:
        group = group_of(suffix_of(path))
        if group.must_be_converted:
            raise UsageError(f"{path}: files of this kind are {group.advice}")
        names = ", ".join(FORMATS.names())
        raise UsageError(f"cannot tell the format of {path} by its name; name it with --format (format= in Python), one of: {names}")
    return FileEntry(document_id(os.path.basename(path)), path, format)


def _in_folder(folder: str, listing: _Listing) -> Iterator[FileEntry]:
    matched = False
    ignored: Counter[str] = Counter()
    links = 0
    unlisted: list[UnreadableFile] = []

    def pass_over(link: str) -> None:
        nonlocal links
        links += 1
        listing.on_link(link)

    def report(problem: UnreadableFile) -> None:
        unlisted[:] = unlisted or [problem]
        listing.on_problem(problem)

    for relative, refusal in walk(folder, report, pass_over):
        path, format = os.path.join(folder, relative), _format_of(relative, listing.asked)
        matched = matched or bool(format)
        if format and refusal:
            listing.on_problem(UnreadableFile(refusal, path=path))
        elif format:
            yield FileEntry(document_id(relative), path, format, named=False)
        elif refusal:
            listing.on_refused(path)
        else:
            ignored[suffix_of(relative)] += 1
            listing.on_ignored(path)
    if not matched:
        raise unlisted[0] if unlisted else _no_file(folder, listing.asked, ignored, links)


def _no_file(folder: str, asked: str, ignored: Counter[str], links: int) -> InputError:
    """The error for a folder without any file of the wanted formats."""
    listed = ", ".join(filter(None, (summary(ignored), links_outside(links) if links else "")))
    found = f" ({listed})" if listed else ""
    hint = _known_suffixes() if asked == "auto" else "leave out --format to recognise the format of each file"
    kind = "a known format" if asked == "auto" else f"the format {asked}"
    return InputError(f"no file in this folder is of {kind}{found}; {hint}", path=folder)


def _format_of(path: str, asked: str) -> str:
    """The format or kind of archive (`tar`, `zip`) of a file in a folder or an archive; empty if it is ignored."""
    name = stem(os.path.basename(path)).lower()
    # Most suffixes are the names of their formats; only the module of this format is then loaded.
    alone = FORMATS.packaged(name.rpartition(".")[2])
    if alone and name.endswith(alone.suffixes):
        by_suffix = alone.name
    else:
        by_suffix = next((format.name for _, format in FORMATS.items() if name.endswith(format.suffixes)), "")
    if not by_suffix and (kind := _archives.archive_kind(path)):
        return kind
    # A format that the user names also reads files of unknown suffix, but not files with a suffix of another format.
    return by_suffix if asked == "auto" else asked if by_suffix in ("", asked) or name.endswith(format_named(asked).takes) else ""


def _known_suffixes() -> str:
    suffixes = ", ".join(sorted(suffix for _, known in FORMATS.items() for suffix in known.suffixes))
    return f"known suffixes: {suffixes} (also with .gz, .bz2 or .xz, and in .zip and .tar archives)"


def _pass_over(path: str) -> None:
    """Do nothing; the default of `on_ignored`."""


def _reporter(on_problem: OnProblem | None) -> OnProblem:
    """Return a function that passes the error for a file to `on_problem`, or raises it if `on_problem` is None."""

    def report(problem: UnreadableFile) -> None:
        if on_problem is None:
            problem.add_note(_WAY_OUT)
            raise problem
        # The traceback is dropped, because its frames keep the content of the file in memory.
        problem.__cause__ = problem.__context__ = None
        on_problem(problem.with_traceback(None))

    return report
