"""Examples for other programs: SVMlight, one line an example, `grade qid:3 1:0.5 2:0.25 # document#passage`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from perikope.io.lines import replacing
from perikope.learning.examples import Group
from perikope.models.features import FEATURES, VERSION


def write_svmlight(path: str | os.PathLike[str], groups: Iterable[Group], qids: Sequence[str]) -> int:
    """Write examples, topic by topic; returns how many. The names of the features stand in front, as comments.

    Programs want whole numbers for topics: where an id is none, topics are numbered from 1 in the order of `qids`, and the id stands in
    the comment.
    """
    numbered = not all(qid.isascii() and qid.isdigit() for qid in qids)
    number = {qid: str(i) if numbered else qid for i, qid in enumerate(qids, 1)}
    lines = 0
    with replacing(path) as file:
        file.write(f"# features, version {VERSION}, each normalised over the candidate passages of its topic\n")
        for i, feature in enumerate(FEATURES.values(), 1):
            file.write(f"# {i} {feature.name}: {feature.meaning}\n")
        for group in groups:
            topic = f" {group.qid}" if numbered else ""
            for name, row, grade in zip(group.names, group.features.tolist(), group.grades.tolist(), strict=True):
                # 0 is left out, as the format has it; repr gives every number back exactly.
                values = "".join(f" {i}:{value!r}" for i, value in enumerate(row, 1) if value)
                file.write(f"{grade} qid:{number[group.qid]}{values} # {name}{topic}\n")
                lines += 1
    return lines
