"""The limits of the reading process."""

from __future__ import annotations

from dataclasses import dataclass

FILE_SECONDS = 120.0
"""The default of the longest time that one file may take, in seconds."""
FILE_MEMORY = 2 << 30
"""The default of the most memory that the reading process may take, in bytes."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How much time and memory the reading process may take for one file."""

    seconds: float = FILE_SECONDS
    memory: int = FILE_MEMORY


FILE_LIMITS = FileLimits()
"""The default limits."""
