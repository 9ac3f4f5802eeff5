"""Other terms that stand for a word of a query: near terms for typing mistakes, and synonyms.

They count as the same word. In a Boolean query, the word matches where one of its terms matches. In scores, its terms
in one language are one group term (`query/group_terms.py`) with the weight of the word.

A synonym of several words is a phrase in a Boolean query. In scores, its words are terms of their own, since an index
has no frequencies of phrases. All words of all such synonyms together have the weight of one word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perikope.query.boolean import Or, Phrase, QueryTree, Word, all_of
from perikope.query.group_terms import group_term
from perikope.query.spelling import edits_of
from perikope.query.synonyms import SynonymMatch, Synonyms
from perikope.text.analysis import fold

MOST_NEAR = 50
"""The largest number of terms per language that stand for a word that no document contains."""

TermsOf = Callable[[str], list[str] | None]
"""A function that returns the terms of a word in the searched languages, or None for a stop word."""


@dataclass(frozen=True, slots=True)
class Variants:
    """What may stand for the words of a query, besides the words themselves."""

    synonyms: Synonyms | None = None
    fuzzy: int = 0
    """The largest number of edits between a word that no document contains and the terms that stand for it."""
    near: Callable[[str, str, int], list[str]] = field(default=lambda word, language, edits: [])
    """Returns the terms of a language that are at most a number of edits away from a word, nearest first."""
    known: Callable[[Sequence[str]], bool] = field(default=lambda terms: True)
    """Whether a document contains one of the terms."""
    fallback: tuple[str, ...] = ()
    """Languages in which a word is looked up if no text in the searched languages contains it."""

    def __bool__(self) -> bool:
        return self.synonyms is not None or self.fuzzy > 0

    def stand_ins(self, word: str, terms: Sequence[str]) -> dict[str, str]:
        """The terms that stand for a word that no document contains, each with the reason.

        They are empty if a document contains the word, or if the option `fuzzy` is not set. `terms` are the terms of
        the word.
        """
        edits = min(self.fuzzy, edits_of(word))
        if not edits or not word.isalpha() or self.known(terms):
            return {}
        languages = dict.fromkeys(term.partition(":")[0] for term in terms)
        return {term: f"near {word}" for language in languages for term in self.near(word, language, edits)[:MOST_NEAR]}


NONE = Variants()
"""No synonyms, no stand-ins for unknown words, and no near terms."""


def one_word(own: Sequence[str], others: Mapping[str, str], written: str) -> Word:
    """A word whose terms count as one term per language: its own terms, and other terms, each with its reason."""
    if not others:
        return Word(tuple(own), written)
    by_language: dict[str, list[str]] = {}
    for term in (*own, *others):
        by_language.setdefault(term.partition(":")[0], []).append(term)
    terms = tuple(dict.fromkeys((*own, *others)))
    reasons = tuple((term, reason) for term, reason in others.items() if term not in own)
    return Word(terms, written, tuple((group_term(group), 1.0) for group in by_language.values()), reasons)


def with_synonyms(written: Sequence[str], match: SynonymMatch, terms_of: TermsOf, *, adjacent: bool) -> QueryTree | None:
    """Words of a query or their synonyms; None if only stop words are left.

    With `adjacent`, several given words are a phrase; otherwise each of them must occur. Their synonyms of several
    words are always phrases.
    """
    said = " ".join(written)
    alone = [entry[0] for entry in match.entries if len(entry) == 1]
    several = [entry for entry in match.entries if len(entry) > 1]
    own = (terms_of(written[0]) or []) if match.keeps and len(written) == 1 else []
    others = {term: synonym(term, word, said) for word in alone for term in terms_of(word) or ()}
    choices: list[QueryTree] = []
    if match.keeps and len(written) > 1:
        kept = [None if terms is None else Word(tuple(terms), word) for word, terms in ((word, terms_of(word)) for word in written)]
        if any(kept):
            choices.append(side_by_side(kept) if adjacent else all_of(tuple(word for word in kept if word is not None)))
    if own or others:
        # The written words are kept once, for models that read text.
        choices.append(one_word(own, others, "" if choices else said))
    counted = sum(terms_of(word) is not None for entry in several for word in entry)
    for entry in several:
        reason = f"in {' '.join(entry)}, synonym of {said}"
        phrase = [_shared(terms_of(word), 1 / max(counted, 1), reason, "" if choices else said) for word in entry]
        if any(phrase):
            choices.append(side_by_side(phrase))
    return None if not choices else choices[0] if len(choices) == 1 else Or(tuple(choices))


def synonym(term: str, word: str, said: str) -> str:
    """The reason why a term stands for words of a query: which synonym of them it is, unless the term shows it.

    >>> synonym("en:aeroplan", "aeroplane", "plane"), synonym("en:jet", "Jet", "plane")
    ('aeroplane, synonym of plane', 'synonym of plane')
    """
    return f"synonym of {said}" if term.partition(":")[2] == fold(word) else f"{word}, synonym of {said}"


def side_by_side(words: Sequence[Word | None]) -> Word | Phrase:
    """A phrase or a single word, without stop words at its ends. There must be a word that is not a stop word."""
    held = [number for number, word in enumerate(words) if word is not None]
    phrase = tuple(words[held[0] : held[-1] + 1])
    return Phrase(phrase) if len(phrase) > 1 else phrase[0]  # type: ignore[return-value]


def _shared(terms: Sequence[str] | None, weight: float, reason: str, written: str) -> Word | None:
    """A word of a synonym of several words, with its share of the weight of the synonym; None for a stop word."""
    if terms is None:
        return None
    return Word(tuple(terms), written, tuple((term, weight) for term in terms), tuple((term, reason) for term in terms))
