"""What `perikope index` says about a folder of mixed files."""

import gzip

import pytest

from perikope import Index
from tests.cli.test_commands import fails, run


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text("# Pumps\n\nA rotor turns.\n")
    return folder


def test_files_of_other_formats_are_listed_with_advice(docs, tmp_path, capsys):
    for name in ("a.djvu", "b.DJVU", "c.mobi", "d.textile.gz", "LICENSE", "e.png", "f.py", "g.png", "h.png"):
        (docs / name).write_bytes(gzip.compress(b"x") if name.endswith(".gz") else b"x")
    code, out, err = run(capsys, "index", docs, "--to", tmp_path / "idx")
    assert code == 0
    lines = out.splitlines()
    assert lines[1] == "9 files of other formats passed over: 3 .png, 2 .djvu, 1 .mobi, 1 .py, 1 .textile.gz, 1 without suffix"
    assert lines[2:6] == [
        "  .djvu: not read; convert them to PDF first, for example with ddjvu or ps2pdf",
        f"  .py, without suffix: if they are text, `perikope index {docs} --to {tmp_path / 'idx'} --append --format text` "
        "reads them as plain text",
        "  .mobi: not read; save them as DOCX, PPTX, EPUB or PDF first",
        "  .textile.gz: not read; convert them to HTML first, for example with pandoc",
    ]
    assert lines[6] == f'search it: perikope search {tmp_path / "idx"} "your words"'
    # Pictures hold no text, so they do not count as files that were not read.
    assert err == "warning: most files were not read: 6 of 7 have another format (listed above)\n"
    # The advice works. Files that the index already has are left as they are.
    code, out, err = run(capsys, "index", docs, "--to", tmp_path / "idx", "--append", "--format", "text")
    assert code == 0
    assert "9 documents added, 0 changed, 0 removed, 1 unchanged" in out
    assert "  .md: left out by --format" in out


def test_other_suffixes_of_markdown_are_added_as_markdown(docs, tmp_path, capsys):
    (docs / "page.mdx").write_text("# Valves\n\nA valve closes.\n")
    out = run(capsys, "index", docs, "--to", tmp_path / "idx")[1]
    command = f"perikope index {docs} --to {tmp_path / 'idx'} --append --format markdown"
    assert f"  .mdx: `{command}` reads them as Markdown" in out.splitlines()
    assert "1 document added" in run(capsys, *command.split()[1:])[1]
    assert "Valves" in run(capsys, "show", tmp_path / "idx", "page.mdx", "--outline")[1]


def test_many_suffixes_are_summed_up(docs, tmp_path, capsys):
    for number in range(9):
        (docs / f"a.x{number}").write_text("x")
    lines = run(capsys, "index", docs, "--to", tmp_path / "idx")[1].splitlines()
    assert lines[1] == "9 files of other formats passed over: 1 .x0, 1 .x1, 1 .x2, 1 .x3, 1 .x4, 1 .x5, and 3 of 3 other suffixes"
    assert lines[2].startswith("  others: if they are text, ")


def test_a_folder_of_other_formats_alone_is_an_error(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.ps").write_text("x")
    code, _, err = run(capsys, "index", tmp_path / "docs", "--to", tmp_path / "idx")
    assert code == 2
    assert "no file in this folder is of a known format (1 .ps); known suffixes: .adoc" in err


def test_links_that_lead_outside_the_folder_are_counted(docs, tmp_path, capsys):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.md").write_text("Other text.\n")
    (docs / "inside.md").symlink_to(docs / "guide.md")
    (docs / "same").symlink_to(docs)
    (docs / "link.md").symlink_to(elsewhere / "other.md")
    lines = run(capsys, "index", docs, "--to", tmp_path / "one")[1].splitlines()
    assert lines[1] == "1 link that leads outside the folder passed over (a target is read if you give its path too)"
    (docs / "folder").symlink_to(elsewhere)
    lines = run(capsys, "index", docs, "--to", tmp_path / "two")[1].splitlines()
    assert "2 documents added" in lines[0]
    assert lines[1] == "2 links that lead outside the folder passed over (a target is read if you give its path too)"
    index = Index.create(tmp_path / "three")
    assert index.sync(docs).links_outside == 2
    (docs / "inside.md").unlink()
    (docs / "guide.md").unlink()
    code, _, err = run(capsys, "index", docs, "--to", tmp_path / "four")
    assert code == 2
    assert "no file in this folder is of a known format (2 links that lead outside the folder); known suffixes" in err


def test_duplicates_are_named_and_no_error(docs, tmp_path, capsys):
    for letter in "abcdefgh":
        (docs / f"{letter}.jsonl").write_text('{"id": "d1", "passages": ["pump"]}\n')
    code, out, err = run(capsys, "index", docs, "--to", tmp_path / "idx")
    assert code == 0
    assert "2 documents added" in out
    lines = err.splitlines()
    assert lines[0] == "7 documents left out, because an earlier document has the same id:"
    assert lines[1] == "  d1 in b.jsonl (first from a.jsonl)"
    assert lines[-1] == "  … and 2 more"
    code, out, err = run(capsys, "index", docs / "b.jsonl", "--to", tmp_path / "idx", "--append")
    assert code == 0
    assert err.splitlines() == [
        "1 document left out, because the index already has their ids (--replace replaces the documents of the index):",
        "  d1 in b.jsonl (indexed from a.jsonl)",
    ]
    code, _, err = run(capsys, "index", docs, "--to", tmp_path / "strict", "--duplicates", "error")
    assert code == 2
    assert "document 'd1' is given twice by a.jsonl and b.jsonl: keep only the first (--duplicates first)" in err


def test_unknown_xml_is_told_once_per_root(docs, tmp_path, capsys):
    for number in range(3):
        (docs / f"pom{number}.xml").write_text("<project><name>pump</name></project>")
        (docs / f"x{number}.xml").write_text("<config/>")
    code, _, err = run(capsys, "index", docs, "--to", tmp_path / "idx")
    assert code == 1
    lines = err.splitlines()
    assert lines[0] == "6 files could not be read, or not completely:"
    assert len(lines) == 3
    assert [f"pom{number}.xml:1" in lines[1] for number in range(3)] == [True] * 3
    assert [f"x{number}.xml:1" in lines[2] for number in range(3)] == [True] * 3
    assert "pom2.xml:1: is XML with the root <project>, which no built-in profile describes" in lines[1]


def test_unreadable_files_are_named_up_to_a_bound(docs, tmp_path, capsys):
    for number in range(23):
        (docs / f"bad{number:02}.txt").write_bytes(b"a\0b")
    _, _, err = run(capsys, "index", docs, "--to", tmp_path / "idx")
    head, line = err.splitlines()
    assert head == "23 files could not be read, or not completely:"
    assert [name for name in (f"bad{number:02}.txt" for number in range(23)) if name not in line] == ["bad20.txt", "bad21.txt", "bad22.txt"]
    assert line.endswith("bad19.txt and 3 other files: is not text: it holds zero bytes; remove it or convert it to UTF-8 text")


def test_sync_counts_what_changed(docs, tmp_path, capsys):
    index = ("index", docs, "--to", tmp_path / "idx", "--sync")
    (docs / "other.md").write_text("A shaft.")
    assert "2 documents added in" in run(capsys, *index)[1]
    (docs / "guide.md").write_text("A seal.")
    (docs / "new.md").write_text("A valve.")
    out = run(capsys, *index)[1]
    assert "1 document added, 1 changed, 0 removed, 1 unchanged in" in out
    assert "search it" not in out


def test_sync_keeps_files_that_were_indexed_with_another_format(docs, tmp_path, capsys):
    (docs / "notes.textile").write_text("A shaft.")
    run(capsys, "index", docs, "--to", tmp_path / "idx")
    run(capsys, "index", docs, "--to", tmp_path / "idx", "--append", "--format", "text")
    code, out, err = run(capsys, "index", docs, "--to", tmp_path / "idx", "--sync")
    assert (code, err) == (0, "")
    assert "0 documents added, 0 changed, 0 removed, 2 unchanged in" in out
    assert "passed over" not in out
    (docs / "notes.textile").write_text("A longer shaft.")
    code, out, err = run(capsys, "index", docs, "--to", tmp_path / "idx", "--sync")
    assert code == 1
    assert "0 removed, 2 unchanged in" in out
    assert "notes.textile: has changed since it was indexed with another --format; sync with that format too" in err
    out = run(capsys, "index", docs, "--to", tmp_path / "idx", "--sync", "--format", "text")[1]
    assert "0 documents added, 1 changed, 0 removed, 1 unchanged in" in out
    (docs / "notes.textile").unlink()
    assert "1 removed, 1 unchanged in" in run(capsys, "index", docs, "--to", tmp_path / "idx", "--sync")[1]


def test_an_index_inside_the_folder_is_no_input(docs, capsys, monkeypatch):
    monkeypatch.chdir(docs)
    for option in ((), ("--sync",)):
        code, out, err = run(capsys, "index", ".", "--to", "idx", *option)
        assert (code, err) == (0, "")
        assert "passed over" not in out


def test_a_sync_with_another_folder_does_not_empty_the_index(tmp_path, capsys):
    docs = tmp_path / "docs"
    for name in ("a", "b", "c", "d/e", "d/f"):
        path = docs / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The pump {name}.\n")
    assert run(capsys, "index", docs, "--to", tmp_path / "idx")[0] == 0
    fails(capsys, "has 0 of the 5 files of", "index", docs / "d", "--to", tmp_path / "idx", "--sync")
    assert len(Index.open(tmp_path / "idx")) == 5
    for name in ("a", "b", "c", "d/e"):
        (docs / f"{name}.md").unlink()
    code, out, _ = run(capsys, "index", docs, "--to", tmp_path / "idx", "--sync")
    assert code == 0
    assert "4 removed" in out
