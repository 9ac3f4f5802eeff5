"""Folds of topics, for cross-validation: each fold is measured with what was learned from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perikope.core.errors import UsageError
from perikope.core.names import document_name

Judgements = Mapping[str, Mapping[str, int]]


def fold_of_topic(qids: Sequence[str], folds: int, seed: int) -> dict[str, int]:
    """The fold of each topic, drawn at random; folds are even. The order of the topics does not matter."""
    if not 2 <= folds <= len(qids):
        raise UsageError(f"--folds must be from 2 to {len(qids)}, the number of topics, not {folds}")
    order = np.random.default_rng(seed).permutation(len(qids))
    by_name = sorted(qids)
    return {by_name[topic]: number % folds for number, topic in enumerate(order.tolist())}


def fold_of_documents(qids: Sequence[str], judgements: Judgements, folds: int, seed: int) -> dict[str, int]:
    """As `fold_of_topic`, but topics that share a relevant document are in the same fold.

    A passage that is relevant for a training topic and for a reported one could be recognised by its position and
    length alone.
    """
    groups: dict[str, list[str]] = {}
    for qid, first in group_of_topic(qids, judgements).items():
        groups.setdefault(first, []).append(qid)
    if not 2 <= folds <= len(groups):
        raise UsageError(
            f"--folds must be from 2 to {len(groups)}, not {folds}: this is the number of groups of topics that share no relevant "
            "document; cut by topics instead (--folds-by topics)"
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
    """The fold of each topic in the order of `qids`, as `fold_of_documents`; at most one fold per group."""
    groups = set(group_of_topic(qids, judgements).values())
    fold = fold_of_documents(qids, judgements, min(folds, len(groups)), seed)
    return [fold[qid] for qid in qids]


def group_of_topic(qids: Sequence[str], judgements: Judgements) -> dict[str, str]:
    """The group of each topic, named by its first topic: topics that share relevant documents, directly or not."""
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
