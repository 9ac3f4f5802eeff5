"""The eight variants of graph attention, compared with the equations for one target, node and edge at a time."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from perikope.core.errors import UsageError  # noqa: E402
from perikope.neural.graph import RELATIONS, SELF, DocumentGraph, merge_graphs, with_inverses  # noqa: E402
from perikope.neural.hgat import HGAT, VARIANTS, LateFusion  # noqa: E402

DIMENSION, HEADS, POSITIONS = 16, 4, 8


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """One thread: with matrices this small, several threads only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_graph(rng: np.random.Generator, passages: int = 7, sections: int = 3, references: int = 4) -> DocumentGraph:
    """A graph of passages in random sections of a random tree, with references and cited documents."""
    nodes = sections + passages
    parent = np.array([-1, *(rng.integers(0, i) for i in range(1, sections)), *rng.integers(0, sections, passages)])
    is_passage = np.arange(nodes + 2) >= sections
    is_passage[nodes:] = False
    below = np.arange(1, nodes)
    edges = {
        "order": np.stack([np.arange(sections, nodes - 1), np.arange(sections + 1, nodes)]),
        "structural": np.stack([parent[1:], below]),
        "internal": rng.integers(0, nodes, (2, references)),
        "external": np.array([[0, 0], [nodes, nodes + 1]]),
    }
    names = tuple(map(str, range(nodes + 2)))
    return DocumentGraph(("d",), names, names, is_passage, np.array([*parent, -1, -1]), with_inverses(edges))


def random_tokens(rng: np.random.Generator, nodes: int):
    """Random tokens (nodes, POSITIONS, DIMENSION) and mask (nodes, POSITIONS), with 1 to POSITIONS tokens per node."""
    mask = torch.from_numpy(rng.random((nodes, POSITIONS)) < rng.uniform(0.1, 1, (nodes, 1)))
    mask[torch.arange(nodes), torch.from_numpy(rng.integers(0, POSITIONS, nodes))] = True
    tokens = torch.from_numpy(rng.normal(size=(nodes, POSITIONS, DIMENSION)).astype(np.float32))
    return tokens, mask


def shaken(model: HGAT) -> HGAT:
    """The model with random values added to all parameters but λ."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("lam"):
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def naive(model: HGAT, graph: DocumentGraph, tokens, mask, target: int):
    """The matrix (POSITIONS, DIMENSION) of one target by equations (1), (2), (3), (7) and (8)."""
    edges = [(name, int(j), int(i)) for name in model.relations for j, i in graph.edges[name].T]
    nodes = [i for i in range(graph.nodes) if mask[i].any()]
    settings = model.settings
    h = {i: tokens[i][mask[i]] for i in nodes}
    position = {i: mask[i].nonzero()[:, 0] for i in nodes}
    for number, layer in enumerate(model.layers):
        last = number == len(model.layers) - 1
        new = {}
        for i in nodes if not last else [target]:
            shares = torch.softmax(layer.weight, dim=0)  # over all relations, self included unless λ weights it

            def message(name, i, j, layer=layer, h=h):
                query, key = h[i][None], h[j][None]
                return layer.attention[name].train(False)(query.transpose(0, 1), key.transpose(0, 1), key.transpose(0, 1))[0][:, 0]

            context = torch.zeros_like(h[i])
            for name, j, receiver in edges:
                if receiver != i or j not in h or j == i:
                    continue
                if settings["no_out"] and i != target and j == target:
                    continue
                context = context + shares[RELATIONS.index(name)][position[i]][:, None] * message(name, i, j)
            leaves_out_itself = settings["no_self"] and i == target
            if settings["lam"] and leaves_out_itself:
                sum_ = layer.lam * context if settings["ns_lambda"] else context
            elif settings["lam"]:
                sum_ = (1 - layer.lam) * message(SELF, i, i) + layer.lam * context
            elif leaves_out_itself:
                sum_ = context
            else:
                sum_ = context + shares[len(RELATIONS)][position[i]][:, None] * message(SELF, i, i)
            new[i] = h[i] + sum_ if settings["residual"] else sum_
        h = new
    out = torch.zeros_like(tokens[target])
    out[mask[target]] = h[target]
    return out


def make(variant: str, **options) -> HGAT:
    return shaken(HGAT.variant(variant, dimension=DIMENSION, heads=HEADS, positions=POSITIONS, **options))


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_is_its_equations(variant, layers, residual):
    for seed in range(2 if layers == 3 else 1):
        torch.manual_seed(seed)
        rng = np.random.default_rng([seed, layers])
        graph = random_graph(rng, passages=int(rng.integers(2, 7)), sections=int(rng.integers(1, 4)))
        tokens, mask = random_tokens(rng, graph.nodes)
        model = make(variant, layers=layers, residual=residual, ns_lambda=bool(seed % 2))
        with torch.no_grad():
            output, output_mask = model(graph, tokens, mask)
            expected = torch.stack([naive(model, graph, tokens, mask, int(target)) for target in graph.passage_node])
        assert torch.equal(output_mask, mask[graph.passage_node])
        torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_are_those_of_the_equations(variant):
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    graph = random_graph(rng, passages=3, sections=2)
    tokens, mask = random_tokens(rng, graph.nodes)
    model = make(variant).double()
    tokens = tokens.double()
    # Sections are targets too: in the last layer, only they receive messages along structural_i and external.
    targets = np.arange(graph.nodes)
    probe = torch.randn(graph.nodes, POSITIONS, DIMENSION, dtype=torch.float64)
    (model(graph, tokens, mask, targets)[0] * probe).sum().backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    expected = torch.stack([naive(model, graph, tokens, mask, int(target)) for target in targets])
    (expected * probe).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-7, atol=1e-7, msg=name)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_parameter_learns(variant, residual):
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    model = HGAT.variant(variant, dimension=DIMENSION, heads=HEADS, positions=POSITIONS, residual=residual)
    fusion = LateFusion()
    start = {name: parameter.detach().clone() for name, parameter in [*model.named_parameters(), *fusion.named_parameters()]}
    optimizer = torch.optim.Adam([*model.parameters(), *fusion.parameters()], lr=1e-3)
    wanted = torch.randn(graph.nodes, POSITIONS, DIMENSION)
    for _ in range(4):
        optimizer.zero_grad()
        output = model(graph, tokens, mask, np.arange(graph.nodes))[0]
        content, context = (tokens * wanted).sum((1, 2)), (output * wanted).sum((1, 2))
        fusion(content, context).pow(2).mean().backward()
        optimizer.step()
    for name, parameter in [*model.named_parameters(), *fusion.named_parameters()]:
        assert parameter.grad is not None, name
        # Some values may stay: a bias of keys has no effect, because it adds the same to all arguments of a softmax.
        assert torch.any(parameter != start[name]), name
    for lam in filter(None, model.lambdas):
        assert 0 <= lam <= 1


def test_lambda_and_alpha_stay_between_0_and_1_and_come_back():
    model, fusion = make("LB", layers=1), LateFusion()
    rng = np.random.default_rng(0)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    with torch.no_grad():
        model.layers[0].lam.fill_(1.5)
        fusion.alpha.fill_(-0.5)
    assert model.lambdas == [1.0]
    output = model(graph, tokens, mask)[0]
    model.layers[0].attention[SELF].out_proj.weight.data.zero_()
    model.layers[0].attention[SELF].out_proj.bias.data.zero_()
    torch.testing.assert_close(model(graph, tokens, mask)[0], output)  # λ = 1: self has no weight
    two = fusion(torch.ones(2), torch.zeros(2)), fusion(torch.ones(2), torch.zeros(2))
    assert two[0].tolist() == [1, 1]
    (two[0] + two[1]).sum().backward()  # gradients of two passes at once
    assert fusion.alpha.grad != 0


def test_a_residual_model_begins_with_the_encoders_vectors():
    rng = np.random.default_rng(0)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    for variant in VARIANTS:
        model = HGAT.variant(variant, dimension=DIMENSION, heads=HEADS, positions=POSITIONS, residual=True).eval()
        output, chosen = model(graph, tokens, mask)
        assert torch.equal(output[chosen], tokens[graph.passage_node][chosen])


def test_targets_and_batches_change_nothing():
    rng = np.random.default_rng(3)
    graphs = [random_graph(rng), random_graph(rng, passages=1, sections=1), random_graph(rng)]
    inputs = [random_tokens(rng, graph.nodes) for graph in graphs]
    tokens, mask = (torch.cat(pieces) for pieces in zip(*inputs, strict=True))
    merged = merge_graphs(graphs)
    for variant in VARIANTS:
        model = make(variant)
        with torch.no_grad():
            alone = torch.cat([model(graph, *tokens_and_mask)[0] for graph, tokens_and_mask in zip(graphs, inputs, strict=True)])
            together = model(graphs, tokens, mask)[0]
            torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)
            some = [5, 0, 5]
            chosen = model(merged, tokens, mask, merged.passage_node[some])[0]
            torch.testing.assert_close(chosen, alone[some], rtol=1e-5, atol=1e-5)


def test_targets_are_computed_some_after_the_others_where_memory_is_short(monkeypatch):
    rng = np.random.default_rng(4)
    graph = random_graph(rng, passages=12)
    tokens, mask = random_tokens(rng, graph.nodes)
    model = make("NO")
    with torch.no_grad():
        at_once = model(graph, tokens, mask)[0]
        monkeypatch.setattr("perikope.neural.hgat._MESSAGE_ROWS", 500)
        monkeypatch.setattr("perikope.neural.hgat._PAIRS", 200)
        monkeypatch.setattr("perikope.neural.hgat._QUERY_ROWS", 7)
        torch.testing.assert_close(model(graph, tokens, mask)[0], at_once, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_node_without_tokens_says_nothing(variant):
    rng = np.random.default_rng(6)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    mask[1] = False
    mask[graph.passage_node[2]] = False
    model = make(variant)
    with torch.no_grad():
        output, chosen = model(graph, tokens, mask)
        speaking = [i for i, node in enumerate(graph.passage_node) if mask[node].any()]
        expected = torch.stack([naive(model, graph, tokens, mask, int(graph.passage_node[i])) for i in speaking])
    torch.testing.assert_close(output[speaking], expected, rtol=1e-5, atol=1e-5)
    assert not output[2].any()
    assert not chosen[2].any()


def test_a_passage_alone():
    graph = DocumentGraph(("d",), ("@1",), ("text",), np.array([True]), np.array([-1]), with_inverses({}))
    tokens, mask = random_tokens(np.random.default_rng(0), 1)
    for variant in VARIANTS:
        output = make(variant)(graph, tokens, mask)[0]
        assert bool(output.any()) == ("NS" not in variant)  # without self, it receives no message


@pytest.mark.parametrize("variant", VARIANTS)
def test_contributions_add_up(variant):
    rng = np.random.default_rng(7)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    model = make(variant)
    target = int(graph.passage_node[3])
    with torch.no_grad():
        contributions = model.contributions(graph, tokens, mask, target)
        output = model(graph, tokens, mask, np.array([target]))[0][0]
    torch.testing.assert_close(sum(message.vectors for message in contributions), output[mask[target]], rtol=1e-5, atol=1e-5)
    heard = {(name, source) for name, source, receiver in graph.list_edges() if receiver == target}
    assert {(message.relation, message.source) for message in contributions} == heard | ({(SELF, target)} if "NS" not in variant else set())


def test_dropout_is_drawn_anew_and_only_in_training():
    rng = np.random.default_rng(8)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    model = make("NO_LB")
    assert torch.equal(model(graph, tokens, mask)[0], model(graph, tokens, mask)[0])
    model.train()
    assert not torch.equal(model(graph, tokens, mask)[0], model(graph, tokens, mask)[0])


def test_importance_of_relations():
    model = make("BASE")
    for layer, shares in zip(model.layers, model.importance(), strict=True):
        expected = torch.softmax(layer.weight.mean(1), 0)
        np.testing.assert_allclose([shares[name] for name in (*RELATIONS, SELF)], expected.detach().numpy(), rtol=1e-6)
    split = make("NO_LB")
    for lam, shares in zip(split.lambdas, split.importance(), strict=True):
        assert shares[SELF] == pytest.approx(1 - lam)
        assert sum(shares.values()) == pytest.approx(1)


def test_a_last_layer_without_self_has_neither_self_attention_nor_lambda():
    model = make("NO_LB_NS")
    assert [SELF in layer.attention for layer in model.layers] == [True, True, False]
    assert [lam is None for lam in model.lambdas] == [False, False, True]
    assert None not in make("NO_LB_NS", ns_lambda=True).lambdas


def test_output_can_be_normalised():
    rng = np.random.default_rng(9)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    plain, chosen = make("BASE")(graph, tokens, mask)
    model = make("BASE", normalize_output=True)
    output = model(graph, tokens, mask)[0]
    torch.testing.assert_close(output[chosen].norm(dim=-1), torch.ones(int(chosen.sum())))
    assert not torch.allclose(plain[chosen].norm(dim=-1), torch.ones(int(chosen.sum())))


def test_mistakes_are_explained():
    rng = np.random.default_rng(10)
    graph = random_graph(rng)
    tokens, mask = random_tokens(rng, graph.nodes)
    with pytest.raises(UsageError, match="did you mean 'NO_LB'"):
        HGAT.variant("NO_LBB")
    with pytest.raises(UsageError, match="relation 'ordr'"):
        HGAT(relations=("ordr",))
    with pytest.raises(UsageError, match="heads must divide"):
        HGAT(dimension=10, heads=3)
    with pytest.raises(UsageError, match="shapes of tokens and mask"):
        make("BASE")(graph, tokens[:-1], mask[:-1])
    with pytest.raises(UsageError, match="at most 4 tokens"):
        HGAT(DIMENSION, HEADS, positions=4)(graph, tokens, torch.ones_like(mask))
    with pytest.raises(UsageError, match="nodes of the graph"):
        make("BASE")(graph, tokens, mask, np.array([99]))
