r"""LaTeX: sections, paragraphs, lists, tables; macros are not expanded."""

from __future__ import annotations

import random
import time

import pytest

import perikope as pk
from perikope.formats.latex import blocks_of
from tests.support.trees import check_tree


def blocks(text):
    return [(block.kind, block.text) for block in blocks_of(text).blocks]


def test_text_on_the_line_of_a_section_is_kept_and_lines_are_joined():
    text = "\\section{Care} Clean the filter\nevery month.\n\n\\paragraph{Seals.} Replace them\nonce a year."
    assert blocks(text) == [
        ("heading", "Care"),
        ("p", "Clean the filter every month."),
        ("heading", "Seals."),
        ("p", "Replace them once a year."),
    ]


def test_levels_count_from_the_highest_one_and_options_and_stars_do_not_matter():
    text = "\\chapter[Short]{Long title}\\section*{A}\\subsection{B \\emph{c}}\\paragraph*{D}"
    assert [(block.level, block.text) for block in blocks_of(text).blocks] == [(1, "Long title"), (2, "A"), (3, "B c"), (5, "D")]
    assert [block.level for block in blocks_of("\\section{A}\\subsection{B}").blocks] == [1, 2]


def test_the_preamble_gives_title_and_authors_only():
    text = "\\documentclass{article}\n\\newcommand{\\x}[1]{no #1}\n\\title{Pumps\\thanks{for all}}\n\\author{Ann Cook \\and Bo Li}\n"
    found = blocks_of(text + "Lost.\n% \\begin{document}\n\\begin{document}\\maketitle\nText.\n\\end{document}\nAfter.")
    assert (found.title, found.metadata) == ("Pumps", {"author": ["Ann Cook", "Bo Li"]})
    assert [block.text for block in found.blocks] == ["Text."]


def test_comments_end_at_the_line_and_blank_lines_divide():
    assert blocks("a% no\nb 5\\% c\n% whole line\nd%\n\ne") == [("p", "ab 5% c d"), ("p", "e")]


def test_lists_and_quotes():
    text = "\\begin{itemize}[nosep]\\item one\n\\item two\n\\begin{enumerate}\\item in\\end{enumerate}\\end{itemize}After"
    assert blocks(text) == [("li", "one"), ("li", "two"), ("li", "in"), ("p", "After")]
    assert blocks("\\begin{description}\\item[The \\emph{seal}] is rubber.\\end{description}") == [("li", "The seal is rubber.")]
    assert blocks("A\\begin{quote}B\\end{quote}C") == [("p", "A"), ("blockquote", "B"), ("p", "C")]


TABLE = "\\begin{table}[ht]\\caption{Models}"
TABLE += "\\begin{tabular}{@{}l|r@{}}\\toprule A & B \\\\ \\midrule\n1 & \\textbf{2} \\\\[2pt] 3\\& & 4 \\\\\n"


def test_rows_of_tables():
    expected = [("caption", "Models"), ("table", "A | B"), ("tr", "1 | 2"), ("tr", "3& | 4")]
    assert blocks(TABLE + "\\bottomrule\\end{tabular}\\end{table}") == expected
    plain = "\\begin{tabular}{ll}\\hline 1 & 2 \\\\ 3 & 4 \\\\ \\hline\\end{tabular}"
    assert blocks(plain) == [
        ("table", ""),
        ("tr", "1 | 2"),
        ("tr", "3 | 4"),
    ]
    wide = "\\begin{tabularx}{\\textwidth}{lX}\\multicolumn{2}{c}{Both} \\\\ \\cmidrule(lr){1-2} a & "
    wide += "\\begin{tabular}{l}b\\\\c\\end{tabular}\\end{tabularx}"
    assert blocks(wide) == [("table", ""), ("tr", "Both"), ("tr", "a | b c")]


LONG = "\\begin{longtable}{ll}\\caption{Models}\\\\ \\toprule A & B \\\\ \\midrule\\endfirsthead "
LONG += "\\caption[]{(continued)}\\\\ \\toprule A & B \\\\ \\midrule\\endhead \\multicolumn{2}{r}{goes on} \\\\ \\endfoot "
LONG += "\\bottomrule Sum & 3 \\\\ \\endlastfoot 1 & 2 \\\\ \\hline 3 & 4 \\\\ \\end{longtable}"


def test_a_header_that_every_page_repeats_is_read_once():
    rows = [("tr", "1 | 2"), ("tr", "3 | 4")]
    assert blocks(LONG) == [("caption", "Models"), ("table", "A | B"), *rows, ("tr", "Sum | 3")]
    body = "1 & 2 \\\\ 3 & 4 \\\\ \\end{longtable}"
    head = "\\begin{longtable}{ll}A & B \\\\ a & b \\\\ \\hline\\endhead "
    assert blocks(head + body) == [("table", "A | B\na | b"), *rows]
    assert blocks(head + "Foot & \\\\ \\endfoot " + body) == [("table", "A | B\na | b"), *rows, ("tr", "Foot | ")]
    assert blocks("\\begin{longtable}{ll}\\endfirsthead A & B \\\\ \\endhead " + body) == [("table", "A | B"), *rows]
    assert blocks(head + "\\end{longtable}") == [("table", ""), ("tr", "A | B"), ("tr", "a | b")]
    captions = "\\begin{longtable}{ll}\\caption{Models}\\\\ " + body
    assert blocks(captions) == [("caption", "Models"), ("table", ""), *rows]


def test_inline_commands_give_their_text():
    text = (
        "\\emph{a} \\textbf{b \\textit{c}} {\\bf d} \\href{http://x.org/}{e} \\hypertarget{f}{g} \\unknown[h]{i}{j}~k "
        "see~\\ref{fig:a} and \\citep[p.~3]{cook, li}. \\label{x}\\index{y}"
        "Footnote\\footnote{In \\emph{place}.} here; \\verb|{%| \\input{secret}"
    )
    assert blocks(text) == [
        ("p", "a b c d e g i j k see [fig:a] and [cook, li]. Footnote (In place.) here; {%"),
    ]


def test_letters_signs_and_formulas():
    text = "M\\\"uller, Caf\\'{e}, \\v{S}koda, stra\\ss e, na\\\"{\\i}ve ``quoted'' 1--2 $a_{1} < \\$b$ and \\(c\\) \\& \\LaTeX\\ \\ldots"
    assert blocks(text) == [("p", "Müller, Café, Škoda, straße, naïve “quoted” 1–2 $a_{1} < \\$b$ and \\(c\\) & LaTeX …")]
    assert blocks("So\n\\begin{align*}\n x &= 1 \\\\ y &= 2 \\label{z}\n\\end{align*}\nholds.") == [("p", "So x &= 1 \\\\ y &= 2 holds.")]


def test_code_is_kept_as_it_is():
    text = "A\n\\begin{lstlisting}[language=Python]\nif x:  # 5%\n    \\go{}\n\\end{lstlisting}\nB\\begin{comment}no\\end{comment}"
    assert blocks(text) == [("p", "A"), ("code", "if x:  # 5%\n    \\go{}"), ("p", "B")]
    assert blocks_of(text).blocks[1].note == "Python"


def test_commands_and_escapes_in_coloured_code_are_no_text():
    code = (
        r"\KeywordTok{if}\NormalTok{ x }\OperatorTok{\textless{}} \DecValTok{3}\NormalTok{: \{}"
        r"\StringTok{\textquotesingle{}a\_b\textquotesingle{}}"
        "\n"
        r"    \OperatorTok{\^{}}\NormalTok{[}\DecValTok{1}\NormalTok{]\}}  \CommentTok{\# 5 \% of \textbackslash{}n}"
    )
    plain = "if x < 3: {'a_b'\n    ^[1]}  # 5 % of \\n"
    for start, name in (("[]", "Highlighting"), ("", "alltt"), ("[commandchars=\\\\\\{\\}]", "Verbatim")):
        assert blocks(f"\\begin{{{name}}}{start}\n{code}\n\\end{{{name}}}") == [("code", plain)]
    assert blocks("\\begin{verbatim}\n\\emph{x}\n\\end{verbatim}") == [("code", "\\emph{x}")]


def test_definitions_are_no_text():
    assert blocks("\\def\\x#1{no}\\newcommand{\\y}[2][z]{no #1}\\let\\a=\\b\\newenvironment{e}{no}{no}Text \\x{yes}") == [("p", "Text yes")]


def test_a_file_without_an_end_is_read():
    assert blocks("\\section{Care\n\nText \\emph{x") == [("heading", "Care"), ("p", "Text x")]
    assert blocks("a }} b \\begin{tabular}{l} c & d") == [("p", "a b"), ("table", ""), ("tr", "c | d")]
    assert blocks("\\begin{verbatim}x") == [("code", "x")]


def test_files_are_read_as_documents_in_utf8_or_latin1(tmp_path):
    (tmp_path / "a.tex").write_bytes("\\title{K\xe4se}\\section{A}Gr\xfc\xdfe.".encode("latin-1"))
    [document] = pk.read(tmp_path / "a.tex")
    check_tree(document)
    assert document.title == "Käse"
    assert "Grüße." in document.text
    (tmp_path / "a.tex").write_bytes(b"a\0b")
    with pytest.raises(pk.core.errors.UnreadableFile, match="zero bytes"):
        list(pk.read(tmp_path / "a.tex"))


PIECES = [
    "\\section{",
    "\\label{",
    "{",
    "}",
    "[",
    "]",
    "$",
    "$$",
    "\\(",
    "\\[",
    "\\begin{align}",
    "\\begin{verbatim}",
    "\\begin{tabular}{l}",
    "\\end{tabular}",
    "\\footnote{",
    "\\item[",
    "%",
    "\n\n",
    "&",
    "\\\\",
    "\\verb|",
    "\\cite{",
    "\\def",
    "\\begin{itemize}",
    "\\'",
    "word ",
    "\\",
]


def test_deep_nesting_is_read():
    for opening, closing in (("\\item[{", "}]"), ("\\footnote{", "}"), ("{", "}"), ("\\begin{quote}", "\\end{quote}")):
        assert any("word" in text for _, text in blocks(opening * 400 + "word" + closing * 400))


def test_any_text_is_read():
    chance = random.Random(7)
    for _ in range(300):
        blocks("".join(chance.choices(PIECES, k=40)))


@pytest.mark.parametrize("piece", PIECES)
def test_the_time_grows_with_the_length_only(piece):
    """Twenty times the text takes far less than 400 times the time."""

    def seconds(count):
        start = time.process_time()
        blocks(piece * count)
        return time.process_time() - start

    short, long = min(seconds(2000) for _ in range(3)), seconds(40000)
    assert long < 150 * max(short, 0.002)


def test_the_head_of_a_supertabular_stands_before_it_and_is_its_header():
    head, table = "\\tablehead{A \\emph{x} & B \\\\ \\hline}", "\\begin{supertabular}{ll} 1 & 2 \\\\ \\end{supertabular}"
    read = [("table", "A x | B"), ("tr", "1 | 2")]
    assert blocks(head + table) == read
    assert blocks("\\tabletail{Go on \\\\}" + head + table) == [*read, ("tr", "Go on")]
    assert blocks(head + table + "\n\n" + head.replace("A", "C") + table) == [*read, ("table", "C x | B"), ("tr", "1 | 2")]
    # Without a table after it, and in code, it stays what it is.
    assert blocks(table + "\n\n\\tablehead{Lost words}")[-1] == ("p", "Lost words")
    assert ("code", head) in blocks(f"\\begin{{verbatim}}\n{head}\n\\end{{verbatim}}\n" + table)
