"""reStructuredText: nothing that is text is lost, whatever directive, role or table it is in."""

from __future__ import annotations

import perikope as pk
from perikope.document.tree import Kind

HEAD = "Guide\n=====\n\n"


def read(tmp_path, text: str):
    (tmp_path / "a.rst").write_text(HEAD + text)
    [document] = pk.read(tmp_path / "a.rst")
    return document


def passages(tmp_path, text: str) -> list[tuple[str, str]]:
    document = read(tmp_path, text)
    return [(document.labels[document.spans.tag[span]], document.text_of(span)) for span in document.of_kind(Kind.PASSAGE)]


def test_bodies_of_directives(tmp_path):
    text = (
        ".. warning:: Never\n   run dry.\n\n   Or wet.\n\n.. note::\n   :collapsible: yes\n\n   A note.\n\n.. tip::\n\n     Grease it.\n\n"
    )
    text += ".. figure:: a.png\n\n   The caption.\n\n   The legend.\n\n   ..\n\nText.\n\n   A quotation\n   of two lines.\n"
    assert passages(tmp_path, text) == [
        ("p", "Never run dry."), ("p", "Or wet."), ("p", "A note."), ("p", "Grease it."), ("caption", "The caption."),
        ("p", "The legend."), ("p", "Text."), ("blockquote", "A quotation of two lines."),
    ]  # fmt: skip


def test_sphinx(tmp_path):
    text = "See :func:`~os.path.join`, :ref:`the care <care>` and :unknown:`!x`.\n\n.. toctree::\n\n   a/b\n\n"
    text += ".. py:function:: start(speed)\n   :module: pump\n\n   Starts.\n\n   :param speed: in turns\n\n"
    text += "   .. versionadded:: 3.2\n      It is new.\n\n"
    text += ".. class:: Pump(x)\n\n   A pump.\n\n"
    text += ".. code-block:: python\n   :emphasize-lines: 1\n   :caption: Use\n\n   if x:\n       start()\n\n"
    text += ".. tab-item:: Linux\n   :sync: a\n\n   On Linux.\n"
    assert passages(tmp_path, text) == [
        ("p", "See join, the care and x."), ("dt", "start(speed)"), ("dd", "Starts."), ("li", "param speed: in turns"),
        ("dd", "New in version 3.2 It is new."), ("dt", "Pump(x)"), ("dd", "A pump."), ("caption", "Use"), ("code", "if x:\n    start()"),
        ("p", "Linux"), ("p", "On Linux."),
    ]  # fmt: skip


def test_tables(tmp_path):
    text = "=== === =========\nA   B   C\n=== === =========\n1   2   last one\n3   4   the last column\n=== === =========\n\n"
    document = read(tmp_path, text + ".. list-table:: Parts\n   :header-rows: 1\n\n   * - X\n     - Y\n   * - 5\n     - 6\n")
    outline = document.outline()
    assert "title title 'A | B | C'\n    passage tr '1 | 2 | last one'\n    passage tr '3 | 4 | the last column'" in outline.replace(
        "  " * 3, "    "
    )
    assert "'X | Y'" in outline
    assert "passage tr '5 | 6'" in outline
    assert "passage caption 'Parts'" in outline


def test_lists_and_fields(tmp_path):
    text = ":Author: Ann; Bob\n:Date: 2024-05-06\n\nterm : kind\n   Its meaning\n   on two lines.\n\n   More.\n\n"
    text += "- one\n  and a half\n\n  - two\n\n"
    text += "-v, --verbose  Say more.\n\n.. [1] A footnote.\n\n| Line\n| break\n"
    document = read(tmp_path, text)
    assert document.metadata == {"author": ["Ann", "Bob"], "date": "2024-05-06"}
    assert [document.text_of(span) for span in document.of_kind(Kind.PASSAGE)] == [
        "term : kind", "Its meaning on two lines.", "More.", "one and a half", "two", "-v, --verbose", "Say more.", "[1] A footnote.",
        "Line break",
    ]  # fmt: skip


def test_what_docutils_refuses_is_text(tmp_path):
    text = "Text *open and |unknown|, gone_.\n\n"
    text += ".. list-table:: T\n   :widths: none of them\n\n   * - kept\n     - too\n\n+---+\n| bad cell\n+---+--+\n"
    texts = " ".join(text for _, text in passages(tmp_path, text))
    for words in ("Text *open and |unknown|, gone_.", "kept", "bad cell"):
        assert words in texts


def test_files_are_never_read(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of the machine")
    lines = [f".. {name}::{'' if option else f' {secret}'}\n{option}\n" for name, option in (
        ("include", ""), ("literalinclude", ""), ("csv-table", f"   :file: {secret}\n"), ("csv-table", f"   :url: file://{secret}\n"),
    )]  # fmt: skip
    lines.append(f".. raw:: html\n   :file: {secret}\n")
    document = read(tmp_path, "Text.\n\n" + "\n".join(lines))
    assert "Text." in document.text
    assert "secret of" not in document.text
