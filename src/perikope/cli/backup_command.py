"""`perikope backup`: a consistent copy of an index that others read and write meanwhile."""

from __future__ import annotations

import json

import click

from perikope.cli.output import byte_count, count


@click.command(name="backup")
@click.argument("index", metavar="INDEX")
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--link",
    is_flag=True,
    help="Give large files a second name instead of copying them; needs the same file system. Damage of the disk then hits both.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object.")
def command(index: str, folder: str, link: bool, as_json: bool) -> int:
    """Copy an index, with stores of vectors and learned tables, while others read and write it.

    FOLDER is new, or an earlier backup of the same index: then only new files are copied, and files that the index no
    longer has are removed. Every copied file is verified. The backup is an index like any other: search it, or copy it
    to another place to restore it.

    \b
    Example:
      perikope backup idx /backups/idx
      perikope search /backups/idx "magnetic coupling"
    """
    from pathlib import Path

    from perikope.index.backup import make_backup

    report = make_backup(Path(index), Path(folder), link=link)
    if as_json:
        click.echo(json.dumps(report.to_dict(), ensure_ascii=False))
        return 0
    done = f"{count(report.copied, 'file')} {'linked' if link else 'copied'} ({byte_count(report.copied_bytes)})"
    click.echo(f"{folder}: {count(report.documents, 'document')}; {done}, {report.kept} kept, {report.removed} removed")
    return 0
