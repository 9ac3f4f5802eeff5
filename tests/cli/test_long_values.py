"""No message repeats kilobytes of input: every option of every command gets a value of 10 KB."""

from collections.abc import Iterator

import click
import pytest

import perikope as pk
from perikope.cli import perikope
from perikope.core.errors import MOST_MESSAGE, PerikopeError, abridged
from perikope.search.options import OPTIONS
from tests.cli.test_commands import fails, run
from tests.support.collections import plain_document

LONG = {"word": "x" * 10_000, "sentence": "long words " * 900, "path": "folder/" * 1400, "number": "9" * 10_000}
MOST = MOST_MESSAGE + 100
"""The most characters of a printed line: a message, what stands before it, and the hint at its end."""
LISTING = 420
"""The most characters of a message that does not list the valid names."""

REQUIRED = {
    "index": ["{docs}", "--to", "{new}"],
    "split": ["{docs}", "--to", "{out}"],
    "search": ["{index}", "pump"],
    "show": ["{index}", "a.md"],
    "info": ["{index}"],
    "explain": ["{index}", "pump", "a.md#@1"],
    "locate": ["{index}", "a.md#@1", "--in", "{docs}"],
    "run": ["{index}", "{topics}", "--out", "{out}"],
    "eval": ["{qrels}", "{run}"],
    "tune": ["{index}", "{topics}", "{qrels}", "--trials", "1"],
    "experiment": ["{plan}", "--out", "{new}"],
    "graph": ["{index}", "a.md"],
    "compact": ["{index}"],
    "check": ["{index}"],
    "demo": ["--to", "{new}"],
    "measures": ["nDCG"],
    "models": ["bm25"],
    "recipes": ["bm25"],
    "learn delete": ["{index}", "x"],
    "learn show": ["{index}", "x"],
    "learn tags": ["{index}", "{topics}", "{qrels}"],
    "learn prior": ["{index}", "{topics}", "{qrels}"],
}
"""What a command needs besides the option. Commands that need optional packages are left out."""


def command_named(name: str) -> click.Command:
    command: click.Command = perikope
    for part in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), part)
        assert found is not None
        command = found
    return command


def invocations(name: str) -> Iterator[tuple[str, list[str], int]]:
    """Yield each option with the command line, and the place for its value; then each argument."""
    needed = REQUIRED[name]
    for parameter in command_named(name).params:
        if isinstance(parameter, click.Option) and not parameter.is_flag:
            yield (
                parameter.opts[0],
                [*name.split(), *needed, f"{parameter.opts[0]}=VALUE" if parameter.opts[0][:2] == "--" else "-kVALUE"],
                -1,
            )
    for place, given in enumerate(needed):
        if not given.startswith("--"):
            words = [*name.split(), *needed]
            yield f"argument {place + 1}", words, len(name.split()) + place


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("long")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text("# Pumps\n\nThe pump.\n")
    (folder / "topics.tsv").write_text("1\tpump\n")
    (folder / "qrels").write_text("1 0 a.md#@1 1\n")
    (folder / "run").write_text("1 Q0 a.md#@1 1 1.0 x\n")
    (folder / "plan.toml").write_text('title = "T"\n')
    index = pk.Index.create(folder / "index")
    index.add(plain_document("a.md", "Pumps", "The pump."))
    index.commit()
    index.close()
    names = {"topics": "topics.tsv", "plan": "plan.toml"}
    return {name: str(folder / names.get(name, name)) for name in ("docs", "index", "topics", "qrels", "run", "plan", "new", "out")}


@pytest.mark.parametrize("name", REQUIRED)
def test_no_command_repeats_a_long_value(name: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for what, words, place in invocations(name):
        if what == "--translate":
            continue  # the value is an address on the network
        for kind, value in LONG.items():
            given = [word.replace("VALUE", value) if place < 0 else word for word in words]
            if place >= 0:
                given[place] = value
            code, _, err = run(capsys, *(word.format(**places) if "{" in word else word for word in given))
            lines = err.splitlines()
            assert max(map(len, lines), default=0) <= MOST, (what, kind, err[:500])
            assert len(lines) <= 2 or code != 2, (what, kind, err[:500])
            assert all(len(line) <= LISTING or "valid: " in line or "one of: " in line or "unknown" in line for line in lines), (
                what,
                kind,
                err,
            )


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", LONG)
def test_python_does_not_either(option: str, kind: str, places: dict[str, str], recwarn: pytest.WarningsRecorder) -> None:
    index = pk.Index.open(places["index"])
    if option == "translator":
        return
    for value in (LONG[kind], [LONG[kind]], {LONG[kind]: 1.0}):
        try:
            notes = index.search("pump", **{option: value}).notes
        except PerikopeError as error:
            notes = (str(error),)
        assert max(map(len, notes), default=0) <= MOST_MESSAGE, notes
    assert max((len(str(warning.message)) for warning in recwarn), default=0) <= MOST_MESSAGE


@pytest.mark.parametrize("kind", LONG)
def test_long_queries_and_ids_are_cut(kind: str, places: dict[str, str]) -> None:
    index = pk.Index.open(places["index"])
    asked = [
        lambda: index.search(LONG[kind]).notes,
        lambda: index.search(LONG[kind], syntax="boolean").notes,
        lambda: index.document(LONG[kind]),
        lambda: pk.Index.open(LONG[kind]),
        lambda: list(pk.read(LONG[kind])),
        lambda: list(pk.read(places["docs"], format=LONG[kind])),
        lambda: index.sync(LONG[kind]),
    ]
    for ask in asked:
        try:
            notes = ask()
        except PerikopeError as error:
            notes = (str(error),)
        except AttributeError:
            continue
        assert all(len(str(note)) <= MOST_MESSAGE for note in notes), str(notes)[:300]


def test_the_end_of_a_message_says_what_to_do() -> None:
    message = abridged(f"there is no file {'long words ' * 500}; check the path")
    assert len(message) <= MOST_MESSAGE
    assert message.startswith("there is no file long words")
    assert message.endswith("; check the path")
    assert abridged("short") == "short"


@pytest.mark.parametrize("command", ["run", "eval", "backup", "search", "index"])
def test_a_text_that_is_no_text_is_an_error(capsys, command):
    fails(capsys, "argument 3 contains a surrogate", command, "idx", "\ud800")
