"""Hostile options, queries and files for every command: one line says what is wrong, in bounded time and memory."""

from __future__ import annotations

import itertools
import math
import os
import random
import re
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from perikope.cli import command_names, perikope
from tests.durability.probe import limit_memory
from tests.soak.hostile_values import NUMBERS, OUTPUTS, TEXTS, write_files
from tests.soak.operations import INDEX, RUN, Ended, Workplace, command, complaint, in_process
from tests.soak.scenario import Trial, defect, scenario

MEGABYTES = 4096
"""Memory that a command may take."""
SLOWER = 20
"""How many times as much processor time as an ordinary command an input may take, besides time for its length."""
ORDINARY_BYTES = 200_000
FRESH = 25
"""Inputs after which the workplace is made anew."""
TOPICS, QRELS = "example/topics.tsv", "example/qrels.txt"
ORDINARY: dict[str, Sequence[str]] = {
    "index": ["more.jsonl", "--to", INDEX, "--append"],
    "split": ["more.jsonl", "--to", "chunks.jsonl"],
    "search": [INDEX, "magnetic pump"],
    "show": [INDEX, "m1"],
    "info": [INDEX],
    "explain": [INDEX, "pump seal", "m1#@1"],
    "locate": [INDEX, "EP-9140001-A1#claim-1", "--in", "example/docs"],
    "run": [INDEX, TOPICS, "--out", RUN],
    "eval": [QRELS, RUN],
    "graph": [INDEX, "m1"],
    "learn": ["tags", INDEX, TOPICS, QRELS, "--name", "t", "--min-occurrences", "1"],
    "tune": [INDEX, TOPICS, QRELS, "--model", "qsf_v(alpha=[0.2,0.8])", "--workers", "1"],
    "experiment": ["example/experiment.toml", "--out", "results", "--workers", "1"],
    "compact": [INDEX],
    "check": [INDEX],
    "formats": [],
    "measures": [],
    "models": [],
    "recipes": [],
}
"""Arguments with which each command works. Commands that are not listed are left out: `demo` and `warmup` have no
arguments that could be hostile, `encode` and `train` need torch and much time."""
LEFT_OUT = ("--translate", "--translator", "--encoder", "--device", "--help", "--to")
"""Options that reach other computers, need a GPU, or name the folder that is written to."""
MODEST = ("--workers", "--threads")
"""Options whose huge values would start as many processes: they are only given small and wrong values."""
OUTPUT = ("--out", "--save", "--plot", "--svg")
_PATH = re.compile(r"INDEX|FILE|FOLDER|PATH|RUN|QRELS|TOPICS|toml")
_NUMBER = re.compile(r"^[NXPW]$|SECONDS|SIZE|BUDGET|N\|all")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Cost:
    """Processor seconds of ordinary commands on this computer, and per byte of an ordinary document."""

    of_command: dict[str, float]
    per_byte: float

    def allowed(self, name: str, size: int) -> float:
        """The processor seconds that a command with an input of this size may take.

        A wrong input may need kernels that the ordinary one does not, so a command may take what a search takes.
        """
        return SLOWER * (max(self.of_command[name], self.of_command["search"]) + self.per_byte * size)


@scenario("hostile", most=100_000, reduced=40)
def hostile(trial: Trial) -> None:
    """Every command is given huge, malformed and nested options, queries and files; it answers or says one line."""
    workplace = Workplace(trial.folder)
    paths = write_files(trial.folder / "files")
    place, log = workplace.copy(), trial.folder / "output.txt"
    names = [name for name in command_names() if name in ORDINARY]
    cost = ordinary_cost(place, log, names)
    if find_spec("torch") is None:
        trial.note("encode and train are left out")
    codes: dict[int, int] = {}
    while trial.goes_on():
        if trial.operations % FRESH == 0:
            place = workplace.copy()
        name = trial.chance.choice(names)
        arguments = hostile_arguments(name, paths, trial.chance)
        trial.doing(shown(arguments))
        allowed = cost.allowed(name, size_of(arguments))
        ended = attempt(place, log, arguments, allowed)
        wrong = problem(ended, allowed)
        if wrong.startswith("took"):
            # The first use of a kernel may compile it.
            ended = attempt(place, log, arguments, allowed)
            wrong = problem(ended, allowed)
        if wrong:
            trial.fail(f"perikope {shown(arguments)}: {wrong}", cause=cause_of(wrong))
        codes[ended.code] = codes.get(ended.code, 0) + 1
        trial.did()
        trial.watch()
    for wrong in workplace._checked(place, "after hostile input"):
        trial.fail(wrong)
    trial.note("exit codes: " + ", ".join(f"{code}: {count}" for code, count in sorted(codes.items())))


def ordinary_cost(place: Path, log: Path, names: Sequence[str]) -> Cost:
    """The cost of every command with ordinary input, and that of a byte."""
    costs = {}
    for name in ["run", *names]:  # others read the run
        ended = attempt(place, log, [name, *ORDINARY[name]], math.inf)
        if wrong := complaint(ended, 0, 1):
            raise AssertionError(f"perikope {name} fails with ordinary input: {wrong}")
        costs[name] = ended.processor_seconds
    (place / "ordinary.txt").write_text("The magnet drives the rotor of the pump.\n\n" * (ORDINARY_BYTES // 42))
    indexed = attempt(place, log, ["index", "ordinary.txt", "--to", INDEX, "--append"], math.inf)
    return Cost(costs, indexed.processor_seconds / ORDINARY_BYTES)


def attempt(place: Path, log: Path, arguments: Sequence[str], allowed: float) -> Ended:
    """Run a command in a process with limits of memory and processor time."""

    def task() -> int:
        limit_memory(MEGABYTES)
        if not math.isfinite(allowed):
            return command(*arguments)(place)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(allowed) + 1, math.ceil(allowed) + 2))
        return answer(arguments, place)

    return in_process(task, log)


def hostile_arguments(name: str, paths: Sequence[str], chance: random.Random) -> list[str]:
    """The arguments of a command, with one or two that are hostile."""
    context = click.Context(perikope)
    found = perikope.get_command(context, name)
    arguments = list(ORDINARY[name])
    if isinstance(found, click.Group):
        found = found.get_command(context, arguments[0])
    assert found is not None
    options = [option for option in found.params if isinstance(option, click.Option) and _is_tried(option)]
    places = _positional(arguments)[1 if name == "learn" else 0 :]
    for _ in range(chance.choice([1, 1, 2])):
        if places and (not options or chance.random() < 0.5):
            place = chance.choice(places)
            if arguments[place] == INDEX and chance.random() < 0.8:
                place = places[-1]  # most commands only open the index and end, if it is none
            arguments[place] = chance.choice([*TEXTS, *(paths if _is_path(arguments[place]) else ())])
        elif options:
            option = chance.choice(options)
            arguments += [option.opts[-1], value_for(option, paths, chance)]
        else:
            arguments.append(chance.choice(TEXTS))
    return [name, *arguments]


def _is_tried(option: click.Option) -> bool:
    return not option.is_flag and option.opts[0] not in LEFT_OUT


def _positional(arguments: Sequence[str]) -> list[int]:
    """Where the arguments are that belong to no option."""
    is_option = [text.startswith("-") for text in arguments]
    return [place for place in range(len(arguments)) if not is_option[place] and not (place and is_option[place - 1])]


def _is_path(text: str) -> bool:
    return "." in text or "/" in text or text == INDEX


def value_for(option: click.Option, paths: Sequence[str], chance: random.Random) -> str:
    """A hostile value of the kind that an option takes, or of another kind."""
    metavar = option.metavar or ""
    if option.opts[0] in MODEST:
        return chance.choice([text for text in NUMBERS if len(text) < 3])
    if option.opts[0] in OUTPUT:
        return chance.choice(OUTPUTS)
    if chance.random() < 0.15:
        return chance.choice([*NUMBERS, *TEXTS])
    if _NUMBER.search(metavar):
        return chance.choice(NUMBERS)
    return chance.choice(paths if _PATH.search(metavar) and chance.random() < 0.7 else TEXTS)


def size_of(arguments: Sequence[str]) -> int:
    """The bytes of the arguments, and of the files that they name."""
    size = 0
    for text in arguments:
        size += len(text)
        try:
            size += os.stat(text).st_size if os.path.isfile(text) else 0
        except (OSError, ValueError):
            continue
    return size


def problem(ended: Ended, allowed: float) -> str:
    """What is wrong with how a command took its input; empty if nothing is."""
    if ended.processor_seconds > allowed:
        return f"took {ended.processor_seconds:.1f} s of the processor; {allowed:.1f} s are {SLOWER} times as long as usual"
    if wrong := complaint(ended, 0, 1, 2):
        return wrong
    if found := _CONTROL.search(ended.errors):
        return f"prints the control character {found[0]!r}: {ended.errors[:300]!r}"
    if ended.code == 2 and not ended.errors.strip() and not ended.output.strip():
        return "fails without a message"
    return ""


def cause_of(wrong: str) -> str:
    """What failures have in common: the last line of a stack trace, or the first words."""
    if wrong.startswith("a stack trace"):
        return wrong.strip().splitlines()[-1][:80]
    return " ".join(re.sub(r"[\d.]+", "…", wrong).split()[:4])


def shown(arguments: Sequence[str]) -> str:
    """The arguments, long ones shortened."""
    return " ".join(repr(text) if len(text) <= 60 else f"{text[:25]!r}…({len(text)})" for text in arguments)


def answer(arguments: Sequence[str], place: Path) -> int:
    """Run a command with hostile arguments."""
    return command(*arguments)(place)


def _plant(instead: Callable[[], int]) -> None:
    sys.modules[__name__].answer = lambda arguments, place: instead()  # type: ignore[attr-defined]


@defect(hostile, "an error is not caught", reported="a stack trace")
def _raise() -> None:
    _plant(lambda: 1 // 0)


@defect(hostile, "an input takes very long", reported="took")
def _linger() -> None:
    _plant(lambda: max(itertools.count()))


@defect(hostile, "a message repeats all of its input", reported="a message of")
def _repeat() -> None:
    _plant(lambda: sys.stderr.write("perikope: error: " + "no " * 5000) and 2)


@defect(hostile, "a message controls the terminal", reported="control character")
def _control() -> None:
    _plant(lambda: sys.stderr.write("perikope: error: \x1b[2J") and 2)
