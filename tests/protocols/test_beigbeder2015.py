"""The protocol of Beigbeder, Géry and Largeron 2015 on a look-alike of INEX, from the files that the paper used.

The look-alike plants the paper's effect: `b` marks words of the topic in relevant paragraphs, `it` in others as close.
So proximity with tag weights must be better than proximity alone, by the paper's own test.
"""

import re

import pytest

from perikope import cli
from perikope.browse.structure import known_tags
from perikope.browse.tags import semantic_tags
from perikope.evaluation.experiment.outcome import Outcome, slug
from perikope.evaluation.experiment.plan import protocol_text
from perikope.evaluation.io.runs import read_run
from perikope.evaluation.measures import ranked_names
from perikope.evaluation.measures.significance import compare
from perikope.index.reader import Snapshot
from tests.support.lookalikes.wikipedia import make_wikipedia

TOPICS = 12
REFERENCE = "Reference (BM25, whole documents)"
BY_HAND = re.compile(r"<title>(\w+) (\w+) (\w+)</title>")
"""The look-alike has topics of three words."""


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """A collection whose topics also have a query by hand."""
    made = make_wikipedia(tmp_path_factory.mktemp("inex") / "wikipedia", "tags", topics=TOPICS, relevant=2, decoys=2)
    topics = made.topics.read_text(encoding="utf-8")
    made.topics.write_text(BY_HAND.sub(r"\g<0><boolean>\1 AND (\2 OR absent) AND \3</boolean>", topics), encoding="utf-8")
    return made


def experiment(collection, file, folder):
    """The outcome of the command."""
    given = {
        "--documents": collection.documents,
        "--topics": collection.topics,
        "--judgements": collection.judgements,
        "--training-topics": collection.training_topics,
        "--training-judgements": collection.training_judgements,
        "--out": folder,
        "--workers": 1,
    }
    with pytest.raises(SystemExit) as done:
        cli.main(["experiment", str(file), *(str(part) for option in given.items() for part in option)])
    assert done.value.code == 0
    return Outcome.load(folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "beigbeder2015"


@pytest.fixture(scope="module")
def outcome(collection, finished):
    return experiment(collection, "beigbeder2015", finished)


def results(finished, system):
    """The results of a system in its run, best first, by topic."""
    return {qid: ranked_names(scores) for qid, scores in read_run(finished / "runs" / f"1500-{slug(system)}.run.gz").items()}


def test_tag_weights_are_better_than_proximity_alone_and_this_than_whole_documents(outcome):
    for measure in outcome.measures:
        values = {system.name: system.values[measure] for system in outcome.sweeps[0].systems}
        beaten = compare(values, test=outcome.comparison.test, correction=outcome.comparison.correction).beaten
        for queries in ("automatic", "by hand"):
            assert REFERENCE in beaten[f"prox, {queries}"]
            for better in ("prox-h", "prox-hw"):
                assert {REFERENCE, f"prox, {queries}"} <= {*beaten[f"{better}, {queries}"]}
    assert (outcome.comparison.test, outcome.comparison.correction, outcome.comparison.alpha) == ("wilcoxon", "none", 0.05)


def test_results_have_learned_logical_tags(outcome, finished):
    """Titles of sections and categories mark too few words to be logical."""
    [learned] = {
        re.search(r"learned logical tags: ([\w, ]+)", " ".join(system.notes))[1]
        for system in outcome.sweeps[0].systems
        if system.name.startswith("prox")
    }
    logical = set(learned.split(", "))
    assert {"article", "bdy", "p", "sec"} <= logical < set(known_tags(Snapshot.open(finished / "index")))
    for name in ("prox, automatic", "prox-h, automatic", "prox-hw, by hand"):
        tags = {result.rpartition("/")[2].partition("[")[0] for ranking in results(finished, name).values() for result in ranking}
        assert "p" in tags
        assert tags <= logical


def test_the_baselines_of_table_5_return_one_section_per_document(outcome, finished):
    for name in ("the first section (p98-I10LIA1FTri)", "the first section with a query term (p5-reference)"):
        for ranking in results(finished, name).values():
            documents = [result.partition("#")[0] for result in ranking]
            assert len(documents) == len(set(documents))
            assert all(re.search(r"/sec\[\d\]$", result) for result in ranking)


def test_the_report_has_the_tables_of_the_paper(outcome, finished):
    report = (finished / "report.md").read_text(encoding="utf-8")
    assert [table.name for table in outcome.published] == ["Table 2", "Table 3", "Table 4", "Table 5"]
    for text in ("Tag weights", "words per query", "0.1977", "0.1629"):
        assert text in report
    systems = {system.name: system for system in outcome.sweeps[0].systems}
    weights = next(table for table in systems["prox-h, automatic"].tables if table.title == "Tag weights")
    weight_of = {name: cells[0].mean for _, name, cells in weights.rows}
    assert weight_of["b"] > 1.5 > 1 > weight_of["it"]
    for name in ("prox, automatic", "prox-h, automatic", "prox-hw, automatic"):
        [figure] = systems[name].figures
        assert len(figure.series) == 4, "the query and three words"
        query, *words = ([y for _, y in series.points] for series in figure.series)
        assert query == [min(values) for values in zip(*words, strict=True)]
    assert (semantic := semantic_tags(Snapshot.open(finished / "index")))
    assert semantic.isdisjoint(weight_of)


LONG = """
title = "Questions"
measures = ["MAgP(t2i=300)"]
k = 1500
[collection]
stemmer = "none"
stopwords = "none"
[topics]
field = "description,narrative"
[training]
field = "description,narrative"
[search]
elements = true
no_overlap = true
group_by_document = "fetch"
keep_unmatched = true
[comparison]
test = "wilcoxon"
correction = "none"
"""


def test_long_queries_in_natural_language(collection, tmp_path):
    """All words of a question never stand together, so AND of them gives whole documents. Its rarest words still do."""
    systems = {"whole": "qsf_v(alpha=0.0)", "all words": "prox_h", "rarest words": "prox_h(rarest=3)"}
    text = LONG
    for name, model in systems.items():
        learn = 'learn = "tags"\nmin_occurrences = 100\n' if "prox" in model else ""
        text += f'[[systems]]\nname = "{name}"\nmodel = "{model}"\n{learn}options = {{ syntax = "automatic" }}\n'
    (tmp_path / "long.toml").write_text(text, encoding="utf-8")
    outcome = experiment(collection, tmp_path / "long.toml", tmp_path / "results")
    means = {system.name: system.mean("MAgP(t2i=300)") for system in outcome.sweeps[0].systems}
    assert means["all words"] == pytest.approx(means["whole"])
    assert means["rarest words"] > 2 * means["all words"]


def test_the_thresholds_are_those_of_the_paper():
    protocol = protocol_text("beigbeder2015")
    assert protocol.count('learn = "tags"') == protocol.count("min_occurrences = 1000") == 7
