"""`perikope search`: the best passages for a query."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perikope.cli.options import GivenSearch, GroupedCommand, document_ranking_option, search_options
from perikope.cli.output import count, printable, show_notes
from perikope.cli.search_output import FILES, chosen_form, show_documents, show_facets, show_for_model, show_hits
from perikope.search.options import BEST, OPTIONS

if TYPE_CHECKING:
    from perikope.query.topic import Topic
    from perikope.search.asking import Prepared
    from perikope.search.facade import Index
    from perikope.search.options import SearchOptions

INCOMPLETE = 1
"""The exit status if shards of a cluster are missing from the results."""
MAX_CLAIMS = 1 << 24
"""Maximum size of claims on standard input, in bytes."""


_GROUPS = {
    "A patent instead of a query": ("patent", "claims", "chosen"),
    "Output": ("context", "full", "for_model", "document_ranking", "facets", "json", "csv", "xlsx", "ris", "out", "no_server"),
}


@click.command(name="search", cls=GroupedCommand, groups=_GROUPS)
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="[QUERY]", required=False)
@click.option(
    "--patent",
    metavar="FILE|NUMBER",
    help="Search with a patent: a file, or the publication number of a patent in the index (EP1000000A1).",
)
@click.option(
    "--claims",
    metavar="TEXT|-",
    help="Search with this text of claims; - reads standard input. With --patent, the text replaces the claims of the patent.",
)
@click.option(
    "--claim",
    "chosen",
    multiple=True,
    metavar="N",
    help="With --patent: search with this claim of the patent only, given by its number. May be given several times.",
)
@click.option(
    "--no-server",
    is_flag=True,
    expose_value=False,
    help="Search in this process, even if a `perikope serve` of the same user has the index open and would answer faster.",
)
@click.option("--context", is_flag=True, help="Show the passages before and after each hit.")
@click.option("--full", is_flag=True, help="Show long passages in full.")
@click.option(
    "--for-model",
    type=click.IntRange(1),
    metavar="BUDGET",
    help="Print the hits as one text of at most this number of words, with borders and sources, for a language model or a reader.",
)
@click.option("--json", "json", is_flag=True, help="Print JSON Lines: one object per result.")
@click.option("--csv", "csv", is_flag=True, help="Print a table in CSV: one line per result.")
@click.option("--xlsx", "xlsx", is_flag=True, help="Write a spreadsheet to --out FILE: one row per result. Needs the extra sheets.")
@click.option("--ris", "ris", is_flag=True, help="Print RIS for a reference manager: one record per document, with its passages as notes.")
@click.option(
    "--out",
    default="",
    metavar="FILE",
    help="Write the results to this file. If it ends in .csv, .xlsx, .ris or .jsonl, the form need not be given.",
)
@click.option(
    "--facets",
    multiple=True,
    metavar="FIELD",
    help="After the results, count the values of this metadata field in all candidate documents with a passage that may be a result. "
    "May be given several times.",
)
@document_ranking_option
@search_options(
    help={
        "k": "Number of passages to return, or of documents with --document-ranking.",
        "offset": "Number of best results to leave out, to turn pages: --offset 10 begins with rank 11.",
    }
)
def command(
    index: str,
    query: str | None,
    patent: str | None,
    claims: str | None,
    chosen: tuple[str, ...],
    for_model: int | None,
    out: str,
    facets: tuple[str, ...],
    document_ranking: str,
    search: GivenSearch,
    context: bool,
    full: bool,
    **forms: bool,
) -> int:
    """Search an index and print the best passages.

    \b
    Examples:
      perikope search idx "pump with a magnetic coupling"
      perikope search idx "magnetic coupling" --model "psg_doc(lam=0.5)" -k 3 --context
      perikope search idx "magnetic coupling" --filter ipc=F04D --filter "date<2013-04-01" --part claims
      perikope search idx "magnetic coupling" --model bm25 --documents all
      perikope search idx "magnetic coupling" --recipe albarede2021 -k 10
      perikope search idx "how does a magnetic coupling slip?" --for-model 2000
      perikope search idx "magnetic coupling" --document-ranking maxp
      perikope search idx "magnetic coupling" -k 100 --one-per document --out results.csv
      perikope search idx "magnetic coupling" -k 10 --offset 10 --facets ipc
      perikope search idx --patent EP1000000A1 --one-per family
      perikope search idx --patent application.xml --no-date-limit
      perikope search idx --claims "A pump comprising a magnetic coupling"
    """
    from perikope.cli.opening import open_index

    form = _form(forms, out, document_ranking, for_model, facets)
    is_patent = _is_patent(query, patent, claims, chosen)
    if not is_patent:
        search.refuse_patent_options()
    opened = open_index(index)
    topic = _topic(query, patent, claims, chosen, search.run)
    options = search.options
    keywords = {**search.keywords, "k": 1, "offset": 0} if document_ranking else search.keywords
    results = opened.search(topic, **keywords)
    counts = {field: results.facets(field) for field in facets}
    documents = results.documents(document_ranking, options.k, offset=options.offset) if document_ranking else []
    show_notes(results.notes)
    if document_ranking:
        show_documents(documents, form, out, results.model)
    elif for_model is not None:
        show_for_model(results, for_model, form == "json")
    else:
        show_hits(results, form, out, context=context, full=full)
    if counts:
        show_facets(counts, form == "json")
    if options.model == BEST and len(results):
        click.echo(f"perikope: ranked by {printable(results.model)}, the best model of this index; --model selects another one", err=True)
    if not len(results) and results.complete:
        _tell_why_nothing(opened, topic, options, to_stderr=for_model is not None or form in FILES, quiet=form == "json")
    return 0 if results.complete else INCOMPLETE


def _form(forms: dict[str, bool], out: str, document_ranking: str, for_model: int | None, facets: tuple[str, ...]) -> str:
    """The form of the output, see `chosen_form`. Raises `UsageError` for options that conflict."""
    from perikope.core.errors import UsageError

    form = chosen_form(forms, out)
    if document_ranking and for_model is not None:
        raise UsageError("--for-model prints passages, and --document-ranking ranks documents; leave one of them out")
    if for_model is not None and (form in FILES or out):
        raise UsageError("--for-model prints one text, not a table; leave out --for-model, or the form of the table")
    if facets and (form in FILES or out):
        raise UsageError("--facets prints counts after the results; leave out the form of a table, or use --json")
    return form


def _topic(query: str | None, patent: str | None, claims: str | None, chosen: tuple[str, ...], run: str) -> Topic:
    """The topic of the command line: a query or patent and, if a run is given, its documents as candidates."""
    from perikope.query.topic import Topic

    topic = Topic("", query or "", patent or "", _text(claims) if claims is not None else chosen)
    return replace(topic, options={"candidates": _candidates(run)}) if run else topic


def _candidates(path: str) -> dict[str, float]:
    """The documents of a run with their scores. Raises `UsageError` unless the run has exactly one topic."""
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.runs import read_run
    from perikope.search.fetching import documents_of

    topics = read_run(path)
    if len(topics) != 1:
        raise UsageError(f"{path} has {len(topics)} topics; give a run with one topic, or use `perikope run` for several topics")
    return documents_of(next(iter(topics.values())))


def _tell_why_nothing(index: Index, topic: Topic, options: SearchOptions, *, to_stderr: bool, quiet: bool) -> None:
    """Print why there are no results and, for a patent, how many documents remain without each filter of the patent.

    With `quiet`, nothing is printed on standard output, because another program reads it.
    """
    from perikope.search.steps import Search, count_documents

    prepared = Search(index.snapshot, options).prepare(topic)
    if not quiet:
        click.echo(_why_nothing(index, topic, options, prepared), err=to_stderr)
    if not (topic.patent or topic.claims):
        return
    for name in ("code_filter", "date_limit", "family_filter"):
        if getattr(options, name):
            without = options.updated({name: False})
            left = count_documents(index.snapshot, without, Search(index.snapshot, without).prepare(topic).filters)
            click.echo(f"perikope: note: with {OPTIONS[name].command_line}, {count(left, 'document')} would be searched", err=True)


def _why_nothing(index: Index, topic: Topic, options: SearchOptions, prepared: Prepared) -> str:
    """One line that says why there are no results."""
    from perikope.search.steps import count_documents

    if not len(index):
        return "the index is empty"
    if options.offset and len(index.search(topic, options=options.updated({"k": 1, "offset": 0}))):
        return f"there is no result after rank {options.offset}; use a smaller --offset"
    conditions = options.filter or options.ids is not None or options.shares_codes_with or prepared.filters
    if conditions and not count_documents(index.snapshot, options, prepared.filters):
        return "no document meets the conditions"
    restricted = "that meets the conditions " if conditions or options.part or options.tag or options.without_tag else ""
    if not (options.must_match or options.across_passages):
        return _why_unmatched(index, options, prepared, restricted) or f"no passage {restricted}contains any of these words"
    scoring = options.browse_query or topic.query
    hint = ""
    if options.syntax == "words":
        if {"and", "or", "not"} & {*scoring.lower().split()}:
            hint = "; AND, OR and NOT, in capitals, are operators with --syntax boolean"
    elif {"and", "or", "not"} & {*scoring.split()}:
        hint = "; operators are written in capitals: AND, OR, NOT"
    return f"no passage {restricted}satisfies the query{hint}"


def _why_unmatched(index: Index, options: SearchOptions, prepared: Prepared, restricted: str) -> str:
    """Why a model of proximity has no results although documents were fetched; empty if it is not the reason."""
    from perikope.search.steps import Search

    search = Search(index.snapshot, options)
    if search.model.unmatched != "score 0" or options.keep_unmatched or not len(search.candidates(prepared).candidates):
        return ""
    return (
        f"no passage {restricted}matches the query by the model {search.model.definition.name}, which needs all words near each other: "
        "join words by OR (--syntax boolean), use another model, or add --keep-unmatched"
    )


def _is_patent(query: str | None, patent: str | None, claims: str | None, chosen: tuple[str, ...]) -> bool:
    """Whether the search is with a patent or claims.

    Raises `UsageError` if there is neither a query nor a patent, or if options conflict.
    """
    from perikope.core.errors import UsageError

    for name, value in (("--patent", patent), ("--claims", claims)):
        if value is not None and not value.strip():
            # A script with an empty variable passes an empty value.
            raise UsageError(f"{name} is empty; give it a value or leave it out")
    if patent is None and claims is None:
        if chosen:
            raise UsageError("--claim needs a patent; give the patent with --patent")
        if query is None:
            raise click.UsageError("Missing argument 'QUERY'; give a query, --patent or --claims", click.get_current_context())
        return False
    if query is not None:
        raise UsageError("give a query or a patent, not both; to score passages with other words, use --browse-query")
    if chosen and (claims is not None or patent is None):
        raise UsageError("give the text of claims (--claims) or numbers of claims of a patent (--claim), not both")
    return True


def _text(claims: str) -> str:
    from perikope.core.errors import InputError

    if claims != "-":
        return claims
    data = sys.stdin.buffer.read(MAX_CLAIMS + 1)
    if len(data) > MAX_CLAIMS:
        raise InputError(f"contains more than {MAX_CLAIMS >> 20} MB of claims; give a shorter text", path="standard input")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text; convert it to UTF-8", path="standard input") from None
