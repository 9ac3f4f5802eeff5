"""Whom to tell that kernels are being compiled. This module imports nothing, so that commands still start fast."""

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
