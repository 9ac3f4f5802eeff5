"""No more processes and threads are started than a machine can use."""

import threading
import warnings

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.core import cores
from perikope.core.parallel import in_parallel, limited_workers, most_workers
from perikope.evaluation.pool import open_pool


def test_up_to_four_per_core_are_taken_as_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert limited_workers(most_workers()) == most_workers() >= 4 * cores.usable_cores()


def test_more_are_cut_with_a_warning():
    with pytest.warns(UserWarning, match=rf"10000 processes are more than this machine can use; {most_workers()} are used"):
        assert limited_workers(10_000) == most_workers()


def test_threads_are_bounded():
    barrier = threading.Event()
    seen = set()

    def work(item):
        seen.add(threading.get_ident())
        barrier.wait(0.001)
        return item

    with pytest.warns(UserWarning, match="threads are more"):
        assert [item for item, _ in in_parallel(work, range(200), 5000)] == list(range(200))
    assert len(seen) <= most_workers()


def test_processes_of_a_build_are_bounded(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("perikope.build.indexing.build_segments", lambda job, work, workers, report: asked.append(workers) or 1 / 0)
    (tmp_path / "a.md").write_text("pump")
    with pytest.warns(UserWarning, match="10000 processes"), pytest.raises(ZeroDivisionError):
        build(str(tmp_path / "index"), [str(tmp_path / "a.md")], BuildOptions(workers=10_000))
    assert asked == [most_workers()]


def test_processes_of_a_pool_are_bounded(monkeypatch):
    asked = []
    monkeypatch.setattr("perikope.evaluation.pool.ProcessPoolExecutor", lambda workers, **_: asked.append(workers) or 1 / 0)
    with pytest.warns(UserWarning, match="10000 processes"), pytest.raises(ZeroDivisionError), open_pool(id, None, 10_000):
        pass
    assert asked == [most_workers()]
