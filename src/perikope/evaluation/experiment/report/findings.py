"""What all forms of the report say: figures, the best ones marked, with the letters of the systems they beat; how settings were chosen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome
from perikope.evaluation.measures.significance import compare, label
from perikope.evaluation.tuning.outcome import TuningOutcome

DECIMALS = 4

TESTS = {
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "mannwhitney": "Mann–Whitney U test",
    "randomisation": "randomisation test",
}
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini and Hochberg"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell of a table."""

    mean: float
    text: str
    is_best: bool
    """No other one of its column is printed with a higher figure."""
    beats: str = ""
    """The letters of the systems that it beats significantly."""


@dataclass(frozen=True, slots=True)
class Row:
    """A system in a table."""

    letter: str
    system: SystemOutcome
    figures: tuple[Figure, ...]
    """One a measure."""


@dataclass(frozen=True, slots=True)
class SweepTable:
    """The systems of a sweep."""

    label: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """The main measure in all sweeps, side by side."""

    measure: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    """Letter, name and figures of each system; None where a sweep does not have it. No letters where they differ between sweeps."""


@dataclass(frozen=True, slots=True)
class ExtraTable:
    """A table that an outcome has beside those of its sweeps, such as one over seeds."""

    title: str
    how: str
    """How to read it."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    """Letter, name and figures."""
    spread: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Values by name whose spread is drawn; none where it is empty."""
    measure: str = ""
    """Of what is drawn."""


@dataclass(frozen=True, slots=True)
class Findings:
    """An outcome, ready to be written in any form."""

    outcome: Outcome
    tables: tuple[SweepTable, ...]
    overview: Overview | None
    """None where there is one sweep only."""
    topics: int
    legend: str
    """How to read figures and letters."""
    extra: tuple[ExtraTable, ...] = ()


def find(outcome: Outcome, extra: Sequence[ExtraTable] = ()) -> Findings:
    """The tables of an outcome."""
    tables = tuple(_table(outcome, sweep) for sweep in outcome.sweeps)
    counts = {len(row.system.values[measure]) for table in tables for row in table.rows for measure in outcome.measures}
    legend = _legend(outcome, counts or {0}, any(table.rows for table in tables))
    return Findings(outcome, tables, _overview(outcome, tables), max(counts, default=0), legend, tuple(extra))


def _table(outcome: Outcome, sweep: Sweep) -> SweepTable:
    columns = [_figures(outcome, sweep, measure) for measure in outcome.measures]
    return SweepTable(
        sweep.label,
        tuple(Row(label(number), system, tuple(column[number] for column in columns)) for number, system in enumerate(sweep.systems)),
    )


def _figures(outcome: Outcome, sweep: Sweep, measure: str) -> list[Figure]:
    values = {system.name: system.values[measure] for system in sweep.systems}
    settings = outcome.comparison
    letters: Mapping[str, str] = {}
    if len(values) > 1 and all(values.values()):
        letters = compare(values, test=settings.test, correction=settings.correction, alpha=settings.alpha).letters
    means = [system.mean(measure) for system in sweep.systems]
    best = _best(means)
    return [
        Figure(mean, figure(mean), figure(mean) == best, ranges(letters.get(system.name, "")))
        for mean, system in zip(means, sweep.systems, strict=True)
    ]


def _best(means: Iterable[float]) -> str:
    # Compared as printed: of two figures that read the same, one in bold would look like a mistake.
    return figure(max(means, default=0.0))


def _overview(outcome: Outcome, tables: Sequence[SweepTable]) -> Overview | None:
    if len(tables) < 2 or not outcome.measures:
        return None
    columns = [{row.system.name: row.figures[0] for row in table.rows} for table in tables]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    if all(list(column) == names for column in columns):
        rows = tuple((label(number), name, tuple(column[name] for column in columns)) for number, name in enumerate(names))
    else:
        bare = [{name: replace(found, beats="") for name, found in column.items()} for column in columns]
        rows = tuple(("", name, tuple(column.get(name) for column in bare)) for name in names)
    return Overview(outcome.measures[0], tuple(table.label for table in tables), rows)


def _legend(outcome: Outcome, counts: Collection[int], is_compared: bool) -> str:
    if not is_compared:
        return "There are no systems."
    settings = outcome.comparison
    correction = CORRECTIONS.get(settings.correction)
    corrected = f"corrected for the number of pairs after {correction}" if correction else "not corrected for the number of pairs"
    fewest = f"{min(counts):,} to " if min(counts) < max(counts) else ""
    return (
        f"Means over {fewest}{counted(max(counts), 'topic')}; the best of each column is bold. Raised letters name the systems that a "
        f"figure beats significantly: {TESTS.get(settings.test, settings.test)}, two-tailed, p ≤ {settings.alpha:g}, {corrected}; "
        "a–d stands for a, b, c and d."
    )


def figure(value: float) -> str:
    """A mean as tables print it.

    >>> figure(0.12345), figure(-0.00001)
    ('0.1235', '0.0000')
    """
    text = f"{value:.{DECIMALS}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "topic"), counted(1200, "topic")
    ('1 topic', '1,200 topics')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ranges(letters: str) -> str:
    """Letters with three and more in a row written as a range: a system that beats eighteen needs no line of its own.

    >>> ranges("abcdf"), ranges("ab"), ranges("xyzABD"), ranges("Z(53)(54)")
    ('a–df', 'ab', 'x–BD', 'Z–(54)')
    """
    found = re.findall(r"\(\d+\)|.", letters)
    numbers = [_number(one) for one in found]
    parts, first = [], 0
    for last in range(len(found)):
        if last + 1 < len(found) and numbers[last + 1] == numbers[last] + 1:
            continue
        parts.append(f"{found[first]}–{found[last]}" if last - first > 1 else "".join(found[first : last + 1]))
        first = last + 1
    return "".join(parts)


def _number(letter: str) -> int:
    if letter.startswith("("):
        return int(letter[1:-1]) - 1
    return ord(letter) - ord("a") if letter.islower() else ord(letter) - ord("A") + 26


def value_text(value: object) -> str:
    """The value of a parameter, short.

    >>> value_text(0.30000000000000004), value_text(1000), value_text(("a", 0.5)), value_text(True)
    ('0.3', '1000', 'a, 0.5', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {value_text(one)}" for key, one in value.items())
    return ", ".join(map(value_text, value)) if isinstance(value, (tuple, list)) else str(value)


def chosen_text(chosen: Mapping[str, object]) -> str:
    """What was chosen, one parameter after the other.

    >>> chosen_text({"alpha": 0.3, "mu": 1000})
    'alpha = 0.3, mu = 1000'
    """
    return ", ".join(f"{name} = {value_text(value)}" for name, value in chosen.items()) or "nothing"


def tuning_lines(tuned: TuningOutcome) -> list[str]:
    """How settings were chosen, in words: one line for all training topics, and one a fold."""
    on = f" on {counted(tuned.topics, 'topic')}" if tuned.topics else ""
    tried = f"{counted(len(tuned.scores), 'setting')} tried for {tuned.measure}{on}"
    spread = f", from {figure(min(tuned.scores))} to {figure(max(tuned.scores))}" if tuned.scores else ""
    lines = [f"{tried}{spread}; the best: {chosen_text(tuned.chosen)}"]
    for number, fold in enumerate(tuned.folds, 1):
        lines.append(
            f"fold {number} ({counted(fold.topics, 'topic')}): {chosen_text(fold.chosen)}; "
            f"{figure(fold.training_score)} on the other folds, {figure(fold.score)} on its own"
        )
    return lines


def remarks(system: SystemOutcome) -> list[str]:
    """What is said of a system below its settings."""
    return [line for line in (*(tuning_lines(system.tuned) if system.tuned else ()), *system.notes) if clean(line)]


_UNSEEN = {"Cc", "Cs", "Co", "Cn"}
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069\u2028\u2029]")


def clean(text: str) -> str:
    """Text in one line, without what no form can show: control characters, halves of pairs, marks that turn the direction of what follows.

    >>> clean("a\\n b\\x00\\ud800")
    'a b\\ufffd\\ufffd'
    """
    joined = " ".join(text.split())
    return "".join("\ufffd" if unicodedata.category(one) in _UNSEEN or _TURNING.match(one) else one for one in joined)


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a description, which blank lines separate, each in one line."""
    return [cleaned for part in re.split(r"\n\s*\n", text) if (cleaned := clean(part))]
