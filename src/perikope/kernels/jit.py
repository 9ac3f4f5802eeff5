"""The one way a kernel is compiled: without the interpreter lock, with its machine code kept between processes."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numba

from perikope import __version__


def cache_directory() -> str | None:
    """A private folder of this user for compiled code, or None where there is no place to write."""
    base = os.environ.get("PERIKOPE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    candidates = [Path(base)] if base else []
    with contextlib.suppress(RuntimeError):  # no home folder
        candidates.append(Path.home() / ".cache")
    candidates.append(Path(tempfile.gettempdir()) / f"perikope-{os.getuid() if hasattr(os, 'getuid') else 'user'}")
    for candidate in candidates:
        folder = candidate / "perikope" / f"kernels-{__version__}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        # Machine code is loaded from here: never from a folder that somebody else could have filled.
        private = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
        if private and os.access(folder, os.W_OK):
            return str(folder)
    return None


_DIRECTORY = cache_directory()
if _DIRECTORY is None:
    warnings.warn("perikope: no writable cache folder (set PERIKOPE_CACHE); kernels are compiled anew in each process", stacklevel=2)
else:
    numba.config.CACHE_DIR = _DIRECTORY  # type: ignore[attr-defined]

kernel: Any = numba.njit(cache=_DIRECTORY is not None, nogil=True, boundscheck=False, error_model="numpy")
"""Decorator of every kernel."""
