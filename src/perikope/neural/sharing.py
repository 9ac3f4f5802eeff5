"""Which hidden states must be computed for some targets, and which of them are the same for several?

Without modifications a layer computes, for every node i, a sum of messages from its neighbours j, one a relation, and from itself:

    h'_i = Σ_{j→i by r} m_r(h_i, h_j) + m_self(h_i, h_i)

NO (the target t sends nothing to others) and NS (the self message of t is left out) make this depend on t: there is a state (t, i) for
every target and node, and a pass over the whole graph for each target would cost n times as much. But most of these states are equal to
those of BASE, the pass that leaves nothing out. Let d(t, i) be the number of hops from t to i, and L the number of layers.

*Which differ.* All begin with the same input. In the first layer NO changes the neighbours of t, NS changes t. A change moves on by one hop
a layer. So after layer l only states with d(t, i) ≤ l differ from BASE.

*Which are needed.* Of the last layer only (t, t); of layer l those with d(t, i) ≤ L - l.

So of layer l only the states within min(l, L - l) hops differ and are needed: with three layers never more than each target's neighbours.
Everything else is BASE, computed once for all targets.

*Messages* are shared in the same way. A message is an attention of one state to another: where both are BASE it is that of BASE.
So the first layer of NO and NS has no attention of its own: a state (t, i) is that of BASE less the message from t (NO) or the self message
(NS). In the second layer

- NS: the neighbours i of t ask the same question as in BASE and get one answer that is new, that of t: the state is that of BASE, less one
  message, plus another. One new attention an edge, for any number of targets and neighbours.
- NO: the neighbours i of t ask another question, h^{1,t}_i, so all their deg(i) messages are new: Σ_t Σ_{i next to t} deg(i) = Σ_i deg(i)²
  attentions in all. Here no more can be shared: h^{1,t}_i lacks the message of t, another one for each t, and softmax is not linear in the
  query. What is shared are keys and values of the neighbours that are not neighbours of t too. The square is that of sections,
  with as many neighbours as they have parts; but those questions are titles, of a few tokens.

The last layer computes the targets alone, in BASE too.

This module says what to compute, with numpy; `hgat` computes it. Nothing here is an approximation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perikope.core.arrays import Integers, Mask
from perikope.index.layout import offsets, ranges

OF_SELF, OF_CONTEXT, OF_TARGET = 0, 1, 2
"""What a relation's sum is in a state: the self message; what neighbours say; what they say to a target that does not hear itself."""


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """What one layer computes; queries, keys and `before` are numbers of states of the layer before, the nodes in order for the first.

    A state is the sum of its parts; a part is a sum over one relation (`aggregate`), projected and weighed; an aggregate is the sum of
    its terms, each a message or, where that is less work, what another aggregate holds with some messages more or less.
    """

    node_of_state: Integers
    before: Integers
    """The same node in the same context, one layer before: whom the state's questions come from."""
    relation_of_message: Integers
    query_of_message: Integers
    key_of_message: Integers
    node_of_aggregate: Integers
    relation_of_aggregate: Integers
    """Rising."""
    messages_of_aggregate: Integers
    """How many are in its sum."""
    begun_from: Integers
    """The aggregate that it begins with, or -1."""
    aggregate_of_term: Integers
    message_of_term: Integers
    sign_of_term: Integers
    """-1 for what is taken out again."""
    state_of_part: Integers
    aggregate_of_part: Integers
    role_of_part: Integers
    """OF_SELF, OF_CONTEXT or OF_TARGET."""

    def work(self, node_of_state_before: Integers, tokens_of_node: Integers, dimension: int) -> int:
        """Multiplications and additions: four projections of each token matrix that takes part in a relation, and the attentions."""
        tokens = tokens_of_node[node_of_state_before]
        queries = np.unique(np.stack([self.relation_of_message, self.query_of_message]), axis=1)[1]
        keys = np.unique(np.stack([self.relation_of_message, self.key_of_message]), axis=1)[1]
        projected = tokens[queries].sum() + 2 * tokens[keys].sum() + tokens_of_node[self.node_of_aggregate].sum()
        compared = (tokens[self.query_of_message] * tokens[self.key_of_message]).sum()
        return int(2 * projected * dimension * dimension + 4 * compared * dimension)


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """The layers, and where the targets are in the last one."""

    nodes: int
    layers: tuple[LayerPlan, ...]
    state_of_target: Integers

    def work(self, tokens_of_node: Integers, dimension: int) -> int:
        """Multiplications and additions of all layers."""
        before = [np.arange(self.nodes), *(layer.node_of_state for layer in self.layers[:-1])]
        return sum(layer.work(nodes, tokens_of_node, dimension) for layer, nodes in zip(self.layers, before, strict=True))


class Neighbourhoods:
    """Who sends to whom: for each node its incoming edges, by relation, self last; and its outgoing ones."""

    def __init__(self, edges: Mapping[str, Integers], relations: Sequence[str], speaks: Mask) -> None:
        """`relations` in order, without self; nodes that do not speak (have no tokens) neither send nor receive."""
        self.nodes = speaks.size
        self.self_number = len(relations)
        pairs = [np.asarray(edges[name], np.int64).reshape(2, -1) for name in relations]
        own = np.flatnonzero(speaks)
        source, target = np.concatenate([*pairs, np.stack([own, own])], axis=1)
        number = np.repeat(np.arange(len(pairs) + 1), [*(pair.shape[1] for pair in pairs), own.size])
        kept = speaks[source] & speaks[target]
        source, target, number = source[kept], target[kept], number[kept]
        order = np.lexsort((source, number, target))
        self.source, self.relation = source[order], number[order]
        self.first = offsets(np.bincount(target, minlength=self.nodes))
        others = source != target
        order = np.lexsort((target[others], source[others]))
        self.target = target[others][order]
        self.first_out = offsets(np.bincount(source[others], minlength=self.nodes))

    def incoming(self, nodes: Integers) -> tuple[Integers, Integers, Integers]:
        """For every edge into some nodes: which of them, the source and the relation."""
        first, end = self.first[nodes], self.first[nodes + 1]
        edges = ranges(first, end)
        return np.repeat(np.arange(nodes.size), end - first), self.source[edges], self.relation[edges]

    def outgoing(self, nodes: Integers) -> tuple[Integers, Integers]:
        """For every edge out of some nodes to another: which of them, and the target."""
        first, end = self.first_out[nodes], self.first_out[nodes + 1]
        return np.repeat(np.arange(nodes.size), end - first), self.target[ranges(first, end)]


def make_plan(neighbours: Neighbourhoods, targets: Integers, layers: int, *, no_out: bool, no_self: bool) -> GraphPlan:
    """What to compute for the last states of some targets."""
    planner = _Planner(neighbours, no_out, no_self)
    changed = planner.changed_states(targets, layers)
    wanted = targets + nodes_of_context(targets, neighbours.nodes)
    wanted = planner.canonical(wanted, changed[layers])
    states = np.unique(wanted)
    state_of_target = np.searchsorted(states, wanted)
    found: list[LayerPlan] = []
    for layer in range(layers, 0, -1):
        # All nodes are there before the first layer, needed or not.
        everything = np.arange(neighbours.nodes) if layer == 1 else np.zeros(0, np.int64)
        plan, states = planner.layer(states, changed[layer - 1], everything)
        found.insert(0, plan)
    return GraphPlan(neighbours.nodes, tuple(found), state_of_target)


def nodes_of_context(contexts: Integers, nodes: int) -> Integers:
    """What is added to a node's number to make the code of its state in the context of a target (-1: BASE)."""
    return (contexts + 1) * nodes


class _Planner:
    """States have codes: those of BASE are the numbers of nodes, those in the context of targets follow, target by target."""

    def __init__(self, neighbours: Neighbourhoods, no_out: bool, no_self: bool) -> None:
        self.neighbours, self.no_out, self.no_self = neighbours, no_out, no_self
        self.nodes, self.relations = neighbours.nodes, neighbours.self_number + 1

    def split(self, states: Integers) -> tuple[Integers, Integers]:
        """The target (or -1) and the node of states."""
        return states // self.nodes - 1, states % self.nodes

    def canonical(self, states: Integers, changed: Integers) -> Integers:
        """The states themselves where they differ from BASE, else those of BASE."""
        place = np.minimum(np.searchsorted(changed, states), max(changed.size - 1, 0))
        differs = changed[place] == states if changed.size else np.zeros(states.size, bool)
        return np.where(differs, states, states % self.nodes)

    def changed_states(self, targets: Integers, layers: int) -> list[Integers]:
        """After each layer, from the input on: the states that differ from BASE, where they are needed."""
        targets = np.unique(targets)
        needed = [targets + nodes_of_context(targets, self.nodes)]
        while len(needed) <= layers // 2:
            needed.append(self._spread_back(needed[-1]))
        direct = self._directly_changed(targets)
        changed = [np.zeros(0, np.int64)]
        for layer in range(1, layers + 1):
            states = np.union1d(np.union1d(direct, changed[-1]), self._spread(changed[-1])).astype(np.int64)
            hops = layers - layer
            # Where as many hops are needed as a change can have come, all that differ are needed.
            changed.append(np.intersect1d(states, needed[hops]) if hops < layer else states)
        return changed

    def _directly_changed(self, targets: Integers) -> Integers:
        found = [np.zeros(0, np.int64)]
        if self.no_out:
            which, reached = self.neighbours.outgoing(targets)
            found.append(reached + nodes_of_context(targets[which], self.nodes))
        if self.no_self:
            found.append(targets + nodes_of_context(targets, self.nodes))
        return np.unique(np.concatenate(found))

    def _spread(self, states: Integers) -> Integers:
        """The states that hear of some."""
        context, node = self.split(states)
        which, reached = self.neighbours.outgoing(node)
        context, source = context[which], node[which]
        heard = ~(self.no_out & (source == context))
        return np.unique(reached[heard] + nodes_of_context(context[heard], self.nodes))

    def _spread_back(self, states: Integers) -> Integers:
        """Some states and those that they hear of."""
        context, node = self.split(states)
        which, source, _ = self.neighbours.incoming(node)
        return np.union1d(states, source + nodes_of_context(context[which], self.nodes)).astype(np.int64)

    def layer(self, states: Integers, changed_before: Integers, also: Integers) -> tuple[LayerPlan, Integers]:
        """How to compute states from those of the layer before, and which those are (`also` are among them)."""
        context, node = self.split(states)
        which, source, relation = self.neighbours.incoming(node)
        here = context[which]
        left_out = np.zeros(which.size, bool)
        if self.no_out:
            left_out |= (here >= 0) & (source == here) & (node[which] != here)
        if self.no_self:
            left_out |= (here >= 0) & (source == here) & (node[which] == here)
        before = self.canonical(states, changed_before)
        key = self.canonical(source + nodes_of_context(here, self.nodes), changed_before)
        sums = _Sums(self, which, relation, source, key, left_out, states, node, before)

        all_states = np.unique(np.concatenate([before, sums.query, sums.key, also]))
        number = np.searchsorted(all_states, np.stack([sums.query, sums.key]))
        message_code = (sums.relation * all_states.size + number[1]) * all_states.size + number[0]
        messages, message_of_term = np.unique(message_code, return_inverse=True)
        role = np.where(sums.part_relation < self.neighbours.self_number, OF_CONTEXT, OF_SELF)
        is_target = context[sums.part_state] == node[sums.part_state]
        role = np.where(self.no_self & is_target & (role == OF_CONTEXT), OF_TARGET, role)
        plan = LayerPlan(
            node_of_state=node,
            before=np.searchsorted(all_states, before),
            relation_of_message=messages // all_states.size**2,
            query_of_message=messages % all_states.size,
            key_of_message=messages // all_states.size % all_states.size,
            node_of_aggregate=sums.node_of_aggregate,
            relation_of_aggregate=sums.relation_of_aggregate,
            messages_of_aggregate=sums.messages_of_aggregate(),
            begun_from=sums.begun_from,
            aggregate_of_term=sums.aggregate,
            message_of_term=message_of_term,
            sign_of_term=sums.sign,
            state_of_part=sums.part_state,
            aggregate_of_part=sums.part_aggregate,
            role_of_part=role,
        )
        return plan, all_states


class _Sums:
    """The sums over one relation each that states are made of, every different one once.

    A sum is known by its relation and the state it belongs to: that of BASE where it is the same sum. Where the query is that of BASE and
    fewer messages differ than there are, it begins with BASE's sum.
    """

    def __init__(
        self,
        planner: _Planner,
        which: Integers,
        relation: Integers,
        source: Integers,
        key: Integers,
        left_out: Mask,
        states: Integers,
        node: Integers,
        before: Integers,
    ) -> None:
        relations, nodes = planner.relations, planner.nodes
        group_code, group = np.unique(which * relations + relation, return_inverse=True)
        state_of_group, relation_of_group = group_code // relations, group_code % relations
        is_new_key = (key >= nodes) & ~left_out
        is_new_query = before[state_of_group] >= nodes
        groups = group_code.size
        size = np.bincount(group, ~left_out, minlength=groups).astype(np.int64)
        different = np.bincount(group, left_out | (key >= nodes), minlength=groups).astype(np.int64)
        added = np.bincount(group, is_new_key, minlength=groups).astype(np.int64)
        is_own = (different > 0) | is_new_query
        from_base = is_own & ~is_new_query & (1 + different + added < size)
        base_code = node[state_of_group] * relations + relation_of_group
        own_code = states[state_of_group] * relations + relation_of_group
        code = np.where(is_own, own_code, base_code)
        said = size > 0

        # One of the groups with the same sum stands for all.
        codes, representative = np.unique(code[said], return_index=True)
        stands = np.zeros(groups, bool)
        stands[np.flatnonzero(said)[representative]] = True
        direct = (stands & ~from_base)[group] & ~left_out
        of_difference = (stands & from_base)[group]
        plus, minus = of_difference & is_new_key, of_difference & (left_out | (key >= nodes))
        bases = np.setdiff1d(base_code[stands & from_base], codes)
        base_which, base_source, base_relation = planner.neighbours.incoming(bases // relations)
        kept = base_relation == bases[base_which] % relations
        base_which, base_source, base_relation = base_which[kept], base_source[kept], base_relation[kept]

        query = before[which]
        all_codes = np.union1d(codes, bases).astype(np.int64)
        # By relation, so that each is projected at once.
        order = np.argsort(all_codes % relations, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)

        def number(wanted: Integers) -> Integers:
            found: Integers = place[np.searchsorted(all_codes, wanted)]
            return found

        code_of_edge = code[group]
        chosen = [np.flatnonzero(direct), np.flatnonzero(plus), np.flatnonzero(minus)]
        terms = np.concatenate(chosen)
        self.aggregate = np.concatenate([number(code_of_edge[terms]), number(bases[base_which])])
        self.sign = np.repeat([1, 1, -1, 1], [*(rows.size for rows in chosen), base_which.size])
        self.relation = np.concatenate([relation[terms], base_relation])
        self.query = np.concatenate([query[terms], bases[base_which] // relations])
        # What is taken out is what BASE heard.
        heard = np.concatenate([key[chosen[0]], key[chosen[1]], source[chosen[2]]])
        self.key = np.concatenate([heard, base_source])
        self.node_of_aggregate = (all_codes // relations % nodes)[order]
        self.relation_of_aggregate = (all_codes % relations)[order]
        self.begun_from = np.full(all_codes.size, -1, np.int64)
        begun = stands & from_base
        self.begun_from[number(code[begun])] = number(base_code[begun])
        self.part_state, self.part_relation = state_of_group[said], relation_of_group[said]
        self.part_aggregate = number(code[said])

    def messages_of_aggregate(self) -> Integers:
        """How many messages are in each sum."""
        own = np.bincount(self.aggregate, self.sign, minlength=self.begun_from.size).astype(np.int64)
        return own + np.where(self.begun_from >= 0, own[self.begun_from], 0) if own.size else own
