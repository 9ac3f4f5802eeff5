"""Work in forked processes gives what work in this process gives."""

import os
import time
import warnings

import pytest

from perikope.core.errors import InputError, PerikopeError
from perikope.core.parallel import can_fork, in_processes


def each(work):
    """A function that does portions of the work, from one that does one item."""
    return lambda portion: map(work, portion)


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on Linux only")


@pytest.mark.parametrize("portion", [1, 3, 100])
@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_results_come_in_the_order_of_the_items(processes, portion):
    items = [*range(40)]
    big = b"x" * 100_000  # more than a pipe holds
    found = in_processes(each(lambda n: (n * n, big)), items, processes, portion)
    assert [(item, result[0]) for item, result in found] == [(n, n * n) for n in items]


def test_no_items_give_no_results():
    assert list(in_processes(each(str), [], 2)) == []


def test_portions_are_limited_and_in_order():
    sizes = [size for _, size in in_processes(lambda portion: [len(portion)] * len(portion), range(100), 2, 5)]
    assert sizes == [5] * 100
    sizes = [size for _, size in in_processes(lambda portion: [len(portion)] * len(portion), range(8), 2, 5)]
    assert sizes == [1] * 8, "each process must get some"


def test_a_slow_portion_keeps_no_process_from_the_others():
    """One item waits until another process has done the items after it, which every n-th item would never let it do."""
    reading, writing = os.pipe()

    def work(number):
        if number == 0:
            return [os.read(reading, 1) for _ in range(3)]
        if number <= 3:
            os.write(writing, b"x")
        return number

    assert [result for _, result in in_processes(each(work), range(6), 2)] == [[b"x"] * 3, 1, 2, 3, 4, 5]
    os.close(reading)
    os.close(writing)


def test_work_is_not_done_far_ahead():
    """A process must not compute a whole run while the first result waits to be used."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def work(number):
        os.write(writing, b"x")
        return number

    found = in_processes(each(work), range(1000), 2)
    next(found)
    time.sleep(0.3)
    assert len(os.read(reading, 2000)) <= 4 * 2 + 1
    found.close()
    os.close(reading)
    os.close(writing)


def test_the_work_is_done_elsewhere():
    found = {pid for _, pid in in_processes(each(lambda _: time.sleep(0.02) or os.getpid()), range(10), 2)}
    assert len(found) == 2
    assert os.getpid() not in found


def test_errors_come_at_their_item():
    def work(number):
        if number == 3:
            raise InputError("wrong", path="file", line=number)
        return number

    found = in_processes(each(work), range(8), 2)
    assert [next(found) for _ in range(3)] == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(PerikopeError, match="wrong"):
        next(found)


def test_warnings_are_given_here():
    def work(number):
        warnings.warn(f"about {number}", UserWarning, stacklevel=1)
        return number

    with pytest.warns(UserWarning, match="about"):
        assert [number for number, _ in in_processes(each(work), range(3), 2)] == [0, 1, 2]


def test_a_process_that_ends_is_named():
    with pytest.raises(PerikopeError, match="ended unexpectedly"):
        list(in_processes(each(lambda number: os._exit(9) if number == 5 else number), range(8), 2))


def test_no_process_outlives_its_caller():
    found = in_processes(each(lambda number: os.getpid()), range(100), 2)
    pids = [next(found)[1], next(found)[1]]
    found.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_with_threads_does_not_fork(monkeypatch):
    monkeypatch.setattr("threading.active_count", lambda: 2)
    assert not can_fork()
