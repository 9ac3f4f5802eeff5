"""A topic of a CLEF-IP or INEX file has one ranking: `search`, `run`, `tune`, `learn` and `experiment` agree.

Judgements are those of the tracks: XPaths of CLEF-IP, and ranges of characters of INEX.
"""

import csv
import gzip
import json
from dataclasses import dataclass

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.evaluation.experiment.plan import load_plan
from perikope.evaluation.experiment.running import run_experiment
from perikope.evaluation.io.fitting import fit_judgements
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures import parse_measure
from perikope.index.reader import Snapshot
from perikope.search.facade import Index
from perikope.search.recipe_files import toml_value
from tests.cli.test_commands import run
from tests.contracts.test_topics import flags, names_by_topic, without_scores
from tests.support.lookalikes.patents import make_patents
from tests.support.lookalikes.wikipedia import make_wikipedia

MODEL, K, DEPTH = "qsf_v_title(mu=1000.0,content=lm,alpha=0.7)", 300, 5
OPTIONS = {
    "CLEF-IP": {},
    "CLEF-IP, as albarede2021": {"date_limit": False, "family_filter": False, "fetch": "sim(mu=1000)"},
    "CLEF-IP, words": {
        "fetch_words": 4,
        "browse_words": 6,
        "browse_from": ["claims", "abstract"],
        "weighted": True,
        "code_level": "subclass",
    },
    "CLEF-IP, English": {"language": "en", "code_filter": False},
    "INEX": {},
    "INEX, automatic": {"syntax": "automatic"},
    "INEX, castitle": {},
}


@dataclass
class Files:
    """The files of a collection, its index, and what a single search with each option finds for each topic."""

    folder: object
    topics: object
    judgements: object
    field: str
    options: dict
    rankings: dict

    @property
    def found(self):
        """The rankings that are not empty."""
        return {qid: ranking for qid, ranking in self.rankings.items() if ranking}

    @property
    def empty(self):
        """The topics for which nothing is found."""
        return [qid for qid, ranking in self.rankings.items() if not ranking]

    @property
    def reading(self):
        return ["--topic-field", self.field] if self.field else []


@pytest.fixture(scope="module")
def collections(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracks")
    made = {"CLEF-IP": make_patents(folder / "patents", topics=4), "INEX": make_wikipedia(folder / "pages", "tags", topics=4)}
    for collection in made.values():
        build(str(collection.folder / "idx"), [str(collection.documents)], BuildOptions(workers=1))
    return made


@pytest.fixture(scope="module", params=OPTIONS)
def files(request, collections):
    collection, field = collections[request.param.partition(",")[0]], "castitle" if "castitle" in request.param else ""
    options, index = OPTIONS[request.param], Index.open(collection.folder / "idx")
    topics = read_topics(collection.topics, "auto", field)
    rankings = {topic.qid: index.search(topic, **options, model=MODEL, k=K).names() for topic in topics}
    assert len(rankings) == 4
    # A patent in another language than the one that is searched may find nothing.
    assert all(rankings.values()) or options.get("language")
    return Files(collection.folder, collection.topics, collection.judgements, field, options, rankings)


def judged(files):
    return fit_judgements(str(files.judgements), Snapshot.open(files.folder / "idx")).names


def test_judgements_fit(files):
    relevant = {qid: {name for name, grade in grades.items() if grade > 0} for qid, grades in judged(files).items()}
    found = [name for qid, ranking in files.rankings.items() for name, _ in ranking if name in relevant[qid]]
    assert found


def test_run(files, tmp_path, capsys):
    out = tmp_path / "a.run"
    code, _, err = run(
        capsys, "run", files.folder / "idx", files.topics, "--out", out, "--model", MODEL, "-k", K, *files.reading, *flags(files.options)
    )
    assert code == (1 if files.empty else 0), err
    assert all(f"topic {qid}: " in err for qid in files.empty)
    assert names_by_topic(out.read_text().splitlines()) == without_scores(files.found)


def test_experiment(files, tmp_path):
    plan = f"""
        title = "kinds of topics"
        measures = ["AP", "docMAP@100", "MAP(D)"]
        k = {K}
        [collection]
        index = "{files.folder / "idx"}"
        [topics]
        file = "{files.topics}"
        judgements = "{files.judgements}"
        field = "{files.field}"
        [[systems]]
        name = "model"
        model = "{MODEL}"
        options = {toml_value(files.options)}
    """
    (tmp_path / "plan.toml").write_text(plan)
    done = run_experiment(load_plan(str(tmp_path / "plan.toml")), tmp_path / "out", workers=1)
    with gzip.open(tmp_path / "out" / "runs" / "1000-model.run.gz", "rt") as file:
        assert names_by_topic(file) == without_scores(files.found)
    assert {problem.split(":")[0] for problem in done.problems} == {f"topic {qid}" for qid in files.empty}
    assert any("is not searched" in note for note in done.notes) == bool(files.empty)
    [system] = done.outcome.sweeps[0].systems
    grades = judged(files)
    for name, values in system.values.items():
        measure = parse_measure(name)
        assert values == pytest.approx({qid: measure([n for n, _ in ranking], grades[qid]) for qid, ranking in files.rankings.items()})
        assert max(values.values()) > 0


def test_tune(files, capsys):
    model = MODEL.replace("alpha=0.7", "alpha=[0.7,0.2]")
    code, out, err = run(
        capsys, "tune", files.folder / "idx", files.topics, files.judgements, "--model", model, "--measure", "AP", "-k", K,
        "--folds", 0, "--workers", 1, "--json", *files.reading, *flags(files.options),
    )  # fmt: skip
    assert code == 0, err
    measure, grades = parse_measure("AP"), judged(files)
    values = [measure([name for name, _ in ranking], grades[qid]) for qid, ranking in files.rankings.items()]
    tuned = json.loads(out)
    assert tuned["scores"][tuned["settings"].index([0.7])] == pytest.approx(sum(values) / len(values), abs=1e-12)
    assert sum(values) > 0
    assert ("is not searched" in err) == bool(files.empty)


def test_learn(files, tmp_path, capsys):
    out = tmp_path / "examples.csv"
    code, _, err = run(
        capsys, "learn", "export", files.folder / "idx", files.topics, files.judgements, "--model", MODEL, "--depth", DEPTH,
        "--others", 0, "--out", out, *files.reading, *flags(files.options),
    )  # fmt: skip
    assert code == 0, err
    assert ("is not searched" in err) == bool(files.empty)
    found = {qid: {} for qid in files.rankings}
    with open(out, newline="") as file:
        for row in csv.DictReader(file):
            found[row["qid"]][row["name"]] = int(row["grade"])
    grades = judged(files)
    for qid, ranking in files.rankings.items():
        best = {name for name, _ in ranking[:DEPTH]}
        assert best <= found[qid].keys() <= best | grades[qid].keys()
        assert found[qid] == {name: max(grades[qid].get(name, 0), 0) for name in found[qid]}
