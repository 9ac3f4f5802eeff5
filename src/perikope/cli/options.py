"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])


def search_options(command: F) -> F:
    """How documents are fetched and passages scored."""
    for option in reversed(
        (
            click.option(
                "--recipe",
                default="",
                is_eager=True,
                callback=follow_recipe,
                metavar="NAME|FILE",
                help="The options of a paper's system, or of a TOML file of your own; those given here go before. See `perikope recipes`.",
            ),
            click.option(
                "--model", default="qsf_v_title", show_default=True, metavar="NAME(…)", help="Scores passages; see `perikope models`."
            ),
            click.option(
                "--fetch", default="bm25", show_default=True, metavar="NAME(…)", help="Ranks documents: bm25, pl2, dph, lm or sim."
            ),
            click.option(
                "--fetch-parts",
                default=None,
                metavar="PART[=WEIGHT],…",
                help="Rank documents by these parts alone (title: the document's own); weights multiply frequencies and lengths.",
            ),
            click.option("--expand", default="", metavar="NAME(…)", help="Add words of the best documents that may be found: bo1 or rm3."),
            click.option(
                "--documents",
                default="1000",
                show_default=True,
                type=DocumentsType(),
                metavar="N|all",
                help="How many documents to look into.",
            ),
            click.option(
                "--also-nearest",
                default="",
                metavar="STORE",
                help="Also look into as many documents whose passages are nearest by the vectors of this store; see `perikope encode`.",
            ),
            click.option("--browse-query", default="", metavar="TEXT", help="Score passages with this query instead."),
            click.option(
                "--browse-expand", default="", metavar="NAME(…)", help="Add words of the best passages to what scores them: bo1 or rm3."
            ),
            click.option(
                "--syntax",
                default="words",
                show_default=True,
                type=click.Choice(["words", "boolean", "automatic"]),
                help='How queries are read. boolean: AND, OR, NOT, NEAR/5, ADJ/2, SAME, parentheses, "phrases", pump*, +word, -word; words '
                "side by side are joined by AND. automatic: keywords, phrases, +word and -word.",
            ),
            click.option("--must-match", is_flag=True, help="Only passages in which the query holds, all of its words where it is plain."),
            click.option("--across", "across_passages", is_flag=True, help="As --must-match, but phrases, NEAR and AND may span passages."),
            click.option("--language", default="", metavar="CODE", help="Look in this language only; else in all that the index holds."),
            click.option(
                "--filter",
                multiple=True,
                metavar="CONDITION",
                help="Only documents with this in their metadata: ipc=G06F, date<2013-04-01, year=2010..2012, by=a|b, name=The*, "
                'kind!=A1, id=d1|d2, codes~G06; "in quotes" a value is taken as it is. May be given several times; all must hold.',
            ),
            click.option(
                "--ids",
                multiple=True,
                metavar="FILE",
                help="Only the documents whose ids the file holds, one a line; several files add up.",
            ),
            click.option(
                "--shares-codes-with",
                default=None,
                metavar="DOCUMENT",
                help="Only documents that share a classification code with this one.",
            ),
            click.option(
                "--code-level",
                default="full",
                show_default=True,
                type=click.Choice(["full", "group", "subclass", "class"]),
                help="How much of two codes must be the same.",
            ),
            click.option(
                "--part", multiple=True, metavar="NAME", help="Only passages in this part, such as claims. May be given several times."
            ),
            click.option("--tag", "tag", multiple=True, metavar="NAME", help="Only passages with this tag. May be given several times."),
            click.option(
                "--elements",
                is_flag=False,
                flag_value="*",
                default="",
                metavar="[TAG,…]",
                help="Rank elements instead of passages: all sections, lists, passages … and documents, or those with these tags "
                "(--elements=sec,p; without tags, put it last).",
            ),
            click.option("--no-overlap", is_flag=True, help="Nothing that overlaps a better result."),
            click.option(
                "--group-by-document",
                is_flag=False,
                flag_value="fetch",
                default="",
                type=click.Choice(["fetch", "score", ""]),
                metavar="[fetch|score]",
                help="Results of one document side by side, documents as they were fetched or by their best result.",
            ),
            click.option(
                "--drop-unmatched",
                is_flag=True,
                help="With --no-overlap: nothing of documents in which nothing scores, instead of the whole of them.",
            ),
            click.option(
                "--one-per",
                default=None,
                metavar="FIELD",
                help="Of documents with the same value in this field of their metadata, such as family or patent, only the best.",
            ),
            click.option("--rescore", default="", metavar="NAME(…)", help="Mix the fetch score with this model's for whole documents."),
            click.option(
                "--rescore-weight",
                default=0.5,
                show_default=True,
                type=click.FloatRange(0, 1),
                metavar="X",
                help="How much --rescore counts.",
            ),
        )
    ):
        command = option(command)
    return command


def document_options(command: F) -> F:
    """Documents of somebody else, and documents as results."""
    for option in reversed(
        (
            click.option("--candidates", default="", metavar="RUN", help="Look into the documents of this run instead of fetching."),
            click.option(
                "--document-ranking",
                default="",
                metavar="NAME",
                help="Rank documents by their passages instead: maxp (the best), sump (all), firstp (the first) or meanp(n=3) (the best "
                "three).",
            ),
        )
    ):
        command = option(command)
    return command


def topic_options(command: F) -> F:
    """Of which form a file of topics is, and what of them is the query."""
    for option in reversed(
        (
            click.option(
                "--topic-format",
                default="auto",
                show_default=True,
                type=click.Choice(["auto", "tsv", "jsonl", "trec", "clef-ip", "inex", "beir"]),
                help="The form of TOPICS; auto sees it from the content.",
            ),
            click.option(
                "--topic-field",
                default="",
                metavar="NAME,…",
                help="What of TREC or INEX topics is the query: title (where not given), desc, castitle, phrasetitle …; several add up.",
            ),
        )
    ):
        command = option(command)
    return command


def patent_options(command: F) -> F:
    """What is made of a patent, and what may be found for it."""
    for option in reversed(
        (
            click.option(
                "--fetch-words",
                default=10,
                show_default=True,
                type=click.IntRange(1),
                metavar="N",
                help="With a patent: so many of its words fetch documents, those of highest tf-idf.",
            ),
            click.option(
                "--fetch-from",
                default="abstract",
                show_default=True,
                metavar="PART,…",
                help="With a patent: where these words are taken from: title, abstract, description, claims.",
            ),
            click.option(
                "--browse-words",
                default=100,
                show_default=True,
                type=click.IntRange(1),
                metavar="N",
                help="With a patent: so many of its words score passages.",
            ),
            click.option(
                "--browse-from", default="claims", show_default=True, metavar="PART,…", help="With a patent: where those are taken from."
            ),
            click.option("--weighted", is_flag=True, help="With a patent: words weigh what its text repeats them; else each counts once."),
            click.option("--no-code-filter", is_flag=True, help="With a patent: also documents that share no classification code with it."),
            click.option("--no-date-limit", is_flag=True, help="With a patent: also documents published since its priority date."),
            click.option("--no-family-filter", is_flag=True, help="With a patent: also other publications of its family."),
            click.option(
                "--translate",
                default=None,
                metavar="URL",
                help="With a patent in a language that is not looked in: translate it with this LibreTranslate server, which then gets its "
                "text. A key is taken from PERIKOPE_TRANSLATE_KEY.",
            ),
        )
    ):
        command = option(command)
    return command


_OF_PATENTS = (
    "fetch_words", "fetch_from", "browse_words", "browse_from", "weighted", "no_code_filter", "no_date_limit", "no_family_filter",
    "translate",
)  # fmt: skip


def patent_arguments(options: dict[str, Any], *, needed: bool = True) -> dict[str, Any]:
    """Takes what `patent_options` added out of the options of a command: as `Index.patent_query` takes them.

    Where they are not `needed`, one that was given is an error.
    """
    import os

    from perikope.core.errors import UsageError

    if not needed:
        context = click.get_current_context()
        for name in _OF_PATENTS:
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise UsageError(f"--{name.replace('_', '-')} is about patents; search with one (--patent or --claims), or leave it out")
    arguments: dict[str, Any] = {
        name.removeprefix("no_"): not options.pop(name) if name.startswith("no_") else options.pop(name) for name in _OF_PATENTS[:-1]
    }
    url = options.pop("translate")
    if url is not None:
        from perikope.patents.translation import LibreTranslate

        arguments["translator"] = LibreTranslate(url, api_key=os.environ.get("PERIKOPE_TRANSLATE_KEY", ""))
    return arguments


def follow_recipe(context: click.Context, parameter: click.Parameter, value: str) -> Any:
    """The recipe that was named; its options are the defaults of all others."""
    if not value:
        return ""
    from perikope.search.recipes import load_recipe

    recipe = load_recipe(value)
    context.default_map = {**(context.default_map or {}), **{name: _as_written(name, given) for name, given in recipe.options.items()}}
    return recipe


def _as_written(name: str, value: Any) -> Any:
    """An option of `Index.search` as the command line has it."""
    if isinstance(value, dict):
        return ",".join(f"{part}={weight}" for part, weight in value.items())
    if name == "elements":
        return {True: "*", False: ""}[value] if isinstance(value, bool) else value if isinstance(value, str) else ",".join(value)
    if name == "group_by_document" and isinstance(value, bool):
        return "fetch" if value else ""
    if name in ("filter", "part", "tag") and isinstance(value, str):
        return [value]
    return value


def search_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a command as `Index.search` takes them."""
    from perikope.core.errors import UsageError
    from perikope.evaluation.io.lines import numbered_lines
    from perikope.fetch.filters import Ids
    from perikope.fetch.parts import parse_parts

    arguments = dict(options)
    for name in ("fetch_parts", "shares_codes_with", "ids", "part", "tag", "one_per"):
        if options[name] == "" or (isinstance(options[name], tuple) and "" in options[name]):
            # From a script with an empty variable: to search everything instead would be the worst of all answers.
            raise UsageError(f"--{name.replace('_', '-')} is empty; give it a value or leave it out")
    arguments["fetch_parts"] = parse_parts(arguments["fetch_parts"]) if arguments["fetch_parts"] else None
    for name in ("shares_codes_with", "one_per"):
        arguments[name] = arguments[name] or ""
    elements = arguments["elements"]
    arguments["elements"] = elements == "*" or [tag for tag in elements.split(",") if tag]
    ids = arguments.pop("ids")
    arguments["filter"] = list(arguments["filter"])
    if ids:
        listed = {line.strip() for file in ids for _, line in numbered_lines(file)}
        # As they are, or as names of passages have them.
        arguments["filter"].append(Ids(frozenset(listed | set(map(unquote, listed)))))
    return arguments


class DocumentsType(click.ParamType[Any]):
    """A number, or all."""

    name = "documents"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int | str:
        """The number, or the word."""
        if isinstance(value, int):
            return value
        if value == "all":
            return "all"
        if not str(value).isascii() or not str(value).isdigit() or int(value) < 1:
            self.fail(f"{value!r} is not a number of at least 1, nor all", param, context)
        return int(value)


class SizeType(click.ParamType[int]):
    """Bytes, written as 512M or 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", str(value).strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is not a size; write it as 512M or 2G", param, context)
        return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


def size_option(command: F) -> F:
    """How much memory a change of the index may take."""
    return click.option(
        "--memory",
        type=SizeType(),
        default="1G",
        show_default=True,
        metavar="SIZE",
        help="About how much memory it may take; one huge document may take more.",
    )(command)
