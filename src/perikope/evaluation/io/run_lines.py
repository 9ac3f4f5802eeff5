"""The lines of TREC runs, checked and written in bulk."""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Floats, Floats32
from perikope.core.errors import UsageError
from perikope.core.name_lines import NameLines
from perikope.evaluation.io.scores import check_column, falling_array
from perikope.kernels.names import falling_scores, write_lines
from perikope.kernels.strings import are_distinct


def falling_by_kernel(exact: Floats) -> Floats32:
    """The same as `falling_array`, by a kernel."""
    scores: Floats32 = falling_scores(exact)
    # `falling_array` says what is wrong with scores that are not finite, or cannot fall any further.
    return scores if np.isfinite(exact).all() and np.isfinite(scores[-1:]).all() else falling_array(exact)


def check_names(lines: NameLines, qid: str) -> None:
    """Raise an error if a name of a ranking occurs twice, is empty or holds white space."""
    # Encoded names are neither. If one looks like it, all are checked in full.
    if lines.are_checked or are_distinct(lines.text, lines.ends):
        return
    seen: set[str] = set()
    for name in lines.pieces():
        check_column("name", name)
        if name in seen:
            raise UsageError(f"{name!r} occurs twice in the list of query {qid!r}")
        seen.add(name)


def lines_of_ranking(qid: str, names: NameLines, scores: Floats32, tag: str) -> str:
    """The lines `qid Q0 name rank score tag` of a ranking, with ranks from 1."""
    head, tail = f"{qid} Q0 ", f" {tag}\n"
    text, certain = write_lines(_bytes(head), names.text, names.ends, scores, _bytes(tail))
    if certain:
        return text.tobytes().decode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    # Nine significant digits restore every float32 exactly.
    ranked = enumerate(zip(names.pieces(), scores.tolist(), strict=True), start=1)
    return "".join([f"{head}{name} {rank} {score:.9g}{tail}" for rank, (name, score) in ranked])


def _bytes(text: str) -> Bytes:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
