"""Byte strings by number, in compressed blocks of about 64 KB that begin and end with a string."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import zstandard

from perikope.errors import IndexFormatError
from perikope.index.columns import ColumnFile, ColumnWriter

BLOCK_SIZE = 1 << 16
_CACHED_BLOCKS = 64


class StoreWriter:
    """Collects strings; a block is compressed as soon as it is full."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=3)
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._lengths: list[int] = []
        self._blocks: list[bytes] = []
        self._first_string: list[int] = []

    def append(self, data: bytes) -> None:
        """Add the next string."""
        self._pending.append(data)
        self._pending_size += len(data)
        self._lengths.append(len(data))
        if self._pending_size >= BLOCK_SIZE:
            self._flush()

    def write(self, name: str, columns: ColumnWriter) -> None:
        """Write the columns of the store."""
        self._flush()
        columns.write(f"{name}.ends", np.cumsum(self._lengths, dtype=np.uint64))
        columns.write(f"{name}.block_first", np.array(self._first_string, np.uint32))
        columns.write_strings(f"{name}.blocks", self._blocks)

    def _flush(self) -> None:
        if self._pending:
            self._first_string.append(len(self._lengths) - len(self._pending))
            self._blocks.append(self._compressor.compress(b"".join(self._pending)))
            self._pending, self._pending_size = [], 0


class Store:
    """Reads strings; the blocks read last are kept, so that neighbours cost nothing. Safe to use from many threads."""

    def __init__(self, name: str, columns: ColumnFile) -> None:
        self._name = f"{columns.path}: {name}"
        self._ends = columns[f"{name}.ends"]
        self._block_first = columns[f"{name}.block_first"]
        self._blocks = columns.strings(f"{name}.blocks")
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._ends.size)

    def __getitem__(self, number: int) -> bytes:
        block = int(np.searchsorted(self._block_first, number, "right")) - 1
        begin_of_block = self._end(int(self._block_first[block]) - 1)
        content = self._block(block)
        return content[self._end(number - 1) - begin_of_block : self._end(number) - begin_of_block]

    def _end(self, number: int) -> int:
        return int(self._ends[number]) if number >= 0 else 0

    def _block(self, block: int) -> bytes:
        with self._lock:
            if block in self._cache:
                self._cache.move_to_end(block)
                return self._cache[block]
        last = int(self._block_first[block + 1]) - 1 if block + 1 < len(self._blocks) else len(self) - 1
        size = self._end(last) - self._end(int(self._block_first[block]) - 1)
        try:
            # The size is ours, not the frame's: a forged frame cannot make us allocate more than the index says.
            content = zstandard.ZstdDecompressor().decompress(self._blocks[block], max_output_size=max(size, 1))
        except zstandard.ZstdError as error:
            raise IndexFormatError(f"{self._name} is damaged in block {block}: {error}") from None
        if len(content) != size:
            raise IndexFormatError(f"{self._name} is damaged in block {block}: {len(content)} bytes instead of {size}")
        with self._lock:
            self._cache[block] = content
            if len(self._cache) > _CACHED_BLOCKS:
                self._cache.popitem(last=False)
        return content
