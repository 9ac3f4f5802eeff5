"""Commits, refreshes and searches do not use more and more descriptors, mappings, memory and disk space."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from perikope import Index
from perikope.index.manifest import FILE, encoded, load
from tests.durability.long_run import run

COMMITS = int(os.environ.get("PERIKOPE_COMMITS", "120" if "PERIKOPE_SOAK" not in os.environ else "10000"))

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the system does not list mappings")


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nothing may wait for the garbage collector, which may run late or never."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_nothing_grows_with_the_number_of_commits(tmp_path):
    early, late = COMMITS // 2, COMMITS
    first, *rest = run(tmp_path / "index", COMMITS, {*range(early - 24, early), *range(late - 24, late)})
    reports = [first, *rest]
    before, after = reports[:24], reports[24:]
    # The number of segments rises and falls with merges, so the largest values of 24 consecutive commits are compared.
    for what in ("descriptors", "mappings", "disk", "unlinked"):
        least, most = (max(getattr(report, what) for report in some) for some in (before, after))
        assert most <= least * 1.2 + (4096 if what in ("disk", "unlinked") else 2), (what, before[-1], after[-1])
    assert max(report.memory for report in after) < max(report.memory for report in before) + (8 << 20), (before[-1], after[-1])


@pytest.mark.usefixtures("no_collector")
def test_a_manifest_is_written_without_work_for_the_collector(tmp_path):
    with Index.create(tmp_path / "index") as index:
        index.add({"id": "d", "passages": ["a rotor"]})
    manifest = load(tmp_path / "index")
    assert encoded(manifest) == (tmp_path / "index" / FILE).read_bytes()
    gc.collect()
    encoded(manifest)
    assert gc.collect() == 0
