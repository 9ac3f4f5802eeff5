import pytest

from perikope.core.errors import InputError
from perikope.document.tree import Kind, TreeBuilder


def test_blocks_are_separated_and_spans_name_their_text():
    builder = TreeBuilder("d1", title="Pumps", language="de")
    with builder.span(Kind.SECTION, "sec", id="s1", part="claims"):
        builder.title("Rotor")
        builder.open(Kind.PASSAGE, "p")
        builder.text("A ")
        builder.open(Kind.MARK, "b")
        builder.text("magnet")
        builder.close()
        builder.text(" turns.")
        builder.refer("s1")
        builder.close()
    document = builder.build()
    assert document.text == "Pumps\nRotor\nA magnet turns."
    assert (document.title, document.language) == ("Pumps", "de")
    assert document.outline().splitlines() == [
        "section document language=de",
        "  title title part=title 'Pumps'",
        "  section sec #s1 part=claims",
        "    title title 'Rotor'",
        "    passage p ->s1 'A magnet turns.'",
        "      mark b 'magnet'",
    ]


def test_marks_nest_by_their_ranges():
    builder = TreeBuilder("d1")
    builder.passage("one two three", marks=[("it", 4, 7), ("b", 0, 7), ("u", 8, 13)])
    assert [line.strip() for line in builder.build().outline().splitlines()[2:]] == ["mark b 'one two'", "mark it 'two'", "mark u 'three'"]
    assert list(builder.build().spans.parent) == [-1, 0, 1, 2, 1]


def test_headings_close_what_is_deeper():
    builder = TreeBuilder("d1")
    builder.heading(1, "A")
    builder.heading(3, "A.1")
    builder.heading(2, "A.2")
    builder.heading(1, "B")
    assert [line for line in builder.build().outline().splitlines() if "section" in line] == [
        "section document language=en", "  section h1", "    section h3", "    section h2", "  section h1",
    ]  # fmt: skip


@pytest.mark.parametrize(("id", "text", "complaint"), [("", "word", "has no id"), ("d1", " … ", "'d1' is empty")])
def test_a_document_needs_an_id_and_a_word(id, text, complaint):
    builder = TreeBuilder(id)
    builder.passage(text)
    with pytest.raises(InputError, match=complaint):
        builder.build()


def test_references_to_what_a_span_holds_lead_to_the_span() -> None:
    builder = TreeBuilder("d")
    first = builder.passage("A table.", refs=["table"])
    second = builder.passage("A list.", id="p2")
    third = builder.passage("See both.", refs=["table", "row", "list", "p2", "elsewhere"])
    for id, span in (("table", first), ("row", first), ("list", second)):
        builder.hold(id, span)
    document = builder.build()
    assert document.span_ids == {first: "table", second: "p2"}
    assert document.references == ((third, "table"), (third, "p2"), (third, "elsewhere"))
