"""Encode texts in several processes with one thread each.

On a machine with other load, threads of one process wait for each other after every layer: with the default threads of
torch, encoding there takes up to five times as long. Processes do not wait, and each encodes texts of similar length.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from perikope.core.arrays import Floats32, Integers

if TYPE_CHECKING:
    from perikope.neural.encoder import Encoder

TEXTS_AT_ONCE = 64
"""Texts that a process encodes before it asks for more."""
MANY = 512
"""Texts for which processes are started, which takes several seconds."""
WAITING = 3
"""Pieces of work per process that are sent in advance."""

Vectors = tuple[int, Floats32, Integers]
"""The number of a text, its vectors and their token positions."""
Encode = Callable[[Sequence[str]], Iterator[Vectors]]
_encode: Encode
"""What a worker encodes with."""


class EncodingWorkers:
    """Encodes texts as `Encoder.encode` or `encode_pooled` does, in processes that start when there are many texts.

    A `with` block ends the processes.
    """

    def __init__(self, encoder: Encoder, alone: Encode, processes: int, *, pooled: bool, runtime: str) -> None:
        """Encode with `processes` copies of an encoder. `alone` encodes few texts, in this process."""
        self._encoder, self._alone, self._processes, self._how = encoder, alone, processes, (pooled, runtime)
        self._pool: ProcessPoolExecutor | None = None
        self._stack = ExitStack()

    def __call__(self, texts: Sequence[str]) -> Iterator[Vectors]:
        """Encode texts. Few texts are encoded in this process, unless the others run already."""
        if self._pool is None:
            if self._processes < 2 or len(texts) < MANY:
                return self._alone(texts)
            self._pool = self._started()
        return _in_pool(self._pool, self._processes, texts)

    def _started(self) -> ProcessPoolExecutor:
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="perikope-encoder-")), "encoder")
        self._encoder.save(folder)
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self._processes, context, initializer=_start, initargs=(str(folder), *self._how))
        self._stack.callback(pool.shutdown, cancel_futures=True)
        return pool

    def __enter__(self) -> EncodingWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _in_pool(pool: ProcessPoolExecutor, processes: int, texts: Sequence[str]) -> Iterator[Vectors]:
    order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    pieces = iter([order[start : start + TEXTS_AT_ONCE] for start in range(0, len(order), TEXTS_AT_ONCE)])
    running: dict[Future[list[Vectors]], list[int]] = {}

    def send() -> None:
        for numbers in pieces:
            running[pool.submit(_encode_piece, [texts[number] for number in numbers])] = numbers
            if len(running) >= WAITING * processes:
                return

    send()
    while running:
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            numbers = running.pop(done)
            for number, vectors, position in done.result():
                yield numbers[number], vectors, position
        send()


def _start(folder: str, pooled: bool, runtime: str) -> None:
    """Prepare a worker: one thread, and an end with the process that started it."""
    global _encode
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    torch.set_num_threads(1)
    from functools import partial

    from perikope.neural.encoder import Encoder
    from perikope.neural.pooled_vectors import encode_pooled

    encoder = Encoder.load(folder, device="" if runtime != "torch" else "cpu", runtime=runtime)
    _encode = partial(encode_pooled, encoder) if pooled else encoder.encode


def _end_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    with contextlib.suppress(OSError):
        wait_for([parent.sentinel])
    os._exit(1)


def _encode_piece(texts: Sequence[str]) -> list[Vectors]:
    return list(_encode(texts))
