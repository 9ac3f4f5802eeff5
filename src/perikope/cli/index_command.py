"""`perikope index`: make an index from files, or change an index."""

from __future__ import annotations

import sys
import time

import click

from perikope.cli.options import GroupedCommand, size_option
from perikope.cli.output import count, printable

_GROUPS = {
    "What to do": ("folder", "append", "replace", "sync", "delete", "duplicates"),
    "How files are read": ("format", "language", "languages", "segment", "stemmer", "stopwords"),
    "Resources": ("memory", "workers", "wait"),
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
    type=click.Choice(["error", "first"]),
    default="error",
    show_default=True,
    help="If several documents have the same id: stop with an error, or index the first and list the others.",
)
@size_option
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes that read files.  [default: one per core for large input, else 1]",
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
    changed = f"{count(report.added, 'document')} added" + (f", {report.deleted} removed" if report.deleted else "")
    contents = f"{count(report.documents, 'document')} with {count(report.passages, 'passage')}"
    click.echo(f"{folder}: {changed} in {seconds:.1f} s; it contains {contents}")
    if report.ignored:
        click.echo(f"{count(report.ignored, 'file')} of other formats skipped (see `perikope formats`)")
    if report.skipped:
        click.echo(f"{count(len(report.skipped), 'file')} could not be read completely:", err=True)
        for problem in report.skipped[:20]:
            click.echo(f"  {printable(str(problem))}", err=True)
        if len(report.skipped) > 20:
            click.echo(f"  … and {len(report.skipped) - 20} more", err=True)
    return 1 if report.skipped else 0


def _ids_to_delete(folder: str, given: tuple[str, ...]) -> list[str]:
    """The ids of the documents that the values of `--delete` name. A value that names several documents is an error."""
    if not given:
        return []
    from pathlib import Path

    from perikope.index.reader import Snapshot
    from perikope.query.publications import id_named

    snapshot = Snapshot.open(Path(folder))
    return [id_named(snapshot, text) for text in given]
