from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.text.sentences import sentence_spans
from tests.support.growth import is_linear


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["The pump stops.", "The valve closes!", "Why?", "Because…", "It must."],
        ["He said “stop.”", "Nobody did.", "(It was late.)", "«Oui.»", "'So.'", "Well?!", '"Yes."', "[See below.]", "End"],
        ["Rated 3.5 bar at 2.1 m.", "40 litres are enough.", "„Gut.“", "¿Cómo?", "¡Así!"],
        ["Насос стоит.", "Клапан закрыт.", "Вот так."],
        ["يعمل المضخة.", "هل توقفت؟", "نعم."],
        ["पंप चालू है।", "वाल्व बंद है।", "ठीक."],
        ["Wir prüfen Druck usw.", "Danach läuft die Pumpe."],
        ["Tools, gaskets, etc.", "They are in the box."],
        ["No.", "The pump does not leak."],
        ["It waits 20 ms.", "Then it starts."],
        ["He left at 5 p.m.", "The U.S. pump was sold.", "It came at 9:30 A.M.", "A man took it at 10a.m.", "I saw him."],
        ["1. Open the valve.", "2. Close it.", "(3. Wait.)"],
    ],
)
def test_a_sentence_ends_before_what_can_begin_one(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "See e.g. Fig. 3, Figs. 4 and 5, i.e. No. 7 and Nos. 8 to 9 (cf. Prof. Smith vs. Dr. Jones, approx. 40 pp. long).",
        "As Miller et al. Report in U.S. Pat. No. 5,000,000, it holds.",
        "Der Druck bzw. Die Temperatur, z.B. Nach Abb. 3, vgl. Nr. 4, ggf. Auch mehr.",
        "Une vanne, p. ex. Celle de la fig. 2, ou p.ex. Celle de M. Dupont.",
        "J. R. R. Smith wrote it with Ms. Brown on Sept. 3 at St. Gallen.",
        "It runs at 3.5 bar.Then it stops",
        "The motor (see above.) stops... and the pump! yes? no.",
        "It starts at 5 p.m. EST, at 6 a.m. Monday, at 7 P.M. Eastern Time and at 9 a.m. on Sunday, before 10 a.m. (in winter).",
        "The pump of P.M. Smith and A.M. Turing",
        "A. Introduction",
        "iv. Introduction",
        "one line\nand the next\r\nbelong together",
    ],
)
def test_a_full_stop_inside_a_sentence_does_not_end_it(text: str) -> None:
    assert sentences(text) == [text]


def test_a_blank_line_ends_a_sentence_whatever_follows() -> None:
    assert sentences("a heading\n\nthe text\r\n \t\r\nmore\u2029and more\nhere") == ["a heading", "the text", "more", "and more\nhere"]


def test_full_width_marks_need_no_white_space() -> None:
    assert sentences("泵停止。「阀门关闭。」为什么？！因为。") == ["泵停止。", "「阀门关闭。」", "为什么？！", "因为。"]


def test_white_space_alone_holds_no_sentence() -> None:
    assert sentence_spans("") == sentence_spans(" \n\n\t\u2029 ") == []
    assert sentences("\n\n  Stop.  \n\n\n  Go.\n ") == ["Stop.", "Go."]


@pytest.mark.parametrize("unit", [".", ".)", ". ", ".\n", "\n", "\n ", "a. ", "A. B", "…)", "。", "x"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    assert is_linear(lambda times: sentence_spans(unit * times), 20_000 // len(unit))


texts = st.text(st.sampled_from(" \n\r\t.!?…。！？\"'”)([«aAbZéß3९कم中\u2029\ud800")) | st.text()


@given(texts)
def test_sentences_are_trimmed_ordered_and_cover_all_that_is_not_white_space(text: str) -> None:
    spans = sentence_spans(text)
    last = 0
    for start, end in spans:
        assert not text[last:start].strip()
        assert start < end
        assert text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()


@given(texts, texts)
def test_paragraphs_are_split_apart(first: str, second: str) -> None:
    assert sentences(f"{first}\n\n{second}") == sentences(first) + sentences(second)
