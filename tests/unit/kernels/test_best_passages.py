"""The best passage of each document, compared with a plain sum over the terms of every passage."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.kernels.best_passages import SaturatedTerms, best_passages


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), in_order=st.booleans())
def test_the_best_passages_are_those_of_the_plain_sums(seed, in_order):
    random = np.random.default_rng(seed)
    terms, term, position, end, passages, end_passage, best, scores = 4, [], [], [], [], [], [], []
    score = SaturatedTerms(random.random(terms) - 0.1, random.random(terms), random.random(terms))
    for _ in range(random.integers(1, 6)):
        tokens = random.integers(-8, terms, random.integers(0, 60))
        places = np.flatnonzero(tokens >= 0)
        cuts = np.sort(random.integers(0, tokens.size + 1, 5))
        own = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        own = own if in_order else [own[i] for i in random.permutation(len(own))] + own[:1]
        values = [0.0]
        for first, stop in own:
            count, length = Counter(tokens[first:stop][tokens[first:stop] >= 0].tolist()), stop - first
            values.append(sum(score.weight[t] * n / (n + score.fixed[t] + score.by_length[t] * length) for t, n in count.items()))
            passages.append((first, stop, length))
        term += tokens[places].tolist()
        position += places.tolist()
        end.append(len(term))
        end_passage.append(len(passages))
        best.append(max(values))
        scores += values[1:]
    columns = np.ascontiguousarray(np.array(passages, np.int64).T)
    found = best_passages(
        np.array(term, np.int32), np.array(position, np.int32), np.array(end, np.int64), columns, np.array(end_passage), tuple(score)
    )
    assert found[0].tolist() == pytest.approx(best, rel=1e-12)
    assert found[1].tolist() == pytest.approx(scores, rel=1e-12, abs=1e-15)
