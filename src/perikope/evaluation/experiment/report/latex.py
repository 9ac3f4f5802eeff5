"""The report as a complete LaTeX document, whose tables can be copied into a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from perikope.evaluation.experiment.extras import ExtraFigure, Figure
from perikope.evaluation.experiment.report.extra_figures import figure_files
from perikope.evaluation.experiment.report.findings import Findings, SweepTable, remarks
from perikope.evaluation.experiment.report.tables import clean, paragraphs

_ESCAPED = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}", "-": "-{}",
    # After the end of a table row, LaTeX would read these characters as arguments.
    "[": "{[}", "]": "{]}", "*": "{*}",
    "–": r"\textendash{}", "—": r"\textemdash{}", "‘": r"\textquoteleft{}", "’": r"\textquoteright{}", "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}", "…": r"\dots{}", "•": r"\textbullet{}", "€": r"\texteuro{}",
    "×": r"\ensuremath{\times}", "·": r"\ensuremath{\cdot}", "±": r"\ensuremath{\pm}", "−": r"\ensuremath{-}", "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}", "≠": r"\ensuremath{\neq}", "≈": r"\ensuremath{\approx}", "→": r"\ensuremath{\rightarrow}",
    "∞": r"\ensuremath{\infty}", "√": r"\ensuremath{\surd}", "Σ": r"\ensuremath{\Sigma}", "Δ": r"\ensuremath{\Delta}",
    "Ω": r"\ensuremath{\Omega}", "Γ": r"\ensuremath{\Gamma}", "Λ": r"\ensuremath{\Lambda}", "Φ": r"\ensuremath{\Phi}",
    "ε": r"\ensuremath{\varepsilon}", "φ": r"\ensuremath{\varphi}",
    **{letter: rf"\ensuremath{{\{name}}}" for letter, name in zip(
        "αβγδζηθικλμµνξπρστυχψω",
        ("alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "mu", "nu", "xi", "pi", "rho",
         "sigma", "tau", "upsilon", "chi", "psi", "omega"),
        strict=True,
    )},
}  # fmt: skip

_KNOWN = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿĄąĆćČčĎďĘęĚěĞğİıŁłŃńŇňŐőŒœŘřŚśŞşŠšŤťŮůŰűŸŹźŻżŽž")
"""Letters outside ASCII that the T1 fonts of every LaTeX distribution have."""

FLOATS = 12
"""The number of tables and figures after which all of them are placed; LaTeX keeps at least 18 waiting."""

_PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[margin=25mm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
% A table that is wider than the text is scaled down; others are left as they are.
\newsavebox{\reporttable}
\newcommand{\fitted}[1]{\sbox{\reporttable}{#1}%
  \ifdim\wd\reporttable>\linewidth\resizebox{\linewidth}{!}{\usebox{\reporttable}}\else\usebox{\reporttable}\fi}
\setlength{\emergencystretch}{3em}
"""

LONG_NAME = 36
"""Maximum length in characters of a name or column heading that is set in one line."""


def escape(text: str) -> str:
    r"""Escape a text for LaTeX. A character that its fonts may lack is replaced by its code point, such as U+4E00.

    >>> print(escape("a_b & 50% of \\input{x}, σ"))
    a\_b \& 50\% of \textbackslash{}input\{x\}, \ensuremath{\sigma}
    """
    return "".join(map(_escape_one, clean(text)))


def _escape_one(one: str) -> str:
    if one in _ESCAPED:
        return _ESCAPED[one]
    return one if one.isascii() or one in _KNOWN else rf"\texttt{{U+{ord(one):04X}}}"


def breakable(text: str) -> str:
    """Escape a text for LaTeX, with line breaks allowed around punctuation and inside words of more than 24 letters."""
    parts = re.findall(r"[\w ]{1,24}|[^\w ]", clean(text))
    return r"\allowbreak{}".join(escape_kept(part) for part in parts)


def escape_kept(text: str) -> str:
    """Escape a part of a text that `clean` has processed. Spaces at its ends are kept."""
    return "".join(map(_escape_one, text))


def latex_report(findings: Findings) -> str:
    """The LaTeX source of the whole report."""
    outcome = findings.outcome
    blocks = [
        _PREAMBLE + rf"\title{{{escape(outcome.title) or '~'}}}" + "\n\\author{}\n\\date{}\n\\begin{document}\n\\maketitle",
        *map(escape, paragraphs(outcome.description)),
        escape(findings.legend),
    ]
    if findings.overview is not None:
        overview = findings.overview
        rows = [[letter, _name(name), *map(_cell, figures)] for letter, name, figures in overview.rows]
        caption = f"{escape(overview.measure)} in all sweeps"
        blocks += [_table(caption, ["", "System", *map(_name, overview.labels)], rows)]
    shown = [table for table in findings.tables if table.rows]
    for table in shown:
        rows = [[row.letter, _name(row.system.name), *map(_cell, row.figures)] for row in table.rows]
        blocks += [_table(escape(table.label), ["", "System", *map(_name, outcome.measures)], rows)]
    for extra in findings.extra:
        rows = [[letter, _name(name), *map(_cell, figures)] for letter, name, figures in extra.rows]
        blocks += [_table(f"{escape(extra.title)}. {escape(extra.how)}", ["", escape(extra.head), *map(_name, extra.columns)], rows)]
    blocks += [_figure(drawn, file) for drawn, file in zip(findings.figures, figure_files(findings.figures), strict=True)]
    blocks = list(_with_page_breaks(blocks))
    # Tables float. Without a page break, the following text would appear between them.
    blocks.append(r"\clearpage")
    for table in shown:
        blocks += [rf"\section*{{Settings: {escape(table.label)}}}", _described(_settings(table))]
    if outcome.facts:
        facts = ((escape(name), [breakable(value)] if clean(value) else []) for name, value in outcome.facts.items())
        blocks += [r"\section*{What the figures depend on}", _described(facts)]
    return "\n\n".join(blocks) + "\n\n\\end{document}\n"


def _with_page_breaks(blocks: Iterable[str]) -> Iterator[str]:
    """The blocks of a report. LaTeX has room for few floats that wait for a page, so pages end after some of them."""
    floats = 0
    for block in blocks:
        yield block
        floats += block.startswith((r"\begin{table}", r"\begin{figure}"))
        if floats == FLOATS:
            yield r"\clearpage"
            floats = 0


def _name(name: str) -> str:
    return escape(name) if len(clean(name)) <= LONG_NAME else rf"\parbox[t]{{60mm}}{{\raggedright {breakable(name)}\strut}}"


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    text = rf"\textbf{{{escape(figure.text)}}}" if figure.is_best else escape(figure.text)
    return rf"{text}\textsuperscript{{{escape(figure.beats)}}}" if figure.beats else text


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    # Figures are left-aligned because the raised letters after them differ in length.
    columns = "l" * len(header)
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\fitted{{\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
    ]
    lines += [f"{' & '.join(header)} \\\\", r"\midrule", *(f"{' & '.join(row)} \\\\" for row in rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}"])


def _figure(drawn: ExtraFigure, file: str) -> str:
    """A LaTeX figure. LaTeX cannot read SVG: the file is included if it is also there as PDF, otherwise it is named."""
    pdf = file.removesuffix(".svg") + ".pdf"
    picture = rf"\IfFileExists{{{pdf}}}{{\includegraphics[width=\linewidth]{{{pdf}}}}}{{\texttt{{{escape(file)}}}}}"
    caption = escape(". ".join(text.rstrip(".") for text in (drawn.title, drawn.caption) if text))
    return "\n".join([r"\begin{figure}[htbp]", r"\centering", picture, rf"\caption{{{caption}.}}", r"\end{figure}"])


def _settings(table: SweepTable) -> Iterable[tuple[str, list[str]]]:
    for row in table.rows:
        settings = breakable(row.system.settings)
        lines = [rf"\texttt{{{settings}}}"] if settings else []
        yield f"{row.letter} {escape(row.system.name)}", [*lines, *map(breakable, remarks(row.system))]


def _described(items: Iterable[tuple[str, list[str]]]) -> str:
    """A LaTeX description list of names, each with its lines of text."""
    lines = [rf"\item[{{{name}}}] \mbox{{}}" + "".join(f"\\\\\n{line}" for line in texts) for name, texts in items]
    return "\n".join([r"\begin{description}\raggedright", *lines, r"\end{description}"])
