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


def notes_on_given_index(folder, collection, options, head=""):
    """The notes of an experiment with documents whose command line names an index in their place."""
    build(str(folder / "idx"), [str(folder / "mixed.jsonl")], options)
    (folder / "plan.toml").write_text(
        head + PLAN.partition("[expects]")[0].format(collection=f'documents = ["mixed.jsonl"]\n{collection}') + SYSTEM
    )
    return run_experiment(load_plan(str(folder / "plan.toml"), Given(index=str(folder / "idx"))), folder / "out", workers=1).notes


SYSTEM = '[[systems]]\nname = "bm25"\nmodel = "bm25"\n'
MIXED = {
    "id": "a",
    "passages": [
        {"id": "1", "text": "Les pompes de la mer", "language": "fr"},
        {"id": "2", "text": "pompes", "tag": "li", "language": "en"},
        {"id": "3", "text": "Pumpen", "tag": "td", "language": "de"},
    ],
}


def test_text_in_other_languages_than_the_file_indexes_is_a_warning(folder):
    (folder / "mixed.jsonl").write_text(json.dumps(MIXED))
    (note,) = notes_on_given_index(folder, 'languages = ["fr"]', BuildOptions(workers=1))
    assert note.startswith("the experiment expects --languages fr, the index also has text in ")
    assert {"en", "de"} <= set(note.partition(":")[0].split())
    assert note.endswith("index the documents with --languages fr, or give documents in place of the index")


def test_an_index_in_the_languages_of_the_file_is_no_warning(folder):
    (folder / "mixed.jsonl").write_text(json.dumps(MIXED))
    assert notes_on_given_index(folder, 'languages = ["fr"]', BuildOptions(workers=1, languages=("fr",), language="fr")) == ()


def test_misfits_of_languages_that_were_left_out_are_explained(folder):
    (folder / "mixed.jsonl").write_text(json.dumps(MIXED))
    (folder / "qrels.txt").write_text("1 0 a#1 1\n1 0 a#3 1\n")
    result = done(folder, 'documents = ["mixed.jsonl"]\nlanguages = ["fr"]')
    assert result.notes[0].endswith("; text in other languages than fr was left out by languages in [collection]")


def test_passages_with_other_tags_than_the_file_selects_are_a_warning(folder):
    (folder / "mixed.jsonl").write_text(json.dumps(MIXED))
    (note,) = notes_on_given_index(folder, 'segment = "tags:p"', BuildOptions(workers=1))
    assert note == (
        "the experiment expects --segment tags:p, the index also has passages with other tags (li, td): figures will differ; "
        "index the documents with --segment tags:p, or give documents in place of the index"
    )


def test_passages_with_the_tags_that_the_file_selects_are_no_warning(folder):
    (folder / "mixed.jsonl").write_text(json.dumps(MIXED))
    assert notes_on_given_index(folder, 'segment = "tags:p"', BuildOptions(workers=1, segment="tags:p")) == ()


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
