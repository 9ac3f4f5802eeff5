"""One name, one meaning: class names are unique in the package, and array types are named in one module."""

import ast
import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "perikope"
FILES = sorted(PACKAGE.rglob("*.py"))


def test_class_names_are_unique():
    modules = defaultdict(list)
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(str(file.relative_to(PACKAGE)))
    assert {name: places for name, places in modules.items() if len(places) > 1} == {}


def test_array_types_are_declared_in_one_module():
    declared = {
        str(file.relative_to(PACKAGE))
        for file in FILES
        if re.search(r"^\w+(: TypeAlias)? = NDArray\[", file.read_text("utf-8"), re.MULTILINE)
    }
    assert declared == {"core/arrays.py"}
