"""Every operation of a server has an example that works, and an answer that the client reads as the same value."""

import json
from urllib.parse import urlencode

import pytest

from perikope.build.indexing import BuildOptions, build
from perikope.client.decoding import UnexpectedValue, decoder
from perikope.evaluation.demo import write_example
from perikope.search.facade import Index
from perikope.server.handler import encode
from perikope.service.operations import load_operations
from perikope.service.originals import originals_in
from perikope.service.requests import read_body, read_query_string

OPERATIONS = load_operations()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_example(folder / "example")
    build(str(folder / "idx"), [str(folder / "example" / "docs")], BuildOptions(workers=1))
    return folder / "idx"


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_example_works_and_its_answer_is_read_back(demo, name):
    operation = OPERATIONS[name]
    index = Index.open(demo)
    with originals_in(str(demo.parent / "example" / "docs")):
        answer = operation.run(index, read_body(operation, json.dumps(operation.example).encode()))
    index.rollback()
    assert decoder(operation.answer)(json.loads(encode(answer))) == answer
    if "GET" in operation.methods:
        with originals_in(str(demo.parent / "example" / "docs")):
            again = operation.run(index, read_query_string(operation, urlencode(operation.example, doseq=True)))
        assert encode(again) == encode(answer)


def test_reasons_may_have_the_explanation_that_they_come_from(demo):
    asked = {**OPERATIONS["reasons"].example, "model": "coverage"}
    answers = {}
    for name, options in (("explain", asked), ("reasons", asked), ("both", {**asked, "tree": True})):
        operation = OPERATIONS["explain" if name == "explain" else "reasons"]
        answers[name] = operation.run(Index.open(demo), read_body(operation, json.dumps(options).encode()))
    assert answers["reasons"].tree is None
    assert answers["both"].tree == answers["explain"]
    assert (answers["both"].score, answers["both"].parts) == (answers["reasons"].score, answers["reasons"].parts)


@pytest.mark.parametrize("name", OPERATIONS)
def test_another_value_in_place_of_an_answer_is_noticed(name):
    for wrong in (3, "text", [None], {"unknown": []}):
        with pytest.raises(UnexpectedValue):
            decoder(OPERATIONS[name].answer)(wrong)
