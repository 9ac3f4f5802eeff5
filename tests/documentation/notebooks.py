"""The notebooks in examples/, run as a notebook runs them: cell by cell, showing the value of the last expression.

    python -m tests.documentation.notebooks examples/why-was-this-found.ipynb

This needs no package for notebooks. Commands of a kernel (`%`, `!`) are refused as errors of syntax.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

from tests.documentation.blocks import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
NEEDS = {"train-without-forgetting": "torch"}
"""Packages of extras that notebooks need, by the name of the notebook."""


def cells_of(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return cells


def run(notebook: Path) -> None:
    """Run the code cells of a notebook in one namespace, and make the output that a notebook would show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells_of(notebook), 1):
        if cell["cell_type"] != "code":
            continue
        place = f"{notebook.name}, cell {number}"
        body = ast.parse("".join(cell["source"]), place).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), place, "exec"), names)
        if isinstance(last, ast.Expr):
            show(eval(compile(ast.Expression(last.value), place, "eval"), names))


def show(value: object) -> None:
    """Print a value as a notebook shows it: as HTML if it has any."""
    made = getattr(value, "_repr_html_", None)
    if value is not None:
        sys.stdout.write(f"{made() if made else repr(value)}\n")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
