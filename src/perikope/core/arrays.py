"""The array types of the package, named by what their elements are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""An array whose element type does not matter to the reader."""

Integers = NDArray[np.int64]
"""Numbers of things (passages, terms, segments), positions and counts."""

Integers32 = NDArray[np.int32]
"""Integers as columns of the index keep them in memory."""

Unsigned16 = NDArray[np.uint16]
Unsigned32 = NDArray[np.uint32]
Unsigned64 = NDArray[np.uint64]

Bytes = NDArray[np.uint8]
"""Encoded data, or text as UTF-8."""

Floats = NDArray[np.float64]
"""Scores and everything that an order depends on."""

Floats32 = NDArray[np.float32]
"""Vectors of neural models."""

Mask = NDArray[np.bool_]
"""One truth value per element of another array."""
