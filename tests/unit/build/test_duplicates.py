"""Several documents with one id: the first in the order of files is indexed, however the index is built or updated."""

import json
import random
import warnings
from pathlib import Path

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError, UsageError
from perikope.search.facade import Index
from tests.support.collections import plain_document

IDS = ["d1", "d2", "d3", "d4"]
NAMES = ["a.jsonl", "b.jsonl", "c/a.jsonl", "d.jsonl"]


def write(path: Path, texts: list[tuple[str, str]]) -> None:
    """Write documents with one passage each, as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": id, "passages": [text]}) + "\n" for id, text in texts), "utf-8")


def content(folder: Path) -> dict[str, tuple[str, str]]:
    """The file and the text of each document in an index, by id."""
    found = {}
    for segment in Index.open(folder).snapshot.segments:
        for local in range(segment.documents):
            if segment.alive[local]:
                assert segment.document_id(local) not in found
                found[segment.document_id(local)] = (segment.source(local)[0], segment.text(local))
    return found


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Every file is a task of its own, so that two workers share even the smallest folder."""
    monkeypatch.setattr("perikope.build.workers.TASK_BYTES", 1)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_first_is_taken_and_the_others_are_named(tmp_path, workers):
    docs = tmp_path / "docs"
    write(docs / "a.jsonl", [("d1", "first pump"), ("d2", "rotor")])
    write(docs / "b.jsonl", [("d1", "second pump"), ("d3", "seal"), ("d3", "another seal")])
    write(docs / "c.jsonl", [("d1", "third pump")])
    report = build(str(tmp_path / "idx"), [str(docs)], BuildOptions(workers=workers))
    assert [(one.id, one.source, one.first) for one in report.duplicates] == [
        ("d1", "b.jsonl", "a.jsonl"),
        ("d3", "b.jsonl", "b.jsonl"),
        ("d1", "c.jsonl", "a.jsonl"),
    ]
    assert (report.documents, report.added, report.skipped) == (3, 3, ())
    assert content(tmp_path / "idx") == {"d1": ("a.jsonl", "first pump"), "d2": ("a.jsonl", "rotor"), "d3": ("b.jsonl", "seal")}
    assert [hit.text for hit in Index.open(tmp_path / "idx").search("second first third pump")] == ["first pump"]
    with pytest.raises(InputError, match=r"'d1' is given twice by a\.jsonl and b\.jsonl: keep only the first \(--duplicates first\)"):
        build(str(tmp_path / "other"), [str(docs)], BuildOptions(workers=workers, duplicates="error"))
    assert not (tmp_path / "other").exists()


def test_an_unknown_way_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", [("d1", "pump")])
    with pytest.raises(UsageError, match="unknown value of --duplicates 'last'"):
        build(str(tmp_path / "idx"), [str(tmp_path / "a.jsonl")], BuildOptions(duplicates="last"))
    with pytest.raises(UsageError, match="unknown value of --duplicates 'last'"):
        Index.create(tmp_path / "idx").add(plain_document("d1", "", "pump"), duplicates="last")


@pytest.mark.parametrize("workers", [1, 2])
def test_the_document_in_the_index_is_the_first(tmp_path, workers):
    write(tmp_path / "a.jsonl", [("d1", "pump")])
    write(tmp_path / "b.jsonl", [("d1", "new pump"), ("d2", "rotor")])
    build(str(tmp_path / "idx"), [str(tmp_path / "a.jsonl")])
    report = build(str(tmp_path / "idx"), [str(tmp_path / "b.jsonl")], BuildOptions(append=True, workers=workers))
    assert [(one.id, one.source, one.first, one.indexed) for one in report.duplicates] == [("d1", "b.jsonl", "a.jsonl", True)]
    assert (report.added, report.changed, report.unchanged) == (1, 0, 1)
    assert content(tmp_path / "idx") == {"d1": ("a.jsonl", "pump"), "d2": ("b.jsonl", "rotor")}


def test_python_does_the_same_with_a_warning(tmp_path):
    index = Index.create(tmp_path / "idx")
    with pytest.warns(UserWarning, match=r"1 document is left out.*d1"):
        index.add([plain_document("d1", "", "pump"), plain_document("d1", "", "rotor")])
    index.commit()
    with pytest.warns(UserWarning, match=r"the index already has the same id \(d1\); pass replace=True"):
        index.add(plain_document("d1", "", "rotor"))
    index.commit()
    assert content(tmp_path / "idx")["d1"] == ("", "pump")
    with pytest.raises(InputError, match="'d1' is already in the index"):
        index.add(plain_document("d1", "", "rotor"), duplicates="error")
    index.rollback()


def test_a_document_replaces_one_that_is_not_committed_yet(tmp_path):
    index = Index.create(tmp_path / "idx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.add([plain_document("d1", "", "pump"), plain_document("d2", "", "pump")])
        index._writer._flush()
        index.add([plain_document("d3", "", "pump")])
        index.add([plain_document("d1", "", "rotor"), plain_document("d3", "", "rotor")], replace=True)
        index.add(plain_document("d1", "", "seal"), replace=True)
    index.commit()
    assert content(tmp_path / "idx") == {"d1": ("", "seal"), "d2": ("", "pump"), "d3": ("", "rotor")}
    assert (len(index), len(index.search("pump"))) == (3, 1)


def test_an_addition_that_fails_replaces_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("perikope.index.commit.WAITING_CHARACTERS", 8)
    index = Index.create(tmp_path / "idx")
    index.add([plain_document("d0", "", "pump"), plain_document("d1", "", "pump")])
    index.commit()
    index.add([plain_document("d2", "", "pump"), plain_document("d3", "", "pump")])
    broken = [plain_document(id, "", "rotor") for id in ("d1", "d2", "d4")]
    with pytest.raises(UsageError, match="cannot add a value of type int"):
        index.add([*broken, 1], replace=True)
    index.add(plain_document("d3", "", "seal"), replace=True)
    index.add(plain_document("d5", "", "valve"))
    index.add(plain_document("d5", "", "shaft"), replace=True)
    index.commit()
    pumps = dict.fromkeys(("d0", "d1", "d2"), ("", "pump"))
    assert content(tmp_path / "idx") == pumps | {"d3": ("", "seal"), "d5": ("", "shaft")}


def changed(chance: random.Random, docs: Path) -> None:
    """Write, change or remove some files of a folder."""
    for name in chance.sample(NAMES, chance.randint(1, 3)):
        if chance.random() < 0.3:
            (docs / name).unlink(missing_ok=True)
        else:
            write(docs / name, [(id, f"pump {chance.randint(0, 9)}") for id in chance.choices(IDS, k=chance.randint(1, 3))])
    write(docs / "z.jsonl", [("always", "here")])


@pytest.mark.parametrize("seed", range(6))
def test_an_updated_index_equals_a_new_one(tmp_path, seed):
    chance = random.Random(seed)
    docs = tmp_path / "docs"
    for step in range(6):
        changed(chance, docs)
        rebuilt = build(str(tmp_path / f"new{step}"), [str(docs)], BuildOptions(workers=1))
        expected = content(tmp_path / f"new{step}")
        counts = []
        for workers in (1, 2):
            report = build(str(tmp_path / f"idx{workers}"), [str(docs)], BuildOptions(sync=True, workers=workers))
            assert content(tmp_path / f"idx{workers}") == expected, (step, workers)
            assert report.documents == rebuilt.documents == report.added + report.changed + report.unchanged
            counts.append((report.added, report.changed, report.removed, report.unchanged, sorted(map(str, report.duplicates))))
        assert counts[0] == counts[1]


def test_an_update_without_changes_changes_nothing(tmp_path):
    docs = tmp_path / "docs"
    write(docs / "a.jsonl", [("d1", "pump")])
    write(docs / "b.jsonl", [("d1", "another pump"), ("d2", "rotor")])
    write(docs / "c.jsonl", [("d1", "a third pump")])
    build(str(tmp_path / "idx"), [str(docs)])
    manifest = (tmp_path / "idx" / "manifest.json").read_bytes()
    for workers in (1, 2):
        report = build(str(tmp_path / "idx"), [str(docs)], BuildOptions(sync=True, workers=workers))
        assert (report.added, report.changed, report.removed, report.unchanged) == (0, 0, 0, 2)
        # The only document of c.jsonl is not in the index. So this file is read, and named, each time.
        assert [one.source for one in report.duplicates] == ["c.jsonl"]
        assert (tmp_path / "idx" / "manifest.json").read_bytes() == manifest


@pytest.mark.parametrize("workers", [1, 2])
def test_files_of_two_folders_may_have_the_same_name(tmp_path, workers):
    for language in ("de", "en"):
        (tmp_path / language).mkdir()
        (tmp_path / language / "intro.md").write_text(f"{language} pump")
        write(tmp_path / language / "more.jsonl", [(language, f"{language} rotor")])
    paths, options = [str(tmp_path / "de"), str(tmp_path / "en")], BuildOptions(sync=True, workers=workers)
    expected = {"intro.md": ("intro.md", "de pump"), "de": ("more.jsonl", "de rotor"), "en": ("more.jsonl", "en rotor")}
    for _ in range(3):
        build(str(tmp_path / "idx"), paths, options)
        assert content(tmp_path / "idx") == expected
    write(tmp_path / "en" / "more.jsonl", [("en", "new rotor")])
    report = build(str(tmp_path / "idx"), paths, options)
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 1, 0, 2)
    assert content(tmp_path / "idx") == expected | {"en": ("more.jsonl", "new rotor")}
