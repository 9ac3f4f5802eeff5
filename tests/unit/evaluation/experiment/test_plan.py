from pathlib import Path

import pytest

from perikope.core.errors import InputError, PerikopeError, UsageError
from perikope.evaluation.experiment.plan import load_plan, parse_plan
from perikope.evaluation.experiment.plan_parts import Given
from tests.unit.evaluation.conftest import PLAN, lexical_protocols


def parsed(text, **given):
    return parse_plan(text, "experiment.toml", Path("folder"), Given(**given))


def test_a_plan_says_everything():
    plan = parsed(PLAN)
    assert plan.collections["collection"].documents == (Path("folder/documents.jsonl"),)
    assert (plan.sets[0].topics.file, plan.sets[0].topics.judgements) == ("folder/topics.tsv", "folder/qrels.txt")
    assert plan.documents == (4, 100)
    assert [system.name for system in plan.systems] == ["bm25", "section", "learned", "fused"]
    assert len(plan.systems[1].space.settings) == 6
    assert plan.systems[3].of == ("bm25", "section")
    assert (plan.comparison.test, plan.comparison.correction, plan.comparison.alpha) == ("t", "holm", 0.05)


def test_the_command_line_goes_before_the_file():
    plan = parsed(PLAN, index="idx", topics="t.tsv", judgements="q.txt", training_topics="tt.tsv", training_judgements="tq.txt")
    assert plan.collections["collection"].index == Path("idx")
    assert (plan.sets[0].topics.file, plan.sets[0].topics.judgements) == ("t.tsv", "q.txt")
    assert (plan.sets[0].training.topics.file, plan.sets[0].training.folds) == ("tt.tsv", 0)


def test_options_of_a_system_go_before_its_recipe_and_this_before_all():
    text = PLAN + '\n[search]\nfetch = "lm"\nlanguage = "en"\n[[systems]]\nname = "carmel"\nrecipe = "carmel2013"\n'
    text += '[[systems]]\nname = "other"\nrecipe = "carmel2013"\noptions = { fetch = "dph" }\n'
    systems = {system.name: system for system in parsed(text).systems}
    assert systems["bm25"].options == {"fetch": "lm", "language": "en"}
    assert systems["carmel"].options == {"fetch": "bm25(k1=0.6,b=0.2)", "language": "en"}
    assert systems["carmel"].model.startswith("plm(")
    assert systems["other"].options["fetch"] == "dph"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "A small experiment"', "title = 3", "experiment.toml: title must be text"),
        ("k = 50", "kk = 50", "unknown key of an experiment 'kk'"),
        ("k = 50", "k = 0", "k must be a whole number of at least 1"),
        ("k = 50", "k = ", "is not TOML"),
        ('"MAP(D)"]', '"MAP(D)", "nDGC@10"]', "measures is wrong: unknown measure 'nDGC'"),
        ('"MAP(D)"]', '"nDCG@10"]', "twice"),
        ('measures = ["nDCG@10", "MAP(D)"]', "", "at least one measure"),
        ('documents = ["documents.jsonl"]', "", r"\[collection\] index or documents"),
        ('documents = ["documents.jsonl"]', 'documents = ["a"]\nstemer = "none"', "did you mean 'stemmer'"),
        ('documents = ["documents.jsonl"]', 'index = "idx"\nstemmer = "none"', "does not apply to an existing index"),
        ('documents = ["documents.jsonl"]', 'documents = ["a"]\nsegment = "pages"', r"\[collection\] segment is wrong"),
        ('file = "topics.tsv"', "", r"\[topics\] file must name a file \(or --topics\)"),
        ("folds = 3", 'folds = 3\nfolds_by = "weeks"', r"\[training\] folds_by is wrong"),
        ("folds = 3", 'folds = 3\ntopics = "t"', r"\[training\] folds cannot be combined with topics"),
        ("folds = 3", "folds = 1", "at least 2"),
        ("[training]\nfolds = 3", "", r"\[system section\] tune needs topics to tune on"),
        ("documents = [4, 100]", "documents = [4, 4]", "lists a number twice"),
        ("documents = [4, 100]", 'documents = ["many"]', "documents number 1 must be a whole number, not text"),
        ("documents = [4, 100]", "documents = []", r"\[sweep\] documents is empty"),
        ('documents = ["documents.jsonl"]', 'index = "idx"\ndocuments = []', r"\[collection\] documents is empty"),
        ("alpha=[0.2,0.6,0.9]", "alpha=[0.2,7]", r"\[system section\] tune is wrong: qsf_section: alpha=7\.0 is out of range"),
        ("alpha=[0.2,0.6,0.9]", "alpha=[]", r"\[system section\] tune is wrong: qsf_section: alpha=\[\] has no value"),
        ('name = "bm25"\nmodel = "bm25"', 'name = "bm25"\nmodel = "bm52"', r"\[system bm25\] model is wrong: unknown model 'bm52'"),
        ('name = "bm25"\nmodel = "bm25"', 'name = "bm25"', "model or recipe, or run, must be given"),
        ('name = "bm25"\nmodel', 'name = "bm25"\nmodle', r"unknown key in \[system bm25\] 'modle'"),
        ('name = "bm25"', 'name = "section"', "name is used twice"),
        ('name = "bm25"', 'name = "section."', "differ in no letter or digit"),
        ("tune = true", 'tune = ["gamma"]', r"\[system section\] tune is wrong: unknown parameter"),
        ("tune = true", "tune = 3", "must be true, a list of parameters"),
        ("tune = true", 'search = "random"', "is only for tuning"),
        ('learn = "fusion"', 'learn = "fusoin"', "did you mean 'fusion'"),
        ('learn = "fusion"', 'learn = "tags"', "model must be prox or prox_h or prox_hw with learn = 'tags'"),
        ('model = "learned"\nlearn = "fusion"', 'model = "prox"\nlearn = "tags"', "write elements = true in its options"),
        ('learn = "fusion"', 'method = "linear"', "is only for learning"),
        ('learn = "fusion"', 'learn = "fusion"\nmin_occurrences = 3', "is only for learn = 'tags'"),
        ('of = ["bm25", "section"]', 'of = ["bm25", "sections"]', "did you mean 'section'"),
        ('of = ["bm25", "section"]', 'of = ["bm25", "learned"]', "only models can be fused"),
        ('of = ["bm25", "section"]', 'of = ["bm25"]', "at least two"),
        ('model = "fuse"', 'model = "lm"', "must be fuse or rrf"),
        ("[sweep]", "[search]\nfecth = 1\n[sweep]", r"unknown key in \[search\] 'fecth'"),
        ("[sweep]", '[search]\nfetch = "bm52"\n[sweep]', r"\[search\] fetch is wrong"),
        ("[sweep]", "[search]\nfetch = 3\n[sweep]", "fetch must be text"),
        ("[sweep]", '[comparison]\ntest = "z"\n[sweep]', r"\[comparison\] test is wrong"),
        ("[sweep]", "[comparison]\nalpha = 5\n[sweep]", r"\[comparison\] alpha must be in \(0, 1\]"),
        (
            'documents = ["documents.jsonl"]',
            'documents = ["a"]\nstemmer = "foo"',
            r"\[collection\] stemmer is wrong: unknown stemmer 'foo'",
        ),
        (
            'documents = ["documents.jsonl"]',
            'documents = ["a"]\nlanguage = "E9"',
            r"\[collection\] language is wrong: 'E9' is not a language",
        ),
        ('documents = ["documents.jsonl"]', 'documents = ["a"]\nformat = "foo"', r"\[collection\] format is wrong: unknown format 'foo'"),
        ('documents = ["documents.jsonl"]', 'documents = ["a"]\nformat = "my.toml"', r"\[collection\] format is wrong: folder.my\.toml: "),
        ('documents = ["documents.jsonl"]', 'documents = ["a"]\nstopwords = "none.txt"', r"\[collection\] stopwords is wrong: .*none\.txt"),
        ('file = "topics.tsv"', 'file = "topics.tsv"\nform = "foo"', r"\[topics\] form is wrong: unknown form 'foo'"),
        ('file = "topics.tsv"', 'file = "t"\njudgement_form = "foo"', r"\[topics\] judgement_form is wrong: unknown judgement_form 'foo'"),
        ("folds = 3", 'topics = "t"\njudgements = "q"\nform = "foo"', r"\[training\] form is wrong: unknown form 'foo'"),
        ("[sweep]", '[search]\nfilter = "year>>3"\n[sweep]', r"\[search\] filter is wrong: .*year>>3"),
        ("[sweep]", '[search]\nfilter = ["a=1", "year>>3"]\n[sweep]', r"\[search\] filter is wrong: .*year>>3"),
        ("[sweep]", '[search]\nexpand = "rm4"\n[sweep]', r"\[search\] expand is wrong: .*did you mean 'rm3'"),
        ("[sweep]", '[search]\nsyntax = "bool"\n[sweep]', r"\[search\] syntax is wrong: unknown syntax 'bool'"),
        ("[sweep]", '[search]\ncode_level = "all"\n[sweep]', r"\[search\] code_level is wrong"),
        ("[sweep]", "[search]\ndocuments = 9\n[sweep]", r"\[sweep\] documents is also set in \[search\]"),
        ('model = "bm25"', 'model = "bm25"\noptions = { filter = "year>>3" }', r"\[system bm25\.options\] filter is wrong: .*year>>3"),
        (
            'model = "bm25"',
            'model = "bm25"\noptions = { documents = 1 }',
            r"\[system bm25\.options\] documents is the same for all systems",
        ),
        (
            'beta=[0.1,0.5])"\ntune = true',
            'beta)"',
            r"\[system section\] model has parameters without a value \(alpha, beta\); add tune = true",
        ),
        ('model = "bm25"', 'model = "bm25(k9)"', r"\[system bm25\] model is wrong: unknown parameter of bm25 'k9'"),
    ],
)
def test_mistakes_are_named_with_file_and_key(old, new, said):
    assert old in PLAN
    with pytest.raises(PerikopeError, match=said) as error:
        parsed(PLAN.replace(old, new, 1))
    assert "experiment.toml" in str(error.value)


def test_a_model_that_is_tuned_keeps_the_values_it_was_given_and_a_recipe_gives_none():
    text = PLAN + '\n[[systems]]\nname = "given"\nmodel = "qsf_section(beta=0.1)"\ntune = true\n'
    text += '[[systems]]\nname = "carmel"\nrecipe = "carmel2013"\ntune = true\n'
    systems = {system.name: system for system in parsed(text).systems}
    assert "beta" not in systems["given"].space.values
    assert {model.parameters["beta"] for model in systems["given"].space.models} == {0.1}
    assert set(systems["carmel"].space.values) >= {"sigma", "lam"}


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(PerikopeError, match="cannot read the experiment"):
        load_plan(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(PerikopeError, match="not UTF-8"):
        load_plan(str(tmp_path / "bytes.toml"))
    with pytest.raises(PerikopeError, match="unknown protocol 'carmel'; did you mean 'carmel2013'"):
        load_plan("carmel")


@pytest.mark.parametrize("name", lexical_protocols())
def test_protocols_run_on_any_collection(name):
    with pytest.raises(PerikopeError, match="index or documents"):
        load_plan(name)
    plan = load_plan(name, Given(index="idx", topics="topics.tsv", judgements="qrels.txt"))
    assert plan.systems
    assert plan.title


NAMED = """
measures = ["AP"]
report_on = ["c/t"]

[collections.c]
index = "idx"
topics.t = { file = "t.tsv", judgements = "q.txt" }

[[systems]]
name = "bm25"
model = "bm25"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('report_on = ["c/t"]', "", "report_on must name the sets of topics that are reported"),
        ('"c/t"', '"c/u"', "report_on is wrong: unknown set of topics 'c/u'"),
        ('"c/t"]', '"c/t"]\ntrain_on = ["d/t"]', "train_on is wrong: unknown set of topics 'd/t'"),
        ("[collections.c]", "[collection]\nindex = 'idx'\n[collections.c]", "collection is for a file with one collection"),
        (', judgements = "q.txt"', "", r"\[collections.c.topics.t\] judgements must name a file"),
        ('model = "bm25"', 'model = "bm25(k1)"\ntune = true', "needs topics to tune on"),
        ('model = "bm25"', 'runs = { "c/u" = "a.run" }', r"\[system bm25\] runs is wrong: unknown reported set of topics 'c/u'"),
        ('model = "bm25"', 'run = "a.run"\nruns = { "c/t" = "a.run" }', "run is for one set of topics"),
        ('model = "bm25"', 'model = "bm25"\nseeds = 2', "unknown key in .*'seeds'"),
    ],
)
def test_mistakes_in_a_file_with_several_collections(old, new, message):
    parse_plan(NAMED, "e.toml", Path())
    with pytest.raises(InputError, match=message):
        parse_plan(NAMED.replace(old, new), "e.toml", Path())


def test_a_file_with_collections_takes_none_from_the_command_line():
    with pytest.raises(UsageError, match=r"--index, --topics: e\.toml names its collections"):
        parse_plan(NAMED, "e.toml", Path(), Given(index="idx", topics="t.tsv"))


def test_an_unknown_kind_of_systems_is_an_error():
    with pytest.raises(InputError, match="kind is wrong: unknown kind of systems 'nonsense'"):
        parse_plan(f'kind = "nonsense"\n{NAMED}', "e.toml", Path())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[collections.c]", '[collections."../c"]', r"collections has a wrong name: '\.\./c'"),
        ('report_on = ["c/t"]', 'report_on = ["c/t", "c/t"]', "report_on names a set twice"),
    ],
)
def test_names_of_sets_are_names_of_files(old, new, message):
    with pytest.raises(InputError, match=message):
        parse_plan(NAMED.replace(old, new), "e.toml", Path())
