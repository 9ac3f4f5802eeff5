"""`perikope warmup`: compile the kernels of all models once, so that later commands start fast."""

from __future__ import annotations

import time

import click


@click.command(name="warmup")
def command() -> int:
    """Compile the numerical code and cache it, so that later commands start fast.

    This takes 30 to 40 seconds of processor time. Without it, each command compiles what it needs when it needs it:
    the first search takes about 10 seconds longer.

    \b
    Example:
      perikope warmup
    """
    from perikope.evaluation.demo import warm_up
    from perikope.kernels.jit import cache_directory

    started = time.perf_counter()
    warm_up()
    folder = cache_directory()
    stored = f"stored in {folder}" if folder else "not stored, because no cache folder is writable; set PERIKOPE_CACHE to a writable folder"
    click.echo(f"kernels compiled in {time.perf_counter() - started:.1f} s, {stored}")
    return 0
