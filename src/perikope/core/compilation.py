"""How this process gets its kernels, and whom to tell that they are compiled.

This module imports nothing, so that commands still start fast.
"""

from __future__ import annotations

from typing import Protocol


class CompilationWatcher(Protocol):
    """Is told when the compilation of a kernel begins and ends; one kernel is compiled at a time."""

    def began(self) -> None:
        """A kernel is not in the cache, and its compilation begins."""

    def ended(self) -> None:
        """The compilation has ended."""


watcher: CompilationWatcher | None = None
"""The watcher of this process; None unless a program that talks to a person has set one."""

prefers_stored = False
"""Whether kernels are loaded from stored machine code where there is some, so that numba need not be imported.

It is for commands that use each kernel a few times. Numba checks the types of arguments faster, so all other programs
leave this as it is. It must be set before a kernel is imported.
"""
