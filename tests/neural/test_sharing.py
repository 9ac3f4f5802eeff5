"""The number of states and messages in a plan. That plans are complete is shown by the tests of `hgat`."""

from __future__ import annotations

import numpy as np
import pytest

from perikope.neural.graph import RELATIONS, with_inverses
from perikope.neural.sharing import Neighbourhoods, make_plan


def document(sections: int, passages: int):
    """A root, its sections, and passages divided among the sections, or in the root if there are no sections.

    Returns the edges, the number of the first passage's node, and the nodes of all passages.
    """
    passage_nodes = np.arange(1 + sections, 1 + sections + passages)
    parent = 1 + np.arange(passages) * sections // passages if sections else np.zeros(passages, int)
    edges = with_inverses({
        "order": np.stack([passage_nodes[:-1], passage_nodes[1:]]),
        "structural": np.stack([np.concatenate([np.zeros(sections, int), parent]), np.arange(1, 1 + sections + passages)]),
    })  # fmt: skip
    return edges, 1 + sections, passage_nodes


def plan_of(sections, passages, **switches):
    edges, first, passage_nodes = document(sections, passages)
    neighbours = Neighbourhoods(edges, RELATIONS, np.ones(first + passages, bool))
    plan = make_plan(neighbours, passage_nodes, 3, **{"no_out": False, "no_self": False} | switches)
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
    assert first == edges + 21  # the messages of BASE
    # The messages of BASE; those from each passage, whose state has changed; and those to it, whose query has changed.
    assert second <= edges + 21 + edges + edges
    assert last == edges - 20  # the messages to targets, without those from themselves
    assert plan.work(tokens, 128) < 3 * base.work(tokens, 128)


def test_the_first_layer_of_no_out_has_no_attention_of_its_own():
    base, _ = plan_of(3, 20)
    for switches in ({"no_out": True}, {"no_self": True}, {"no_out": True, "no_self": True}):
        plan, _ = plan_of(3, 20, **switches)
        assert messages(plan)[0] <= messages(base)[0]
    assert plan_of(3, 20, no_out=True)[0].layers[0].sign_of_summand.min() == -1  # sums of BASE minus a message


def test_no_out_needs_the_neighbours_of_each_target():
    plan, _ = plan_of(0, 20, no_out=True)
    # Per target: the target, its two neighbouring passages (one at either end), and the root.
    assert plan.layers[1].node_of_state.size == 20 + 19 * 2 + 20
    # The messages to these, without those from the target: squares of the degrees.
    root, inner = 20 * (19 + 1), 18 * 2 * 3
    assert root + inner <= messages(plan)[1] <= root + inner + 5 * 20


@pytest.mark.parametrize(("sections", "passages", "most"), [(15, 60, 3.0), (15, 300, 3.0), (0, 300, 4.0)])
def test_no_out_is_far_from_a_pass_a_target(sections, passages, most):
    base, tokens = plan_of(sections, passages)
    plan, _ = plan_of(sections, passages, no_out=True)
    assert plan.work(tokens, 128) < most * base.work(tokens, 128)


def test_work_does_not_depend_on_targets_that_are_not_asked_for():
    edges, first, passage_nodes = document(15, 300)
    neighbours = Neighbourhoods(edges, RELATIONS, np.ones(first + 300, bool))
    tokens = np.full(first + 300, 50)
    two, all_ = (
        make_plan(neighbours, targets, 3, no_out=True, no_self=True).work(tokens, 128) for targets in (passage_nodes[:2], passage_nodes)
    )
    assert two < all_ / 4
