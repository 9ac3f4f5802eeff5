"""The first search on a computer compiles little, says so, and leaves nothing to compile for the second."""

import json
import os
import re
import subprocess
import sys

import pytest

from perikope.document.tree import TreeBuilder
from perikope.search.facade import Index

PROGRAM = """
import json, sys
from numba.core import event

class Compilations(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        compiled.append((function.__module__, function.__name__, str(event.data["args"])))
    def on_end(self, event):
        pass

compiled = []
event.register("numba:compile", Compilations())
from perikope.cli import main
sys.argv = ["perikope", "search", sys.argv[1], "magnetic pump", "--json"]
try:
    main()
finally:
    with open(f"{sys.argv[2]}.compiled", "w") as file:
        json.dump(compiled, file)
"""


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    """Two searches by two processes with the same cache of kernels, at first empty: outputs, and what was compiled."""
    folder = tmp_path_factory.mktemp("first")
    index = Index.create(str(folder / "index"))
    for name in ("d1", "d2"):
        builder = TreeBuilder(name)
        builder.title("Pumps")
        builder.passage("a magnetic pump")
        index.add(builder.build())
    index.commit()
    environment = os.environ | {"PERIKOPE_CACHE": str(folder / "cache")}
    done = []
    for _ in range(2):
        process = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(folder / "index")], capture_output=True, text=True, check=True, env=environment
        )
        done.append((process.stdout, process.stderr, json.loads((folder / "index.compiled").read_text())))
    return done


def test_the_first_search_compiles_little(searches):
    compiled = searches[0][2]
    kernels = {name for module, name, _ in compiled if module.startswith("perikope.")}
    others = {module for module, _, _ in compiled if not module.startswith("perikope.")}
    assert 0 < len(kernels) <= 24
    assert len(compiled) <= 56
    # What kernels use of numpy is cheap to compile: no sorting, no searching, and no checks that print shapes.
    assert others <= {"numba.np.arrayobj", "numba.cpython.builtins"}


def test_no_kernel_is_compiled_for_two_kinds_of_the_same_arrays(searches):
    def plain(types):
        return re.sub(r"Literal\[int\]\(-?\d+\)|u?int\d+|readonly |True|False|mutable", "", types)

    own = [(name, plain(types)) for module, name, types in searches[0][2] if module.startswith("perikope.")]
    assert len(own) == len(set(own))


def test_the_second_search_compiles_nothing(searches):
    assert searches[1][2] == []


def test_one_line_says_that_kernels_are_compiled_and_the_output_is_the_same(searches):
    first, second = searches
    assert first[0] == second[0]
    assert [json.loads(line) for line in first[0].splitlines()]
    assert first[1].count("compiling kernels") == first[1].count("\n") == 1
    assert second[1] == ""
