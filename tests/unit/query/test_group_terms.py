"""Group terms: several terms that count as one word."""

from hypothesis import given
from hypothesis import strategies as st

from perikope.query.group_terms import group_term, single_terms, terms_in, without_overlap

groups = st.dictionaries(
    st.lists(st.sampled_from([f"en:{letter}" for letter in "abcdefgh"]), min_size=1, max_size=4).map(group_term),
    st.floats(0.25, 4),
    max_size=6,
)


@given(groups, st.booleans())
def test_no_term_is_in_two_groups_and_none_is_lost(weights, add):
    joined = without_overlap(weights, add=add)
    singles = [single for term in joined for single in terms_in(term)]
    assert len(singles) == len(set(singles))
    assert set(singles) == set(single_terms(weights))
    for term in joined:
        parts = [weight for other, weight in weights.items() if not set(terms_in(other)).isdisjoint(terms_in(term))]
        assert abs(joined[term] - (sum(parts) if add else max(parts))) < 1e-9


def test_without_groups_nothing_changes():
    weights = {"en:b": 2.0, "ipc=F04D": 1.0, "en:a": 1.0}
    assert list(without_overlap(weights, add=True).items()) == list(weights.items())
