"""Every block says what it is, and blocks that are not run can be parsed."""

import ast
import json
import re
import textwrap
import tomllib

import pytest
from lxml import etree

from tests.documentation.blocks import EXTRAS, LANGUAGES, NEEDS, PAGES, ROOT, Block, blocks_in, blocks_of

BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def test_blocks_are_found_with_their_needs_and_commands():
    page = "text\n```sh neural slow\na --x \\\n    b  # c\n# only a comment\nd '#e'\n```\n\n```\nplain\n```\n"
    first, second = blocks_in(page, "p.md")
    assert (first.place, first.language, first.needs) == ("p.md:2", "sh", {"neural", "slow"})
    assert first.commands == ["a --x b", "d '#e'"]
    assert (second.language, second.text) == ("", "plain\n")


def test_there_are_blocks_that_are_run():
    assert sum(len(block.commands) for block in BLOCKS if block.language == "sh" and block.is_run) > 40
    assert sum(block.language == "python" and block.is_run for block in BLOCKS) > 5


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_block_says_what_it_is(block: Block):
    assert block.language in LANGUAGES, f"{block.place}: the fence needs a language, one of {', '.join(sorted(LANGUAGES))}"
    assert block.needs <= NEEDS, f"{block.place}: unknown words behind the fence"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in ("json", "toml", "xml")], ids=lambda block: block.place)
def test_data_can_be_parsed(block: Block):
    match block.language:
        case "toml":
            tomllib.loads(block.text)
        case "xml":
            etree.fromstring(block.text.encode())
        case "json":
            # A page may break the line of a document, or show several lines.
            decoder, text = json.JSONDecoder(), block.text.strip()
            while text:
                _, end = decoder.raw_decode(text)
                text = text[end:].strip()


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=lambda block: block.place)
def test_programs_can_be_parsed(block: Block):
    ast.parse(textwrap.dedent(block.text))


def test_installation_names_extras_that_exist_and_stands_alone():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for block in BLOCKS:
        for command in block.commands if block.language == "sh" else []:
            named = re.fullmatch(r"pip install '\.\[([\w,]+)\]'", command)
            assert ("install" in block.needs) == bool(named), f"{block.place}: {command}"
            assert set(named[1].split(",") if named else ()) <= set(extras), f"{block.place}: {command}"


def test_targets_of_make_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    commands = [command for block in BLOCKS if "checkout" in block.needs for command in block.commands]
    assert commands
    assert {command.split()[1] for command in commands} <= targets
    assert {command.split()[0] for command in commands} == {"make"}


def test_what_needs_an_extra_stands_below_its_installation():
    for page in PAGES:
        installed: set[str] = set()
        for block in blocks_of(page):
            if "install" in block.needs:
                installed.update(re.findall(r"[\w]+", " ".join(re.findall(r"\[(.*?)\]", block.text))))
            missing = (block.needs & {*EXTRAS}) - installed
            assert not missing, f"{block.place} needs the extra {', '.join(missing)}"
