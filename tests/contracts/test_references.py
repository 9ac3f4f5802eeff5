"""The generated pages of reference are what their programs write, and lack nothing that is declared."""

import click
import pytest

import perikope as package
from perikope.cli import command_names, perikope
from perikope.service.operations import load_operations
from tests.support.programs import program


@pytest.mark.parametrize("name", ["make_commands.py", "make_http.py", "make_python.py"])
def test_a_page_is_what_its_program_writes(name: str):
    made = program(name)
    assert made.PAGE.read_text("utf-8") == made.page(), f"run python scripts/{name}"


def test_the_page_of_commands_has_every_option_of_every_command():
    page = program("make_commands.py").page()
    for name in command_names():
        command = perikope.get_command(click.Context(perikope), name)
        section = page.partition(f"## `perikope {name}`\n")[2].partition("\n## ")[0]
        assert section, name
        if not any(parameter.name == "recipe" for parameter in command.params):
            for parameter in command.params:
                assert not isinstance(parameter, click.Option) or f"`{parameter.opts[0]}" in section, (name, parameter.name)


def test_the_page_of_http_has_every_operation_with_its_example():
    page = program("make_http.py").page()
    for operation in load_operations().values():
        section = page.partition(f"## `{operation.name or 'index'}`\n")[2].partition("\n## ")[0]
        assert "\ncurl " in section
        assert all(f"`{name}`" in section or "options of a search" in section for name in operation.parameters)


def test_the_page_of_python_has_every_public_name():
    page = program("make_python.py").page()
    assert [name for name in package.__all__ if f"\n## `{name}`\n" not in page] == []
