"""Finding files: order, formats, links, devices, and which problems are raised or skipped."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import pickle
import socket
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perikope.core.errors import InputError, InputWarning, UnreadableFile, UsageError
from perikope.document.tree import Document, Spans
from perikope.formats import FORMATS, FileEntry, Format, Source, _source, file_hash, files, read, sources
from perikope.text.analysis import SNOWBALL, language_code


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")


def test_folders_are_walked_in_sorted_order_without_hidden_files(tmp_path: Path) -> None:
    make(tmp_path, "b.txt", "a/z.md", "a/b/c.text", "c.TXT", ".hidden.txt", ".git/x.txt", "image.png", "readme")
    with pytest.warns(InputWarning, match=r"files that no format reads were passed over: 1 without suffix; on_ignored=print"):
        assert [document.id for document in read(tmp_path)] == ["a/b/c.text", "a/z.md", "b.txt", "c.TXT"]
    ignored: list[str] = []
    assert len(list(read(tmp_path, on_ignored=ignored.append))) == 4
    assert [Path(path).name for path in ignored] == ["image.png", "readme"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_text_in_utf_16_is_read_if_it_says_so(encoding: str, tmp_path: Path) -> None:
    text = "Größe\r\n\r\nЗажим".encode(encoding)
    (tmp_path / "a.txt").write_bytes(b"\xfe\xff" * (encoding == "utf-16-be") + text)
    [document] = read(tmp_path / "a.txt")
    assert document.text.split() == ["Größe", "Зажим"]
    (tmp_path / "a.txt").write_bytes(b"\xff\xfea")
    with pytest.raises(UnreadableFile, match="is not UTF-8 text"):
        list(read(tmp_path / "a.txt"))


def test_files_that_the_format_leaves_out_give_no_warning(tmp_path: Path) -> None:
    make(tmp_path, "b.txt", "a/z.md")
    assert [document.id for document in read(tmp_path, format="text")] == ["b.txt"]


def test_paths_are_read_in_the_order_given_and_named_files_go_by_their_name(tmp_path: Path) -> None:
    make(tmp_path, "one/b.txt", "one/a.txt", "two/c.md", ".hidden.txt")
    paths = [tmp_path / "two", str(tmp_path / "one" / "b.txt"), tmp_path / ".hidden.txt", tmp_path / "one"]
    assert [document.id for document in read(paths)] == ["c.md", "b.txt", ".hidden.txt", "a.txt", "b.txt"]


def test_a_source_says_where_it_comes_from(tmp_path: Path) -> None:
    make(tmp_path, "a/b.md")
    path = str(tmp_path / "a" / "b.md")
    expected = Source(path, "a/b.md", "en", "markdown", named=False, source="a/b.md")
    assert list(sources(tmp_path, language="EN-us", hashes=False)) == [expected]
    assert list(sources(tmp_path, language="EN-us")) == [replace(expected, source_hash=file_hash(path))]
    assert expected.portable
    assert pickle.loads(pickle.dumps(expected)) == expected


def test_a_document_knows_its_file_and_the_hash_of_it(tmp_path: Path) -> None:
    make(tmp_path, "a/b.txt", "c.md", "d.html")
    (tmp_path / "e.jsonl").write_text('{"id": "x", "passages": ["one"]}\n{"id": "y", "passages": ["two"]}\n', encoding="utf-8")
    (tmp_path / "f.txt.gz").write_bytes(gzip.compress(b"packed text"))
    found = [(document.source, document.source_hash) for document in read(tmp_path)]
    names = ["a/b.txt", "c.md", "d.html", "e.jsonl", "e.jsonl", "f.txt.gz"]
    assert found == [(name, hashlib.blake2b((tmp_path / name).read_bytes(), digest_size=16).hexdigest()) for name in names]
    assert [(document.source, document.source_hash) for document in read(tmp_path, hashes=False)] == [(name, "") for name in names]


def test_a_format_that_builds_documents_by_itself_need_not_know_of_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.txt")
    own = Document("own", "text", Spans(), ("",))
    monkeypatch.setitem(FORMATS._things, "text", Format("text", (".txt",), lambda source: iter([own]), ""))
    assert list(read(tmp_path)) == [replace(own, source="a.txt", source_hash=file_hash(tmp_path / "a.txt"))]


def test_files_are_listed_without_being_read(tmp_path: Path) -> None:
    make(tmp_path, "b.md", "a/x.zip", "a/y.tar.gz", "a/z.jsonl.gz", "image.png")
    expected = [("a/x.zip", "zip"), ("a/y.tar.gz", "tar"), ("a/z.jsonl.gz", "jsonl"), ("b.md", "markdown")]
    entries = list(files(tmp_path))
    assert [(entry.id, entry.format) for entry in entries] == expected
    assert [entry.path for entry in entries] == [str(tmp_path / name) for name, _ in expected]
    assert list(files(tmp_path / "b.md", format="text")) == [FileEntry("b.md", str(tmp_path / "b.md"), "text")]
    with pytest.raises(InputError, match="no such file"):
        files(tmp_path / "missing")


def test_a_walk_holds_the_names_of_one_folder_and_no_sources(tmp_path: Path) -> None:
    for folder in range(20):
        (tmp_path / str(folder)).mkdir()
        for number in range(200):
            (tmp_path / str(folder) / f"{number}.txt").touch()
    list(files(tmp_path))
    tracemalloc.start()
    count = sum(1 for _ in files(tmp_path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 4000
    # 4000 entries would take some 300 bytes each; a folder's names take 60 each.
    assert peak < 100_000


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".XZ", lzma.compress)])
def test_packed_files_are_known_by_the_inner_suffix(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / f"a.txt{suffix}").write_bytes(pack(b"packed text"))
    [document] = read(tmp_path)
    assert (document.id, document.text) == (f"a.txt{suffix}", "packed text")
    (tmp_path / f"a.txt{suffix}").write_bytes(pack(b"packed text")[:-9])
    with pytest.raises(UnreadableFile, match="cannot be read"):
        list(read(tmp_path))


def test_a_format_asked_for_takes_unknown_suffixes_but_not_those_of_other_formats(tmp_path: Path) -> None:
    make(tmp_path, "20news", "a.txt", "b.dat", "page.html", "notes.md")
    assert [document.id for document in read(tmp_path, format="text")] == ["20news", "a.txt", "b.dat"]
    [named] = read(tmp_path / "notes.md", format="text")
    assert named.text == "text of notes.md"


def test_links_out_of_the_folder_and_circles_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    make(tmp_path, "secret.txt", "other/x.txt", "folder-2/y.txt", "folder/a.txt", "folder/sub/b.txt")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "beside.txt").symlink_to(tmp_path / "folder-2" / "y.txt")
    (folder / "outside").symlink_to(tmp_path / "other")
    (folder / "sub" / "circle").symlink_to(folder)
    (folder / "nowhere.txt").symlink_to(folder / "missing.txt")
    (folder / "inside.txt").symlink_to(folder / "sub" / "b.txt")
    (folder / "itself.md").symlink_to(folder / "itself.md")
    (folder / "nowhere.png").symlink_to(folder / "missing.png")
    problems: list[UnreadableFile] = []
    ignored: list[str] = []
    found = read(folder, on_problem=problems.append, on_ignored=ignored.append)
    assert [document.id for document in found] == ["a.txt", "inside.txt", "sub/b.txt"]
    assert ignored == [str(folder / name) for name in ("beside.txt", "out.txt", "outside")]
    leads_nowhere = "is a link that leads nowhere; mend or remove it"
    assert [str(problem) for problem in problems] == [f"{folder / name}: {leads_nowhere}" for name in ("itself.md", "nowhere.txt")]
    with pytest.raises(UnreadableFile, match=leads_nowhere):
        list(read(folder))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipes_are_never_opened(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "link.md").symlink_to(tmp_path / "pipe.txt")
    problems: list[UnreadableFile] = []
    ignored: list[str] = []
    assert [document.id for document in read(tmp_path, on_problem=problems.append, on_ignored=ignored.append)] == ["a.txt"]
    refusal = "is not a regular file; copy its content into one"
    assert [str(problem) for problem in problems] == [f"{tmp_path / name}: {refusal}" for name in ("link.md", "pipe.txt")]
    assert ignored == []
    with pytest.raises(UnreadableFile, match="not a regular file"):
        list(read(tmp_path / "pipe.txt"))


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="the system has no sockets in folders")
def test_a_folder_of_nothing_but_sockets_is_reported_and_not_of_unknown_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problems: list[UnreadableFile] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("server.txt")  # not by its whole path, which may be too long for a socket
        assert list(read(tmp_path, on_problem=problems.append)) == []
    assert [problem.path for problem in problems] == [str(tmp_path / "server.txt")]


def test_files_of_other_formats_are_told_of(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "b.png", "sub/c.xyz", "sub/.hidden.png", "page.html")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in ("d.txt", "e.png", ".hidden.png"):
            archive.writestr(name, "text")
    ignored: list[str] = []
    assert [document.id for document in read(tmp_path, on_ignored=ignored.append)] == ["a.txt", "page.html", "z.zip/d.txt"]
    assert ignored == [str(tmp_path / name) for name in ("b.png", "sub/c.xyz", "z.zip/e.png")]
    ignored.clear()
    assert [entry.id for entry in files(tmp_path, format="html", on_ignored=ignored.append)] == ["b.png", "page.html", "sub/c.xyz", "z.zip"]
    assert ignored == [str(tmp_path / "a.txt")]


def test_select_decides_by_file_and_hash_what_is_read(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "sub/b.md")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("d.txt", "text")
        archive.writestr("e.txt", "text")
    asked: list[tuple[FileEntry, str]] = []

    def select(entry: FileEntry, digest: str) -> bool:
        asked.append((entry, digest))
        return entry.id not in refused

    refused = {"a.txt"}
    assert [source.id for source in sources(tmp_path, select=select)] == ["c.zip/d.txt", "c.zip/e.txt", "sub/b.md"]
    entries = list(files(tmp_path))
    assert asked == [(entry, file_hash(entry.path)) for entry in entries]
    # An archive is asked for as a whole, and a file that was named as well as one that was found.
    asked.clear()
    refused = {"c.zip", "b.md"}
    assert [source.id for source in sources([tmp_path / "sub" / "b.md", tmp_path], select=select)] == ["a.txt", "sub/b.md"]
    assert [entry.id for entry, _ in asked] == ["b.md", *(entry.id for entry in entries)]


def test_select_gets_no_hash_where_none_is_wanted(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    assert list(sources(tmp_path, hashes=False, select=lambda _, digest: bool(digest))) == []


@pytest.mark.parametrize("code", [*SNOWBALL, "nb-NO", "zh-Hant", "yue", "und", "SCO"])
def test_every_language_with_a_stemmer_can_be_said(code: str, tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    [document] = read(tmp_path, language=code)
    assert document.language == language_code(code)


def test_unreadable_files_in_folders_are_reported_and_skipped(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "d.txt")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    (tmp_path / "c.txt").write_bytes(b"\0\1")
    (tmp_path / "e.md").write_bytes(b"---\n")
    problems: list[UnreadableFile] = []
    assert [document.id for document in read(tmp_path, on_problem=problems.append)] == ["a.txt", "d.txt"]
    assert [Path(str(problem.path)).name for problem in problems] == ["b.txt", "c.txt", "e.md"]
    with pytest.raises(UnreadableFile, match=r"b\.txt:1: is not UTF-8") as raised:
        list(read(tmp_path))
    [note] = raised.value.__notes__
    assert "perikope.read(…, on_problem=print)" in note
    assert "index.sync(folder)" in note
    # A file that the caller names is never left out, so its error has no such note.
    with pytest.raises(UnreadableFile, match="zero bytes") as named:
        list(read(tmp_path / "c.txt"))
    assert not hasattr(named.value, "__notes__")
    with pytest.raises(UnreadableFile, match="zero bytes"):
        list(read(tmp_path / "c.txt", on_problem=problems.append))
    assert len(problems) == 3


def test_what_the_system_refuses_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.txt", "sub/b.txt")

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_source.os, "open", refuse)
    with pytest.raises(UnreadableFile, match=r"a\.txt: cannot be read \(Permission denied\)"):
        list(read(tmp_path))
    monkeypatch.setattr(_source.os, "scandir", refuse)
    with pytest.raises(UnreadableFile, match=rf"{tmp_path}: cannot be read \(Permission denied\)"):
        list(read(tmp_path, on_problem=print))


def test_packed_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_source, "MAX_BYTES", 1 << 20)
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"a" * (2 << 20)))
    with pytest.raises(UnreadableFile, match="larger than 1 MB"):
        list(read(tmp_path / "bomb.txt.gz"))


def test_mistakes_are_found_before_the_first_document(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "b.xyz")
    with pytest.raises(InputError, match=r"missing: there is no such file"):
        read([tmp_path / "a.txt", tmp_path / "missing"])
    with pytest.raises(UsageError, match=r"--format .*\bhtml\b.*\btext\b"):
        read([tmp_path / "a.txt", tmp_path / "b.xyz"])
    with pytest.raises(UsageError, match="unknown format 'markdwon'; did you mean 'markdown'"):
        read(tmp_path, format="markdwon")
    with pytest.raises(UsageError, match="'zz' is not a language code"):
        read(tmp_path, language="zz")
    with pytest.raises(UsageError, match="'english' is not a language code"):
        read(tmp_path, language="english")


def test_a_folder_without_a_known_file_says_which_suffixes_are_known(tmp_path: Path) -> None:
    make(tmp_path, "b.xyz")
    with pytest.raises(InputError, match=r"known suffixes: .*\.html.*\.md"):
        list(read(tmp_path))


def test_names_that_are_not_utf8_become_ids_that_can_be_written(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("text", encoding="utf-8")
    except OSError:
        pytest.skip("the file system takes UTF-8 names only")
    assert [document.id for document in read(tmp_path)] == ["caf\\xe9.txt"]


def test_the_byte_order_mark_and_line_ends_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\rthree")
    [document] = read(tmp_path / "a.txt")
    assert document.text == "one\ntwo\nthree"


def test_importing_formats_loads_none_of_them() -> None:
    code = "import sys, perikope.formats; print(*(name for name in ('numpy', 'lxml', 'markdown_it') if name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
    assert FORMATS.names() == sorted(FORMATS.names())


def test_a_named_file_of_a_known_other_format_is_refused_with_advice(tmp_path: Path) -> None:
    make(tmp_path, "old.XLS")
    with pytest.raises(UsageError, match=r"old\.XLS: files of this kind are not read; save them as XLSX or CSV first"):
        list(read(tmp_path / "old.XLS"))
    # A format that is asked for is still tried.
    assert [document.id for document in read(tmp_path / "old.XLS", format="text")] == ["old.XLS"]
