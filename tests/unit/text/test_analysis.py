from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import InputError, UsageError
from perikope.kernels.words import EXTENDER, LETTER, SINGLE
from perikope.text.analysis import (
    ANALYSIS_VERSION,
    SNOWBALL,
    Analyzer,
    default_stopwords,
    fold,
    language_code,
    read_stopwords,
    word_classes,
    word_spans,
    words,
)

STOPWORD_FILES = sorted((Path(sys.modules["perikope.text.analysis"].__file__ or "").parents[1] / "data" / "stopwords").glob("*.txt"))
LANGUAGES = [file.stem for file in STOPWORD_FILES]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" .,;\n", []),
        ("The pump's rotor isn’t over-heated.", ["The", "pump", "s", "rotor", "isn", "t", "over", "heated"]),
        ("l'eau d’été", ["l", "eau", "d", "été"]),
        ("e\u0301te\u0301 et été", ["e\u0301te\u0301", "et", "été"]),
        ("磁力泵和泵", ["磁", "力", "泵", "和", "泵"]),
        ("ポンプは強い", ["ポンプ", "は", "強", "い"]),
        ("เครื่อง", ["เ", "ค", "รื่", "อ", "ง"]),
        ("पंप की मरम्मत", ["पंप", "की", "मरम्मत"]),
        ("насос работает", ["насос", "работает"]),
        ("المِضَخّة تعمل", ["المِضَخّة", "تعمل"]),
        ("co\u00adop \u00adpump", ["co\u00adop", "pump"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("KX-200 3.5 m² ½ Ⅷ ٣", ["KX", "200", "3", "5", "m²", "½", "Ⅷ", "٣"]),
        ("pump_speed __x__", ["pump", "speed", "x"]),
        ("go 🚀pump🚀🚀 👩\u200d🔧", ["go", "pump"]),
        ("a\ud800b \udc00", ["a", "b"]),
        ("𝐀𠀀𠀁", ["𝐀", "𠀀", "𠀁"]),
        ("\u0301a \u0301", ["a"]),
    ],
)
def test_words_of_all_scripts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_offsets_count_characters_and_not_bytes() -> None:
    starts, ends = word_spans("🚀 été, 泵s x")
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [(2, 5), (7, 8), (8, 9), (10, 11)]


def plain_word_spans(text: str) -> list[tuple[int, int]]:
    """The definition of a word, one character after the other."""
    class_of = word_classes()
    found: list[tuple[int, int]] = []
    inside = 0  # the class that the open word began with
    for at, character in enumerate(text):
        here = int(class_of[ord(character)])
        continues = inside and (here == EXTENDER or (inside == LETTER and here == LETTER))
        if continues:
            found[-1] = (found[-1][0], at + 1)
        else:
            inside = here if here in (LETTER, SINGLE) else 0
            if inside:
                found.append((at, at + 1))
    return found


characters = st.characters(exclude_categories=()) | st.sampled_from("aé3_'’ -\u0301\u00ad\u200d泵の่กक्ा🚀\ud800")


@settings(deadline=None)
@given(st.text(characters))
def test_words_equal_those_of_the_plain_twin(text: str) -> None:
    starts, ends = word_spans(text)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == plain_word_spans(text)


@given(st.characters())
def test_folding_a_character_twice_changes_nothing(character: str) -> None:
    assert fold(fold(character)) == fold(character)


def test_words_that_look_the_same_fold_to_the_same() -> None:
    assert fold("e\u0301te\u0301") == fold("ÉTÉ") == "été"
    assert fold("ｐｕｍｐ") == fold("PUMP") == fold("pu\u00admp") == "pump"
    assert fold("ΛΌΓΟΣ") == fold("λόγος")


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("", "und"),
        (" ", "und"),
        ("en", "en"),
        ("EN-us", "en"),
        ("pt_BR", "pt"),
        ("nb", "no"),
        ("nn-NO", "no"),
        ("zh-Hant-TW", "zh"),
        ("gsw", "gsw"),
    ],
)
def test_a_language_tag_gives_its_code(tag: str, code: str) -> None:
    assert language_code(tag) == code


@pytest.mark.parametrize("tag", ["english", "e", "../en", "12", "日本"])
def test_what_is_no_language_tag_is_refused(tag: str) -> None:
    with pytest.raises(UsageError, match="not a language code; use one such as en"):
        language_code(tag)


@pytest.mark.parametrize("file", STOPWORD_FILES, ids=LANGUAGES)
def test_a_stop_list_holds_folded_words_once(file: Path) -> None:
    listed = file.read_text("utf-8").split()
    assert len(listed) >= 40
    assert len(set(listed)) == len(listed)
    for word in listed:
        assert fold(word) == word
        # A word that the tokeniser would cut could never be met.
        assert words(word) == [word]
    assert default_stopwords(file.stem) == set(listed)


def test_there_is_a_stop_list_for_the_languages_most_patents_are_in() -> None:
    assert set(LANGUAGES) >= {"en", "fr", "de", "es", "it", "pt", "nl", "ru", "pl", "sv"}
    assert set(LANGUAGES) <= set(SNOWBALL)
    assert default_stopwords("und") == default_stopwords("zh") == frozenset()


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("en", "The pump doesn't couple: it couples the couplings' rotors", ["pump", "coupl", "coupl", "coupl", "rotor"]),
        ("fr", "L'accouplement de la pompe n'est pas dans les rotors", ["accoupl", "pomp", "rotor"]),
        ("de", "Die Pumpen und das Gehäuse der Kupplungen", ["pump", "gehaus", "kupplung"]),
        ("es", "Las bombas del acoplamiento", ["bomb", "acopl"]),
        ("it", "dell'impianto e delle pompe", ["impiant", "pomp"]),
        ("nl", "De pompen van het huis", ["pomp", "huis"]),
        ("ru", "насосы и муфты", ["насос", "муфт"]),
        ("zh", "磁力泵", ["磁", "力", "泵"]),
        ("xx", "Pumps of the couplings", ["pumps", "of", "the", "couplings"]),
        ("und", "Pumps", ["pumps"]),
    ],
)
def test_terms_by_language(language: str, text: str, terms: list[str]) -> None:
    analyzer = Analyzer()
    assert [term for word in words(text) if (term := analyzer.term(word, language)) is not None] == terms


def test_the_stemmers_differ_and_porter_means_snowball_outside_english() -> None:
    snowball, porter, none = Analyzer(), Analyzer("porter"), Analyzer("none")
    assert [analyzer.term("Generously", "en") for analyzer in (snowball, porter, none)] == ["generous", "gener", "generously"]
    assert [analyzer.term("Kupplungen", "de") for analyzer in (snowball, porter, none)] == ["kupplung", "kupplung", "kupplungen"]
    assert none.term("the", "en") is None


def test_a_decomposed_word_has_the_term_of_a_composed_one() -> None:
    assert Analyzer().term("re\u0301gle\u0301s", "fr") == Analyzer().term("RÉGLÉS", "fr") == "regl"


def test_stop_words_can_be_left_in_or_given() -> None:
    assert Analyzer(stopwords="none").term("the", "en") == "the"
    given = Analyzer(stopwords=("PUMP",))
    assert given.term("Pump", "en") is given.term("pump", "fr") is None
    # Only the word itself stops: the list is compared before stemming.
    assert given.term("pumps", "en") == "pump"
    assert given.term("the", "en") == "the"


def test_stop_words_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "stop.txt"
    file.write_text("Pump the # the usual\n\n# a comment\nÉté pump\n", encoding="utf-8")
    assert read_stopwords(str(file)) == ("pump", "the", "été")


def test_a_stop_word_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: cannot read the list of stop words: No such file"):
        read_stopwords(str(tmp_path / "nowhere"))
    (tmp_path / "latin1").write_bytes("été".encode("latin-1"))
    with pytest.raises(InputError, match="latin1:1: is not UTF-8 text"):
        read_stopwords(str(tmp_path / "latin1"))


@pytest.mark.parametrize("analyzer", [Analyzer(), Analyzer("porter", "none"), Analyzer("none", ("pump", "été"))])
def test_settings_come_back_from_json(analyzer: Analyzer) -> None:
    recorded = json.loads(json.dumps(analyzer.settings()))
    assert recorded["version"] == ANALYSIS_VERSION
    assert Analyzer.from_settings(recorded) == analyzer


def test_unknown_settings_list_the_valid_ones() -> None:
    with pytest.raises(UsageError, match="unknown stemmer 'lovins'; valid: snowball, porter, none"):
        Analyzer("lovins")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="valid: default, none, a file"):
        Analyzer(stopwords="english")  # type: ignore[arg-type]


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_ascii_words_are_cut_as_all_words(text):
    starts, ends = word_spans(text)
    assert words(text) == [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
