"""`perikope index`: make an index from files, or add to one."""

from __future__ import annotations

import time

import click

from perikope.cli.output import printable


@click.command(name="index")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--to", "folder", required=True, metavar="INDEX", help="The folder of the index.")
@click.option("--append", is_flag=True, help="Add to an index that is there.")
@click.option("--format", "format_name", default="auto", show_default=True, metavar="NAME", help="See `perikope formats`.")
@click.option("--language", default="en", show_default=True, metavar="CODE", help="Of documents that do not say, and of queries.")
@click.option("--stemmer", default="snowball", show_default=True, metavar="NAME", help="snowball, porter or none.")
@click.option("--stopwords", default="default", show_default=True, metavar="LIST", help="default, none or a file.")
@click.option(
    "--segment", default="markup", show_default=True, metavar="HOW", help="Passages: markup, sentences, words:100 or windows:100/50."
)
def command(
    paths: tuple[str, ...], folder: str, append: bool, format_name: str, language: str, stemmer: str, stopwords: str, segment: str
) -> int:
    """Make an index from files and folders.

    \b
    Examples:
      perikope index docs/ --to idx
      perikope index more.jsonl.gz --to idx --append
    """
    from perikope.build import build

    started = time.perf_counter()
    report = build(
        folder, paths, append=append, format=format_name, language=language, stemmer=stemmer, stopwords=stopwords, segment=segment
    )
    seconds = time.perf_counter() - started
    click.echo(f"{report.documents} documents with {report.passages} passages added to {folder} in {seconds:.1f} s")
    if report.skipped:
        click.echo(f"skipped {len(report.skipped)} unreadable file{'s' if len(report.skipped) > 1 else ''}:", err=True)
        for problem in report.skipped[:20]:
            click.echo(f"  {printable(str(problem))}", err=True)
        if len(report.skipped) > 20:
            click.echo(f"  … and {len(report.skipped) - 20} more", err=True)
    return 1 if report.skipped else 0
