"""Stores numbered byte strings in compressed blocks of about 64 KB. No string is split between blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

import numpy as np
import zstandard

from perikope.core.arrays import Array
from perikope.core.errors import IndexFormatError
from perikope.index.columns import ColumnFile, ColumnWriter, narrow, rises
from perikope.index.strings import Strings

BLOCK_SIZE = 1 << 16
_CACHED_BLOCKS = 64
_MOST_DENSE = 16
"""The binary logarithm of an upper bound on zstd's compression ratio. zstd needs at least four bytes per 128 KB."""


class StoreWriter:
    """Collects byte strings and compresses each block as soon as it is full. Every block has a checksum."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._lengths: list[int] = []
        self._blocks: list[bytes] = []
        self._first_string: list[int] = []
        self.compressed_size = 0

    def append(self, data: bytes) -> None:
        """Add the next string."""
        self._pending.append(data)
        self._pending_size += len(data)
        self._lengths.append(len(data))
        if self._pending_size >= BLOCK_SIZE:
            self._flush()

    def append_block(self, block: bytes, lengths: list[int]) -> None:
        """Add a compressed block of another store unchanged.

        `lengths` are the lengths of the block's strings, in bytes.
        """
        self._flush()
        self._first_string.append(len(self._lengths))
        self._lengths += lengths
        self._blocks.append(block)
        self.compressed_size += len(block)

    def take_blocks(self) -> list[bytes]:
        """Remove and return the blocks that were finished since the last call."""
        blocks, self._blocks = self._blocks, []
        return blocks

    def write(self, name: str, columns: ColumnWriter) -> None:
        """Write the columns of the store. Their names are `name`, a dot, and what the column contains."""
        self.stream(name, columns, ())

    def stream(self, name: str, columns: ColumnWriter, steps: Iterable[object]) -> None:
        """Write the columns of the store as `write` does, but add strings to the store meanwhile.

        The strings are added by iterating over `steps`. So only the blocks of one step are in memory.
        """
        ends: list[int] = []

        def blocks() -> Iterator[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
            for _ in steps:
                yield from finished()
            self._flush()
            yield from finished()

        def finished() -> Iterator[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
            for block in self.take_blocks():
                ends.append((ends[-1] if ends else 0) + len(block))
                yield np.frombuffer(block, np.uint8)

        columns.stream(f"{name}.blocks.bytes", np.uint8, blocks())
        columns.write(f"{name}.blocks.ends", np.array(ends, np.uint64))
        columns.write(f"{name}.ends", narrow(np.cumsum(self._lengths, dtype=np.uint64)))
        columns.write(f"{name}.block_first", np.array(self._first_string, np.uint32))

    def _flush(self) -> None:
        if self._pending:
            self._first_string.append(len(self._lengths) - len(self._pending))
            block = self._compressor.compress(b"".join(self._pending))
            self._blocks.append(block)
            self.compressed_size += len(block)
            self._pending, self._pending_size = [], 0


class Store:
    """Reads byte strings by number; safe to use from many threads. Recently used blocks are cached decompressed."""

    def __init__(self, name: str, columns: ColumnFile, strings: int) -> None:
        self._name, self._columns, self._strings = name, columns, strings
        # Every block has a checksum of its own, which is verified when it is decompressed.
        self.packed = columns.strings(f"{name}.blocks", verified=False)
        first = columns[f"{name}.block_first"]
        complete = columns[f"{name}.ends"].size == strings and first.size == len(self.packed) and bool(strings) == bool(first.size)
        if not complete or (strings and (first[0] != 0 or first[-1] >= strings)):
            raise columns.damaged(f"has a damaged store ({name})")
        columns.expect(f"{name}.ends", rises, "has damaged offsets")
        columns.expect(f"{name}.block_first", _rises_strictly, "has damaged offsets")
        # No lock is needed: `lru_cache` is safe with threads, and in a child that was forked while another thread was
        # reading. The cached function does not refer to the store, so the store is freed as soon as it is not used.
        self._block = lru_cache(maxsize=_CACHED_BLOCKS)(partial(_unpack, name, self.packed, columns))

    def __len__(self) -> int:
        return self._strings

    def __getitem__(self, number: int) -> bytes:
        block = int(np.searchsorted(self._first, np.uint32(number), "right")) - 1
        begin = _end(self._ends, int(self._first[block]) - 1)
        return self._block(block)[_end(self._ends, number - 1) - begin : _end(self._ends, number) - begin]

    @property
    def _ends(self) -> Array:
        """The end of each string in the joined strings of all blocks."""
        return self._columns.whole(f"{self._name}.ends")

    @property
    def _first(self) -> Array:
        """The first string of each block."""
        return self._columns.whole(f"{self._name}.block_first")

    @property
    def blocks(self) -> int:
        """The number of compressed blocks."""
        return len(self.packed)

    def raw_block(self, block: int) -> tuple[bytes, range]:
        """The compressed data of a block, and the range of the numbers of its strings."""
        return self.packed[block], _strings_of(block, self._first, len(self))

    def lengths(self, strings: range) -> list[int]:
        """The lengths in bytes of the strings with these numbers."""
        ends = self._ends[strings.start : strings.stop].astype(np.int64)
        lengths: list[int] = np.diff(ends, prepend=_end(self._ends, strings.start - 1)).tolist()
        return lengths


def _strings_of(block: int, first: Array, strings: int) -> range:
    """The numbers of the strings in a block.

    `first` has the first string of each block, and `strings` is how many strings there are.
    """
    return range(int(first[block]), int(first[block + 1]) if block + 1 < first.size else strings)


def _end(ends: Array, number: int) -> int:
    return int(ends[number]) if number >= 0 else 0


def _rises_strictly(_: ColumnFile, values: Array) -> bool:
    return not np.any(values[:-1] >= values[1:])


def _unpack(name: str, blocks: Strings, columns: ColumnFile, block: int) -> bytes:
    """Decompress a block of the store with this name."""
    first, ends = columns.whole(f"{name}.block_first"), columns.whole(f"{name}.ends")
    strings = _strings_of(block, first, ends.size)
    size = _end(ends, strings[-1]) - _end(ends, strings[0] - 1)
    data = blocks[block]
    try:
        # The decompressor allocates the size that the frame states, so this size must be the one in the index.
        if zstandard.frame_content_size(data) != size or size > len(data) << _MOST_DENSE:
            raise zstandard.ZstdError("the block and the index state different sizes")
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        what = f"{columns.path}: {name} is damaged in block {block} ({error})"
        raise IndexFormatError(f"{what}: restore the index from a copy or build it again", columns.path) from None
