"""Replacing a file: all of it or nothing, durably, whoever writes the content; and what other systems refuse."""

import errno
import gzip
import os
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from perikope.core import files, reading
from perikope.core.errors import UsageError


@contextmanager
def as_text(path):
    with files.replacing(path) as file:
        yield lambda data: file.write(data.decode())


@contextmanager
def as_bytes(path):
    with files.replacing_binary(path) as file:
        yield file.write


@contextmanager
def by_a_library(path):
    with files.replacing_path(path) as temporary:
        yield temporary.write_bytes


WAYS = pytest.mark.parametrize("way", [as_text, as_bytes, by_a_library])


@pytest.fixture
def steps(monkeypatch):
    """What is done to the disk, in order."""
    done = []
    original_sync, original_replace = os.fsync, os.replace

    def fsync(descriptor):
        done.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        original_sync(descriptor)

    def replace(old, new):
        done.append(("rename", Path(new).name))
        original_replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return done


@WAYS
def test_the_content_is_there_only_at_the_end(tmp_path, way):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with way(path) as write:
        write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@WAYS
@pytest.mark.parametrize("there", [False, True])
def test_a_failure_leaves_what_was_there(tmp_path, way, there):
    path = tmp_path / "file"
    if there:
        path.write_bytes(b"old")

    def fail():
        with way(path) as write:
            write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == [path] * there
    assert not there or path.read_bytes() == b"old"


@WAYS
def test_a_failing_rename_leaves_what_was_there(tmp_path, way, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def replace(old, new):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def fail():
        with way(path) as write:
            write(b"new")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="Input/output error"):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@WAYS
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="names of open files are read from /proc")
def test_the_content_is_synced_before_the_name_and_the_name_at_the_end(tmp_path, way, steps):
    with way(tmp_path / "file") as write:
        write(b"new")
    kinds = [kind for kind, _ in steps]
    assert kinds == ["sync", "rename", "sync"]
    assert files.is_temporary(steps[0][1])
    assert steps[1:] == [("rename", "file"), ("sync", tmp_path.name)]


@WAYS
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path, way):
    (tmp_path / "real").mkdir()
    path, real = tmp_path / "link", tmp_path / "real" / "file"
    path.symlink_to(real)
    for data in (b"made", b"replaced"):
        with way(path) as write:
            write(data)
        assert path.is_symlink()
        assert real.read_bytes() == data
    assert list((tmp_path / "real").iterdir()) == [real]


@pytest.mark.parametrize("way", [as_text, as_bytes])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_written_to(tmp_path, way):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    with way(path) as write:
        write(b"through")
    reader.join()
    assert read == [b"through"]
    assert path.is_fifo()


def test_a_folder_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "folder"
    with files.replacing_path(path) as temporary:
        (temporary / "inside").mkdir(parents=True)
        (temporary / "inside" / "file").write_bytes(b"content")
        assert not path.exists()
    assert (path / "inside" / "file").read_bytes() == b"content"

    def fail():
        with files.replacing_path(tmp_path / "other") as temporary:
            temporary.mkdir()
            (temporary / "file").write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_finished_is_put_in_place(tmp_path):
    made, path = tmp_path / "scratch" / "made", tmp_path / "file"
    made.parent.mkdir()
    made.write_bytes(b"new")
    path.write_bytes(b"old")
    files.put_in_place(made, path)
    assert path.read_bytes() == b"new"
    assert not made.exists()


def test_packed_text_is_the_same_to_the_byte(tmp_path):
    contents = []
    for name in ("a.gz", "b.gz"):
        with files.replacing(tmp_path / name) as file:
            file.write("pump\n")
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert gzip.decompress(contents[0]) == b"pump\n"


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(UsageError, match=r"cannot write .*nowhere/file: No such file"), files.replacing(tmp_path / "nowhere" / "file"):
        pass
    with pytest.raises(UsageError, match="Is a directory"), files.replacing(tmp_path):
        pass


def test_what_a_stopped_program_left_can_be_told_and_removed(tmp_path):
    kept = [tmp_path / name for name in ("file", ".file.part", "file.0a1b2c3d.part", ".hidden")]
    for path in kept:
        path.write_bytes(b"")
    (tmp_path / ".file.0a1b2c3d.part").write_bytes(b"half")
    (tmp_path / ".folder.0a1b2c3d.part").mkdir()
    (tmp_path / ".folder.0a1b2c3d.part" / "file").write_bytes(b"half")
    files.remove_temporaries(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(kept)
    files.remove_temporaries(tmp_path / "nowhere")


class Refusal:
    """Refuses an operation some times, as Windows does while another process has the file open."""

    def __init__(self, original, times: float) -> None:
        self._original, self.left = original, times

    def __call__(self, *arguments):
        if self.left > 0:
            self.left -= 1
            raise PermissionError(errno.EACCES, "Access is denied")
        return self._original(*arguments)


@WAYS
def test_a_file_that_somebody_reads_just_now_is_replaced_a_moment_later(tmp_path, way, monkeypatch):
    monkeypatch.setattr(os, "replace", Refusal(os.replace, 3))
    with way(tmp_path / "file") as write:
        write(b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_file_that_somebody_keeps_open_is_given_up_in_the_end(tmp_path, monkeypatch):
    refusal = Refusal(os.replace, float("inf"))
    pauses = []
    monkeypatch.setattr(os, "replace", refusal)
    monkeypatch.setattr(files.time, "sleep", pauses.append)
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(PermissionError), as_bytes(tmp_path / "file") as write:
        write(b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1
    assert 0.5 < sum(pauses) < 2


def test_a_file_that_is_being_replaced_just_now_is_read_a_moment_later(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"content")
    refusal = Refusal(reading.read_limited, 3)
    monkeypatch.setattr(files, "read_limited", refusal)
    assert files.read(tmp_path / "file") == b"content"
    assert refusal.left == 0


def test_a_file_that_a_reader_holds_stays(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"mapped")
    refusal = Refusal(Path.unlink, 1)
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: refusal(path, missing_ok))
    assert not files.remove_unless_held(tmp_path / "file")
    assert (tmp_path / "file").exists()
    assert files.remove_unless_held(tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(("operation", "code"), [("open", errno.EACCES), ("fsync", errno.EINVAL)])
def test_names_are_durable_as_far_as_the_system_can(tmp_path, monkeypatch, operation, code):
    def refuse(*arguments):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, operation, refuse)
    files.sync_folder(tmp_path)


def test_a_folder_that_cannot_be_synced_for_another_reason_is_told(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        files.sync_folder(tmp_path)
