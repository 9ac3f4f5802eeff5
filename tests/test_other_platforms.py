"""A simulation of Windows on Linux: indexing and experiments work without what Windows lacks or refuses."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from perikope.build import workers
from perikope.core.errors import UsageError
from perikope.index.saved_tables import check_name
from tests.support.windows import FORBIDDEN
from tests.unit.evaluation.conftest import PLAN, write_collection

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is simulated is looked up in /proc")

PRELUDE = """
import gc, os, subprocess, sys, threading, time
from pathlib import Path
from tests.support import windows

windows.pretend()

import perikope
from perikope.cli import main
from perikope.core import files, locks
from perikope.core.errors import InputError, LockedError
from perikope.index.check import check
from perikope.search.facade import Index
from tests.support.collections import plain_document

folder = Path(sys.argv[1])


def command(*arguments, expected=0):
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code or 0
    else:
        code = 0
    assert code == expected, (arguments, code)


def found(index, query):
    return [hit.document for hit in index.search(query)]


def leftovers(place):
    gc.collect()
    return list(check(place).unknown_files)
"""


def run(folder: Path, program: str) -> str:
    """Run a program as on Windows; returns what it printed."""
    root = Path(__file__).parents[1]
    call = [sys.executable, "-c", PRELUDE + program, str(folder)]
    done = subprocess.run(call, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_what_is_hidden_is_hidden(tmp_path):
    run(
        tmp_path,
        """
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise AssertionError(name)
assert not any(hasattr(os, name) for name in ("fork", "getuid", "sched_getaffinity", "O_DIRECTORY", "register_at_fork", "O_CLOEXEC"))
with open(folder / "held", "wb") as held:
    for refused in ((folder / "held").unlink, lambda: os.replace(folder / "held", folder / "other"), lambda: os.open(folder, os.O_RDONLY)):
        try:
            refused()
        except PermissionError:
            continue
        raise AssertionError("not refused")
(folder / "held").unlink()
""",
    )


def test_an_index_is_made_changed_searched_and_checked(tmp_path):
    write_collection(tmp_path)
    run(
        tmp_path,
        """
place = folder / "index"
command("index", folder / "documents.jsonl", "--to", place)
command("search", place, "pump rotor")
index = Index.open(place)
assert len(index) == 14
index.add([plain_document("new", "", "a turbine")])
index.commit()
assert found(index, "turbine") == ["new"]
index.delete(["new"])
index.commit()
assert found(index, "turbine") == []
gc.collect()
command("compact", place)
command("check", place)
assert leftovers(place) == []
assert sorted(path.suffix for path in place.iterdir()) == [".columns", ".json", ".lock"]
""",
    )
    assert [path.name for path in tmp_path.rglob("*") if FORBIDDEN.search(path.name)] == []


def test_workers_are_spawned(tmp_path):
    write_collection(tmp_path)
    run(
        tmp_path,
        """
from perikope.build.workers import process_context
assert process_context().get_start_method() == "spawn"
command("index", folder / "documents.jsonl", "--to", folder / "index", "--workers", "2")
assert len(Index.open(folder / "index")) == 14
""",
    )


def test_segments_that_a_reader_has_mapped_are_removed_by_a_later_writer(tmp_path):
    run(
        tmp_path,
        """
place = folder / "index"
writer = Index.create(place)
for number in range(3):
    writer.add([plain_document(f"d{number}", "", "pump")])
    writer.commit()
reader = Index.open(place)
writer.delete(["d0"])
writer.commit()
writer.compact()
del writer
held = leftovers(place)
assert len(held) == 3, held
assert sorted(found(reader, "pump")) == ["d0", "d1", "d2"]
later = Index.open(place)
later.add([plain_document("d3", "", "pump")])
later.commit()
del later
assert leftovers(place) == held
assert sorted(found(reader, "pump")) == ["d0", "d1", "d2"]
reader.refresh()
assert sorted(found(reader, "pump")) == ["d1", "d2", "d3"]
assert leftovers(place) == held
last = Index.open(place)
last.delete(["d1"])
last.commit()
assert leftovers(place) == []
assert check(place).problems == ()
""",
    )


def test_a_manifest_that_is_being_read_is_replaced_a_moment_later(tmp_path):
    run(
        tmp_path,
        """
index = Index.create(folder / "index")
index.add([plain_document("d1", "", "pump")])
reading = open(folder / "index" / "manifest.json", "rb")
threading.Timer(0.2, reading.close).start()
index.commit()
assert found(Index.open(folder / "index"), "pump") == ["d1"]
assert leftovers(folder / "index") == []
""",
    )


def test_a_commit_that_fails_can_be_made_again_although_its_segments_are_mapped(tmp_path):
    run(
        tmp_path,
        """
index = Index.create(folder / "index")
index.add([plain_document("d1", "", "pump")])
reading = open(folder / "index" / "manifest.json", "rb")
try:
    index.commit()
except PermissionError as error:
    failure = error  # holds the frames, and with them what was mapped
index.rollback()
reading.close()
index.add([plain_document("d1", "", "pump")])
index.commit()
assert found(index, "pump") == ["d1"]
assert len(leftovers(folder / "index")) == 1
del failure
gc.collect()
later = Index.open(folder / "index")
later.add([plain_document("d2", "", "pump")])
later.commit()
assert leftovers(folder / "index") == []
""",
    )


def test_a_build_that_fails_while_its_segments_are_mapped_can_be_started_again(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": "same", "passages": [{"text": "pump"}]}\n')
    run(
        tmp_path,
        """
import mmap
from perikope.build import indexing
from perikope.build.indexing import BuildOptions, build
place = folder / "index"
original, maps = indexing._remove, []

def removed(folder, **options):
    # As the frames of an error may hold them.
    for path in folder.glob("segment-*"):
        with open(path, "rb") as file:
            maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    original(folder, **options)

indexing._remove = removed
for workers in (1, 2):
    try:
        build(str(place), [str(folder / "a.jsonl"), str(folder / "b.jsonl")], BuildOptions(workers=workers, memory=1, duplicates="error"))
    except InputError as error:
        assert "given twice" in str(error)
    else:
        raise AssertionError("no error")
held = len(maps)
maps.clear()
indexing._remove = original
build(str(place), [str(folder / "a.jsonl")])
assert held, "nothing was mapped"
assert found(Index.open(place), "pump") == ["same"]
assert leftovers(place) == []
""",
    )


def test_a_writer_keeps_others_out_until_it_ends(tmp_path):
    run(
        tmp_path,
        """
assert locks._windows is sys.modules["msvcrt"]
index = Index.create(folder / "index")
index.add([plain_document("d1", "", "pump")])
try:
    Index.open(folder / "index").add([plain_document("d2", "", "pump")])
except LockedError as error:
    assert "has unfinished changes in this process" in str(error)
else:
    raise AssertionError("no error")
threading.Timer(0.3, index.commit).start()
second = Index.open(folder / "index", wait=20)
second.add([plain_document("d2", "", "pump")])
second.commit()
assert sorted(found(Index.open(folder / "index"), "pump")) == ["d1", "d2"]
holder = subprocess.Popen([sys.executable, "-c", '''
import sys
from pathlib import Path
from tests.support import windows
windows.pretend()
from perikope.core.locks import take_lock
lock = take_lock(Path(sys.argv[1]))
print("taken", flush=True)
sys.stdin.read()
''', str(folder / "index")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert holder.stdout.readline() == "taken\\n"
try:
    locks.take_lock(folder / "index")
except LockedError:
    pass
else:
    raise AssertionError("no error")
holder.kill()
holder.communicate()
with locks.take_lock(folder / "index") as lock:
    assert lock.held
assert (folder / "index" / "write.lock").exists()
""",
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_an_experiment_runs(tmp_path, processes):
    write_collection(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    run(
        tmp_path,
        f"""
out = folder / "out"
command("experiment", folder / "plan.toml", "--out", out, "--workers", {processes})
first = (out / "report.md").read_bytes()
command("experiment", folder / "plan.toml", "--out", out)
assert (out / "report.md").read_bytes() == first
assert not any(files.is_temporary(path.name) for path in out.rglob("*"))
""",
    )
    assert [path.name for path in tmp_path.rglob("*") if FORBIDDEN.search(path.name)] == []


def test_a_worker_ends_with_its_parent_where_linux_sees_to_it(monkeypatch):
    def load(name):
        raise TypeError("there is no library without a name")

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(sys, "platform", "win32")
    workers.die_with_parent()


@pytest.mark.parametrize("name", ["con", "NUL", "aux.2024", "com1", "trailing."])
def test_names_that_windows_refuses_are_refused_everywhere(name):
    assert FORBIDDEN.search(name)
    with pytest.raises(UsageError, match="cannot be the name of a table"):
        check_name(name)
    check_name(f"x{name.rstrip('.')}")
