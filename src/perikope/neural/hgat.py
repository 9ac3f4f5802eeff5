"""Heterogeneous graph attention over a document's token matrices, in the eight variants of Albarede et al. 2023 (3.2, 3.3 and appendix).

A node is a matrix, a vector a token. One layer, for a node i with messages from j along edges of relation r, self among them:

    h'_i = Σ_{j→i by r} softmax(W)_r ⊙ MultiHead_r(h_i, h_j, h_j)                                                     (1) BASE
    h'_i = (1 - λ) MultiHead_self(h_i, h_i, h_i) + λ Σ_{j→i by r, j ≠ i} softmax(W)_r ⊙ MultiHead_r(h_i, h_j, h_j)     (3) LB

`W_r` has one weight a token position; the softmax runs over all relations of the model, whether the graph has edges of them or not: nine
with self, without self in LB, where λ weighs that. While the representation of a target t is computed,

    NO  every other node leaves out j = t                                                                          (2), (7)
    NS  the target leaves out its self message, and λ with it (`ns_lambda=True` keeps the λ)                             (8)

Equation (2) prints `MultiHead(h_i, h_j, h_i)`; it is read as `(h_i, h_j, h_j)`, as everywhere else in the paper.

`residual=True` is our own form: `h'_i = h_i + …`, with output projections that begin at zero, so that training begins with the encoder's
own vectors.

NO and NS make states depend on the target. `sharing` finds which have to be computed; what follows is the same for all variants. Tokens
of all states lie in one matrix, row after row, without padding, so that projections are plain products; only attentions are padded, in
batches of like sizes. Sums over the messages of one relation come before the output projection, which is linear. Where messages are shared
between targets, so is their dropout; it is drawn anew at every pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from perikope.core.arrays import Integers, Mask
from perikope.core.errors import UsageError, unknown
from perikope.index.layout import offsets, ranges
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
"""No out, lambda and no self of each variant."""

LATE_FUSION = ("NO_NS", "NO_LB_NS")
"""Variants that leave the target's own content out, so that it has to be put back; see `LateFusion`."""

OWN_FORM: Mapping[str, Any] = {"layers": 2, "dropout": 0.1, "residual": True}
"""What learns from few topics, where nothing else is asked for; the defaults of `HGAT` are the paper's."""

_QUERY_ROWS = 512
"""Questions to the same keys are cut into pieces of so many rows, which are alike in size then."""
_PAIRS, _PAIRS_ON_GPU = 1 << 21, 1 << 24
"""Pairs of tokens that are compared at a time, padding included."""
_SIZES: Integers = np.array([8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512])
_SIZES_ON_GPU: Integers = np.array([32, 96, 192, 512])
"""Sizes that attentions are padded to. A GPU would rather compute more than be asked more often."""
_MESSAGE_ROWS = 1 << 21
"""Rows of messages of one layer; where there would be more, targets are computed some after the others."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a node said to a target in the last layer; the sum over all is the target's matrix, less the residual."""

    relation: str
    source: int
    vectors: Tensor
    """A vector a token of the target."""


class HGAT(nn.Module):
    """Contextual token matrices of the passages of document graphs."""

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
        super().__init__()
        for name in relations:
            if name not in (*RELATIONS, OPENING):
                raise unknown("relation", name, (*RELATIONS, OPENING))
        if layers < 1 or heads < 1 or dimension % heads:
            raise UsageError(f"there must be at least one layer, and heads that divide the dimension: not {layers}, {heads}, {dimension}")
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
        # In the last layer only targets are computed. Where these do not hear themselves, there is no self message and no λ to learn.
        self.layers = nn.ModuleList(
            _Layer(
                self.relations,
                dimension,
                heads,
                dropout,
                positions,
                lam=lam,
                has_self=not (no_self and last),
                has_lambda=lam and not (no_self and last and not ns_lambda),
                residual=residual,
                target_is_weighed=ns_lambda,
            )
            for last in [*[False] * (layers - 1), True]
        )

    @classmethod
    def variant(cls, name: str, **options: Any) -> HGAT:
        """One of the eight variants by its name in the paper, such as `NO_LB_NS`."""
        if name not in VARIANTS:
            raise unknown("variant", name, VARIANTS)
        no_out, lam, no_self = VARIANTS[name]
        return cls(no_out=no_out, lam=lam, no_self=no_self, **options)

    @property
    def _stack(self) -> list[_Layer]:
        return cast("list[_Layer]", list(self.layers))

    @property
    def lambdas(self) -> list[float | None]:
        """λ of each layer; None where there is none."""
        return [None if layer.lam is None else float(layer.lam.detach().clamp(0, 1)) for layer in self._stack]

    def importance(self) -> list[dict[str, float]]:
        """How much each relation counts in each layer (Table 6): softmax over the relations of the means of their weights.

        With λ self has 1 - λ, and the others are multiplied by λ.
        """
        return [layer.importance() for layer in self._stack]

    def forward(
        self, graph: DocumentGraph | Sequence[DocumentGraph], tokens: Tensor, mask: Tensor, targets: Integers | None = None
    ) -> tuple[Tensor, Tensor]:
        """The matrices of the targets, (targets, tokens, dimension), zeros where there is no token; and their mask.

        `tokens` (nodes, tokens, dimension) and `mask` (nodes, tokens), true where there is a token, are those of the nodes of the graph, or
        of several, one after the other. Targets are nodes; without, they are all passages. In training give those that are asked for:
        no more is computed than they need.
        """
        graph = graph if isinstance(graph, DocumentGraph) else merge_graphs(graph)
        targets = graph.passage_node if targets is None else np.asarray(targets, np.int64)
        batch = self._batch(graph, tokens, mask)
        if targets.size and not 0 <= int(targets.min()) <= int(targets.max()) < graph.nodes:
            raise UsageError(f"targets must be nodes of the graph, 0 to {graph.nodes - 1}")
        neighbours = self._neighbourhoods(graph, batch)
        width = tokens.shape[1]
        found = tokens.new_zeros(targets.size * width, self.dimension)
        rows = [self._last_rows(batch, plan) for plan in self._plans(batch, neighbours, targets)]
        if rows:
            place = np.repeat(np.arange(targets.size) * width, batch.count[targets]) + batch.positions_of(targets)
            found = found.index_copy(0, batch.index(place), torch.cat(rows).to(found.dtype))
        return found.view(targets.size, width, self.dimension), mask[batch.index(targets)]

    def plan(self, graph: DocumentGraph, speaks: Mask, targets: Integers | None = None) -> GraphPlan:
        """What is computed for some targets; `speaks` says which nodes have tokens."""
        neighbours = Neighbourhoods(graph.edges, self.relations, speaks)
        chosen = graph.passage_node if targets is None else np.asarray(targets, np.int64)
        return make_plan(neighbours, chosen, len(self.layers), no_out=self.no_out, no_self=self.no_self)

    def contributions(self, graph: DocumentGraph, tokens: Tensor, mask: Tensor, target: int) -> list[Contribution]:
        """Who said what to a target in the last layer: its matrix is the sum of these (and of its state before, with `residual`).

        A dot product with the matrix is the sum of the dot products with these, so a score can be told apart by neighbours and relations.
        With `normalize_output` they are those of the vectors before their length is made 1.
        """
        batch = self._batch(graph, tokens, mask)
        neighbours = self._neighbourhoods(graph, batch)
        plan = make_plan(neighbours, np.array([target]), len(self.layers), no_out=self.no_out, no_self=self.no_self)
        rows, nodes = self._rows_before_last(batch, plan)
        last = self._stack[-1]
        names = [*self.relations, SELF]
        said = last.messages(rows, nodes, plan.layers[-1], batch)
        return [Contribution(names[number], int(nodes[key]), vectors) for number, key, vectors in said]

    def _batch(self, graph: DocumentGraph, tokens: Tensor, mask: Tensor) -> _Tokens:
        if tokens.shape[0] != graph.nodes or tokens.shape[:2] != mask.shape or tokens.shape[2] != self.dimension:
            shapes = f"{tuple(tokens.shape)} with a mask of {tuple(mask.shape)}"
            raise UsageError(f"token matrices of {graph.nodes} nodes in {self.dimension} dimensions are needed, not {shapes}")
        return _Tokens(tokens, mask.bool(), self.positions)

    def _neighbourhoods(self, graph: DocumentGraph, batch: _Tokens) -> Neighbourhoods:
        return Neighbourhoods(graph.edges, self.relations, batch.count > 0)

    def _plans(self, batch: _Tokens, neighbours: Neighbourhoods, targets: Integers) -> list[GraphPlan]:
        """One plan, or several of fewer targets each where it would take too much memory."""
        if not targets.size:
            return []
        plan = make_plan(neighbours, targets, len(self.layers), no_out=self.no_out, no_self=self.no_self)
        if targets.size > 1 and _most_message_rows(plan, batch.count) > _MESSAGE_ROWS:
            half = targets.size // 2
            return [*self._plans(batch, neighbours, targets[:half]), *self._plans(batch, neighbours, targets[half:])]
        return [plan]

    def _rows_before_last(self, batch: _Tokens, plan: GraphPlan) -> tuple[Tensor, Integers]:
        rows, nodes = batch.rows, np.arange(batch.count.size)
        for layer, layer_plan in zip(self._stack[:-1], plan.layers[:-1], strict=True):
            rows, nodes = layer(rows, nodes, layer_plan, batch), layer_plan.node_of_state
        return rows, nodes

    def _last_rows(self, batch: _Tokens, plan: GraphPlan) -> Tensor:
        """The rows of all targets, one after the other."""
        rows, nodes = self._rows_before_last(batch, plan)
        last = plan.layers[-1]
        rows = self._stack[-1](rows, nodes, last, batch)
        chosen = _taken(rows, batch.index(batch.rows_of(last.node_of_state, plan.state_of_target)))
        return functional.normalize(chosen, dim=-1) if self.normalize_output else chosen


class LateFusion(nn.Module):
    """`(1 - α) sim(E_q, E_p) + α sim(E_q, E_context-only)`, with a learned α in [0, 1] (equation 5)."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(()))

    def forward(self, content: Tensor, context: Tensor) -> Tensor:
        """The mixed similarities."""
        alpha = _share(self.alpha)
        return (1 - alpha) * content + alpha * context


def _share(parameter: Tensor) -> Tensor:
    """A learned number of 0 to 1. A step may have led outside: it is put back before it is used again, so that it can still learn."""
    # By its data, which does not count as a change: what is inside stays, and an earlier pass may still wait for its gradients.
    parameter.data.clamp_(0, 1)
    return parameter


class _Tokens:
    """The tokens of all nodes as rows of one matrix, and where those of states lie."""

    def __init__(self, tokens: Tensor, mask: Tensor, positions: int) -> None:
        on_host = mask.cpu().numpy()
        node, self.position = (found.astype(np.int64) for found in on_host.nonzero())
        if self.position.size and int(self.position.max()) >= positions:
            raise UsageError(f"passages may have {positions} tokens, not {int(self.position.max()) + 1}; cut them, or raise positions")
        self.count: Integers = np.bincount(node, minlength=on_host.shape[0]).astype(np.int64)
        self.first = offsets(self.count)
        self.device = tokens.device
        self.rows = tokens.flatten(0, 1).index_select(0, self.index(node * tokens.shape[1] + self.position))

    def index(self, rows: Integers) -> Tensor:
        """Numbers as a tensor to gather with."""
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)

    def rows_of(self, nodes: Integers, states: Integers) -> Integers:
        """The rows of states, one after the other, where the rows of all states (given by their nodes) lie one after the other."""
        first = offsets(self.count[nodes])
        return ranges(first[:-1][states], first[1:][states])

    def positions_of(self, nodes: Integers) -> Integers:
        """The position of each row of some nodes in its text."""
        found: Integers = self.position[ranges(self.first[:-1][nodes], self.first[1:][nodes])]
        return found


def _most_message_rows(plan: GraphPlan, tokens_of_node: Integers) -> int:
    nodes, most = np.arange(plan.nodes), 0
    for layer in plan.layers:
        most = max(most, int(tokens_of_node[nodes[layer.query_of_message]].sum()))
        nodes = layer.node_of_state
    return most


class _Layer(nn.Module):
    """One layer: an attention a relation, the weights of relations, and λ."""

    def __init__(
        self,
        relations: tuple[str, ...],
        dimension: int,
        heads: int,
        dropout: float,
        positions: int,
        *,
        lam: bool,
        has_self: bool,
        has_lambda: bool,
        residual: bool,
        target_is_weighed: bool,
    ) -> None:
        super().__init__()
        self.heads, self.dropout, self.residual, self.target_is_weighed = heads, dropout, residual, target_is_weighed
        self.names = [*relations, SELF]
        # The parameters of torch's own attention, with its own start; the attention itself is computed here, in batches over edges.
        self.attention = nn.ModuleDict({name: nn.MultiheadAttention(dimension, heads) for name in self.names if name != SELF or has_self})
        if residual:
            for name in self.attention:
                nn.init.zeros_(self._attention_of(name).out_proj.weight)
        # λ weighs self, where there is one.
        self.weight = nn.Parameter(torch.zeros(len(relations) + (not lam), positions))
        self.lam = nn.Parameter(torch.rand(())) if has_lambda else None
        self.is_split = lam

    def _attention_of(self, relation: str) -> nn.MultiheadAttention:
        return cast(nn.MultiheadAttention, self.attention[relation])

    def importance(self) -> dict[str, float]:
        """See `HGAT.importance`."""
        with torch.no_grad():
            shares = dict(zip(self.names, torch.softmax(self.weight.mean(1), 0).tolist(), strict=False))
            if self.lam is not None:
                lam = float(self.lam.detach().clamp(0, 1))
                shares = {name: lam * share for name, share in shares.items()} | {SELF: 1 - lam}
        return shares

    def forward(self, rows: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> Tensor:
        """The rows of the plan's states, from those of the states before, which are of these nodes."""
        heard = self._attend(rows, nodes, plan, batch)
        sums = self._add_up(heard, nodes, plan, batch)
        parts = self._project(sums, plan.node_of_aggregate, plan.relation_of_aggregate, plan.messages_of_aggregate, batch)
        of_state = batch.index(batch.rows_of(plan.node_of_state, plan.state_of_part))
        of_aggregate = batch.index(batch.rows_of(plan.node_of_aggregate, plan.aggregate_of_part))
        said = _taken(parts, of_aggregate)
        if self.is_split:
            role = np.repeat(plan.role_of_part, batch.count[plan.node_of_state[plan.state_of_part]])
            said = said * self._shares(rows.dtype).gather(0, batch.index(role))[:, None]
        if self.residual:
            begin = _taken(rows, batch.index(batch.rows_of(nodes, plan.before)))
        else:
            begin = rows.new_zeros(int(batch.count[plan.node_of_state].sum()), rows.shape[1])
        return begin.index_add(0, of_state, said.to(begin.dtype))

    def messages(self, rows: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> list[tuple[int, int, Tensor]]:
        """Relation, source and rows of each message in a plan of one target, as they count in its sum."""
        heard = self._attend(rows, nodes, plan, batch)
        count = np.ones(plan.relation_of_message.size, np.int64)
        said = self._project(heard, nodes[plan.query_of_message], plan.relation_of_message, count, batch)
        if self.is_split:
            role_of_aggregate = dict(zip(plan.aggregate_of_part.tolist(), plan.role_of_part.tolist(), strict=True))
            term_of_message = np.argsort(plan.message_of_term)
            role = [role_of_aggregate[aggregate] for aggregate in plan.aggregate_of_term[term_of_message].tolist()]
            repeated = np.repeat(np.array(role, np.int64), batch.count[nodes[plan.query_of_message]])
            said = said * self._shares(rows.dtype).gather(0, batch.index(repeated))[:, None]
        pieces = torch.split(said, batch.count[nodes[plan.query_of_message]].tolist())
        return list(zip(plan.relation_of_message.tolist(), plan.key_of_message.tolist(), pieces, strict=True))

    def _shares(self, dtype: torch.dtype) -> Tensor:
        """What a sum over one relation is multiplied with, by its role in the state."""
        one = self.weight.new_ones(())
        lam = one if self.lam is None else _share(self.lam)
        shares = {OF_SELF: 1 - lam, OF_CONTEXT: lam, OF_TARGET: lam if self.target_is_weighed else one}
        return torch.stack([shares[role] for role in sorted(shares)]).to(dtype)

    def _attend(self, rows: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> Tensor:
        """What the heads of every message bring, before the output projection; a row a token of who asks."""
        if not plan.relation_of_message.size:
            return rows[:0]
        query = _Projected(plan.relation_of_message, plan.query_of_message, nodes, batch)
        key = _Projected(plan.relation_of_message, plan.key_of_message, nodes, batch)
        dimension = rows.shape[1]
        queries = torch.cat([self._in(name, _taken(rows, which), 0, dimension) for name, which in query.gathered(self.names)])
        keys_and_values = torch.cat(
            [self._in(name, _taken(rows, which), dimension, 3 * dimension) for name, which in key.gathered(self.names)]
        )
        # Messages with the same keys come one after the other: their questions are one matrix.
        order = np.argsort(key.of_message, kind="stable")
        asked = batch.count[nodes[plan.query_of_message]]
        row_of_question = query.rows(order)
        answers = _attend_in_batches(
            queries,
            keys_and_values,
            row_of_question,
            np.bincount(key.of_message, asked, minlength=key.first.size - 1).astype(np.int64),
            key.first,
            self.heads,
            self.dropout if self.training else 0.0,
        )
        # Back to the order of messages.
        first = np.empty(order.size, np.int64)
        first[order] = offsets(asked[order])[:-1]
        return _taken(answers, batch.index(ranges(first, first + asked)))

    def _in(self, relation: str, rows: Tensor, first: int, end: int) -> Tensor:
        attention = self._attention_of(relation)
        return functional.linear(rows, attention.in_proj_weight[first:end], attention.in_proj_bias[first:end])

    def _add_up(self, heard: Tensor, nodes: Integers, plan: LayerPlan, batch: _Tokens) -> Tensor:
        """The sums over the messages of one relation."""
        asked = nodes[plan.query_of_message]
        sums = heard.new_zeros(int(batch.count[plan.node_of_aggregate].sum()), heard.shape[1])
        for sign in (1, -1):
            terms = np.flatnonzero(plan.sign_of_term == sign)
            if terms.size:
                into = batch.index(batch.rows_of(plan.node_of_aggregate, plan.aggregate_of_term[terms]))
                of = batch.index(batch.rows_of(asked, plan.message_of_term[terms]))
                sums = sums.index_add(0, into, _taken(heard, of), alpha=sign)
        begun = np.flatnonzero(plan.begun_from >= 0)
        if begun.size:
            into = batch.index(batch.rows_of(plan.node_of_aggregate, begun))
            of = batch.index(batch.rows_of(plan.node_of_aggregate, plan.begun_from[begun]))
            sums = sums.index_add(0, into, _taken(sums, of))
        return sums

    def _project(self, sums: Tensor, nodes: Integers, relations: Integers, messages: Integers, batch: _Tokens) -> Tensor:
        """Output projections of sums that come by relation, weighed by relation and position."""
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
        if self.is_split:
            weight = torch.cat([weight, torch.ones_like(weight[:1])])
        said = torch.cat(projected)
        # Gathered: many rows have the same weight, and the backward pass of indexing adds these up one after the other on a GPU.
        place = np.repeat(relations * weight.shape[1], tokens) + batch.positions_of(nodes)
        return said * weight.flatten().gather(0, batch.index(place))[:, None].to(said.dtype)


class _Projected:
    """The different (relation, state) of messages' queries or keys, by relation, and the rows of each when projected."""

    def __init__(self, relation: Integers, state: Integers, nodes: Integers, batch: _Tokens) -> None:
        codes, self.of_message = np.unique(relation * nodes.size + state, return_inverse=True)
        self._relation, self._state = codes // nodes.size, codes % nodes.size
        self._nodes, self._batch = nodes, batch
        self.first = offsets(batch.count[nodes[self._state]])

    def gathered(self, names: Sequence[str]) -> list[tuple[str, Tensor]]:
        """By relation: the rows of the states that take part in it."""
        cut = np.searchsorted(self._relation, np.arange(len(names) + 1))
        found = [(name, self._state[cut[i] : cut[i + 1]]) for i, name in enumerate(names)]
        return [(name, self._batch.index(self._batch.rows_of(self._nodes, states))) for name, states in found if states.size]

    def rows(self, messages: Integers) -> Integers:
        """The projected rows of some messages, one after the other."""
        chosen = self.of_message[messages]
        return ranges(self.first[:-1][chosen], self.first[1:][chosen])


def _attend_in_batches(
    queries: Tensor,
    keys_and_values: Tensor,
    row_of_question: Integers,
    asked_of_key: Integers,
    first_row_of_key: Integers,
    heads: int,
    dropout: float,
) -> Tensor:
    """Attention of rows of queries to the keys of one matrix each: the first `asked_of_key[0]` to the first matrix, and so on."""
    device, dimension = queries.device, queries.shape[1]
    # Pieces of bounded size, sorted by size, so that a batch is padded little.
    pieces = -(-asked_of_key // _QUERY_ROWS)
    key_of_piece = np.repeat(np.arange(asked_of_key.size), pieces)
    inside = (np.arange(key_of_piece.size) - np.repeat(offsets(pieces)[:-1], pieces)) * _QUERY_ROWS
    first_question = offsets(asked_of_key)[:-1][key_of_piece] + inside
    questions = np.minimum(asked_of_key[key_of_piece] - inside, _QUERY_ROWS)
    keys = np.diff(first_row_of_key)[key_of_piece]
    on_gpu = device.type != "cpu"
    found, places = [], []
    for batch in _batches(questions, keys, _SIZES_ON_GPU if on_gpu else _SIZES, _PAIRS_ON_GPU if on_gpu else _PAIRS):
        asked, asked_there = _padded(first_question[batch], questions[batch])
        heard, heard_there = _padded(first_row_of_key[key_of_piece[batch]], keys[batch])
        query = _by_heads(_taken(queries, torch.from_numpy(row_of_question[asked]).to(device)), heads)
        both = _taken(keys_and_values, torch.from_numpy(heard).to(device))
        key, value = (_by_heads(half, heads) for half in torch.split(both, dimension, dim=-1))
        allowed = None if heard_there.all() else torch.from_numpy(heard_there).to(device)[:, None, None, :]
        answer = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)
        answer = answer.transpose(1, 2).flatten(2)
        found.append(answer.flatten(0, 1) if asked_there.all() else answer[torch.from_numpy(asked_there).to(device)])
        places.append(asked[asked_there])
    if not found:
        return queries[:0]
    back = np.empty(row_of_question.size, np.int64)
    back[np.concatenate(places)] = np.arange(row_of_question.size)
    return _taken(torch.cat(found), torch.from_numpy(back).to(device))


def _taken(rows: Tensor, which: Tensor) -> Tensor:
    """Rows by their numbers. As an embedding: its backward pass adds rows up several times faster than that of indexing on a GPU."""
    return functional.embedding(which, rows)


def _by_heads(rows: Tensor, heads: int) -> Tensor:
    return rows.reshape(*rows.shape[:2], heads, -1).transpose(1, 2)


def _rounded(sizes: Integers, steps: Integers) -> Integers:
    """The next of some sizes: what is padded to the same is computed together."""
    found: Integers = steps[np.minimum(np.searchsorted(steps, sizes), steps.size - 1)]
    return np.maximum(found, sizes)


def _batches(questions: Integers, keys: Integers, sizes: Integers, pairs: int) -> list[Integers]:
    """Pieces of one size together, and not more of them than have so many pairs."""
    wide, deep = _rounded(questions, sizes), _rounded(keys, sizes)
    order = np.lexsort((questions, wide, deep))
    changes = np.flatnonzero((np.diff(wide[order]) != 0) | (np.diff(deep[order]) != 0)) + 1
    found = []
    for batch in np.split(order, changes) if order.size else []:
        most = max(1, pairs // (int(questions[batch].max()) * int(keys[batch].max())))
        found += [batch[first : first + most] for first in range(0, batch.size, most)]
    return found


def _padded(first: Integers, count: Integers) -> tuple[Integers, Mask]:
    """Numbers from `first` on, as rows of one length; behind the last the first again, and false."""
    steps = np.arange(int(count.max()))
    there = steps < count[:, None]
    return first[:, None] + np.where(there, steps, 0), there
