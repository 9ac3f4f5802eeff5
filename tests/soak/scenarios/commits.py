"""Many commits with a refresh after each, in one process: what the process and the index hold stays flat."""

from __future__ import annotations

import sys

from perikope.search.facade import Index
from tests.durability import history
from tests.soak.resources import NOISE, Held, measure
from tests.soak.scenario import Trial, defect, scenario

MILESTONES = (100, 1_000, 10_000)
MOST_TIMES_MAPPED = 4
"""How often a file may be mapped: by the index that commits and by the reader, each with the snapshot before it. More
is a snapshot that nobody uses. It may be freed much later, so that what is held goes up and down and has no trend."""


@scenario("commits", most=10_000, reduced=50, seconds=600)
def commits(trial: Trial) -> None:
    """One process makes up to 10,000 commits, refreshing a second index after each; nothing that it holds grows."""
    folder = trial.folder / "index"
    index = Index.create(folder)
    history.make_commit(index, 1)
    reader = Index.open(folder)
    history.answers(reader)  # loads the kernels
    while trial.goes_on():
        trial.did()
        commit = trial.operations + 1
        trial.doing(f"commit {commit}")
        history.make_commit(index, commit)
        refresh(reader)
        found = history.verify(reader)
        if found != commit:
            trial.fail(f"commit {found} was seen after commit {commit}")
        reader.search(history.QUERY, model="bm25", k=3)
        trial.watch(folder)
        files, mapped = len(list(folder.glob("*.columns"))), measure(folder).mappings
        if mapped > MOST_TIMES_MAPPED * files + NOISE.mappings:
            trial.fail(f"{mapped:.0f} mappings of an index of {files} files", cause="old snapshots stay mapped")
        if trial.operations in MILESTONES:
            trial.note(f"after {trial.operations} commits: {described(measure(folder))}")
    trial.require_flat()


def described(held: Held) -> str:
    """What a sample says, in words."""
    return f"{held.descriptors:.0f} descriptors, {held.mappings:.0f} mappings, {held.memory:.0f} MB of memory, {held.disk:.0f} KB on disk"


def refresh(index: Index) -> None:
    """Refresh an index."""
    index.refresh()


@defect(commits, "a reader keeps every snapshot", reported="mappings grow")
def _leak() -> None:
    kept = []

    def keep(index: Index) -> None:
        kept.append(index.snapshot)
        index.refresh()

    sys.modules[__name__].refresh = keep  # type: ignore[attr-defined]


@defect(commits, "files of merged segments are not removed", reported="disk grow")
def _hoard() -> None:
    from perikope.core import files

    files.remove = lambda path: None
    files.remove_unless_held = lambda path: True


@defect(commits, "a commit is not seen", reported="commit 1 was seen after")
def _stay() -> None:
    sys.modules[__name__].refresh = lambda index: None  # type: ignore[attr-defined]
