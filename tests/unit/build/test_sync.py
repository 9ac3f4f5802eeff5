"""A sync removes documents only if their files are gone: what cannot be read, listed or opened just now is kept."""

import errno
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from perikope.build.indexing import BuildOptions, BuildReport, build
from perikope.core.errors import InputError, UsageError
from perikope.formats import _source
from perikope.search.facade import Index

NAMES = ("a.md", "sub/b.md", "sub/deep/c.md", "sub2/d.md", "z.md")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The pump of {name}.\n")
    sync(tmp_path / "docs")
    return tmp_path / "docs"


def sync(*paths: Path | str, workers: int = 1, format: str = "auto") -> BuildReport:
    """Sync the index beside the first folder that is a `Path`."""
    beside = next(path.parent for path in paths if isinstance(path, Path))
    return build(str(beside / "index"), [str(path) for path in paths], BuildOptions(sync=True, workers=workers, format=format))


def known(docs: Path) -> set[str]:
    return {hit.document for hit in Index.open(docs.parent / "index").search("pump", k=1000)}


def fail_on(monkeypatch: pytest.MonkeyPatch, function: str, folder: Path, code: int) -> None:
    """Make a function of `os` fail with an error of the system for one path."""
    real = getattr(os, function)

    def failing(path, *arguments, **keywords):
        if str(path).rstrip("/") == str(folder):
            raise OSError(code, os.strerror(code), path)
        return real(path, *arguments, **keywords)

    monkeypatch.setattr(os, function, failing)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENAMETOOLONG, errno.EMFILE])
def test_documents_of_a_folder_that_cannot_be_listed_stay(docs, monkeypatch, code, workers):
    fail_on(monkeypatch, "scandir", docs / "sub", code)
    (docs / "z.md").unlink()
    report = sync(docs, workers=workers)
    # The folder `sub2` begins with the same letters and was listed; `z.md` is gone for sure.
    assert (report.removed, report.unchanged) == (1, 4)
    assert known(docs) == set(NAMES) - {"z.md"}
    assert [(str(problem.path), os.strerror(code) in problem.reason) for problem in report.skipped] == [(str(docs / "sub"), True)]


def test_a_folder_whose_listing_ends_with_an_error_counts_as_unlisted(docs, monkeypatch):
    real = os.scandir

    class Breaking:
        def __init__(self, path):
            self.entries = real(path)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.entries.close()

        def __iter__(self):
            yield next(self.entries)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "scandir", lambda path: Breaking(path) if str(path) == str(docs / "sub") else real(path))
    assert (sync(docs).removed, known(docs)) == (0, set(NAMES))


def test_documents_below_the_longest_path_of_the_system_stay(docs, monkeypatch):
    monkeypatch.chdir(docs.parent)
    # The path of `docs/sub` is just short enough to be listed, and that of `docs/sub/deep` is not.
    root = "./" * ((os.pathconf("/", "PC_PATH_MAX") - len("docs/sub/deep")) // 2 + 1) + "docs"
    report = build("index", [root], BuildOptions(sync=True))
    assert report.removed == 0
    assert known(docs) == set(NAMES)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_a_folder_that_cannot_be_listed_at_all_says_why(docs, monkeypatch, code):
    fail_on(monkeypatch, "scandir", docs, code)
    with pytest.raises(InputError) as refused:
        sync(docs)
    assert str(refused.value) == f"{docs}: cannot be read ({os.strerror(code)}); check the file and its permissions"
    assert known(docs) == set(NAMES)


def test_a_folder_that_cannot_be_reached_is_not_called_missing(docs, monkeypatch):
    fail_on(monkeypatch, "stat", docs, errno.EACCES)
    with pytest.raises(InputError, match="Permission denied"):
        sync(docs)


def test_a_folder_with_nothing_but_an_unlisted_folder_says_why(tmp_path, monkeypatch):
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    fail_on(monkeypatch, "scandir", tmp_path / "docs" / "sub", errno.EACCES)
    with pytest.raises(InputError, match=r"sub: cannot be read \(Permission denied\)"):
        sync(tmp_path / "docs")


def test_of_two_folders_one_may_be_unlisted_in_part(docs, monkeypatch):
    other = docs.parent / "other"
    (other / "sub").mkdir(parents=True)
    (other / "sub" / "e.md").write_text("The pump.")
    (other / "f.md").write_text("The pump.")
    sync(docs, other)
    fail_on(monkeypatch, "scandir", other / "sub", errno.EIO)
    (other / "f.md").unlink()
    (docs / "a.md").unlink()
    with pytest.raises(InputError, match="Input/output error"):
        sync(docs, other)  # nothing of a known format is left in `other`, as far as it could be listed
    (other / "g.md").write_text("The pump.")
    assert sync(docs, other).removed == 2
    assert "sub/e.md" in known(docs)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_vanishes_after_it_was_listed_stays_until_the_next_sync(docs, monkeypatch, workers):
    real = _source.file_hash

    def vanishing(path):
        if path.endswith("b.md"):
            Path(path).unlink(missing_ok=True)
        return real(path)

    monkeypatch.setattr("perikope.formats.file_hash", vanishing)
    assert (sync(docs, workers=workers).removed, known(docs)) == (0, set(NAMES))
    assert (sync(docs, workers=workers).removed, known(docs)) == (1, set(NAMES) - {"sub/b.md"})


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_documents_of_a_link_whose_target_cannot_be_reached_stay(docs, monkeypatch, code):
    (docs / "a.md").rename(docs / "target")
    (docs / "a.md").symlink_to("target")
    assert sync(docs).removed == 0
    for function in ("stat", "lstat"):
        fail_on(monkeypatch, function, docs / "target", code)
    fail_on(monkeypatch, "stat", docs / "a.md", code)
    report = sync(docs)
    assert (report.removed, known(docs)) == (0, set(NAMES))
    assert os.strerror(code) in report.skipped[0].reason


def test_a_file_of_another_format_that_cannot_be_reached_stays(docs, monkeypatch):
    (docs / "LICENSE").write_text("The pump.")
    sync(docs, format="text")
    (docs / "LICENSE").rename(docs.parent / "LICENSE")
    (docs / "LICENSE").symlink_to(docs / "nowhere")
    sync(docs)
    assert "LICENSE" in known(docs)


def test_documents_of_a_folder_that_became_a_dangling_link_stay(docs):
    shutil.rmtree(docs / "sub")
    (docs / "sub").symlink_to(docs.parent / "not-mounted")
    assert (sync(docs).removed, known(docs)) == (0, set(NAMES))


def packed(path: Path, names: tuple[str, ...]) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, f"The pump of {name}, again and again.")
        return
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            data = f"The pump of {name}.".encode()
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["sub/x.zip", "sub/x.tar.gz"])
def test_documents_of_an_archive_that_cannot_be_read_to_its_end_stay(docs, name, workers):
    packed(docs / name, ("1.md", "2.md", "3.md"))
    sync(docs, workers=workers)
    members = {f"{name}/{number}.md" for number in (1, 2, 3)}
    whole = (docs / name).read_bytes()
    for kept in (len(whole) - 30, len(whole) // 2, 0):
        (docs / name).write_bytes(whole[:kept])
        report = sync(docs, workers=workers)
        assert (report.removed, len(report.skipped)) == (0, 1)
        assert known(docs) == {*NAMES, *members}
    packed(docs / name, ("1.md", "3.md"))
    assert sync(docs, workers=workers).removed == 1
    assert known(docs) == {*NAMES, *members} - {f"{name}/2.md"}


def zeroed(path: Path, first: int, end: int) -> None:
    """Blank some blocks of a tar, as a power failure may leave them."""
    data = bytearray(path.read_bytes())
    data[first * 512 : end * 512] = bytes(min(end * 512, len(data)) - first * 512)
    path.write_bytes(data)


@pytest.mark.parametrize(("first", "end"), [(3, 4), (0, 1), (3, 10**6), (0, 10**6)], ids=["a header", "the first", "the rest", "all"])
def test_documents_of_a_tar_with_blocks_of_zeros_stay(docs, first, end):
    members = {f"m{number}.md": f"The pump of member {number}. {'More words. ' * 60}" for number in range(12)}
    with tarfile.open(docs / "x.tar", "w") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    assert not sync(docs).skipped
    before = known(docs)
    assert len(before) == len(NAMES) + len(members)
    zeroed(docs / "x.tar", first, end)
    report = sync(docs)
    assert [problem.path for problem in report.skipped] == [str(docs / "x.tar")]
    assert known(docs) == before


def test_the_checksum_of_a_packed_tar_is_verified(docs):
    packed(docs / "x.tar.gz", ("m1.md", "m2.md"))
    sync(docs)
    before = known(docs)
    data = bytearray((docs / "x.tar.gz").read_bytes())
    data[-6] ^= 0xFF  # in the checksum at the end
    (docs / "x.tar.gz").write_bytes(data)
    report = sync(docs)
    assert [problem.path for problem in report.skipped] == [str(docs / "x.tar.gz")]
    assert known(docs) == before


def test_documents_of_a_folder_that_became_a_link_to_elsewhere_stay(docs):
    (docs / "sub").rename(docs.parent / "elsewhere")
    (docs / "sub").symlink_to(docs.parent / "elsewhere")
    report = sync(docs)
    assert report.removed == 0
    assert report.links_outside == 1
    assert known(docs) == set(NAMES)


def test_an_archive_that_cannot_be_opened_keeps_its_members(docs, monkeypatch):
    packed(docs / "x.zip", ("1.md", "2.md"))
    sync(docs)
    fail_on(monkeypatch, "open", docs / "x.zip", errno.EIO)
    assert sync(docs).removed == 0
    assert {"x.zip/1.md", "x.zip/2.md"} < known(docs)


def test_another_folder_is_refused_before_a_file_is_read(docs, monkeypatch):
    other = docs.parent / "other"
    other.mkdir()
    for number in range(5):
        (other / f"{number}.md").write_text("The pump.")

    def read(path):
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("perikope.formats.file_hash", read)
    with pytest.raises(UsageError, match="has 0 of the 5 files"):
        sync(other)
    assert known(docs) == set(NAMES)


def test_an_empty_mount_point_removes_nothing(docs):
    docs.rename(docs.parent / "unmounted")
    docs.mkdir()
    with pytest.raises(InputError, match="no file in this folder"):
        sync(docs)
    assert known(docs) == set(NAMES)


def test_a_sync_without_any_path_is_refused(docs):
    with pytest.raises(UsageError, match="--sync needs the files or folders"):
        Index.open(docs.parent / "index").sync([])


def test_files_in_an_unlisted_folder_count_as_found(tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    (docs / "sub").mkdir(parents=True)
    for number in range(30):
        (docs / "sub" / f"{number}.md").write_text("The pump.")
    (docs / "new.md").write_text("The pump.")
    sync(docs)
    (docs / "new.md").rename(docs / "newer.md")
    fail_on(monkeypatch, "scandir", docs / "sub", errno.EIO)
    report = sync(docs)
    assert (report.added, report.removed, report.documents) == (1, 1, 31)


PROGRAM = """
import os, tempfile
from pathlib import Path
from perikope.build.indexing import BuildOptions, build

def sync(folder):
    for name in ("a.md", "sub/b.md") if not Path(folder, "docs").exists() else ():
        path = Path(folder, "docs", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("The pump.")
    return build(str(Path(folder, "index")), [str(Path(folder, "docs"))], BuildOptions(sync=True))

with tempfile.TemporaryDirectory() as folder:
    sync(folder)  # imports all modules, which the other user may not be able to read
    sync(folder)
if os.geteuid() == 0:
    os.seteuid(65534)
with tempfile.TemporaryDirectory() as folder:
    sync(folder)
    docs = Path(folder, "docs")
    for mode in (0o000, 0o444, 0o111):
        (docs / "sub").chmod(mode)
        report = sync(folder)
        print(report.removed, report.documents, [problem.reason for problem in report.skipped])
    (docs / "sub").chmod(0o700)
    docs.chmod(0)
    try:
        sync(folder)
    except Exception as error:
        print(type(error).__name__, error.reason)
    docs.chmod(0o700)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="permissions and users are those of Linux")
def test_permissions_of_a_user_without_privileges():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd="/")
    denied = "cannot be read (Permission denied); check the file and its permissions"
    assert done.stdout.splitlines() == [*([f"0 2 [{denied!r}]"] * 3), f"UnreadableFile {denied}"], done.stderr
