"""The server behaves as its OpenAPI document says: schemathesis sends what the document allows, and what it forbids.

Every answer must have a declared status, a declared type of content and the declared schema, and no answer may be a
5xx. By default, few examples are tried, and the same ones every time. To try more of them:

    PERIKOPE_EXAMPLES=20 python -m pytest tests/server/test_schema.py -n 0
"""

from __future__ import annotations

import copy
import json
import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.checks import positive_data_acceptance

from perikope.build.indexing import BuildOptions, build
from perikope.server.openapi import openapi_document
from perikope.server.routes import path_of
from perikope.service.operations import READ, Operation, load_operations
from tests.server.support import PATIENCE, TOKEN, LiveServer, ServerProcess
from tests.support.examples import SCALE

EXAMPLES = max(4, round(16 * SCALE))
"""Examples per operation."""
DOCUMENT: Any = openapi_document(load_operations(), ["small"])
schema = schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_server_does_as_it_says(case: schemathesis.Case, process: ServerProcess) -> None:
    case.call_and_validate(
        base_url=process.url, excluded_checks=[positive_data_acceptance], headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE
    )


def test_the_server_offers_this_document(process: ServerProcess) -> None:
    with process.client() as client:
        offered = client.get("/openapi.json").json()
    del offered["paths"]["/indexes/{index}/probe"], offered["components"]["schemas"]["Probed"]
    assert offered == json.loads(json.dumps(DOCUMENT))
    schema.validate()


VALUES: dict[str, list[Any]] = {
    "model": ["best", "bm25", "coverage", "prox", "psg", "lm", "bm25(k1=0.5)"],
    "syntax": ["words", "boolean", "automatic"], "k": [1, 3, 100],
    "offset": [0, 2], "fuzzy": [0, 2], "language": ["", "en", "all"], "synonyms": [["pump, rotor"]], "browse_query": ["rotor"],
    "browse_expand": ["bo1", "rm3"], "fetch": ["bm25", "pl2", "dph", "lm"], "documents": [1, 1000, "all"], "expand": ["bo1", "rm3"],
    "fetch_parts": [{"title": 2.0}, "title=2,claims"], "rescore": ["bm25"],
    "rescore_weight": [0.0, 1.0], "candidates": [{"pumps": 1.0, "no": 2}],
    "filter": [["year=2011"], "year>=2000", ["kind=A1", "date<2013-01-01"]],
    "ids": [["pumps", "brakes"], []], "part": ["claims"], "tag": ["p"],
    "without_tag": [["code"]], "must_match": [True], "across_passages": [True], "elements": [True, False, "p"], "no_overlap": [True],
    "keep_unmatched": [True], "group_by_document": [True, "score", ""], "one_per": ["document", ["section"]], "code_filter": [False],
    "facets": [["year"], ["kind", "year"]], "document_ranking": ["maxp", "sump", "meanp(n=2)"],
    "fields": [["year", "country"]], "around": [0, 5],
    "budget": [1, 50, 5000], "passage": ["pumps#@1", "couplings#@2"],
}  # fmt: skip
"""Values that the options of a search accept. Some cannot be combined."""
ASKED = [
    {"query": "magnetic pump"},
    {"query": "rotor"},
    {"query": "zzz"},
    {"patent": "EP-900100-A1", "code_filter": False},
    {"query": "pumpp"},
]
SEARCHING = [operation for operation in load_operations().values() if operation.searches and "POST" in operation.methods]


@pytest.mark.parametrize("operation", SEARCHING, ids=lambda operation: operation.name)
def test_answers_have_their_schema(operation: Operation, live: LiveServer) -> None:
    """Random requests that make sense. Many of them are answered, the others combine what cannot be combined."""
    chance = random.Random(operation.name)
    answer = DOCUMENT["paths"][path_of(operation)]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    right = Draft202012Validator({**answer, "components": DOCUMENT["components"]})
    problem = Draft202012Validator({"$ref": "#/components/schemas/Problem", "components": DOCUMENT["components"]})
    named = [name for name in VALUES if name in operation.parameters]
    answered, tried = 0, round(100 * SCALE)
    with live.client() as client:
        for _ in range(tried):
            asked = chance.choice(ASKED) if "query" in operation.parameters else {"queries": ["magnetic", "rotor pump"]}
            chosen = {name: chance.choice(VALUES[name]) for name in chance.sample(named, chance.randrange(4))}
            needed = {name: VALUES[name][0] for name in ("passage", "fields") if name in named}
            body = {**(asked if operation.name != "count" else {}), **needed, **chosen}
            got = client.post(f"/indexes/small/{operation.name}", json=body)
            assert got.status_code in (200, 400, 404), (body, got.text)
            for error in (right if got.status_code == 200 else problem).iter_errors(got.json()):
                raise AssertionError((body, error.message[:300], list(error.absolute_path)))
            answered += got.status_code == 200
    assert answered > tried / 3


def test_examples_work(index: Path, tmp_path: Path) -> None:
    """The examples of the document are answered, on the documents of the demonstration."""
    from perikope.evaluation.demo import example_files

    with example_files() as corpus, ExitStack() as stack:
        build(str(tmp_path / "index"), [str(corpus / "docs")], BuildOptions())
        server = stack.enter_context(LiveServer({"small": tmp_path / "index"}, originals=str(corpus / "docs")))
        client = stack.enter_context(server.client())
        for operation in load_operations().values():
            path = f"/indexes/small/{operation.name}".rstrip("/")
            for method in operation.methods if operation.permission == READ else ():
                example = dict(operation.example)
                got = client.get(path, params=example) if method == "GET" else client.post(path, json=example)
                assert got.status_code == 200, (operation.name, got.text)
