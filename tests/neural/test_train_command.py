"""`perikope train` and experiments with neural rankers: from files to a ranker that searches, and to a report."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402

from perikope import cli  # noqa: E402
from perikope.evaluation.experiment.outcome import Outcome  # noqa: E402
from perikope.formats import read  # noqa: E402
from perikope.neural.collection import Collection  # noqa: E402
from perikope.neural.guard import Measured  # noqa: E402
from perikope.neural.preparing import read_judged  # noqa: E402
from perikope.neural.saved import load_ranker  # noqa: E402
from perikope.neural.training import ContextRanker, TrainableRanker, Trainer  # noqa: E402
from perikope.neural.triples import draw_negatives, read_texts  # noqa: E402
from perikope.search.facade import Index  # noqa: E402
from tests.neural.support import tiny_encoder, write_experiment  # noqa: E402
from tests.support.collections import plain_document  # noqa: E402

SUBJECTS = ["pump", "rotor", "magnet", "seal", "valve", "water"]
ENDS = ("opens", "closes", "stops")


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as done:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return done.value.code, captured.out, captured.err


def write_collection(folder, subjects):
    """Write an index of one document per subject, with topics that have one relevant passage each."""
    folder.mkdir()
    index = Index.create(folder / "idx")
    index.add([plain_document(subject, subject, *(f"the {subject} {what}" for what in (*ENDS, "keeps warm"))) for subject in subjects])
    index.commit()
    pairs = [(subject, number, what) for subject in subjects for number, what in enumerate(ENDS, 1)]
    (folder / "topics.tsv").write_text("".join(f"{subject}-{what}\twhen {subject} {what}\n" for subject, _, what in pairs))
    (folder / "qrels.txt").write_text("".join(f"{subject}-{what} 0 {subject}#@{number} 1\n" for subject, number, what in pairs))
    return folder / "idx", folder / "topics.tsv", folder / "qrels.txt"


@pytest.fixture
def files(tmp_path):
    tiny_encoder(passage_tokens=24, query_tokens=12).save(tmp_path / "tiny")
    return write_collection(tmp_path / "collection", SUBJECTS)


@pytest.fixture
def train(files, tmp_path, capsys):
    def start(*options, to="ranker"):
        few = ("--encoder", tmp_path / "tiny", "--epochs", 1, "--batch", 6, "--encoder-rate", 1e-3)
        return run(capsys, "train", *files, "--to", tmp_path / to, *few, *options)

    return start


@pytest.mark.parametrize("variant", ["NO_LB", "NO_LB_NS"])
def test_what_was_trained_is_what_searches(files, train, tmp_path, capsys, variant):
    relations = "order,order_i,structural,opening"
    much = ("--epochs", 4, "--encoder-rate", 5e-3, "--rate", 0.1, "--frozen-layers", 0, "--validation-topics", files[1])
    code, out, err = train("--variant", variant, "--relations", relations, "--negatives-from", "same_doc+ranked", *much)
    assert code == 0, err
    assert "training on 18 topics, validating on 18 topics" in err
    assert "best: epoch" in out
    assert "opening" in out
    assert "λ" in out
    assert ("α" in out) == (variant == "NO_LB_NS")
    idx = files[0]
    code, _, err = run(capsys, "encode", idx, "--encoder", tmp_path / "ranker", "--code", "float16")
    assert code == 0, err
    code, out, _ = run(
        capsys, "search", idx, "when seal stops", "--model", f'hgat(variant="{variant}")', "--documents", "all", "-k", 99, "--json"
    )
    hits = [json.loads(line) for line in out.splitlines()]
    score_of = {f"{hit['document']}#{hit['passage']}": hit["score"] for hit in hits}
    saved = load_ranker(tmp_path / "ranker", precision="float32")
    assert list(saved.context.relations) == relations.split(",")
    collection = Collection.read(Index.open(idx)._snapshot)
    texts = collection.texts
    ranker = ContextRanker(saved.encoder, texts.written(heading_path=True), texts, collection.graphs, saved.context, saved.fusion).eval()
    scores = ranker.score_all(["when seal stops"], np.arange(len(texts.names)))[0]
    assert score_of.keys() == set(texts.names)
    alone = TrainableRanker(saved.encoder, texts.written(heading_path=True)).score_all(["when seal stops"], np.arange(len(texts.names)))[0]
    # The store keeps float16, and some processors compute in bfloat16. This loss is far below the effect of context.
    lost = np.abs(np.array([score_of[name] for name in texts.names]) - scores).max()
    assert lost < 0.2 * np.abs(scores - alone).max()


def test_an_encoder_alone_says_how_its_passages_are_written(train, tmp_path):
    code, out, _ = train("--no-heading-path", "--keep", 0.5)
    assert code == 0
    assert "with --keep 0.5: nDCG@10" in out
    assert "--name mine" in out
    saved = load_ranker(tmp_path / "ranker")
    assert saved.context is None
    assert not saved.heading_path


def test_a_run_that_stopped_goes_on(train, tmp_path, monkeypatch):
    options = ("--variant", "NO_LB", "--epochs", 2, "--patience", 5)
    assert train(*options, to="whole")[0] == 0
    epoch = Trainer._epoch

    def interrupted(self, number):
        if number == 1:
            raise KeyboardInterrupt
        return epoch(self, number)

    monkeypatch.setattr(Trainer, "_epoch", interrupted)
    assert train(*options)[0] == 130
    assert not (tmp_path / "ranker" / "context.json").exists()
    monkeypatch.setattr(Trainer, "_epoch", epoch)
    code, out, _ = train(*options)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:4]] == ["epoch", "-", "1", "2"]
    for name in ("context.safetensors", "model.safetensors"):
        whole, resumed = (load_file(tmp_path / folder / name) for folder in ("whole", "ranker"))
        assert all(torch.equal(value, resumed[key]) for key, value in whole.items())


def test_a_run_of_something_else_is_not_gone_on_with(files, train, tmp_path):
    assert train("--variant", "BASE")[0] == 0
    # The weights of these runs have the same shapes, so only the settings tell them apart.
    for options, message in (
        (("--variant", "NO"), "variant 'BASE'"),
        (("--variant", "BASE", "--dropout", 0.5), "dropout 0.1"),
        (("--variant", "BASE", "--batch", 5), "batch 6"),
        ((), "variant 'BASE'"),
    ):
        code, _, err = train(*options)
        assert code == 2
        assert message in err
    files[2].write_text(files[2].read_text().replace("pump#@1 1", "pump#@2 1"))
    code, _, err = train("--variant", "BASE")
    assert code == 2
    assert "(topics)" in err
    (tmp_path / "ranker" / "run" / "made-with.json").write_text("[1")
    assert "damaged" in train("--variant", "BASE")[2]


def test_several_collections_are_learned_from(train, tmp_path):
    other = write_collection(tmp_path / "other", ["heat", "fluid"])
    code, _, err = train("--variant", "BASE", "--layers", 1, "--also", *other)
    assert code == 0, err
    assert "training on 21 topics of 2 collections, validating on 3 topics" in err


def test_validation_topics_of_their_own(files, train, tmp_path):
    (tmp_path / "some.tsv").write_text("pump-opens\twhen pump opens\n")
    code, _, err = train("--validation-topics", tmp_path / "some.tsv")
    assert code == 0, err
    assert "training on 18 topics, validating on 1 topic;" in err


def test_attention_that_cannot_be_interpolated_is_warned_of(train):
    warning = "warning: attention without a residual stays as trained"
    code, _, err = train("--variant", "BASE", "--keep", 0.5, to="with")
    assert (code, warning in err) == (0, False)
    code, _, err = train("--variant", "BASE", "--no-residual", "--keep", 0.5, to="without")
    assert (code, warning in err) == (0, True)


def write_long_collection(folder, subjects):
    """Write an index whose passages are long enough for self-made topics, and topics as in `write_collection`."""
    files = write_collection(folder, subjects)
    more = "when the warm water stops inside the cold valve. The heat of a magnet keeps the fluid of the pump inside."
    index = Index.create(folder / "long")
    index.add([plain_document(name, name, *(f"the {name} {what} {more}" for what in (*ENDS, "keeps warm"))) for name in subjects])
    index.commit()
    return folder / "long", *files[1:]


LEARNING = ("--epochs", 3, "--encoder-rate", 5e-3, "--patience", 9)


def trained_weights(tmp_path, folder):
    return load_file(tmp_path / folder / "model.safetensors")


def distance(weights, others):
    return sum(float((value - others[name]).norm()) for name, value in weights.items())


def test_training_is_guarded_and_tells_what_it_gained_and_lost(files, tmp_path, capsys):
    own = write_long_collection(tmp_path / "own", SUBJECTS)
    few = ("--encoder", tmp_path / "tiny", "--batch", 6, "--validation-topics", own[1], *LEARNING)

    def train(to, *options):
        code, out, err = run(capsys, "train", *own, "--to", tmp_path / to, *few, *options)
        assert code == 0, err
        return out, err

    out, _ = train("guarded", "--guard-strength", 50, "--guard-loss", 1)
    table = [line.split("  ")[0] for line in out.splitlines() if "  0." in line]
    assert f"self-made topics of {own[0]}" in table
    assert "validation topics" in table
    assert "This ranker belongs to the collections that it was trained on." in out
    out, _ = train("plain", "--no-guard")
    assert "self-made" not in out
    assert "belongs to" not in out
    # That a guarded ranker stays nearer to the untrained scores is tested with the guard itself.
    assert distance(trained_weights(tmp_path, "guarded"), trained_weights(tmp_path, "plain")) > 0


def test_plain_training_is_the_training_without_any_guard(files, tmp_path, capsys):
    own = write_long_collection(tmp_path / "own", SUBJECTS)
    few = ("--encoder", tmp_path / "tiny", "--batch", 6, "--validation-topics", own[1], *LEARNING)
    for to, options in (("plain", ("--no-guard",)), ("loose", ("--guard-strength", 0, "--guard-loss", 1))):
        code, _, err = run(capsys, "train", *own, "--to", tmp_path / to, *few, *options)
        assert code == 0, err
    plain, loose = (trained_weights(tmp_path, folder) for folder in ("plain", "loose"))
    assert all(torch.equal(value, loose[name]) for name, value in plain.items())


def test_a_guard_that_loses_too_much_keeps_less_of_the_training(files, tmp_path, capsys, monkeypatch):
    own, other = (write_long_collection(tmp_path / name, subjects) for name, subjects in (("own", SUBJECTS), ("other", ["heat", "fluid"])))
    few = ("--encoder", tmp_path / "tiny", "--batch", 6, "--validation-topics", own[1], *LEARNING, "--guard", *other)
    before = trained_weights(tmp_path, "tiny")
    # The measure falls as the weights move away from the untrained ones, so that every share loses something.
    projection = before["linear.weight"]
    monkeypatch.setattr(
        Measured, "measure", lambda self, ranker, path: 1 - float((ranker.encoder.projection.weight.detach() - projection).norm())
    )
    told, moved = {}, {}
    for loss in (99, 0):
        code, *told[loss] = run(capsys, "train", *own, "--to", tmp_path / f"{loss}", *few, "--guard-strength", 0, "--guard-loss", loss)
        assert code == 0, told[loss]
        moved[loss] = distance(trained_weights(tmp_path, f"{loss}"), before)
    assert f"topics of {other[0]}" in told[0][0]
    assert "saved: 0.1 of the way from the untrained to the trained weights" in told[0][0]
    assert "warning: the ranker lost" in told[0][1]
    assert "of the way" not in told[99][0]
    assert moved[0] == pytest.approx(0.1 * moved[99], rel=1e-3)


def test_other_guards_are_another_training(files, tmp_path, capsys, train):
    other = write_collection(tmp_path / "other", ["heat", "fluid"])
    assert train()[0] == 0
    assert "guarding_topics" in train("--guard", *other)[2]
    assert "guard 2.0" in train("--no-guard")[2]


def test_the_attention_of_what_training_starts_from_is_left_out(train, tmp_path):
    assert train("--variant", "BASE")[0] == 0
    code, _, err = train("--encoder", tmp_path / "ranker", to="next")
    assert code == 0
    assert "only the encoder of" in err
    assert "same folder" in train("--encoder", tmp_path / "ranker")[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--variant", "NOLB"), "did you mean 'NO_LB'"),
        (("--layers", 1, "--no-residual"), "--layers, --residual needs graph attention"),
        (("--variant", "BASE", "--relations", "order,nonsense"), "unknown relation 'nonsense'"),
        (("--negatives-from", "same_doc+nowhere"), "unknown strategy of negatives 'nowhere'"),
        (("--ranked-by", "bm25"), "--negatives-from ranked"),
        (("--negatives-from", "ranked", "--ranked-by", "bm52"), "did you mean 'bm25'"),
        (("--validation-qrels", "file"), "--validation-topics"),
        (("--measure", "nonsense"), "nonsense"),
        (("--no-guard", "--guard-loss", 0.1), "--no-guard and --guard-loss exclude each other"),
    ],
)
def test_mistakes_are_found_before_anything_is_made(train, tmp_path, options, message):
    code, _, err = train(*options)
    assert code == 2
    assert message in err
    assert not (tmp_path / "ranker").exists()


def test_an_index_twice_is_refused(files, train):
    assert "an index is given twice" in train("--also", *files)[2]


def experiment(capsys, *arguments):
    return run(capsys, "experiment", *arguments, "--workers", 1, "--device", "cpu")


def test_an_experiment_is_run_and_reported(tmp_path, capsys):
    file = write_experiment(tmp_path)
    out = tmp_path / "out"
    code, shown, err = experiment(capsys, file, "--out", out)
    assert code == 0, err
    assert "reading pumps" in err
    assert "plain.1" in err
    lines = shown.splitlines()
    assert lines[0] == "pumps/asked"
    assert lines[1].split() == ["nDCG@10", "MAP(D)"]
    assert {"words", "context", "folds"} <= {line.split()[0] for line in lines[2:-1]}
    outcome = Outcome.load(out)
    best = max(outcome.sweeps[0].systems, key=lambda system: system.mean("nDCG@10"))
    assert lines[2].split()[-2] == f"{best.mean('nDCG@10'):.4f}"
    assert "Over seeds" in (out / "report.md").read_text()
    # Again, and from the folder itself: nothing is trained.
    before = {path.name: path.stat().st_mtime_ns for path in (out / "values").glob("*.json")}
    assert experiment(capsys, file, "--out", out)[1].splitlines()[:-1] == lines[:-1]
    code, again, _ = experiment(capsys, out, "--out", tmp_path / "report")
    assert (code, again.splitlines()[:-1]) == (0, lines[:-1])
    assert (tmp_path / "report" / "report.md").read_bytes() == (out / "report.md").read_bytes()
    assert {path.name: path.stat().st_mtime_ns for path in (out / "values").glob("*.json")} == before
    # Unless that is asked for.
    assert experiment(capsys, out, "--fresh")[0] == 0
    after = {path.name: path.stat().st_mtime_ns for path in (out / "values").glob("*.json")}
    assert after.keys() == before.keys()
    assert all(after[name] > before[name] for name in after)


def test_attention_that_cannot_be_made_is_told_before_anything_is_trained(tmp_path, capsys):
    file = write_experiment(tmp_path)
    file.write_text(file.read_text().replace("context = { layers = 2,", "context = { layers = 2, heads = 3,"))
    code, _, err = experiment(capsys, file, "--out", tmp_path / "out")
    assert code == 2
    assert "heads must divide the dimension" in err


def test_jobs_that_fail_are_told_and_the_rest_is_reported(tmp_path, capsys):
    file = write_experiment(tmp_path)
    # Texts are longer than so many positions, which is seen when they are encoded.
    file.write_text(file.read_text().replace("context = { layers = 2,", "context = { layers = 2, positions = 2,"))
    code, shown, err = experiment(capsys, file, "--out", tmp_path / "out")
    assert code == 1
    assert "nodes may have at most 2 tokens" in err
    assert "not done: context, seed 1" in err
    assert "  folds" in shown
    assert "  context" not in shown


def test_a_protocol_needs_a_collection(tmp_path, capsys):
    code, _, err = experiment(capsys, "albarede2023", "--index", "idx", "--topics", "topics.tsv")
    assert code == 2
    assert "[topics] judgements must name a file (or --judgements)" in err
    code, _, err = experiment(capsys, "albarede2023", "--index", "idx", "--topics", "topics.tsv", "--judgements", "qrels.txt")
    assert code == 2
    assert "train_on is wrong: unknown set of topics 'collection/training'" in err
    assert "give --training-topics and --training-judgements" in err


def test_a_protocol_takes_the_collection_that_is_given(tmp_path, capsys, monkeypatch):
    # Its encoder is a large one: what would be trained is left out.
    monkeypatch.setattr("perikope.evaluation.experiment.running.run_jobs", lambda folder, **options: [])
    write_experiment(tmp_path)
    topics, judgements = tmp_path / "topics.tsv", tmp_path / "qrels.txt"
    given = ("--topics", topics, "--judgements", judgements, "--training-topics", topics, "--training-judgements", judgements)
    documents = ("--documents", tmp_path / "documents.jsonl")
    code, shown, err = experiment(capsys, "albarede2023", *documents, *given, "--out", tmp_path / "out")
    assert code == 1
    assert "not done: ColBERT, seed 1" in err
    assert {"BM25", "QSF_sectionPropagateAVG"} == {line.split()[0] for line in shown.splitlines()[2:-1]}


def test_what_makes_no_sense_is_refused(tmp_path, capsys):
    file = write_experiment(tmp_path)
    code, _, err = experiment(capsys, file, "--topics", "t.tsv", "--index", "idx")
    assert code == 2
    assert "--index, --topics: " in err
    assert "names its collections and topics itself" in err
    code, _, err = run(capsys, "experiment", "carmel2013", "--index", "i", "--topics", "t", "--qrels", "q", "--device", "cpu")
    assert code == 2
    assert "--device applies to neural rankers only" in err
    file.write_text(file.read_text().replace("seeds = 2", "sedes = 2"))
    code, _, err = experiment(capsys, file)
    assert code == 2
    assert "sedes" in err
    assert not (tmp_path / "tiny").exists()


@pytest.mark.parametrize("command", ["experiment", "train"])
def test_without_torch_one_line_says_how_to_get_it(tmp_path, command):
    arguments = {"experiment": [str(write_experiment(tmp_path))], "train": ["idx", "topics", "qrels", "--to", str(tmp_path / "to")]}[
        command
    ]
    code = "import sys; sys.modules['torch'] = None; from perikope.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("perikope: error: ")
    assert re.search(r"this needs torch, which is not installed: pip install '.*\[neural\]'\n$", done.stderr)
    assert done.stderr.count("\n") == 1


def test_a_topic_that_is_a_patent_asks_with_its_claims_and_has_its_codes(tmp_path):
    def patent(number, codes, text):
        sections = [{"part": "claims", "passages": [text, f"{text} again"]}]
        return {"id": f"EP-{number}-A1", "metadata": {"ipc": codes}, "sections": sections}

    documents = [
        patent(1000001, ["F04D 1/00"], "a pump with a rotor"),
        patent(1000002, ["F04D 1/00"], "a magnet that drives a rotor"),
        patent(1000003, ["F16K 1/00"], "a valve that opens"),
        patent(1000004, ["F16K 1/00"], "a seal that closes"),
    ]
    (tmp_path / "patents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in documents))
    index = Index.create(tmp_path / "idx")
    index.add(read([tmp_path / "patents.jsonl"]))
    index.commit()
    topics = [{"qid": "1", "patent": "EP-1000001-A1"}, {"qid": "2", "query": "valve"}, {"qid": "3", "patent": "EP-9999999-A1"}]
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in topics))
    (tmp_path / "qrels.txt").write_text("1 0 EP-1000004-A1#@1 1\n2 0 EP-1000003-A1#@1 1\n3 0 EP-1000003-A1#@1 1\n")
    texts = read_texts(index._snapshot)
    problems: list[str] = []
    judged = read_judged(index, texts, tmp_path / "topics.jsonl", tmp_path / "qrels.txt", ranked_by="bm25", on_problem=problems.append)
    assert judged.qids == ("1", "2")
    assert len(problems) == 1
    assert "EP9999999" in problems[0]
    # The encoder reads the claims as they are, not the words with the highest tf-idf.
    assert judged.queries == ("a pump with a rotor\na pump with a rotor again", "valve")
    assert judged.codes == (frozenset({"F04D1/00"}), frozenset())
    # Those of documents that share a code with the patent, not with what is relevant for it.
    drawn = draw_negatives(texts, judged, 0, int(judged.relevant[0][0]), "shared_codes", 50, [1])
    assert {texts.names[number].split("#")[0] for number in drawn} == {"EP-1000001-A1", "EP-1000002-A1"}
    assert {texts.names[number].split("#")[0] for number in judged.ranked[0]} == {"EP-1000002-A1"}


def test_a_folder_with_other_files_is_not_written_to(train, tmp_path):
    (tmp_path / "ranker").mkdir()
    (tmp_path / "ranker" / "config.json").write_text("mine")
    code, _, err = train()
    assert code == 2
    assert "contains other files" in err
    assert (tmp_path / "ranker" / "config.json").read_text() == "mine"


def test_a_device_that_there_is_not(train):
    code, _, err = train("--device", "banana")
    assert code == 2
    assert "banana" in err
