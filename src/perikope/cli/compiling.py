"""Tells the user that kernels are being compiled, since the first search on a computer waits for it."""

from __future__ import annotations

import os
import sys
import time

import click

PATIENCE = 0.5
"""Seconds of compilation before anything is said."""
ERASE = "\r\x1b[K"


class CompilationNotice:
    """Shows a line on the standard error stream while kernels are compiled.

    On a terminal the line is erased after each kernel. Otherwise one line is printed per process. The processes that
    this one starts say nothing.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._kernels = 0
        self._seconds = 0.0
        self._began = 0.0
        self._said = False

    def began(self) -> None:
        """Show the line, unless compilation has taken little time so far."""
        self._kernels += 1
        self._began = time.monotonic()
        if self._seconds < PATIENCE or os.getpid() != self._process or sys.stderr is None:
            return
        if sys.stderr.isatty():
            click.echo(f"\rcompiling kernels, once per computer: {self._kernels}", nl=False, err=True)
        elif not self._said:
            click.echo("perikope: compiling kernels, once per computer; `perikope warmup` compiles those of all models", err=True)
        self._said = True

    def ended(self) -> None:
        """Erase the line on a terminal."""
        self._seconds += time.monotonic() - self._began
        if self._said and os.getpid() == self._process and sys.stderr.isatty():
            click.echo(ERASE, nl=False, err=True)
