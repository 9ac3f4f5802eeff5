"""Stored machine code gives what numba gives, without numba; anything unusual is left to numba."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import perikope
from perikope.kernels import jit_numba, jit_stored

stored_here = pytest.mark.skipif(not jit_stored.is_allowed(), reason="stored code is for Linux on x86-64 with numba's default settings")


class Pair(NamedTuple):
    """A tuple with names, as kernels take them."""

    numbers: object
    other: object


class Subclass(np.ndarray):
    """Numba takes any subclass; here it is not known."""


def readonly(array):
    array.flags.writeable = False
    return array


NUMBERS = np.arange(12)
KNOWN = [
    *(NUMBERS.astype(dtype) for dtype in "?bBhHiIlLqQfdFD"), readonly(NUMBERS.copy()), NUMBERS.reshape(3, 4), NUMBERS.reshape(3, 4).T,
    NUMBERS[::2], readonly(NUMBERS[::2]), NUMBERS.reshape(2, 3, 2), NUMBERS[:0], np.zeros((1, 5))[:, ::2],
    5, -(1 << 63), (1 << 63) - 1, 0.5, True, np.int64(3), np.uint64(3), np.int32(3), np.uint8(3), np.float64(3), np.float32(3),
    np.bool_(True),
    Pair(NUMBERS, 3), Pair(Pair(readonly(NUMBERS.copy()), True), 1.0), (NUMBERS, 2), (3, 4), (NUMBERS, (1.0, Pair(1, 2))),
]  # fmt: skip
UNKNOWN = [
    NUMBERS.view(Subclass), NUMBERS.astype(">i8"), np.zeros(17, np.uint8)[1:].view(np.int64), np.zeros(2, "M8[s]"), np.zeros(2, "U3"),
    1 << 63, "text", b"bytes", None, [1], {1: 2}, 1j, Pair(NUMBERS, "text"), np.zeros(2, [("a", "i4")]),
]  # fmt: skip


@pytest.mark.parametrize("value", KNOWN, ids=lambda value: repr(value)[:40])
def test_values_and_types_of_numba_have_the_same_name(value):
    name = jit_stored.signature_of((value,))
    assert name
    assert name == jit_numba._names((numba.typeof(value),))


def test_equal_keys_are_those_of_equal_names():
    name_of_key = {}
    for values in ((value,) for value in (*KNOWN, *UNKNOWN)):
        name = jit_stored.signature_of(values)
        assert name_of_key.setdefault(jit_stored.key_of(values), name) == name
    assert jit_stored.key_of((5, NUMBERS)) == jit_stored.key_of((6, NUMBERS.copy()))
    assert jit_stored.key_of(((5, 6), 7)) != jit_stored.key_of((5, (6, 7)))


def test_values_that_numba_distinguishes_have_different_names():
    kinds = {numba.typeof(value): jit_stored.signature_of((value,)) for value in KNOWN}
    assert len(set(kinds.values())) == len(kinds)


@pytest.mark.parametrize("value", UNKNOWN, ids=lambda value: repr(value)[:40])
def test_other_values_have_no_name(value):
    assert jit_stored.signature_of((NUMBERS, value)) is None


USED = """
import sys
from perikope.core import compilation
compilation.prefers_stored = {stored}
class Watcher:
    began = lambda self: print("compiled", file=sys.stderr)
    ended = lambda self: None
compilation.watcher = Watcher()
{program}
print("numba" if "numba" in sys.modules else "stored", file=sys.stderr)
"""


def run(program, *, stored=True, check=True, **environment):
    """What a program prints, and how its kernels came: `compiled` once per kernel, then `numba` or `stored`."""
    code = USED.format(stored=stored, program=program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ | environment)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout, done.stderr.split()


SEARCHES = """
import tempfile
from perikope.build.indexing import build, BuildOptions
from perikope.browse.models import MODELS
from perikope.evaluation.demo import example_files
from perikope.search.facade import Index
with example_files() as corpus, tempfile.TemporaryDirectory() as folder:
    build(folder + "/index", [str(corpus / "docs")], BuildOptions(workers=1))
    index = Index.open(folder + "/index")
    for query in ("pump with a magnetic coupling", "(magnetic NEAR/5 pump) OR coupl*"):
        for model in (name for name, definition in MODELS.items() if definition.is_ready):
            syntax = "boolean" if "(" in query else "words"
            print(model, [(hit.name, hit.score.hex()) for hit in index.search(query, model=model, k=50, syntax=syntax)])
"""


@stored_here
def test_every_model_ranks_with_stored_code_as_with_numba():
    by_numba, _ = run(SEARCHES, stored=False)
    found, how = run(SEARCHES)
    assert found == by_numba
    assert by_numba.count("#") > 100
    assert how == ["stored"], "numba was imported"


SUM = """
from perikope.kernels.passages import sum_documents
import numpy as np
print(sum_documents(np.array([1.0, 2.0]), np.array([0, 2])))
"""
OWNERS = """
from perikope.kernels.gather import owners
import numpy as np
print(owners(np.array([0, 5]), np.array([2, 6])))
"""


@pytest.fixture
def filled(tmp_path):
    """A cache of its own with the code of one kernel, and that file."""
    if not jit_stored.is_allowed():
        pytest.skip("no stored code here")
    assert run(SUM, PERIKOPE_CACHE=str(tmp_path)) == ("[3.]\n", ["compiled", "numba"])
    (code,) = tmp_path.rglob("*.code")
    assert run(SUM, PERIKOPE_CACHE=str(tmp_path)) == ("[3.]\n", ["stored"])
    return tmp_path, code


def forge_processor(content):
    """The same code as if it were made for another processor, with a right checksum."""
    import json
    import zlib

    start = len(jit_stored._MAGIC) + 4
    size = int.from_bytes(content[start : start + 8], "little")
    head = json.loads(content[start + 8 : start + 8 + size]) | {"processor": "another one"}
    written = json.dumps(head).encode()
    content = len(written).to_bytes(8, "little") + written + content[start + 8 + size :]
    return jit_stored._MAGIC + zlib.crc32(content).to_bytes(4, "little") + content


@pytest.mark.parametrize(
    "harm",
    [lambda content: b"", lambda content: content[:-1], lambda content: content[:3000] + b"\0" + content[3001:], forge_processor],
    ids=["empty", "cut", "changed", "other processor"],
)
def test_code_that_is_not_as_it_was_written_is_left_to_numba(filled, harm):
    folder, code = filled
    content = code.read_bytes()
    assert harm(content) != content
    code.write_bytes(harm(content))
    assert run(SUM, PERIKOPE_CACHE=str(folder)) == ("[3.]\n", ["numba"])


def test_code_that_was_removed_is_stored_again_from_the_cache_of_numba(filled):
    folder, code = filled
    code.unlink()
    assert run(SUM, PERIKOPE_CACHE=str(folder)) == ("[3.]\n", ["numba"])
    assert run(SUM, PERIKOPE_CACHE=str(folder)) == ("[3.]\n", ["stored"])


def test_settings_of_numba_are_obeyed(filled):
    folder, _ = filled
    assert run(SUM, PERIKOPE_CACHE=str(folder), NUMBA_BOUNDSCHECK="1")[1][-1] == "numba"
    assert run(SUM, PERIKOPE_CACHE=str(folder)) == ("[3.]\n", ["stored"]), "code with other settings was not stored"


def test_other_types_are_left_to_numba_and_so_are_all_kernels_from_then_on(filled):
    folder, _ = filled
    wide = SUM + "print(sum_documents(np.array([1.0, 2.0], np.float32), np.array([0, 2])))" + SUM + OWNERS
    assert run(wide, PERIKOPE_CACHE=str(folder)) == ("[3.]\n[3.]\n[3.]\n[0 0 1]\n", ["compiled", "compiled", "numba"])


@stored_here
def test_a_kernel_that_calls_others_is_compiled_after_all(tmp_path):
    program = SUM + "from perikope.kernels.sums import exact_sum\nprint(exact_sum(np.array([0.1] * 10), 0.0))\n" + SUM
    out, how = run(program, PERIKOPE_CACHE=str(tmp_path))
    assert out == "[3.]\n1.0\n[3.]\n"
    assert how[-1] == "numba"
    assert run(program, PERIKOPE_CACHE=str(tmp_path)) == (out, ["stored"])


@pytest.mark.parametrize("size", [-5, 1 << 44, 1 << 60])
def test_errors_of_kernels_are_the_same(tmp_path, size):
    program = f"""
SIZE = {size}
import numpy as np
from perikope.kernels.gather import owners
try:
    owners(np.array([0]), np.array([SIZE]))
except (MemoryError, ValueError) as error:
    print(repr(error))
"""
    by_numba, _ = run(program, stored=False, PERIKOPE_CACHE=str(tmp_path))
    found, _ = run(program, PERIKOPE_CACHE=str(tmp_path))
    assert found == by_numba != ""


@stored_here
def test_results_are_freed_and_threads_may_begin_together(tmp_path):
    program = """
import resource, threading
import numpy as np
from perikope.kernels.gather import owners
first, end = np.array([0]), np.array([1 << 20])
def use():
    for _ in range(50):
        assert owners(first, end).size == 1 << 20
threads = [threading.Thread(target=use) for _ in range(4)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for thread in threads: thread.start()
for thread in threads: thread.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10)
"""
    run(program, PERIKOPE_CACHE=str(tmp_path))
    assert run(program, PERIKOPE_CACHE=str(tmp_path)) == ("True\n", ["stored"])


def copied(folder):
    shutil.copytree(Path(perikope.__file__).parent, folder / "perikope", ignore=shutil.ignore_patterns("__pycache__", "example", "files"))
    return str(folder)


def test_another_installation_with_the_same_sources_has_the_same_kernels(filled, tmp_path):
    cache, _ = filled
    other = copied(tmp_path / "other")
    environment = {"PERIKOPE_CACHE": str(cache), "PYTHONPATH": other}
    assert run("import perikope\nprint(perikope.__file__)", **environment)[0].startswith(other)
    assert run(SUM, **environment) == ("[3.]\n", ["stored"])


def test_a_change_of_a_module_that_a_kernel_imports_makes_it_new(filled, tmp_path):
    cache, _ = filled
    other = copied(tmp_path / "other")
    environment = {"PERIKOPE_CACHE": str(cache), "PYTHONPATH": other}
    program = "from perikope.kernels.jit_cache import kernel_folder\nprint(kernel_folder('accumulate'), kernel_folder('passages'))"
    before = run(program, **environment)[0].split()
    with Path(other, "perikope", "kernels", "ordered.py").open("a") as file:
        file.write("\n# changed\n")
    after = run(program, **environment)[0].split()
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_old_folders_of_a_module_are_removed(filled):
    cache, code = filled
    for number in range(20):
        old = code.parent.parent / f"gather-{number:024}"
        old.mkdir(mode=0o700)
        os.utime(old, (number, number))
    run(OWNERS, PERIKOPE_CACHE=str(cache))
    kept = sorted(path.name for path in code.parent.parent.glob("gather-*"))
    assert len(kept) == 8
    assert [f"gather-{number:024}" for number in range(13, 20)] == kept[:7]
    assert code.exists()
