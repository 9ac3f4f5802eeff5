"""Compiled code is kept where only this user can write, or nowhere: never a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from perikope.kernels import jit
from perikope.text.analysis import word_spans, words
word_spans("a pump")
print(words("a pump"), jit.cache_directory())
"""


def run(program=PROGRAM, **environment):
    clean = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "PERIKOPE_CACHE", "TMPDIR")}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=clean | environment)


def test_the_cache_is_where_it_is_asked_for_and_private(tmp_path):
    done = run(PERIKOPE_CACHE=str(tmp_path))
    folder = Path(done.stdout.split()[-1])
    assert done.stderr == ""
    assert folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o077 == 0
    assert list(folder.rglob("*.nbi"))


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_a_home_that_cannot_be_written_is_no_failure(tmp_path, home):
    done = run(HOME=home, TMPDIR=str(tmp_path))
    assert done.stdout.startswith("['a', 'pump'] " + str(tmp_path))
    assert done.stderr == ""


def test_no_place_at_all_gives_one_warning_and_works():
    program = "import tempfile; tempfile.gettempdir = lambda: '/proc'\n" + PROGRAM
    done = run(program, HOME="/proc/nowhere")
    assert done.stdout == "['a', 'pump'] None\n"
    assert done.stderr.count("no writable cache folder") == 1


def test_a_folder_that_others_can_write_is_not_trusted(tmp_path):
    (tmp_path / "perikope").mkdir()
    (tmp_path / "perikope").chmod(0o777)
    assert str(tmp_path / "perikope") not in run(PERIKOPE_CACHE=str(tmp_path), HOME=str(tmp_path / "home")).stdout


@pytest.mark.parametrize("asked", ["/proc/nowhere", "/dev/null"])
def test_a_note_says_that_the_cache_is_not_where_it_is_asked_for(tmp_path, asked):
    done = run(PERIKOPE_CACHE=asked, HOME=str(tmp_path))
    assert done.stdout.startswith("['a', 'pump'] " + str(tmp_path))
    assert done.stderr.count(f"perikope: PERIKOPE_CACHE={asked} cannot be used") == 1
    assert f"kernels are cached in {tmp_path}" in done.stderr


def test_a_link_is_not_followed_to_somebody_elses_folder(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "perikope").symlink_to(tmp_path / "other")
    assert str(tmp_path / "perikope") not in run(PERIKOPE_CACHE=str(tmp_path), HOME=str(tmp_path / "home")).stdout


def test_two_processes_may_fill_it_at_once(tmp_path):
    environment = os.environ | {"PERIKOPE_CACHE": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    assert [process.communicate()[0].startswith("['a', 'pump']") for process in both] == [True, True]
    assert run(PERIKOPE_CACHE=str(tmp_path)).returncode == 0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_open_index_works_in_a_child_process(tmp_path, method):
    program = f"""
import multiprocessing, threading, warnings
warnings.simplefilter("ignore")
from perikope.search.facade import Index
from perikope.document.tree import TreeBuilder

def look(folder, index=None):
    index = index or Index.open(folder)
    assert [hit.document for hit in index.search("pump")] == ["d1"]

if __name__ == "__main__":
    index = Index.create({str(tmp_path / "index")!r})
    builder = TreeBuilder("d1"); builder.passage("pump"); index.add(builder.build()); index.commit()
    look(None, index)  # no Python program may fork while another thread imports a module for the first time
    threads = [threading.Thread(target=lambda: [look(None, index) for _ in range(50)]) for _ in range(4)]
    for thread in threads: thread.start()
    context = multiprocessing.get_context({method!r})
    arguments = (str(index.folder), index) if {method!r} == "fork" else (str(index.folder),)
    children = [context.Process(target=look, args=arguments) for _ in range(3)]
    for child in children: child.start()
    for child in children: child.join(60)
    print([child.exitcode for child in children])
    for thread in threads: thread.join()
"""
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, check=False)
    assert done.stdout == "[0, 0, 0]\n", done.stderr


@pytest.mark.parametrize("harm", ["writable", "link"])
def test_the_folder_that_numba_writes_to_is_checked_too(tmp_path, harm):
    first = Path(run(PERIKOPE_CACHE=str(tmp_path), HOME=str(tmp_path / "home")).stdout.split()[-1])
    (written,) = {path.parent for path in first.rglob("*.nbi")}
    assert written != first
    if harm == "writable":
        written.chmod(0o777)
    else:
        written.rename(tmp_path / "elsewhere")
        written.symlink_to(tmp_path / "elsewhere")
    second = Path(run(PERIKOPE_CACHE=str(tmp_path), HOME=str(tmp_path / "home")).stdout.split()[-1])
    assert second.is_relative_to(tmp_path / "home")


def test_a_process_without_a_umask_keeps_its_cache_private(tmp_path):
    program = "import os; os.umask(0)\n" + PROGRAM
    for _ in range(2):
        folder = Path(run(program, PERIKOPE_CACHE=str(tmp_path)).stdout.split()[-1])
        assert folder.is_relative_to(tmp_path)
        assert [path for path in (folder, *folder.rglob("*")) if path.is_dir() and path.stat().st_mode & 0o022] == []


SUM = """
from perikope.kernels.passages import sum_documents
import numpy as np
print(sum_documents(np.array([1.0, 2.0]), np.array([0, 2])))
"""


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("kept", [0, 40])
def test_damaged_kernels_are_compiled_again(tmp_path, suffix, kept):
    assert run(SUM, PERIKOPE_CACHE=tmp_path).stdout == "[3.]\n"
    files = [path for path in tmp_path.rglob(f"*{suffix}") if "sum_documents" in path.name]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:kept])
    assert run(SUM, PERIKOPE_CACHE=tmp_path).stdout == "[3.]\n"
    assert all(path.stat().st_size > kept for path in files)


def test_a_full_disk_keeps_no_kernel_from_running(tmp_path):
    program = (
        """
import os
from numba.core import caching

def full(self, name, data):
    raise OSError(28, "No space left on device")

caching.IndexDataCacheFile._save_data = full
"""
        + SUM
    )
    assert run(program, PERIKOPE_CACHE=tmp_path).stdout == "[3.]\n"


READ_ONLY = """
import builtins, errno, os, tempfile
def refuse(*arguments, **more):
    raise OSError(errno.EROFS, "Read-only file system")
tempfile.TemporaryFile = refuse
reading, allowed = open, os.access
builtins.open = lambda path, mode="r", *more, **named: reading(path, mode, *more, **named) if "w" not in mode else refuse()
os.access = lambda path, mode, **more: allowed(path, mode, **more) and not mode & os.W_OK
from perikope.core import compilation
class Watcher:
    began = lambda self: print("compiled")
    ended = lambda self: None
compilation.watcher = Watcher()
"""


def test_kernels_that_cannot_be_changed_are_used(tmp_path):
    run(PERIKOPE_CACHE=str(tmp_path))
    elsewhere = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    done = run(READ_ONLY + PROGRAM, PERIKOPE_CACHE=str(tmp_path), **elsewhere)
    assert done.stderr == ""
    assert done.stdout.startswith("['a', 'pump'] " + str(tmp_path / "perikope"))


def test_an_empty_folder_that_cannot_be_written_is_not_used(tmp_path):
    (tmp_path / "perikope").mkdir(mode=0o700)
    done = run(READ_ONLY + PROGRAM, PERIKOPE_CACHE=str(tmp_path), HOME="/proc/nowhere", TMPDIR="/proc/nowhere")
    assert str(tmp_path) not in done.stdout
