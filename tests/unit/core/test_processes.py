"""Work in forked processes gives what work in this process gives."""

import os
import warnings

import pytest

from perikope.core.errors import InputError, PerikopeError
from perikope.core.parallel import can_fork, in_processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on Linux only")


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_results_come_in_the_order_of_the_items(processes):
    items = [*range(40)]
    big = b"x" * 100_000  # more than a pipe holds
    assert [(item, result[0]) for item, result in in_processes(lambda n: (n * n, big), items, processes)] == [(n, n * n) for n in items]


def test_the_work_is_done_elsewhere():
    found = {pid for _, pid in in_processes(lambda _: os.getpid(), range(10), 2)}
    assert len(found) == 2
    assert os.getpid() not in found


def test_errors_come_at_their_item():
    def work(number):
        if number == 3:
            raise InputError("wrong", path="file", line=number)
        return number

    found = in_processes(work, range(8), 2)
    assert [next(found) for _ in range(3)] == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(PerikopeError, match="wrong"):
        next(found)


def test_warnings_are_given_here():
    def work(number):
        warnings.warn(f"about {number}", UserWarning, stacklevel=1)
        return number

    with pytest.warns(UserWarning, match="about"):
        assert [number for number, _ in in_processes(work, range(3), 2)] == [0, 1, 2]


def test_a_process_that_ends_is_named():
    with pytest.raises(PerikopeError, match="ended unexpectedly"):
        list(in_processes(lambda number: os._exit(9) if number == 5 else number, range(8), 2))


def test_no_process_outlives_its_caller():
    found = in_processes(lambda number: os.getpid(), range(100), 2)
    pids = [next(found)[1], next(found)[1]]
    found.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_with_threads_does_not_fork(monkeypatch):
    monkeypatch.setattr("threading.active_count", lambda: 2)
    assert not can_fork()
