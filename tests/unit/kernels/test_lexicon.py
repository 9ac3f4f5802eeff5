"""The word table equals a dictionary, also while it grows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.index.lexicon import Lexicon
from perikope.text.analysis import Analyzer, words

ANALYZER = Analyzer()


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=40), st.integers(0, 1)), max_size=6))
def test_terms_of_texts(batches):
    lexicon = Lexicon(ANALYZER, ["en", "fr"])
    for text, language in batches:
        characters = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        starts, ends = lexicon.words(characters)
        numbers = lexicon.terms(characters, starts, ends, np.full(starts.size, language, np.int32))
        code = ("en", "fr")[language]
        expected = [ANALYZER.term(word, code) for word in words(text)]
        names = [lexicon.term_names[number].decode() for number in numbers]
        assert names == ["" if term is None else f"{code}:{term}" for term in expected]


def test_a_large_vocabulary_outgrows_every_table():
    lexicon = Lexicon(Analyzer("none", "none"), ["en"])
    text = " ".join(f"w{i}x{'y' * (i % 50)}" for i in range(30_000)) + " W7x" + "z" * 100_000
    characters = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    starts, ends = lexicon.words(characters)
    numbers = lexicon.terms(characters, starts, ends, np.zeros(starts.size, np.int32))
    names = lexicon.term_names
    assert [names[number].decode() for number in numbers] == [f"en:{word.lower()}" for word in words(text)]
