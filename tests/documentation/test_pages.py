"""The shell commands and Python programs of every page run as printed, one after the other.

`make test` leaves out what is slow and what needs an extra that is not installed. `make test-docs` runs everything (the
variable PERIKOPE_DOCUMENTATION is then `all`), in a clone of the repository with an environment of its own.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.documentation.blocks import EXTRAS, PAGES, PROGRAMS, ROOT, Block, blocks_of

EVERYTHING = os.environ.get("PERIKOPE_DOCUMENTATION") == "all"
PAGES_THAT_RUN = [page for page in PAGES if any(block.is_run and "checkout" not in block.needs for block in blocks_of(page))]


def is_left_out(block: Block) -> bool:
    if any(shutil.which(program) is None for program in block.needs & PROGRAMS):
        return True
    if not block.is_run or EVERYTHING:
        return not block.is_run
    return bool(block.needs & {"checkout", "install", "slow"}) or any(find_spec(EXTRAS[extra]) is None for extra in block.needs & {*EXTRAS})


def run(command: list[str], folder: Path, environment: dict[str, str], place: str) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{place}: {command[-1]}\nexit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    # A search that finds nothing is no example.
    assert done.stdout.strip() or not command[-1].startswith(("perikope search", "perikope explain")), f"{place}: {command[-1]}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if EVERYTHING:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "checkout")], check=True)
        return tmp_path / "checkout"
    return tmp_path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    programs = Path(sys.executable).parent
    if EVERYTHING:
        venv.create(tmp_path / "venv", with_pip=True)
        programs = tmp_path / "venv" / "bin"
        subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
    return os.environ | {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}


@contextmanager
def running(command: str, folder: Path, environment: dict[str, str], place: str) -> Iterator[None]:
    """Run a command in the background. The block begins when it has printed a line, and its end ends the command."""
    with tempfile.TemporaryFile("w+") as log:
        words = shlex.split(command)
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            if not process.stdout.readline():
                log.seek(0)
                raise AssertionError(f"{place}: {command} has ended\n{log.read()[-2000:]}")
            yield
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_runs_as_printed(page: Path, folder: Path, environment: dict[str, str]):
    programs = folder.parent / f"{page.stem}.py"
    said = ""
    with ExitStack() as until_the_end:
        for block in blocks_of(page):
            if is_left_out(block):
                continue
            if block.language == "python":
                # The blocks of a page share their names, so the earlier ones run again before the next.
                said += f"{block.text}\n"
                programs.write_text(said, "utf-8")
                run(["python", str(programs)], folder, environment, block.place)
            for command in block.commands if block.language == "sh" else []:
                if "background" in block.needs:
                    until_the_end.enter_context(running(command, folder, environment, block.place))
                elif command != "make test":  # this very test is a part of it
                    run(["bash", "-euo", "pipefail", "-c", command], folder, environment, block.place)
