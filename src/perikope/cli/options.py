"""Options that several commands share: options of a search, derived from `SearchOptions`, and options of topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perikope.core.errors import UnreadableFile, UsageError
from perikope.core.options import Option
from perikope.core.values import NamesOrAll, OneOf, Real, Switch, Whole
from perikope.search.options import GROUPS, OPTIONS, PATENTS, SearchOptions

if TYPE_CHECKING:
    from perikope.evaluation.depth import Depth
    from perikope.evaluation.measures import Measure
    from perikope.query.topic import Topic
    from perikope.search.recipes import Recipe

F = TypeVar("F", bound=Callable[..., Any])

ALL = "*"
"""The value of `--elements` if no tags are given."""
_LONGEST_ID = 1 << 16
"""The most characters of an id in a file of ids. A longer line is no id, and looking for it would take seconds."""

_HELP = {
    "ids": "File with document ids, one per line: only these documents are searched. May be given several times.",
    "candidates": "Run file: passages of its documents are scored, instead of passages of fetched documents.",
    "elements": "Rank elements instead of passages: sections, lists, passages and whole documents, or only elements with these tags "
    "(--elements=sec,p). Without tags, write it last or before another option.",
}
"""Help texts of options whose values are different on the command line, such as files."""


@dataclass(frozen=True, slots=True)
class GivenSearch:
    """The options of a search that were given on the command line."""

    recipe: Recipe | None
    given: dict[str, Any]
    """The given options by name. Other options have the value of the recipe or, without one, that of `base`."""
    base: SearchOptions = field(default_factory=lambda: SearchOptions.of({}))
    """The options with the defaults of the command."""
    run: str = ""
    """The path of a run whose documents are the candidates; empty if candidates are fetched."""

    @property
    def keywords(self) -> dict[str, Any]:
        """The options as keyword arguments of `Index.search` and `search_topics`."""
        return {"recipe": self.recipe or "", "options": self.base, **self.given}

    @property
    def options(self) -> SearchOptions:
        """All options of the search. Given options take precedence over the recipe, and the recipe over `base`."""
        from perikope.search.recipes import resolve_options

        return resolve_options(self.recipe, self.given, self.base)

    def depth(self, measures: Iterable[Measure]) -> Depth:
        """Where rankings are cut: at `k` if it was given or the recipe has it, else where the measures need it."""
        from perikope.evaluation.depth import depth_of

        has_k = "k" in self.given or (self.recipe is not None and "k" in self.recipe.options)
        return depth_of(measures, self.options.k if has_k else None)

    def with_candidates(self, topics: list[Topic]) -> list[Topic]:
        """The topics, each with the documents that the run has for it as candidates; unchanged if there is no run."""
        if not self.run:
            return topics
        from perikope.evaluation.io.runs import read_run
        from perikope.search.batch import with_candidates

        return with_candidates(topics, read_run(self.run))

    def refuse_patent_options(self) -> None:
        """Raise `UsageError` if an option for patents was given. Call it for searches without a patent."""
        for name in self.given:
            if OPTIONS[name].group == PATENTS:
                raise UsageError(f"{OPTIONS[name].command_line} needs a patent: search with --patent or --claims, or leave it out")


def search_options(*, without: Collection[str] = (), help: dict[str, str] | None = None, **defaults: Any) -> Callable[[F], F]:
    """A decorator that adds the options of a search to a command.

    The command receives them as one argument `search`, a `GivenSearch`. `without` names options that are not added.
    `defaults` and `help` replace declared defaults and help texts, by the names of options.
    """

    def decorate(command: F) -> F:
        base = SearchOptions.declared_with(defaults)
        options = [option for group in GROUPS for option in OPTIONS.values() if option.group == group and option.name not in without]

        @wraps(command)
        def with_search(*arguments: Any, **values: Any) -> Any:
            given = {option.name: values.pop(option.name) for option in options}
            return command(*arguments, search=_given(values.pop("recipe"), given, base), **values)

        decorated: Any = with_search
        for option in reversed(options):
            decorated = click_option(option, getattr(base, option.name), (help or {}).get(option.name, ""))(decorated)
        recipe = click.option(
            "--recipe",
            default="",
            metavar="NAME|FILE",
            help="Take options from a recipe: a paper's system, or a TOML file. Command-line options take precedence. See "
            "`perikope recipes`.",
        )
        with_recipe: F = recipe(decorated)
        return with_recipe

    return decorate


def click_option(option: Option, default: Any, help: str = "") -> Callable[[F], F]:
    """The click option of a declared option. Its value is None if it is not given, so that a recipe can set it."""
    kind, text = option.kind, help or _HELP.get(option.name, option.help)
    flags = [option.command_line, option.name]
    if isinstance(kind, Switch):
        return click.option(*flags, is_flag=True, flag_value=not default, default=None, help=option.help_off if default else text)
    details: dict[str, Any] = {"default": None, "help": text, "type": OptionValue(option), "metavar": option.metavar or None}
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
    """The click type of a declared option."""

    def __init__(self, option: Option) -> None:
        self.option = option
        self.name = option.metavar or option.name

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Read a number from text. Values of other kinds are returned unchanged; `_given` checks them."""
        kind = self.option.kind
        if not isinstance(value, str) or not isinstance(kind, (Whole, Real)):
            return value
        try:
            return kind.read(self.option.name, value)
        except UsageError as error:
            self.fail(str(error), param, context)


def _given(recipe: str, values: dict[str, Any], base: SearchOptions) -> GivenSearch:
    """Check the values of click options, and load the recipe. Values of None or () were not given."""
    given: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value == ():
            continue
        option = OPTIONS[name]
        if option.restricts and not all(text.strip() for text in ([value] if isinstance(value, str) else value)):
            # A script with an empty variable passes an empty value. A search without the restriction would be wrong.
            raise UsageError(f"{option.command_line} is empty; give it a value or leave it out")
        given[name] = True if isinstance(option.kind, NamesOrAll) and value == ALL else value
    run = given.pop("candidates", "")
    if "ids" in given:
        given["ids"] = [id for file in given["ids"] for id in _ids_in(file)]
    # Checked here, so that mistakes are reported before an index is opened.
    checked = {name: OPTIONS[name].check(value) for name, value in given.items()}
    return GivenSearch(_loaded(recipe), checked, base, run)


def _ids_in(file: str) -> Iterator[str]:
    """The ids in a file, one per line."""
    from perikope.evaluation.io.lines import numbered_lines

    for number, line in numbered_lines(file):
        if len(line) > _LONGEST_ID:
            raise UnreadableFile(f"an id has at most {_LONGEST_ID} characters; write one id per line", path=file, line=number)
        yield line.strip()


def _loaded(recipe: str) -> Recipe | None:
    if not recipe:
        return None
    from perikope.search.recipes import load_recipe

    return load_recipe(recipe)


class GroupedCommand(click.Command):
    """A command whose `--help` lists options by group: those of the command, then those of a search."""

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]] | None = None, **more: Any) -> None:
        """`groups` has the names of the command's own parameters by heading; other parameters come under "Options"."""
        super().__init__(*arguments, **more)
        self.groups = groups or {}

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups."""
        heading_of = {name: heading for heading, names in self.groups.items() for name in names}
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*self.groups, "Options", *GROUPS)}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and not isinstance(parameter, click.Argument):
                option = OPTIONS.get(parameter.name or "")
                heading = heading_of.get(parameter.name or "") or (option.group if option is not None else "Options")
                records[heading].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def document_ranking_option(command: F) -> F:
    """Add the option `--document-ranking` to a command."""
    return click.option(
        "--document-ranking",
        default="",
        metavar="NAME",
        help="Return documents, ranked by the scores of their passages: maxp (best passage), sump (sum of all), firstp (first passage) or "
        "meanp(n=3) (mean of the best three).",
    )(command)


def threads_option(command: F) -> F:
    """Add the option `--threads` to a command that searches many topics."""
    return click.option(
        "--threads",
        default=0,
        type=click.IntRange(0),
        metavar="N",
        help="Number of topics that are searched at the same time.  [default: one per core]",
    )(command)


def topic_options(command: F) -> F:
    """Add the options `--topic-format`, `--topic-field` and `--topic-language` to a command that reads topics."""
    for option in reversed(
        (
            click.option(
                "--topic-format",
                default="auto",
                show_default=True,
                type=click.Choice(["auto", "tsv", "jsonl", "trec", "clef-ip", "inex", "beir"]),
                help="Format of TOPICS; auto detects it from the content.",
            ),
            click.option(
                "--topic-field",
                default="",
                metavar="NAME,…",
                help="Fields of TREC or INEX topics that make the query, such as title,desc or castitle.  [default: title]",
            ),
            click.option(
                "--topic-language",
                default="",
                metavar="CODE",
                help="Use only topics in this language, by the topic or by its patent.  [default: topics of all languages]",
            ),
        )
    ):
        command = option(command)
    return command


class SizeType(click.ParamType[int]):
    """The click type of a number of bytes, written as 512M or 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        """Convert a text such as 512M to a number of bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)i?B?", str(value).strip(), re.IGNORECASE)
        if match is None:
            self.fail(f"{value!r} is not a size; write it as 512M or 2G", param, context)
        return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def size_option(command: F) -> F:
    """Add the option `--memory` to a command that changes an index."""
    return click.option(
        "--memory",
        type=SizeType(),
        default="1G",
        show_default=True,
        metavar="SIZE",
        help="Approximate memory to use; one huge document may need more.",
    )(command)
