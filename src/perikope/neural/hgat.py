"""Heterogeneous graph attention over token matrices: the eight variants of Albarede et al. 2023 (3.2, 3.3, appendix).

The state h_i of a node i is a matrix with one vector per token. One layer computes a new state from the messages that
node i receives from nodes j along edges of relation r. The relations include self, the edge of a node to itself:

    h'_i = Σ_{j→i by r} softmax(W)_r ⊙ MultiHead_r(h_i, h_j, h_j)                                      (1) BASE
    h'_i = (1 - λ) MultiHead_self(h_i, h_i, h_i)
           + λ Σ_{j→i by r, j ≠ i} softmax(W)_r ⊙ MultiHead_r(h_i, h_j, h_j)                           (3) LB

`W_r` has one weight per token position. The softmax runs over all relations of the model, even if they have no edges in
the graph: nine relations with self. In LB, self is not part of the softmax, because λ weights it.

A target t is a node whose output is wanted. While the state of t is computed, the variants leave out messages:

    NO  every other node leaves out the message from j = t                                             (2), (7)
    NS  the target leaves out its self message and the factor λ (`ns_lambda=True` keeps the factor)    (8)

The paper prints `MultiHead(h_i, h_j, h_i)` in equation (2). This is taken as a misprint of `MultiHead(h_i, h_j, h_j)`,
which the rest of the paper uses.

The option `residual=True` is not in the paper. It computes `h'_i = h_i + …`, with output projections that start at
zero, so that training starts from the encoder's vectors.

With NO and NS, hidden states depend on the target. `sharing` finds which states must be computed. The computation is
the same for all variants. The tokens of all states are rows of one matrix without padding, so that projections are
plain matrix products. Only attentions are padded, in batches of similar sizes. Messages of one relation are summed
before the output projection, because the projection is linear. Targets that share a message also share its dropout.
Dropout is drawn anew in every forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from perikope.core.arrays import Integers, Mask
from perikope.core.errors import UsageError, unknown
from perikope.index.layout import offsets
from perikope.index.ranges import ranges
from perikope.neural.graph import OPENING, RELATIONS, SELF, DocumentGraph, merge_graphs
from perikope.neural.sharing import OF_CONTEXT, OF_SELF, OF_TARGET, GraphPlan, LayerPlan, Neighbourhoods, make_plan

VARIANTS = {
    "BASE": (False, False, False),
    "NO": (True, False, False),
    "LB": (False, True, False),
    "NS": (False, False, True),
    "NO_LB": (True, True, False),
    "NO_NS": (True, False, True),
    "LB_NS": (False, True, True),
    "NO_LB_NS": (True, True, True),
}
"""The arguments `no_out`, `lam` and `no_self` of `HGAT`, by the name of the variant in the paper."""

LATE_FUSION = ("NO_NS", "NO_LB_NS")
"""Variants whose output does not contain the target's own text. `LateFusion` adds the text to the score."""

OWN_FORM: Mapping[str, Any] = {"layers": 2, "dropout": 0.1, "residual": True}
"""Default settings of graph attention in `perikope train` and in experiments. They learn from few topics. The defaults
of the class `HGAT` are the settings of the paper."""

_QUERY_ROWS = 512
"""Maximum query rows per attention. More query rows with the same keys are split, so that sizes are similar."""
_PAIRS, _PAIRS_ON_GPU = 1 << 21, 1 << 24
"""Maximum pairs of a query row and a key row per batch of attentions, padding included, on a CPU and on a GPU."""
_SIZES: Integers = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512])
"""Upper limits, in rows, of the size classes of attentions on a CPU. Only attentions of one class share a batch."""
_SIZES_ON_GPU: Integers = np.array([32, 96, 192, 512])
"""The size classes on a GPU. They are fewer, because more padding costs less there than more batches."""
_MESSAGE_ROWS = 1 << 21
"""Maximum rows of messages per layer. If a layer would have more rows, the targets are computed in several groups."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """A message from one node to a target in the last layer.

    The output matrix of the target is the sum of its contributions, plus its previous state with `residual`.
    """

    relation: str
    """Name of the relation along which the message is sent."""
    source: int
    """Number of the node that sends the message."""
    vectors: Tensor
    """(tokens of the target, dimension) The weighted message."""


class HGAT(nn.Module):
    """Graph attention: computes token matrices of passages in the context of their document's graph."""

    def __init__(
        self,
        dimension: int = 128,
        heads: int = 8,
        layers: int = 3,
        dropout: float = 0.7,
        positions: int = 180,
        *,
        no_out: bool = False,
        lam: bool = False,
        no_self: bool = False,
        residual: bool = False,
        ns_lambda: bool = False,
        normalize_output: bool = False,
        relations: Sequence[str] = RELATIONS,
    ) -> None:
        """Make layers with random weights. The defaults are the settings of the paper.

        - `dimension`: values per token vector, a multiple of `heads`.
        - `heads`: attention heads per relation, at least 1.
        - `layers`: number of layers, at least 1. A passage is influenced by nodes at most this many hops away.
        - `dropout`: share of attention weights set to zero in training, from 0 to below 1.
        - `positions`: maximum tokens per node; relations have one weight per position.
        - `no_out`: the target sends no messages to other nodes (variants NO).
        - `lam`: each layer learns a λ, which weights the neighbours; 1 - λ weights the node itself (variants LB).
        - `no_self`: the target leaves out its self message (variants NS).
        - `residual`: add a node's previous matrix to its new matrix. This is not in the paper.
        - `ns_lambda`: with `lam` and `no_self`, multiply the messages to the target by λ.
        - `normalize_output`: scale output vectors to length 1.
        - `relations`: names of the relations whose edges carry messages, from `RELATIONS` and `opening`. The relation
          self is always added.
        """
        super().__init__()
        _check_settings(dimension, heads, layers, relations)
        self.settings: dict[str, Any] = {
            "dimension": dimension,
            "heads": heads,
            "layers": layers,
            "dropout": dropout,
            "positions": positions,
            "no_out": no_out,
            "lam": lam,
            "no_self": no_self,
            "residual": residual,
            "ns_lambda": ns_lambda,
            "normalize_output": normalize_output,
            "relations": list(relations),
        }
        self.dimension, self.positions, self.normalize_output = dimension, positions, normalize_output
        self.no_out, self.no_self = no_out, no_self
        self.relations = tuple(relations)
        # The last layer computes targets only. If targets have no self message, it needs no self attention and no λ.
        inner = _LayerForm(splits_self=lam, has_self=True, has_lambda=lam, residual=residual, weights_target=ns_lambda)
        outer = replace(inner, has_self=not no_self, has_lambda=lam and (ns_lambda or not no_self))
        self.layers = nn.ModuleList(
            _Layer(self.relations, dimension, heads, dropout, positions, form) for form in [*[inner] * (layers - 1), outer]
        )

    @classmethod
    def variant(cls, name: str, **options: Any) -> HGAT:
        """Make one of the eight variants by its name in the paper, such as `NO_LB_NS`.

        `options` are the other arguments of `HGAT`.
        """
        if name not in VARIANTS:
            raise unknown("variant", name, VARIANTS)
        no_out, lam, no_self = VARIANTS[name]
        return cls(no_out=no_out, lam=lam, no_self=no_self, **options)

    @property
    def _stack(self) -> list[_Layer]:
        """The layers, from input to output."""
        return cast("list[_Layer]", list(self.layers))

    @property
    def lambdas(self) -> list[float | None]:
        """The value of λ in each layer, from 0 to 1; None for a layer without λ."""
        return [None if layer.lam is None else float(layer.lam.detach().clamp(0, 1)) for layer in self._stack]

    def importance(self) -> list[dict[str, float]]:
        """The share of each relation, one dict per layer (Table 6 of the paper).

        Shares are the softmax of the relations' weights, averaged over token positions first. In a layer with λ, self
        has the share 1 - λ, and the shares of the other relations are multiplied by λ.
        """
        return [layer.importance() for layer in self._stack]

    def forward(
        self, graph: DocumentGraph | Sequence[DocumentGraph], tokens: Tensor, mask: Tensor, targets: Integers | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute the matrices of the targets (targets, tokens, dimension), and their mask (targets, tokens).

        `tokens` (nodes, tokens, dimension) and `mask` (nodes, tokens) belong to all nodes of the graph, or of several
        graphs one after the other. `targets` (targets,) are numbers of nodes; None stands for all passages. Vectors of
        the result are zero if their mask is false. Only states that the targets depend on are computed.
        """
        graph = graph if isinstance(graph, DocumentGraph) else merge_graphs(graph)
        targets = graph.passage_node if targets is None else np.asarray(targets, np.int64)
        batch = self._batch(graph, tokens, mask)
        if targets.size and not 0 <= int(targets.min()) <= int(targets.max()) < graph.nodes:
            raise UsageError(f"targets must be numbers of nodes of the graph, from 0 to {graph.nodes - 1}")
        neighbours = self._neighbourhoods(graph, batch)
        width = tokens.shape[1]
        padded = tokens.new_zeros(targets.size * width, self.dimension)
        rows = [self._last_rows(batch, plan) for plan in self._plans(batch, neighbours, targets)]
        if rows:
            padded_row = np.repeat(np.arange(targets.size) * width, batch.count[targets]) + batch.positions_of(targets)
            padded = padded.index_copy(0, batch.index(padded_row), torch.cat(rows).to(padded.dtype))
        return padded.view(targets.size, width, self.dimension), mask[batch.index(targets)]

    def plan(self, graph: DocumentGraph, speaks: Mask, targets: Integers | None = None) -> GraphPlan:
        """Plan which states and messages are computed for `targets` (targets,), by default for all passages.

        `speaks` (nodes,) is true for nodes that have tokens.
        """
        neighbours = Neighbourhoods(graph.edges, self.relations, speaks)
        chosen = graph.passage_node if targets is None else np.asarray(targets, np.int64)
        return make_plan(neighbours, chosen, len(self.layers), no_out=self.no_out, no_self=self.no_self)

    def contributions(self, graph: DocumentGraph, tokens: Tensor, mask: Tensor, target: int) -> list[Contribution]:
        """The messages to a target in the last layer.

        `tokens` is (nodes, tokens, dimension), `mask` (nodes, tokens), and `target` the number of a node. The output
        matrix of the target is the sum of the contributions, plus its previous state with `residual`. With
        `normalize_output`, this is the matrix before scaling. The dot product of a query vector with an output vector
        is the sum of the dot products with its summands. So a score can be divided among neighbours and relations.
        """
        batch = self._batch(graph, tokens, mask)
        neighbours = self._neighbourhoods(graph, batch)
        plan = make_plan(neighbours, np.array([target]), len(self.layers), no_out=self.no_out, no_self=self.no_self)
        rows, nodes = self._rows_before_last(batch, plan)
        last = self._stack[-1]
        names = [*self.relations, SELF]
        messages = last.messages(rows, nodes, plan.layers[-1], batch)
        return [Contribution(names[number], int(nodes[key]), vectors) for number, key, vectors in messages]

    def _batch(self, graph: DocumentGraph, tokens: Tensor, mask: Tensor) -> _Tokens:
        """The vectors of `tokens` (nodes, tokens, dimension) that `mask` (nodes, tokens) selects, as one matrix.

        Raises `UsageError` if the shapes do not fit the graph.
        """
        if tokens.shape[0] != graph.nodes or tokens.shape[:2] != mask.shape or tokens.shape[2] != self.dimension:
            shapes = f"{tuple(tokens.shape)} and {tuple(mask.shape)}"
            needed = f"({graph.nodes}, tokens, {self.dimension}) and ({graph.nodes}, tokens)"
            raise UsageError(f"the shapes of tokens and mask must be {needed}, not {shapes}")
        return _Tokens(tokens, mask.bool(), self.positions)

    def _neighbourhoods(self, graph: DocumentGraph, batch: _Tokens) -> Neighbourhoods:
        return Neighbourhoods(graph.edges, self.relations, batch.count > 0)

    def _plans(self, batch: _Tokens, neighbours: Neighbourhoods, targets: Integers) -> list[GraphPlan]:
        """One plan for `targets` (targets,), or several plans for parts of them if one plan takes too much memory."""
        if not targets.size:
            return []
        plan = make_plan(neighbours, targets, len(self.layers), no_out=self.no_out, no_self=self.no_self)
        if targets.size > 1 and _most_message_rows(plan, batch.count) > _MESSAGE_ROWS:
            half = targets.size // 2
            return [*self._plans(batch, neighbours, targets[:half]), *self._plans(batch, neighbours, targets[half:])]
        return [plan]

    def _rows_before_last(self, batch: _Tokens, plan: GraphPlan) -> tuple[Tensor, Integers]:
        """The input of the last layer: rows of all states (rows, dimension), and the node of each state (states,)."""
        rows, nodes = batch.rows, np.arange(batch.count.size)
        for layer, layer_plan in zip(self._stack[:-1], plan.layers[:-1], strict=True):
            rows, nodes = layer(rows, nodes, layer_plan, batch), layer_plan.node_of_state
        return rows, nodes

    def _last_rows(self, batch: _Tokens, plan: GraphPlan) -> Tensor:
        """The output rows of all targets, one target after the other: (rows, dimension)."""
        rows, nodes = self._rows_before_last(batch, plan)
        last = plan.layers[-1]
        rows = self._stack[-1](rows, nodes, last, batch)
        of_targets = _gather(rows, batch.index(batch.rows_of(last.node_of_state, plan.state_of_target)))
        return functional.normalize(of_targets, dim=-1) if self.normalize_output else of_targets


def _check_settings(dimension: int, heads: int, layers: int, relations: Sequence[str]) -> None:
    """Raise `UsageError` if a relation is unknown, there is no layer, or the heads do not divide the dimension."""
    for name in relations:
        if name not in (*RELATIONS, OPENING):
            raise unknown("relation", name, (*RELATIONS, OPENING))
    if layers < 1 or heads < 1 or dimension % heads:
        raise UsageError(
            f"layers must be at least 1, and heads must divide the dimension {dimension}: not {layers} layers and {heads} heads"
        )


class LateFusion(nn.Module):
    """Late fusion of two scores, `(1 - α) sim(E_q, E_p) + α sim(E_q, E_context-only)` (equation 5 of the paper).

    The weight α, from 0 to 1, is learned.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(()))

    def forward(self, content: Tensor, context: Tensor) -> Tensor:
        """The weighted mean of the similarities `content` and `context`; all three are (queries, passages)."""
        alpha = _share(self.alpha)
        return (1 - alpha) * content + alpha * context


def _share(parameter: Tensor) -> Tensor:
    """Clamp a learned scalar to [0, 1] in place and return it.

    A training step may have moved the value outside. A clamp in the formula instead would give it no gradient there.
    """
    # Autograd does not notice changes of `data`: an earlier pass may still need the parameter for its gradients.
    parameter.data.clamp_(0, 1)
    return parameter


class _Tokens:
    """The token vectors of all nodes as rows of one matrix, with functions for row numbers of states."""

    def __init__(self, tokens: Tensor, mask: Tensor, positions: int) -> None:
        """Select the rows of `tokens` (nodes, tokens, dimension) where `mask` (nodes, tokens) is true.

        Attributes: `rows` (rows, dimension); `position` (rows,), the token position of each row in its text; `count`
        (nodes,), the number of rows per node; `first` (nodes + 1,), the offset of each node's rows.
        """
        on_host = mask.cpu().numpy()
        node, self.position = (indices.astype(np.int64) for indices in on_host.nonzero())
        if self.position.size and int(self.position.max()) >= positions:
            longest = int(self.position.max()) + 1
            raise UsageError(f"nodes may have at most {positions} tokens, not {longest}; shorten their texts, or set positions={longest}")
        self.count: Integers = np.bincount(node, minlength=on_host.shape[0]).astype(np.int64)
        self.first = offsets(self.count)
        self.device = tokens.device
        self.rows = tokens.flatten(0, 1).index_select(0, self.index(node * tokens.shape[1] + self.position))

    def index(self, rows: Integers) -> Tensor:
        """Copy row numbers (n,) to the device of the tokens, as a tensor (n,)."""
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)

    def rows_of(self, nodes: Integers, states: Integers) -> Integers:
        """The row numbers (rows,) of some `states` (n,) in a matrix with the rows of all states, one after the other.

        `nodes` (all states,) is the node of each state. A state has as many rows as its node.
        """
        first = offsets(self.count[nodes])
        return ranges(first[:-1][states], first[1:][states])

    def positions_of(self, nodes: Integers) -> Integers:
        """The token positions (rows,) of the rows of `nodes` (n,), one node after the other."""
        positions: Integers = self.position[ranges(self.first[:-1][nodes], self.first[1:][nodes])]
        return positions


def _most_message_rows(plan: GraphPlan, tokens_of_node: Integers) -> int:
    """The number of message rows of the layer with the most; `tokens_of_node` (nodes,) has the tokens of each node."""
    nodes, most = np.arange(plan.nodes), 0
    for layer in plan.layers:
        most = max(most, int(tokens_of_node[nodes[layer.query_of_message]].sum()))
        nodes = layer.node_of_state
    return most


@dataclass(frozen=True, slots=True)
class _LayerForm:
    """The optional parts of a layer."""

    splits_self: bool
    """Whether self is weighted by 1 - λ (LB), and not by the softmax over relations."""
    has_self: bool
    """Whether any state of the layer has a self message."""
    has_lambda: bool
    """Whether the layer learns a λ."""
    residual: bool
    """Whether the previous state is added to the new one."""
    weights_target: bool
    """Whether messages to a target that leaves out its self message are multiplied by λ (`ns_lambda`)."""


class _Layer(nn.Module):
    """One layer: one attention per relation, a weight per relation and token position, and λ."""

    def __init__(self, relations: tuple[str, ...], dimension: int, heads: int, dropout: float, positions: int, form: _LayerForm) -> None:
        super().__init__()
        self.heads, self.dropout, self.form = heads, dropout, form
        self.names = [*relations, SELF]
        # Only the parameters of `MultiheadAttention` and their initial values are used. This class computes the
        # attention.
        self.attention = nn.ModuleDict(
            {name: nn.MultiheadAttention(dimension, heads) for name in self.names if name != SELF or form.has_self}
        )
        if form.residual:
            for name in self.attention:
                nn.init.zeros_(self._attention_of(name).out_proj.weight)
        self.weight = nn.Parameter(torch.zeros(len(relations) + (not form.splits_self), positions))
        self.lam = nn.Parameter(torch.rand(())) if form.has_lambda else None

    def _attention_of(self, relation: str) -> nn.MultiheadAttention:
        """The attention of a relation, given by its name."""
        return cast(nn.MultiheadAttention, self.attention[relation])

    def importance(self) -> dict[str, float]:
        """The share of each relation in this layer, by name; see `HGAT.importance`."""
        with torch.no_grad():
            shares = dict(zip(self.names, torch.softmax(self.weight.mean(1), 0).tolist(), strict=False))
            if self.lam is not None:
                lam = float(self.lam.detach().clamp(0, 1))
                shares = {name: lam * share for name, share in shares.items()} | {SELF: 1 - lam}
        return shares

    def forward(self, rows: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> Tensor:
        """Compute the states of the plan, as rows (rows of new states, dimension).

        `rows` (rows, dimension) are the rows of all states before the layer. `nodes` (states before,) is the node of
        each of these states.
        """
        attended = self._attend(rows, nodes, plan, batch)
        sums = self._add_up(attended, nodes, plan, batch)
        projected = self._project(sums, plan.node_of_aggregate, plan.relation_of_aggregate, plan.messages_of_aggregate, batch)
        of_state = batch.index(batch.rows_of(plan.node_of_state, plan.state_of_component))
        of_aggregate = batch.index(batch.rows_of(plan.node_of_aggregate, plan.aggregate_of_component))
        components = _gather(projected, of_aggregate)
        if self.form.splits_self:
            role = np.repeat(plan.role_of_component, batch.count[plan.node_of_state[plan.state_of_component]])
            components = components * self._shares(rows.dtype).gather(0, batch.index(role))[:, None]
        if self.form.residual:
            start = _gather(rows, batch.index(batch.rows_of(nodes, plan.before)))
        else:
            start = rows.new_zeros(int(batch.count[plan.node_of_state].sum()), rows.shape[1])
        return start.index_add(0, of_state, components.to(start.dtype))

    def messages(self, rows: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> list[tuple[int, int, Tensor]]:
        """The messages in a plan for one target, each as (number of the relation, state of the source, weighted rows).

        The weighted rows are (tokens of the target, dimension). `rows` and `nodes` are as in `forward`.
        """
        attended = self._attend(rows, nodes, plan, batch)
        count = np.ones(plan.relation_of_message.size, np.int64)
        weighted = self._project(attended, nodes[plan.query_of_message], plan.relation_of_message, count, batch)
        if self.form.splits_self:
            role_of_aggregate = dict(zip(plan.aggregate_of_component.tolist(), plan.role_of_component.tolist(), strict=True))
            summand_of_message = np.argsort(plan.message_of_summand)
            role = [role_of_aggregate[aggregate] for aggregate in plan.aggregate_of_summand[summand_of_message].tolist()]
            repeated = np.repeat(np.array(role, np.int64), batch.count[nodes[plan.query_of_message]])
            weighted = weighted * self._shares(rows.dtype).gather(0, batch.index(repeated))[:, None]
        pieces = torch.split(weighted, batch.count[nodes[plan.query_of_message]].tolist())
        return list(zip(plan.relation_of_message.tolist(), plan.key_of_message.tolist(), pieces, strict=True))

    def _shares(self, dtype: torch.dtype) -> Tensor:
        """The factors (3,) of a state's components, by their roles OF_SELF, OF_CONTEXT and OF_TARGET."""
        one = self.weight.new_ones(())
        lam = one if self.lam is None else _share(self.lam)
        shares = {OF_SELF: 1 - lam, OF_CONTEXT: lam, OF_TARGET: lam if self.form.weights_target else one}
        return torch.stack([shares[role] for role in sorted(shares)]).to(dtype)

    def _attend(self, rows: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> Tensor:
        """Compute all messages before the output projection: (rows of messages, dimension).

        A message has one row per token of the state that receives it. `rows` and `nodes` are as in `forward`.
        """
        if not plan.relation_of_message.size:
            return rows[:0]
        query = _Projected(plan.relation_of_message, plan.query_of_message, nodes, batch)
        key = _Projected(plan.relation_of_message, plan.key_of_message, nodes, batch)
        dimension = rows.shape[1]
        queries = torch.cat([self._in(name, _gather(rows, which), 0, dimension) for name, which in query.gathered(self.names)])
        keys_and_values = torch.cat(
            [self._in(name, _gather(rows, which), dimension, 3 * dimension) for name, which in key.gathered(self.names)]
        )
        # Messages with the same keys are adjacent: their queries are one matrix.
        order = np.argsort(key.of_message, kind="stable")
        rows_of_message = batch.count[nodes[plan.query_of_message]]
        answers = _attend_in_batches(
            queries,
            keys_and_values,
            query.rows(order),
            np.bincount(key.of_message, rows_of_message, minlength=key.first.size - 1).astype(np.int64),
            key.first,
            self.heads,
            self.dropout if self.training else 0.0,
        )
        # Back to the order of messages.
        first = np.empty(order.size, np.int64)
        first[order] = offsets(rows_of_message[order])[:-1]
        return _gather(answers, batch.index(ranges(first, first + rows_of_message)))

    def _in(self, relation: str, rows: Tensor, first: int, end: int) -> Tensor:
        """Project `rows` (rows, dimension) by the input weights of a relation from `first` to `end`, exclusive.

        The input weights (3 · dimension, dimension) are those of queries, keys and values, in this order.
        """
        attention = self._attention_of(relation)
        return functional.linear(rows, attention.in_proj_weight[first:end], attention.in_proj_bias[first:end])

    def _add_up(self, attended: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> Tensor:
        """Sum the messages of each aggregate of the plan: (rows of aggregates, dimension).

        `attended` (rows of messages, dimension) is the result of `_attend`. `nodes` is as in `forward`.
        """
        receiver = nodes[plan.query_of_message]
        sums = attended.new_zeros(int(batch.count[plan.node_of_aggregate].sum()), attended.shape[1])
        for sign in (1, -1):
            summands = np.flatnonzero(plan.sign_of_summand == sign)
            if summands.size:
                into = batch.index(batch.rows_of(plan.node_of_aggregate, plan.aggregate_of_summand[summands]))
                of = batch.index(batch.rows_of(receiver, plan.message_of_summand[summands]))
                sums = sums.index_add(0, into, _gather(attended, of), alpha=sign)
        continued = np.flatnonzero(plan.starts_from >= 0)
        if continued.size:
            into = batch.index(batch.rows_of(plan.node_of_aggregate, continued))
            of = batch.index(batch.rows_of(plan.node_of_aggregate, plan.starts_from[continued]))
            sums = sums.index_add(0, into, _gather(sums, of))
        return sums

    def _project(self, sums: Tensor, nodes: Integers, relations: Integers, messages: Integers, batch: _Tokens) -> Tensor:
        """Apply the output projection to sums of messages, and weight them by relation and position: (rows, dimension).

        The rows of `sums` (rows, dimension) are sorted by relation. For each sum, `nodes` (sums,) is the receiving
        node, `relations` (sums,) the number of the relation, and `messages` (sums,) the number of messages. Each
        message adds the bias of the projection once.
        """
        if not nodes.size:
            return sums
        tokens = batch.count[nodes]
        rows_of_relation = np.bincount(relations, tokens, minlength=len(self.names)).astype(np.int64).tolist()
        count = batch.index(np.repeat(messages, tokens))[:, None].to(sums.dtype)
        projected = []
        for name, rows, times in zip(self.names, torch.split(sums, rows_of_relation), torch.split(count, rows_of_relation), strict=True):
            if rows.shape[0]:
                attention = self._attention_of(name)
                projected.append(functional.linear(rows, attention.out_proj.weight) + times * attention.out_proj.bias)
        weight = torch.softmax(self.weight, 0)
        if self.form.splits_self:
            weight = torch.cat([weight, torch.ones_like(weight[:1])])
        messages_out = torch.cat(projected)
        # Many rows have the same weight. `gather` is used, because on a GPU the backward pass of indexing adds one by
        # one.
        weight_of_row = np.repeat(relations * weight.shape[1], tokens) + batch.positions_of(nodes)
        return messages_out * weight.flatten().gather(0, batch.index(weight_of_row))[:, None].to(messages_out.dtype)


class _Projected:
    """The distinct pairs (relation, state) of the queries or keys of messages, sorted by relation.

    Each pair is projected only once, even if several messages use it.
    """

    def __init__(self, relation: Integers, state: Integers, nodes: Integers, batch: _Tokens) -> None:
        """Find the pairs of `relation` (messages,) and `state` (messages,).

        `nodes` (states,) is the node of each state.

        Attributes: `of_message` (messages,), the pair of each message; `first` (pairs + 1,), the offset of each pair's
        projected rows.
        """
        codes, self.of_message = np.unique(relation * nodes.size + state, return_inverse=True)
        self._relation, self._state = codes // nodes.size, codes % nodes.size
        self._nodes, self._batch = nodes, batch
        self.first = offsets(batch.count[nodes[self._state]])

    def gathered(self, names: Sequence[str]) -> list[tuple[str, Tensor]]:
        """For each relation that has pairs: its name, and the numbers (rows,) of the rows that it projects."""
        cut = np.searchsorted(self._relation, np.arange(len(names) + 1))
        states_of_relation = [(name, self._state[cut[i] : cut[i + 1]]) for i, name in enumerate(names)]
        return [(name, self._batch.index(self._batch.rows_of(self._nodes, states))) for name, states in states_of_relation if states.size]

    def rows(self, messages: Integers) -> Integers:
        """The numbers (rows,) of the projected rows that `messages` (n,) use, one message after the other."""
        pairs = self.of_message[messages]
        return ranges(self.first[:-1][pairs], self.first[1:][pairs])


def _attend_in_batches(
    queries: Tensor,
    keys_and_values: Tensor,
    row_of_query: Integers,
    queries_of_key: Integers,
    first_row_of_key: Integers,
    heads: int,
    dropout: float,
) -> Tensor:
    """Attention of query rows to key matrices, computed in padded batches: (n, dimension).

    `row_of_query` (n,) are numbers of rows of `queries` (query rows, dimension). The first `queries_of_key[0]` of these
    rows attend to the first key matrix, the next `queries_of_key[1]` rows to the second, and so on. `queries_of_key` is
    (key matrices,). `keys_and_values` is (key rows, 2 · dimension). `first_row_of_key` (key matrices + 1,) has the
    offset of each key matrix.
    """
    device, dimension = queries.device, queries.shape[1]
    # Queries are cut into pieces of bounded size. Batches have pieces of similar size, so that they need little
    # padding.
    pieces = -(-queries_of_key // _QUERY_ROWS)
    key_of_piece = np.repeat(np.arange(queries_of_key.size), pieces)
    inside = (np.arange(key_of_piece.size) - np.repeat(offsets(pieces)[:-1], pieces)) * _QUERY_ROWS
    first_query = offsets(queries_of_key)[:-1][key_of_piece] + inside
    query_rows = np.minimum(queries_of_key[key_of_piece] - inside, _QUERY_ROWS)
    key_rows = np.diff(first_row_of_key)[key_of_piece]
    on_gpu = device.type != "cpu"
    answers, order = [], []
    for batch in _batches(query_rows, key_rows, _SIZES_ON_GPU if on_gpu else _SIZES, _PAIRS_ON_GPU if on_gpu else _PAIRS):
        asking, asking_mask = _padded(first_query[batch], query_rows[batch])
        asked, asked_mask = _padded(first_row_of_key[key_of_piece[batch]], key_rows[batch])
        query = _by_heads(_gather(queries, torch.from_numpy(row_of_query[asking]).to(device)), heads)
        both = _gather(keys_and_values, torch.from_numpy(asked).to(device))
        key, value = (_by_heads(half, heads) for half in torch.split(both, dimension, dim=-1))
        allowed = None if asked_mask.all() else torch.from_numpy(asked_mask).to(device)[:, None, None, :]
        answer = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)
        answer = answer.transpose(1, 2).flatten(2)
        answers.append(answer.flatten(0, 1) if asking_mask.all() else answer[torch.from_numpy(asking_mask).to(device)])
        order.append(asking[asking_mask])
    if not answers:
        return queries[:0]
    back = np.empty(row_of_query.size, np.int64)
    back[np.concatenate(order)] = np.arange(row_of_query.size)
    return _gather(torch.cat(answers), torch.from_numpy(back).to(device))


def _gather(rows: Tensor, which: Tensor) -> Tensor:
    """Select the rows of `rows` (rows, dimension) with the numbers `which`, of any shape: (*shape, dimension).

    `embedding` is used, because on a GPU its backward pass is several times faster than the one of indexing.
    """
    return functional.embedding(which, rows)


def _by_heads(rows: Tensor, heads: int) -> Tensor:
    """Divide vectors (batch, tokens, dimension) among heads: (batch, heads, tokens, dimension / heads)."""
    return rows.reshape(*rows.shape[:2], heads, -1).transpose(1, 2)


def _rounded(sizes: Integers, steps: Integers) -> Integers:
    """Round each of `sizes` (n,) up to the next of the increasing `steps`; sizes above the last step stay: (n,)."""
    rounded: Integers = steps[np.minimum(np.searchsorted(steps, sizes), steps.size - 1)]
    return np.maximum(rounded, sizes)


def _batches(query_rows: Integers, key_rows: Integers, sizes: Integers, pairs: int) -> list[Integers]:
    """Divide pieces into batches: one array of numbers of pieces per batch.

    `query_rows` and `key_rows` (pieces,) are the sizes of the pieces. All pieces of a batch have the same size, rounded
    up to one of `sizes`. A batch has at most `pairs` pairs of a query row and a key row, but at least one piece.
    """
    wide, deep = _rounded(query_rows, sizes), _rounded(key_rows, sizes)
    order = np.lexsort((query_rows, wide, deep))
    changes = np.flatnonzero((np.diff(wide[order]) != 0) | (np.diff(deep[order]) != 0)) + 1
    batches = []
    for same_size in np.split(order, changes) if order.size else []:
        most = max(1, pairs // (int(query_rows[same_size].max()) * int(key_rows[same_size].max())))
        batches += [same_size[first : first + most] for first in range(0, same_size.size, most)]
    return batches


def _padded(first: Integers, count: Integers) -> tuple[Integers, Mask]:
    """Padded ranges of row numbers (n, longest), and their mask (n, longest).

    Range i has `count[i]` numbers from `first[i]` on; `first` and `count` are (n,). Padding repeats the first number.
    """
    steps = np.arange(int(count.max()))
    mask = steps < count[:, None]
    return first[:, None] + np.where(mask, steps, 0), mask
