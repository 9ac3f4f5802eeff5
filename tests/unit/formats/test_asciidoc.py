"""AsciiDoc: what a reader of the page sees is text, also what looks like a tag of HTML; anchors are not."""

from __future__ import annotations

import time

import pytest

import perikope as pk
from perikope.document.tree import Kind
from perikope.formats import asciidoc


def read(tmp_path, text: str):
    (tmp_path / "a.adoc").write_text(text)
    [document] = pk.read(tmp_path / "a.adoc")
    return document


def texts(document, kind: Kind = Kind.PASSAGE) -> list[str]:
    return [document.text_of(span) for span in document.of_kind(kind)]


def test_angle_brackets_are_text(tmp_path):
    lines = "= A List<String>\n\nList<String> and x<y or a > b, `Map<K, V>`.\n\n* a Set<T>\n\nterm<T>:: its <b>use</b>\n\n<div>\n\n"
    document = read(tmp_path, lines + "|===\n|Type |Use\n|Map<K> |a<b\n|===\n\n____\nA Bag<T>.\n____\n\n----\nList<String> x;\n----\n")
    assert document.title == "A List<String>"
    assert texts(document) == [
        "List<String> and x<y or a > b, Map<K, V>.", "a Set<T>", "term<T> its <b>use</b>", "<div>", "Map<K> | a<b", "A Bag<T>.",
        "List<String> x;",
    ]  # fmt: skip


def test_shifts_are_no_references(tmp_path):
    document = read(tmp_path, "Take x << 2 and y >> 3, see <<care,Care>>, <<seal>>, xref:a.adoc[`b<c>`] and <<part one>>.\n")
    assert texts(document) == ["Take x << 2 and y >> 3, see Care, seal, b<c> and part one."]


def test_anchors_are_left_out(tmp_path):
    document = read(
        tmp_path, "= Guide [[top]]\n\n[[a]]\n== [[care]]Care\n\n[[b,Label]]Text, `[[x]]` and if [[ -f y ]].\n\n* [[[ref]]] A book\n"
    )
    assert texts(document, Kind.TITLE) == ["Guide", "Care"]
    assert texts(document) == ["Text, [[x]] and if [[ -f y ]].", "[[[ref]]] A book"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("menu:File[Save > As], menu:View[Zoom, Reset] and menu:Help[].", "File > Save > As, View > Zoom > Reset and Help."),
        ("Press kbd:[Ctrl+T], kbd:[\\]] or btn:[OK].", "Press Ctrl+T, ] or OK."),
        ("See xref:a.adoc#b[Install *now*], xref:b[], link:c.html[the file,window=_blank], link:d.html[].",
         "See Install now, b, the file, d.html."),
        ("At https://x.org/a_b[the site^], https://y.org[], link:++https://z.org/__a++[here], mailto:a@b.org[us].",
         "At the site, https://y.org, here, us."),
        ("A pump.footnote:[Some https://x.org[*bold*]\nnote\\].] It turnsfootnote:id[Named], footnote:id[] and footnoteref:[o,old].",
         "A pump. (Some bold note].) It turns (Named), and (old)."),
        ("Here image:a.png[The pump,100] and image:b.png[width=1] icon:heart[role=red].", "Here The pump and ."),
        ("pass:[<u>under</u>], +++<b>x</b>+++, +a *b* {c}+, `+d _e_+`, stem:[x^2 [1\\]].", "under, x, a *b* {c}, d _e_, x^2 [1]."),
        ("((shown)) indexterm2:[too] (((hidden, a)))indexterm:[b].", "shown too."),
        ("[.big]#large#, H~2~O, x^2^, **un**bound, [#i]*bold* anchor:c[label]end", "large, H2O, x2, unbound, bold end"),
        ("{name} of {nbsp}{Name}, \\{name} and {other}", "Pump of Pump, {name} and {other}"),
        ("an array[0](x) and a *_b_*", "an array[0](x) and a b"),
        ("x <<<<<<< mine and >>>>>>> yours, \"`so`\"", "x <<<<<<< mine and >>>>>>> yours, “so”"),
        ("1) one\n2) two", "1) one 2) two"),
    ],
)  # fmt: skip
def test_no_word_of_the_page_is_lost(text, expected, tmp_path):
    assert texts(read(tmp_path, f":name: Pump\n\n{text}\n")) == [expected]


def test_references_read_as_the_title_of_their_target(tmp_path):
    text = "<<care>>, <<_the_seal>>, <<table-1>> and <<The seal>>.\n\n[#care]\n== The _care_ of pumps\n\n=== The seal\n\n"
    document = read(tmp_path, text + "[[table-1]]\n.Sizes\n|===\n|a\n|b\n|===\n")
    assert texts(document)[0] == "The care of pumps, The seal, Sizes and The seal."


def test_underlined_titles_are_headings_and_no_code(tmp_path):
    document = read(tmp_path, "Guide\n=====\nAnn Cook <a@b.org>; Bo Li\nv1, 2020\n\nText.\n\nNAME\n----\nText\nof it.\n\nSub\n~~~\nMore.\n")
    assert texts(document, Kind.TITLE) == ["Guide", "NAME", "Sub"]
    assert texts(document) == ["Text.", "Text of it.", "More."]
    assert document.metadata == {"author": ["Ann Cook", "Bo Li"]}


def test_only_the_title_of_the_document_is_followed_by_its_authors(tmp_path):
    assert texts(read(tmp_path, "= Book\n\n= Part\nText of the part.\n")) == ["Text of the part."]


def test_literal_paragraphs_are_code_and_descriptions_are_not(tmp_path):
    document = read(tmp_path, "Call it:\n\n  x = <a>*2*\n   y\n\nterm::\n\n  its *use*\n\n....\n<b>\n....\n")
    assert texts(document) == ["Call it:", "  x = <a>*2*\n   y", "term", "its use", "<b>"]
    assert document.outline().count("passage code ") == 2


def test_blocks_keep_their_words(tmp_path):
    text = 'image::a.png[The pump,title="A view"]\n\n[quote, Ann Cook, A book]\n____\nSaid.\n\n* item\n____\n\n[verse, Bo]\nRoses\nare\n\n'
    text += '[WARNING]\n====\nHot.\n====\n\n<1> first\n<2> second\n\n"Air"\n-- Somebody\n\n++++\n<b>raw</b><script>no</script>\n++++\n\n'
    text += (
        ".Merge\n[caption=\"Rule: \"]\n=====\nAlways.\n=====\n\n:unset: x\n:unset!:\nifdef::unset[no]\nifndef::unset[yes {unset}]\n\n'''\n"
    )
    assert texts(read(tmp_path, text)) == [
        "The pump", "A view", "Said.", "item", "— Ann Cook, A book", "Roses are", "— Bo", "WARNING: Hot.", "first", "second",
        '"Air" -- Somebody', "raw", "Rule: Merge", "Always.", "yes {unset}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("|===\n|A |B\n\n|1\n|2 goes\non here |3\n|4\n|===", ["A | B", "1 | 2 goes on here", "3 | 4"]),
        ('[cols="1,2"]\n|===\n|A\n|B\n|1\n|2\n|===', ["A | B", "1 | 2"]),
        ("|===\n|A |B |C\n\n2+|both |x\n.2+|down |y|z\n|v |w\n3*|q\n|===",
         ["A | B | C", "both | both | x", "down | y | z", "down | v | w", "q | q | q"]),
        (',===\nA,"B, b"\n1,2\n,===', ["A | B, b", "1 | 2"]),
        ('[%header,format=csv,separator=;]\n|===\nA;B\n1;|2\n|===', ["A | B", "1 | |2"]),
        (":===\nA:B\n1:2\n:===", ["A | B", "1 | 2"]),
        ("|===\n| |B\n|1 a|* two\n* three\n|===", ["| B", "1 | * two * three"]),
    ],
)  # fmt: skip
def test_tables(table, expected, tmp_path):
    document = read(tmp_path, f"{table}\n")
    found = [document.text_of(span) for span, kind in enumerate(document.spans.kind) if kind in (Kind.TITLE, Kind.PASSAGE)]
    assert [text for text in found if text] == expected


@pytest.mark.parametrize(
    "piece",
    [
        "menu:", "image:", "xref:", "link:https://", "footnote:[", "pass:[", "+++", "<<a", "((", "[[", "`", "``", "##a", "~", "^", "__a",
        "{a}", "|", "2+|", "____\n", "=====\n", "* ", "a::\n", "a\n-\n", "\n", "[quote, a, b]\n", "\\",
    ],
)  # fmt: skip
def test_the_time_grows_with_the_length_only(piece, tmp_path):
    def seconds(count: int) -> float:
        start = time.process_time()
        lines = f":a: {'x' * 20}\n\n{piece * count}".split("\n")
        asciidoc._Rewriter(lines, {}, asciidoc._titles(lines))
        return time.process_time() - start

    short, long = min(seconds(1000) for _ in range(3)), seconds(20000)
    assert long < 100 * max(short, 0.003)


def test_values_of_attributes_stay_short(tmp_path):
    lines = "".join(f":a{number + 1}: {{a{number}}}{{a{number}}}\n" for number in range(40))
    assert len(read(tmp_path, f":a0: x\n{lines}\n{{a40}} {{a3}}\n").text) < 100
