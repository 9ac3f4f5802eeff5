"""Checks the stores of vectors of an index: all their files are read. This needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perikope.core.errors import InputError
from perikope.core.locks import LOCK_FILE
from perikope.index.vector_stores import FOLDER, MANIFEST
from perikope.neural.stores.codebook import MAKE_AGAIN
from perikope.neural.stores.manifest import unknown_files
from perikope.neural.stores.store import VectorStore


@dataclass(frozen=True, slots=True)
class StoresReport:
    """The result of `check_stores`."""

    stores: int
    """The number of stores."""
    problems: tuple[str, ...]
    """One line per problem; empty if all stores are sound."""
    unknown_files: tuple[str, ...]
    """Files and folders that belong to no store, relative to the index. An interrupted update may have left them; the
    next update of the store removes those."""


def check_stores(index: Path) -> StoresReport:
    """Check all files of all stores of an index. Damage is reported and raises no error."""
    count, problems, unknown = 0, list[str](), list[str]()
    try:
        entries = sorted((index / FOLDER).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        entries = []
    except OSError as error:
        return StoresReport(0, (f"cannot read {index / FOLDER}: {error.strerror}",), ())
    for folder in entries:
        try:
            if not folder.is_dir():
                found = [folder]
            elif (folder / MANIFEST).exists():
                count += 1
                problems_of_store, found = _check(folder)
                problems += problems_of_store
            else:
                # The first update was interrupted. The lock file alone is nothing to report.
                found = [path for path in sorted(folder.iterdir()) if path.name != LOCK_FILE]
        except OSError as error:
            problems.append(f"cannot read {folder}: {error.strerror}")
            continue
        unknown += [path.relative_to(index).as_posix() for path in found]
    return StoresReport(count, tuple(problems), tuple(unknown))


def _check(folder: Path) -> tuple[list[str], list[Path]]:
    """The problems of a store, and the files that do not belong to it."""
    while True:
        try:
            store = VectorStore(folder)
        except InputError as error:
            return [str(error)], []
        wrong = store.damaged_files()
        unknown = unknown_files(folder, store.manifest)
        # If the store was updated meanwhile, files of the checked state may be gone: check the new one.
        if (not wrong and not unknown) or _is_current(store):
            problems = [f"{folder / file}: is damaged or missing" for file in wrong]
            return problems + ([f"{folder}: {MAKE_AGAIN}"] if wrong else []), unknown


def _is_current(store: VectorStore) -> bool:
    try:
        return VectorStore(store.folder).manifest == store.manifest
    except InputError:
        return False
