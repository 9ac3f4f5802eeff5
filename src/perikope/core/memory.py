"""Memory that a process has used once and will use again."""

from __future__ import annotations

from functools import cache

import numpy as np

_KEPT = 31 << 20
"""Bytes of an array. The C library of GNU learns from arrays of up to 32 MB."""


@cache
def keep_freed_memory() -> None:
    """Let the process keep memory that it frees, up to 62 MB, instead of returning it to the system.

    Every search allocates the same few megabytes. The C library of GNU returns them to the system after a search, and
    the next search pays for hundreds of page faults: 1 to 2 ms on a virtual machine. The library keeps twice as much as
    the largest array that it has seen freed. So an array is freed once, which is never written to and takes no memory.
    Other C libraries do nothing of the kind.
    """
    np.empty(_KEPT, np.uint8)
