"""What has to be computed for a target, counted; that it is enough is what the tests of `hgat` show."""

from __future__ import annotations

import numpy as np
import pytest

from perikope.neural.graph import RELATIONS, with_inverses
from perikope.neural.sharing import Neighbourhoods, make_plan


def document(sections: int, passages: int):
    """A root, sections in it and passages dealt out to them (or to the root), in order."""
    own = np.arange(1 + sections, 1 + sections + passages)
    parent = 1 + np.arange(passages) * sections // passages if sections else np.zeros(passages, int)
    edges = with_inverses({
        "order": np.stack([own[:-1], own[1:]]),
        "structural": np.stack([np.concatenate([np.zeros(sections, int), parent]), np.arange(1, 1 + sections + passages)]),
    })  # fmt: skip
    return edges, 1 + sections, own


def plan_of(sections, passages, **switches):
    edges, first, own = document(sections, passages)
    neighbours = Neighbourhoods(edges, RELATIONS, np.ones(first + passages, bool))
    plan = make_plan(neighbours, own, 3, **{"no_out": False, "no_self": False} | switches)
    return plan, np.where(np.arange(first + passages) < first, 8, 100)


def messages(plan):
    return [layer.relation_of_message.size for layer in plan.layers]


def test_base_is_one_pass_that_ends_with_the_targets():
    plan, _ = plan_of(0, 20)
    edges = 19 * 2 + 20 * 2 + 21  # order, structural and self, one message each
    assert messages(plan) == [edges, edges, edges - 20 - 1]  # the root says what it has to say, but hears nothing in the end
    assert [layer.node_of_state.size for layer in plan.layers] == [21, 21, 20]


def test_no_self_takes_one_more_attention_an_edge():
    base, tokens = plan_of(0, 20)
    plan, _ = plan_of(0, 20, no_self=True)
    first, second, last = messages(plan)
    edges = 19 * 2 + 20 * 2
    assert first == edges + 21  # all those of BASE
    # The layers of BASE; then each passage's state without its own message, and what it receives with that as a query.
    assert second <= edges + 21 + edges + edges
    assert last == edges - 20  # what the targets hear, without themselves
    assert plan.work(tokens, 128) < 3 * base.work(tokens, 128)


def test_the_first_layer_of_no_out_has_no_attention_of_its_own():
    base, _ = plan_of(3, 20)
    for switches in ({"no_out": True}, {"no_self": True}, {"no_out": True, "no_self": True}):
        plan, _ = plan_of(3, 20, **switches)
        assert messages(plan)[0] <= messages(base)[0]
    assert plan_of(3, 20, no_out=True)[0].layers[0].sign_of_term.min() == -1  # sums of BASE with something taken out


def test_no_out_needs_the_neighbours_of_each_target():
    plan, _ = plan_of(0, 20, no_out=True)
    # Each target, two passages beside it (one at the ends), and the root.
    assert plan.layers[1].node_of_state.size == 20 + 19 * 2 + 20
    # What these hear, without the target: the squares of the degrees.
    root, inner = 20 * (19 + 1), 18 * 2 * 3
    assert root + inner <= messages(plan)[1] <= root + inner + 5 * 20


@pytest.mark.parametrize(("sections", "passages", "most"), [(15, 60, 3.0), (15, 300, 3.0), (0, 300, 4.0)])
def test_no_out_is_far_from_a_pass_a_target(sections, passages, most):
    base, tokens = plan_of(sections, passages)
    plan, _ = plan_of(sections, passages, no_out=True)
    assert plan.work(tokens, 128) < most * base.work(tokens, 128)


def test_work_does_not_depend_on_targets_that_are_not_asked_for():
    edges, first, own = document(15, 300)
    neighbours = Neighbourhoods(edges, RELATIONS, np.ones(first + 300, bool))
    tokens = np.full(first + 300, 50)
    two, all_ = (make_plan(neighbours, targets, 3, no_out=True, no_self=True).work(tokens, 128) for targets in (own[:2], own))
    assert two < all_ / 4
