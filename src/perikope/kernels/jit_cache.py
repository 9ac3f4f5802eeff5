"""Where compiled kernels are stored: a private folder of the user, with one folder per content of a module.

The name of a module's folder contains a digest of its source, of all modules that it imports, and of the versions of
Python, numba and numpy. So all environments of a user share kernels, and a change of any of these makes a new folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from perikope.core.user_cache import user_caches

KEPT = 8
"""The number of folders that are kept per module: those that were written last."""
_IMPORT = re.compile(r"^from perikope\.([\w.]+) import", re.MULTILINE)
_SOURCE = Path(__file__).parents[1]
_COMPILER = "jit_numba.py"
"""The module that has the options of compilation; it counts as part of every kernel."""


def cache_directory() -> str | None:
    """A private folder of this user for compiled code, or None if no private folder can be written to."""
    candidates = user_caches()
    candidates.append(Path(tempfile.gettempdir()) / f"perikope-{_user()}")
    for candidate in candidates:
        folder = candidate / "kernels"
        try:
            candidate.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
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


@cache
def chosen_directory() -> str | None:
    """The folder that this process uses, see `cache_directory`. Warns if it is not the one that the user asked for."""
    directory = cache_directory()
    asked = os.environ.get("PERIKOPE_CACHE")
    if directory is None:
        warnings.warn("perikope: no writable cache folder, so each process compiles kernels again; set PERIKOPE_CACHE", stacklevel=2)
    elif asked and Path(asked) / "perikope" not in Path(directory).parents:
        warnings.warn(
            f"perikope: PERIKOPE_CACHE={asked[:100]} cannot be used, since it is not writable or others may write to it; kernels are "
            f"cached in {directory}",
            stacklevel=2,
        )
    return directory


@cache
def kernel_folder(module: str) -> Path | None:
    """The folder for the kernels of a module of this package, which need not exist; None if there is none."""
    directory = chosen_directory()
    digest = hashlib.blake2b(digest_size=12)
    try:
        if directory is None:
            return None
        for part in _environment():
            digest.update(part + b"\0")
        for path in sorted(_sources(_SOURCE / "kernels" / f"{module}.py", {})):
            digest.update(path.name.encode() + b"\0" + _read(path) + b"\0")
    except OSError:  # the modules are in an archive, for example
        return None
    return Path(directory, f"{module}-{digest.hexdigest()}")


def make_kernel_folder(folder: Path) -> None:
    """Make the folder of a module, and remove the oldest folders of the same module."""
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    module = folder.name.rpartition("-")[0]
    with contextlib.suppress(OSError):  # another process removes them at the same time
        others = sorted(folder.parent.glob(f"{module}-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)


def package_folder(package: str) -> Path:
    """The folder of an installed package, which is not imported for this. Raises `OSError` if it has none."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(package)
    return Path(found.submodule_search_locations[0])


@cache
def _environment() -> tuple[bytes, ...]:
    """What compiled code depends on besides its source and the processor."""
    packages = ((package, "_version.py") for package in ("numba", "llvmlite")), (("numpy", "version.py"),)
    versions = (_read(package_folder(package) / name) for group in packages for package, name in group)
    return sys.version.encode(), sys.platform.encode(), str(sys.maxsize).encode(), *versions, _read(Path(__file__).parent / _COMPILER)


@cache
def _read(path: Path) -> bytes:
    return path.read_bytes()


def _sources(path: Path, found: dict[Path, None]) -> dict[Path, None]:
    """The file of a module and those of all modules of perikope that it imports, directly or not."""
    if path not in found:
        found[path] = None
        for name in _IMPORT.findall(_read(path).decode("utf-8")):
            imported = _SOURCE.joinpath(*name.split(".")).with_suffix(".py")
            if not imported.name.startswith("jit") and imported.is_file():
                _sources(imported, found)
    return found
