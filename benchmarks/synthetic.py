"""Collections of any size with the statistics of English text, as JSON Lines; the same seed gives the same bytes.

What is modelled (the constants were set by hand so that the counts come near those of Evidence Inference, 4 million
words):

- Rank and frequency: Zipf-Mandelbrot, 1 / (rank + 2.7)^1.07, down to rank 5000 and 1 / rank^(1 / 0.55) below, as in
  real text (Ferrer i Cancho and Solé 2001). Words are drawn independently; their distinct number then grows about as
  Heaps' law says, with exponent 0.55: 62,600 in 4 million words, where the real collection has 63,000. Fewer of them
  occur only once: 30 % against 46 %.
- Repetition: a word of a document is a copy of an earlier one, more often in longer documents. Documents of 4,332 words
  have 880 distinct ones on average, real ones 970; without copies it would be about 1,800, and twice the postings.
- Words: the 90 most frequent are English stop words in their order of frequency; the others are made of alternating
  consonants and vowels, longer where rarer, and three in ten have an English ending, so that a stemmer has work to do.
- Shape: a title, passages of about 65 words, sentences of about 20; documents of more than 600 words have sections with
  titles.

Not modelled: numbers, punctuation inside sentences, letters beyond ASCII, word order (stored text compresses worse than
real text).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

VERSION = 1
"""In the file name: a change of the generator makes new files."""

STOP_WORDS = tuple(
    """the of and to a in is that for it as was with be by on not he i this are or his from at which but have an had they you were their
    all we can her has there been if more when will would who so no she other its may these what them than some him into only do such my
    about out also any up could our then most me should after your very between over did those where must through how being because before
    under""".split()  # noqa: SIM905
)
_TYPES = 1_500_000
_BREAK = 5000
_HEAPS = 0.55
_CONSONANTS = np.array(list("tnsrlcdmpgbfvkhwzjxq"))
_CONSONANT_WEIGHTS = np.array([14, 12, 11, 11, 9, 8, 8, 6, 6, 5, 4, 4, 3, 2, 3, 2, 0.5, 0.5, 0.3, 0.2])
_VOWELS = np.array(list("eaiou"))
_VOWEL_WEIGHTS = np.array([12, 8, 7.5, 7.5, 3])
_ENDINGS = ("s", "s", "s", "ed", "ing", "ing", "er", "ly", "al", "ation", "ness", "ment")
_TITLE = 8
_SECTION = 600
_BATCH = 1_000_000


@dataclass(frozen=True, slots=True)
class Collection:
    """What a synthetic collection is made from."""

    documents: int = 200_000
    tokens: int = 195
    seed: int = 1

    @property
    def name(self) -> str:
        return f"synthetic-v{VERSION}-{self.documents}x{self.tokens}-seed{self.seed}"

    def file(self, folder: Path) -> Path:
        """The collection as a file: the one made before, or a new one."""
        path = folder / f"{self.name}.jsonl"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            with open(unfinished, "w", encoding="ascii") as stream:
                stream.writelines(json.dumps(document) + "\n" for document in generate(self))
            unfinished.rename(path)
        return path


SHORT = Collection()
LONG = Collection(documents=50_000, tokens=4_000)
"""200 million words in long documents; `columns` takes a tenth of it."""


def generate(collection: Collection) -> Iterator[dict[str, object]]:
    """The documents, in batches of about a million words."""
    random = np.random.default_rng([VERSION, collection.documents, collection.tokens, collection.seed])
    batch = max(1, _BATCH // collection.tokens)
    for first in range(0, collection.documents, batch):
        count = min(batch, collection.documents - first)
        lengths = np.maximum(20, random.gamma(4, collection.tokens / 4, count)).astype(np.int64)
        words = vocabulary()[_ranks(random, lengths)].tolist()
        cuts = random.integers(30, 101, lengths.sum() // 30 + count).tolist()  # the lengths of passages, more than enough of them
        end = 0
        for number, length in enumerate(lengths.tolist()):
            start, end = end, end + length
            yield _document(f"s{collection.seed}-{first + number:07}", words[start:end], cuts)


def _ranks(random: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
    """The ranks of all words of some documents: fresh ones, and copies of earlier ones in the same document."""
    total = int(lengths.sum())
    drawn = np.searchsorted(_cumulated(), random.random(total))
    place = np.arange(total)
    position = place - np.repeat(np.cumsum(lengths) - lengths, lengths)
    copied = random.random(total) < 0.75 * position / (position + 400)
    source = np.where(copied, place - position + (random.random(total) * position).astype(np.int64), place)
    while not np.array_equal(further := source[source], source):  # a copy of a copy, down to a word that was drawn
        source = further
    return drawn[source]


def _document(name: str, words: list[str], cuts: list[int]) -> dict[str, object]:
    title, rest = words[:_TITLE], words[_TITLE:]
    document: dict[str, object] = {"id": name, "title": " ".join(title).capitalize(), "metadata": {"year": str(1990 + len(words) % 30)}}
    if len(words) <= _SECTION:
        return document | {"passages": _passages(rest, cuts)}
    sections = [rest[at : at + _SECTION] for at in range(0, len(rest), _SECTION)]
    return document | {"sections": [{"title": " ".join(part[:4]).capitalize(), "passages": _passages(part[4:], cuts)} for part in sections]}


def _passages(words: list[str], cuts: list[int]) -> list[str]:
    passages, start = [], 0
    while start < len(words):
        end = start + cuts.pop() if cuts else len(words)
        sentences = (words[at : min(at + 20, end)] for at in range(start, min(end, len(words)), 20))
        passages.append(" ".join(" ".join(sentence).capitalize() + "." for sentence in sentences))
        start = end
    return passages


@lru_cache(maxsize=1)
def _cumulated() -> np.ndarray:
    """The probability of a word or a more frequent one, by rank from 0."""
    cumulated = np.cumsum(weights())
    cumulated /= cumulated[-1]
    return cumulated


def weights() -> np.ndarray:
    """The relative frequency of each word, by rank from 0."""
    rank = np.arange(1, _TYPES + 1, dtype=np.float64)
    common = (rank + 2.7) ** -1.07
    return np.where(rank <= _BREAK, common, common[_BREAK - 1] * (rank / _BREAK) ** (-1 / _HEAPS))


@lru_cache(maxsize=1)
def vocabulary() -> np.ndarray:
    """All words by rank: the same in every collection, all distinct."""
    random = np.random.default_rng(VERSION)
    longest = 24
    letters = np.empty((_TYPES, longest), "U1")
    letters[:, 0::2] = random.choice(_CONSONANTS, (_TYPES, longest // 2), p=_CONSONANT_WEIGHTS / _CONSONANT_WEIGHTS.sum())
    letters[:, 1::2] = random.choice(_VOWELS, (_TYPES, longest // 2), p=_VOWEL_WEIGHTS / _VOWEL_WEIGHTS.sum())
    strings = letters.view(f"U{longest}").ravel().tolist()
    rank = np.arange(_TYPES)
    mean = 3.2 + 0.95 * np.log10(np.maximum(rank, len(STOP_WORDS)) / len(STOP_WORDS))
    lengths = np.clip(np.rint(random.normal(mean, 1.0)), 2, 14).astype(int).tolist()
    ending = random.integers(0, len(_ENDINGS), _TYPES).tolist()
    base = (len(STOP_WORDS) + random.random(_TYPES) * np.maximum(rank - len(STOP_WORDS), 1)).astype(int).tolist()
    inflected = ((random.random(_TYPES) < 0.3) & (rank > 500)).tolist()

    words = list(STOP_WORDS)
    taken = set(words)
    for number in range(len(words), _TYPES):
        word = words[base[number]] + _ENDINGS[ending[number]] if inflected[number] else strings[number][: lengths[number]]
        length = lengths[number]
        while word in taken:
            length += 1
            word = strings[number][:length] if length <= longest else f"{strings[number]}{number}"
        taken.add(word)
        words.append(word)
    return np.array(words, object)
