"""A topic has one ranking: `search`, `run`, `tune`, `learn` and `experiment` agree for all topics and options."""

import csv
import gzip
import json

import pytest

from perikope import cli
from perikope.evaluation.experiment.outcome import slug
from perikope.evaluation.io.topics import read_topics
from perikope.evaluation.measures import parse_measure
from perikope.search.facade import Index
from perikope.search.recipe_files import toml_value
from tests.cli.test_commands import run
from tests.support.patents import families

FAMILY, OTHER = families()[0], families()[1]
MODEL, K, DEPTH = "qsf_v_title(mu=1000.0,content=lm,alpha=0.7)", 200, 5

TOPICS = [
    {"qid": "words", "query": "submersible pump strainer"},
    {"qid": "browse", "query": "submersible pump", "browse": "gasket impeller"},
    {"qid": "filter", "query": "pump strainer", "filter": ["date<2001", "country=EP|US"]},
    {"qid": "ids", "query": "pump strainer", "ids": [FAMILY.earlier.id, FAMILY.later.id]},
    {"qid": "codes", "query": "pump strainer", "shares_codes_with": FAMILY.earlier.id},
    {"qid": "part", "query": "pump strainer", "part": "claims"},
    {"qid": "german", "query": "Tauchpumpe impeller", "language": "de"},
    {"qid": "boolean", "query": '(strainer OR volute) AND NOT "side view"', "syntax": "boolean"},
    {"qid": "must", "query": "gasket strainer", "must_match": True},
    {"qid": "candidates", "query": "strainer", "candidates": {FAMILY.later.id: 2.0, OTHER.earlier.id: 1.0}},
    {"qid": "patent", "patent": "EP0900100A1"},
    {"qid": "claims", "patent": "EP0900100A1", "claims": ["/patent-document/claims/claim[2]"], "date_limit": False},
    {"qid": "file", "patent": f"{OTHER.members[0].id}.xml", "family": [OTHER.earlier.id], "date_limit": False},
    {"qid": "both", "query": "strainer volute", "patent": "EP0900100A1"},
    {"qid": "both-open", "query": "strainer", "patent": "EP0900100A1", "code_filter": False, "date_limit": False},
]
OPTIONS = {
    "plain": {},
    "language": {"language": "en"},
    "levels": {"code_level": "class", "filter": ["date<2003"]},
    "patents": {"fetch_words": 3, "browse_words": 4, "browse_from": ["abstract", "claims"], "date_limit": False, "weighted": True},
    "fetch": {"fetch": "pl2", "expand": "rm3", "browse_expand": "bo1"},
    "parts": {"part": ["claims", "description"], "one_per": "family", "fetch_parts": {"claims": 2.0, "abstract": 1.0}},
    "layout": {"no_overlap": True, "group_by_document": "fetch"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An index, topics, and as judgement for each topic one passage from the middle of its ranking."""
    folder = tmp_path_factory.mktemp("topics")
    documents = folder / "documents"
    documents.mkdir()
    for family in families():
        for patent in family.everything:
            (documents / f"{patent.id}.xml").write_text(patent.xml, encoding="utf-8")
    (folder / f"{OTHER.members[0].id}.xml").write_text(OTHER.members[0].xml, encoding="utf-8")
    (folder / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in TOPICS))
    with pytest.raises(SystemExit) as done:
        cli.main(["index", str(documents), "--to", str(folder / "idx")])
    assert done.value.code == 0
    return folder


@pytest.fixture(scope="module", params=OPTIONS)
def setting(request, files):
    """Options, and the ranking that single searches with them give to each topic."""
    options = {**OPTIONS[request.param], "model": MODEL, "k": K}
    index = Index.open(files / "idx")
    rankings = {topic.qid: index.search(topic, **options).names() for topic in read_topics(files / "topics.jsonl")}
    assert all(rankings.values())
    own = files / request.param
    own.mkdir()
    judged = {qid: ranking[len(ranking) // 2][0] for qid, ranking in rankings.items()}
    (own / "qrels.txt").write_text("".join(f"{qid} 0 {name} 1\n" for qid, name in judged.items()))
    return own, OPTIONS[request.param], rankings, judged


def flags(options):
    """Options as a command line has them."""
    found = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            found.append(option if value else f"--no-{name.replace('_', '-')}")
        elif isinstance(value, dict):
            found += [option, ",".join(f"{part}={weight}" for part, weight in value.items())]
        elif isinstance(value, list):
            found += [option, ",".join(value)] if name == "browse_from" else [text for one in value for text in (option, one)]
        else:
            found.append(f"{option}={value}")
    return found


def test_the_kinds_of_topics_differ(setting):
    _, _, rankings, _ = setting
    assert len({tuple(ranking) for ranking in rankings.values()}) >= len(rankings) - 3


def test_run(setting, files, capsys):
    folder, options, rankings, _ = setting
    out = folder / "a.run"
    code, _, err = run(
        capsys, "run", files / "idx", files / "topics.jsonl", "--out", out, "--model", MODEL, "-k", K, "--threads", 2, *flags(options)
    )
    assert code == 0, err
    assert names_by_topic(out.read_text().splitlines()) == without_scores(rankings)


def test_experiment(setting, files, capsys):
    folder, options, rankings, judged = setting
    plan = f"""
        title = "kinds of topics"
        measures = ["AP"]
        k = {K}
        [collection]
        index = "{files / "idx"}"
        [topics]
        file = "{files / "topics.jsonl"}"
        judgements = "qrels.txt"
        [[systems]]
        name = "model"
        model = "{MODEL}"
        options = {toml_value(options)}
    """
    (folder / "plan.toml").write_text(plan)
    assert run(capsys, "experiment", folder / "plan.toml", "--out", folder / "results")[0] == 0
    with gzip.open(folder / "results" / "runs" / f"1000-{slug('model')}.run.gz", "rt") as file:
        assert names_by_topic(file) == without_scores(rankings)
    values = json.loads((folder / "results" / "experiment.json").read_text())
    assert values["title"] == "kinds of topics"
    assert judged


def test_tune(setting, files, capsys):
    folder, options, rankings, judged = setting
    model = MODEL.replace("alpha=0.7", "alpha=[0.7,0.2]")
    code, out, err = run(
        capsys, "tune", files / "idx", files / "topics.jsonl", folder / "qrels.txt", "--model", model, "--measure", "AP", "-k", K,
        "--folds", 0, "--workers", 1, "--json", *flags(options),
    )  # fmt: skip
    assert code == 0, err
    measure = parse_measure("AP")
    means = sum(measure([name for name, _ in ranking], {judged[qid]: 1}) for qid, ranking in rankings.items()) / len(rankings)
    tuned = json.loads(out)
    assert tuned["scores"][tuned["settings"].index([0.7])] == pytest.approx(means, abs=1e-12)


def test_learn(setting, files, capsys):
    folder, options, rankings, judged = setting
    out = folder / "examples.csv"
    code, _, err = run(
        capsys, "learn", "export", files / "idx", files / "topics.jsonl", folder / "qrels.txt", "--model", MODEL, "--depth", DEPTH,
        "--others", 0, "--out", out, *flags(options),
    )  # fmt: skip
    assert code == 0, err
    found = {qid: set() for qid in rankings}
    with open(out, newline="") as file:
        for row in csv.DictReader(file):
            found[row["qid"]].add(row["name"])
    assert found == {qid: {name for name, _ in ranking[:DEPTH]} | {judged[qid]} for qid, ranking in rankings.items()}


def names_by_topic(lines):
    found = {}
    for line in lines:
        qid, _, name, *_ = line.split()
        found.setdefault(qid, []).append(name)
    return found


def without_scores(rankings):
    return {qid: [name for name, _ in ranking] for qid, ranking in rankings.items()}
