"""Documents with the text of some languages only."""

from perikope.document.languages import keep_languages
from perikope.document.tree import Kind, Place, TreeBuilder


def patent():
    builder = TreeBuilder("EP-1-A1", title="Pumpe", language="de")
    with builder.span(Kind.SECTION, "bibliography", part="bibliography"):
        builder.passage("Pump", "title", part="title", language="en")
        builder.passage("WORKS AG", "applicant")
    with builder.span(Kind.SECTION, "abstract", part="abstract", language="en"):
        builder.places[builder.passage("A pump.")] = Place("/abstract[1]/p[1]", 0, 7)
    with builder.span(Kind.SECTION, "description", part="description", language="de"):
        builder.heading(1, "Stand der Technik")
        builder.places[builder.passage("Eine Pumpe.", id="p1", refs=["claim-1"])] = Place("/description[1]/p[1]", 7, 18)
        builder.close_headings()
    with builder.span(Kind.SECTION, "claims", part="claims"):
        builder.passage("Pumpe.", "claim", id="claim-1-de", language="de")
        builder.passage("A pump with a rotor.", "claim", id="claim-1", language="en", marks=[("b", 2, 6)], refs=["p1"])
    return builder.build()


def test_only_text_in_the_languages_is_kept():
    kept = keep_languages(patent(), {"en"})
    assert kept.text == "Pump\nWORKS AG\nA pump.\nA pump with a rotor."
    assert kept.outline() == (
        "section document language=de\n"
        "  section bibliography part=bibliography\n"
        "    passage title part=title language=en 'Pump'\n"
        "    passage applicant 'WORKS AG'\n"
        "  section abstract part=abstract language=en\n"
        "    passage p 'A pump.'\n"
        "  section claims part=claims\n"
        "    passage claim #claim-1 language=en 'A pump with a rotor.'\n"
        "      mark b 'pump'\n"
    ), "the description, its heading and the reference to it are gone; names are kept"
    assert {kept.text_of(span): place.path for span, place in kept.places.items()} == {"A pump.": "/abstract[1]/p[1]"}
    assert [kept.text_of(section) for section in kept.of_kind(Kind.SECTION)] == [
        kept.text, "Pump\nWORKS AG", "A pump.", "A pump with a rotor."
    ]  # fmt: skip


def test_a_document_in_these_languages_is_unchanged_and_one_without_is_left_out():
    document = patent()
    assert keep_languages(document, {"de", "en"}) is document
    builder = TreeBuilder("d", title="Pumpe", language="de")
    builder.passage("Eine Pumpe.")
    assert keep_languages(builder.build(), {"en"}) is None


def test_trailing_text_is_removed():
    kept = keep_languages(patent(), {"de"})
    assert kept.text == "Pumpe\nWORKS AG\nStand der Technik\nEine Pumpe.\nPumpe."
    assert kept.references == ()
