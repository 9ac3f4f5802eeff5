"""Checksums of the blocks of a segment file, so that data is verified when it is first read.

A block is 4,096 bytes of the file, counted from its start; this is the size of a page of memory. The column
`block_checksums` is the last of the file and has the CRC-32 of every block before it. Reading a few bytes then verifies
the page that is read anyway, and not a column of gigabytes.
"""

from __future__ import annotations

import mmap
import zlib
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perikope.core.arrays import Array, Bytes, Integers
from perikope.core.errors import IndexFormatError
from perikope.index.ranges import ranges
from perikope.kernels.dictionary import BLOCK_SHIFT as SHIFT
from perikope.kernels.dictionary import BLOCK_SOUND as SOUND
from perikope.kernels.dictionary import BLOCK_TOUCHED as TOUCHED
from perikope.kernels.dictionary import ColumnBlocks

CHECKSUMS = "block_checksums"
"""The name of the column that has the checksums."""
SIZE = 1 << SHIFT
"""The size of a block in bytes."""
_SMALL_COLUMN = 1 << 24
"""A column of at most this many bytes is read at once when it is verified as a whole. Larger ones are read in order."""


class BlockHasher:
    """Computes the checksums of blocks while a file is written."""

    def __init__(self) -> None:
        self._checksums = array("I")
        self._filled = 0
        self._checksum = 0

    def add(self, data: bytes | memoryview) -> None:
        """Add the next bytes of the file."""
        view = memoryview(data)
        at = 0
        while at < len(view):
            piece = view[at : at + SIZE - self._filled]
            self._checksum = zlib.crc32(piece, self._checksum)
            self._filled += len(piece)
            at += len(piece)
            if self._filled == SIZE:
                self._end_block()

    def finish(self) -> Array:
        """The checksums of all blocks. The last block may be shorter than the others."""
        if self._filled:
            self._end_block()
        return np.array(self._checksums, np.uint32)

    def _end_block(self) -> None:
        self._checksums.append(self._checksum)
        self._filled = self._checksum = 0


class Extent(NamedTuple):
    """Where a column is in its file, and the checksum of its bytes."""

    offset: int
    width: int
    """Bytes per value."""
    end: int
    """The offset of the first byte after the column."""
    checksum: int


class Verification:
    """What was verified of an open file: blocks, and whole columns.

    Data is verified when it is first required. All methods may be called by many threads: at worst, a block is verified
    twice. A file without block checksums is verified only where a whole column is required.
    """

    def __init__(self, path: Path, data: mmap.mmap, extents: Mapping[str, Extent], checksums: Array | None) -> None:
        """`checksums` has the checksum of each block, or is None."""
        self._path = path
        self._map, self._data = data, memoryview(data)
        self._will_need: int | None = getattr(mmap, "MADV_WILLNEED", None)
        self._extents = extents
        self._checksums = checksums
        self._blocks = self._data[: extents[CHECKSUMS].offset if checksums is not None else 0]
        self.sound_columns: set[str] = set()
        """The names of the columns that were verified as a whole."""
        self.state: Bytes = np.zeros(0 if checksums is None else checksums.size, np.uint8)
        """One value per block: `SOUND`, `TOUCHED` or 0; empty if the file has no block checksums."""
        self._state = self.state.data

    @property
    def by_blocks(self) -> bool:
        """Whether the file has checksums of blocks, so that parts of a column can be verified."""
        return self._checksums is not None

    def require_column(self, name: str) -> None:
        """Verify a whole column by its own checksum, unless it was verified before."""
        if name not in self.sound_columns and not self.verify_column(name):
            raise damaged(self._path, f"is damaged in column {name!r}")

    def verify_column(self, name: str) -> bool:
        """Whether a whole column has its checksum. It is read even if it was verified before."""
        extent = self._extents[name]
        if extent.end - extent.offset <= _SMALL_COLUMN:
            self._announce(np.arange(extent.offset >> SHIFT, (extent.end - 1 >> SHIFT) + 1))
        if zlib.crc32(self._data[extent.offset : extent.end]) != extent.checksum:
            return False
        # Blocks that the column shares with its neighbours are not verified by this.
        self.state[-(-extent.offset >> SHIFT) : extent.end >> SHIFT] = SOUND
        self.sound_columns.add(name)
        return True

    def require_row(self, name: str, row: int) -> None:
        """Verify one value of a column, unless it was verified before."""
        if self._checksums is not None:
            offset, width, _, _ = self._extents[name]
            # Columns begin at multiples of the widest type, so no value is in two blocks.
            block = offset + row * width >> SHIFT
            if self._state[block] != SOUND:
                self._verify(block)

    def require(self, name: str, first: int, end: int) -> None:
        """Verify the rows of a column from `first` to `end` (exclusive), unless they were verified before."""
        if first >= end or self._checksums is None or name in self.sound_columns:
            return
        extent, state = self._extents[name], self._state
        blocks = range(extent.offset + first * extent.width >> SHIFT, (extent.offset + end * extent.width - 1 >> SHIFT) + 1)
        unverified = [block for block in blocks if state[block] != SOUND]
        if unverified:
            self._verify_all(np.array(unverified))

    def require_ranges(self, names: tuple[str, ...], first: Integers, end: Integers) -> None:
        """Verify several ranges of rows in each of the columns. Ranges may be empty or overlap."""
        if self._checksums is None or not first.size:
            return
        extents = [self._extents[name] for name in names]
        offset, width = (np.array([getattr(extent, name) for extent in extents], np.int64)[:, None] for name in ("offset", "width"))
        first_block = offset + first * width >> SHIFT
        last_block = np.where(end > first, offset + end * width - 1 >> SHIFT, first_block - 1)
        self._require_blocks(first_block.ravel(), last_block.ravel())

    def _require_blocks(self, first: Integers, last: Integers) -> None:
        """Verify ranges of blocks; both `first` and `last` are included."""
        # Most ranges are in one block, and most blocks were verified before.
        blocks = first[last >= first]
        longer = last > first
        if longer.any():
            blocks = np.concatenate([blocks, ranges(first[longer] + 1, last[longer] + 1)])
        unverified = blocks[self.state[blocks] != SOUND]
        if unverified.size:
            self._verify_all(np.unique(unverified))

    def blocks_of(self, name: str) -> ColumnBlocks:
        """The blocks of a column, for a kernel.

        The kernel sets the state of every block that it reads to `TOUCHED`, unless it is `SOUND`. `require_touched`
        then verifies them.
        """
        extent = self._extents[name]
        if self._checksums is None or name in self.sound_columns:
            return ColumnBlocks(self.state[:0], 0)
        return ColumnBlocks(self.state[extent.offset >> SHIFT : (extent.end - 1 >> SHIFT) + 1], extent.offset % SIZE)

    def require_touched(self, name: str) -> None:
        """Verify the blocks of a column that a kernel has touched."""
        extent = self._extents[name]
        first = extent.offset >> SHIFT
        self._verify_all(first + np.flatnonzero(self.state[first : (extent.end - 1 >> SHIFT) + 1] == TOUCHED))

    def _verify_all(self, blocks: Integers) -> None:
        """The same as `_verify` for many blocks, of which a first search has thousands."""
        assert self._checksums is not None
        self._announce(blocks)
        data, crc32 = self._blocks, zlib.crc32
        first = (blocks << SHIFT).tolist()
        for start, checksum in zip(first, self._checksums[blocks].tolist(), strict=True):
            if crc32(data[start : start + SIZE]) != checksum:
                self._verify(start >> SHIFT)
        self.state[blocks] = SOUND

    def _announce(self, blocks: Integers) -> None:
        """Let the system read these blocks from the disk, all at once and nothing else, while the first are verified.

        Otherwise each is read when it is needed, one after the other, and the system reads much of what is around it:
        up to megabytes for a block of 4 KB.
        """
        if self._will_need is None or not blocks.size:
            return
        ends = np.flatnonzero(np.diff(blocks) > 1)
        first, last = blocks[np.concatenate([[0], ends + 1])], blocks[np.concatenate([ends, [blocks.size - 1]])]
        start = (first << SHIFT) // mmap.PAGESIZE * mmap.PAGESIZE
        advise, will_need = self._map.madvise, self._will_need
        for begin, length in zip(start.tolist(), ((last + 1 << SHIFT) - start).tolist(), strict=True):
            advise(will_need, begin, length)

    def _verify(self, block: int) -> None:
        assert self._checksums is not None
        start = block << SHIFT
        if zlib.crc32(self._blocks[start : start + SIZE]) != self._checksums[block]:
            # The damage may be in another column, between columns, or in the checksums of blocks.
            for name, extent in self._extents.items():
                if extent.offset < start + SIZE and start < extent.end:
                    self.require_column(name)
        self._state[block] = SOUND


def damaged(path: Path, what: str) -> IndexFormatError:
    """Make the error for a file that cannot be used.

    The message is the path followed by `what`, such as `is cut short`.
    """
    error = IndexFormatError(f"{path} {what}: restore it from a copy or build the index again")
    error.file = str(path)
    return error
