from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.document.segmentation import segmenter
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.text.analysis import word_spans, words


def passages(document: Document) -> list[str]:
    return [document.text_of(i) for i in document.of_kind(Kind.PASSAGE)]


def manual() -> Document:
    builder = TreeBuilder("d1", title="Pump manual")
    builder.passage("Read this first. Keep it.", id="p1", marks=[("b", 5, 9), ("it", 12, 21), ("b", 22, 24)], refs=["s1"])
    with builder.span(Kind.ELEMENT, "list", id="l1"):
        builder.passage("Stop the pump", "item", id="i1", refs=["s1"])
        builder.passage("Drain it", "item")
    with builder.span(Kind.SECTION, "sec", id="s1"):
        builder.title("Rotor")
        builder.passage("It turns.", id="p2")
    builder.passage("The end")
    return builder.build()


def test_markup_is_the_document_itself() -> None:
    document = manual()
    assert segmenter("markup")(document) is document


def test_sentences_become_passages_of_their_paragraph() -> None:
    assert segmenter("sentences")(manual()).outline() == (
        "section document language=en\n"
        "  title title 'Pump manual'\n"
        "  element p #p1 ->s1\n"
        "    passage s 'Read this first.'\n"
        "      mark b 'this'\n"
        "    mark it 'rst. Keep'\n"  # crosses the border, so the paragraph keeps it
        "    passage s 'Keep it.'\n"
        "      mark b 'it'\n"
        "  element list #l1\n"
        "    passage item #i1 ->s1 'Stop the pump'\n"
        "    passage item 'Drain it'\n"
        "  section sec #s1\n"
        "    title title 'Rotor'\n"
        "    passage p #p2 'It turns.'\n"
        "  passage p 'The end'\n"
    )


def test_only_passages_with_the_selected_tags_stay_passages() -> None:
    document = segmenter("tags:p")(manual())
    assert passages(document) == ["Read this first. Keep it.", "It turns.", "The end"]
    assert [document.text_of(span) for span in document.of_kind(Kind.ELEMENT)][1:] == ["Stop the pump", "Drain it"]
    assert document.text == manual().text
    assert segmenter("tags:item,p")(manual()) == manual()
    assert passages(segmenter("tags:li")(manual())) == []


def test_words_cut_runs_and_leave_short_passages_alone() -> None:
    assert segmenter("words:4")(manual()).outline() == (
        "section document language=en ->s1 ->s1\n"
        "  title title 'Pump manual'\n"
        "  passage w 'Read this first. Keep'\n"
        "  mark b 'this'\n"
        "  mark it 'rst. Keep'\n"
        "  passage w 'it.\\nStop the pump'\n"
        "  mark b 'it'\n"
        "  passage w 'Drain it'\n"
        "  section sec #s1\n"
        "    title title 'Rotor'\n"
        "    passage p #p2 'It turns.'\n"
        "  passage p 'The end'\n"
    )


def test_windows_overlap_and_the_last_ends_with_the_run() -> None:
    builder = TreeBuilder("d1")
    builder.passage("one two three four five six seven.")
    document = builder.build()
    cut = {spec: passages(segmenter(spec)(document)) for spec in ("windows:4/2", "windows:4/3", "windows:4/4", "windows:7/1", "words:4")}
    assert cut == {
        "windows:4/2": ["one two three four", "three four five six", "five six seven."],
        "windows:4/3": ["one two three four", "four five six seven."],
        "windows:4/4": ["one two three four", "five six seven."],
        "windows:7/1": ["one two three four five six seven."],
        "words:4": ["one two three four", "five six seven."],
    }


def test_punctuation_stays_with_its_word() -> None:
    builder = TreeBuilder("d1")
    builder.passage("Stop! “Now” (at once), over-heat – gone…")
    assert passages(segmenter("words:1")(builder.build())) == ["Stop!", "“Now”", "(at", "once),", "over-", "heat –", "gone…"]


def test_a_run_ends_where_part_or_language_changes() -> None:
    builder = TreeBuilder("d1")
    builder.passage("one two")
    builder.passage("un deux", language="fr")
    with builder.span(Kind.ELEMENT, "claims", part="claims"):
        builder.passage("three four")
        builder.passage("five six")
    assert segmenter("words:3")(builder.build()).outline() == (
        "section document language=en\n"
        "  passage p 'one two'\n"
        "  passage p language=fr 'un deux'\n"
        "  passage w part=claims 'three four\\nfive'\n"
        "  passage w part=claims 'six'\n"
    )


def test_mixed_content_and_titles_are_left_alone_and_end_a_run() -> None:
    builder = TreeBuilder("d1")
    builder.passage("one")
    with builder.span(Kind.ELEMENT, "item", id="i1"):
        builder.text("mixed content")
        builder.passage("two")
        builder.passage("three")
    builder.passage("four")
    builder.text("loose text")
    builder.passage("five")
    with builder.span(Kind.ELEMENT, "table", id="t1"):
        builder.title("Caption")
        builder.passage("six")
        with builder.span(Kind.ELEMENT, "image", id="f1"):
            pass
        with builder.span(Kind.ELEMENT, "row", id="r1"):
            builder.passage("seven")
    assert segmenter("words:9")(builder.build()).outline() == (
        "section document language=en\n"
        "  passage p 'one'\n"
        "  element item #i1\n"
        "    passage w 'two\\nthree'\n"
        "  passage p 'four'\n"
        "  passage p 'five'\n"
        "  element table #t1\n"
        "    title title 'Caption'\n"
        "    passage w 'six\\nseven'\n"
        "    element image #f1\n"
    )


def with_code() -> Document:
    builder = TreeBuilder("d1")
    builder.passage("One two. Three four five. Six.", id="p1")
    builder.passage("def f(a):\n    return a\n\nf(1)", "code", id="c1", marks=[("b", 4, 5)])
    builder.passage("Seven")
    return builder.build()


def test_at_most_cuts_long_passages_between_sentences_and_code_between_lines() -> None:
    assert segmenter("at-most:3")(with_code()).outline() == (
        "section document language=en\n"
        "  element p #p1\n"
        "    passage p 'One two.'\n"
        "    passage p 'Three four five.'\n"
        "    passage p 'Six.'\n"
        "  element code #c1\n"
        "    passage code 'def f(a):'\n"
        "      mark b 'f'\n"
        "    passage code '    return a'\n"
        "    passage code 'f(1)'\n"
        "  passage p 'Seven'\n"
    )
    assert segmenter("at-most:30")(with_code()) == with_code()


def test_code_has_no_sentences_and_is_not_mixed_with_other_text() -> None:
    assert passages(segmenter("sentences")(with_code())) == ["One two.", "Three four five.", "Six.", passages(with_code())[1], "Seven"]
    document = segmenter("words:4")(with_code())
    tags = [(document.labels[document.spans.tag[i]], document.text_of(i)) for i in document.of_kind(Kind.PASSAGE)]
    assert tags == [
        ("w", "One two. Three four"), ("w", "five. Six."), ("code", "def f(a):\n    return"), ("code", "a\n\nf(1)"),
        ("p", "Seven"),
    ]  # fmt: skip


@pytest.mark.parametrize("tag", ["code", "p", "li", "tr"])
@pytest.mark.parametrize(("spec", "longest"), [("sentences", 1500), ("at-most:50", 200), ("words:50", 200), ("windows:50/25", 200)])
def test_every_segmenter_that_cuts_limits_the_length_of_every_passage(spec: str, longest: int, tag: str) -> None:
    builder = TreeBuilder("d1")
    builder.passage("abc " * 12_000, tag)
    cut = passages(segmenter(spec)(builder.build()))
    assert max(map(len, cut)) <= longest
    if spec != "windows:50/25":
        assert " ".join(cut).split() == ["abc"] * 12_000


def test_a_segmenter_can_be_sent_to_another_process() -> None:
    for spec in ("markup", "at-most:3", "sentences", "tags:p", "words:3", "windows:3/2"):
        copied = pickle.loads(pickle.dumps(segmenter(spec)))
        assert copied(manual()) == segmenter(spec)(manual())


@pytest.mark.parametrize(
    "spec",
    ["", "word:3", "words", "words:", "words:0", "words:-1", "words:1.5", "words:٣", "words:3/2", "words: 3", "WORDS:3",
     "windows:3", "windows:3/0", "windows:3/4", "windows:0/0", "windows:3/2/1", "words:" + "9" * 5000, "sentences:2", "markup ",
     "tags", "tags:", "tags:p,", "tags:p, item", "at-most", "at-most:0", "at-most:3/2"],
)  # fmt: skip
def test_a_wrong_name_is_answered_with_the_valid_forms(spec: str) -> None:
    with pytest.raises(UsageError, match=r"markup, at-most:N, sentences, tags:TAG,…, words:N or windows:N/STEP with 1 ≤ STEP ≤ N"):
        segmenter(spec)


sentence_like = st.lists(
    st.sampled_from(["Stop the pump.", "Why?", "(see", "Fig. 3)", "it runs", "–", "泵停止。", "No.", "\n\n", "e-mail"])
).map(" ".join)
leaf = st.tuples(st.just("passage"), sentence_like, st.sampled_from(["", "fr"]), st.booleans())
node = st.recursive(
    leaf | st.tuples(st.just("text"), sentence_like) | st.tuples(st.just("title"), sentence_like),
    lambda children: st.tuples(st.sampled_from(["section", "element"]), st.lists(children, max_size=4)),
    max_leaves=12,
)


def add(builder: TreeBuilder, node: tuple) -> None:
    match node:
        case ("passage", text, language, marked):
            marks = [("b", 0, len(text)), ("it", len(text) // 3, 2 * len(text) // 3)] if marked else []
            builder.passage(text, id=f"p{len(text)}" if marked else "", language=language, marks=marks, refs=["x"] if marked else [])
        case ("text", text):
            builder.text(text)
        case ("title", text):
            builder.title(text)
        case (kind, children):
            with builder.span(Kind[kind.upper()], "sec" if kind == "section" else "div"):
                for child in children:
                    add(builder, child)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    builder = TreeBuilder("d1", title="Title")
    for child in draw(st.lists(node, max_size=6)):
        add(builder, child)
    return builder.build()


specs = st.sampled_from(["markup", "sentences"]) | st.builds("{}:{}".format, st.sampled_from(["words", "at-most"]), st.integers(1, 9))
windows = st.integers(1, 9).flatmap(lambda length: st.builds(f"windows:{length}/{{}}".format, st.integers(1, length)))


def section_of(document: Document, span: int) -> tuple[int, int, int]:
    """The innermost section around a span: its range and how many sections come before it."""
    while document.spans.kind[span] != Kind.SECTION:
        span = document.spans.parent[span]
    return list(document.of_kind(Kind.SECTION)).index(span), document.spans.start[span], document.spans.end[span]


def words_of_passages(document: Document) -> list[set[int]]:
    """The words of each passage, each by its place in the text."""
    starts = word_spans(document.text)[0].tolist()
    spans = document.spans
    return [{at for at in starts if spans.start[i] <= at < spans.end[i]} for i in document.of_kind(Kind.PASSAGE)]


@settings(deadline=None)
@given(documents(), specs | windows)
def test_the_result_is_a_tree_over_the_same_text(document: Document, spec: str) -> None:
    result = segmenter(spec)(document)
    spans = result.spans
    assert result.text == document.text
    assert spans.parent[0] == -1
    for i in range(1, len(spans)):
        parent = spans.parent[i]
        assert 0 <= parent < i
        assert spans.start[parent] <= spans.start[i] <= spans.end[i] <= spans.end[parent]
    starts = [spans.start[i] for i in result.of_kind(Kind.PASSAGE)]
    assert starts == sorted(starts)
    assert set(result.span_ids) | {source for source, _ in result.references} <= set(range(len(spans)))
    assert [target for _, target in result.references] == [target for _, target in document.references]


@settings(deadline=None)
@given(documents(), specs | windows)
def test_no_passage_crosses_its_section_and_no_word_is_lost_or_won(document: Document, spec: str) -> None:
    result = segmenter(spec)(document)
    before = [section_of(document, i) for i in document.of_kind(Kind.SECTION)]
    assert [section_of(result, i) for i in result.of_kind(Kind.SECTION)] == before
    assert set().union(*words_of_passages(result)) == set().union(*words_of_passages(document))
    home = {
        at: section_of(document, i)
        for i, found in zip(document.of_kind(Kind.PASSAGE), words_of_passages(document), strict=True)
        for at in found
    }
    for i, found in zip(result.of_kind(Kind.PASSAGE), words_of_passages(result), strict=True):
        assert {home[at] for at in found} <= {section_of(result, i)}


@settings(deadline=None)
@given(documents(), specs | windows)
def test_part_language_and_everything_but_passages_and_elements_stay(document: Document, spec: str) -> None:
    result = segmenter(spec)(document)

    def rest(document: Document) -> list[tuple[int, ...]]:
        spans = document.spans
        kept = [i for i, kind in enumerate(spans.kind) if kind not in (Kind.PASSAGE, Kind.ELEMENT)]
        return sorted((spans.kind[i], spans.start[i], spans.end[i], spans.tag[i], spans.part[i], spans.language[i]) for i in kept)

    def languages(document: Document) -> dict[int, int]:
        found = zip(document.of_kind(Kind.PASSAGE), words_of_passages(document), strict=True)
        return {at: document.spans.language[i] for i, words in found for at in words}

    assert rest(result) == rest(document)
    assert languages(result) == languages(document)


@settings(deadline=None)
@given(documents(), st.integers(1, 9))
def test_passages_of_n_words_have_n_words_but_for_the_last_of_a_run(document: Document, length: int) -> None:
    result = segmenter(f"words:{length}")(document)
    spans = result.spans
    cut = list(result.of_kind(Kind.PASSAGE))
    for here, after in pairwise(cut):
        count = len(words(result.text_of(here)))
        assert count <= length
        if count < length:
            apart = any(
                spans.kind[i] in (Kind.SECTION, Kind.TITLE) and spans.start[here] <= spans.start[i] <= spans.start[after]
                for i in range(here + 1, after)
            )
            mixed = bool(words(result.text[spans.end[here] : spans.start[after]]))
            other = (spans.parent[here], spans.language[here]) != (spans.parent[after], spans.language[after])
            assert apart or mixed or other


@settings(deadline=None)
@given(documents(), windows)
def test_no_window_lies_inside_the_one_before(document: Document, spec: str) -> None:
    length, step = map(int, spec.removeprefix("windows:").split("/"))
    found = words_of_passages(segmenter(spec)(document))
    for here, after in pairwise(found):
        assert len(here) <= length
        if here & after:
            assert len(here) == length
            assert len(here - after) == step
            assert after - here
