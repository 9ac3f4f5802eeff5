"""`perikope demo`: show how context changes the ranking of passages."""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import TYPE_CHECKING

import click

from perikope.cli.output import printable, shorten

if TYPE_CHECKING:
    from perikope.evaluation.demo import DemoComparison
    from perikope.search.facade import Hit


@click.command(name="demo")
@click.option("--to", "folder", metavar="FOLDER", help="Write the example files into this new folder instead, to try commands on them.")
def command(folder: str | None) -> int:
    """Show on example documents how context changes the ranking of passages.

    \b
    Examples:
      perikope demo
      perikope demo --to example
    """
    return _demonstrate() if folder is None else _write_files(folder)


def _write_files(folder: str) -> int:
    from perikope.evaluation.demo import write_example

    names = write_example(folder)
    click.echo(f"Wrote {', '.join(names)} to {folder}. Next:")
    click.echo(f"  perikope index {os.path.join(folder, 'docs')} --to idx")
    click.echo('  perikope search idx "pump with a magnetic coupling"')
    click.echo(f"  perikope serve {os.path.join(folder, 'docs')} --open")
    _tell_needs()
    return 0


def _demonstrate() -> int:
    from perikope.browse.explanation import render
    from perikope.evaluation.demo import WITH_CONTEXT, WITHOUT_CONTEXT, demonstrate

    facts, comparisons = demonstrate()
    click.echo(f"Indexed {facts}.\n")
    for comparison in comparisons:
        click.echo(click.style(f"» {comparison.query}", bold=True))
        _show(f"{WITHOUT_CONTEXT}: each passage alone", comparison, comparison.without)
        _show(f"{WITH_CONTEXT}: each passage in its context", comparison, comparison.within)
        click.echo()
    first = comparisons[0]
    click.echo(f"Why {first.answer} has rank {first.place(first.within)} with its context:\n")
    click.echo(textwrap.indent(printable_lines(render(first.explanation)), "  "))
    click.echo("\nTo see this in a browser, with the score of every passage explained:")
    click.echo("  perikope demo --to example")
    click.echo("  perikope serve example/docs --open")
    _tell_needs()
    return 0


def _tell_needs() -> None:
    """Say what `perikope serve` needs, if it is missing."""
    from importlib.util import find_spec

    from perikope.core.installation import install_command

    if find_spec("uvicorn") is None:
        click.echo(f"perikope serve needs another package: {install_command('server')}")


def printable_lines(text: str) -> str:
    """Text without control characters, except line feeds."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _show(title: str, comparison: DemoComparison, hits: list[Hit]) -> None:
    rank = comparison.place(hits)
    click.echo(f"\n  {title}   ({f'the answer has rank {rank}' if rank else 'the answer is not among the results'})")
    for hit in hits[:3]:
        _line(hit, hit.name == comparison.answer)
    if rank is not None and rank > 3:
        click.echo("     …")
        _line(hits[rank - 1], True)


def _line(hit: Hit, is_answer: bool) -> None:
    width = min(shutil.get_terminal_size().columns, 110)
    mark = click.style("✓", fg="green") if is_answer else " "
    path = printable(" › ".join(hit.path))
    click.echo(f"  {mark} {hit.rank:>2}. {hit.score:.3f}  {click.style(shorten(path, width - 18), fg='cyan')}")
    click.echo(f"               {shorten(printable(hit.text), width - 15)}")
