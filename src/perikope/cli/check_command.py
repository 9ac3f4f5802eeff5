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
    from perikope.index.saved_tables import check_tables
    from perikope.neural.stores.check import check_stores

    report, tables, stores = check(Path(index)), check_tables(Path(index)), check_stores(Path(index))
    problems = (*report.problems, *tables.problems, *stores.problems)
    for problem in problems:
        click.echo(printable(problem), err=True)
    if unknown := (*report.unknown_files, *tables.unknown_files, *stores.unknown_files):
        click.echo(f"not part of the index: {printable(', '.join(unknown))}")
    if report.problems:
        click.echo(f"{report.readable_documents} of {report.documents} documents are in undamaged segments", err=True)
    if problems:
        return 1
    others = [count(stores.stores, "store") + " of vectors"] if stores.stores else []
    others += [count(tables.tables, "learned table")] if tables.tables else []
    click.echo(f"{index} is undamaged: {', '.join([count(report.documents, 'document'), *others])}")
    return 0
