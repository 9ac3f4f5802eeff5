"""How time grows with size, for tests that hostile input stays linear: a ratio, never seconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def is_linear(action: Callable[[int], object], size: int, factor: int = 8) -> bool:
    """Whether `factor` times the size takes far less than `factor`² times as long; tried again on a busy machine."""
    for _ in range(3):
        small, large = _seconds(action, size), _seconds(action, factor * size)
        # Linear would be `factor`, quadratic its square; a floor keeps the clock's grain out of it.
        if large < factor * factor / 2 * max(small, 1e-3):
            return True
    return False


def _seconds(action: Callable[[int], object], size: int) -> float:
    gc.collect()
    gc.disable()  # its time depends on everything that other tests keep
    try:
        started = time.process_time()
        action(size)
        return time.process_time() - started
    finally:
        gc.enable()
