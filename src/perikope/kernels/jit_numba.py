"""Kernels that numba compiles, loads from its cache and calls. Importing this module imports numba."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core import caching, event, types
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys
from numba.np import numpy_support

from perikope.core import compilation
from perikope.kernels import jit_stored
from perikope.kernels.jit_cache import chosen_directory, kernel_folder, make_kernel_folder

_DIRECTORY = chosen_directory()
if _DIRECTORY is not None:
    numba.config.CACHE_DIR = _DIRECTORY  # type: ignore[attr-defined]

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

    def get_cache_path(self) -> str:
        """The folder for the kernels of one module."""
        return str(kernel_folder(Path(self._py_file).stem))

    def get_source_stamp(self) -> str:
        """What numba compares besides; the name of the folder has the digest of all sources."""
        return self.get_cache_path()[-24:]

    def ensure_cache_path(self) -> None:
        """Make the folder. Raises `OSError` if it neither exists nor can be made."""
        folder = kernel_folder(Path(self._py_file).stem)
        if folder is None:
            raise FileNotFoundError(self._py_file)
        make_kernel_folder(folder)


_Files: Any = FunctionCache._impl_class


class _KernelFiles(_Files):  # type: ignore[misc]
    """How compiled kernels are written, and where."""

    _locator_classes: ClassVar = [_KernelLocator]


class _KernelCache(FunctionCache):
    """The machine code of a kernel on disk. Damaged files are written anew; a full disk is no obstacle."""

    _impl_class = _KernelFiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None if it is not there or its file is damaged.

        Numba would first import everything that can be compiled, scipy's linear algebra for example, which takes 0.4 s.
        Finished code needs the runtime only.
        """
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                loaded = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            if loaded is not None:
                self._store(sig, lambda: self._cache_file.load(self._index_key(sig, target_context.codegen())))  # type: ignore[no-untyped-call]
            return loaded
        except Exception:  # whatever unpickling a damaged file raises
            with contextlib.suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel, if there is space for it."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
            self._store(sig, lambda: self._impl.reduce(data))

    def _store(self, sig: Any, reduced: Callable[[], Any]) -> None:
        """Store the code for processes that do not import numba, unless it is there or has parts that are not known."""
        with contextlib.suppress(Exception):  # another version of numba may arrange the parts in another way
            signature, folder, name = _names(sig), Path(self._cache_path), self._py_func.__name__
            if signature is not None and jit_stored.is_allowed() and not jit_stored.is_stored(folder, name, signature):
                code = _stored_code(reduced())
                if code is not None:
                    jit_stored.store(folder, name, signature, code)


def _stored_code(reduced: Any) -> jit_stored.StoredCode | None:
    """The parts of a compiled kernel that are stored; None if they are not as expected."""
    (_, kind, (code, _)), description, environment, _, is_object_mode, lifted, _, initialisers, referenced = reduced
    environments = {one.env_name: one.consts for one in (environment, *referenced)}
    constants = [constant for constants in environments.values() for constant in constants]
    if kind != "object" or is_object_mode or lifted or initialisers or not all(isinstance(one, np.dtype) for one in constants):
        return None
    dtypes = {symbol: [constant.str for constant in constants] for symbol, constants in environments.items()}
    return jit_stored.StoredCode(code, description.llvm_cpython_wrapper_name, dtypes)


def _names(kinds: Any) -> str | None:
    """The types of a signature as `jit_stored.signature_of` writes them; None if one of them is not known there."""
    names = [_name(kind) for kind in kinds]
    return None if None in names else ",".join(map(str, names))


def _name(kind: Any) -> str | None:
    if type(kind) is types.Array and kind.aligned:
        return jit_stored.array_name(numpy_support.as_dtype(kind.dtype), kind.ndim, kind.layout, kind.mutable)
    if type(kind) in (types.Integer, types.Float):
        return f"{'f' if type(kind) is types.Float else 'i' if kind.signed else 'u'}{kind.bitwidth // 8}"
    if type(kind) is types.Boolean:
        return "b1"
    if isinstance(kind, types.BaseTuple):
        inside = _names(tuple(kind))  # type: ignore[arg-type]
        name = jit_stored.tuple_name(getattr(kind, "instance_class", tuple))
        return None if inside is None else f"{name}({inside})"
    return None


def kernel(function: Any) -> Any:
    """Decorator that compiles a kernel."""
    compiled: Any = numba.njit(**_OPTIONS)(function)
    if kernel_folder(function.__module__.rpartition(".")[2]) is not None:
        compiled._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
    return compiled


_INNER = _OPTIONS | {"no_cpython_wrapper": True}
inner: Any = numba.njit(**_INNER)
step: Any = numba.njit(inline="always", **_OPTIONS)
