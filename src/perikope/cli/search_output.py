"""Print the results of a search, or write them to a file: hits, documents, counts of values, text for a model."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perikope.cli.output import count, printable, show, table_lines, verbatim
from perikope.core.errors import UsageError
from perikope.core.numbers import number_in_print

if TYPE_CHECKING:
    from perikope.search.hits import RankedDocument
    from perikope.search.results import Results

FILES = ("csv", "xlsx", "ris")
"""The forms that `perikope.search.exports` makes."""
SUFFIXES = {".csv": "csv", ".xlsx": "xlsx", ".ris": "ris", ".jsonl": "json", ".json": "json"}
"""The form of a file by the end of its name."""
_VALUES_SHOWN = 10
"""The number of values of a field whose counts are shown; JSON has all of them."""


def chosen_form(asked: Mapping[str, bool], out: str) -> str:
    """The form of the output: `json`, `csv`, `xlsx`, `ris`, or empty for text.

    `asked` says which forms were given as options, and `out` is the path of the output file or empty.
    """
    given = [form for form, is_given in asked.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} are different forms; give one of them")
    if out:
        _check_file(Path(out))
    of_name = SUFFIXES.get(Path(out).suffix.lower(), "")
    if given and of_name and of_name != given[0]:
        raise UsageError(f"the name of {out} and --{given[0]} ask for different forms; leave out --{given[0]}, or change the name")
    form = given[0] if given else of_name
    if out and not form:
        raise UsageError(f"the form of {out} is not known: end the name in {', '.join(SUFFIXES)}, or give --csv, --xlsx, --ris or --json")
    if form == "xlsx" and not out:
        raise UsageError("a spreadsheet cannot be printed; give the file with --out FILE.xlsx")
    return form


def _check_file(path: Path) -> None:
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {path.parent}; create the folder first")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder; give the path of a file")


def show_hits(results: Results, form: str, out: str, *, context: bool, full: bool) -> None:
    """Print one paragraph per hit, or write the hits in another form."""
    if form == "json":
        _write_lines(map(_json, results.to_dicts()), out)
    elif form:
        from perikope.search.exports import export

        _write(export(form, list(results)), form, out, len(results))
    elif len(results):
        click.echo("\n\n".join(show(hit, context=context, full=full, language=results.of_several_languages) for hit in results))


def show_documents(documents: list[RankedDocument], form: str, out: str, model: str) -> None:
    """Print one line per document, with its date and title, or write the documents in another form.

    `model` is the model that ranked the passages; JSON names it.
    """
    if form == "json":
        _write_lines((_json({**document.to_dict(), "model": model}) for document in documents), out)
    elif form:
        from perikope.search.exports import export
        from perikope.search.hits import RankedDocument

        _write(export(form, documents, RankedDocument), form, out, len(documents))
    elif documents:
        rows = [[_rank(one), printable(one.document), _date(one), printable(one.title)] for one in documents]
        wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
        click.echo("\n".join(line if len(line) <= wide else f"{line[: wide - 1]}…" for line in table_lines(rows)))


def _rank(document: RankedDocument) -> str:
    return f"{document.rank:>3}. {number_in_print(document.score)}"


def _date(document: RankedDocument) -> str:
    """The date of a document by its metadata; empty if it has none."""
    values = (document.metadata.get(name) for name in ("date", "year"))
    return next((printable(str(value)) for value in values if isinstance(value, (str, int))), "")


def show_for_model(results: Results, words: int, as_json: bool) -> None:
    """Print the hits as one text of at most `words` words."""
    from perikope.search.context import no_room

    text = results.context(words)
    click.echo(_json({**asdict(text), "model": results.model}) if as_json else verbatim(text.text), nl=bool(text.text) or as_json)
    if text.needed:
        click.echo(f"perikope: note: {no_room(words, text.needed)}", err=True)


def show_facets(facets: Mapping[str, Mapping[str, int]], as_json: bool) -> None:
    """Print the number of documents per value, field by field; as JSON, one object after the hits."""
    if as_json:
        click.echo(_json({"facets": facets}))
        return
    for field, values in facets.items():
        click.echo(f"\n{printable(field)}: {count(len(values), 'value') if values else 'no value'} in the documents of the results")
        shown = list(values.items())[:_VALUES_SHOWN]
        for line in table_lines([[f"{number:,}", printable(value)] for value, number in shown], right={0}) if shown else []:
            click.echo(f"  {line}")
        if len(values) > _VALUES_SHOWN:
            click.echo(f"  … and {count(len(values) - _VALUES_SHOWN, 'other value')}")


def _json(record: Any) -> str:
    return json.dumps(record, ensure_ascii=False)


def _write_lines(lines: Iterator[str], out: str) -> None:
    if not out:
        for line in lines:
            click.echo(line)
        return
    from perikope.core.files import replacing

    listed = list(lines)
    with replacing(out) as file:
        file.writelines(f"{line}\n" for line in listed)
    _tell(len(listed), out)


def _write(content: bytes, form: str, out: str, number: int) -> None:
    """Write a file, or print it. A CSV file begins with a byte order mark, by which spreadsheets know its encoding."""
    if not out:
        click.echo(content, nl=False)
        return
    from perikope.core.files import replacing_binary

    with replacing_binary(out) as file:
        file.write((b"\xef\xbb\xbf" if form == "csv" else b"") + content)
    _tell(number, out)


def _tell(number: int, out: str) -> None:
    click.echo(f"{count(number, 'result')} written to {printable(out)}")
