"""Folds of topics for cross-validation. Each fold is measured with parameters learned from the other folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perikope.core.errors import UsageError
from perikope.core.names import document_name

Judgements = Mapping[str, Mapping[str, int]]


def fold_of_topic(qids: Sequence[str], folds: int, seed: int) -> dict[str, int]:
    """Assign topics to folds at random. Returns the fold of each topic, from 0, by id.

    The sizes of folds differ by at most 1. The order of `qids` does not matter.
    """
    if not 2 <= folds <= len(qids):
        raise UsageError(f"--folds must be from 2 to {len(qids)}, the number of topics, not {folds}")
    order = np.random.default_rng(seed).permutation(len(qids))
    by_name = sorted(qids)
    return {by_name[topic]: number % folds for number, topic in enumerate(order.tolist())}


def fold_of_documents(qids: Sequence[str], judgements: Judgements, folds: int, seed: int) -> dict[str, int]:
    """Assign topics to folds so that topics that share a relevant document are in the same fold.

    Returns the fold of each topic, from 0, by id. If a passage were relevant to a training topic and to a reported
    topic, a learned ranker could recognise the passage by its position and length alone.
    """
    groups: dict[str, list[str]] = {}
    for qid, first in group_of_topic(qids, judgements).items():
        groups.setdefault(first, []).append(qid)
    if not 2 <= folds <= len(groups):
        raise UsageError(
            f"--folds must be from 2 to {len(groups)}, not {folds}, because topics that share a relevant document stay together; "
            "or divide by topics (--folds-by topics)"
        )
    shuffled = [sorted(groups)[i] for i in np.random.default_rng(seed).permutation(len(groups)).tolist()]
    fold: dict[str, int] = {}
    sizes = [0] * folds
    for name in sorted(shuffled, key=lambda name: -len(groups[name])):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += len(groups[name])
        fold |= dict.fromkeys(groups[name], smallest)
    return fold


def fold_of_groups(qids: Sequence[str], judgements: Judgements, folds: int, seed: int) -> list[int]:
    """The fold of each topic by `fold_of_documents`, as a list in the order of `qids`.

    There are fewer than `folds` folds if there are fewer groups of topics that share relevant documents.
    """
    groups = set(group_of_topic(qids, judgements).values())
    fold = fold_of_documents(qids, judgements, min(folds, len(groups)), seed)
    return [fold[qid] for qid in qids]


def group_of_topic(qids: Sequence[str], judgements: Judgements) -> dict[str, str]:
    """The group of each topic, by id. Topics that share a relevant document, directly or through others, form a group.

    A group is named by the smallest of its topic ids.
    """
    leader = {qid: qid for qid in sorted(qids)}

    def lead(qid: str) -> str:
        while leader[qid] != qid:
            qid = leader[qid]
        return qid

    first: dict[str, str] = {}
    for qid in leader:
        for name, grade in sorted(judgements.get(qid, {}).items()):
            if grade > 0:
                first_leader, second_leader = lead(qid), lead(first.setdefault(document_name(name), qid))
                leader[max(first_leader, second_leader)] = min(first_leader, second_leader)
    return {qid: lead(qid) for qid in leader}
