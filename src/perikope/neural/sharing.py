"""Plan which hidden states graph attention computes for some targets, and which states several targets share.

In the variant BASE, a layer computes for every node i a sum of messages: from its neighbours j by relation r, and from
itself:

    h'_i = Σ_{j→i by r} m_r(h_i, h_j) + m_self(h_i, h_i)

NO (the target t sends nothing to other nodes) and NS (t leaves out its self message) make states depend on t: there is
one state (t, i) per target and node. One pass over the whole graph per target would cost n times as much as BASE. But
most of these states equal those of BASE. Let d(t, i) be the number of hops from t to i, and L the number of layers.

*States that differ from BASE.* All targets have the same input. In the first layer, NO changes the neighbours of t, and
NS changes t. Each further layer carries a change one hop further. After layer l, only states with d(t, i) ≤ l differ.

*States that are needed.* Of the last layer, only (t, t) is needed. Of layer l, states with d(t, i) ≤ L - l are needed.

So in layer l, a state both differs and is needed only within min(l, L - l) hops. With three layers, these are at most
the target and its neighbours. All other states are those of BASE, which are computed once for all targets.

*Messages* are shared in the same way. A message is the attention of one state to another. If both are states of BASE,
it is a message of BASE. So NO and NS need no new attention in the first layer: a state (t, i) is that of BASE minus the
message from t (NO) or minus the self message (NS). In the second layer:

- NS: the neighbours i of t have the same query as in BASE, and only the message from t is new. The state is that of
  BASE, minus one message, plus another. This takes one new attention per edge, for any number of targets.
- NO: the neighbours i of t have another query, h^{1,t}_i, so all their deg(i) messages are new. In total these are
  Σ_t Σ_{i next to t} deg(i) = Σ_i deg(i)² attentions. They cannot be shared further: h^{1,t}_i lacks the message from
  t, which is another one for each t, and softmax is not linear in the query. Keys and values are still shared, for
  neighbours of i that are not also neighbours of t. Large degrees are those of sections, whose queries are titles of
  few tokens.

The last layer computes only the targets, in BASE too.

This module plans with numpy what `hgat` computes. The results are exact, not approximations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perikope.core.arrays import Integers, Mask
from perikope.index.layout import offsets
from perikope.index.ranges import ranges

OF_SELF, OF_CONTEXT, OF_TARGET = 0, 1, 2
"""The role of a component in its state: the self message, messages of neighbours, or messages of neighbours to a target
that leaves out its self message."""


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """What one layer computes.

    A state is the sum of its components. A component is an aggregate, projected and weighted. An aggregate is the sum
    of the messages to one state by one relation. Its summands are messages, added or subtracted. To save work, an
    aggregate may start from the sum of another aggregate.

    Queries, keys and `before` are numbers of states of the previous layer. Before the first layer, states are nodes.
    Arrays named `x_of_message` are (messages,), and so on.
    """

    node_of_state: Integers
    before: Integers
    """(states,) The state of the same node in the same context in the previous layer."""
    relation_of_message: Integers
    query_of_message: Integers
    """(messages,) The state that receives the message."""
    key_of_message: Integers
    """(messages,) The state that sends the message."""
    node_of_aggregate: Integers
    relation_of_aggregate: Integers
    """(aggregates,) In increasing order."""
    messages_of_aggregate: Integers
    """(aggregates,) The number of messages in the sum."""
    starts_from: Integers
    """(aggregates,) The aggregate whose sum it starts from, or -1."""
    aggregate_of_summand: Integers
    message_of_summand: Integers
    sign_of_summand: Integers
    """(summands,) 1, or -1 for messages that are subtracted."""
    state_of_component: Integers
    aggregate_of_component: Integers
    role_of_component: Integers
    """(components,) OF_SELF, OF_CONTEXT or OF_TARGET."""

    def work(self, node_of_state_before: Integers, tokens_of_node: Integers, dimension: int) -> int:
        """The number of multiplications and additions: four projections per relation and token matrix, and attentions.

        `node_of_state_before` is (states before,), `tokens_of_node` (nodes,).
        """
        tokens = tokens_of_node[node_of_state_before]
        queries = np.unique(np.stack([self.relation_of_message, self.query_of_message]), axis=1)[1]
        keys = np.unique(np.stack([self.relation_of_message, self.key_of_message]), axis=1)[1]
        projected = tokens[queries].sum() + 2 * tokens[keys].sum() + tokens_of_node[self.node_of_aggregate].sum()
        compared = (tokens[self.query_of_message] * tokens[self.key_of_message]).sum()
        return int(2 * projected * dimension * dimension + 4 * compared * dimension)


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """What all layers compute for some targets of a graph."""

    nodes: int
    layers: tuple[LayerPlan, ...]
    state_of_target: Integers
    """(targets,) The state of each target in the last layer."""

    def work(self, tokens_of_node: Integers, dimension: int) -> int:
        """The number of multiplications and additions in all layers; `tokens_of_node` is (nodes,)."""
        before = [np.arange(self.nodes), *(layer.node_of_state for layer in self.layers[:-1])]
        return sum(layer.work(nodes, tokens_of_node, dimension) for layer, nodes in zip(self.layers, before, strict=True))


class Neighbourhoods:
    """The incoming edges of each node by relation, self last, and its outgoing edges."""

    def __init__(self, edges: Mapping[str, Integers], relations: Sequence[str], speaks: Mask) -> None:
        """Sort edges by node. `edges` has one array (2, edges) of sources and targets per relation.

        `relations` are the names of relations in order, without self. `speaks` (nodes,) is true for nodes that have
        tokens; others neither send nor receive messages.
        """
        self.nodes = speaks.size
        self.self_number = len(relations)
        pairs = [np.asarray(edges[name], np.int64).reshape(2, -1) for name in relations]
        speaking = np.flatnonzero(speaks)
        source, target = np.concatenate([*pairs, np.stack([speaking, speaking])], axis=1)
        number = np.repeat(np.arange(len(pairs) + 1), [*(pair.shape[1] for pair in pairs), speaking.size])
        both_speak = speaks[source] & speaks[target]
        source, target, number = source[both_speak], target[both_speak], number[both_speak]
        order = np.lexsort((source, number, target))
        self.source, self.relation = source[order], number[order]
        self.first = offsets(np.bincount(target, minlength=self.nodes))
        others = source != target
        order = np.lexsort((target[others], source[others]))
        self.target = target[others][order]
        self.first_out = offsets(np.bincount(source[others], minlength=self.nodes))

    def incoming(self, nodes: Integers) -> tuple[Integers, Integers, Integers]:
        """All edges into `nodes` (n,): the index in `nodes`, the source and the relation, each (edges,)."""
        first, end = self.first[nodes], self.first[nodes + 1]
        edges = ranges(first, end)
        return np.repeat(np.arange(nodes.size), end - first), self.source[edges], self.relation[edges]

    def outgoing(self, nodes: Integers) -> tuple[Integers, Integers]:
        """All edges out of `nodes` (n,) to other nodes: the index in `nodes`, and the target, each (edges,)."""
        first, end = self.first_out[nodes], self.first_out[nodes + 1]
        return np.repeat(np.arange(nodes.size), end - first), self.target[ranges(first, end)]


def make_plan(neighbours: Neighbourhoods, targets: Integers, layers: int, *, no_out: bool, no_self: bool) -> GraphPlan:
    """Plan what `layers` layers compute for `targets` (targets,), with the switches of the variant."""
    planner = _Planner(neighbours, no_out, no_self)
    changed = planner.changed_states(targets, layers)
    wanted = targets + nodes_of_context(targets, neighbours.nodes)
    wanted = planner.canonical(wanted, changed[layers])
    states = np.unique(wanted)
    state_of_target = np.searchsorted(states, wanted)
    plans: list[LayerPlan] = []
    for layer in range(layers, 0, -1):
        # The input of the first layer has all nodes, needed or not.
        everything = np.arange(neighbours.nodes) if layer == 1 else np.zeros(0, np.int64)
        plan, states = planner.layer(states, changed[layer - 1], everything)
        plans.insert(0, plan)
    return GraphPlan(neighbours.nodes, tuple(plans), state_of_target)


def nodes_of_context(contexts: Integers, nodes: int) -> Integers:
    """The number that is added to the number of a node to get the code of its state in the context of a target.

    `contexts` (n,) are targets, or -1 for BASE. `nodes` is the number of nodes. Returns (n,).
    """
    return (contexts + 1) * nodes


class _Planner:
    """Plans layers. States are given by codes (n,): the number of the node, plus the number of `nodes_of_context`."""

    def __init__(self, neighbours: Neighbourhoods, no_out: bool, no_self: bool) -> None:
        self.neighbours, self.no_out, self.no_self = neighbours, no_out, no_self
        self.nodes, self.relations = neighbours.nodes, neighbours.self_number + 1

    def split(self, states: Integers) -> tuple[Integers, Integers]:
        """The target (or -1 for BASE) and the node of each of `states` (n,), each (n,)."""
        return states // self.nodes - 1, states % self.nodes

    def canonical(self, states: Integers, changed: Integers) -> Integers:
        """Return `states` (n,), where the same node's state of BASE replaces each state that is not in `changed`.

        `changed` has the states that differ from BASE, sorted. All other states have the same value as in BASE.
        """
        index = np.minimum(np.searchsorted(changed, states), max(changed.size - 1, 0))
        differs = changed[index] == states if changed.size else np.zeros(states.size, bool)
        return np.where(differs, states, states % self.nodes)

    def changed_states(self, targets: Integers, layers: int) -> list[Integers]:
        """The states that differ from BASE and are needed for `targets` (n,): one sorted array (states,) per layer.

        The first array is that of the input, which is empty.
        """
        targets = np.unique(targets)
        needed = [targets + nodes_of_context(targets, self.nodes)]
        while len(needed) <= layers // 2:
            needed.append(self._spread_back(needed[-1]))
        direct = self._directly_changed(targets)
        changed = [np.zeros(0, np.int64)]
        for layer in range(1, layers + 1):
            states = np.union1d(np.union1d(direct, changed[-1]), self._spread(changed[-1])).astype(np.int64)
            hops = layers - layer
            # A change has come at most `layer` hops far. If states so far away are needed, all that differ are needed.
            changed.append(np.intersect1d(states, needed[hops]) if hops < layer else states)
        return changed

    def _directly_changed(self, targets: Integers) -> Integers:
        """The states that lack a message which they receive in BASE, sorted.

        These are neighbours of the targets in variant NO, and the targets themselves in variant NS.
        """
        states = [np.zeros(0, np.int64)]
        if self.no_out:
            which, reached = self.neighbours.outgoing(targets)
            states.append(reached + nodes_of_context(targets[which], self.nodes))
        if self.no_self:
            states.append(targets + nodes_of_context(targets, self.nodes))
        return np.unique(np.concatenate(states))

    def _spread(self, states: Integers) -> Integers:
        """The states (m,) that receive a message from one of `states` (n,), sorted."""
        context, node = self.split(states)
        which, reached = self.neighbours.outgoing(node)
        context, source = context[which], node[which]
        is_sent = ~(self.no_out & (source == context))
        return np.unique(reached[is_sent] + nodes_of_context(context[is_sent], self.nodes))

    def _spread_back(self, states: Integers) -> Integers:
        """The given `states` (n,) and all states that send a message to one of them: (m,), sorted."""
        context, node = self.split(states)
        which, source, _ = self.neighbours.incoming(node)
        return np.union1d(states, source + nodes_of_context(context[which], self.nodes)).astype(np.int64)

    def layer(self, states: Integers, changed_before: Integers, also: Integers) -> tuple[LayerPlan, Integers]:
        """The plan of one layer that computes `states`, and the states of the previous layer that it needs.

        All arrays are sorted codes of states (n,). `changed_before`: states whose values in the previous layer differ
        from those of the variant BASE. `also`: further states to include in the returned ones.
        """
        context, node = self.split(states)
        which, source, relation = self.neighbours.incoming(node)
        context_of_edge = context[which]
        left_out = np.zeros(which.size, bool)
        if self.no_out:
            left_out |= (context_of_edge >= 0) & (source == context_of_edge) & (node[which] != context_of_edge)
        if self.no_self:
            left_out |= (context_of_edge >= 0) & (source == context_of_edge) & (node[which] == context_of_edge)
        before = self.canonical(states, changed_before)
        key = self.canonical(source + nodes_of_context(context_of_edge, self.nodes), changed_before)
        sums = _Sums(self, _States(states, node, before), _Edges(which, relation, source, key, left_out))

        all_states = np.unique(np.concatenate([before, sums.query, sums.key, also]))
        number = np.searchsorted(all_states, np.stack([sums.query, sums.key]))
        message_code = (sums.relation * all_states.size + number[1]) * all_states.size + number[0]
        messages, message_of_summand = np.unique(message_code, return_inverse=True)
        role = np.where(sums.relation_of_component < self.neighbours.self_number, OF_CONTEXT, OF_SELF)
        is_target = context[sums.state_of_component] == node[sums.state_of_component]
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
            starts_from=sums.starts_from,
            aggregate_of_summand=sums.aggregate,
            message_of_summand=message_of_summand,
            sign_of_summand=sums.sign,
            state_of_component=sums.state_of_component,
            aggregate_of_component=sums.aggregate_of_component,
            role_of_component=role,
        )
        return plan, all_states


@dataclass(frozen=True, slots=True)
class _States:
    """The states that a layer computes. Arrays are (states,)."""

    code: Integers
    node: Integers
    before: Integers
    """Code of the state of the same node and context in the previous layer."""


@dataclass(frozen=True, slots=True)
class _Edges:
    """The edges into the states that a layer computes. Arrays are (edges,)."""

    state: Integers
    """Index of the state that receives the message."""
    relation: Integers
    source: Integers
    """Node that sends the message."""
    key: Integers
    """Code of the source's state in the previous layer."""
    left_out: Mask
    """True for messages that NO or NS leave out."""


class _StateGroups:
    """Edges grouped by state and relation: the messages of a group are summed.

    The code of a sum is made of its relation and the state it belongs to. Groups whose sum equals that of BASE have the
    code of BASE. A sum starts from that of BASE if its query is that of BASE and this takes fewer messages.
    Arrays are (groups,), except where they say (edges,).
    """

    def __init__(self, planner: _Planner, states: _States, edges: _Edges) -> None:
        relations, nodes = planner.relations, planner.nodes
        group_code, self.of_edge = np.unique(edges.state * relations + edges.relation, return_inverse=True)
        self.state, self.relation = group_code // relations, group_code % relations
        self.is_new_key: Mask = (edges.key >= nodes) & ~edges.left_out
        """(edges,) True for messages from states that differ from BASE."""
        self.differs: Mask = edges.left_out | (edges.key >= nodes)
        """(edges,) True for messages of BASE that are left out or replaced."""
        is_new_query = states.before[self.state] >= nodes
        groups = group_code.size
        size = np.bincount(self.of_edge, ~edges.left_out, minlength=groups).astype(np.int64)
        different = np.bincount(self.of_edge, self.differs, minlength=groups).astype(np.int64)
        added = np.bincount(self.of_edge, self.is_new_key, minlength=groups).astype(np.int64)
        is_new_sum = (different > 0) | is_new_query
        from_base = is_new_sum & ~is_new_query & (1 + different + added < size)
        self.base_code: Integers = states.node[self.state] * relations + self.relation
        new_code = states.code[self.state] * relations + self.relation
        self.code: Integers = np.where(is_new_sum, new_code, self.base_code)
        self.has_messages: Mask = size > 0

        # One group represents all groups with the same sum.
        self.distinct_codes, representative = np.unique(self.code[self.has_messages], return_index=True)
        represents = np.zeros(groups, bool)
        represents[np.flatnonzero(self.has_messages)[representative]] = True
        self.is_summed: Mask = represents & ~from_base
        """True for groups whose messages are all added up."""
        self.starts_from_base: Mask = represents & from_base
        """True for groups whose sum starts from that of BASE."""


class _Sums:
    """The distinct sums over one relation that states are made of (`aggregates`), and their summands.

    `aggregate`, `sign`, `relation`, `query` and `key` are (summands,); queries and keys are codes of states of the
    previous layer. `node_of_aggregate`, `relation_of_aggregate` and `starts_from` are (aggregates,).
    `state_of_component`, `relation_of_component` and `aggregate_of_component` are (components,).
    """

    def __init__(self, planner: _Planner, states: _States, edges: _Edges) -> None:
        relations, nodes = planner.relations, planner.nodes
        groups = _StateGroups(planner, states, edges)
        direct = groups.is_summed[groups.of_edge] & ~edges.left_out
        is_difference = groups.starts_from_base[groups.of_edge]
        plus, minus = is_difference & groups.is_new_key, is_difference & groups.differs
        # Sums of BASE that others start from, and that no state of this layer is made of.
        bases = np.setdiff1d(groups.base_code[groups.starts_from_base], groups.distinct_codes)
        base_which, base_source, base_relation = planner.neighbours.incoming(bases // relations)
        is_of_sum = base_relation == bases[base_which] % relations
        base_which, base_source, base_relation = base_which[is_of_sum], base_source[is_of_sum], base_relation[is_of_sum]

        all_codes = np.union1d(groups.distinct_codes, bases).astype(np.int64)
        # Sorted by relation, so that each relation is projected at once.
        order = np.argsort(all_codes % relations, kind="stable")
        number_of_code = np.empty_like(order)
        number_of_code[order] = np.arange(order.size)

        def number(codes: Integers) -> Integers:
            numbers: Integers = number_of_code[np.searchsorted(all_codes, codes)]
            return numbers

        chosen = [np.flatnonzero(direct), np.flatnonzero(plus), np.flatnonzero(minus)]
        summands = np.concatenate(chosen)
        self.aggregate = np.concatenate([number(groups.code[groups.of_edge][summands]), number(bases[base_which])])
        self.sign = np.repeat([1, 1, -1, 1], [*(rows.size for rows in chosen), base_which.size])
        self.relation = np.concatenate([edges.relation[summands], base_relation])
        self.query = np.concatenate([states.before[edges.state][summands], bases[base_which] // relations])
        # The messages that are subtracted are those of BASE, whose keys are nodes.
        self.key = np.concatenate([edges.key[chosen[0]], edges.key[chosen[1]], edges.source[chosen[2]], base_source])
        self.node_of_aggregate = (all_codes // relations % nodes)[order]
        self.relation_of_aggregate = (all_codes % relations)[order]
        self.starts_from = np.full(all_codes.size, -1, np.int64)
        self.starts_from[number(groups.code[groups.starts_from_base])] = number(groups.base_code[groups.starts_from_base])
        self.state_of_component, self.relation_of_component = groups.state[groups.has_messages], groups.relation[groups.has_messages]
        self.aggregate_of_component = number(groups.code[groups.has_messages])

    def messages_of_aggregate(self) -> Integers:
        """The number of messages in each sum, (aggregates,)."""
        count = np.bincount(self.aggregate, self.sign, minlength=self.starts_from.size).astype(np.int64)
        return count + np.where(self.starts_from >= 0, count[self.starts_from], 0) if count.size else count
