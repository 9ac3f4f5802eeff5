"""AsciiDoc: what looks like a tag of HTML is text, and anchors are not."""

from __future__ import annotations

import perikope as pk
from perikope.document.tree import Kind


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
