"""The lock of a folder: one holder, gone with it, and not the business of its children."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from perikope.core import locks
from perikope.core.errors import IndexFormatError, LockedError
from perikope.core.locks import LOCK_FILE, take_lock


def is_free(folder) -> bool:
    try:
        take_lock(folder).release()
    except LockedError:
        return False
    return True


def test_one_has_it_until_it_is_released(tmp_path):
    with take_lock(tmp_path) as lock:
        assert lock.held
        with pytest.raises(LockedError, match="has unfinished changes in this process: finish them first"):
            take_lock(tmp_path)
    assert not lock.held
    lock.release()
    assert is_free(tmp_path)
    assert (tmp_path / LOCK_FILE).exists()


def test_who_waits_gets_it(tmp_path):
    lock = take_lock(tmp_path)
    threading.Timer(0.2, lock.release).start()
    with take_lock(tmp_path, 20) as second:
        assert second.held


def test_who_waits_too_long_is_told(tmp_path):
    with take_lock(tmp_path), pytest.raises(LockedError):
        take_lock(tmp_path, 0.1)


def test_a_dead_holder_is_not_in_the_way(tmp_path):
    program = "import sys; from pathlib import Path; from perikope.core.locks import take_lock; lock = take_lock(Path(sys.argv[1]))"
    program += "; print('taken', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "taken\n"
        with pytest.raises(LockedError, match=r"is being written by another process: .* or wait for it \(--wait SECONDS\)"):
            take_lock(tmp_path)
        with pytest.raises(LockedError, match=r"when that process has finished$"):
            take_lock(tmp_path, advice="")
        holder.kill()
        holder.wait()
        assert is_free(tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_neither_keeps_nor_loses_it(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_unlock", lambda descriptor: None)  # as the end of a process, which only closes its files
    lock = take_lock(tmp_path)
    ready, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        lock.release()
        wrong = lock.held or is_free(tmp_path)
        os.write(ready[1], b"1" if wrong else b"0")
        os.read(go_on[0], 1)  # still there when the parent has released it
        os._exit(0)
    try:
        assert os.read(ready[0], 1) == b"0"
        assert lock.held
        assert not is_free(tmp_path)
        lock.release()
        assert is_free(tmp_path)
    finally:
        os.write(go_on[1], b"1")
        os.waitpid(child, 0)
        for descriptor in (*ready, *go_on):
            os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_does_not_close_a_file_that_has_the_number_of_its_parents_lock(tmp_path):
    (tmp_path / "theirs").mkdir()
    lock = take_lock(tmp_path)
    child = os.fork()
    if child == 0:
        own = take_lock(tmp_path / "theirs")
        same = own._descriptor == lock._descriptor
        lock.release()
        os._exit(0 if same and own.held and not is_free(tmp_path / "theirs") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    lock.release()


def test_a_program_that_is_started_does_not_keep_it(tmp_path):
    lock = take_lock(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False) as program:
        lock.release()
        assert is_free(tmp_path)
        program.communicate(b"")


def test_a_folder_that_cannot_be_written_or_locked_is_told(tmp_path, monkeypatch):
    with pytest.raises(IndexFormatError, match=r"cannot write to .*nowhere: No such file"):
        take_lock(tmp_path / "nowhere")

    def refuse(descriptor):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks, "_lock", refuse)
    with pytest.raises(IndexFormatError, match=r"cannot lock .*: No locks available; use a file system that supports locks") as raised:
        take_lock(tmp_path, 20)
    assert not isinstance(raised.value, LockedError)
