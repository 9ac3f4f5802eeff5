"""The array types of the package, named by the type of their elements."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""An array with elements of any type."""

Frozen = TypeVar("Frozen", bound=Array)


def frozen(values: Frozen) -> Frozen:
    """The same array, which can no longer be changed.

    Kernels are compiled once for arrays that can be changed and once for those that cannot. So arrays that reach the
    same kernel are all frozen, or none is.
    """
    values.setflags(write=False)
    return values


Integers = NDArray[np.int64]
"""Ordinal numbers (of passages, terms, segments), positions and counts."""

Integers32 = NDArray[np.int32]
"""Integers that are kept in 32 bits to save memory."""

Unsigned16 = NDArray[np.uint16]
Unsigned32 = NDArray[np.uint32]
Unsigned64 = NDArray[np.uint64]

Bytes = NDArray[np.uint8]
"""Encoded data, text in UTF-8, or small integers."""

Floats = NDArray[np.float64]
"""Scores and all other values that rankings depend on."""

Floats32 = NDArray[np.float32]
"""Vectors of neural models."""

Mask = NDArray[np.bool_]
"""One truth value per element of another array."""
