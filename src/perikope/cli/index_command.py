"""`perikope index`: make an index from files, or change an index."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perikope.cli.options import GroupedCommand, SizeType, size_option
from perikope.cli.output import count, printable, show_warning, without_passage
from perikope.cli.passed_over import show_passed_over, warning_on_passed_over
from perikope.core.file_limits import FILE_SECONDS
from perikope.core.files import MANIFEST_FILE
from perikope.index.duplicates import DEFAULT_DUPLICATES, DUPLICATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perikope.build.indexing import BuildReport
    from perikope.core.errors import UnreadableFile

MOST_REASONS = 20
"""The number of reasons why files could not be read that are printed."""
MOST_NAMES = 20
"""The number of files that are named for each reason."""
_CONTAINED = "one PDF, office file, book, message, notebook, Parquet file, or file of LaTeX, AsciiDoc, Org or reStructuredText"
"""The files that are read in a process of their own."""

_GROUPS = {
    "What to do": ("folder", "append", "replace", "sync", "delete", "duplicates"),
    "How files are read": ("format", "language", "languages", "segment", "stemmer", "stopwords"),
    "Resources": ("memory", "workers", "file_seconds", "file_memory", "wait"),
}


@click.command(name="index", cls=GroupedCommand, groups=_GROUPS)
@click.argument("paths", nargs=-1, metavar="[PATH…]")
@click.option("--to", "folder", required=True, metavar="INDEX", help="Folder of the index; it is created if it does not exist.")
@click.option("--append", is_flag=True, help="Add documents to an existing index.")
@click.option("--replace", is_flag=True, help="Add documents to an existing index and replace those with the same id.")
@click.option(
    "--sync",
    is_flag=True,
    help="Make the index equal to PATH: add new, replace changed and delete missing documents, compared by content.",
)
@click.option("--delete", multiple=True, metavar="ID", help="Delete the document with this id. May be given several times.")
@click.option("--format", default="auto", show_default=True, metavar="NAME", help="Format of the files; see `perikope formats`.")
@click.option("--language", metavar="CODE", help="Language of documents that do not state it.  [default: en, or that of the index]")
@click.option(
    "--languages",
    default="",
    metavar="CODE,…",
    help="Index text in these languages only, such as en; names in patents are kept.  [default: all languages]",
)
@click.option("--stemmer", metavar="NAME", help="Stemmer: snowball, porter or none.  [default: snowball]")
@click.option("--stopwords", metavar="LIST", help="Stop words: default, none, or a file of words.  [default: default]")
@click.option(
    "--segment",
    default="markup",
    show_default=True,
    metavar="HOW",
    help="How passages are cut: by markup, at-most:200 (markup; passages of more than 200 words are cut), sentences, words:100, or "
    "windows:100/50 (100 words, one window every 50). "
    "tags:p,li keeps the passages of the markup with these tags only.",
)
@click.option(
    "--duplicates",
    type=click.Choice(DUPLICATES),
    default=DEFAULT_DUPLICATES,
    show_default=True,
    help="If several documents have the same id: index the first in the order of files and name the others, or stop with an error.",
)
@size_option
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes that read files, at most four per core.  [default: one per core for large input, else 1]",
)
@click.option(
    "--file-seconds",
    default=FILE_SECONDS,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help=f"Longest time for reading {_CONTAINED}; a file that takes longer is named and left out.",
)
@click.option(
    "--file-memory",
    type=SizeType(),
    default="2G",
    show_default=True,
    metavar="SIZE",
    help=f"Most memory for reading {_CONTAINED}; a file that needs more is named and left out.",
)
@click.option(
    "--wait",
    default=0.0,
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Seconds to wait if another process is changing the index.  [default: 0]",
)
def command(paths: tuple[str, ...], folder: str, delete: tuple[str, ...], languages: str, **options: str | int | bool | None) -> int:
    """Make an index from files, folders and archives, or change an index.

    \b
    Examples:
      perikope index docs/ --to idx
      perikope index more.jsonl.gz --to idx --append
      perikope index docs/ --to idx --sync
      perikope index --to idx --delete report-7
    """
    from perikope.build.indexing import BuildOptions, build, input_size
    from perikope.core.errors import UsageError

    if not paths and not delete:
        raise UsageError("nothing to do: give files or folders to index, or ids of documents to --delete")
    chosen = tuple(code.strip() for code in languages.split(",") if code.strip())
    is_new = not (Path(folder) / MANIFEST_FILE).exists()
    started = time.perf_counter()
    visible = sys.stderr.isatty()
    with click.progressbar(length=input_size(paths) if visible else 1, label="reading", file=sys.stderr, hidden=not visible) as bar:
        done = 0

        def advance(documents: int, size: int) -> None:
            nonlocal done
            done += documents
            bar.label = f"{done} documents, {done / (time.perf_counter() - started):.0f}/s"
            bar.update(size)

        report = build(folder, paths, BuildOptions(**options, languages=chosen), delete=_ids_to_delete(folder, delete), on_progress=advance)  # type: ignore[arg-type]
    seconds = time.perf_counter() - started
    contents = f"{count(report.documents, 'document')} with {count(report.passages, 'passage')}"
    click.echo(f"{folder}: {_changes(report, is_new)} in {seconds:.1f} s; it contains {contents}")
    if listed := without_passage(report.without_passage):
        click.echo(f"documents without a passage: {listed}")
    _show_duplicates(report)
    _show_skipped(report)
    command = f"perikope index {shlex.join([*paths, '--to', folder])} --append"
    show_passed_over(report.ignored, report.links_outside, command)
    if is_new:
        click.echo(f'search it: perikope search {shlex.quote(folder)} "your words"')
    show_warning(warning_on_passed_over(report.ignored, report.files))
    return 1 if report.skipped else 0


def _changes(report: BuildReport, is_new: bool) -> str:
    """What the build has changed, in words."""
    changes = [f"{count(report.added, 'document')} added"]
    if not is_new:
        changes += [f"{report.changed} changed", f"{report.removed} removed", f"{report.unchanged} unchanged"]
    return ", ".join(changes)


def _show_duplicates(report: BuildReport) -> None:
    """Name the documents that were left out, because another document has the same id."""
    from perikope.index.duplicates import named, split

    indexed, repeated = split(report.duplicates)
    for duplicates, why in (
        (indexed, "the index already has their ids (--replace replaces the documents of the index)"),
        (repeated, "an earlier document has the same id"),
    ):
        if duplicates:
            click.echo(f"{count(len(duplicates), 'document')} left out, because {why}:", err=True)
            for line in named(duplicates):
                click.echo(f"  {printable(line)}", err=True)


def _show_skipped(report: BuildReport) -> None:
    """Print the files that could not be read: one line per reason, with their names."""
    if not report.skipped:
        return
    by_reason: dict[str, list[UnreadableFile]] = {}
    for problem in report.skipped:
        by_reason.setdefault(problem.reason, []).append(problem)
    click.echo(f"{count(len(report.skipped), 'file')} could not be read, or not completely:", err=True)
    for problems in list(by_reason.values())[:MOST_REASONS]:
        click.echo(f"  {printable(_together(problems))}", err=True)
    if len(by_reason) > MOST_REASONS:
        others = sum(len(problems) for problems in list(by_reason.values())[MOST_REASONS:])
        click.echo(f"  … and {count(others, 'file')} for other reasons", err=True)


def _together(problems: Sequence[UnreadableFile]) -> str:
    """The names of files and the reason why they could not be read, which is the same for all."""
    reason, left_out = problems[0].reason, len(problems) - MOST_NAMES
    names = [str(problem).removesuffix(reason).removesuffix(": ") for problem in problems[:MOST_NAMES]]
    more = f" and {count(left_out, 'other file')}" if left_out > 0 else ""
    return f"{', '.join(names)}{more}: {reason}" if any(names) else reason


def _ids_to_delete(folder: str, given: tuple[str, ...]) -> list[str]:
    """The ids of the documents that the values of `--delete` name. A value that names several documents is an error."""
    if not given:
        return []
    from perikope.index.reader import Snapshot
    from perikope.query.publications import id_named

    snapshot = Snapshot.open(Path(folder))
    return [id_named(snapshot, text) for text in given]
