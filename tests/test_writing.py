"""There is one way to replace a file: only `core/files.py` renames and syncs."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "perikope"
OWNER = SOURCE / "core" / "files.py"
OF_MODULES = {"os": {"replace", "rename", "renames", "fsync", "fdatasync"}, "shutil": {"move"}}


def changes_of_names(source: str) -> list[int]:
    """The lines of calls that rename or sync, and of imports of such functions."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if _imports(node) or _renames(node)]


def _imports(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name in OF_MODULES.get(node.module or "", ()) for alias in node.names)


def _renames(call: ast.AST) -> bool:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    function = call.func
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if function.attr in OF_MODULES.get(owner, ()):
        return True
    # `replace` of a text takes two values, that of a dataclass or a date takes names; with one value it is a path's.
    alone = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    of_path = function.attr == "replace" and (alone or [keyword.arg for keyword in call.keywords] == ["target"])
    return of_path or function.attr == "rename"


@pytest.mark.parametrize(
    ("source", "renames"),
    [
        ("import os\nos.replace(a, b)", True),
        ("os.rename(a, b)", True),
        ("os.fsync(file.fileno())", True),
        ("from os import fsync", True),
        ("shutil.move(a, b)", True),
        ("path.with_name('x').replace(path)", True),
        ("path.replace(target=other)", True),
        ("path.rename(other)", True),
        ("text.replace('a', 'b')", False),
        ("dataclasses.replace(value, name=1)", False),
        ("replace(value, name=1)", False),
        ("manifests.replace(folder, manifest)", False),
    ],
)
def test_renames_are_recognised(source, renames):
    assert bool(changes_of_names(source)) == renames


def test_only_one_module_renames_and_syncs():
    paths = [path for path in SOURCE.rglob("*.py") if path != OWNER]
    found = {path: changes_of_names(path.read_text("utf-8")) for path in paths}
    assert [f"{path.relative_to(SOURCE)}:{line}" for path, lines in found.items() for line in lines] == []
    assert changes_of_names(OWNER.read_text("utf-8"))
