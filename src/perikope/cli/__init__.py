"""The command line: one file per command. Errors are printed as one line that says what to do."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from io import TextIOWrapper

import click

from perikope import __version__
from perikope.core import compilation
from perikope.core.errors import PerikopeError, abridged, unknown

FIRST = (
    "index", "search", "show", "info", "explain", "locate", "adapt", "run", "eval", "graph", "encode", "train", "learn", "tune",
    "experiment", "topics", "compact", "check", "backup", "split", "cluster",
)  # fmt: skip
"""Commands in the order in which a new user needs them; `--help` lists the other commands after these, by name."""
SHORT = {"explain", "index", "info", "locate", "run", "search", "show"}
"""Commands that do better without the import of numba. They load kernels from stored code."""
_GARBAGE = 10_000
"""These commands look for garbage after so many new objects. Imports make many objects and no garbage; with Python's
default of 700, looking takes 7 % of the start."""
_SUFFIX = "_command"
_COMPLETING = "_PERIKOPE_COMPLETE"
"""The environment variable by which a shell asks click for completions."""
_PATHS = ("INDEX", "FILE", "FOLDER", "PATH", "RUN", "QRELS", "TOPICS")
"""Words in the metavars of parameters whose values are paths."""
_LONG = 10_000
"""More characters than the first sentence of any help text has."""


@cache
def command_names() -> tuple[str, ...]:
    """The names of all commands: one per file of this folder that ends in `_command.py`."""
    names = {module.name.removesuffix(_SUFFIX) for module in pkgutil.iter_modules(__path__) if module.name.endswith(_SUFFIX)}
    return (*(name for name in FIRST if name in names), *sorted(names - {*FIRST}))


_ADVICE = {
    errno.ENOSPC: ": free some disk space and try again; the index has not changed since its last commit",
    errno.EMFILE: ": raise the limit of this shell (ulimit -n 1024), or use fewer --workers",
    errno.ENFILE: ": all programs together have too many files open; try again later",
}
"""What to do about an error of the operating system, by its number."""

USER_ERROR = 2
"""The exit code for errors."""


class _LazyGroup(click.Group):
    """A group that imports the file of a command only when the command runs, so that `--help` is fast."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(command_names())

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with the whole first sentence of its help, which click would cut to one line."""
        commands = [(name, command) for name in self.list_commands(context) if (command := self.get_command(context, name)) is not None]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_LONG)) for name, command in commands])

    def resolve_command(self, context: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in command_names() and not name.startswith("-") and not context.resilient_parsing:
            raise unknown("command", name, command_names())
        return super().resolve_command(context, args)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in command_names():
            return None
        command: click.Command = importlib.import_module(f"perikope.cli.{name}{_SUFFIX}").command
        if _COMPLETING in os.environ:
            _complete_paths(command)
        return command


def _complete_paths(command: click.Command) -> None:
    """Let a shell complete the paths of arguments and options, which are recognised by their metavars."""
    for parameter in command.params:
        if parameter.type is click.STRING and any(word in (parameter.metavar or "") for word in _PATHS):
            parameter.type = click.Path(readable=False)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="perikope")
def perikope() -> None:
    """Find passages in structured documents, ranked in the context of their document.

    \b
    Example:
      perikope index docs/ --to idx
      perikope search idx "pump with a magnetic coupling"
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit. The exit code is 2 for a user error, and 1 if something was skipped or damaged."""
    if arguments is None:  # a command that somebody typed, not a call from Python
        from perikope.cli.compiling import CompilationNotice

        compilation.watcher = CompilationNotice()
        if sys.argv[1:2] == ["search"]:
            from perikope.cli.forwarding import forward

            if forward(sys.argv[2:]):
                sys.exit(0)
        compilation.prefers_stored = bool(SHORT.intersection(sys.argv[1:2]))
        if compilation.prefers_stored:
            gc.set_threshold(_GARBAGE)
    sys.exit(execute(arguments))


def _warn(message: Warning | str, *details: object, **more: object) -> None:
    """Print a warning as one line, without its location in the source code."""
    click.echo(f"perikope: warning: {abridged(str(message).removeprefix('perikope: '))}", err=True)


def _check_encodable(arguments: Sequence[str]) -> None:
    """Raise an error for a text that no shell can pass. A call from Python can have one; no file has such a name."""
    for number, argument in enumerate(arguments, 1):
        try:
            os.fsencode(argument)
        except UnicodeEncodeError:
            raise click.UsageError(f"argument {number} contains a surrogate, which is no character; remove it") from None


def execute(arguments: Sequence[str] | None) -> int:
    """Run the command line, and return its exit code. `None` stands for the arguments of this process."""
    warnings.showwarning = _warn
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # A terminal that cannot show a character gets a question mark, not a stack trace.
                stream.reconfigure(errors="replace")
        _check_encodable(arguments or ())
        code = perikope.main(arguments, prog_name="perikope", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        click.echo(help_wanted.format_message())
        return USER_ERROR
    except click.UsageError as error:
        return _complain(error.format_message() + _hint(error), error.ctx)
    except click.ClickException as error:
        return _complain(error.format_message(), getattr(error, "ctx", None))
    except PerikopeError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # The program that reads our output has ended (`| head`). Python must not report this as an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, click.Abort):
        click.echo("perikope: interrupted", err=True)
        return 130
    except OSError as error:
        return _complain(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}{_ADVICE.get(error.errno or 0, '')}")
    except MemoryError:
        return _complain("out of memory: use smaller values of --memory, --workers or -k")


def _hint(error: click.UsageError) -> str:
    """What to do about a mistake in the arguments of a command that takes a query; empty for other mistakes."""
    if error.ctx is None or not any(
        isinstance(parameter, click.Argument) and parameter.name == "query" for parameter in error.ctx.command.params
    ):
        return ""
    if isinstance(error, click.NoSuchOption):
        return "" if error.option_name.startswith("--") else "; write -- before a query that begins with -"
    return "; put a query of several words in quotes" if "unexpected extra argument" in error.message else ""


def _complain(message: str, context: click.Context | None = None) -> int:
    from perikope.cli.output import printable

    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    click.echo(f"perikope: error: {printable(abridged(' '.join(message.split())))}{hint}", err=True)
    return USER_ERROR
