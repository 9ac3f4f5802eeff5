"""The report as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from perikope.evaluation.experiment.extras import Figure
from perikope.evaluation.experiment.report.extra_figures import figure_files
from perikope.evaluation.experiment.report.findings import Findings, SweepTable, remarks
from perikope.evaluation.experiment.report.tables import clean, paragraphs

_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "\\": "&#92;"}
"""Characters that are written as entities, because Markdown parsers treat backslashes before a bar differently."""


_NUMBERS = re.compile(r"[-+\d.,% ±]*")


def escape(text: str) -> str:
    r"""Escape a text so that no Markdown parser reads it as markup, anywhere in a line or a table.

    >>> print(escape("a_b | <b> *50%*"))
    a\_b &#124; &lt;b&gt; \*50%\*
    """
    escaped = re.sub(r"[&<>|\\]|([`*_\[\]~#$])", lambda match: "\\" + match[1] if match[1] else _NAMED[match[0]], clean(text))
    # Escaped because parsers turn an address into a link.
    escaped = re.sub(r"(?i)(://|www(?=\.))", lambda match: match[0].replace(":", "&#58;") if ":" in match[0] else "ww&#119;", escaped)
    # Escaped because a line that begins like a list, a rule or an underline would become one.
    return re.sub(r"^(\d+)([.)])|^([-+=])", lambda match: f"{match[1]}\\{match[2]}" if match[2] else f"\\{match[3]}", escaped)


def code(text: str) -> str:
    r"""A text as inline code, outside of tables.

    >>> print(code("plm(sigma=5)"), code("a `b`"))
    `plm(sigma=5)` `` a `b` ``
    """
    cleaned = clean(text)
    runs = {len(run) for run in re.findall("`+", cleaned)}
    fence = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
    # Parsers strip one space from each end if there is one at both ends and other text between them.
    padding = " " if "`" in (cleaned[:1], cleaned[-1:]) or (cleaned[:1] == cleaned[-1:] == " ") else ""
    return f"{fence}{padding}{cleaned}{padding}{fence}" if cleaned else ""


def markdown_report(findings: Findings) -> str:
    """The Markdown source of the whole report."""
    outcome = findings.outcome
    blocks = [f"# {escape(outcome.title)}", *map(escape, paragraphs(outcome.description)), escape(findings.legend)]
    if findings.overview is not None:
        overview = findings.overview
        rows = [[letter, escape(name), *map(_cell, figures)] for letter, name, figures in overview.rows]
        blocks += [f"## {escape(overview.measure)} in all sweeps", _table(["", "system", *map(escape, overview.labels)], rows)]
    for table in findings.tables:
        rows = [[row.letter, escape(row.system.name), *map(_cell, row.figures)] for row in table.rows]
        blocks += [f"## {escape(table.label)}", _table(["", "system", *map(escape, outcome.measures)], rows)]
    for extra in findings.extra:
        rows = [[letter, escape(name), *map(_cell, figures)] for letter, name, figures in extra.rows]
        blocks += [
            f"## {escape(extra.title)}",
            escape(extra.how),
            _table(["", escape(extra.head.lower()), *map(escape, extra.columns)], rows),
        ]
    for drawn, file in zip(findings.figures, figure_files(findings.figures), strict=True):
        blocks += [f"## {escape(drawn.title)}", *([escape(drawn.caption)] if drawn.caption else []), f"![{escape(drawn.y)}]({file})"]
    for table in findings.tables:
        blocks += [f"## Settings: {escape(table.label)}", "\n".join(_settings(table))] if table.rows else []
    facts = [[escape(name), escape(value)] for name, value in outcome.facts.items()]
    blocks += ["## What the figures depend on", _table(["", ""], facts)] if facts else []
    return "\n\n".join(blocks) + "\n"


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    # In a cell, a number is no markup, although a line that begins with one could be a list.
    printed = figure.text if _NUMBERS.fullmatch(figure.text) else escape(figure.text)
    text = f"**{printed}**" if figure.is_best else printed
    return f"{text}<sup>{escape(figure.beats)}</sup>" if figure.beats else text


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    # Figures are left-aligned because the raised letters after them differ in length.
    rule = [":--"] * len(header)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def _settings(table: SweepTable) -> Iterable[str]:
    for row in table.rows:
        yield f"- {row.letter} **{escape(row.system.name)}**: {code(row.system.settings)}"
        for line in remarks(row.system):
            yield f"  - {escape(line)}"
