"""Pools: who does the tasks."""

import pickle

import pytest

from perikope.core.parallel import usable_cores
from perikope.evaluation.pool import Pool, default_workers, open_pool, tasks_done_by


class Adder:
    def __init__(self, more):
        self.more = more

    def __call__(self, number):
        return number + self.more


class PoolElsewhere(Pool):
    def __init__(self, make, setup):
        self.work = pickle.dumps((make, setup))

    def results(self, tasks):
        make, setup = pickle.loads(self.work)
        yield from reversed([(task, make(setup)(task)) for task in tasks])


class Machines:
    processors = 77

    def __init__(self):
        self.pools = []

    def pool(self, make, setup):
        self.pools.append(PoolElsewhere(make, setup))
        return self.pools[-1]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pool_does_tasks_here_or_elsewhere(workers):
    def results(**how):
        with open_pool(Adder, 10, workers, **how) as pool:
            return sorted(pool.results([1, 2, 3]))

    machines, expected = Machines(), [(1, 11), (2, 12), (3, 13)]
    assert results() == expected
    assert default_workers() == usable_cores()
    with tasks_done_by(machines):
        assert results() == expected
        assert default_workers() == 77
        assert len(machines.pools) == 1
        assert results(spawned=True) == expected
        with tasks_done_by(None):
            assert results() == expected
    assert results() == expected
    assert len(machines.pools) == 1
