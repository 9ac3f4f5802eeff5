"""`perikope check`: find damaged or missing files of an index."""

from __future__ import annotations

import click

from perikope.cli.output import count, printable


@click.command(name="check")
@click.argument("index", metavar="INDEX")
def command(index: str) -> int:
    """Read a whole index and report damaged or missing files. The exit code is 1 if there are any.

    \b
    Example:
      perikope check idx
    """
    from pathlib import Path

    from perikope.index.check import check
    from perikope.neural.stores.store import check_stores

    report = check(Path(index))
    stores, damaged = check_stores(Path(index))
    for problem in (*report.problems, *damaged):
        click.echo(printable(problem), err=True)
    if report.unknown_files:
        click.echo(f"not part of the index: {printable(', '.join(report.unknown_files))}")
    if report.problems:
        click.echo(f"{report.readable_documents} of {report.documents} documents are in undamaged segments", err=True)
        return 1
    if damaged:
        return 1
    vectors = f", {count(stores, 'store')} of vectors" if stores else ""
    click.echo(f"{index} is undamaged: {count(report.documents, 'document')}{vectors}")
    return 0
