"""Limits of requests: how much they may ask for, and how large and how strange they may be."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perikope import Index
from perikope.server.cache import Answer, AnswerCache
from perikope.server.handler import Handler, RequestLimits
from perikope.server.incoming import BodyBudget
from perikope.server.problems import Refusal
from perikope.service.operations import load_operations
from tests.server.support import LiveServer, check_problem, exchange, head, web
from tests.support.growth import is_linear

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def small_limits(index: Path) -> Iterator[LiveServer]:
    with LiveServer({"small": index}, max_query=2000, max_k=50, max_batch=5) as server:
        yield server


def _search(server: LiveServer, body: bytes | dict[str, Any], operation: str = "search", **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return web.post(f"{server.url}/indexes/small/{operation}", content=content, headers={**JSON, **headers})


@pytest.mark.parametrize(
    "body",
    [
        {"query": "pump", "k": 51},
        {"query": "pump", "k": 40, "offset": 11},
        {"query": "pump", "offset": 10**18},
        {"query": "pump", "k": 10**30},
        {"query": "pump", "k": -1},
        {"query": "pump", "k": 0},
        {"query": "pump", "k": 1.5},
        {"query": "pump", "k": True},
        {"query": "pump", "k": "10"},
        {"query": "pump", "k": None},
        {"query": "pump", "k": [1]},
        {"query": "pump", "fuzzy": 3},
        {"query": "pump", "rescore_weight": 1e400},
    ],
)
def test_numbers_out_of_range_are_refused(small_limits: LiveServer, body: dict[str, Any]) -> None:
    check_problem(_search(small_limits, body), 400)
    if isinstance(body.get("k"), int):
        check_problem(web.get(f"{small_limits.url}/indexes/small/search", params=body), 400)


def test_largest_numbers_are_accepted(small_limits: LiveServer) -> None:
    assert _search(small_limits, {"query": "pump", "k": 50}).status_code == 200
    assert _search(small_limits, {"query": "pump", "k": 40, "offset": 10}).status_code == 200
    assert _search(small_limits, {"query": "pump", "k": 10.0}).status_code == 200, "JSON does not tell 10.0 from 10"


def test_the_k_of_a_recipe_is_limited_too(small_limits: LiveServer) -> None:
    """A recipe may ask for more than the server allows. The request can ask for less."""
    detail = check_problem(_search(small_limits, {"query": "pump", "recipe": "carmel2013"}), 400)
    assert "at most 50" in detail
    assert "recipe" in detail
    check_problem(_search(small_limits, {"queries": ["pump"], "recipe": "carmel2013"}, "search-many"), 400)
    for body, operation in (
        ({"query": "pump", "recipe": "carmel2013", "k": 5}, "search"),
        ({"query": "pump", "recipe": "carmel2013", "fields": ["year"]}, "facets"),
        ({"query": "pump", "recipe": "carmel2013", "passage": "pumps#@1"}, "explain"),
    ):
        assert _search(small_limits, body, operation).status_code == 200


def test_operations_take_only_options_that_have_an_effect(live: LiveServer) -> None:
    assert list(load_operations()["count"].parameters) == ["filter", "ids", "shares_codes_with", "code_level"]
    for given in ({"k": 1}, {"offset": 1}, {"model": "bm25"}, {"query": "pump"}):
        assert "unknown option" in check_problem(_search(live, given, "count"), 400)
    for operation in ("facets", "explain"):
        assert "unknown option" in check_problem(_search(live, {"query": "pump", "k": 1}, operation), 400)


def test_values_of_facets_are_limited(tmp_path: Path) -> None:
    """The most frequent ones are returned, with the number of all."""
    with Index.create(tmp_path / "index") as index:
        values = [["all", f"v{number:03}", *(["some"] if number % 2 else [])] for number in range(150)]
        index.add([{"id": f"d{number}", "passages": ["a pump"], "metadata": {"x": x}} for number, x in enumerate(values)])
    with LiveServer({"small": tmp_path / "index"}) as server:
        everything = {"query": "pump", "documents": 1000}
        for operation, name in (("facets", "fields"), ("search", "facets")):

            def counted(most: int | None, operation: str = operation, name: str = name) -> Any:
                body = {**everything, name: ["x"], **({} if most is None else {"values": most})}
                answer = _search(server, body, operation).json()
                return (answer["facets"] if operation == "search" else answer)["x"]

            assert counted(2) == {"values": {"all": 150, "some": 75}, "distinct": 152}
            assert len(counted(None)["values"]) == 100
            assert len(counted(1000)["values"]) == 152
            check_problem(_search(server, {**everything, name: ["x"], "values": 10**6}, operation), 400)


def test_batches_are_limited(small_limits: LiveServer) -> None:
    assert _search(small_limits, {"queries": list("abcde"), "k": 10}, "search-many").status_code == 200
    assert "5 queries" in check_problem(_search(small_limits, {"queries": list("abcdef"), "k": 1}, "search-many"), 400)
    # The results of all queries of a request count, since they are one answer.
    assert "50 results" in check_problem(_search(small_limits, {"queries": list("abcde"), "k": 11}, "search-many"), 400)


def test_long_query_strings_are_refused(small_limits: LiveServer) -> None:
    assert web.get(f"{small_limits.url}/indexes/small/search?query={'x' * 1900}").status_code == 200
    check_problem(web.get(f"{small_limits.url}/indexes/small/search?query={'x' * 2000}"), 414)
    check_problem(web.get(f"{small_limits.url}/health?query={'x' * 2000}"), 414)


@pytest.mark.parametrize(("length", "status"), [(2500, 414), (60_000, 414), (66_000, 400), (2_000_000, 431)])
def test_the_parser_refuses_addresses_of_64_kb_first(small_limits: LiveServer, length: int, status: int) -> None:
    """As the documentation says."""
    answer = exchange(small_limits.port, head("GET", f"/indexes/small/search?query={'x' * length}", small_limits.port))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"POST" in answer


def test_query_strings_with_many_parameters_are_refused(live: LiveServer) -> None:
    check_problem(web.get(f"{live.url}/indexes/small/search?{'&'.join(['tag=a'] * 1001)}"), 400)


def test_large_bodies_are_refused(small_limits: LiveServer) -> None:
    """With the length said before, and with one that shows when the body is read."""
    body = json.dumps({"query": "x" * 2000}).encode()
    check_problem(_search(small_limits, body), 413)
    path = f"{small_limits.url}/indexes/small/search"
    check_problem(web.post(path, content=iter([body[:900], body[900:]]), headers=JSON), 413)
    # The body is not read to its end.
    promised = exchange(small_limits.port, head("POST", "/indexes/small/search", small_limits.port, *_lines(10**12)))
    assert promised.startswith(b"HTTP/1.1 413 ")


def _lines(length: int) -> list[str]:
    return ["Content-Type: application/json", f"Content-Length: {length}"]


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b"1", b"null", b'"query"', b"\xff\xfe", b"\x00",
        b'{"query": "\xff"}', b'{"query": NaN}', b'{"k": Infinity, "query": "a"}',
        b'{"query": "\\ud800"}', b'{"query": "a"} x', b"[" * 30000, b'{"query":' * 5000, b'{"filter": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"query": "pump", "": 1}', b'{"query": "pump", "query ": 1}', b'{"query": "pump", "__class__": 1}', b'{"query": {"a": 1}}',
        b'{"query": "pump", "candidates": {"a": 1e999}}', b'{"query": "pump", "model": "bm25(' + b"(" * 5000 + b'"}',
        b'{"query": "\\u0000"}', b'{"query": "' + b"(" * 20000 + b'", "syntax": "boolean"}',
        b'{"query": "%s", "syntax": "boolean"}' % (b"NOT " * 9000),
    ],
)  # fmt: skip
def test_malformed_bodies_are_refused(live: LiveServer, body: bytes) -> None:
    assert len(check_problem(_search(live, body), 400)) < 700


@pytest.mark.parametrize(
    "text", ["a\x00b", "\x1b[31m", "\u202e\ufeff", "a" * 5000, "é" * 2000, "' OR 1=1 --", "${jndi:x}", "%s%n{0}", "\\", "🦀"]
)
def test_strange_texts_are_answered(live: LiveServer, text: str) -> None:
    """Text in the places of queries and names is only text."""
    assert _search(live, {"query": f"pump {text}"}).status_code == 200
    for option in ("part", "tag", "facets", "filter", "model", "also_nearest", "recipe", "language", "one_per", "passage"):
        answer = _search(live, {"query": "pump", option: text}, "explain" if option == "passage" else "search")
        assert answer.status_code in (200, 400, 404), answer.text
        assert len(answer.content) < 20_000


def test_the_last_of_equal_keys_counts(live: LiveServer) -> None:
    assert len(_search(live, b'{"query": "brake", "k": 5, "query": "magnetic", "k": 1}').json()["hits"]) == 1


@pytest.mark.parametrize("text", ["query=%ff", "query=%ED%A0%80", "query", "query=a&query=b", "k=1&k=2", "=a", "&", "nothing=1", "K=1"])
def test_malformed_query_strings_are_refused(live: LiveServer, text: str) -> None:
    check_problem(web.get(f"{live.url}/indexes/small/search?{text}"), 400)


def test_bytes_of_a_query_string_must_be_escaped(live: LiveServer) -> None:
    for text in ("\u00c3\u00a9", "\u00e9"):
        assert exchange(live.port, head("GET", f"/indexes/small/search?query={text}", live.port)).startswith(b"HTTP/1.1 400 ")


def test_compressed_bodies_are_not_decompressed(live: LiveServer) -> None:
    body = json.dumps({"query": "pump"}).encode()
    for encoding in ("gzip", "deflate", "br", "GZIP"):
        check_problem(_search(live, gzip.compress(body), **{"Content-Encoding": encoding}), 415)
    assert _search(live, body, **{"Content-Encoding": "identity"}).status_code == 200
    check_problem(_search(live, gzip.compress(b"0" * 10**7)), 400)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"])
def test_other_types_are_refused(live: LiveServer, kind: str) -> None:
    """Forms of web pages can send some types without asking; JSON is not among them."""
    answer = web.post(f"{live.url}/indexes/small/search", content=b'{"query": "pump"}', headers={"Content-Type": kind} if kind else {})
    check_problem(answer, 415)


def test_bodies_share_a_limited_memory() -> None:
    budget = BodyBudget(100)
    budget.take(60)
    with pytest.raises(Refusal) as refused:
        budget.take(41)
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "2")
    assert budget.held == 60


def test_memory_of_bodies_is_given_back(live: LiveServer) -> None:
    for body in (b'{"query": "pump"}', b"{", b'{"query": "pump", "k": 0}'):
        _search(live, body)
    assert live.app.bodies.held == 0


def test_the_cache_counts_requests_too() -> None:
    """A request may be much longer than its answer."""
    cache = AnswerCache(1_000_000)
    for number in range(100):
        cache.put(("index", 1, "search", "POST", "", f"{number:0100000d}".encode()), Answer(200, b"{}"))
    assert 0 < len(cache._kept) < 10
    assert cache.bytes <= 1_000_000


def test_batch_of_filters_and_ids_is_bounded_by_the_body(live: LiveServer) -> None:
    many = {"query": "pump", "ids": [f"d{number}" for number in range(5000)]}
    assert _search(live, many).status_code == 200
    check_problem(_search(live, {**many, "ids": [f"d{number}" for number in range(100_000)]}), 413)
    check_problem(_search(live, {"query": "pump", "candidates": {f"d{number}": 1.0 for number in range(100_000)}}), 413)


def test_long_names_are_not_compared_with_all_others(live: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error suggests similar names, which must not take longer the longer the name is."""
    asked: list[int] = []
    monkeypatch.setattr("perikope.query.publications._alike", lambda snapshot, wanted, is_number: asked.append(len(wanted)) or [])
    check_problem(web.get(f"{live.url}/indexes/small/document", params={"document": "x" * 500}), 404)
    check_problem(web.get(f"{live.url}/indexes/small/document", params={"document": "x" * 30_000}), 404)
    check_problem(_search(live, {"query": "pump", "shares_codes_with": "x" * 30_000}), 404)
    assert asked == [500]


@pytest.mark.parametrize("text", ["a", "1", "{", "中", '"', "("])
def test_hostile_queries_take_linear_time(text: str, index: Path) -> None:
    """The time limit of a request comes after its query is read, so reading must not take long."""
    handler = Handler({"small": str(index)}, RequestLimits(1000, 100))
    meta = {"operation": "search", "query": "", "method": "POST", "index": "small", "generation": 1, "seconds": 1000.0}

    def ask(size: int) -> None:
        body = json.dumps({"query": text * size, "syntax": "boolean"}).encode()
        assert handler.answer(meta, body)[0]["status"] in (200, 400)

    ask(10)
    assert is_linear(ask, 3000, 16)
