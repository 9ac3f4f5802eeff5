"""Decorators that compile kernels. Kernels release the interpreter lock, and their machine code is cached on disk.

Numba compiles and calls kernels, unless this process prefers stored code (`core.compilation`). Then kernels are loaded
from stored machine code (`jit_stored`), and numba is imported only if a kernel has none for the given arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from threading import RLock
from typing import Any

from perikope.core import compilation
from perikope.kernels import jit_stored
from perikope.kernels.jit_cache import cache_directory, chosen_directory, kernel_folder

__all__ = ["cache_directory", "inner", "kernel", "step"]

chosen_directory()  # warns if there is none
_LOCK = RLock()
_DEFERRED: list[_Deferred] = []


class _Deferred:
    """A function that numba has not seen yet."""

    def __init__(self, function: Callable[..., Any], decorator: str) -> None:
        update_wrapper(self, function)  # type: ignore[arg-type]
        self._function = function
        self._decorator = decorator
        self.compiled: Any = None
        _DEFERRED.append(self)

    def __getattr__(self, name: str) -> Any:
        """What the function of numba has, such as its signatures."""
        if name.startswith("__"):
            raise AttributeError(name)
        _use_numba()
        return getattr(self.compiled, name)

    def compile_with(self, numba: Any) -> None:
        """Give the function to numba."""
        self.compiled = getattr(numba, self._decorator)(self._function)


class _StoredKernel(_Deferred):
    """A kernel that is loaded from stored code when it is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, "kernel")
        self._of_signature: dict[str, Callable[..., Any]] = {}
        self._loaded: dict[object, Callable[..., Any]] = {}
        """The same functions by `jit_stored.key_of` arguments."""

    def __call__(self, *arguments: Any) -> Any:
        if self.compiled is None:
            stored = self._loaded.get(jit_stored.key_of(arguments)) or self._stored(arguments)
            if stored is not None:
                return stored(*arguments)
            _use_numba()
        return self.compiled(*arguments)

    def _stored(self, arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
        """The stored kernel for these arguments; None if there is none."""
        signature = jit_stored.signature_of(arguments)
        folder = kernel_folder(self._function.__module__.rpartition(".")[2])
        if signature is None or folder is None:
            return None
        with _LOCK:
            if signature not in self._of_signature:
                loaded = jit_stored.load(folder, self._function.__name__, signature)
                if loaded is None:
                    return None
                self._of_signature[signature] = loaded
            self._loaded[jit_stored.key_of(arguments)] = self._of_signature[signature]
        return self._of_signature[signature]


def _use_numba() -> None:
    """Give all kernels of this process to numba, from now on."""
    with _LOCK:
        if not _DEFERRED:
            return
        from perikope.kernels import jit_numba

        compilation.prefers_stored = False
        for deferred in _DEFERRED:
            deferred.compile_with(jit_numba)
        # Numba finds the functions that a kernel calls among the names of its module.
        for module in [module for name, module in sys.modules.items() if name.startswith(f"{__package__}.")]:
            for name, value in list(vars(module).items()):
                if isinstance(value, _Deferred):
                    setattr(module, name, value.compiled)
        _DEFERRED.clear()


def _is_deferred() -> bool:
    return compilation.prefers_stored and jit_stored.is_allowed() and chosen_directory() is not None


def kernel(function: Any) -> Any:
    """Decorator that compiles a kernel."""
    if _is_deferred():
        return _StoredKernel(function)
    from perikope.kernels import jit_numba

    return jit_numba.kernel(function)


def inner(function: Any) -> Any:
    """Decorator of a function that only kernels call. Its code is cached with theirs.

    It cannot be called from Python, which halves the time to compile it.
    """
    if _is_deferred():
        return _Deferred(function, "inner")
    from perikope.kernels import jit_numba

    return jit_numba.inner(function)


def step(function: Any) -> Any:
    """Decorator of a step: a function whose body is copied into each kernel that calls it, before compilation.

    It is for functions that are called once, and for those that take NamedTuples of arrays. A real call would copy all
    fields and update their reference counts.
    """
    if _is_deferred():
        return _Deferred(function, "step")
    from perikope.kernels import jit_numba

    return jit_numba.step(function)
