"""`perikope search`: the best passages for a query."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perikope.cli.options import GivenSearch, GroupedCommand, document_ranking_option, search_options
from perikope.cli.output import count, printable, show, verbatim
from perikope.search.options import OPTIONS

if TYPE_CHECKING:
    from perikope.query.topic import Topic
    from perikope.search.asking import Prepared
    from perikope.search.facade import Index
    from perikope.search.options import SearchOptions

MAX_CLAIMS = 1 << 24
"""Bytes of claims that are read from standard input."""


@click.command(name="search", cls=GroupedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="[QUERY]", required=False)
@click.option("--patent", metavar="FILE|NUMBER", help="Search with a patent: a file, or the number of one in the index (EP1000000A1).")
@click.option(
    "--claims", metavar="TEXT|-", help="Search with these claims (-: from standard input), or with a patent and these as its claims."
)
@click.option("--claim", "chosen", multiple=True, metavar="N", help="With --patent: only this of its claims. May be given several times.")
@click.option("--context", is_flag=True, help="Show the passages before and after each hit.")
@click.option("--full", is_flag=True, help="Show long passages whole.")
@click.option(
    "--for-model",
    type=click.IntRange(1),
    metavar="BUDGET",
    help="Print the hits as one text of at most so many words, with borders and sources, for a language model or a reader.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, a line a hit.")
@document_ranking_option
@search_options(help={"k": "Number of passages to return, or of documents with --document-ranking."})
def command(
    index: str,
    query: str | None,
    patent: str | None,
    claims: str | None,
    chosen: tuple[str, ...],
    context: bool,
    full: bool,
    for_model: int | None,
    as_json: bool,
    document_ranking: str,
    search: GivenSearch,
) -> int:
    """Find passages.

    \b
    Examples:
      perikope search idx "pump with a magnetic coupling"
      perikope search idx "magnetic coupling" --model "psg_doc(lam=0.5)" -k 3 --context
      perikope search idx "magnetic coupling" --filter ipc=F04D --filter "date<2013-04-01" --part claims
      perikope search idx "magnetic coupling" --model bm25 --documents all
      perikope search idx "magnetic coupling" --recipe albarede2021 -k 10
      perikope search idx "how does a magnetic coupling slip?" --for-model 2000
      perikope search idx "magnetic coupling" --document-ranking maxp
      perikope search idx --patent EP1000000A1 --one-per family
      perikope search idx --patent application.xml --no-date-limit
      perikope search idx --claims "A pump comprising a magnetic coupling"
    """
    from dataclasses import asdict

    from perikope.core.errors import UsageError
    from perikope.query.topic import Topic
    from perikope.search.facade import Index

    is_patent = _is_patent(query, patent, claims, chosen)
    if not is_patent:
        search.refuse_patent_options()
    opened = Index.open(index)
    asked = Topic("", query or "", patent or "", _text(claims) if claims is not None else chosen)
    if search.run:
        asked = replace(asked, options={"candidates": _candidates(search.run)})
    if document_ranking and for_model is not None:
        raise UsageError("--for-model is about passages; leave --document-ranking out")
    options = search.options
    keywords = {**search.keywords, "k": 1} if document_ranking else search.keywords
    results = opened.search(asked, **keywords)
    for note in results.notes:
        click.echo(f"perikope: note: {printable(note)}", err=True)
    if document_ranking:
        _show_documents(results.document_ranking(document_ranking, options.k), as_json)
    elif for_model is not None:
        found = results.context(for_model)
        click.echo(json.dumps(asdict(found), ensure_ascii=False) if as_json else verbatim(found.text), nl=bool(found.text) or as_json)
        if found.needed:
            click.echo(f"perikope: note: nothing fits into {for_model} words; the best hit alone takes {found.needed}", err=True)
    elif as_json:
        for hit in results:
            click.echo(json.dumps(asdict(hit), ensure_ascii=False))
    elif len(results):
        click.echo("\n\n".join(show(hit, context=context, full=full) for hit in results))
    if not len(results):
        _tell_why_nothing(opened, asked, options, to_stderr=for_model is not None, quiet=as_json)
    return 0


def _show_documents(ranking: list[tuple[str, float]], as_json: bool) -> None:
    for rank, (document, score) in enumerate(ranking, 1):
        found = {"rank": rank, "score": score, "document": document}
        click.echo(json.dumps(found, ensure_ascii=False) if as_json else f"{rank:>3}. {score:.4f}  {printable(document)}")


def _candidates(path: str) -> dict[str, float]:
    """The documents of a run, which must be of one topic."""
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.runs import read_run
    from perikope.search.fetching import documents_of

    topics = read_run(path)
    if len(topics) != 1:
        raise UsageError(f"{path} is of {len(topics)} topics, and a search is of one; give a run of one, or use `perikope run`")
    return documents_of(next(iter(topics.values())))


def _tell_why_nothing(index: Index, asked: Topic, options: SearchOptions, *, to_stderr: bool, quiet: bool) -> None:
    """Say why nothing was found, and which filter of a patent leaves something out; what another program reads stays empty."""
    from perikope.search.steps import Search, count_documents

    prepared = Search(index.snapshot, options).prepare(asked)
    if not quiet:
        click.echo(_why_nothing(index, asked, options, prepared), err=to_stderr)
    if not (asked.patent or asked.claims):
        return
    for name in ("code_filter", "date_limit", "family_filter"):
        if getattr(options, name):
            without = options.updated({name: False})
            left = count_documents(index.snapshot, without, Search(index.snapshot, without).prepare(asked).filters)
            click.echo(f"perikope: note: {OPTIONS[name].command_line} would leave {count(left, 'document')} to look into", err=True)


def _why_nothing(index: Index, asked: Topic, options: SearchOptions, prepared: Prepared) -> str:
    """What to say where nothing was found."""
    from perikope.search.steps import count_documents

    if not index.documents:
        return "the index is empty"
    conditions = options.filter or options.ids is not None or options.shares_codes_with or prepared.filters
    if conditions and not count_documents(index.snapshot, options, prepared.filters):
        return "the conditions leave no document"
    restricted = "that may be found " if conditions or options.part or options.tag else ""
    if not (options.must_match or options.across_passages):
        return f"no passage {restricted}holds any of these words"
    scoring = options.browse_query or asked.query
    hint = ""
    if options.syntax == "words":
        if {"and", "or", "not"} & {*scoring.lower().split()}:
            hint = "; AND, OR and NOT, in capitals, are operators with --syntax boolean"
    elif {"and", "or", "not"} & {*scoring.split()}:
        hint = "; operators are written in capitals: AND, OR, NOT"
    return f"no passage {restricted}satisfies the query{hint}"


def _is_patent(query: str | None, patent: str | None, claims: str | None, chosen: tuple[str, ...]) -> bool:
    """Whether a patent or claims are searched with; an error where it is not clear what is."""
    from perikope.core.errors import UsageError

    for name, value in (("--patent", patent), ("--claims", claims)):
        if value is not None and not value.strip():
            # From a script with an empty variable.
            raise UsageError(f"{name} is empty; give it a value or leave it out")
    if patent is None and claims is None:
        if chosen:
            raise UsageError("--claim names claims of a patent; say of which, with --patent")
        if query is None:
            raise click.UsageError("Missing argument 'QUERY'; or give a patent, with --patent or --claims", click.get_current_context())
        return False
    if query is not None:
        raise UsageError("give a query or a patent, not both; other words to score passages with go into --browse-query")
    if chosen and (claims is not None or patent is None):
        raise UsageError("give the text of claims (--claims) or the numbers of a patent's own (--claim), not both")
    return True


def _text(claims: str) -> str:
    from perikope.core.errors import InputError

    if claims != "-":
        return claims
    data = sys.stdin.buffer.read(MAX_CLAIMS + 1)
    if len(data) > MAX_CLAIMS:
        raise InputError(f"holds more than {MAX_CLAIMS >> 20} MB of claims", path="standard input")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", path="standard input") from None
