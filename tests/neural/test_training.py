"""Training: drawing triples, learning from them, and repeating or resuming a run."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from click.testing import CliRunner  # noqa: E402

from perikope.cli import encode_command, train_command  # noqa: E402
from perikope.core.errors import PerikopeError, UsageError  # noqa: E402
from perikope.neural.graph import read_graph  # noqa: E402
from perikope.neural.hgat import HGAT, LateFusion  # noqa: E402
from perikope.neural.stores.store import VectorStore  # noqa: E402
from perikope.neural.training import (  # noqa: E402
    ContextRanker,
    TrainableRanker,
    Trainer,
    TrainingSettings,
    Validation,
    batch_of,
    interpolate,
    reached,
    settings_from,
    triple_loss,
)
from perikope.neural.triples import (  # noqa: E402
    SOURCES,
    Texts,
    draw_negatives,
    draw_triples,
    hold_out,
    join_texts,
    join_topics,
    read_texts,
    topics_of,
    with_path,
)
from tests.neural.support import tiny_encoder  # noqa: E402
from tests.support.collections import index_of, plain_document  # noqa: E402

SUBJECTS = ["pump", "rotor", "magnet", "seal", "valve", "water"]


def collection():
    """One document per subject, and queries for a subject and an event that have one relevant passage each."""
    documents, queries, judgements = [], {}, {}
    for subject in SUBJECTS:
        texts = [f"the {subject} {what}" for what in ("opens", "closes", "stops", "keeps warm")]
        documents.append(plain_document(subject, subject, *texts))
        for number, what in enumerate(("opens", "closes", "stops")):
            queries[f"{subject}-{what}"] = f"when {subject} {what}"
            judgements[f"{subject}-{what}"] = {f"{subject}#@{number + 1}": 1, f"{subject}#@4": 0}
    return documents, queries, judgements


@pytest.fixture(scope="module")
def index():
    return index_of(collection()[0], [2])


@pytest.fixture(scope="module")
def texts(index):
    return read_texts(index._snapshot)


@pytest.fixture(scope="module")
def topics(texts):
    _, queries, judgements = collection()
    return topics_of(texts, queries, judgements)


def settings(**options):
    return TrainingSettings(**{"epochs": 2, "batch": 6, "encoder_rate": 1e-3, "patience": 5, **options})


def trainer(texts, topics, chosen=None, folder=None, **options):
    chosen = chosen or settings(**options)
    encoder = tiny_encoder(passage_tokens=24, query_tokens=12)
    ranker = TrainableRanker(encoder, texts.written(heading_path=chosen.heading_path))
    return Trainer(ranker, texts, topics, Validation.of(texts, topics, chosen), chosen, folder)


def test_texts_are_read_with_their_paths(texts):
    assert texts.documents == tuple(sorted(SUBJECTS))
    first = int(texts.first_passage[texts.documents.index("seal")])
    assert texts.names[first] == "seal#@1"
    assert texts.written(heading_path=True)[first] == "seal. the seal opens"
    assert texts.written(heading_path=False)[first] == "the seal opens"
    assert with_path([], "alone") == "alone"


def some_texts():
    """Documents a, b and c with three passages each; a and b share a code."""
    names = tuple(f"{document}#@{i}" for document in "abc" for i in (1, 2, 3))
    shared = (frozenset("X"), frozenset("XY"), frozenset("Z"))
    return Texts(("a", "b", "c"), np.array([0, 3, 6, 9]), names, names, ((),) * 9, shared)


def test_negatives_come_from_where_their_strategy_says():
    texts = some_texts()
    topics = topics_of(texts, {"q": "text"}, {"q": {"a#@1": 1, "c#@1": 2, "a#@2": 0}})
    pools = {
        "random": {1, 2, 3, 4, 5, 7, 8},
        "same_doc": {1, 2},
        "relevant_docs": {1, 2, 7, 8},
        "shared_codes": {1, 2, 3, 4, 5, 7, 8},
        "mixed": {1, 2, 3, 4, 5, 7, 8},
    }
    assert set(pools) == set(SOURCES) - {"ranked"}
    for strategy, pool in pools.items():
        assert set(draw_negatives(texts, topics, 0, 0, strategy, 300, [1]).tolist()) == pool, strategy
    only_a = topics_of(texts, {"q": "text"}, {"q": {"a#@1": 1}})
    assert set(draw_negatives(texts, only_a, 0, 0, "shared_codes", 300, [1]).tolist()) == {1, 2, 3, 4, 5}
    mixed = draw_negatives(texts, only_a, 0, 0, "mixed", 4000, [1])
    # With probability 0.4 from two passages of a, else from five passages of a and b.
    assert np.isin(mixed, [1, 2]).mean() == pytest.approx(0.4 + 0.6 * 2 / 5, abs=0.03)


def test_negatives_from_a_ranking_and_in_turn():
    texts = some_texts()
    topics = replace(topics_of(texts, {"q": "text"}, {"q": {"a#@1": 1}}), ranked=(np.array([0, 4, 8]),))
    assert set(draw_negatives(texts, topics, 0, 0, "ranked", 100, [1]).tolist()) == {4, 8}
    in_turn = draw_negatives(texts, topics, 0, 0, "same_doc+ranked", 100, [1])
    assert set(in_turn[::2].tolist()) == {1, 2}
    assert set(in_turn[1::2].tolist()) == {4, 8}
    with pytest.raises(UsageError, match="needs a ranking"):
        draw_negatives(texts, replace(topics, ranked=()), 0, 0, "ranked", 1, [1])
    with pytest.raises(UsageError, match="nowhere"):
        draw_negatives(texts, topics, 0, 0, "same_doc+nowhere", 1, [1])


def test_collections_are_joined():
    first, other = some_texts(), some_texts()
    joined = join_texts([first, other])
    assert joined.first_passage.tolist() == [0, 3, 6, 9, 12, 15, 18]
    topics = topics_of(other, {"q": "text"}, {"q": {"b#@2": 1}})
    both = join_topics([first, other], [topics, topics])
    assert [relevant.tolist() for relevant in both.relevant] == [[4], [13]]
    assert [joined.names[relevant[0]] for relevant in both.relevant] == ["b#@2", "b#@2"]


def test_a_document_without_anything_else_gets_negatives_from_elsewhere():
    texts = some_texts()
    topics = topics_of(texts, {"q": "text"}, {"q": {f"a#@{i}": 1 for i in (1, 2, 3)}})
    assert set(draw_negatives(texts, topics, 0, 0, "same_doc", 200, [1]).tolist()) == {3, 4, 5, 6, 7, 8}


def test_triples_depend_on_seed_and_epoch_alone(texts, topics):
    first = draw_triples(texts, topics, "same_doc", seed=3, epoch=1, negatives=2)
    assert first.shape == (18, 4)
    assert (first == draw_triples(texts, topics, "same_doc", seed=3, epoch=1, negatives=2)).all()
    assert (first != draw_triples(texts, topics, "same_doc", seed=3, epoch=2, negatives=2)).any()
    assert sorted(map(tuple, first[:, :2].tolist())) == sorted(
        (t, p) for t, relevant in enumerate(topics.relevant) for p in relevant.tolist()
    )
    with pytest.raises(UsageError, match="mixed"):
        draw_triples(texts, topics, "nearest")


def test_several_draws_per_relevant_passage_are_those_of_several_epochs(texts, topics):
    at_once = draw_triples(texts, topics, "random", seed=3, epoch=1, draws=3)
    one_by_one = [draw_triples(texts, topics, "random", seed=3, epoch=epoch) for epoch in (3, 4, 5)]
    assert sorted(map(tuple, at_once.tolist())) == sorted(map(tuple, np.concatenate(one_by_one).tolist()))
    assert at_once.shape == (54, 3)


def test_topics_that_share_documents_are_held_out_together(texts, topics):
    learned, held_out = hold_out(topics, 0.2, 1)
    assert len(learned) + len(held_out) == len(topics)
    assert {qid.split("-")[0] for qid in learned.qids}.isdisjoint(qid.split("-")[0] for qid in held_out.qids)
    assert 0 < len(held_out) <= 6


def test_the_loss_is_softmax_cross_entropy():
    scores = torch.tensor([[1.0, 3.0, 2.0], [0.5, 0.0, 9.0]])
    allowed = torch.tensor([[True, True, True], [True, True, False]])
    loss = triple_loss(scores, torch.tensor([1, 0]), allowed)
    wanted = [-np.log(np.exp(3) / np.exp([1, 3, 2]).sum()), -np.log(np.exp(0.5) / np.exp([0.5, 0]).sum())]
    assert float(loss) == pytest.approx(np.mean(wanted), abs=1e-6)


def test_a_batch_compares_with_everything_that_is_not_relevant():
    texts = some_texts()
    topics = topics_of(texts, {"q": "text", "r": "text"}, {"q": {"a#@1": 1, "b#@1": 1}, "r": {"b#@1": 1}})
    triples = np.array([[0, 0, 1], [1, 3, 4]])
    passages, positive, allowed = batch_of(topics, triples, True)
    assert passages.tolist() == [0, 1, 3, 4]
    assert positive.tolist() == [0, 2]
    # b#@1 is relevant for the first topic too, so it is not one of its negatives.
    assert allowed.tolist() == [[True, True, False, True], [True, True, True, True]]
    assert batch_of(topics, triples, False)[2].tolist() == [[True, True, False, False], [False, False, True, True]]


def test_training_learns(texts, topics):
    run = trainer(texts, topics, epochs=6, encoder_rate=5e-3, frozen_layers=0)
    progress = run.run()
    assert progress.epochs[-1].loss < progress.epochs[0].loss
    assert progress.best_measure > progress.untrained + 0.1
    assert run.validation.measure(run.ranker) == pytest.approx(progress.best_measure)


def test_what_is_frozen_stays(texts, topics):
    run = trainer(texts, topics, epochs=1)
    before = {name: value.clone() for name, value in run.ranker.state_dict().items()}
    run._epoch(0)
    moved = {name for name, value in run.ranker.state_dict().items() if not torch.equal(value, before[name])}
    assert not any("embeddings" in name or "layer.0." in name or "layer.1." in name for name in moved)
    assert any("layer.3." in name for name in moved)
    assert "encoder.projection.weight" in moved


def test_seeds_repeat_and_differ(texts, topics):
    runs = [trainer(texts, topics, seed=seed) for seed in (1, 1, 2)]
    losses = [[epoch.loss for epoch in run.run().epochs] for run in runs]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_a_run_that_stopped_goes_on_as_if_it_had_not(texts, topics, tmp_path):
    whole = trainer(texts, topics, folder=tmp_path / "whole")
    whole_progress = whole.run()
    broken = trainer(texts, topics, folder=tmp_path / "broken")

    class Stop(Exception):
        pass

    def stop(epoch, step, loss):
        if epoch == 1:
            raise Stop

    broken._on_progress = stop
    with pytest.raises(Stop):
        broken.run()
    resumed = trainer(texts, topics, folder=tmp_path / "broken")
    assert len(resumed.progress.epochs) == 1
    progress = resumed.run()
    assert [epoch.loss for epoch in progress.epochs] == [epoch.loss for epoch in whole_progress.epochs]
    for name, value in whole.ranker.state_dict().items():
        assert torch.equal(value, resumed.ranker.state_dict()[name]), name
    assert {path.suffix for path in (tmp_path / "broken").iterdir()} == {".json", ".safetensors"}


def test_other_settings_do_not_resume(texts, topics, tmp_path):
    trainer(texts, topics, epochs=1, folder=tmp_path).run()
    with pytest.raises(UsageError, match="batch 6"):
        trainer(texts, topics, epochs=1, batch=5, folder=tmp_path)
    (tmp_path / "latest.safetensors").write_bytes(b"")
    with pytest.raises(PerikopeError, match="resumed"):
        trainer(texts, topics, epochs=1, folder=tmp_path)


def test_training_stops_when_nothing_becomes_better(texts, topics):
    run = trainer(texts, topics, epochs=9, encoder_rate=0.0, patience=2)
    progress = run.run()
    assert progress.best == -1
    assert len(progress.epochs) == 2


def test_validation_ranks_documents_with_anything_relevant_first(texts, topics):
    few = topics.some([0])
    chosen = Validation.of(texts, few, settings(validation_passages=9))
    documents = {texts.documents[d] for d in np.unique(texts.document_of_passage[chosen.passages])}
    assert few.qids[0].split("-")[0] in documents
    assert chosen.passages.size == 8


def test_weights_in_between():
    mixed = interpolate({"a": torch.zeros(2), "n": torch.tensor(1)}, {"a": torch.ones(2), "n": torch.tensor(3)}, 0.25)
    assert mixed["a"].tolist() == [0.25, 0.25]
    assert int(mixed["n"]) == 3


def test_settings_are_checked():
    assert settings_from({"epochs": 3, "frozen_layers": None, "other": 1}).epochs == 3
    for wrong in ({"epochs": 0}, {"encoder_rate": 2.0}, {"batch": 0}):
        with pytest.raises(UsageError):
            settings_from(wrong)


def test_what_messages_can_reach():
    edges = {"order": np.array([[0, 1, 2], [1, 2, 3]]), "order_i": np.array([[1, 2, 3], [0, 1, 2]])}
    assert reached(edges, np.array([0]), 5, 2).tolist() == [True, True, True, False, False]


@pytest.fixture(scope="module")
def graphs(index, texts):
    snapshot = index._snapshot
    return [read_graph(snapshot, snapshot.find_document(document)) for document in texts.documents]


@pytest.mark.parametrize("variant", ["BASE", "NO_LB", "NO_LB_NS"])
def test_the_neighbourhood_of_a_passage_is_all_that_it_depends_on(texts, graphs, variant):
    torch.manual_seed(3)
    encoder = tiny_encoder(passage_tokens=24)
    context = HGAT.variant(variant, dimension=8, heads=2, layers=2).eval()
    ranker = ContextRanker(encoder, texts.written(heading_path=True), texts, graphs, context).eval()
    passages = np.array([1, 6, 7])
    with torch.inference_mode():
        some, mask = ranker.represent(passages)
        for row, passage in enumerate(passages.tolist()):
            document = int(texts.document_of_passage[passage])
            graph = graphs[document]
            written = list(graph.texts)
            for number, node in enumerate(graph.passage_node.tolist()):
                written[node] = texts.written(heading_path=True)[int(texts.first_passage[document]) + number]
            whole, whole_mask = context(graph, *ranker._encode(written, graph.passage_node))
            number = passage - int(texts.first_passage[document])
            torch.testing.assert_close(some[row][mask[row]], whole[number][whole_mask[number]], atol=1e-5, rtol=0)


def test_neighbours_that_do_not_learn_change_no_score_but_gradients(texts, graphs):
    torch.manual_seed(3)
    encoder = tiny_encoder(passage_tokens=24)
    context = HGAT.variant("BASE", dimension=8, heads=2, layers=2).eval()
    written = texts.written(heading_path=True)
    gradients = []
    for learns in (True, False):
        ranker = ContextRanker(encoder, written, texts, graphs, context, neighbours_learn=learns).eval()
        encoder.zero_grad()
        scores = ranker(["when pump opens"], np.array([1, 6]))
        scores.sum().backward()
        gradients.append((scores.detach(), encoder.projection.weight.grad.clone()))
    torch.testing.assert_close(gradients[0][0], gradients[1][0], atol=1e-5, rtol=1e-5)
    assert float((gradients[0][1] - gradients[1][1]).abs().max()) > 1e-4
    assert float(gradients[1][1].abs().max()) > 1e-4


def test_context_is_learned_with_the_encoder(texts, topics, graphs):
    torch.manual_seed(3)
    chosen = settings(epochs=1, in_batch=True)
    fusion = LateFusion()
    context = HGAT.variant("NO_LB_NS", dimension=8, heads=2, layers=2, dropout=0.1)
    ranker = ContextRanker(
        tiny_encoder(passage_tokens=24, query_tokens=12), texts.written(heading_path=True), texts, graphs, context, fusion
    )
    run = Trainer(ranker, texts, topics, Validation.of(texts, topics, chosen), chosen)
    assert [group["lr"] for group in run.optimizer.param_groups] == [1e-3, 1e-3]
    alpha = float(fusion.alpha.detach())
    before = {name: value.clone() for name, value in ranker.state_dict().items()}
    run._epoch(0)
    assert float(fusion.alpha.detach()) != alpha
    assert not torch.equal(ranker.state_dict()["context.layers.0.lam"], before["context.layers.0.lam"])
    scores = ranker.score_all(topics.queries, np.arange(len(texts.names)), documents_at_once=2)
    with torch.inference_mode():
        np.testing.assert_allclose(scores, ranker(topics.queries, np.arange(len(texts.names))).numpy(), atol=1e-4)


def test_progress_is_written_for_people(texts, topics, tmp_path):
    trainer(texts, topics, epochs=1, folder=tmp_path).run()
    content = json.loads((tmp_path / "progress.json").read_text())
    assert {"settings", "untrained", "best", "best_measure", "epochs"} == set(content)
    assert content["epochs"][0]["number"] == 0


def test_the_commands_train_encode_and_encode_again(index, tmp_path):
    _, queries, judgements = collection()
    (tmp_path / "topics.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in queries.items()))
    (tmp_path / "qrels.txt").write_text(
        "".join(f"{q} 0 {name} {grade}\n" for q, grades in judgements.items() for name, grade in grades.items())
    )
    tiny_encoder(passage_tokens=24, query_tokens=12).save(tmp_path / "tiny")
    options = ["--to", str(tmp_path / "trained"), "--encoder", str(tmp_path / "tiny"), "--epochs", "1", "--batch", "6", "--keep", "0.5"]
    arguments = [str(index.folder), str(tmp_path / "topics.tsv"), str(tmp_path / "qrels.txt"), *options]
    done = CliRunner().invoke(train_command.command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "nDCG@10" in done.output
    arguments = [str(index.folder), "--encoder", str(tmp_path / "trained"), "--name", "mine", "--code", "int8"]
    for _ in range(2):
        done = CliRunner().invoke(encode_command.command, arguments, catch_exceptions=False)
        assert "6 documents" in done.output
    assert VectorStore.open(index.folder, "mine").missing(index._snapshot) == 0
