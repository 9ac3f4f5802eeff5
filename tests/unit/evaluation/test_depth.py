"""Where rankings are cut: at a given number of results, or where the measures need it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.build.indexing import BuildOptions, build
from perikope.evaluation.depth import LEAST, Depth, depth_of
from perikope.evaluation.experiment.plan import load_plan
from perikope.evaluation.experiment.running import run_experiment
from perikope.evaluation.io.judgements import read_judgements
from perikope.evaluation.io.runs import read_run
from perikope.evaluation.measures import evaluate, parse_measures
from tests.cli.test_commands import run


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        ("nDCG@10 MAP(D)", Depth(LEAST)),
        ("P@5000", Depth(5000)),
        ("PRES", Depth(LEAST, 100)),
        ("docRecall@30 docMAP@200 docMRR", Depth(LEAST, 200)),
        ("gP[10] iP[0.01]", Depth(LEAST, 10)),
    ],
)
def test_measures_decide(measures, expected):
    assert depth_of(parse_measures(measures)) == expected
    assert depth_of(parse_measures(measures), 7) == Depth(7)


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 20), st.integers(0, 7))
def test_the_cut_equals_its_plain_twin(documents, results, wanted):
    kept = 0
    while kept < len(documents) and (kept < results or len(set(documents[:kept])) < wanted):
        kept += 1
    assert Depth(results, wanted).cut(np.array(documents, np.int64)) == kept
    assert Depth(results, wanted).cut_names([f"d{document}#{number}" for number, document in enumerate(documents)]) == kept


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An index whose first thousand results are from one long document, and topics with a short relevant document."""
    folder = tmp_path_factory.mktemp("depth")
    long = {"id": "long", "passages": [{"text": f"pump seal number {number}"} for number in range(1100)]}
    short = [
        {"id": f"short{number}", "passages": [{"id": "p1", "text": "a seal of a pump " + "beside other parts " * 9}]} for number in range(5)
    ]
    (folder / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in [long, *short]))
    (folder / "topics.tsv").write_text("".join(f"{number}\tpump seal\n" for number in range(6)))
    (folder / "qrels.txt").write_text("".join(f"{number} 0 short{number % 5}#p1 1\n" for number in range(6)))
    build(str(folder / "idx"), [str(folder / "documents.jsonl")], BuildOptions(workers=1))
    return folder


def documents_found(results):
    return {name.split("#")[0] for name in results}


@pytest.mark.parametrize("measure", ["PRES@4", "docRecall@4", "docMAP@4", "docMRR@4"])
def test_experiments_keep_results_of_as_many_documents(files, tmp_path, measure):
    plan = f"""
        title = "t"
        measures = ["{measure}"]
        {{k}}
        [collection]
        index = "{files / "idx"}"
        [topics]
        file = "{files / "topics.tsv"}"
        judgements = "{files / "qrels.txt"}"
        [training]
        folds = 2
        [[systems]]
        name = "fixed"
        model = "bm25"
        [[systems]]
        name = "tuned"
        model = "bm25(k1=[0.5,1.2])"
        tune = true
    """
    for k, documents in (("", 4), ("k = 1000", 1)):
        (tmp_path / "plan.toml").write_text(plan.format(k=k))
        out = tmp_path / f"out{documents}"
        done = run_experiment(load_plan(str(tmp_path / "plan.toml")), out, workers=1)
        for system in done.outcome.sweeps[0].systems:
            found = read_run(out / "runs" / f"1000-{system.name}.run.gz")
            assert {len(documents_found(results)) for results in found.values()} == {documents}
            evaluation = evaluate([measure], read_judgements(files / "qrels.txt"), found)
            assert system.values[measure] == pytest.approx(evaluation.per_query[measure])
            assert (max(system.values[measure].values()) > 0) == (documents == 4)
            if system.tuned is not None:
                assert max(system.tuned.scores) == pytest.approx(system.mean(measure))


def test_so_do_tune_and_learn(files, capsys):
    for k, has_value in (((), True), (("-k", 1000), False)):
        code, out, err = run(
            capsys, "tune", files / "idx", files / "topics.tsv", files / "qrels.txt", "--model", "bm25(k1=[0.5,1.2])",
            "--measure", "docRecall@4", "--folds", 0, "--workers", 1, "--json", *k,
        )  # fmt: skip
        assert code == 0, err
        assert (max(json.loads(out)["scores"]) > 0) == has_value
    code, out, err = run(
        capsys, "learn", "fusion", files / "idx", files / "topics.tsv", files / "qrels.txt", "--name", "mine", "--measure", "docRecall@4",
        "--folds", 2, "--compare", "bm25", "--threads", 1,
    )  # fmt: skip
    assert code == 0, err
    assert float(next(line for line in out.splitlines() if line.startswith("bm25")).split()[1]) > 0
