"""Made-up words and sentences, drawn with a seed.

Words of one language end alike, so that a word-by-word translation exists and no word belongs to two languages.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

CONSONANTS, VOWELS = "bdfgklmnprtvz", "aiou"
ENDINGS = {"en": "x", "de": "kh", "fr": "q"}
"""What the words of a language end in: no stemmer knows these endings."""
SMALL_WORDS = {
    "en": ("the", "of", "a", "in", "and", "with", "to", "is"),
    "de": ("der", "die", "das", "und", "mit", "in", "von", "ist"),
    "fr": ("le", "la", "de", "et", "avec", "dans", "un", "est"),
}
SMALL_SHARE = 0.3
"""Share of small words in running text."""


def make_words(count: int, chance: random.Random, taken: set[str]) -> list[str]:
    """Draw `count` word stems that are not in `taken`, and add them to it."""
    stems: list[str] = []
    while len(stems) < count:
        stem = "".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(chance.choice((2, 3, 3))))
        if stem not in taken:
            taken.add(stem)
            stems.append(stem)
    return stems


def word(stem: str, language: str) -> str:
    """The word of a stem in a language.

    >>> word("bado", "en"), word("bado", "de")
    ('badox', 'badokh')
    """
    return stem + ENDINGS[language]


def translate(text: str, source: str, target: str = "en") -> str:
    """Translate made-up words; other words stay as they are.

    >>> translate("der badokh", "de")
    'der badox'
    """
    ending = ENDINGS[source]
    return " ".join(token.removesuffix(ending) + ENDINGS[target] if token.endswith(ending) else token for token in text.split())


def sentence(stems: Sequence[str], planted: Sequence[str], length: int, language: str, chance: random.Random) -> list[str]:
    """A sentence of about `length` words: small words, words of `stems`, and each of `planted` once."""
    small = SMALL_WORDS[language]
    words = [
        chance.choice(small) if chance.random() < SMALL_SHARE else word(chance.choice(stems), language)
        for _ in range(max(1, length - len(planted)))
    ]
    for stem in planted:
        words.insert(chance.randint(0, len(words)), word(stem, language))
    return words


def written(words: Sequence[str]) -> str:
    """Words as a sentence: a capital letter and a full stop."""
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:]}."
