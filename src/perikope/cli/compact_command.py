"""`perikope compact`: merge the segments of an index and remove deleted documents from the disk."""

from __future__ import annotations

import click

from perikope.cli.options import size_option


@click.command(name="compact")
@click.argument("index", metavar="INDEX")
@size_option
@click.option(
    "--wait",
    default=0.0,
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Seconds to wait if another process is changing the index.  [default: 0]",
)
def command(index: str, memory: int, wait: float) -> int:
    """Merge the segments of an index, and remove deleted documents from the disk.

    A merged segment has at most about 2 billion words. A larger index keeps several segments.

    \b
    Example:
      perikope compact idx
    """
    from perikope.search.facade import Index

    opened = Index.open(index, memory=memory, wait=wait)
    opened.compact()
    click.echo(f"{index}: {len(opened)} documents with {opened.passages} passages")
    return 0
