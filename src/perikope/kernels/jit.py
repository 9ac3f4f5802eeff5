"""Decorators that compile kernels. Kernels release the interpreter lock, and their machine code is cached on disk."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba.core import caching, event
from numba.core.caching import FunctionCache, _CacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys

from perikope import __version__
from perikope.core import compilation
from perikope.core.user_cache import user_caches


def cache_directory() -> str | None:
    """A private folder of this user for compiled code, or None if no private folder can be written to."""
    candidates = user_caches()
    candidates.append(Path(tempfile.gettempdir()) / f"perikope-{_user()}")
    for candidate in candidates:
        folder = candidate / f"kernels-{__version__}"
        try:
            candidate.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            # Numba would make the folder of these modules with whatever rights the umask leaves.
            (folder / _CacheLocator.get_suitable_cache_subpath(__file__)).mkdir(mode=0o700, exist_ok=True)  # type: ignore[no-untyped-call]
            # Machine code is loaded from this folder and those inside, so nobody else may own them or write to them.
            if all(map(_is_private, (candidate, folder, *_folders_in(folder)))) and (_is_writable(folder) or _is_filled(folder)):
                return str(folder)
        except OSError:
            continue
    return None


def _folders_in(folder: Path) -> list[Path]:
    """The folders inside a folder, and links, which may lead to a folder."""
    with os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if not entry.is_file(follow_symlinks=False)]


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _is_filled(folder: Path) -> bool:
    """Whether a folder has compiled kernels. Those of a container are made with its image, and cannot be changed."""
    return next(folder.glob("*/*.nbi"), None) is not None


def _user() -> object:
    return os.getuid() if hasattr(os, "getuid") else "user"


def _is_private(folder: Path) -> bool:
    status = os.lstat(folder)
    return not hasattr(os, "getuid") or (stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022)


_DIRECTORY = cache_directory()
if _DIRECTORY is None:
    warnings.warn("perikope: no writable cache folder, so each process compiles kernels again; set PERIKOPE_CACHE", stacklevel=2)
else:
    numba.config.CACHE_DIR = _DIRECTORY  # type: ignore[attr-defined]
    _asked = os.environ.get("PERIKOPE_CACHE")
    if _asked and Path(_asked) / "perikope" not in Path(_DIRECTORY).parents:
        warnings.warn(
            f"perikope: PERIKOPE_CACHE={_asked[:100]} cannot be used, since it is not writable or others may write to it; kernels are "
            f"cached in {_DIRECTORY}",
            stacklevel=2,
        )

if hasattr(os, "register_at_fork"):
    # If a process forked while another thread is compiling, the child would inherit a locked lock and wait for ever.
    os.register_at_fork(
        before=global_compiler_lock.acquire, after_in_parent=global_compiler_lock.release, after_in_child=global_compiler_lock.release
    )


class _Compilations(event.Listener):
    """Tells the watcher of this process (`core.compilation`) about each kernel that is not in the cache."""

    def __init__(self) -> None:
        self._depth = 0

    def on_start(self, event: Any) -> None:
        """Called before anything is compiled: a kernel, a function that it calls, or code of another program."""
        if self._depth or event.data["dispatcher"].py_func.__module__.startswith(__package__):
            self._depth += 1
            if self._depth == 1 and compilation.watcher is not None:
                compilation.watcher.began()

    def on_end(self, event: Any) -> None:
        """Called after it is compiled, or has failed to be."""
        self._depth = max(self._depth - 1, 0)
        if self._depth == 0 and compilation.watcher is not None and event.data["dispatcher"].py_func.__module__.startswith(__package__):
            compilation.watcher.ended()


event.register("numba:compile", _Compilations())  # type: ignore[no-untyped-call]

_OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "no_cfunc_wrapper": True}


# The name of the class differs between the versions of numba.
_Locator: Any = getattr(caching, "UserProvidedCacheLocator", None) or getattr(caching, "_UserProvidedCacheLocator", None)


class _KernelLocator(_Locator):  # type: ignore[misc]
    """Finds the folder of compiled kernels, even if it can only be read."""

    def ensure_cache_path(self) -> None:
        """Make the folder. Raises `OSError` if it neither exists nor can be made."""
        try:
            super().ensure_cache_path()
        except OSError:
            if not os.path.isdir(self.get_cache_path()):
                raise


_Files: Any = FunctionCache._impl_class


class _KernelFiles(_Files):  # type: ignore[misc]
    """How compiled kernels are written, and where."""

    _locator_classes: ClassVar = [_KernelLocator]


class _KernelCache(FunctionCache):
    """The machine code of a kernel on disk. Damaged files are written anew; a full disk is no obstacle."""

    _impl_class = _KernelFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None if it is not there or its file is damaged.

        Numba would first import everything that can be compiled (scipy's linear algebra, for example), which takes 0.4 s.
        Finished code needs its runtime only.
        """
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():  # type: ignore[no-untyped-call]
                return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # whatever unpickling a damaged file raises
            with contextlib.suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel, if there is space for it."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def kernel(function: Any) -> Any:
    """Decorator that compiles a kernel."""
    compiled: Any = numba.njit(**_OPTIONS)(function)
    if _DIRECTORY is not None:
        compiled._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
    return compiled


_INNER = _OPTIONS | {"no_cpython_wrapper": True}

inner: Any = numba.njit(**_INNER)
"""Decorator of a function that only kernels call. It cannot be called from Python, and its code is cached with theirs.

This halves the time to compile it.
"""

step: Any = numba.njit(inline="always", **_OPTIONS)
"""Decorator of a step: a function whose body is copied into each kernel that calls it, before compilation.

It is for functions that are called once, and for those that take NamedTuples of arrays. A real call would copy all
fields and update their reference counts.
"""
