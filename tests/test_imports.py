"""Imports point one way: a module imports only from those above it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "perikope"

ORDER = [
    "core", "kernels", "text", "document", "patents", "formats", "index", "build", "query", "fetch", "browse", "search",
    "evaluation.io", "evaluation.measures", "evaluation", "evaluation.selfmade", "evaluation.learning", "evaluation.tuning",
    "evaluation.adapting", "evaluation.experiment", "neural", "service", "page", "server", "cluster", "client", "adapters", "cli",
]  # fmt: skip
"""The folders in the order of imports. A folder inside another may have its own entry, which then counts."""


def place_of(module: str) -> int:
    """The number of a module in the order, by the longest matching entry; `module` lacks the prefix `perikope.`."""
    holding = [entry for entry in ORDER if f"{module}.".startswith(f"{entry}.")]
    return ORDER.index(max(holding, key=len)) if holding else -1


def imported_by(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("perikope."):
            names.add(node.module)
        elif isinstance(node, ast.ImportFrom) and node.module == "perikope":
            names |= {f"perikope.{alias.name}" for alias in node.names if not alias.name.startswith("__")}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("perikope.")}
    return names


def modules() -> dict[str, Path]:
    """All modules but the two at the top: the first names the homes of lazy attributes, the second only calls."""
    paths = {".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCE.rglob("*.py")}
    return {name: path for name, path in paths.items() if name not in ("__init__", "__main__")}


def test_every_module_has_a_place_in_the_order():
    assert [name for name in modules() if place_of(name) < 0] == []
    assert [entry for entry in ORDER if not (SOURCE / entry.replace(".", "/")).with_suffix("").exists() and entry not in modules()] == []


def test_modules_import_only_from_above():
    wrong = []
    for own, path in modules().items():
        imported = {name.removeprefix("perikope.") for name in imported_by(path)}
        wrong += [f"{own} imports {name}" for name in sorted(imported) if place_of(name) > place_of(own)]
    assert wrong == []


def test_importing_the_package_loads_neither_numpy_nor_numba():
    code = "import sys, perikope; perikope.PerikopeError; print([m for m in ('numpy', 'numba', 'lxml', 'click') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_there():
    import perikope

    assert all(getattr(perikope, name) is not None for name in perikope.__all__)
    assert set(dir(perikope)) == {*perikope.__all__, "__version__"}
    assert (SOURCE / "py.typed").is_file(), "type checkers read the annotations"


def test_the_architecture_page_lists_the_folders_in_this_order():
    page = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text("utf-8")
    assert re.findall(r"^- \*\*`([a-z_.]+)`\*\*", page, re.MULTILINE) == ORDER


def test_the_architecture_page_links_to_files_that_are_there():
    root = SOURCE.parents[1]
    links = re.findall(r"\]\(((?:src|tests|docs)/[^)#]*)", (root / "ARCHITECTURE.md").read_text("utf-8"))
    assert links
    assert [link for link in links if not (root / link).exists()] == []


def test_help_loads_neither_numpy_nor_numba():
    code = (
        "import sys; from perikope import cli; assert cli.execute(['--help']) == 0;"
        "print([m for m in ('numpy', 'numba', 'lxml') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
