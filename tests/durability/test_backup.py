"""Backups: beside a writer, incremental, killed at any step, on a full disk; and what they refuse."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from perikope.core import files
from perikope.core.errors import IndexFormatError, PerikopeError, UsageError
from perikope.core.locks import take_lock
from perikope.index import backup as backups
from perikope.index.backup import make_backup
from perikope.index.backup_record import RECORD, read_record
from perikope.index.saved_tables import delete_table, write_table
from perikope.search.facade import Index
from perikope.search.own_default import own_default, save_own_default
from tests.cli.test_commands import fails, run
from tests.durability.attachments import (
    STORE,
    look,
    make_attachments,
    make_store,
    problems,
    small_attachments,
    store_is_at,
    table_commit,
    unknown_files,
)
from tests.durability.faulty_disk import FAULTS, FaultyDisk
from tests.durability.history import answers, commit_of, make_commit, verify
from tests.durability.test_kill import KILLS, SEED, allowed, start

BEFORE, AFTER = 3, 6
"""The commits of the earlier backup and of the index. Commit 5 merges all segments."""
BACKUPS = KILLS // 2
STEPS = range(SEED % 9, 10_000, 9) if KILLS < 100 else range(10_000)
"""The operations at which a backup is killed or fails: each of them with `make soak`, else every ninth."""


@pytest.fixture
def index(tmp_path):
    """An index with a store of vectors and a table."""
    small_attachments(tmp_path / "idx")
    return Index.open(tmp_path / "idx")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder with an index at the commit AFTER, and a backup of it at the commit BEFORE."""
    folder = tmp_path_factory.mktemp("original")
    small_attachments(folder / "idx")
    write_table(folder / "idx", "old", "tags", {"tags": {"b": 1.0}})
    make_backup(folder / "idx", folder / "backup")
    change(Index.open(folder / "idx"))
    return folder


def change(index: Index) -> None:
    for commit in range(BEFORE + 1, AFTER + 1):
        make_commit(index, commit)
    make_attachments(index, AFTER)
    delete_table(index.folder, "old")


def copy_of(original: Path, folder: Path) -> tuple[Path, Path]:
    """A copy of the index and of its backup, which names the copy."""
    shutil.copytree(original, folder)
    record = read_record(folder / "backup")
    backups.write_record(folder / "backup", backups.BackupRecord(str((folder / "idx").resolve()), record.files, record.before))
    return folder / "idx", folder / "backup"


def files_of(folder: Path) -> dict[str, bytes]:
    kept = (path for path in folder.rglob("*") if path.is_file() and path.name not in (RECORD, "write.lock"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in kept}


def is_at(backup: Path, commit: int) -> bool:
    return commit_of(Index.open(backup)) == commit and store_is_at(backup, commit) and table_commit(backup) == commit


def test_a_backup_is_an_index_like_any_other(index, tmp_path):
    save_own_default(index.folder, "bm25", {"why": "a test"})
    report = make_backup(index.folder, tmp_path / "new" / "backup")
    backup = Path(report.folder)
    assert files_of(backup) == files_of(index.folder)
    assert (report.documents, report.fingerprint) == (len(index), index.fingerprint)
    assert (report.copied, report.kept, report.removed) == (len(files_of(backup)), 0, 0)
    assert report.copied_bytes == sum(map(len, files_of(backup).values()))
    assert (problems(backup), unknown_files(backup)) == ([], ())
    assert look(backup) == look(index.folder)
    assert answers(Index.open(backup)) == answers(index)
    assert own_default(backup) == own_default(index.folder) is not None
    assert os.listdir(backup.parent) == ["backup"]
    # A restored index can be changed.
    restored = Path(shutil.copytree(backup, tmp_path / "restored"))
    make_commit(Index.open(restored), BEFORE + 1)
    assert verify(Index.open(restored)) == BEFORE + 1


def test_files_are_copied_and_not_linked_unless_asked(index, tmp_path):
    for name, link in (("copy", False), ("link", True)):
        make_backup(index.folder, tmp_path / name, link=link)
        segments = [path for path in (tmp_path / name).iterdir() if path.name.startswith("segment-")]
        assert segments
        for path in segments:
            assert path.samefile(index.folder / path.name) == link
        assert not (tmp_path / name / "manifest.json").samefile(index.folder / "manifest.json")
    before = look(tmp_path / "link")
    index.add({"id": "new", "passages": ["pump"]})
    index.compact()
    make_attachments(index, BEFORE + 1)
    assert look(tmp_path / "link") == look(tmp_path / "copy") == before


def test_a_second_backup_copies_only_what_is_new(tmp_path, original):
    index, backup = copy_of(original, tmp_path / "f")
    before, inodes = files_of(backup), {path: path.stat().st_ino for path in backup.rglob("*") if path.is_file()}
    report = make_backup(index, backup)
    after = files_of(backup)
    assert after == files_of(index)
    assert report.copied == sum(before.get(name) != data for name, data in after.items())
    assert report.kept == sum(before.get(name) == data for name, data in after.items()) > 0
    assert report.removed == len(set(before) - set(after)) > 0
    for name in set(before) & set(after):
        assert before[name] != after[name] or (backup / name).stat().st_ino == inodes[backup / name], name
    assert is_at(backup, AFTER)
    assert (problems(backup), unknown_files(backup)) == ([], ())
    again = make_backup(index, backup)
    assert (again.copied, again.kept, again.removed) == (0, len(after), 0)


def test_a_removed_store_is_removed_from_the_backup(tmp_path, original):
    index, backup = copy_of(original, tmp_path / "f")
    shutil.rmtree(index / "neural")
    make_backup(index, backup)
    assert files_of(backup) == files_of(index)
    assert unknown_files(backup) == ()
    assert not (backup / "neural" / STORE).exists()


def test_a_reader_of_the_backup_keeps_what_it_has_opened(tmp_path, original):
    index, backup = copy_of(original, tmp_path / "f")
    reader = Index.open(backup)
    expected = answers(Index.open(shutil.copytree(backup, tmp_path / "old")))
    make_backup(index, backup)
    assert answers(reader) == expected
    reader.refresh()
    assert verify(reader) == AFTER


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_each_backup_beside_a_writer_is_one_commit(tmp_path):
    folder, log = tmp_path / "idx", tmp_path / "log"
    index = Index.create(folder)
    make_commit(index, 1)
    make_attachments(index, 1)
    log.write_text("end 1\n")
    writer = start("write-attachments", folder, log)
    seen = set()
    try:
        writer.stdin.write("go\n")
        writer.stdin.flush()
        child = int(writer.stdout.readline())
        for number in range(BACKUPS):
            begun = max(allowed(log)) - 1
            for backup in (tmp_path / "same", tmp_path / f"new-{number}"):
                make_backup(folder, backup)
                commit = verify(Index.open(backup))
                assert commit >= begun
                assert any(store_is_at(backup, other) for other in range(begun, max(allowed(log)) + 1))
                assert table_commit(backup) >= begun
                assert (problems(backup), unknown_files(backup)) == ([], ())
                seen.add(commit)
        assert writer.poll() is None
    finally:
        os.kill(child, 9)
        writer.kill()
        writer.communicate()
    assert len(seen) > 1 or BACKUPS < 10, "the writer has not written"
    assert {path.name for path in tmp_path.iterdir()} == {"idx", "log", "same", *(f"new-{number}" for number in range(BACKUPS))}


def test_a_commit_and_a_merge_while_files_are_copied_change_nothing(index, tmp_path, monkeypatch):
    copy = files.copy

    def slow(source, target, check):
        if not target.name.startswith("segment-") or (tmp_path / "changed").exists():
            return copy(source, target, check)
        (tmp_path / "changed").touch()
        before = {path.name for path in index.folder.glob("segment-*")}
        make_commit(index, BEFORE + 1)
        index.compact()
        assert not before & {path.name for path in index.folder.glob("segment-*")}
        return copy(source, target, check)

    monkeypatch.setattr(files, "copy", slow)
    make_backup(index.folder, tmp_path / "backup")
    assert verify(Index.open(tmp_path / "backup")) == BEFORE
    assert problems(tmp_path / "backup") == []


def test_a_store_that_is_updated_while_it_is_copied_is_that_of_the_commit(index, tmp_path, monkeypatch):
    copy, updates = files.copy, iter([BEFORE + 1, BEFORE + 2])

    def slow(source, target, check):
        for commit in updates:  # the second update removes the files of the first state
            make_commit(index, commit)
            make_store(index.snapshot)
        return copy(source, target, check)

    monkeypatch.setattr(files, "copy", slow)
    make_backup(index.folder, tmp_path / "backup")
    assert store_is_at(index.folder, BEFORE + 2)
    assert is_at(tmp_path / "backup", BEFORE)
    assert (problems(tmp_path / "backup"), unknown_files(tmp_path / "backup")) == ([], ())


@pytest.mark.parametrize("changes", [1, 5])
def test_stores_and_tables_that_change_while_they_are_read_are_read_again(index, tmp_path, monkeypatch, changes):
    """Between the manifest and the files that it names, a writer replaces both."""
    read, commits = backups._content, iter(range(BEFORE + 1, BEFORE + 1 + 2 * changes))

    def slow(path):
        data = read(path)
        if path.name == "store.json" or path.parent.name == "tables":
            for commit in itertools.islice(commits, 2):
                make_commit(index, commit)
                make_attachments(index, commit)
        return data

    monkeypatch.setattr(backups, "_content", slow)
    make_backup(index.folder, tmp_path / "backup")
    assert next(commits, None) is None
    assert store_is_at(tmp_path / "backup", commit_of(index))
    assert table_commit(tmp_path / "backup") == commit_of(index)
    assert (problems(tmp_path / "backup"), unknown_files(tmp_path / "backup")) == ([], ())


def test_a_store_that_never_stays_the_same_is_an_error(index, tmp_path, monkeypatch):
    def changed(state, name, stack):
        raise backups._ChangedError

    monkeypatch.setattr(backups, "_add_store", changed)
    with pytest.raises(UsageError, match="changes faster than it can be read"):
        make_backup(index.folder, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_several_backups_in_a_row_may_be_stopped(tmp_path, original, monkeypatch):
    """The states that stopped backups have planned do not hide the state that the backup has."""
    index, backup = copy_of(original, tmp_path / "f")

    def stop(source, target, check):
        raise KeyboardInterrupt

    for commit in range(AFTER + 1, AFTER + 4):
        opened = Index.open(index)
        make_commit(opened, commit)
        make_attachments(opened, commit)
        with monkeypatch.context() as patch:
            patch.setattr(files, "copy", stop)
            with pytest.raises(KeyboardInterrupt):
                make_backup(index, backup)
        assert is_at(backup, BEFORE)
    make_backup(index, backup)
    assert files_of(backup) == files_of(index)
    assert unknown_files(backup) == ()


class KillingDisk(FaultyDisk):
    """Ends the process at one operation, as SIGKILL does."""

    def step(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) - 1 == self.fail_at:
            os._exit(9)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_a_backup_may_be_killed_at_any_step(tmp_path, original, monkeypatch, first):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # costs time, and no power is lost here
    disk = KillingDisk(monkeypatch)
    for number in STEPS:
        index, backup = copy_of(original, tmp_path / "f")
        if first:
            shutil.rmtree(backup)
        child = os.fork()
        if not child:
            code = 1
            try:
                disk.arm(number, 0)
                make_backup(index, backup)
                code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9), number
        if first:
            assert not backup.exists() or is_at(backup, AFTER), number
        else:
            assert commit_of(Index.open(backup)) in (BEFORE, AFTER), number
            assert store_is_at(backup, BEFORE) or store_is_at(backup, AFTER), number
            assert table_commit(backup) in (BEFORE, AFTER), number
        if backup.exists():
            verify(Index.open(backup))
            assert problems(backup) == [], number
        make_backup(index, backup)
        assert files_of(backup) == files_of(index), number
        assert unknown_files(backup) == (), number
        assert sorted(os.listdir(tmp_path / "f")) == ["backup", "idx"], number
        shutil.rmtree(tmp_path / "f")
        if code == 0:
            break
    assert number > 20


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
@pytest.mark.parametrize("fault", FAULTS)
def test_any_operation_may_fail(tmp_path, original, monkeypatch, fault, first):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    disk = FaultyDisk(monkeypatch)
    for number in STEPS:
        index, backup = copy_of(original, tmp_path / "f")
        if first:
            shutil.rmtree(backup)
        disk.arm(number, **FAULTS[fault])
        error = None
        try:
            make_backup(index, backup)
        except PerikopeError as raised:
            error = raised.with_traceback(None)
        finally:
            disk.mend()
        where = f"operation {number}: {disk.failed}, {error!r}"
        assert error is not None or not disk.failed or set(disk.failed) <= {"remove", "sync_folder", "rename"}, where
        if not first:
            assert commit_of(Index.open(backup)) in (BEFORE, AFTER), where
            assert problems(backup) == [], where
        elif backup.exists():
            assert is_at(backup, AFTER), where
        make_backup(index, backup)
        assert files_of(backup) == files_of(index), where
        assert unknown_files(backup) == (), where
        assert sorted(os.listdir(tmp_path / "f")) == ["backup", "idx"], where
        shutil.rmtree(tmp_path / "f")
        if not disk.failed:
            break
    assert number > 20


def test_everything_is_durable_before_the_manifest_names_it(tmp_path, original, monkeypatch):
    """When a manifest is renamed, every new file that it names was synced, and so was every folder with its name."""
    index, backup = copy_of(original, tmp_path / "f")
    before = {path.stat().st_ino for path in backup.rglob("*")}
    synced: set[int] = set()
    named = []

    def fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)

    def rename(old: Path, new: Path, original=files.rename) -> None:
        if new.name in ("manifest.json", "store.json"):
            assert os.stat(old).st_ino in synced, new.name
            content = json.loads(old.read_bytes())
            for name in content["hashes"] if new.name == "store.json" else [entry["file"] for entry in content["segments"]]:
                path = new.parent / name
                assert {path.stat().st_ino, path.parent.stat().st_ino} <= synced | before, name
            named.append(new.name)
        original(old, new)
        synced.discard(new.parent.stat().st_ino)  # its names have changed since
        before.discard(new.parent.stat().st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(files, "rename", rename)
    make_backup(index, backup)
    assert named == ["manifest.json", "store.json"]


@pytest.mark.parametrize("name", ["segment", "batch", "table", "store.json"])
def test_a_damaged_index_does_not_harm_the_backup_before(tmp_path, original, name):
    index, backup = copy_of(original, tmp_path / "f")
    paths = {
        "segment": next(index.glob("segment-*")),
        "batch": max((index / "neural" / STORE).glob("batch-*/*.npy"), key=lambda path: (path.stat().st_mtime_ns, path.stat().st_size)),
        "table": next((index / "tables").glob("*.txt")),
        "store.json": index / "neural" / STORE / "store.json",
    }
    data = bytearray(paths[name].read_bytes())
    data[len(data) // 2] ^= 1
    paths[name].write_bytes(data)
    with pytest.raises(IndexFormatError, match=r"damaged.*the backup is as it was before"):
        make_backup(index, backup)
    assert is_at(backup, BEFORE)
    assert problems(backup) == []
    with pytest.raises(IndexFormatError):
        make_backup(index, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_missing_file_is_named(tmp_path, original):
    index, backup = copy_of(original, tmp_path / "f")
    batch = next((index / "neural" / STORE).glob("batch-*/*.npy"))
    batch.unlink()
    with pytest.raises(IndexFormatError, match=f"{batch.name} is missing"):
        make_backup(index, tmp_path / "new")
    next(index.glob("segment-*")).unlink()
    with pytest.raises(IndexFormatError, match=r"segment-.* is missing"):
        make_backup(index, backup)
    assert is_at(backup, BEFORE)


def _changed_index(index: Path, backup: Path) -> None:
    opened = Index.open(backup)
    opened.add({"id": "mine", "passages": ["pump"]})
    opened.commit()


def _changed_table(index: Path, backup: Path) -> None:
    write_table(backup, "mine", "tags", {"tags": {"b": 2.0}})


def _table_of_the_same_name(index: Path, backup: Path) -> None:
    for folder, weight in ((index, 1.0), (backup, 2.0)):
        write_table(folder, "other", "tags", {"tags": {"b": weight}})


def _lost_record(index: Path, backup: Path) -> None:
    (backup / RECORD).unlink()


def _damaged_record(index: Path, backup: Path) -> None:
    (backup / RECORD).write_text((backup / RECORD).read_text().replace("manifest.json", "manifest.jsom"))


def _escaping_record(index: Path, backup: Path) -> None:
    record = read_record(backup)
    backups.write_record(backup, backups.BackupRecord(record.of, {**record.files, "../idx/manifest.json": None}))


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (_changed_index, r"manifest\.json was changed after the backup"),
        (_changed_table, r"mine\.json was changed after the backup"),
        (_table_of_the_same_name, r"other\.json does not belong to the backup and would be overwritten"),
        (_lost_record, "is neither empty nor a backup"),
        (_damaged_record, r"backup\.json is damaged"),
        (_escaping_record, r"backup\.json is damaged"),
    ],
)
def test_only_an_older_backup_is_overwritten(tmp_path, original, harm, complaint):
    index, backup = copy_of(original, tmp_path / "f")
    harm(index, backup)
    before = files_of(backup)
    with pytest.raises(UsageError, match=complaint):
        make_backup(index, backup)
    assert files_of(backup) == before


def test_other_folders_are_refused_and_left_alone(index, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    other = Index.create(tmp_path / "other")
    make_backup(other.folder, tmp_path / "backup")
    for folder, complaint in (
        (mine, "is neither empty nor a backup"),
        (other.folder, "is neither empty nor a backup"),
        (mine / "letter.txt", "is not a folder"),
        (tmp_path / "backup", r"is a backup of .*other, not of .*idx"),
        (index.folder, "must be neither the index"),
        (index.folder / "inside", "nor inside it"),
        (tmp_path, "nor contain it"),
    ):
        before = files_of(tmp_path)
        with pytest.raises(UsageError, match=complaint):
            make_backup(index.folder, folder)
        assert files_of(tmp_path) == before
    assert sorted(os.listdir(mine)) == ["letter.txt"]


def test_files_of_others_in_a_backup_stay(tmp_path, original):
    index, backup = copy_of(original, tmp_path / "f")
    (backup / "notes.txt").write_text("mine")
    write_table(backup, "added", "tags", {"tags": {"b": 1.0}})
    make_backup(index, backup)
    assert (backup / "notes.txt").read_text() == "mine"
    assert (backup / "tables" / "added.json").exists()
    assert verify(Index.open(backup)) == AFTER


def test_a_backup_into_an_empty_folder_and_of_an_empty_index(tmp_path):
    (tmp_path / "backup").mkdir()
    Index.create(tmp_path / "idx")
    report = make_backup(tmp_path / "idx", tmp_path / "backup")
    assert (report.documents, report.copied) == (0, 1)
    assert len(Index.open(tmp_path / "backup")) == 0


def test_two_backups_do_not_disturb_each_other(tmp_path, original, index):
    folder = tmp_path / ".new.0123abcd.part"
    folder.mkdir()
    (folder / RECORD).write_text("{}")
    with take_lock(folder):
        make_backup(index.folder, tmp_path / "new")
        assert folder.exists(), "a backup that is still running"
    shutil.rmtree(tmp_path / "new")
    make_backup(index.folder, tmp_path / "new")
    assert not folder.exists()
    with take_lock(tmp_path / "new"), pytest.raises(PerikopeError, match="has unfinished changes in this process"):
        make_backup(index.folder, tmp_path / "new")


def test_a_system_that_cannot_copy_by_itself(index, tmp_path, monkeypatch):
    monkeypatch.setattr(backups.files, "_PIECE", 1000)
    if hasattr(os, "copy_file_range"):
        monkeypatch.delattr(os, "copy_file_range")
    make_backup(index.folder, tmp_path / "one")
    assert files_of(tmp_path / "one") == files_of(index.folder)

    calls = itertools.count()

    def partly(source, target, count, offset):
        if next(calls) % 2:
            raise OSError(18, "Invalid cross-device link")
        return os.write(target, os.pread(source, 700, offset))

    monkeypatch.setattr(os, "copy_file_range", partly, raising=False)
    make_backup(index.folder, tmp_path / "two")
    assert files_of(tmp_path / "two") == files_of(index.folder)


def test_command_prints_one_line(index, tmp_path, capsys):
    code, out, err = run(capsys, "backup", index.folder, tmp_path / "backup")
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert f"backup: {len(index)} documents; " in out
    printed = json.loads(run(capsys, "backup", index.folder, tmp_path / "backup", "--json")[1])
    assert (printed["copied"], printed["documents"]) == (0, len(index))
    assert run(capsys, "search", tmp_path / "backup", "pump")[0] == 0
    assert run(capsys, "check", tmp_path / "backup")[0] == 0
    fails(capsys, "must be neither the index", "backup", index.folder, index.folder)
    fails(capsys, "is not an index", "backup", tmp_path / "nothing", tmp_path / "b")
    assert not (tmp_path / "b").exists()
