"""The report as one self-contained HTML page, which loads nothing from other files or the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources

from perikope.evaluation.experiment.extras import ExtraFigure, ExtraTable, Figure
from perikope.evaluation.experiment.report.drawing import escape, name_of
from perikope.evaluation.experiment.report.extra_figures import figure_html
from perikope.evaluation.experiment.report.findings import Findings, Overview, SweepTable, remarks
from perikope.evaluation.experiment.report.plots import box_plots, curve_plot, difference_plots, spread_plots, tuning_plots
from perikope.evaluation.experiment.report.tables import counted, paragraphs


def html_report(findings: Findings) -> str:
    """The HTML source of the whole report."""
    outcome = findings.outcome
    style, script = _file("page.css"), _file("page.js")
    # The policy lets the browser load nothing and run only the script below, whatever a name contains.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    sections = [*_overview(findings.overview)]
    for number, table in enumerate(findings.tables, 1):
        sections += _sweep(table, f"sweep-{number}", findings)
    for number, extra in enumerate(findings.extra, 1):
        sections += _extra(extra, f"table-{number}")
    sections += _figures(findings.figures)
    sections += _facts(outcome.facts.items())
    links = [("overview", "Overview")] if findings.overview is not None else []
    links += [(f"sweep-{number}", table.label) for number, table in enumerate(findings.tables, 1)]
    links += [(f"table-{number}", extra.title) for number, extra in enumerate(findings.extra, 1)]
    links += [("figures", "Figures")] if findings.figures else []
    links += [("facts", "Facts")] if outcome.facts else []
    return "\n".join([
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(outcome.title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        "<header>",
        f"<h1>{escape(outcome.title)}</h1>",
        *(f"<p>{escape(part)}</p>" for part in paragraphs(outcome.description)),
        f'<ul class="sizes">{"".join(f"<li>{size}</li>" for size in _sizes(findings))}</ul>',
        f'<p class="legend-text">{escape(findings.legend)}</p>',
        "</header>",
        "<nav>",
        *(f'<a href="#{anchor}">{escape(text)}</a>' for anchor, text in links),
        "</nav>",
        "<main>",
        *sections,
        "</main>",
        f"<script>{script}</script>",
        "</body>",
        "</html>",
        "",
    ])  # fmt: skip


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _sizes(findings: Findings) -> Iterable[str]:
    systems = max((len(table.rows) for table in findings.tables), default=0)
    yield counted(systems, "system")
    yield from map(escape, findings.topics)
    yield counted(len(findings.outcome.measures), "measure")
    if len(findings.tables) > 1:
        yield counted(len(findings.tables), "sweep")


def _overview(overview: Overview | None) -> Iterable[str]:
    if overview is None:
        return
    rows = (_row(letter, name, figures) for letter, name, figures in overview.rows)
    yield f'<section id="overview"><h2>{escape(overview.measure)} in all sweeps</h2>'
    yield _table(overview.labels, rows)
    yield "</section>"


def _sweep(table: SweepTable, anchor: str, findings: Findings) -> Iterable[str]:
    measures = findings.outcome.measures
    yield f'<section id="{anchor}"><h2>{escape(table.label)}</h2>'
    if not table.rows or not measures:
        yield "<p>There are no figures.</p></section>"
        return
    yield _table(measures, (_row(row.letter, row.system.name, row.figures) for row in table.rows))
    main, first = measures[0], table.rows[0]
    if first.system.values[main]:
        yield f"<h3>{escape(main)} by topic</h3>"
        yield (
            '<p class="how">Box: the middle half of the topics, with the median; whiskers reach the last topic within 1.5 times the box; '
            "small dots lie beyond, the large one is the mean.</p>"
        )
        yield box_plots(table.rows, main)
    if len(table.rows) > 1 and first.system.values[main]:
        yield f"<h3>{escape(main)} against {escape(first.system.name)}, topic by topic</h3>"
        yield '<p class="how">One bar per topic, sorted: what a system gains or loses against the first one.</p>'
        yield difference_plots(table.rows, main)
    if all(row.system.curve for row in table.rows) and (curves := curve_plot(table.rows)):
        yield "<h3>Precision and recall</h3>"
        yield '<p class="how">Interpolated precision, the mean over topics. The first system and the best ones have colours.</p>'
        yield curves
    tuned = "".join(tuning_plots(row, row.system.tuned) for row in table.rows if row.system.tuned is not None)
    if tuned:
        yield "<h3>Tuning</h3>"
        yield (
            '<p class="how">The mean over all training topics of every setting that was tried; the best is marked. Where more than two '
            "parameters were tuned, or not in all pairs: the best score by the value of each.</p>"
        )
        yield f'<div class="panels wide">{tuned}</div>'
    yield from _settings(table)
    yield "</section>"


def _extra(table: ExtraTable, anchor: str) -> Iterable[str]:
    yield f'<section id="{anchor}"><h2>{escape(table.title)}</h2><p class="how">{escape(table.how)}</p>'
    yield _table(table.columns, (_row(letter, name, figures) for letter, name, figures in table.rows), table.head)
    for measure, values in table.spread.items():
        yield spread_plots(values, measure)
    yield "</section>"


def _figures(figures: Sequence[ExtraFigure]) -> Iterable[str]:
    if figures:
        yield '<section id="figures"><h2>Figures</h2>'
        for drawn in figures:
            yield f"<h3>{escape(drawn.title)}</h3>"
            yield f'<p class="how">{escape(drawn.caption)}</p>' if drawn.caption else ""
            yield figure_html(drawn)
        yield "</section>"


def _table(columns: Sequence[str], rows: Iterable[str], head: str = "System") -> str:
    """The HTML of a table. A click on the heading of a column sorts the table."""
    heads = f'<td></td><th scope="col" class="text">{escape(head)}</th>' + "".join(
        f'<th scope="col">{name_of(column)}</th>' for column in columns
    )
    body = "\n".join(rows)
    return f'<div class="scroll" tabindex="0"><table class="figures"><thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _row(letter: str, name: str, figures: Iterable[Figure | None]) -> str:
    return f'<tr><td class="letter">{letter}</td><th scope="row" class="name">{name_of(name)}</th>{"".join(map(_cell, figures))}</tr>'


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "<td></td>"
    text = f"<b>{escape(figure.text)}</b>" if figure.is_best else escape(figure.text)
    beats = f"<sup>{escape(figure.beats)}</sup>" if figure.beats else ""
    return f'<td data-value="{figure.mean!r}">{text}{beats}</td>'


def _settings(table: SweepTable) -> Iterable[str]:
    yield "<h3>Settings</h3>"
    yield '<dl class="settings">'
    for row in table.rows:
        system = row.system
        yield f'<dt><span class="letter">{row.letter}</span> {name_of(system.name)}</dt><dd><code>{escape(system.settings)}</code>'
        if lines := remarks(system):
            yield f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
        yield "</dd>"
    yield "</dl>"


def _facts(facts: Iterable[tuple[str, str]]) -> Iterable[str]:
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>\n' for name, value in facts)
    if rows:
        yield f'<section id="facts"><h2>What the figures depend on</h2><table class="facts"><tbody>{rows}</tbody></table></section>'
