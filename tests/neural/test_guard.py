"""The guard against forgetting: self-made topics, the term of the loss, and the share of the weights that is kept."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.evaluation.selfmade.topics import make_topics  # noqa: E402
from perikope.neural import sentences  # noqa: E402
from perikope.neural.collection import Collection  # noqa: E402
from perikope.neural.guard import SHARES, Guard, Measured, divergence, guarding_collections, keep_share, set_share  # noqa: E402
from perikope.neural.hgat import HGAT  # noqa: E402
from perikope.neural.self_made import LEARNED, MEASURED, self_made  # noqa: E402
from perikope.neural.sentences import read_sentences  # noqa: E402
from perikope.neural.training import ContextRanker, TrainableRanker, Trainer, TrainingSettings  # noqa: E402
from perikope.neural.triples import mix_evenly, read_texts, topics_of  # noqa: E402
from perikope.neural.word_texts import of_words  # noqa: E402
from tests.neural.support import WORDS, tiny_encoder  # noqa: E402
from tests.support.collections import index_of, plain_document  # noqa: E402

SUBJECTS = ["pump", "rotor", "magnet", "seal", "valve", "water"]
ENDS = ("opens", "closes", "stops")


def text_of(subject, what):
    return f"The {subject} {what} the warm fluid in cold water. When cold heat {what} water, a {subject} keeps the fluid inside."


@pytest.fixture(scope="module")
def collection():
    documents = [
        plain_document(subject, subject, *(text_of(subject, what) for what in ("opens", "closes", "stops"))) for subject in SUBJECTS
    ]
    return Collection.read(index_of(documents, [2])._snapshot)


@pytest.fixture(scope="module")
def topics(collection):
    pairs = [(subject, number, what) for subject in SUBJECTS for number, what in enumerate(ENDS, 1)]
    queries = {f"{subject}-{what}": f"when {subject} {what}" for subject, _, what in pairs}
    return topics_of(collection.texts, queries, {f"{subject}-{what}": {f"{subject}#@{number}": 1} for subject, number, what in pairs})


def settings(**options):
    return TrainingSettings(**{"epochs": 2, "batch": 6, "encoder_rate": 5e-3, "frozen_layers": 0, "rate": 0.05, **options})


def ranker_of(collection, *, attention=False, residual=True):
    encoder = tiny_encoder(passage_tokens=64, query_tokens=32)
    written = collection.texts.written(heading_path=True)
    if not attention:
        return TrainableRanker(encoder, written)
    torch.manual_seed(1)
    context = HGAT.variant("BASE", dimension=8, heads=2, layers=1, dropout=0.0, positions=64, residual=residual)
    return ContextRanker(encoder, written, collection.texts, collection.graphs, context)


def weights_of(ranker):
    return {name: value.detach().clone() for name, value in ranker.state_dict().items()}


def drift(ranker, untrained, collection):
    """How far the scores of self-made topics are from those of the untrained encoder."""
    moved = ranker.moved(collection.texts, collection.graphs, heading_path=True).eval()
    before = TrainableRanker(untrained, moved.written)
    queries, passages = collection.topics[MEASURED].queries, np.arange(len(collection.texts.names))
    with torch.no_grad():
        return float(divergence(moved(queries, passages), before(queries, passages)))


def test_sentences_are_those_of_self_made_topics():
    index = index_of([plain_document(subject, subject, text_of(subject, "opens"), "One short sentence.") for subject in SUBJECTS], [2])
    texts, found = read_texts(index._snapshot), read_sentences(index._snapshot, read_texts(index._snapshot))
    assert found.documents.tolist() == list(range(len(SUBJECTS)))
    made = {texts.passages[row][start:end] for row, start, end in zip(found.passage, found.start, found.end, strict=True)}
    topics = make_topics(index._snapshot, ("sentence",), count=100, naming="never")
    assert len(topics.topics) == len(SUBJECTS)
    assert {topic.query for topic in topics.topics} == made
    assert sorted(texts.names[row] for row in found.passage) == sorted(name for judged in topics.judgements.values() for name in judged)


def test_only_some_documents_of_a_large_collection_are_read(monkeypatch):
    monkeypatch.setattr(sentences, "PASSAGES", 7)
    index = index_of([plain_document(subject, subject, *(text_of(subject, what) for what in ENDS)) for subject in SUBJECTS])
    found = read_sentences(index._snapshot, read_texts(index._snapshot))
    assert (found.documents.size, found.passage.size) == (2, 6)
    assert set(found.passage // 3) <= set(found.documents.tolist())


def test_self_made_topics_ask_for_their_passages(collection, tmp_path):
    collection.save(tmp_path / "collection")
    made = self_made(Collection.load(tmp_path / "collection"))
    assert set(made.texts.documents) == set(SUBJECTS)
    by_name = dict(zip(collection.texts.names, collection.texts.passages, strict=True))
    documents = {}
    for name, topics in made.topics.items():
        for query, (row,) in zip(topics.queries, topics.relevant, strict=True):
            whole, rest = by_name[made.texts.names[row]], made.texts.passages[row]
            assert query not in rest
            assert whole in (f"{query} {rest}", f"{rest} {query}")
            documents.setdefault(name, set()).add(int(made.texts.document_of_passage[row]))
    assert not documents[LEARNED] & documents[MEASURED]
    graph = made.graphs[0]
    assert [graph.texts[node] for node in graph.passage_node] == list(made.texts.passages[: graph.passage_node.size])


def test_one_document_is_learned_and_measured():
    made = self_made(Collection.read(index_of([plain_document("pump", "pump", text_of("pump", "opens"))])._snapshot))
    assert len(made.topics[LEARNED]) == len(made.topics[MEASURED]) == 1


def test_a_collection_without_sentences_guards_nothing(collection):
    short = Collection.read(index_of([plain_document("pump", "pump", "The pump opens.")])._snapshot)
    without = Collection(collection.texts, collection.graphs, {})
    assert guarding_collections(ranker_of(collection), {"short": short, "without": without}, 1) == {}


def test_texts_of_words_need_a_vocabulary():
    encoder = tiny_encoder()
    assert of_words(encoder, 1) is None
    names = [f"{first}{second}{third}" for first in "bcdf" for second in "aeio" for third in "lmnr"]
    encoder.tokenizer.add_tokens(names)
    encoder.transformer.resize_token_embeddings(len(encoder.tokenizer))
    made = of_words(encoder, 1)
    known = {*names, *WORDS}
    assert all(set(text.split()) <= known for text in (*made.texts.passages, *made.topics[LEARNED].queries))
    assert len(made.graphs) == len(made.texts.documents)
    assert made.topics[MEASURED].relevant[0].size == 1


@pytest.mark.parametrize("attention", [False, True])
def test_a_guarded_ranker_scores_other_texts_nearly_as_before(collection, topics, attention):
    apart = {}
    for strength in (0.0, 50.0):
        chosen, ranker = settings(guard=strength, epochs=4), ranker_of(collection, attention=attention)
        untrained, made = ranker.encoder.copied(), guarding_collections(ranker, {"idx": collection}, 1)
        guard = Guard(ranker, made.values(), chosen) if strength else None
        Trainer(ranker, collection.texts, topics, None, chosen, guard=guard).run()
        apart[strength] = drift(ranker, untrained, made["idx"])
    assert apart[50.0] < apart[0.0] / 2


def test_the_term_is_zero_before_training_and_depends_on_seed_and_step_alone(collection):
    ranker, chosen = ranker_of(collection).eval(), settings(guard=1.0)
    guard = Guard(ranker, guarding_collections(ranker, {"idx": collection}, 1).values(), chosen)
    with torch.no_grad():
        assert float(guard.loss(0, 0)) == pytest.approx(0, abs=1e-6)
        ranker.encoder.projection.weight.mul_(torch.linspace(-2, 2, 8)[:, None])
        first = float(guard.loss(0, 0))
        assert first > 1e-3
        assert float(guard.loss(0, 0)) == first
        assert float(guard.loss(0, 1)) != first


def test_a_guarded_run_that_stopped_goes_on_as_if_it_had_not(collection, topics, tmp_path):
    def run(folder, epochs):
        ranker, chosen = ranker_of(collection), settings(guard=1.0, epochs=2)
        guard = Guard(ranker, guarding_collections(ranker, {"idx": collection}, 1).values(), chosen)
        trainer = Trainer(ranker, collection.texts, topics, None, chosen, folder, guard=guard)
        if epochs == 1:
            trainer.progress.epochs.append(trainer._epoch(0))
            trainer._save(best=True)
        else:
            trainer.run()
        return weights_of(ranker)

    whole = run(tmp_path / "whole", 2)
    run(tmp_path / "stopped", 1)
    resumed = run(tmp_path / "stopped", 2)
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


def test_the_largest_share_that_loses_little_is_kept(collection, topics):
    ranker = ranker_of(collection).eval()
    before = weights_of(ranker)
    with torch.no_grad():
        ranker.encoder.projection.weight.add_(torch.randn(8, 16, generator=torch.Generator().manual_seed(3)) * 2)
    after = weights_of(ranker)

    class Judged(Measured):
        def measure(self, ranker, heading_path):
            changed = ranker.state_dict()["encoder.projection.weight"] - before["encoder.projection.weight"]
            return 0.9 - 0.1 * float((changed / (after["encoder.projection.weight"] - before["encoder.projection.weight"])).mean())

    judged = Judged("other", collection, None)
    kept = keep_share(ranker, before, [judged], 0.051, True)
    assert kept.share == 0.5
    assert kept.lost == pytest.approx(0.05, abs=1e-4)
    assert (kept.untrained[0], kept.trained[0]) == (pytest.approx(0.9), pytest.approx(0.8, abs=1e-4))
    ranker.load_state_dict(after)
    assert keep_share(ranker, before, [judged], 0.2, True).share == 1.0
    ranker.load_state_dict(after)
    assert keep_share(ranker, before, [judged], 0.0, True).share == SHARES[-1] == 0.1


@pytest.mark.parametrize("residual", [True, False])
def test_attention_with_a_residual_is_scaled_and_other_attention_stays(collection, residual):
    ranker = ranker_of(collection, attention=True, residual=residual)
    before = weights_of(ranker)
    after = {name: value + 1 for name, value in before.items()}
    set_share(ranker, before, after, 0.5)
    name = next(name for name in before if name.startswith("context."))
    assert torch.allclose(ranker.state_dict()[name], before[name] + (0.5 if residual else 1.0))
    assert torch.allclose(ranker.state_dict()["encoder.projection.weight"], before["encoder.projection.weight"] + 0.5)
    set_share(ranker, before, after, 0.0)
    assert torch.allclose(ranker.state_dict()[name], before[name])


def test_collections_take_turns_in_a_batch():
    triples = np.stack([np.arange(10), np.arange(10)], axis=1)
    collection_of_triple = np.array([0, 0, 0, 1, 0, 0, 1, 0, 0, 0])
    mixed = mix_evenly(triples, collection_of_triple)
    assert mixed[:, 0].tolist() == [0, 3, 1, 6, 2, 3, 4, 6, 5, 3]
    assert mix_evenly(triples, np.zeros(10, np.int64)).tolist() == triples.tolist()
