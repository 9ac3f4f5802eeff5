"""The report: what it says, that nothing in an outcome can break out of it, and that it is the same each time."""

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perikope.evaluation.experiment.extras import ExtraFigure, ExtraTable, Figure, Series
from perikope.evaluation.experiment.outcome import ComparisonSettings, Outcome, Sweep, SystemOutcome
from perikope.evaluation.experiment.published import PublishedCell, PublishedRow, PublishedTable
from perikope.evaluation.experiment.report import FILES, latex, markdown, write_report
from perikope.evaluation.experiment.report.drawing import escape as escape_html
from perikope.evaluation.experiment.report.findings import Findings, clean, find, ranges
from perikope.evaluation.experiment.report.latex import latex_report
from perikope.evaluation.experiment.report.markdown import markdown_report
from perikope.evaluation.experiment.report.page import html_report
from perikope.evaluation.experiment.report.spreadsheet import csv_lines
from perikope.evaluation.measures.significance import compare, label
from perikope.evaluation.tuning.outcome import FoldOutcome, TuningOutcome
from tests.support.outcomes import make_outcome

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></script><b>",
    "<!-- & &lt; ]]> -->",
    "a_b | 50% \\| **bold** [x](javascript:alert(1))",
    "`` ` \\` ~~~ $x$ # h",
    "![x](http://example.org/x.png) www.example.org <http://example.org>",
    "\\input{/etc/passwd} \\\\ & # ^ ~ { } $ \\end{document}",
    "[t]* \\\\[3cm] -- `` '' \"q\" ---",
    '=HYPERLINK("http://example.org")',
    "+1,\"2\"",
    "@x; -1",
    "- item\n\n# heading\r\n\tpre\x00\x1b\u202ereversed\ud800",
    "1. first",
    "σ ≤ 3 · 中文 😀 é ß ﷽",
    "",
    "   ",
    "x" * 300,
)  # fmt: skip
MEASURES = tuple(HOSTILE[place] for place in (0, 5, 8))
SWEEPS = tuple(HOSTILE[place] for place in (1, 9))


@cache
def hostile_outcome() -> Outcome:
    """Every text of an outcome is one that tries to break out."""
    systems = []
    for number, name in enumerate(HOSTILE):
        tuned = TuningOutcome(
            (name, "b"), ((name, 1), (name, 2), ("y", 1), ("y", 2)), (0.1, 0.2, 0.3, 0.4), {name: name, "b": 2}, name,
            (FoldOutcome({name: name}, 0.1, 0.2, 3),), 9,
        )  # fmt: skip
        values = {measure: {f"{qid}{place}": (number * place) % 7 / 7 for place, qid in enumerate(HOSTILE)} for measure in MEASURES}
        systems.append(SystemOutcome(name, name, values, (0.5, 0.2, 0.1), tuned, (name, name)))
    sweeps = tuple(Sweep(text, tuple(systems)) for text in SWEEPS)
    tables = tuple(ExtraTable(name, name, (name, "b"), (("", name, (Figure(1.0, name, True, name), None)),), head=name) for name in HOSTILE)
    figures = tuple(
        ExtraFigure(name, name, name, (Series(name, ((0, 1), (1, 2))), Series(name, ((0, 0.5),))), name, kind)
        for name in HOSTILE
        for kind in ("lines", "bars")
    )
    cells = (PublishedCell("0.5", 0.5, HOSTILE[0], 3.0), None, PublishedCell("0.5", 0.5))
    rows = tuple(PublishedRow(name, name, 0, cells) for name in HOSTILE)
    published = tuple(PublishedTable(name, name, name, name, "measures", "", False, MEASURES, rows) for name in HOSTILE[:3])
    facts = dict(zip(HOSTILE, HOSTILE, strict=True))
    return Outcome(
        HOSTILE[0], "\n\n".join(HOSTILE), facts, MEASURES, sweeps, ComparisonSettings(reference=HOSTILE[0]), tables, figures, published
    )


@cache
def hostile_findings() -> Findings:
    return find(hostile_outcome())


@cache
def plain_findings() -> Findings:
    figures = tuple(ExtraFigure(kind, "x", "y", (Series("a", ((0, 1),)), Series("b", ((1, 2),))), "c", kind) for kind in ("lines", "bars"))
    return find(replace(make_outcome(20, 20), figures=figures))


class Page(HTMLParser):
    """Which elements and attributes a page has, and its text by element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data):
        self.comments.append(data)

    def text(self, *tags: str) -> str:
        return "".join(data for tag, data in self.texts if tag in tags)


def table_of(text: str, heading: str) -> list[list[str]]:
    """The rows of the Markdown table below a heading."""
    lines = text.split(f"## {heading}\n")[1].strip().split("\n\n")[0].split("\n")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def small(values: dict[str, list[float]], **given) -> Outcome:
    systems = tuple(
        SystemOutcome(name, f"model {name}", {"AP": {f"q{place}": value for place, value in enumerate(column)}})
        for name, column in values.items()
    )
    return Outcome("small", "", {}, ("AP",), (Sweep("all", systems),), **given)


def test_writes_its_files_and_nothing_else(tmp_path):
    write_report(make_outcome(3, 10), tmp_path / "new" / "folder")
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == set(FILES)


def test_same_outcome_same_bytes(tmp_path):
    outcome = make_outcome(8, 30, ("10", "50"))
    outcome.save(tmp_path / "saved")
    for folder, one in (("a", outcome), ("b", make_outcome(8, 30, ("10", "50"))), ("c", Outcome.load(tmp_path / "saved"))):
        write_report(one, tmp_path / folder)
    for name in FILES:
        first = (tmp_path / "a" / name).read_bytes()
        assert first == (tmp_path / "b" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
        assert str(tmp_path).encode() not in first


def test_the_best_is_bold_and_letters_name_those_beaten():
    low, high = [0.1, 0.2, 0.3, 0.25, 0.15, 0.2], [0.5, 0.65, 0.7, 0.6, 0.62, 0.58]
    outcome = small({"worse": low, "better": high, "same": [*high[:-1], 0.57]}, comparison=ComparisonSettings("t", "holm", 0.05))
    rows = table_of(markdown_report(find(outcome)), "all")
    assert rows == [["a", "worse", "0.2000"], ["b", "better", "**0.6083**<sup>a</sup>"], ["c", "same", "0.6067<sup>a</sup>"]]
    assert r"b & better & \textbf{0.6083}\textsuperscript{a} \\" in latex_report(find(outcome))
    assert "<b>0.6083</b><sup>a</sup></td>" in html_report(find(outcome))


def test_figures_that_read_the_same_are_both_bold():
    rows = table_of(markdown_report(find(small({"one": [0.5, 0.50001], "other": [0.5, 0.5]}))), "all")
    assert [row[2] for row in rows] == ["**0.5000**", "**0.5000**"]


def test_figures_are_those_of_the_outcome():
    outcome = make_outcome(5, 20, ("10", "50"))
    tables = {sweep.label: table_of(markdown_report(find(outcome)), sweep.label) for sweep in outcome.sweeps}
    for sweep in outcome.sweeps:
        for system, row in zip(sweep.systems, tables[sweep.label], strict=True):
            means = [sum(system.values[measure].values()) / 20 for measure in outcome.measures]
            assert [float(re.sub(r"<sup>.*|\*", "", cell)) for cell in row[2:]] == pytest.approx(means, abs=5.1e-5)
    overview = table_of(markdown_report(find(outcome)), "MAP(D) in all sweeps")
    assert [[row[2] for row in tables[label]] for label in ("10", "50")] == [[row[column] for row in overview] for column in (2, 3)]


def test_letters_agree_with_the_comparison():
    outcome = make_outcome(20, 60)
    sweep = outcome.sweeps[0]
    table = find(outcome).tables[0]
    for column, measure in enumerate(outcome.measures):
        letters = compare({system.name: system.values[measure] for system in sweep.systems}, test="t", correction="holm").letters
        assert [row.figures[column].beats for row in table.rows] == [ranges(letters[system.name]) for system in sweep.systems]


@given(st.sets(st.integers(0, 60)))
def test_ranges_of_letters_can_be_read_back(numbers):
    def number(letter: str) -> int:
        return [label(one) for one in range(61)].index(letter)

    read: set[int] = set()
    written = ranges("".join(label(one) for one in sorted(numbers)))
    for first, last in re.findall(r"(\(\d+\)|[a-zA-Z])(?:–(\(\d+\)|[a-zA-Z]))?", written):
        read |= set(range(number(first), number(last or first) + 1))
    assert read == numbers


def test_an_overview_without_letters_where_sweeps_have_other_systems():
    one, other = make_outcome(4, 30, ("10", "50")).sweeps
    outcome = replace(make_outcome(4, 30), sweeps=(one, Sweep(other.label, other.systems[1:])))
    overview = find(outcome).overview
    assert [letter for letter, _, _ in overview.rows] == [""] * 4
    assert overview.rows[0][2][1] is None
    assert not any(figure.beats for _, _, figures in overview.rows for figure in figures if figure)
    assert "<td></td>" in html_report(find(outcome))


def test_settings_folds_and_notes_are_told_in_every_form():
    findings = plain_findings()
    for text in (markdown_report(findings), re.sub(r"\\allowbreak{}", "", latex_report(findings)), html_report(findings)):
        assert "441 settings tried for MAP(D) on 60 topics" in text
        assert "fold 5 (12 topics)" in text
        assert "3 topics are not in it and count 0" in text
        assert "3f9a" * 16 in text


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("", "", {}, (), ()),
        Outcome("no systems", "", {}, ("AP",), (Sweep("none", ()), Sweep("none", ()))),
        Outcome("no measures", "", {}, (), (Sweep("one", (SystemOutcome("a", "", {}),)),)),
        small({"no topics": []}),
        small({"no topics": [], "either": []}),
        small({"one topic": [0.0]}),
        small({"one": [0.3], "other": [0.3]}),
        make_outcome(60, 3, measures=("AP",)),
        make_outcome(2, 1000, measures=("AP",)),
    ],
)
def test_little_and_much_are_reported_too(outcome, tmp_path):
    write_report(outcome, tmp_path)
    text = (tmp_path / "report.html").read_text("utf-8")
    Page(text)
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"<style>.*</script>", "", text, flags=re.DOTALL))


def test_tuning_of_every_shape_has_a_plot_or_none():
    base = make_outcome(1, 5, measures=("AP",))

    def page_with(parameters, settings, scores, chosen) -> str:
        system = replace(base.sweeps[0].systems[0], tuned=TuningOutcome(parameters, settings, scores, chosen, "AP"))
        return html_report(find(replace(base, sweeps=(Sweep("s", (system,)),))))

    assert "<h3>Tuning" not in page_with((), ((),), (0.5,), {})
    assert "<h3>Tuning" not in page_with(("a",), ((1,),), (0.5,), {"a": 1})
    assert "<h3>Tuning" not in page_with(("a",), ((1,), (2,)), (float("nan"), float("nan")), {"a": 1})
    assert 'class="dots picked"' in page_with(("a",), ((1,), (2,)), (0.5, 0.5), {"a": 1})
    grid = page_with(("a", "b"), ((1, "x"), (2, "x"), (1, "y"), (2, "y")), (0.1, 0.2, 0.3, 0.4), {"a": 2, "b": "y"})
    assert 'class="chosen" d="M500 0H1000V500H500z"' in grid
    assert 'fill-opacity="100%"><path class="cell" d="M500 0H1000V500H500z"' in grid
    mixed = page_with(("a", "b"), ((1.5, None), (True, "x"), (("t", 1), "y")), (0.1, 0.2, 0.3), {"a": True, "b": "x"})
    assert mixed.count('class="frame small"') == 2


def test_the_page_needs_nothing_else():
    text = html_report(find(make_outcome(8, 30, ("10", "50"))))
    page = Page(text)
    assert page.open == []
    assert not re.search(r"https?:|//|@import|url\(", re.sub(r"// .*", "", text))
    assert {tag for tag, _ in page.elements} & {"link", "img", "iframe", "object", "embed", "base", "form", "image", "use"} == set()
    assert all(attributes["href"].startswith("#") for _, attributes in page.elements if "href" in attributes)
    assert not any("src" in attributes for _, attributes in page.elements)
    anchors = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert {attributes["href"][1:] for _, attributes in page.elements if "href" in attributes} == anchors


def test_every_picture_says_what_it_shows():
    text = html_report(plain_findings())
    pictures = re.findall(r'<svg class="plot".*?</svg>', text)
    assert len(pictures) > 40
    assert all(re.match(r'<svg [^>]*role="img"><title>[^<]+</title><desc>[^<]+</desc>', picture) for picture in pictures)


def test_nothing_breaks_out_of_the_page():
    plain, hostile = Page(html_report(plain_findings())), Page(html_report(hostile_findings()))
    assert hostile.open == []
    assert hostile.comments == []
    assert {tag for tag, _ in hostile.elements} <= {tag for tag, _ in plain.elements}
    assert sum(tag == "script" for tag, _ in hostile.elements) == 1
    known = {(tag, name) for tag, attributes in plain.elements for name in attributes}
    assert {(tag, name) for tag, attributes in hostile.elements for name in attributes} <= known
    assert hostile.text("script") == plain.text("script")
    shown = hostile.text("code", "li")
    assert all(clean(name) in shown for name in HOSTILE)


def test_only_the_script_of_the_page_may_run():
    text = html_report(find(make_outcome(1, 1)))
    assert "script-src 'sha256-" in text
    assert "script-src 'unsafe" not in text


def test_nothing_breaks_out_of_markdown():
    parser = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable(["table", "strikethrough"])
    text = markdown_report(hostile_findings())
    kinds: set[str] = set()
    raw: set[str] = set()
    for token in parser.parse(text):
        kinds.add(token.type)
        for child in token.children or ():
            kinds.add(child.type)
            raw |= {child.content} if child.type == "html_inline" else set()
            if child.type == "image":
                assert re.fullmatch(r"figures/\d+-[\w-]+\.svg", child.attrs["src"])
    assert (
        kinds & {"link_open", "em_open", "s_open", "html_block", "fence", "code_block", "blockquote_open", "hr", "ordered_list_open"}
        == set()
    )
    assert raw <= {"<sup>", "</sup>"}
    tables = [token for token in parser.parse(text) if token.type == "table_open"]
    # Overview, sweeps with chosen parameters, improvements, extra tables, published tables, facts.
    assert len(tables) == 1 + 2 * len(SWEEPS) + 1 + len(HOSTILE) + 3 + 1
    assert not re.search(r"(?i)://|\bwww\.", re.sub(r"(`+).*?\1", "", text))


@given(st.text(st.characters(codec="utf-8"), max_size=40) | st.text("\\|`*_[]<>&#~$!-+=1.) a:/w", max_size=20))
@settings(max_examples=300)
def test_escaped_markdown_reads_as_the_text(text):
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    table = parser.parse(f"| {markdown.escape(text)} | b |\n| -- | -- |\n| {markdown.escape(text)} | {markdown.escape(text)} |")
    cells = [token for token in table if token.type == "inline"]
    assert len(cells) == 4
    line = parser.parse(markdown.escape(text))
    assert {token.type for token in line} <= {"paragraph_open", "inline", "paragraph_close"}
    for token in (cells[0], *cells[2:], *(token for token in line if token.type == "inline")):
        assert {child.type for child in token.children} <= {"text", "text_special"}
        assert "".join(child.content for child in token.children) == clean(text)
    code = [child for token in parser.parse(f"- a: {markdown.code(text)}") for child in token.children or ()]
    assert [child.content for child in code if child.type == "code_inline"] == ([clean(text)] if clean(text) else [])


@given(st.text(max_size=40))
def test_escaped_html_reads_as_the_text(text):
    page = Page(f'<p title="{escape_html(text)}">{escape_html(text)}</p>')
    assert [tag for tag, _ in page.elements] == ["p"]
    assert (page.elements[0][1]["title"] or "") == page.text("p") == clean(text)


def tex_tokens(text: str) -> list[str]:
    return re.findall(r"\\[A-Za-z]+\*?|\\.|.", text, re.DOTALL)


@given(st.text(max_size=40) | st.text("\\{}$&#%_~^[]*|<>\"'`-", max_size=20))
def test_escaped_latex_has_only_commands_of_ours(text):
    for escaped in (latex.escape(text), latex.breakable(text)):
        depth = 0
        for token in tex_tokens(escaped):
            depth += {"{": 1, "}": -1}.get(token, 0)
            assert depth >= 0
            assert token not in "$&#%_~^" or token == ""
            assert token == "" or token.isascii() or token in latex._KNOWN
            if len(token) > 2:
                assert token.startswith(("\\text", "\\ensuremath", "\\allowbreak", "\\dots")) or any(
                    token in one for one in latex._ESCAPED.values()
                )
        assert depth == 0
        # At the start of a row these would be arguments of the end of the one before.
        assert not escaped.startswith(("[", "*"))


def test_latex_is_balanced_and_its_rows_have_all_columns():
    for findings in (find(make_outcome(20, 20, ("10", "50"), ("AP",))), hostile_findings()):
        text = latex_report(findings)
        assert text.count(r"\begin{document}") == 1
        tokens = tex_tokens(text.replace("% A table", "A table"))
        assert tokens.count("{") == tokens.count("}")
        assert text.endswith("\\end{document}\n")
        opened = re.findall(r"\\(begin|end)\{(\w+)\}", text)
        stack: list[str] = []
        for kind, name in opened:
            if kind == "begin":
                stack.append(name)
            else:
                assert stack.pop() == name
        assert stack == []
        for table in re.findall(r"\\toprule\n(.*?)\\bottomrule", text, re.DOTALL):
            rows = [row for row in table.split("\n") if row.endswith(r"\\")]
            assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_latex_compiles(tmp_path):
    for name, outcome in (
        ("plain", make_outcome(20, 20, ("10", "50"), ("AP", "RR"))),
        ("hostile", hostile_outcome()),
        ("empty", Outcome("", "", {}, (), ())),
    ):
        write_report(outcome, tmp_path / name)
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "report.tex"]
        done = subprocess.run(command, cwd=tmp_path / name, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stdout[-2000:]


def test_no_cell_of_the_csv_is_a_formula():
    rows = list(csv.reader(csv_lines(hostile_outcome())))
    assert len({len(row) for row in rows}) == 1
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row)
    assert len(rows) == 1 + len(SWEEPS) * len(HOSTILE) ** 2


def test_the_csv_has_every_value_in_full():
    outcome = make_outcome(3, 7, ("10", "50"))
    head, *rows = csv.reader(csv_lines(outcome))
    assert head == ["sweep", "system", "topic", *outcome.measures]
    read = {
        (sweep, system, topic, measure): float(cell)
        for sweep, system, topic, *cells in rows
        for measure, cell in zip(head[3:], cells, strict=True)
    }
    assert read == {
        (sweep.label, system.name, topic, measure): value
        for sweep in outcome.sweeps
        for system in sweep.systems
        for measure, column in system.values.items()
        for topic, value in column.items()
    }
