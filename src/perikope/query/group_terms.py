"""Terms that count as one word in scores, such as `en:plane|en:aeroplan` for a word and its synonym.

A group term occurs where one of its terms occurs, so its frequency in a text is the sum of their frequencies. In the
collection, its number of occurrences is the sum over its terms, and its document frequency is the largest of its terms:
a word does not become more frequent, or rarer, by a rare synonym. Lucene scores synonyms in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SEPARATOR = "|"
"""Stands between the terms of a group. No term of a text contains it."""


def group_term(terms: Iterable[str]) -> str:
    """The term of a group; a single term is returned unchanged.

    >>> group_term(["en:plane", "en:aeroplan", "en:plane"]), group_term(["en:plane"])
    ('en:plane|en:aeroplan', 'en:plane')
    """
    return SEPARATOR.join(dict.fromkeys(terms))


def terms_in(term: str) -> tuple[str, ...]:
    """The terms of a group, or the term itself if it is not a group.

    >>> terms_in("en:plane|en:aeroplan"), terms_in("en:plane")
    (('en:plane', 'en:aeroplan'), ('en:plane',))
    """
    return tuple(term.split(SEPARATOR))


def single_terms(terms: Iterable[str]) -> tuple[str, ...]:
    """The distinct terms of texts among terms and groups.

    >>> single_terms(["en:jet", "en:plane|en:jet"])
    ('en:jet', 'en:plane')
    """
    return tuple(dict.fromkeys(single for term in terms for single in terms_in(term)))


def without_overlap(weights: Mapping[str, float], *, add: bool) -> dict[str, float]:
    """Weighted terms in which no term is in two groups: groups that share a term become one group.

    The weight of the joined group is the sum of the weights or, without `add`, the largest weight. Without groups, the
    weights are returned unchanged.

    >>> without_overlap({"en:plane|en:jet": 1.0, "en:wing": 1.0, "en:jet": 1.0}, add=True)
    {'en:plane|en:jet': 2.0, 'en:wing': 1.0}
    """
    if not any(SEPARATOR in term for term in weights):
        return dict(weights)
    groups: dict[int, tuple[dict[str, None], float]] = {}
    group_of: dict[str, int] = {}
    for number, (term, weight) in enumerate(weights.items()):
        terms = dict.fromkeys(terms_in(term))
        joined = sorted({group_of[single] for single in terms if single in group_of})
        for other in reversed(joined):
            its_terms, its_weight = groups.pop(other)
            terms, weight = its_terms | terms, weight + its_weight if add else max(weight, its_weight)
        first = joined[0] if joined else number
        groups[first] = terms, weight
        group_of.update(dict.fromkeys(terms, first))
    return {group_term(terms): weight for _, (terms, weight) in sorted(groups.items())}
