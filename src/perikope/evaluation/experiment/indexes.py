"""Opens the indexes of an experiment's collections. Builds an index if the plan names documents instead of one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from perikope import __version__
from perikope.build.indexing import build
from perikope.core.errors import UsageError
from perikope.evaluation.experiment.plan import COLLECTION, Plan
from perikope.evaluation.experiment.state import State, digest, file_digest
from perikope.search.facade import Index

OnProgress = Callable[[str, int, int], None]
"""Called with the stage, the number of finished tasks and the number of all tasks."""


def check_collections(plan: Plan) -> None:
    """Raise an error if an index, document, topic or judgement file that the plan names does not exist."""
    for collection in plan.collections.values():
        if collection.index is not None:
            with plan.reading(collection.table, "index", "index"):
                Index.open(collection.index)
        for path in collection.documents:
            with plan.reading(collection.table, "documents", "documents"):
                if not path.exists():
                    raise UsageError(f"there is no file or folder {path} to index")
        for topics in collection.topics.values() if plan.kind else ():
            # Reported topics are read before anything runs. Other topics are read later, when rankers are trained.
            for key, file, option in zip((topics.location[1], "judgements"), (topics.file, topics.judgements), topics.options, strict=True):
                with plan.reading(topics.location[0], key, option):
                    if not file.startswith("irds:") and not Path(file).exists():
                        raise UsageError(f"there is no file {file}")


def open_index(plan: Plan, name: str, folder: Path, on_progress: OnProgress) -> Index:
    """The index of a collection. If the plan names documents, the index is built in the folder of the results.

    An existing index is reused if the documents, the settings and the version of the program are unchanged.
    """
    collection = plan.collections[name]
    if collection.index is not None:
        return Index.open(collection.index)
    path, state = index_folder(folder, name), State(folder, state_of_index(name))
    sources = {str(document): _files_digest(document) for document in collection.documents}
    settings = {key: value for key, value in asdict(collection.build).items() if key not in ("memory", "workers", "wait")}
    wanted = digest([__version__, sorted(sources.values()), settings])
    if state.read("made") == wanted:
        return Index.open(path)
    shutil.rmtree(path, ignore_errors=True)
    stage = "index" if name == COLLECTION else f"index of {name}"
    on_progress(stage, 0, 1)
    # One process builds the index, so that its segments do not depend on the number of cores.
    with plan.reading(collection.table, "documents", "documents"):
        report = build(str(path), list(sources), replace(collection.build, workers=1))
    if report.skipped:
        raise UsageError(f"some documents cannot be read; repair or remove them: {report.skipped[0]}")
    languages = collection.build.languages
    if languages and not (report.passages and set(languages).intersection(Index.open(path).languages)):
        wanted = ", ".join(languages)
        raise plan.wrong(collection.table, f"languages is wrong: no text of the documents is in {wanted}; name other languages")
    if not report.passages:
        raise plan.wrong(collection.table, f"segment = {collection.build.segment!r} leaves no passage of the documents; choose another")
    state.write("made", wanted)
    on_progress(stage, 1, 1)
    return Index.open(path)


def index_folder(folder: Path, name: str) -> Path:
    """The folder of the index that is built for a collection, inside the folder of the results."""
    return folder / "index" if name == COLLECTION else folder / "indexes" / name


def state_of_index(name: str) -> str:
    """The key of the `State` that stores the fingerprint of a built index."""
    return "index" if name == COLLECTION else f"index-{digest(name)[:16]}"


def _files_digest(path: Path) -> str:
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return digest([[str(file.relative_to(path)), file_digest(file)] for file in files])
