"""Kernels as stored machine code, which is loaded and called without importing numba.

Numba compiles a kernel into an object file with one function that takes Python arguments. The import of numba takes
0.15 to 0.6 s, whereas llvmlite loads such a file in a millisecond. So whenever numba has compiled a kernel or has
loaded it from its cache, the object file is also stored in a file of our own (`store`), under the types of its
arguments. `load` reads it back. If anything is unusual (other versions, another processor, types that are not listed
here, a damaged file), there is no stored code, and numba does the work.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perikope.core import files
from perikope.kernels.jit_cache import package_folder

_MAGIC = b"perikope kernel 1\n"
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
"""Settings of numba that do not change what it compiles."""


class StoredCode(NamedTuple):
    """The machine code of a kernel for one signature."""

    code: bytes
    """An object file."""
    function: str
    """The symbol of the function that takes Python objects."""
    environments: Mapping[str, Sequence[str]]
    """The symbols of numba's environments, that of the kernel first, and the dtypes in each."""


@cache
def is_allowed() -> bool:
    """Whether numba has its default settings in this process, so that stored code is what it would compile.

    Only Linux on x86-64 has been tested; everywhere else numba loads its own cache.
    """
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return False
    changed = any(name.startswith("NUMBA_") and name not in _HARMLESS for name in os.environ)
    return not changed and not os.path.exists(".numba_config.yaml")


def signature_of(arguments: Iterable[object]) -> str | None:
    """The types of arguments as numba distinguishes them; None if one of them is not listed here."""
    names = []
    for argument in arguments:
        name = _type_of(argument)
        if name is None:
            return None
        names.append(name)
    return ",".join(names)


def key_of(arguments: Iterable[Any]) -> object:
    """A key that only arguments of the same types have in common. It takes a tenth of the time of `signature_of`.

    Arguments of one type may have several keys. Integers without a type in a signature have no key in common with
    others.
    """
    key: list[object] = []
    for value in arguments:
        kind = type(value)
        if kind is np.ndarray:
            key += value.dtype, value.ndim, value.flags.num
        elif kind is int:
            key.append(kind if -(1 << 63) <= value < 1 << 63 else value)
        elif isinstance(value, tuple):
            key += kind, len(value), key_of(value)
        else:
            # Types of numpy's scalars have one dtype each; arrays of other classes are told apart by their type names.
            key.append(_type_of(value))
    return tuple(key)


def _type_of(value: Any) -> str | None:
    kind = type(value)
    if kind is np.ndarray or kind is np.memmap:
        return _type_of_array(value)
    if kind is int:
        return "i8" if -(1 << 63) <= value < 1 << 63 else None
    if kind is float:
        return "f8"
    if kind is bool:
        return "b1"
    if isinstance(value, tuple):
        inside = signature_of(value)
        return None if inside is None else f"{tuple_name(kind)}({inside})"
    if isinstance(value, np.generic) and value.dtype.kind in "iufb":
        return f"{value.dtype.kind}{value.dtype.itemsize}"
    return None


def tuple_name(kind: type) -> str:
    """The name of a class of tuples in a signature; empty for plain tuples."""
    return "" if kind is tuple else f"{kind.__module__}.{kind.__qualname__}"


def _type_of_array(array: Any) -> str | None:
    flags, dtype = array.flags, array.dtype
    if not flags.aligned or dtype.kind not in "iufbc" or not dtype.isnative:
        return None
    return array_name(dtype, array.ndim, "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A", flags.writeable)


def array_name(dtype: Any, dimensions: int, layout: str, writeable: bool) -> str:
    """The name of a type of arrays in a signature."""
    return f"{dtype.kind}{dtype.itemsize}[{dimensions}{layout}{'' if writeable else 'r'}]"


def store(folder: Path, kernel: str, signature: str, stored: StoredCode) -> None:
    """Store machine code in a folder, so that it becomes visible at once and whole."""
    head = {"processor": _processor(), "signature": signature, "function": stored.function, "environments": stored.environments}
    written = json.dumps(head).encode()
    content = len(written).to_bytes(8, "little") + written + stored.code
    files.write_cached(_path(folder, kernel, signature), _MAGIC + zlib.crc32(content).to_bytes(4, "little") + content)


def is_stored(folder: Path, kernel: str, signature: str) -> bool:
    """Whether machine code is stored for a signature, damaged or not."""
    return _path(folder, kernel, signature).exists()


def load(folder: Path, kernel: str, signature: str) -> Callable[..., Any] | None:
    """The function of a kernel from its stored code; None if there is none, or if anything about it is unexpected."""
    try:
        stored = _read(_path(folder, kernel, signature), signature)
        return _Loader.get().function(kernel, stored)
    except Exception:  # whatever another version of numba or llvmlite raises: numba itself is then used
        return None


def _read(path: Path, signature: str) -> StoredCode:
    data = path.read_bytes()
    start = len(_MAGIC) + 4
    content = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or zlib.crc32(content) != int.from_bytes(data[len(_MAGIC) : start], "little"):
        raise ValueError("damaged")
    size = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + size])
    if head["processor"] != _processor() or head["signature"] != signature:
        raise ValueError("made for another processor, or for other types")
    return StoredCode(content[8 + size :], head["function"], head["environments"])


def _path(folder: Path, kernel: str, signature: str) -> Path:
    digest = hashlib.blake2b(f"{_processor()} {signature}".encode(), digest_size=8).hexdigest()
    return folder / f"{kernel}-{digest}.code"


@cache
def _processor() -> str:
    """The processor and its features, in the words of the compiler."""
    import llvmlite.binding as llvm

    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


class _Loader:
    """Links object files into this process, with the runtime of numba: three extension modules."""

    _instance: _Loader | None = None

    @classmethod
    def get(cls) -> _Loader:
        """The loader of this process."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self._functions = _extension("numba._dynfunc")
        self._kept: list[object] = []
        """What the code refers to by address."""
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for name, address in _extension("numba.core.runtime._nrt_python").c_helpers.items():
            llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        for name, address in _extension("numba._helperlib").c_helpers.items():
            llvm.add_symbol(f"numba_{name}", address)
        llvm.add_symbol("numba_unpickle", ctypes.cast(_unpickle, ctypes.c_void_p).value)
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._object = llvm.ObjectFileRef

    def function(self, kernel: str, stored: StoredCode) -> Callable[..., Any]:
        """Link the code of a kernel. Raises `LookupError` if it lacks a symbol."""
        self._engine.add_object_file(self._object.from_data(stored.code))
        self._engine.finalize_object()
        environments = []
        for symbol, dtypes in stored.environments.items():
            environment = self._functions.Environment({})
            environment.consts.extend(map(np.dtype, dtypes))
            address = self._engine.get_global_value_address(symbol)
            if not address:
                raise LookupError(symbol)
            ctypes.c_void_p.from_address(address).value = id(environment)
            environments.append(environment)
        self._kept.append(environments)
        address = self._engine.get_function_address(stored.function)
        if not address:
            raise LookupError(stored.function)
        made: Callable[..., Any] = self._functions.make_function(sys.modules[__name__], kernel, "", address, environments[0], (self,))
        return made


def _extension(name: str) -> Any:
    """An extension module of numba, without its package. Numba later imports the same module in the usual way."""
    package, *folders, _ = name.split(".")
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.machinery.PathFinder.find_spec(name, [str(package_folder(package).joinpath(*folders))])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(name, None)
    return module


_UNPICKLED: dict[int, object] = {}
"""What was unpickled, by its address. Code is never unloaded, so its constants stay where they are."""


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def _unpickle(data: int, size: int, _: int) -> object:
    """What numba's function of this name returns: a class or an exception that the code holds pickled."""
    if data not in _UNPICKLED:
        _UNPICKLED[data] = pickle.loads(ctypes.string_at(data, size))
    return _UNPICKLED[data]
