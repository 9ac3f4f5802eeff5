"""Before many blocks are verified, the system is told which ones, and nothing else is read."""

import mmap
from types import SimpleNamespace

import numpy as np
import pytest

from perikope.index.blocks import SIZE
from perikope.index.columns import ColumnFile, ColumnWriter

pytestmark = pytest.mark.skipif(not hasattr(mmap, "MADV_WILLNEED"), reason="this system takes no advice")


@pytest.fixture
def opened(tmp_path):
    with ColumnWriter(tmp_path / "file.columns") as writer:
        writer.write("values", np.arange(100 * SIZE // 8, dtype=np.uint64))
        writer.close({})
    file = ColumnFile(tmp_path / "file.columns")
    advised = []
    file.verification._map = SimpleNamespace(madvise=lambda *advice: advised.append(advice))
    return file, advised


def blocks_of(advised):
    return [block for _, start, length in advised for block in range(start // SIZE, -(-(start + length) // SIZE))]


def test_the_blocks_of_all_ranges_are_announced_once(opened):
    file, advised = opened
    per_block = SIZE // 8
    first = np.array([2, 3, 10, 30, 31, 32, 50, 70, 90, 95]) * per_block
    file.require_ranges(("values",), first, first + per_block)
    needed = np.flatnonzero(file.verification.state).tolist()
    announced = blocks_of(advised)
    assert set(needed) <= set(announced)
    assert len(announced) == len(set(announced))
    assert len(announced) <= len(needed) * max(1, mmap.PAGESIZE // SIZE)
    assert len(advised) < len(needed), "adjacent blocks are announced together"
    file.require_ranges(("values",), first, first + per_block)
    assert blocks_of(advised) == announced, "what was verified is not announced again"


def test_a_small_column_is_announced_as_a_whole(opened):
    file, advised = opened
    file.whole("values")
    announced = blocks_of(advised)
    assert set(np.flatnonzero(file.verification.state).tolist()) <= set(announced)
    assert len(advised) == 1
