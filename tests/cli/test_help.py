"""The texts of `--help`: complete summaries, options in groups; and completion in a shell."""

import os
import shutil
import subprocess
import sys

import click
import pytest

from perikope import cli
from perikope.cli.options import GroupedCommand
from tests.cli.test_commands import run


def commands():
    context = click.Context(cli.perikope)
    return {name: cli.perikope.get_command(context, name) for name in cli.command_names()}


def test_every_command_has_a_complete_summary(capsys):
    out = run(capsys, "--help")[1]
    assert "..." not in out.split("Commands:")[1]
    text = " ".join(out.split())
    for name, command in commands().items():
        sentence = " ".join(command.help.split("\n\n")[0].split())
        first = sentence.split(". ")[0].rstrip(".")
        assert f"{name} {first}" in text


@pytest.mark.parametrize("name", [name for name, command in commands().items() if isinstance(command, GroupedCommand)])
def test_groups_name_options_that_exist_and_leave_out_none(name):
    command = commands()[name]
    own = {parameter.name for parameter in command.params if isinstance(parameter, click.Option)}
    grouped = [option for names in command.groups.values() for option in names]
    assert set(grouped) <= own
    assert len(grouped) == len(set(grouped))
    out = click.Context(command, info_name=name)
    text = command.get_help(out)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert any(flag in text for flag in parameter.opts), parameter.name


def complete(words, tmp_path):
    """What bash offers for the last word of a command line."""
    script = f"""
    eval "$(_PERIKOPE_COMPLETE=bash_source perikope)"
    COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    _perikope_completion perikope
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    program = tmp_path / "bin" / "perikope"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable}\nfrom perikope.cli import main\nmain()\n")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_and_paths(tmp_path):
    assert {"search", "show"} <= set(complete("perikope s", tmp_path))
    assert complete("perikope search --one-p", tmp_path) == ["--one-per"]
    assert complete("perikope eval --test w", tmp_path) == ["wilcoxon"]
