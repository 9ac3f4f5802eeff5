"""`[expects]`: the settings that an experiment's index is made with, or should have been made with."""

import json

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.core.errors import InputError
from perikope.evaluation.experiment.plan import load_plan, parse_plan, protocol_names
from perikope.evaluation.experiment.plan_parts import Given
from perikope.evaluation.experiment.running import run_experiment
from perikope.search.facade import Index
from perikope.search.recipes import load_recipe, recipe_names

PLAN = """
title = "t"
measures = ["nDCG@10"]
[collection]
{collection}
[topics]
file = "topics.tsv"
judgements = "qrels.txt"
[expects]
stemmer = "porter"
stopwords = "none"
language = "fr"
[[systems]]
name = "bm25"
model = "bm25"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "documents.jsonl").write_text(json.dumps({"id": "a", "passages": [{"id": "1", "text": "Les pompes de la mer"}]}))
    (tmp_path / "topics.tsv").write_text("1\tpompes\n")
    (tmp_path / "qrels.txt").write_text("1 0 a#1 1\n")
    return tmp_path


def done(folder, collection, name="out"):
    (folder / "plan.toml").write_text(PLAN.format(collection=collection))
    return run_experiment(load_plan(str(folder / "plan.toml")), folder / name, workers=1)


def test_documents_are_indexed_with_them(folder):
    result = done(folder, 'documents = ["documents.jsonl"]')
    index = Index.open(folder / "out" / "index")
    assert (index.settings["stemmer"], index.settings["stopwords"], index.languages) == ("porter", "none", ["fr"])
    assert result.notes == ()


def test_the_collection_takes_precedence_and_is_warned_about(folder):
    result = done(folder, 'documents = ["documents.jsonl"]\nstemmer = "none"')
    assert Index.open(folder / "out" / "index").settings["stemmer"] == "none"
    assert result.notes == (
        "the experiment expects --stemmer porter, the index was made with none: figures will differ; index the documents with "
        "--stemmer porter --stopwords none --language fr, or give documents in place of the index",
    )


def test_an_index_that_differs_is_a_warning(folder):
    build(str(folder / "idx"), [str(folder / "documents.jsonl")], BuildOptions(workers=1))
    result = done(folder, 'index = "idx"')
    assert [note.partition(":")[0] for note in result.notes] == [
        "the experiment expects --stemmer porter, the index was made with snowball",
        "the experiment expects --stopwords none, the index was made with default",
        "the experiment expects --language fr, the index has en",
    ]
    assert result.notes[0] in result.outcome.facts["notes"]


def test_an_index_that_is_as_expected_is_no_warning(folder):
    options = BuildOptions(workers=1, stemmer="porter", stopwords="none", language="fr")
    build(str(folder / "idx"), [str(folder / "documents.jsonl")], options)
    assert done(folder, 'index = "idx"').notes == ()


@pytest.mark.parametrize(
    ("key", "value"), [("stemmer", "potter"), ("stopwords", "some"), ("language", "english language"), ("steemer", "none")]
)
def test_mistakes_are_named(folder, key, value):
    text = PLAN.format(collection='documents = ["documents.jsonl"]').replace("[expects]\n", f'[expects]\n{key} = "{value}"\n')
    if key in ("stemmer", "stopwords", "language"):
        text = text.replace({"stemmer": 'stemmer = "porter"', "stopwords": 'stopwords = "none"', "language": 'language = "fr"'}[key], "")
    with pytest.raises(InputError, match=rf"plan\.toml.*\[expects\].*{key}"):
        parse_plan(text, "plan.toml", folder)


@pytest.mark.parametrize("name", sorted({*protocol_names()} & {*recipe_names()}))
def test_protocols_expect_what_the_recipes_of_their_papers_expect(name, folder):
    given = Given(documents=(str(folder / "documents.jsonl"),), topics=str(folder / "topics.tsv"), judgements=str(folder / "qrels.txt"))
    plan = load_plan(name, given)
    assert plan.expects == dict(load_recipe(name).expects)
    made_with = plan.collections["collection"].build
    assert {setting: getattr(made_with, setting) for setting in plan.expects} == plan.expects
