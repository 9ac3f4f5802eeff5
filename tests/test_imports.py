"""Imports point one way: a module imports only from those above it."""

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "perikope"

ORDER = [
    "errors", "registry", "grammar", "parameters", "names", "folds", "codes", "kernels", "document", "families", "text", "translate",
    "sentences", "segment", "formats", "index", "query", "weighting", "fetch", "structure", "tables", "tags", "matches", "satisfaction",
    "signals", "models", "ranking", "document_ranking", "explain", "recipes", "feedback", "context", "lacking",
    "api", "originals", "workers", "build", "io", "batch", "measures", "learning", "experiment", "neural", "demo", "cli",
]  # fmt: skip


def top_level(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


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


def test_every_module_has_a_place_in_the_order():
    found = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")} - {"__init__", "__main__"}
    assert found == set(ORDER)


def test_modules_import_only_from_above():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own in ("__init__", "__main__"):
            continue  # the first names the homes of lazy attributes, the second only calls
        wrong += [f"{own} imports {name}" for name in imported_by(path) if ORDER.index(top_level(name)) > ORDER.index(own)]
    assert wrong == []


def test_importing_the_package_loads_neither_numpy_nor_numba():
    code = "import sys, perikope; perikope.PerikopeError; print([m for m in ('numpy', 'numba', 'lxml', 'click') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_there():
    import perikope

    assert all(getattr(perikope, name) is not None for name in perikope.__all__)
    assert set(dir(perikope)) == {*perikope.__all__, "__version__"}
