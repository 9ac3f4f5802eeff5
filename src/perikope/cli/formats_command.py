"""`perikope formats`: list the formats that can be read."""

from __future__ import annotations

import click


@click.command(name="formats")
def command() -> int:
    """List the formats that can be read, with their file name suffixes.

    \b
    Example:
      perikope formats
    """
    from perikope.formats import FORMATS

    for name, entry in FORMATS.items():
        click.echo(f"{name:<10} {', '.join(entry.suffixes):<24} {entry.summary}")
    return 0
