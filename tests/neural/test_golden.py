"""Worked examples of neural formulas: importance of relations (Albarede et al. 2023, Table 6), MaxSim (equation 6)."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.neural.hgat import HGAT  # noqa: E402
from perikope.neural.similarity import similarity  # noqa: E402

WEIGHTS = {"order": [2.0, -1.0, 0.5], "structural": [0.0, 0.0, 0.0], "self": [1.0, 1.0, -2.0]}


def layer_importance(**options):
    model = HGAT(dimension=8, heads=2, layers=1, positions=3, relations=["order", "structural"], **options)
    with torch.no_grad():
        names = ["order", "structural"] if options.get("lam") else ["order", "structural", "self"]
        model.layers[0].weight.copy_(torch.tensor([WEIGHTS[name] for name in names]))
        if options.get("lam"):
            model.layers[0].lam.fill_(0.38)
    return model.importance()[0]


def test_importance_is_the_softmax_of_means():
    shares = layer_importance()
    assert [shares[name] for name in ("order", "structural", "self")] == pytest.approx([0.451863, 0.274069, 0.274069], abs=1e-6)


def test_with_lambda_self_has_what_it_leaves():
    shares = layer_importance(lam=True)
    assert [shares[name] for name in ("order", "structural", "self")] == pytest.approx([0.236535, 0.143465, 0.62], abs=1e-6)


def test_maxsim():
    query = torch.tensor([[[1.0, 0.0], [0.6, 0.8]]])
    passage = torch.tensor([[[0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]]])
    score = similarity(query, torch.ones(1, 2, dtype=torch.bool), passage, torch.ones(1, 3, dtype=torch.bool))
    assert float(score) == pytest.approx(1.76, abs=1e-6)
