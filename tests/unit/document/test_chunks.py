"""Chunks keep the structure, stay within the budget and cover the text of every passage."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.document.chunks import chunks_of, count_tokens
from perikope.document.tree import Kind, Place, TreeBuilder


def manual():
    builder = TreeBuilder("manual 7", title="KX-200", metadata={"year": 2020})
    builder.passage("Intro.")
    builder.heading(1, "Care")
    builder.passage("Switch it off.", id="off")
    builder.passage("Wait an hour.")
    builder.heading(2, "Descaling")
    builder.passage("Every three months.")
    builder.passage("x = 1\ny = 2", tag="code")
    return builder.build()


def test_consecutive_passages_of_a_section_become_one_chunk():
    intro, care, descaling, code = chunks_of(manual())
    assert (care.path, care.text) == (("KX-200", "Care"), "Switch it off.\nWait an hour.")
    assert care.passages == ("manual%207#off", "manual%207#@3")
    assert care.content == "KX-200 › Care\n\nSwitch it off.\nWait an hour."
    assert care.tokens == count_tokens(care.content)
    assert (intro.text, descaling.text, code.text) == ("Intro.", "Every three months.", "x = 1\ny = 2")
    assert care.metadata == {"year": 2020}


def test_chunks_name_their_neighbours_and_their_characters():
    document = manual()
    chunks = chunks_of(document)
    assert [chunk.before for chunk in chunks] == ["", *(chunk.id for chunk in chunks[:-1])]
    assert [chunk.after for chunk in chunks] == [*(chunk.id for chunk in chunks[1:]), ""]
    assert all(chunk.text == document.text[chunk.start : chunk.end] for chunk in chunks)
    assert chunks[0].id == "manual%207#7-13"


def test_without_joining_each_passage_is_a_chunk():
    assert len(chunks_of(manual(), join=False)) == 5


def test_code_is_not_joined_with_text_and_is_cut_between_lines():
    builder = TreeBuilder("d")
    builder.passage("\n".join(f"    line_{number} = {number}" for number in range(6)), tag="code")
    texts = [chunk.text for chunk in chunks_of(builder.build(), budget=9)]
    assert len(texts) > 1
    assert all(line.endswith(tuple("012345")) for text in texts for line in text.split("\n"))


def test_a_long_passage_is_cut_between_sentences_then_words_then_characters():
    builder = TreeBuilder("d")
    builder.passage("One two three. Four five six. " + "Seven eight nine ten eleven. " + "x" * 30 + ".")
    texts = [chunk.text for chunk in chunks_of(builder.build(), budget=12, tokens=len)]
    assert texts[0] == "One two"
    assert all(len(text) <= 12 for text in texts)
    texts = [chunk.text for chunk in chunks_of(builder.build(), budget=6)]
    assert texts == ["One two three. Four five six.", f"Seven eight nine ten eleven. {'x' * 30}."]


@pytest.mark.parametrize("join", [True, False])
def test_passages_that_nobody_can_see_are_not_chunks(join):
    builder = TreeBuilder("d", title="Pumps")
    for text in ("\u200b", "One.", "\ufeff \u00ad", "…", "\u200b" * 40, "Two."):
        builder.passage(text)
    texts = [chunk.text for chunk in chunks_of(builder.build(), budget=12, tokens=len, join=join)]
    assert texts == ["One.", "…", "Two."]
    assert all(chunk.text.strip("\u200b") for chunk in chunks_of(builder.build(), join=join))


def test_a_long_heading_path_leaves_room_for_the_text():
    builder = TreeBuilder("d", title="a very long title of a document with many words")
    builder.heading(1, "Care")
    builder.passage("Wait.")
    (chunk,) = chunks_of(builder.build(), budget=6)
    assert chunk.content == "Care\n\nWait."
    assert chunk.path == ("a very long title of a document with many words", "Care")


def test_parts_and_languages_are_not_joined():
    builder = TreeBuilder("d")
    builder.passage("One.", part="claims")
    builder.passage("Zwei.", part="claims", language="de")
    builder.passage("Trois.", part="abstract")
    assert [(chunk.part, chunk.language) for chunk in chunks_of(builder.build())] == [
        ("claims", "en"),
        ("claims", "de"),
        ("abstract", "en"),
    ]


def test_place_and_citation_are_those_of_the_first_passage():
    builder = TreeBuilder("EP1", metadata={"publication": "EP 1 A1"})
    number = builder.passage("One.")
    builder.passage("Two.")
    builder.citations[number] = "[0001]"
    builder.places[number] = Place("/p[1]", 3, 7)
    (chunk,) = chunks_of(builder.build())
    assert (chunk.citation, chunk.place) == ("EP 1 A1 [0001]", Place("/p[1]", 3, 7))
    assert chunk.to_dict()["place"] == {"path": "/p[1]", "start": 3, "end": 7, "page": 0, "box": ()}


def test_a_budget_must_be_a_whole_number():
    with pytest.raises(UsageError, match="budget"):
        chunks_of(manual(), budget=0)


TEXTS = st.lists(st.text(alphabet="ab. \n(é水", min_size=1, max_size=60), min_size=1, max_size=6)


@given(TEXTS, st.integers(1, 30), st.booleans(), st.sampled_from([len, count_tokens]))
def test_chunks_fit_are_unique_and_cover_every_character(texts, budget, join, tokens):
    builder = TreeBuilder("d", title="T")
    for number, text in enumerate(texts):
        if number % 3 == 2:
            builder.heading(1 + number % 2, f"h{number}")
        builder.passage(text)
    document = builder.build()
    chunks = chunks_of(document, budget=budget, tokens=tokens, join=join)
    assert all(chunk.tokens <= budget or len(chunk.text) == 1 for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    covered = {character for chunk in chunks for character in range(chunk.start, chunk.end)}
    needed = {
        character
        for span in document.of_kind(Kind.PASSAGE)
        for character in range(document.spans.start[span], document.spans.end[span])
        if not re.match(r"\s", document.text[character])
    }
    assert needed <= covered
    assert chunks == chunks_of(document, budget=budget, tokens=tokens, join=join), "the same chunks every time"
