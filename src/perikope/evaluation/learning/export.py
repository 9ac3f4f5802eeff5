"""Writes training examples for other programs, one per line, as SVMlight, CSV or TSV.

A line of SVMlight is `grade qid:3 1:0.5 2:0.25 # document#passage`.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence

from perikope.browse.models.features import FEATURES, VERSION
from perikope.core.files import replacing
from perikope.evaluation.learning.examples import Group

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def write_examples(path: str | os.PathLike[str], groups: Iterable[Group], qids: Sequence[str]) -> int:
    """Write examples, topic by topic, and return their number.

    The suffix of the file name decides the format: CSV (`.csv`), TSV (`.tsv`), otherwise SVMlight. `qids` has the ids
    of all topics.
    """
    delimiter = _DELIMITERS.get(os.path.splitext(os.fspath(path).lower().removesuffix(".gz"))[1])
    return write_svmlight(path, groups, qids) if delimiter is None else write_delimited(path, groups, delimiter)


def write_delimited(path: str | os.PathLike[str], groups: Iterable[Group], delimiter: str = ",") -> int:
    """Write a header and one line per example, and return the number of examples.

    The columns are `qid`, `name`, `grade`, then one column per feature.
    """
    lines = 0
    with replacing(path) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(["qid", "name", "grade", *FEATURES])
        for group in groups:
            for name, row, grade in zip(group.names, group.features.tolist(), group.grades.tolist(), strict=True):
                writer.writerow([group.qid, name, grade, *row])
                lines += 1
    return lines


def write_svmlight(path: str | os.PathLike[str], groups: Iterable[Group], qids: Sequence[str]) -> int:
    """Write examples as SVMlight, topic by topic, and return their number.

    Comments at the top of the file name the features. Topic ids of SVMlight are whole numbers. If an id of `qids` is
    not a whole number, topics are numbered from 1 in the order of `qids`, and the comment of each line has the id.
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
                # Zeros are left out, as the format prescribes; repr writes numbers exactly.
                values = "".join(f" {i}:{value!r}" for i, value in enumerate(row, 1) if value)
                file.write(f"{grade} qid:{number[group.qid]}{values} # {name}{topic}\n")
                lines += 1
    return lines
