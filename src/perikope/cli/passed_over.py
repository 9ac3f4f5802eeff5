"""What the commands that read folders say about the files and links that they passed over."""

from __future__ import annotations

from collections.abc import Mapping

import click

from perikope.cli.output import count, printable


def show_passed_over(ignored: Mapping[str, int], links: int, command: str, *, err: bool = False) -> None:
    """Print the numbers of files by suffix and of links that lead outside, with advice; on standard error with `err`.

    `command` is the command that reads a file if `--format` is added to it.
    """
    from perikope.formats import is_read
    from perikope.formats._other_files import advice, links_outside, summary

    if links:
        click.echo(f"{links_outside(links)} passed over (a target is read if you give its path too)", err=err)
    total = sum(ignored.values())
    if not total:
        return
    click.echo(f"{count(total, 'file')} of other formats passed over: {printable(summary(ignored))}", err=err)
    other = {suffix: number for suffix, number in ignored.items() if not is_read(suffix)}
    for line in advice(other, command):
        click.echo(f"  {printable(line)}", err=err)
    if len(other) < len(ignored):
        click.echo(f"  {', '.join(sorted(set(ignored) - set(other)))}: left out by --format", err=err)


def warning_on_passed_over(ignored: Mapping[str, int], files: int) -> str:
    """The warning that ends the output if more files were passed over than read; empty if there is none."""
    from perikope.formats import without_reader

    passed_over = sum(without_reader(ignored).values())
    if passed_over <= files:
        return ""
    return f"most files were not read: {passed_over} of {passed_over + files} have another format (listed above)"
