"""The texts of `--help`: complete summaries, options in groups; and completion in a shell."""

import os
import shutil
import subprocess
import sys

import click
import pytest

from perikope import cli
from perikope.cli.options import GroupedCommand
from tests.cli.test_commands import fails, run


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
    words = {"_PERIKOPE_COMPLETE": "bash_complete", "COMP_WORDS": "perikope info id", "COMP_CWORD": "2"}
    program = [sys.executable, "-c", "from perikope.cli import main; main()"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env={**os.environ, **words})
    assert done.stdout.strip() == "file,id", "bash completes it as the name of a file"


def test_measures_and_models_understand_the_notation(capsys):
    assert "nDCG@10 is nDCG with the cutoff 10.\n" in run(capsys, "measures", "nDCG@10")[1]
    assert "MAP(rel=2)@100 is AP with rel=2 and the cutoff 100.\n" in run(capsys, "measures", "MAP(rel=2)@100")[1]
    assert "iP[0.01] is iP with the recall 0.01.\n" in run(capsys, "measures", "iP[0.01]")[1]
    fails(capsys, "unknown measure 'nDGC'; did you mean 'nDCG'?", "measures", "nDGC@10")
    passages, documents = "Passages (--model)", "Documents (--fetch)"
    assert [title in run(capsys, "models", "bm25(k1=1)")[1] for title in (passages, documents)] == [True, True]
    # Only the fetch model has this parameter.
    assert [title in run(capsys, "models", "bm25(idf=robertson)")[1] for title in (passages, documents)] == [False, True]
    assert "Expansion (--expand)" in run(capsys, "models", "bo1(terms=20)")[1]
    fails(capsys, "k1=-1.0 is out of range", "models", "bm25(k1=-1)")
    fails(capsys, "did you mean 'bm25'", "models", "bm52(k1=1)")
