"""`perikope split`: split files into chunks for other programs."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from pathlib import Path

import click

from perikope.cli.output import count, printable, show_problems
from perikope.cli.passed_over import show_passed_over
from perikope.document.pieces import CHUNK_TOKENS


@click.command(name="split")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--to", "target", required=True, metavar="FILE.jsonl", help="Write one chunk per line to this file; - for standard output.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=CHUNK_TOKENS,
    show_default=True,
    metavar="N",
    help="Largest number of words of a chunk, with its heading path.",
)
@click.option("--join/--no-join", default=True, help="Join consecutive passages of a section that fit into one chunk.  [default: join]")
@click.option(
    "--segment", default="markup", show_default=True, metavar="HOW", help="How passages are cut, as in `perikope index`."
)  # fmt: skip
@click.option("--format", default="auto", show_default=True, metavar="NAME", help="Format of the files; see `perikope formats`.")
@click.option("--language", default="en", show_default=True, metavar="CODE", help="Language of documents that do not state it.")
@click.option("--languages", default="", metavar="CODE,…", help="Split text in these languages only, such as en.  [default: all languages]")
def command(
    paths: tuple[str, ...], target: str, budget: int, join: bool, segment: str, format: str, language: str, languages: str
) -> int:  # fmt: skip
    """Split files, folders and archives into chunks for other programs, such as a vector store.

    A chunk is a passage or several, with heading path, neighbours and source. The key `content` is the text to embed.

    \b
    Examples:
      perikope split docs/ --to chunks.jsonl
      perikope split manual.html --to - --budget 120
    """
    import orjson

    from perikope.build.splitting import split
    from perikope.core.files import replacing
    from perikope.formats._other_files import suffix_of
    from perikope.index.duplicates import DuplicateWarning

    problems: list[str] = []
    ignored: Counter[str] = Counter()
    links: list[str] = []
    codes = tuple(code.strip() for code in languages.split(",") if code.strip())
    chunks = split(
        paths, budget=budget, join=join, segment=segment, format=format, language=language, languages=codes,
        on_problem=lambda problem: problems.append(str(problem)),
        on_ignored=lambda path: ignored.update([suffix_of(path)]), on_link=links.append,
    )  # fmt: skip
    lines = (orjson.dumps(chunk.to_dict()).decode() for chunk in chunks)
    number = 0
    with warnings.catch_warnings():
        warnings.simplefilter("always", DuplicateWarning)
        if target == "-":
            for line in lines:
                click.echo(line)
        else:
            with replacing(Path(target)) as file:
                for number, line in enumerate(lines, start=1):  # noqa: B007
                    file.write(f"{line}\n")
            click.echo(f"{count(number, 'chunk')} written to {printable(target)}")
    show_passed_over(ignored, len(links), f"perikope split {shlex.join(paths)} --to OTHER.jsonl", err=True)
    show_problems("could not be read, or not completely", problems)
    return 1 if problems else 0
