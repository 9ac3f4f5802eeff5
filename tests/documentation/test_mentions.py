"""Commands and options that prose and help texts mention exist."""

import re
from collections.abc import Iterator

import click
import pytest

from perikope.cli import command_names, perikope
from tests.documentation.blocks import PAGES, ROOT


def problems_of(mention: str) -> list[str]:
    """What is wrong with a mention such as `perikope index docs/ --to idx`: words that are no commands, and options."""
    words = re.findall(r"""'[^']*'|"[^"]*"|\S+""", mention)
    command: click.Command = perikope
    context = click.Context(command)
    for word in words[1:]:
        if not isinstance(command, click.Group) or not re.fullmatch("[a-z]+", word):
            break
        inner = command.get_command(context, word)
        if inner is None:
            return [f"no command {word}"]
        command = inner
    options = {name for parameter in command.get_params(click.Context(command)) for name in [*parameter.opts, *parameter.secondary_opts]}
    named = [re.split("[=,|]", word.rstrip("`.;)]"))[0] for word in words[1:] if re.fullmatch(r"--?[a-z][\w-]*(\W.*)?", word)]
    return [f"{command.name} has no option {name}" for name in named if name not in options]


def mentions(text: str) -> Iterator[str]:
    """The mentions of commands in running text: code that begins with the name of the program."""
    yield from re.findall(r"`(perikope [a-z][^`]*)`", text)


def helped(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """The names and help texts of a command and of all commands inside it."""
    yield command.name or "", command.help or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from helped(inner, click.Context(inner))


def test_mistakes_are_noticed():
    assert problems_of('perikope search idx "a --query" --model bm25 -k 3') == []
    assert problems_of("perikope find idx") == ["no command find"]
    assert problems_of("perikope search idx --modell bm25") == ["search has no option --modell"]
    assert problems_of("perikope learn fusions idx") == ["no command fusions"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_mention_commands_and_options_that_exist(page):
    text = re.sub(r"\s+", " ", page.read_text("utf-8"))
    assert {mention: problems for mention in mentions(text) if (problems := problems_of(mention))} == {}


@pytest.mark.parametrize("name", command_names())
def test_examples_in_help_texts_exist(name):
    command = perikope.get_command(click.Context(perikope), name)
    for inner, text in helped(command, click.Context(command)):
        joined = re.sub(r"\\\n\s*", "", text)
        for line in re.findall(r"^\s*(perikope .*)$", joined, re.M):
            assert problems_of(re.sub(r"\s#.*", "", line)) == [], f"{inner}: {line}"
