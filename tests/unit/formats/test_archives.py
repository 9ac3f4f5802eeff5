"""Archives: their members are read like files of a folder; bombs, links and damage are refused one by one."""

from __future__ import annotations

import gzip
import io
import pickle
import random
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from perikope.core.errors import InputError, UnreadableFile, UsageError
from perikope.document.tree import Document
from perikope.formats import Source, _archives, _unpack, documents, file_hash, line_chunks, read, sources

Pack = Callable[[dict[str, bytes]], bytes]


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


KINDS: dict[str, Pack] = {
    ".zip": zipped,
    ".tar": tarred,
    ".tar.gz": lambda files: tarred(files, "w:gz"),
    ".TGZ": lambda files: tarred(files, "w:gz"),
    ".tar.bz2": lambda files: tarred(files, "w:bz2"),
    ".tar.xz": lambda files: tarred(files, "w:xz"),
}
every_kind = pytest.mark.parametrize(("suffix", "pack"), KINDS.items(), ids=KINDS)
zip_and_tar = pytest.mark.parametrize(("suffix", "pack"), [(".zip", zipped), (".tar.gz", KINDS[".tar.gz"])], ids=["zip", "tar.gz"])


def skipped(path: Path) -> tuple[list[str], list[str]]:
    """The ids that were read, and the problems."""
    problems: list[UnreadableFile] = []
    ignored: list[str] = []
    found = [document.id for document in read(path, on_problem=problems.append, on_ignored=ignored.append)]
    return found, [str(problem) for problem in problems]


@every_kind
def test_members_are_read_in_order_like_files_of_a_folder(suffix: str, pack: Pack, tmp_path: Path) -> None:
    files = {
        "z/b.txt": b"first",
        "./a.md.gz": gzip.compress(b"# second"),
        ".hidden.txt": b"no",
        ".git/x.txt": b"no",
        "image.png": b"no",
        "c.jsonl": b'{"id": "c1", "passages": ["third"]}\n{"id": "c2", "passages": ["fourth"]}',
        "bad.txt": b"caf\xe9",
        "/end.txt": b"last",
    }
    path = tmp_path / "sub" / f"archive{suffix}"
    path.parent.mkdir()
    path.write_bytes(pack(files))
    name = path.name
    expected = [f"{name}/z/b.txt", f"{name}/a.md.gz", "c1", "c2", f"{name}/end.txt"]
    problem = f"{path}/bad.txt:1: is not UTF-8 text; convert it to UTF-8"
    assert skipped(path) == (expected, [problem])
    in_folder = [id if id.startswith("c") else f"sub/{id}" for id in expected]
    assert skipped(tmp_path) == (in_folder, [problem])
    with pytest.raises(UnreadableFile, match=r"bad\.txt:1: is not UTF-8"):
        list(read(path))


@every_kind
def test_a_document_knows_its_archive_and_the_hash_of_it(suffix: str, pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / "sub" / f"archive{suffix}"
    path.parent.mkdir()
    path.write_bytes(pack({"a.txt": b"one", "b/c.jsonl.gz": gzip.compress(b'{"id": "c", "passages": ["two"]}')}))
    assert {(document.source, document.source_hash) for document in read(tmp_path)} == {(f"sub/archive{suffix}", file_hash(path))}
    assert {(document.source, document.source_hash) for document in read(path, hashes=False)} == {(path.name, "")}


def test_a_format_asked_for_goes_for_the_members(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"20news": b"one", "b.md": b"two", "c.txt": b"three"}))
    assert [document.id for document in read(tmp_path / "a.zip", format="text")] == ["a.zip/20news", "a.zip/c.txt"]


def test_an_archive_without_a_known_file_is_an_error_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"image.png": b"x"}))
    (tmp_path / "b.txt").write_bytes(b"text")
    with pytest.raises(InputError, match=r"no file in this archive .*\.md"):
        list(read(tmp_path / "a.zip"))
    assert skipped(tmp_path) == (["b.txt"], [])


@zip_and_tar
def test_archives_nest_once(suffix: str, pack: Pack, tmp_path: Path) -> None:
    innermost = zipped({"d.txt": b"too deep"})
    inner = {"b.txt": b"inner text", "deep.zip": innermost, "c.txt": b"more"}
    files = {"one.zip": zipped(inner), "two.tar.gz": tarred(inner, "w:gz"), "three.tar": tarred(inner), "bad.zip": b"bad", "e.txt": b"end"}
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack(files))
    found, problems = skipped(path)
    inside = [f"a{suffix}/{name}/{member}" for name in ("one.zip", "two.tar.gz", "three.tar") for member in ("b.txt", "c.txt")]
    assert found == [*inside, f"a{suffix}/e.txt"]
    deep = [f"{path}/{name}/deep.zip: archives are nested deeper than 2" for name in ("one.zip", "two.tar.gz", "three.tar")]
    assert [problem.partition(";")[0] for problem in problems[:3]] == deep
    assert problems[3].startswith(f"{path}/bad.zip: cannot be read (File is not a zip file)")


@zip_and_tar
@pytest.mark.parametrize("name", ["../a.txt", "b/../../a.txt", "..\\a.txt", "b/.."])
def test_names_that_lead_out_are_refused(name: str, suffix: str, pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack({name: b"x", "b\\c.txt": b"y"}))
    problems: list[UnreadableFile] = []
    assert [document.id for document in read(path, format="text", on_problem=problems.append)] == [f"a{suffix}/b/c.txt"]
    assert "a name that leads out of the archive" in str(problems[0])


def test_links_and_devices_in_tars_are_skipped(tmp_path: Path) -> None:
    kinds = {"hard": tarfile.LNKTYPE, "soft": tarfile.SYMTYPE, "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind in {**kinds, "folder": tarfile.DIRTYPE}.items():
            info = tarfile.TarInfo(f"{name}.txt")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("b.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"text"))
    found, problems = skipped(tmp_path)
    assert found == ["a.tar/b.txt"]
    assert problems == [f"{tmp_path}/a.tar/{name}.txt: is a link or a device; pack the file itself" for name in kinds]


def test_encrypted_linked_and_oddly_packed_zip_members_are_skipped(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("secret.txt", "text")
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("rare.txt", "text", zipfile.ZIP_LZMA)
        archive.writestr("b.txt", "text")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1  # the flag in the directory that says encrypted
    (tmp_path / "a.zip").write_bytes(data)
    found, problems = skipped(tmp_path)
    assert found == ["a.zip/b.txt"]
    assert [problem.split(": ")[1].split(";")[0] for problem in problems] == [
        "is encrypted",
        "is not a regular file",
        "is packed by a rare method",
    ]


def test_bombs_are_stopped_while_they_unpack(tmp_path: Path) -> None:
    zeros = bytes(40 << 20)
    names = ["a.txt.gz", "b.zip", "c.tar.gz", "d.zip", "e.jsonl.gz", "f.zip"]
    once = gzip.compress(zeros)
    bombs = [once, zipped({"x.txt": zeros}), tarred({"x.txt": zeros}, "w:gz"), zipped({"in.zip": zipped({"x.txt": zeros})}), once]
    for name, bomb in zip(names, [*bombs, zipped({"x.txt.gz": once})], strict=True):
        (tmp_path / name).write_bytes(bomb)
    (tmp_path / "good.txt").write_bytes(b"text")
    del zeros
    tracemalloc.start()
    found, problems = skipped(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == ["good.txt"]
    # One problem each: what was stopped once is not tried again member by member.
    assert [Path(problem.partition(": ")[0]).relative_to(tmp_path).parts[0] for problem in problems] == names
    assert all("more than 200 times its size" in problem for problem in problems)
    assert peak < 4 * _unpack.FREE_BYTES


def test_a_bomb_of_many_members_is_stopped_as_a_whole(tmp_path: Path) -> None:
    # Each member alone stays below what any file may unpack to.
    names = [f"{number}.txt" for number in range(5)]
    (tmp_path / "a.zip").write_bytes(zipped(dict.fromkeys(names, b"a" * (9 << 20))))
    found, problems = skipped(tmp_path)
    assert found == ["a.zip/0.txt"]
    assert len(problems) == 1
    assert problems[0].startswith(f"{tmp_path}/a.zip: unpacks to more than 200 times its size")


def test_a_sparse_tar_is_a_bomb_too(tmp_path: Path) -> None:
    header = bytearray(tarfile.TarInfo("x.txt").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[483:495] = b"%011o\0" % (1 << 30)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "a.tar").write_bytes(bytes(header) + bytes(1024))
    found, problems = skipped(tmp_path)
    assert found == []
    assert "more than 200 times its size" in problems[0]


@every_kind
def test_a_large_member_is_read_whole(suffix: str, pack: Pack, tmp_path: Path) -> None:
    text = random.Random(4).randbytes(600_000).hex()
    (tmp_path / f"a{suffix}").write_bytes(pack({"a.txt": text.encode(), "b.txt": b"next"}))
    assert [document.text for document in read(tmp_path)] == [text, "next"]


@zip_and_tar
def test_one_document_is_bounded(suffix: str, pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perikope.formats._source.MAX_BYTES", 1 << 20)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack({"long.txt": b"word " * (1 << 18), "b.txt": b"text"}))
    assert skipped(path) == ([f"a{suffix}/b.txt"], [f"{path}/long.txt: is larger than 1 MB; split it into several documents"])


def test_a_zip_inside_an_archive_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_archives, "MAX_BYTES", 1 << 20)
    inner = zipped({"b.txt": random.Random(1).randbytes(2 << 20)})
    (tmp_path / "a.tar").write_bytes(tarred({"in.zip": inner, "c.txt": b"text"}))
    found, problems = skipped(tmp_path)
    assert found == ["a.tar/c.txt"]
    assert "is an archive of more than 1 MB inside another" in problems[0]


def test_a_header_of_a_tar_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tarred({"n" * (2 << 20): b"text"}))
    with pytest.raises(UnreadableFile, match="header of more than 1 MB"):
        list(read(tmp_path / "a.tar"))


@every_kind
def test_cut_archives_are_reported_and_the_rest_of_the_folder_is_read(suffix: str, pack: Pack, tmp_path: Path) -> None:
    chance = random.Random(3)
    whole = pack({f"{name}.txt": chance.randbytes(2000).hex().encode() for name in "abc"})
    (tmp_path / "z.txt").write_bytes(b"text")
    path = tmp_path / f"archive{suffix}"
    # The last but one of these is between two members of the tar.
    for end in (0, 20, 600, 512 * (1 + 8), len(whole) // 2):
        path.write_bytes(whole[:end])
        found, problems = skipped(tmp_path)
        assert found[-1] == "z.txt"
        assert len(found) < 4
        assert problems
        assert all(problem.startswith(str(path)) and len(problem.splitlines()) == 1 for problem in problems)
        with pytest.raises(UnreadableFile, match=r"archive\."):
            list(read(path, on_problem=lambda _: None))


@every_kind
def test_damaged_archives_are_input_errors_or_documents(suffix: str, pack: Pack, tmp_path: Path) -> None:
    chance = random.Random(5)
    whole = pack({"a.txt": b"text " * 200, "b.md": b"# more", "c/" + "d" * 150 + ".txt": b"long name", "in.zip": zipped({"e.txt": b"x"})})
    path = tmp_path / f"archive{suffix}"
    for turn in range(120):
        damaged = bytearray(whole)
        for _ in range(1 + turn % 9):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            skipped(path)
        except InputError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017


def test_members_cannot_be_pickled_until_they_carry_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"a.txt": b"one", "b.txt.gz": gzip.compress(b"two"), "c.txt": b"three"}))
    carried = []
    for source in sources(tmp_path):
        assert not source.portable
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(source)
        carried.append(source.carried())
    assert all(source.portable for source in carried)
    assert texts(carried) == texts(pickle.loads(pickle.dumps(carried))) == ["one", "two", "three"]


def texts(found: list[Source]) -> list[str]:
    return [document.text for source in found for document in documents(source)]


@zip_and_tar
def test_a_member_can_be_read_once_and_before_the_next(suffix: str, pack: Pack, tmp_path: Path) -> None:
    (tmp_path / f"a{suffix}").write_bytes(pack({"a.txt": b"one", "b.txt": b"two"}))
    found = sources(tmp_path)
    first = next(found)
    assert texts([first]) == ["one"]
    with pytest.raises(UsageError, match="is in an archive: read it once"):
        texts([first])
    second = next(found)
    with pytest.raises(UsageError, match="is in an archive"):
        texts([first])
    assert texts([second]) == ["two"]
    with pytest.raises(UsageError, match="is in an archive"):
        texts(list(sources(tmp_path)))


def records(count: int) -> bytes:
    chance = random.Random(2)
    return b"".join(b'{"id": "d%d", "passages": ["%s"]}\n' % (number, chance.randbytes(50).hex().encode()) for number in range(count))


@pytest.mark.parametrize("packing", ["plain", "gz", "zip", "tar.gz", "tar of gz"])
def test_chunks_hold_the_same_documents_with_the_same_lines(packing: str, tmp_path: Path) -> None:
    lines = b"\xef\xbb\xbf" + records(300) + b"\n\n  \n" + records(20).rstrip()
    name, data = {
        "plain": ("a.jsonl", lines),
        "gz": ("a.jsonl.gz", gzip.compress(lines)),
        "zip": ("a.zip", zipped({"a.jsonl": lines})),
        "tar.gz": ("a.tgz", tarred({"a.jsonl": lines}, "w:gz")),
        "tar of gz": ("a.tar", tarred({"a.jsonl.gz": gzip.compress(lines)})),
    }[packing]
    (tmp_path / name).write_bytes(data)
    expected = list(read(tmp_path))
    chunks = [chunk for source in sources(tmp_path) for chunk in line_chunks(source, 5000)]
    assert len(chunks) > 5
    found: list[Document] = [document for chunk in pickle.loads(pickle.dumps(chunks)) for document in documents(chunk)]
    assert found == expected
    assert b"".join(chunk.content for chunk in chunks if isinstance(chunk.content, bytes)) == lines
    assert [chunk.first_line for chunk in chunks][:2] == [1, 1 + chunks[0].content.count(b"\n")]  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", [1, 2, 150, 301])
def test_an_error_in_a_chunk_names_the_line_of_the_file(wrong: int, tmp_path: Path) -> None:
    lines = records(301).splitlines(keepends=True)
    lines[wrong - 1] = b"broken\n"
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines))
    [source] = sources(path)
    with pytest.raises(InputError, match=rf"a\.jsonl:{wrong}: not valid JSON") as caught:
        texts(list(line_chunks(source, 1000)))
    assert caught.value.line == wrong


def test_a_file_of_blank_lines_has_no_chunk(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n \n" * 1000)
    [source] = sources(path)
    with pytest.raises(UnreadableFile, match="is empty"):
        list(line_chunks(source, 100))
    path.write_bytes(b"\n \n" * 1000 + records(1))
    [chunk] = line_chunks(source, 100)
    assert chunk.first_line > 1900
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(records(50)))
    [cut] = sources(packed)
    packed.write_bytes(packed.read_bytes()[:-100])
    with pytest.raises(UnreadableFile, match="cannot be read"):
        list(line_chunks(cut, 100))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.zip", "a.tar.gz"])
def test_lines_are_streamed_out_of_whatever_they_are_packed_in(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file of lines may be larger than a document may be.
    monkeypatch.setattr("perikope.formats._source.MAX_BYTES", 1 << 20)
    data = b'{"id": "d", "passages": ["%s"]}\n' % random.Random(2).randbytes(2500).hex().encode() * 4200
    packed = {
        "a.jsonl.gz": gzip.compress,
        "a.zip": lambda data: zipped({"a.jsonl": data}),
        "a.tar.gz": lambda data: tarred({"a.jsonl": data}, "w:gz"),
    }
    (tmp_path / name).write_bytes(packed[name](data))
    assert len(data) > 20 << 20
    del data
    list(read(tmp_path))
    tracemalloc.start()
    count = sum(1 for _ in read(tmp_path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 4200
    assert peak < 2 << 20
