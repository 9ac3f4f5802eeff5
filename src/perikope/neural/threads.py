"""How many threads torch takes for one query: a single one, and only in the thread that asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from perikope.core.errors import MissingExtra


@contextmanager
def single_threaded() -> Iterator[None]:
    """Let torch compute on one thread for the calling thread; all other threads keep their number.

    A query is too small to be shared out, and OpenMP threads that wait for one another on busy cores are slow.

    OpenMP keeps a number of threads for each thread that uses it. `torch.set_num_threads` is not called here: it also
    changes, for the whole process, the number of MKL and the number of every thread that is new to torch. If a
    program has called it, MKL keeps the number that the program gave for its matrix products.
    """
    import torch

    # Torch sets the number of a thread when that thread first uses it, which would undo the limit.
    torch.get_num_threads()
    with _openmp().limit(limits=1):
        yield


@cache
def _openmp() -> Any:
    """The OpenMP libraries of this process, without BLAS libraries, whose number of threads belongs to the whole process."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        raise MissingExtra("threadpoolctl", "neural") from None
    return ThreadpoolController().select(user_api="openmp")
