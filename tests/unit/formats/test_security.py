"""Hostile files: each is refused in one line or read within a memory limit, and files beside it are read."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from perikope.core.errors import InputError, UnreadableFile
from perikope.formats import read

HEAD = b"<front><article-meta><title-group><article-title>T</article-title></title-group></article-meta></front>"
ARTICLE = b"<article>" + HEAD + b"<body>%s</body></article>"


def article(content: bytes, doctype: bytes = b"") -> bytes:
    return b'<?xml version="1.0"?>' + doctype + ARTICLE % content


def laughs(count: int) -> bytes:
    entities = b"".join(b'<!ENTITY l%d "%s">' % (number + 1, b"&l%d;" % number * 10) for number in range(count))
    return article(b"<p>&l%d;</p>" % count, b'<!DOCTYPE article [<!ENTITY l0 "lol">' + entities + b"]>")


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def quadratic() -> bytes:
    return article(b"<p>" + b"&a;" * 50_000 + b"</p>", b'<!DOCTYPE article [<!ENTITY a "' + b"x" * 50_000 + b'">]>')


def short_quadratic() -> bytes:
    return article(b"<p>" + b"&a;" * 1_000_000 + b"</p>", b'<!DOCTYPE article [<!ENTITY a "' + b"x" * 16 + b'">]>')


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "billion laughs": ("x.xml", laughs(9), "uses &l9;, which names no known character"),
    "quadratic blow-up": ("x.xml", quadratic(), "uses &a;, which names no known character"),
    "quadratic blow-up by short entities": ("x.xml", short_quadratic(), "too long to be read"),
    "external entity of a file": (
        "x.xml", article(b"<p>&x;</p>", b'<!DOCTYPE article [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), "is declared in another"),
    "external entity of a server": (
        "x.xml", article(b"<p>&x;</p>", b'<!DOCTYPE article [<!ENTITY x PUBLIC "a" "http://127.0.0.1/">]>'), "is declared in another"),
    "nesting": ("x.xml", article(b"<sec>" * 100_000 + b"<p>x</p>" + b"</sec>" * 100_000), "nested too deeply"),
    "nesting of inline elements": ("x.xml", article(b"<p>" + b"<b>" * 100_000 + b"x" + b"</b>" * 100_000 + b"</p>"), "nested too deeply"),
    "a long text": ("x.xml", article(b"<p>" + b"word " * 2_400_000 + b"</p>"), "too long to be read"),
    "a long attribute": ("x.xml", article(b'<p id="' + b"x" * 12_000_000 + b'">x</p>'), "too long to be read"),
    "a long name": ("x.xml", article(b"<p><" + b"x" * 12_000_000 + b"/></p>"), "too long to be read"),
    "a long remark": ("x.xml", article(b"<p><!--" + b"x" * 12_000_000 + b"-->x</p>"), "too long to be read"),
    "a million attributes": ("x.xml", article(b"<p " + b" ".join(b'a%d="x"' % n for n in range(1_000_000)) + b">x</p>"), "too long"),
    "millions of elements": ("x.xml", article(b"<p>x</p>" + b"<b/>" * 5_000_000), "tags and attributes"),
    "a document that never ends": ("x.xml", b"<article><body>" + b"<p>word</p> " * 6_000_000, "more than 64 MB"),
    "zero bytes": ("x.xml", article(b"<p>a\0b</p>"), "zero bytes"),
    "another encoding than declared": ("x.xml", "<?xml version='1.0' encoding='utf-8'?><article>\xe9</article>".encode("latin1"), "UTF-8"),
    "a codec that is no encoding": ("x.xml", b"<?xml version='1.0' encoding='zlib'?><article/>", "unknown encoding"),
    "a codec that takes long": ("x.xml", b"<?xml version='1.0' encoding='punycode'?>" + b"a" * 3_000_000, "unknown encoding"),
    "UTF-7": ("x.xml", b"<?xml version='1.0' encoding='UTF-7'?><article>+AGE-</article>", "unknown encoding"),
    "EBCDIC": ("x.xml", "<?xml version='1.0' encoding='cp500'?><article>x</article>".encode("cp500"), "EBCDIC"),
    "UTF-16 that is cut": ("x.xml", "<article>x</article>".encode("utf-16")[:-1], "utf-16"),
    "a packed file that is cut": ("x.xml.gz", gzip.compress(article(b"<p>x</p>" * 1000))[:-20], "cannot be read"),
    "an archive that is cut": ("x.zip", zipped({"a.xml": article(b"<p>x</p>")})[:-30], "cannot be read"),
    "a bomb": ("x.xml.gz", gzip.compress(article(b"<p>" + bytes(60 << 20).replace(b"\0", b"a") + b"</p>")), "times its size"),
    "a bomb in an archive": ("x.zip", zipped({"a.xml": article(b"<p>" + b"a" * (60 << 20) + b"</p>")}), "times its size"),
    "a bomb in an archive in an archive": ("x.zip", zipped({"i.zip": zipped({"a.xml": b"<a>" + b"a" * (60 << 20)})}), "times its size"),
    "a name that leads out of a zip": ("x.zip", zipped({"../../a.xml": article(b"<p>x</p>")}), "leads out of the archive"),
    "a name that leads out of a tar": ("x.tar.gz", tarred({"a/../../../a.xml": article(b"<p>x</p>")}), "leads out of the archive"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "data", "reason"), REFUSED.values(), ids=REFUSED)
def test_harm_is_refused_and_the_folder_is_read(name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")
    (tmp_path / name).write_bytes(data)
    (tmp_path / "z.xml").write_bytes(article(b"<p>after</p>"))
    problems: list[UnreadableFile] = []
    assert [document.id for document in read(tmp_path, on_problem=problems.append)] == ["a.txt", "z.xml"]
    [problem] = problems
    assert reason in str(problem)
    assert len(str(problem).splitlines()) == 1
    assert len(str(problem)) < 600
    with pytest.raises(InputError):
        list(read(tmp_path / name))


SURVIVED: dict[str, tuple[bytes, str]] = {
    "external DTD": (article(b"<p>x</p>", b'<!DOCTYPE article SYSTEM "http://127.0.0.1:9/a.dtd">'), "x"),
    "DTD of a file": (article(b"<p>x</p>", b'<!DOCTYPE article SYSTEM "file:///dev/zero">'), "x"),
    "parameter entity of a file": (article(b"<p>x</p>", b'<!DOCTYPE article [<!ENTITY % a SYSTEM "file:///dev/zero"> %a;]>'), "x"),
    "parameter entity that makes another": (article(b"<p>&y;</p>", b"<!DOCTYPE article [<!ENTITY % x \"<!ENTITY y 'lol'>\"> %x;]>"), "lol"),
    "default attributes": (article(b"<p>x</p>", b'<!DOCTYPE article [<!ATTLIST p id CDATA "&a;">]>'), "x"),
    "style sheet": (b'<?xml version="1.0"?><?xml-stylesheet href="file:///dev/zero"?>' + ARTICLE % b"<p>x</p>", "x"),
    "XInclude": (article(b'<p xmlns:i="http://www.w3.org/2001/XInclude">x<i:include href="file:///etc/passwd" parse="text"/></p>'), "x"),
    "place of the schema": (
        article(b'<p xmlns:s="http://www.w3.org/2001/XMLSchema-instance" s:schemaLocation="u file:///dev/zero">x</p>'),
        "x",
    ),
    "base": (article(b'<p xml:base="file:///etc/">x</p>'), "x"),
    "characters that are none": (article(b"<p>a&#0;b\x1fc&#xFFFF;</p>"), "a\ufffdb\ufffdc\ufffd"),
    "prefixes that nobody declares": (article(b'<p><x:y xlink:href="u">x</x:y></p>'), "x"),
    "many remarks": (article(b"<p>x</p>" + b"<!-- -->" * 300_000), "x"),
}


@pytest.mark.parametrize(("data", "text"), SURVIVED.values(), ids=SURVIVED)
def test_harm_is_survived(data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_bytes(data)
    [document] = read(tmp_path / "x.xml")
    assert document.text == f"T\n{text}"


def test_device_names_and_absolute_names_in_archives_open_nothing(tmp_path: Path) -> None:
    # Nothing is written anywhere, so that a name is just a name.
    names = ["/etc/passwd.txt", "C:\\con.txt", "nul.txt", "/dev/zero.txt", "a" * 3000 + ".txt"]
    for path, pack in ((tmp_path / "a.zip", zipped), (tmp_path / "b.tar.gz", tarred)):
        path.write_bytes(pack(dict.fromkeys(names, b"text")))
        assert [document.text for document in read(path)] == ["text"] * len(names)
    assert sorted(os.listdir(tmp_path)) == ["a.zip", "b.tar.gz"]


STREAMS = {
    # A gigabyte of text that packs well enough not to be a bomb by its ratio alone.
    "one text of a gigabyte": "b'<article><body><p>'",
    "one attribute of a gigabyte": "b'<article><body><p id=\"'",
    "one remark of a gigabyte": "b'<!--'",
    "one declaration of a gigabyte": "b'<!DOCTYPE article ['",
    "text of a gigabyte in two bytes a character": "'<article>'.encode('utf-16')",
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.parametrize("head", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("form", ["file", "packed"])
def test_a_gigabyte_is_refused_within_a_bound_of_memory(head: str, form: str, tmp_path: Path) -> None:
    program = f"""
        import gzip, io, os, random, resource, sys
        from pathlib import Path
        from perikope.formats import read
        import lxml.etree, perikope.formats.xml, perikope.text.analysis
        folder = Path(sys.argv[1])
        head = {head}
        if {form!r} == "file":
            with open(folder / "big.xml", "wb") as file:
                file.write(head)
                file.truncate(1 << 30)
        else:
            block = gzip.compress(random.Random(1).randbytes(1 << 16).hex().encode(), 1)
            with open(folder / "big.xml.gz", "wb") as file:
                file.write(gzip.compress(head))
                for _ in range((1 << 30) // (1 << 17)):
                    file.write(block)
        (folder / "good.txt").write_text("text")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20),) * 2)
        problems = []
        print([document.id for document in read(folder, on_problem=problems.append, hashes=False)], len(problems), problems[0])
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], capture_output=True, text=True, timeout=600, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.startswith("['good.txt'] 1 "), found.stdout
    assert len(found.stdout.splitlines()) == 1
    assert "MB" in found.stdout


@pytest.mark.parametrize("kind", ["xml", "jats", "uspto", "clef-ip", "inex", "docbook"])
def test_no_format_reads_another_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = {
        "xml": "article",
        "jats": "article",
        "uspto": "us-patent-grant",
        "clef-ip": "patent-document",
        "inex": "article",
        "docbook": "book",
    }
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "x.xml").write_text(
        f'<!DOCTYPE x SYSTEM "secret.txt" [<!ENTITY % p SYSTEM "secret.txt"> %p;]><{roots[kind]} xmlns:i="http://www.w3.org/2001/XInclude">'
        f'<i:include href="secret.txt" parse="text"/><body><p>x</p><para>x</para></body></{roots[kind]}>'
    )
    opened: list[str] = []
    original: Callable[..., int] = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest, **more: opened.append(str(path)) or original(path, *rest, **more))
    try:
        found = "".join(document.text for document in read(tmp_path / "x.xml", format=kind, hashes=False))
    except UnreadableFile as error:
        found = str(error)
    assert "secret" not in found
    assert opened == [str(tmp_path / "x.xml")]


@pytest.mark.parametrize("suffix", [".txt", ".md", ".html", ".txt.gz"])
def test_a_file_that_is_too_large_is_refused_before_it_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"sparse{suffix}"
    with path.open("wb") as file:
        file.truncate(4 << 30)
    (tmp_path / "a.txt").write_text("read")
    hashed: list[str] = []
    monkeypatch.setattr("perikope.formats.file_hash", lambda path: hashed.append(path) or "hash")
    problems: list[UnreadableFile] = []
    assert [document.id for document in read(tmp_path, on_problem=problems.append)] == ["a.txt"]
    assert [str(problem) for problem in problems] == [f"{path}: is larger than 256 MB; split it into several documents"]
    assert hashed == [str(tmp_path / "a.txt")]
