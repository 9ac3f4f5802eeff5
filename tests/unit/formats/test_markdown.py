"""Markdown: titles, front matter, references and the edges of CommonMark."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document, Kind
from perikope.formats import Source, read
from perikope.formats._simple_inline import simple_inline
from perikope.formats.markdown import _PARSER, _MarkdownReader
from tests.support.growth import is_linear
from tests.support.trees import check_tree, passages, titles


def load(tmp_path: Path, text: str, name: str = "page.md") -> Document:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    [document] = read(tmp_path)
    check_tree(document)
    return document


@pytest.mark.parametrize(
    ("text", "title", "sections"),
    [
        ("# Pumps\n\ntext", "Pumps", 0),
        ("<!-- licence -->\n\n# Pumps\n\ntext", "Pumps", 0),
        ("text\n\n# Pumps", "", 1),
        ("# Pumps\n\ntext\n\n# Seals", "", 2),
        ("## Pumps\n\n# Seals", "", 2),
        ("> # Pumps\n\ntext", "", 0),
        ("#\n\ntext", "", 0),
        ("---\ntitle: Pumps\n---\n# pumps\n\ntext", "Pumps", 0),
        ("---\ntitle: Pumps\n---\n# Overview\n\ntext", "Pumps", 1),
    ],
)
def test_the_only_first_heading_of_level_one_is_the_title(text: str, title: str, sections: int, tmp_path: Path) -> None:
    document = load(tmp_path, text)
    assert document.title == title
    assert sum(1 for _ in document.of_kind(Kind.SECTION)) == sections + 1


def test_headings_nest_by_level_and_may_skip_one(tmp_path: Path) -> None:
    document = load(tmp_path, "# A\n## B\n#### C\n### D\n# E\n")
    parents = [document.spans.parent[i] for i in document.of_kind(Kind.SECTION)]
    sections = list(document.of_kind(Kind.SECTION))
    assert [sections.index(parent) if parent >= 0 else None for parent in parents] == [None, 0, 1, 2, 2, 0]


def test_anchors_are_those_of_github(tmp_path: Path) -> None:
    document = load(tmp_path, "x\n# What's *new*, in 2.0?\n# Äpfel & Birnen\n# a\n# a\n# a-1\n# !\n")
    assert list(document.span_ids.values()) == ["whats-new-in-20", "äpfel--birnen", "a", "a-1", "a-1-1"]


def test_links_become_references_and_citations_that_are_ids_of_other_documents(tmp_path: Path) -> None:
    hrefs = ["#s", "other.md#x", "../up.md", "page.md#s", "https://example.org/#f", "mailto:x@y.z", "%C3%A4%20b.md", "other.md"]
    links = " ".join(f"[x]({href})" for href in hrefs)
    document = load(tmp_path, f"{links}\n\n# s\n\ntext [i](#%C3%A4)", "folder/page.md")
    assert document.cites == ("folder/other.md", "up.md", "https://example.org/", "folder/ä b.md")
    assert [target for _, target in document.references] == ["s", "ä"]


def test_marks_cover_their_words_only(tmp_path: Path) -> None:
    document = load(tmp_path, "a ***b*** `c  d` **e\nf**[](x.md)\n")
    marks = [(document.labels[document.spans.tag[i]], document.text_of(i)) for i in document.of_kind(Kind.MARK)]
    assert marks == [("it", "b"), ("b", "b"), ("code", "c d"), ("b", "e f")]


def test_a_careless_language_in_front_matter_is_kept_as_metadata(tmp_path: Path) -> None:
    document = load(tmp_path, "---\nlanguage: English\nid: mine\n---\ntext")
    assert (document.id, document.language, document.metadata) == ("mine", "en", {"language": "English"})


def test_blocks_in_a_tight_item_follow_it(tmp_path: Path) -> None:
    assert passages(load(tmp_path, "- one\n  ```\n  code\n  ```\n  > quoted\n- two\n")) == ["one", "code", "quoted", "two"]


def test_only_text_is_kept_of_html(tmp_path: Path) -> None:
    text = "<style>p {}</style>\n\n<details><summary>More &lt;3</summary>\n\n*inside*\n\n</details>\n\n<!-- no -->\n"
    assert passages(load(tmp_path, text)) == ["More <3", "inside"]


def test_image_text_is_read(tmp_path: Path) -> None:
    assert passages(load(tmp_path, "![a *big* `pump`\nhere](x.png)\n\n![](y.png)\n")) == ["a big pump here"]


def test_an_empty_heading_ends_those_above_it(tmp_path: Path) -> None:
    document = load(tmp_path, "# T\n\n## A\n\n### B\n\na\n\n##\n\nb\n")
    last = list(document.of_kind(Kind.PASSAGE))[-1]
    assert (document.text_of(last), document.spans.parent[last]) == ("b", 0)


def test_headings_in_containers_are_passages(tmp_path: Path) -> None:
    document = load(tmp_path, "x\n\n## A\n\n- # in a list\n\nafter\n")
    assert titles(document) == ["A"]
    assert passages(document) == ["x", "in a list", "after"]


@pytest.mark.parametrize("text", ["> " * 200 + "deep", "- " * 200 + "deep"], ids=["quotes", "lists"])
def test_hostile_nesting_is_refused_and_not_cut_off(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="nested deeper than 100"):
        load(tmp_path, text)


@pytest.mark.parametrize("text", ["[" * 20_000 + "x", "![" * 5_000 + "x", "*a **b " * 3_000, "a" + "`" * 9_999 + "x"])
def test_hostile_inline_content_is_read(text: str, tmp_path: Path) -> None:
    assert load(tmp_path, text).text


def test_a_table_is_a_section_with_its_header_as_title(tmp_path: Path) -> None:
    document = load(tmp_path, "# T\n\n| Oil | [Hours](#t) |\n|---|---|\n| olive | 5 |\n\n> a | b\n> -|-\n> c | d\n")
    assert titles(document) == ["T", "Oil | Hours", "a | b"]
    assert passages(document) == ["olive | 5", "c | d"]
    tables = {document.labels[document.spans.tag[i]] for i in document.of_kind(Kind.SECTION)} - {"document"}
    assert tables == {"table"}


@pytest.mark.parametrize(("table", "expected"), [("| a | b |\n|---|---|\n", ["a | b"]), ("| | |\n|---|---|\n| c | d |\n", ["c | d"])])
def test_a_table_without_a_header_or_a_body_stays_an_element(table: str, expected: list[str], tmp_path: Path) -> None:
    document = load(tmp_path, table)
    assert (titles(document), passages(document)) == ([], expected)
    assert [document.labels[document.spans.tag[i]] for i in document.of_kind(Kind.ELEMENT)] == ["table"]


def test_long_code_becomes_several_passages_and_keeps_its_lines(tmp_path: Path) -> None:
    code = "\n\n".join(f"def f{number}():\n    return {number}" for number in range(200))
    document = load(tmp_path, f"Before.\n\n```{{.Python}}\n{code}\n```\n\n    indented\n      code\n\n```js\nx\n```\n")
    found = [document.text_of(i) for i in document.of_kind(Kind.PASSAGE) if document.labels[document.spans.tag[i]] == "code"]
    assert code in document.text
    assert "\n\n".join(found[:-2]) == code
    assert found[-2:] == ["indented\n  code", "x"]
    assert len(found) > 3
    assert max(map(len, found)) <= 1500
    assert all(piece.startswith("def f") for piece in found[:-2])
    assert document.metadata == {"code_language": ["python", "js"]}


def test_text_that_needs_no_parser_is_read_as_by_the_parser() -> None:
    lines = ["plain", "  two", "\ttab", "    four", "- item", "> quote", "1. one", "# h", "===", "---", "a | b", "-|-", "[x]: y", "", "é"]
    plain = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["inline", "text_join"])
    chance = random.Random(5)
    for _ in range(1_000):
        text = "\n".join(chance.choices(lines, k=chance.randrange(1, 9)))
        assert _PARSER.parse(text) == plain.parse(text)


def test_simple_inline_text_is_read_as_by_the_parser() -> None:
    pieces = [
        "a",
        "b1",
        " ",
        "\n",
        "*",
        "**",
        "`",
        "_",
        "~",
        "~~",
        "[",
        "]",
        "(#y)",
        "!",
        ":",
        ".",
        "(",
        ")",
        "é",
        "-",
        "\xa0",
        "“",
        "\u0301",
    ]
    pieces += ["[l](u.md)", "**b**", "`c d`", "*i*", "[`x`](https://e.org/a_b#c)", "](", "**N:** ", "a_b", "\u0301"]
    chance = random.Random(1)
    found = 0
    for _ in range(5_000):
        text = "".join(chance.choices(pieces, k=chance.randrange(1, 9))).strip()
        tokens = simple_inline(text)
        if tokens is not None:
            found += 1
            simple, parsed = (_MarkdownReader(Source("x.md", "x.md"), {}, {}) for _ in range(2))
            simple.add_simple(tokens)
            parsed.add_parsed(_PARSER.inline.parse(text, _PARSER, {}, []))
            assert (simple.inline.take(), simple.builder.cites) == (parsed.inline.take(), parsed.builder.cites), text
    assert found > 1_000


@pytest.mark.parametrize("text", ["**a", "*a ", "[a](b", "`a ", "a_", "~a", "!"])
def test_simple_inline_text_takes_linear_time(text: str) -> None:
    assert is_linear(lambda times: simple_inline(text * times), 40_000)
