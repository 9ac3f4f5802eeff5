"""Limit torch to one thread while a query is encoded, only in the thread that encodes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from perikope.core.errors import MissingExtra


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit torch to one OpenMP thread in the calling thread; other threads keep their limits.

    A query is too small to be divided among threads, and OpenMP threads that wait for one another on busy cores are
    slow.

    OpenMP has one limit per calling thread. `torch.set_num_threads` is not used, because it changes more: the limit of
    MKL in the whole process, and that of every thread that uses torch later. If the program has called it, MKL keeps
    the program's limit for matrix products.
    """
    import torch

    # Torch sets the limit of a thread when the thread first uses torch. Doing that now keeps the limit below.
    torch.get_num_threads()
    with _openmp().limit(limits=1):
        yield


@cache
def _openmp() -> Any:
    """The OpenMP libraries of this process; BLAS libraries are left out, because their limit is that of the process."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        raise MissingExtra("threadpoolctl", "neural") from None
    return ThreadpoolController().select(user_api="openmp")
