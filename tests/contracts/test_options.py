"""Every option of a search reaches every surface and changes the result there.

Surfaces are keywords of `Index.search`, the command line, recipes, experiments, topics in JSON Lines, and the JSON
schema. A new option without a case here fails `test_every_option_has_a_case`; no other test needs to know it.
"""

import gzip
import importlib.util
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perikope import cli
from perikope.core.errors import InputError, UsageError
from perikope.core.options import checked_options
from perikope.core.values import Lines, Names, NamesOrAll, Numbers, OneOf, Real, Switch, Whole
from perikope.evaluation.experiment.outcome import slug
from perikope.evaluation.experiment.plan import load_plan
from perikope.evaluation.experiment.running import run_experiment
from perikope.evaluation.io.topics import read_topics
from perikope.fetch import Candidates
from perikope.fetch.fetchers import BY_VECTORS, FETCHERS
from perikope.query.topic import Topic
from perikope.search.facade import Index
from perikope.search.options import GROUPS, LEXICAL, OPTIONS, RECIPE, TOPIC, SearchOptions, json_schema, options_on
from perikope.search.recipe_files import toml_value
from tests.cli.test_commands import run
from tests.support.patents import families

FAMILY = families()[0]
WORDS, PATENT = "submersible pump strainer", "EP0900100A1"
OTHERS = [
    {"id": "n1", "title": "Strainers", "metadata": {"ipc": ["F04D 13/08"], "date": "1999-01-01"}, "sections": [
        {"title": "Pump", "part": "description", "passages": ["A strainer.", "A pump strainer, a pump strainer, a pump.", "Brine."]}]},
    {"id": "n2", "title": "Other", "metadata": {"ipc": ["F04B 1/00"], "date": "1998-01-01"}, "sections": [
        {"title": "Gasket", "part": "claims", "passages": ["A submersible thing.", {"text": "The pump.", "tag": "note"}]}]},
]  # fmt: skip
"""Documents whose codes, dates and parts differ from those of the families."""
EVERYTHING = {"k": 1000}
"""So that what changes in the middle of a ranking is seen."""


@dataclass(frozen=True)
class Case:
    """A value of an option, and the search in which it changes something."""

    value: Any
    base: dict[str, Any] = field(default_factory=dict)
    query: str = WORDS
    with_patent: bool = False

    def topic(self, qid: str) -> Topic:
        return Topic(qid, patent=PATENT) if self.with_patent else Topic(qid, self.query)


def of_patent(value: Any, base: dict[str, Any] | None = None) -> Case:
    return Case(value, base or {}, with_patent=True)


OPEN = {"code_filter": False, "date_limit": False, "family_filter": False}
CASES = {
    "model": Case("bm25"),
    "browse_query": Case("gasket beside the impeller"),
    "syntax": Case("boolean", query="strainer NOT gasket"),
    "language": Case("de", query="impeller volute"),
    "synonyms": Case(["strainer, gasket"], query="strainer"),
    "fuzzy": Case(1, query="strianer"),
    "browse_expand": Case("bo1"),
    "fetch": Case("sim(mu=2)", {"model": "psg_doc"}),
    "documents": Case(2),
    "fetch_parts": Case({"claims": 2.0}, {"model": "psg_doc"}),
    "expand": Case("bo1"),
    "also_nearest": Case("own", {"documents": 1}),
    "rescore": Case("lm", {"model": "psg_doc"}),
    "rescore_weight": Case(1.0, {"model": "psg_doc", "rescore": "lm"}),
    "candidates": Case({FAMILY.later.id: 1.0, FAMILY.other_codes.id: 2.0}),
    "filter": Case("date<2000"),
    "ids": Case([FAMILY.later.id]),
    "shares_codes_with": Case(FAMILY.earlier.id),
    "code_level": of_patent("class"),
    "part": Case("claims"),
    "tag": Case(["claim"]),
    "without_tag": Case(["claim"]),
    "must_match": Case(True),
    "across_passages": Case(True, query="gasket brine"),
    "k": Case(3),
    "offset": Case(2),
    "elements": Case(["claims", "claim"]),
    "no_overlap": Case(True, {"elements": True}),
    "keep_unmatched": Case(True, {"elements": True, "no_overlap": True, "model": "prox", "syntax": "boolean"}, "gasket AND brine"),
    "group_by_document": Case("score"),
    "one_per": Case("family"),
    "fetch_words": of_patent(1, {**OPEN, "model": "psg_doc"}),
    "fetch_from": of_patent("claims", {**OPEN, "model": "psg_doc", "fetch_words": 1}),
    "browse_words": of_patent(1),
    "browse_from": of_patent(["title"]),
    "weighted": of_patent(True),
    "code_filter": of_patent(False),
    "date_limit": of_patent(False),
    "family_filter": of_patent(False, {"date_limit": False}),
    "translator": of_patent("http://127.0.0.1:9/", {**OPEN, "language": "fr"}),
}


def test_every_option_has_a_case():
    assert list(CASES) == list(OPTIONS)


def build_index(folder, to):
    """Index the families and the other documents; their files are written to `folder`."""
    for family in families():
        for patent in family.everything:
            (folder / f"{patent.id}.xml").write_text(patent.xml, encoding="utf-8")
    (folder / "others.jsonl").write_text("".join(json.dumps(document) + "\n" for document in OTHERS))
    with pytest.raises(SystemExit) as done:
        cli.main(["index", str(folder), "--to", str(to)])
    assert done.value.code == 0
    return to


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(tmp_path_factory.mktemp("patents"), tmp_path_factory.mktemp("index") / "idx")


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """Vectors and a translation server, which the tests do not have."""

    def nearest(snapshot, text, store, most, allowed):
        return Candidates(np.array([snapshot.find_document(FAMILY.other_codes.id)]), np.ones(1))

    FETCHERS.names()
    monkeypatch.setitem(FETCHERS._things, BY_VECTORS, nearest)
    monkeypatch.setattr("perikope.patents.translation.LibreTranslate.__call__", lambda self, text, source, target: "volute")


def found(index, topic, **options):
    return Index.open(index).search(topic, **{**EVERYTHING, **options}).names()


def with_option(index, name):
    """What a search with the option finds, and one without."""
    case = CASES[name]
    topic = case.topic("1")
    return found(index, topic, **{**case.base, name: case.value}), found(index, topic, **case.base)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_keyword_changes_the_result(index, name):
    with_it, without = with_option(index, name)
    assert with_it != without
    assert with_it


def arguments(name, value):
    """An option as a command line has it."""
    one = OPTIONS[name]
    if isinstance(one.kind, Switch):
        return [one.command_line]
    if isinstance(one.kind, NamesOrAll):
        return [one.command_line] if value is True else [f"{one.command_line}={','.join(value)}"]
    if isinstance(one.kind, OneOf) and one.kind.when_true is not None:
        return [f"{one.command_line}={value}"]
    if isinstance(one.kind, Numbers):
        return [one.command_line, ",".join(f"{part}={number}" for part, number in value.items())]
    if isinstance(one.kind, Names) and not isinstance(value, str):
        return [text for each in value for text in (one.command_line, each)]
    return [one.command_line, str(value)]


@pytest.mark.parametrize("name", OPTIONS)
def test_the_command_line_has_it(index, name, capsys, tmp_path):
    case, value = CASES[name], CASES[name].value
    if name == "candidates":
        value = tmp_path / "a.run"
        value.write_text("".join(f"q Q0 {id} {rank} {score} x\n" for rank, (id, score) in enumerate(case.value.items(), 1)))
    elif name == "ids":
        (tmp_path / "ids.txt").write_text("\n".join(value))
        value = [str(tmp_path / "ids.txt")]
    elif isinstance(OPTIONS[name].kind, Lines):
        (tmp_path / "lines.txt").write_text("\n".join(value))
        value = tmp_path / "lines.txt"
    options = [text for other, given in case.base.items() for text in arguments(other, given)]
    options += [OPTIONS[name].command_line, value] if name == "candidates" else arguments(name, value)
    asked = ["--patent", PATENT] if case.with_patent else [case.query]
    if name != "k":
        options += ["-k", EVERYTHING["k"]]
    code, out, _ = run(capsys, "search", index, *asked, "--json", *options)
    assert code == 0
    hits = [json.loads(line) for line in out.splitlines()]
    assert [(f"{hit['document']}#{hit['passage']}", hit["score"]) for hit in hits] == [
        (name.replace("%20", " "), score) for name, score in with_option(index, name)[0]
    ]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_recipe_has_it_or_refuses_it(index, name, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f"[search]\n{name} = {toml_value(CASES[name].value)}\n")
    case = CASES[name]
    rest = case.base if name == "k" else {**EVERYTHING, **case.base}
    if RECIPE not in OPTIONS[name].surfaces:
        with pytest.raises(InputError, match=f"{name} belongs to one query, not to a recipe"):
            Index.open(index).search(case.topic("1"), recipe=str(path), **rest)
        return
    assert Index.open(index).search(case.topic("1"), recipe=str(path), **rest).names() == with_option(index, name)[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_topic_has_it_or_refuses_it(index, name, tmp_path):
    case, path = CASES[name], tmp_path / "topics.jsonl"
    topic = case.topic("1")
    path.write_text(json.dumps({"qid": "1", "query": topic.query, "patent": topic.patent, name: case.value}))
    if TOPIC not in OPTIONS[name].surfaces:
        with pytest.raises(Exception, match=f"'{name}' is an option of a whole search"):
            read_topics(path)
        return
    [read] = read_topics(path)
    assert found(index, read, **case.base) == with_option(index, name)[0]


def test_experiments_have_every_option_of_recipes(index, tmp_path):
    """One experiment with two systems per option, with and without it; their runs are those of single searches."""
    words = {name: case.query for name, case in CASES.items()}
    queries = [*dict.fromkeys(words.values())]
    topics = [{"qid": f"w{number}", "query": query} for number, query in enumerate(queries)] + [{"qid": "p", "patent": PATENT}]
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    (tmp_path / "qrels.txt").write_text("".join(f"{topic['qid']} 0 {FAMILY.later.id}#claim-1 1\n" for topic in topics))
    tried = [name for name in options_on(RECIPE) if name not in ("model", "k", "documents")]
    lines = ['title = "t"', 'measures = ["AP"]', "k = 1000", f"[collection]\nindex = {json.dumps(str(index))}"]
    lines += ['[topics]\nfile = "topics.jsonl"\njudgements = "qrels.txt"', "[sweep]\ndocuments = [2, 1000]"]
    for name in tried:
        for system, options in ((f"{name} with", {**CASES[name].base, name: CASES[name].value}), (f"{name} without", CASES[name].base)):
            given = {key: value for key, value in options.items() if key not in ("model", "documents")}
            model = options.get("model", LEXICAL)
            lines += ["[[systems]]", f"name = {json.dumps(system)}", f"model = {json.dumps(model)}", f"options = {toml_value(given)}"]
    (tmp_path / "e.toml").write_text("\n".join(lines) + "\n")
    run_experiment(load_plan(str(tmp_path / "e.toml")), tmp_path / "out", workers=1)
    for name in tried:
        case = CASES[name]
        qid = "p" if case.with_patent else f"w{queries.index(case.query)}"
        documents = 2 if case.base.get("documents", 1000) <= 8 else 1000
        base = {**case.base, "documents": documents}
        topic = Topic(qid, patent=PATENT) if qid == "p" else Topic(qid, case.query)
        runs = {}
        for system, options in (("with", {**base, name: case.value}), ("without", base)):
            with gzip.open(tmp_path / "out" / "runs" / f"{documents}-{slug(f'{name} {system}')}.run.gz", "rt") as file:
                rows = [line.split() for line in file]
            runs[system] = [(row[2], row[4]) for row in rows if row[0] == qid]
            assert [name for name, _ in runs[system]] == [own for own, _ in found(index, topic, **options)], (name, system)
        assert runs["with"] != runs["without"], name


@pytest.mark.skipif(importlib.util.find_spec("jsonschema") is None, reason="jsonschema is not installed")
@pytest.mark.parametrize("name", OPTIONS)
def test_the_schema_describes_it(index, name):
    import jsonschema

    case = CASES[name]
    schema = json_schema()
    if name not in schema["properties"]:
        assert OPTIONS[name].local
        return
    sent = json.loads(json.dumps({name: case.value}))
    jsonschema.validate(sent, schema)
    assert schema["properties"][name]["description"] == OPTIONS[name].help
    assert found(index, case.topic("1"), **case.base, **sent) == with_option(index, name)[0]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({name: [[]]}, schema)
    with pytest.raises(UsageError):
        checked_options(SearchOptions, {name: [[]]})


@pytest.mark.parametrize("name", OPTIONS)
def test_plain_values_are_read_back(name):
    options = SearchOptions.of({**CASES[name].base, name: CASES[name].value})
    assert SearchOptions.of(json.loads(json.dumps(options.plain()))) == options


@pytest.mark.parametrize("name", OPTIONS)
def test_a_declaration_is_complete(name):
    one = OPTIONS[name]
    assert one.group in GROUPS
    assert one.help.endswith(".")
    assert one.check(one.default) == one.default
    assert one.default is not True or one.help_off.endswith(".")


def test_generated_files_are_up_to_date():
    path = Path(__file__).parents[2] / "scripts" / "make_options.py"
    specification = importlib.util.spec_from_file_location("make_options", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    for file, content in ((module.KEYWORDS, module.keywords()), (module.PAGE, module.page())):
        assert file.read_text("utf-8") == content, f"{file.name} is out of date: run python scripts/make_options.py"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"modle": "bm25"}, "unknown option 'modle'; did you mean 'model'"),
        ({"k": 0}, "k must be a whole number of at least 1, not 0"),
        ({"k": "10"}, "k must be a whole number, not text"),
        ({"k": True}, "k must be a whole number, not true or false"),
        ({"documents": "some"}, "documents must be a whole number of at least 1 or all, not text"),
        ({"rescore_weight": 2}, "rescore_weight must be in .0, 1., not 2"),
        ({"syntax": "bool"}, "unknown syntax 'bool'; did you mean 'boolean'"),
        ({"part": [1]}, "part must be text or a list of texts; one of the values is a whole number"),
        ({"model": "bm52"}, "unknown model 'bm52'; did you mean 'bm25'"),
        ({"model": 3}, "model must be text, not a whole number"),
        ({"filter": "date<<"}, "date<<"),
        ({"model": ""}, "model is empty"),
        ({"k": 10**30}, "k must be a whole number of at least 1 and at most 4611686018427387904, not a number of about 30 digits$"),
        ({"k": -(10**400)}, "k must be a whole number of at least 1, not a number of about 400 digits$"),
        ({"fuzzy": 10**5000}, r"fuzzy must be a whole number in \[0, 2\], not a number of about 5000 digits$"),
        ({"rescore_weight": 10**400}, "rescore_weight must be in .0, 1."),
        ({"candidates": {"d": 10**400}}, "the number of 'd' is too large or not finite"),
        ({"synonyms": ["plane"]}, "the rule 'plane' has only one entry"),
        ({"synonyms": [1]}, "synonyms must be the path of a file, or a list of its lines; one of the lines is a whole number"),
        ({"fuzzy": 3}, "fuzzy must be a whole number from 0 to 2|fuzzy must be .*in .0, 2."),
        ({"must_match": 1}, "must_match must be true or false, not a whole number"),
        ({"fetch_parts": {"title": "2"}}, "fetch_parts must be a table of numbers; 'title' has text"),
    ],
)
def test_mistakes_are_named(given, complaint):
    with pytest.raises(UsageError, match=complaint):
        SearchOptions.of(given)


def test_options_are_values():
    one = SearchOptions(k=3, elements="sec,p")
    assert one == SearchOptions.of({"k": 3, "elements": ["sec", "p"]})
    assert one.updated({"k": 10, "elements": False}) == SearchOptions()
    assert one.changed() == {"k": 3, "elements": ("sec", "p")}
    with pytest.raises(AttributeError):
        one.k = 4


def test_an_option_about_patents_needs_one(index):
    with pytest.raises(UsageError, match="fetch_words applies to patents only"):
        Index.open(index).search("pump", fetch_words=3)


def test_numbers_and_lists_of_other_packages_are_taken():
    options = SearchOptions.of({"k": np.int64(3), "rescore_weight": np.float32(0.5), "ids": np.array(["a", "b"]), "part": {"b", "a"}})
    assert (options.k, options.rescore_weight, options.ids, options.part) == (3, 0.5, ("a", "b"), ("a", "b"))
    assert type(options.k) is int


def test_an_empty_list_of_ids_finds_nothing(index, capsys, tmp_path):
    (tmp_path / "none.txt").write_text("\n")
    assert found(index, WORDS, ids=[]) == []
    assert Index.open(index).count(ids=[]) == 0
    code, out, _ = run(capsys, "search", index, WORDS, "--ids", tmp_path / "none.txt")
    assert (code, out) == (0, "no document meets the conditions\n")
    for option in ("--candidates", "--part", "--ids"):
        assert run(capsys, "search", index, WORDS, option, " ")[0] == 2


def test_explanations_are_those_of_the_search_with_all_documents(index):
    opened = Index.open(index)
    for options in ({"expand": "bo1"}, {"browse_expand": "bo1"}, {}, {"elements": True}):
        results = opened.search(WORDS, model="bm25", documents="all", k=300, **options)
        for name, score in results.names()[:3] + results.names()[-2:]:
            few = {**options, "k": 1}
            assert opened.explain(WORDS, name, model="bm25", documents="all", **few).value == pytest.approx(score, rel=1e-12)


AS_TEXT = {
    "fetch_parts": "title=2,description", "filter": "id=n1", "elements": "p,section", "fetch_from": "title, abstract",
    "browse_from": "description", "group_by_document": "score",
    "part": "claims", "tag": "note", "without_tag": "note", "one_per": "document",
    "documents": "all", "fetch_words": "all", "browse_words": "all", "ids": "n1",
}  # fmt: skip
"""Values of options that are not text, as a command line has them."""


@pytest.mark.parametrize("name", OPTIONS)
def test_python_accepts_the_text_of_the_command_line_or_says_what_it_expects(name, tmp_path):
    synonyms = tmp_path / "synonyms.txt"
    synonyms.write_text("pump, siphon\n")
    text = AS_TEXT.get(name) or (str(synonyms) if name == "synonyms" else str(CASES[name].value))
    if name not in AS_TEXT and isinstance(OPTIONS[name].kind, (Whole, Real, Switch, Numbers)):
        with pytest.raises(UsageError, match=f"^{name} must be (a|true|one)"):
            SearchOptions(**{name: text})
    else:
        assert SearchOptions(**{name: text}) != SearchOptions()
