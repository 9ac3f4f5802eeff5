"""Options that several commands share: those of a search, derived from their declaration, and those of topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perikope.core.errors import UsageError
from perikope.core.options import Option
from perikope.core.values import NamesOrAll, OneOf, Real, Switch, Whole
from perikope.search.options import GROUPS, OPTIONS, PATENTS, SearchOptions

if TYPE_CHECKING:
    from perikope.query.topic import Topic
    from perikope.search.recipes import Recipe

F = TypeVar("F", bound=Callable[..., Any])

ALL = "*"
"""How `--elements` without tags reaches us."""

_HELP = {
    "ids": "Only the documents whose ids this file lists, one per line. Several files add up.",
    "candidates": "Look into the documents of this run in place of fetching.",
    "elements": "Rank elements in place of passages: sections, lists, passages and whole documents, or only elements with these tags "
    "(--elements=sec,p). Without tags, another option or nothing must follow it.",
}
"""Help where the command line differs from the other surfaces."""


@dataclass(frozen=True, slots=True)
class GivenSearch:
    """What a command line says of a search."""

    recipe: Recipe | None
    given: dict[str, Any]
    """The options that were given, by name; a recipe and the defaults say the rest."""
    base: SearchOptions = field(default_factory=lambda: SearchOptions.of({}))
    """The defaults of the command."""
    run: str = ""
    """The file of a run whose documents are looked into."""

    @property
    def keywords(self) -> dict[str, Any]:
        """As `Index.search` and `search_topics` take them."""
        return {"recipe": self.recipe or "", "options": self.base, **self.given}

    @property
    def options(self) -> SearchOptions:
        """The options with those of the recipe."""
        from perikope.search.recipes import resolve_options

        return resolve_options(self.recipe, self.given, self.base)

    def with_candidates(self, topics: list[Topic]) -> list[Topic]:
        """The topics, each with the documents that the run has for it, where a run was given."""
        if not self.run:
            return topics
        from perikope.evaluation.io.runs import read_run
        from perikope.search.batch import with_candidates

        return with_candidates(topics, read_run(self.run))

    def refuse_patent_options(self) -> None:
        """An error where an option about patents was given, for a command that searches without one."""
        for name in self.given:
            if OPTIONS[name].group == PATENTS:
                raise UsageError(f"{OPTIONS[name].command_line} is about patents; search with one (--patent or --claims), or leave it out")


def search_options(*, without: Collection[str] = (), help: dict[str, str] | None = None, **defaults: Any) -> Callable[[F], F]:
    """Give a command the options of a search; it receives them as one argument `search`, a `GivenSearch`.

    `defaults` are those of the command where they are not those of the declaration; `help` replaces the help of some options.
    """

    def decorate(command: F) -> F:
        base = SearchOptions.of(defaults)
        taken = [one for group in GROUPS for one in OPTIONS.values() if one.group == group and one.name not in without]

        @wraps(command)
        def with_search(*arguments: Any, **values: Any) -> Any:
            given = {one.name: values.pop(one.name) for one in taken}
            return command(*arguments, search=_given(values.pop("recipe"), given, base), **values)

        decorated: Any = with_search
        for one in reversed(taken):
            decorated = _click_option(one, getattr(base, one.name), (help or {}).get(one.name, ""))(decorated)
        recipe = click.option(
            "--recipe",
            default="",
            metavar="NAME|FILE",
            help="The options of a paper's system, or of a TOML file of your own; command-line options take precedence. See "
            "`perikope recipes`.",
        )
        found: F = recipe(decorated)
        return found

    return decorate


def _click_option(one: Option, default: Any, help: str) -> Callable[[F], F]:
    """An option of a search as the command line has it. What is not given is None, so that a recipe can say it."""
    kind, text = one.kind, help or _HELP.get(one.name, one.help)
    flags = [one.command_line, one.name]
    if isinstance(kind, Switch):
        return click.option(*flags, is_flag=True, flag_value=not default, default=None, help=one.help_off if default else text)
    details: dict[str, Any] = {"default": None, "help": text, "type": OptionValue(one), "metavar": one.metavar or None}
    plain = kind.plain(default)
    shown = [f"default: {','.join(plain) if isinstance(plain, list) else plain}"] if plain not in ("", None, [], False) else []
    shown += [kind.limits] if kind.limits else []
    details["help"] += f"  [{'; '.join(shown)}]" if shown else ""
    if isinstance(kind, NamesOrAll) or (isinstance(kind, OneOf) and kind.when_true is not None):
        details |= {"is_flag": False, "flag_value": ALL if isinstance(kind, NamesOrAll) else kind.when_true}
    elif isinstance(kind, OneOf):
        details["type"] = click.Choice(kind.words)
    elif kind.many:
        details["multiple"] = True
    return click.option(*flags, **details)


class OptionValue(click.ParamType[Any]):
    """A value of a declared option, read from text."""

    def __init__(self, one: Option) -> None:
        self.option = one
        self.name = one.metavar or one.name

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """The number that a text spells; other values stay texts, which `_given` checks."""
        kind = self.option.kind
        if not isinstance(value, str) or not isinstance(kind, (Whole, Real)):
            return value
        try:
            return kind.read(self.option.name, value)
        except UsageError as error:
            self.fail(str(error), param, context)


def _given(recipe: str, values: dict[str, Any], base: SearchOptions) -> GivenSearch:
    """The options that were given, in their canonical form."""
    given: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value == ():
            continue
        one = OPTIONS[name]
        if one.restricts and not all(text.strip() for text in ([value] if isinstance(value, str) else value)):
            # From a script with an empty variable: to search everything instead would be the worst of all answers.
            raise UsageError(f"{one.command_line} is empty; give it a value or leave it out")
        given[name] = True if isinstance(one.kind, NamesOrAll) and value == ALL else value
    run = given.pop("candidates", "")
    if "ids" in given:
        from perikope.evaluation.io.lines import numbered_lines

        given["ids"] = [line.strip() for file in given["ids"] for _, line in numbered_lines(file)]
    # Whatever is wrong is told now, before an index is opened.
    checked = {name: OPTIONS[name].check(value) for name, value in given.items()}
    return GivenSearch(_loaded(recipe), checked, base, run)


def _loaded(recipe: str) -> Recipe | None:
    if not recipe:
        return None
    from perikope.search.recipes import load_recipe

    return load_recipe(recipe)


class GroupedCommand(click.Command):
    """A command whose help lists the options of a search under the headings of their groups."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: the command's own first, then each group."""
        records: dict[str, list[tuple[str, str]]] = {"Options": [], **{group: [] for group in GROUPS}}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and not isinstance(parameter, click.Argument):
                one = OPTIONS.get(parameter.name or "")
                records[one.group if one is not None else "Options"].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def document_ranking_option(command: F) -> F:
    """Documents as results."""
    return click.option(
        "--document-ranking",
        default="",
        metavar="NAME",
        help="Rank documents by their passages: maxp (the best), sump (all), firstp (the first) or meanp(n=3) (the best three).",
    )(command)


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
