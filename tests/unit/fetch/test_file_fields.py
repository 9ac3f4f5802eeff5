"""The fields `path` and `folder` are derived from the files of documents, in old indexes too."""

import json
import zipfile

import numpy as np
import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import UsageError
from perikope.fetch.filters import known_fields, parse_filter
from perikope.fetch.groups import groups_of
from perikope.search.facade import Index
from tests.support.collections import plain_document


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Two segments: files, an archive, several documents of one file, own metadata, and a document from no file."""
    docs = tmp_path_factory.mktemp("files") / "docs"
    for name in ("top.md", "guide/start.md", "guide/install/linux.md", "guide2/other.md", "2013/4/old.md"):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text("pump")
    (docs / "guide" / "own.md").write_text("---\nid: own\nfolder: Elsewhere\npath: [my/path.md, other]\n---\npump")
    with zipfile.ZipFile(docs / "packed.zip", "w") as archive:
        archive.writestr("inner/a.md", "pump")
        archive.writestr("b.jsonl", json.dumps({"id": "b1", "passages": ["pump"]}))
    (docs / "guide" / "many.jsonl").write_text("".join(json.dumps({"id": f"m{i}", "passages": ["pump"]}) + "\n" for i in range(2)))
    folder = docs.parent / "idx"
    build(str(folder), [str(docs)], BuildOptions(workers=1))
    index = Index.open(folder)
    index.add(plain_document("by hand", "", "pump"))
    index.commit()
    return index


def found(index, filter):
    return sorted(hit.document for hit in index.search("pump", filter=filter, k=100))


GUIDE = ["guide/install/linux.md", "guide/start.md", "m0", "m1"]


@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        ("path=guide/start.md", ["guide/start.md"]),
        ("path=guide/many.jsonl", ["m0", "m1"]),
        ("path=guide/*", GUIDE),
        ("folder=guide", GUIDE),
        ("folder=guide/", GUIDE),
        ("folder=guide/*", GUIDE),
        ("folder=guide/|2013", [*sorted(["2013/4/old.md", *GUIDE])]),
        ("folder=guide/install", ["guide/install/linux.md"]),
        ("folder=guide*", sorted(["guide2/other.md", *GUIDE])),
        ("folder=2013/4", ["2013/4/old.md"]),
        ("path=2013/4/old.md", ["2013/4/old.md"]),
        ("folder=packed.zip", ["b1", "packed.zip/inner/a.md"]),
        ("folder=packed.zip/inner", ["packed.zip/inner/a.md"]),
        ("path=packed.zip/b.jsonl", ["b1"]),
        # The metadata of a document take precedence over its file.
        ("folder=elsewhere", ["own"]),
        ("path=other", ["own"]),
        # Documents in no folder, and documents from no file, have no value.
        ("folder!=*", ["by hand", "top.md"]),
        ("path!=*", ["by hand"]),
    ],
)
def test_documents_are_found_by_their_files(index, filter, ids):
    assert found(index, filter) == ids


def test_a_negated_folder_leaves_out_all_folders_inside_it(index):
    everything = found(index, ())
    assert found(index, "folder!=guide") == [id for id in everything if id not in GUIDE]


def test_a_folder_that_is_not_there_is_told(index):
    assert "no document has folder=giude; the nearest value" in str(index.search("pump", filter="folder=giude").notes)
    assert "guide/start.md" in str(index.search("pump", filter="path=guide/star.md").notes)


def test_results_can_be_limited_to_one_per_folder(index):
    assert {"path", "folder"} <= set(known_fields(index.snapshot))
    numbers = np.array([index.snapshot.find_document(id) for id in ("guide/start.md", "m0", "guide/install/linux.md", "top.md")])
    order = np.argsort(numbers)
    groups = dict(zip(order.tolist(), groups_of(index.snapshot, numbers[order], "folder").tolist(), strict=True))
    assert groups[0] == groups[1] != groups[2]
    assert groups[3] == -1


def test_an_index_without_files_has_no_such_fields(tmp_path):
    index = Index.create(tmp_path / "idx")
    index.add(plain_document("d1", "", "pump"))
    index.commit()
    with pytest.raises(UsageError, match="unknown metadata field 'path'"):
        index.search("pump", filter="path=a.md")


def test_a_filter_is_written_as_it_was_read():
    assert str(parse_filter("folder=guide/*")) == str(parse_filter("folder=guide"))
