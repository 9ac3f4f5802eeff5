"""An index on a server answers as the same index on this machine, to the bit.

`COMPARED` lists the attributes of results that must be the same. An attribute of `Results` that is neither there nor in
`LOCAL_RESULTS` fails a test, and so does a method of `Index` that is neither in `RemoteIndex` nor in `LOCAL_INDEX`.
"""

import asyncio
import inspect
import json
import re
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

import perikope
from perikope.client.asking import search_values
from perikope.client.local_only import LOCAL_INDEX, LOCAL_RESULTS
from perikope.client.questions import query_string
from perikope.client.warning import IndexChangedWarning, ServerWarning
from perikope.core.errors import ModelWarning, NotFound, PerikopeError, ServerError, UsageError
from perikope.index.duplicates import DuplicateWarning
from perikope.query.topic import Topic
from perikope.search.facade import Index
from perikope.search.options import OPTIONS, SearchOptions
from perikope.search.results import Results
from perikope.search.viewing import view_document
from perikope.server.gate import new_token
from perikope.service.operations import load_operations
from tests.contracts.test_options import CASES, FAMILY, PATENT, WORDS, build_index
from tests.support.models import READY
from tests.support.serving import served

CLAIMS = "A submersible pump with an impeller and a strainer beside the volute."
PAGE = {"k": 40}
NOTES = [{"id": f"n{number}", "metadata": {"year": number % 3}, "passages": [f"A magnet drives rotor {number}."]} for number in range(5)]
"""Documents without titles, which some models miss."""


@dataclass(frozen=True)
class Sides:
    """One index on this machine and on a server, and a small one that tests may change."""

    folder: Path
    notes_folder: Path
    address: str
    token: str
    local: Index
    remote: perikope.RemoteIndex

    def notes(self, token: str = "") -> perikope.RemoteIndex:
        return perikope.connect(self.address, "notes", token=token or self.token)


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    patents = build_index(tmp_path_factory.mktemp("files"), folder / "patents")
    with Index.create(folder / "notes") as notes:
        notes.add(NOTES)
    secret, lines = new_token("writer")
    (folder / "tokens.toml").write_text(lines.replace("write = []", 'write = ["*"]'))
    with (
        served(patents, folder / "notes", "--tokens", folder / "tokens.toml") as address,
        perikope.connect(address, "patents", timeout=300) as remote,
    ):
        yield Sides(patents, folder / "notes", address, secret, Index.open(patents), remote)


def follow_ups(ask):
    """The value, or the error, of a question that not every search can answer."""

    def asked(results):
        try:
            return ask(results)
        except UsageError as error:
            return str(error)

    return asked


COMPARED = {
    "model": lambda results: results.model,
    "notes": lambda results: results.notes,
    "complete": lambda results: results.complete,
    "missing_shards": lambda results: results.missing_shards,
    "suggestions": lambda results: results.suggestions,
    "names": lambda results: results.names(),
    "to_dicts": lambda results: results.to_dicts(),
    "to_pandas": lambda results: results.to_pandas().to_csv(),
    "to_polars": lambda results: results.to_polars().write_json(),
    "to_arrow": lambda results: results.to_arrow().to_pylist() if find_spec("pyarrow") else (),
    "index": lambda results: [results.index(hit) for hit in results[:2]],
    "count": lambda results: [results.count(hit) for hit in results[:2]],
    "facets": follow_ups(lambda results: list(results.facets("ipc").items())),
    "documents": follow_ups(lambda results: results.documents("sump", 5, offset=1)),
    "document_ranking": follow_ups(lambda results: results.document_ranking()),
    "context": lambda results: results.context(150, around=2),
    "explain": lambda results: [results.explain(number) for number in (0, -1)] if len(results) else [],
    "reasons": lambda results: [results.reasons(number) for number in (0, -1)] if len(results) else [],
}
"""The public attributes of results that must be the same, and how each is compared."""


def everything(results):
    """All that must be the same, by name."""
    plain = {"hits": list(results), "len": len(results), "repr": repr(results), "html": results._repr_html_(), "slice": results[1:3]}
    return plain | {name: value(results) for name, value in COMPARED.items()}


def same(sides, query, **options):
    """Search on both sides, compare everything, and return the results of the server. Errors are compared too."""
    outcomes = []
    for index in (sides.local, sides.remote):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                outcome = everything(index.search(query, **{**PAGE, **options}))
            except PerikopeError as error:
                # A server names the option that has the wrong value; here, the caller sees it.
                message = re.sub(rf"^({'|'.join(options)}): " if options else "^$", "", str(error))
                outcome = {"error": type(error), "message": message.replace(str(sides.folder), "patents")}
        outcomes.append({**outcome, "warnings": [str(one.message) for one in caught]})
    local, remote = outcomes
    for name, value in local.items():
        assert remote[name] == value, name
    return remote


# Attributes


def public(value):
    """The public attributes of a class or an object."""
    return {name for name in {*dir(value), *getattr(value, "__dict__", {})} if not name.startswith("_")}


def test_results_of_a_server_have_the_attributes_of_results_or_say_why_not(sides):
    local, remote = public(sides.local.search(WORDS)), public(sides.remote.search(WORDS))
    assert local - remote == {*LOCAL_RESULTS}
    assert local & remote == {*COMPARED}
    assert remote - local == {"generation", "fingerprint", "warnings"}
    assert public(perikope.AsyncRemoteResults) == public(perikope.RemoteResults)


def test_an_index_on_a_server_has_the_attributes_of_an_index_or_says_why_not(sides):
    local, remote = public(sides.local), public(sides.remote)
    assert local - remote == {*LOCAL_INDEX}
    assert remote - local == {"name", "address", "facets", "ask", "follow"}
    assert public(perikope.AsyncRemoteIndex) == remote


@pytest.mark.parametrize("name", [*LOCAL_RESULTS, *LOCAL_INDEX])
def test_a_local_attribute_says_why_it_is_missing(sides, name):
    owner, reasons = (sides.remote.search(WORDS, k=1), LOCAL_RESULTS) if name in LOCAL_RESULTS else (sides.remote, LOCAL_INDEX)
    with pytest.raises(AttributeError, match=name) as raised:
        getattr(owner, name)
    assert reasons[name] in str(raised.value)
    assert not hasattr(owner, name)


@pytest.mark.parametrize("name", ["search", "search_many", "explain", "count", "delete"])
def test_methods_have_the_parameters_of_those_of_an_index(name):
    local, remote = (inspect.signature(getattr(kind, name)).parameters for kind in (Index, perikope.RemoteIndex))
    assert list(local) == list(remote)
    assert [one.kind for one in local.values()] == [one.kind for one in remote.values()]


@pytest.mark.parametrize("name", ["document_ranking", "documents", "facets", "context", "explain"])
def test_methods_of_results_have_the_same_parameters(name):
    expected = inspect.signature(getattr(Results, name)).parameters
    for kind in (perikope.RemoteResults, perikope.AsyncRemoteResults):
        assert dict(inspect.signature(getattr(kind, name)).parameters) == dict(expected)


METHODS = {"documents": "add", "": "info"}
"""The methods of operations that have another name."""


@pytest.mark.parametrize("kind", [Index, perikope.RemoteIndex, perikope.AsyncRemoteIndex, Results, perikope.RemoteResults])
def test_options_of_operations_have_the_defaults_of_methods(kind):
    compared = []
    for operation in load_operations().values():
        method = getattr(kind, METHODS.get(operation.name, operation.name), None)
        for name, parameter in inspect.signature(method).parameters.items() if method is not None else ():
            if name in operation.parameters and parameter.default is not parameter.empty:
                compared.append(f"{operation.name} {name}")
                assert operation.parameters[name].default == parameter.default, compared[-1]
    assert ("context budget" if kind.__name__.endswith("Results") else "documents replace") in compared


# Searches


@pytest.mark.parametrize("model", READY)
def test_every_model_gives_the_same_results(sides, model):
    assert same(sides, WORDS, model=model)["hits"]


@pytest.mark.parametrize("name", [name for name in OPTIONS if not OPTIONS[name].local])
def test_every_option_gives_the_same_results(sides, name):
    case = CASES[name]
    outcome = same(sides, case.topic("1"), **{**case.base, name: case.value})
    assert outcome.get("hits") or name == "also_nearest"  # no vectors here: both sides refuse in the same words


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ('"submersible pump" AND (strainer OR gasket) NOT kiln', {"syntax": "boolean"}),
        ("impeller NEAR/5 volute", {"syntax": "boolean", "must_match": True}),
        ("submers* pumpp~1", {"syntax": "boolean"}),
        ("+pump -gasket", {"syntax": "automatic"}),
        (WORDS, {"filter": ["date<2002", "ipc=F04D"], "part": "claims"}),
        (WORDS, {"filter": "year=1"}),
        (WORDS, {"elements": True, "no_overlap": True}),
        (WORDS, {"elements": ["claim"], "model": "prox_h"}),
        (WORDS, {"group_by_document": True}),
        (WORDS, {"one_per": ["family", "document"]}),
        (WORDS, {"offset": 5, "k": 7}),
        (WORDS, {"offset": 900}),
        (WORDS, {"documents": "all", "model": "bm25"}),
        (WORDS, {"expand": "rm3", "browse_expand": "bo1", "model": "qsf_v"}),
        (WORDS, {"ids": []}),
        (WORDS, {"ids": [PATENT, "unknown"]}),
        ("Tauchpumpe", {"language": "all"}),
        ("sumbersible pmup", {}),
        ("sumbersible pmup", {"fuzzy": 2}),
        ("no such words", {}),
        ("?", {}),
        (WORDS, {"recipe": "carmel2013"}),
        (WORDS, {"recipe": "carmel2013", "k": 10}),
        (WORDS, {"recipe": "carmel2013", "options": SearchOptions(k=3, fetch="lm", part="claims")}),
        (WORDS, {"recipe": "nix"}),
        (WORDS, {"k": 0}),
        (WORDS, {"modle": "bm25"}),
        (WORDS, {"model": "bm52"}),
        (WORDS, {"fetch_words": 3}),
        (Topic("1", WORDS), {"fetch_words": 3}),
        (Topic("1", WORDS, options={"part": ("claims",), "filter": ("date<2002",)}), {"filter": "ipc=F04D", "part": "abstract"}),
        (Topic("1", WORDS, options={"ids": (FAMILY.later.id,)}), {}),
        (Topic("1", patent=PATENT), {}),
        (Topic("1", patent="EP 0 900 100 A1"), {"one_per": "family", "model": "psg_doc"}),
        (Topic("1", patent=PATENT, claims=("1",)), {"model": "bm25"}),
        (Topic("1", patent=PATENT, claims=CLAIMS), {}),
        (Topic("1", patent=PATENT, family=(FAMILY.earlier.id,)), {}),
        (Topic("1", WORDS, patent=PATENT), {}),
        (Topic("1", claims=CLAIMS), {}),
        (Topic("1", patent="EP1234567A1"), {}),
        (Topic("1", patent=PATENT, claims=("99",)), {}),
    ],
    ids=str,
)  # fmt: skip
def test_searches_are_the_same(sides, query, options):
    same(sides, query, **options)


@pytest.mark.parametrize("name", [name for name in OPTIONS if not OPTIONS[name].local])
def test_get_and_post_give_the_same_bytes(sides, name):
    case = CASES[name]
    values = search_values(case.topic("1"), "", None, {**PAGE, **case.base, name: case.value})
    url = f"{sides.address}/indexes/patents/search"
    posted = httpx.post(url, json=values, timeout=300, trust_env=False)
    got = httpx.get(f"{url}?{query_string(values)}", timeout=300, trust_env=False)
    if name == "candidates":  # a table that has no form in a query string
        assert (posted.status_code, got.status_code) == (200, 400)
    else:
        assert (got.status_code, got.content) == (posted.status_code, posted.content)
        assert got.status_code == 200 or name == "also_nearest"


def test_many_searches_are_single_searches(sides):
    queries = [WORDS, Topic("p", patent=PATENT), "gasket", "Tauchpumpe", WORDS]
    for index in (sides.local, sides.remote):
        found = list(index.search_many(queries, model="psg_doc", k=5))
        assert [query for query, _ in found] == queries
        for query, results in found:
            assert list(results) == list(sides.local.search(query, model="psg_doc", k=5))
    batch = sides.remote.ask("search-many", queries=["gasket", WORDS], k=3)
    assert [item.answer.hits for item in batch.answers] == [tuple(sides.local.search(query, k=3)) for query in ("gasket", WORDS)]


def test_many_searches_report_queries_without_words(sides):
    for index in (sides.local, sides.remote):
        problems = []
        found = list(index.search_many({"a": WORDS, "b": "?"}, on_problem=problems.append, k=1))
        assert [topic.qid for topic, _ in found] == ["a"]
        assert len(problems) == 1
        assert problems[0].startswith("topic b: the query is empty; give at least one word")
        with pytest.raises(UsageError, match="query 2: the query is empty"):
            list(index.search_many([WORDS, "?"], k=1))
        with pytest.raises(UsageError, match="several queries"):
            index.search_many(WORDS)
        with pytest.raises(UsageError, match="k must be"):
            index.search_many([WORDS], k=0)


# Other operations


@pytest.fixture(params=["local", "remote"])
def searched(request, sides):
    return getattr(sides, request.param)


def test_a_hit_is_found_by_position(searched):
    results = searched.search(WORDS, k=3)
    assert results[-1] == results[2] == list(results)[2]
    assert results[::-1] == [results[2], results[1], results[0]]
    assert results[5:] == []
    for number in (3, -4):
        with pytest.raises(IndexError):
            results[number]
        with pytest.raises(IndexError):
            results.explain(number)


def test_an_explanation_by_name_is_that_of_the_hit(searched, sides):
    results = searched.search(WORDS, k=2, model="qsf_v")
    assert searched.explain(WORDS, results[1], model="qsf_v") == results.explain(1) == sides.local.search(WORDS, model="qsf_v").explain(1)
    with pytest.raises(NotFound, match="has no passage 'nix'"):
        searched.explain(WORDS, f"{results[0].document}#nix")
    with pytest.raises(UsageError, match="names no passage"):
        searched.explain(WORDS, "nix")


@pytest.mark.parametrize(
    ("conditions", "options"),
    [((), {}), ("ipc=F04D", {}), (["date<2002", "ipc=F04D"], {}), ((), {"ids": []}), ((), {"ids": [PATENT]}),
     ((), {"shares_codes_with": PATENT, "code_level": "class"})],
)  # fmt: skip
def test_documents_are_counted(sides, conditions, options):
    assert sides.remote.count(conditions, **options) == sides.local.count(conditions, **options)


def test_facets_of_several_fields(sides):
    found = sides.remote.facets(WORDS, ["ipc", "family"], part="claims")
    local = sides.local.search(WORDS, part="claims")
    assert {name: list(counts.items()) for name, counts in found.items()} == {
        name: list(local.facets(name).items()) for name in ("ipc", "family")
    }


def test_a_document_is_viewed(sides):
    for name, query in ((PATENT, ""), ("EP 0 900 100 A1", WORDS), (f"{FAMILY.later.id}#claim-1", WORDS)):
        assert sides.remote.view(name, query=query) == view_document(sides.local.snapshot, name, query)
    assert sides.remote.get(PATENT) == view_document(sides.local.snapshot, PATENT)
    assert sides.remote.get("nix") is sides.local.get("nix") is None
    with pytest.raises(NotFound, match="there is no document 'nix'"):
        sides.remote.view("nix")


def test_a_passage_an_outline_and_a_landscape_are_shown(sides):
    name = f"{FAMILY.later.id}#claim-1"
    assert sides.remote.passage(name, around=1) == sides.local.passage(name, around=1)
    assert sides.remote.outline("EP 0 900 100 A1") == sides.local.outline("EP 0 900 100 A1")
    for query, given in ((WORDS, {"bins": 7, "sigma": 5.0}), ("pump AND strainer", {"syntax": "boolean", "language": "en"})):
        assert sides.remote.landscape(query, PATENT, **given) == sides.local.landscape(query, PATENT, **given)
    with pytest.raises(NotFound):
        sides.remote.outline("nix")


def test_words_and_values_are_suggested(sides):
    assert sides.remote.suggest("submersible str", k=3) == sides.local.suggest("submersible str", k=3) != ()
    found = sides.remote.values("ipc", prefix="f04", k=2)
    assert list(found.items()) == list(sides.local.values("ipc", prefix="f04", k=2).items()) != []


def test_the_summary_has_the_numbers_of_the_index(sides):
    local, remote = sides.local.info(), sides.remote.info()
    for name in ("documents", "passages", "language", "fingerprint"):
        assert getattr(remote, name) == getattr(local, name)
    assert list(remote.languages.items()) == list(local.languages.items())
    assert remote.generation == sides.local.snapshot.manifest.generation


def test_any_operation_can_be_asked_for(sides):
    assert {model.name for model in sides.remote.ask("models").models} >= {*READY}
    assert sides.remote.ask("count", filter="ipc=F04D").documents == sides.local.count("ipc=F04D")
    with pytest.raises(UsageError, match="unknown operation 'cuont'; did you mean 'count'"):
        sides.remote.ask("cuont")
    with pytest.raises(UsageError, match="unknown option 'qurey'; did you mean 'query'"):
        sides.remote.ask("search", qurey="pump")


def test_a_server_with_several_indexes_needs_a_name(sides):
    with perikope.connect(sides.address) as index, pytest.raises(UsageError, match=r"several indexes.*patents, notes"):
        index.search("pump")
    with perikope.connect(sides.address, "nix") as index, pytest.raises(NotFound, match="no such index"):
        index.search("pump")


def test_warnings_of_the_server_are_given_here(sides):
    with pytest.warns(ModelWarning) as local, Index.open(sides.notes_folder) as index:
        index.search("rotor", model="qsf_v_title")
    with pytest.warns(ServerWarning) as remote, sides.notes() as index:
        results = index.search("rotor", model="qsf_v_title")
    assert [str(one.message) for one in remote] == [str(one.message) for one in local]
    assert results.warnings == tuple(str(one.message) for one in remote)
    assert remote[0].filename == __file__


# Changes


def test_documents_are_added_found_and_deleted(sides):
    with sides.notes() as index:
        before = index.info()
        results = index.search("rotor")
        written = index.add({"id": "w1", "title": "Wheel", "metadata": {"year": 7}, "passages": ["A wheel turns."]})
        assert (written.added, written.left_out, written.documents) == (1, (), before.documents + 1)
        assert [hit.document for hit in index.search("wheel")] == ["w1"]
        with pytest.warns(IndexChangedWarning, match=f"hits are of commit {results.generation}") as caught:
            results.context()
        assert caught[0].filename == __file__
        with pytest.warns(DuplicateWarning, match=r"left out.*w1"):
            written = index.add([{"id": "w1", "passages": ["Another."]}, {"id": "w2", "passages": ["A wheel."]}])
        assert (written.added, written.left_out) == (1, ("w1",))
        assert index.ask("documents", documents=[{"id": "w1", "passages": ["Another."]}]).left_out == ("w1",)
        assert index.add({"id": "w1", "passages": ["A gear turns."]}, replace=True).added == 1
        assert [hit.text for hit in index.search("gear")] == ["A gear turns."]
        assert list(index.search("gear")) == list(Index.open(sides.notes_folder).search("gear"))
        assert index.delete(["w1", "w2", "nix"]) == 2
        assert index.delete(["w1", "w2"]) == 0
        assert index.count() == before.documents
        for wrong in ("docs/", ["docs/"], perikope.Document("d", "", None, ())):  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="as dictionaries"):
                index.add(wrong)
        with pytest.raises(UsageError, match="cannot be written as JSON"):
            index.add({"id": "w3", "metadata": {"x": object()}, "passages": ["A"]})


def test_writing_needs_a_token(sides):
    with perikope.connect(sides.address, "notes") as index, pytest.raises(ServerError, match="needs a token") as raised:
        index.delete("n1")
    assert raised.value.status == 401
    with sides.notes("wrong-token") as index, pytest.raises(ServerError, match="the token is not known") as raised:
        index.delete("n1")
    assert raised.value.status == 401


# Many at once


def test_twenty_searches_at_once(sides):
    queries = [f"{word} {other}" for word in ("pump", "strainer", "impeller", "gasket") for other in [*WORDS.split(), "brine", "volute"]]

    async def search_all() -> list[Any]:
        async with perikope.connect_async(sides.address, "patents", timeout=300) as index:
            found = await asyncio.gather(*(index.search(query, k=5) for query in queries))
            first = found[0]
            several = [results async for _, results in index.search_many(queries[:6], k=5, at_once=3)]
            return [found, several, await first.explain(0), await first.facets("ipc"), await first.documents(), await first.context(100)]

    assert len(queries) == 20
    found, several, *rest = asyncio.run(search_all())
    local = [sides.local.search(query, k=5) for query in queries]
    assert [list(results) for results in found] == [list(results) for results in local]
    assert [list(results) for results in several] == [list(results) for results in local[:6]]
    assert rest == [local[0].explain(0), local[0].facets("ipc"), local[0].documents(), local[0].context(100)]


def test_a_unix_socket(sides, tmp_path):
    """Over a socket too, with the only index of the server, whose name is left out."""
    with served(sides.folder, "--socket", tmp_path / "s") as address, perikope.connect(address) as index:
        assert list(index.search(WORDS)) == list(sides.local.search(WORDS))
        assert index.name == "patents"
        assert repr(index) == f"RemoteIndex('unix:{tmp_path / 's'}', 'patents')"


def test_values_of_any_metadata_are_the_same(sides):
    values = {"big": 2**63 - 1, "small": 1e-300, "text": "ß\u2028😀", "list": [1, 2.5, None, True], "table": {"a": {"b": "c"}}}
    with sides.notes() as index:
        index.add({"id": "v1", "metadata": values, "passages": ["Valves."]})
        [hit] = index.search("valves")
        assert [hit] == list(Index.open(sides.notes_folder).search("valves"))
        assert json.loads(json.dumps(hit.to_dict()))["metadata"] == values
        index.delete("v1")
