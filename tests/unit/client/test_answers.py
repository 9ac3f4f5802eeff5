"""What the client does with answers that are not as they should be, and with a server that is not there."""

import asyncio
import json
import logging
import socket
import subprocess
import sys
import threading
import time

import pytest

import perikope
from perikope.client import transport
from perikope.core.errors import NotFound, PerikopeError, ServerError, UsageError
from perikope.query.topic import Topic
from perikope.search.recipes import load_recipe
from tests.support.serving import scripted

SUGGESTIONS = {"words": {}, "query": ""}
HIT = {
    "rank": 1, "score": 0.1, "document": "d", "passage": "@1", "title": "", "path": ["T"], "text": "pump", "highlights": [[0, 4]],
    "part": "", "tag": "p", "language": "en", "before": "", "after": "", "start": 0, "end": 4, "metadata": {"n": 10**30}, "source": "",
    "place": {"path": "/p[1]", "start": 0, "end": 4, "page": 0, "box": []}, "citation": "",
}  # fmt: skip
FOUND = {
    "generation": 3, "fingerprint": "f", "model": "bm25", "hits": [HIT], "documents": [], "facets": {}, "notes": [], "warnings": [],
    "suggestions": SUGGESTIONS,
    "reasons": [],
}  # fmt: skip
JSON, PROBLEM = {"content-type": "application/json"}, {"content-type": "application/problem+json"}
SECRET = "s3cret-t0ken-that-nobody-may-see"


def problem(status, detail, **headers):
    return status, {**PROBLEM, **headers}, json.dumps({"title": "x", "status": status, "detail": detail}).encode()


def always(answer):
    """A server that has one index, and answers everything else in one way."""
    listed = (200, JSON, b'{"indexes":["only"]}')
    return scripted(lambda method, path: listed if path == "/indexes" else answer)


FINE = (200, JSON, json.dumps(FOUND).encode())


def test_the_only_index_needs_no_name():
    with always(FINE) as server, perikope.connect(server.address + "/") as index:
        results = index.search("pump", k=3, filter="a=b")
        assert [path for _, path, _, _ in server.asked] == ["/indexes", "/indexes/only/search"]
        assert json.loads(server.asked[1][3]) == {"query": "pump", "k": 3, "filter": ["a=b"]}
        index.search("pump")
        assert len(server.asked) == 3, "the name is asked for once"
    assert (results[0].path, results[0].highlights, results[0].metadata, results[0].place.path) == (
        ("T",), ((0, 4),), {"n": 10**30}, "/p[1]",
    )  # fmt: skip


def test_a_new_server_may_send_more():
    more = {**FOUND, "newer": 1, "hits": [{**HIT, "newer": {}}]}
    with always((200, JSON, json.dumps(more).encode())) as server, perikope.connect(server.address) as index:
        assert len(index.search("pump")) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>nginx</html>", b"{", b"[]", b"null", b"\xff\xfe", b'{"generation": 1}', b"[" * 100_000,
        json.dumps({**FOUND, "hits": [{**HIT, "score": None}]}).encode(),
        json.dumps({**FOUND, "hits": [{**HIT, "highlights": [[1]]}]}).encode(),
        json.dumps({**FOUND, "hits": {}}).encode(),
        json.dumps({**FOUND, "generation": "1"}).encode(),
    ],
    ids=range(12),
)  # fmt: skip
def test_a_damaged_answer_is_one_line(body):
    with always((200, JSON, body)) as server, perikope.connect(server.address) as index:
        with pytest.raises(ServerError, match=f"the answer of {server.address} cannot be read; check that the address is") as raised:
            index.search("pump")
        assert raised.value.status == 200
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "error", "words", "status"),
    [
        (problem(400, "unknown model 'x'"), UsageError, "^unknown model 'x'$", None),
        (problem(404, "there is no document 'x'"), NotFound, "^there is no document 'x'$", None),
        (problem(401, "the token is not known"), ServerError, r"answers 401 \(Unauthorized\): the token is not known", 401),
        (problem(504, "took too long"), ServerError, r"504 \(Gateway Timeout\): took too long", 504),
        (problem(500, "failed\n\x1b[31m twice"), ServerError, r"failed \[31m twice$", 500),
        ((404, {}, b"<html>"), ServerError, "answers 404 .Not Found. without a reason that can be read; check", 404),
        ((502, {}, b""), ServerError, "502 .Bad Gateway. without a reason", 502),
        ((799, {}, b""), ServerError, "answers 799 without a reason", 799),
        ((400, {}, b'{"detail": 3}'), ServerError, "400 .Bad Request. without a reason", 400),
        ((302, {"location": "http://127.0.0.1:1/"}, b""), ServerError, "sends requests to another address", 302),
        (problem(500, "x" * 10_000), ServerError, "…", 500),
    ],
    ids=str,
)
def test_problems_are_errors(answer, error, words, status):
    with always(answer) as server, perikope.connect(server.address) as index:
        with pytest.raises(error, match=words) as raised:
            index.search("pump")
        assert type(raised.value) is error
        assert getattr(raised.value, "status", None) == status
        assert len(str(raised.value)) < 700


def test_a_busy_server_is_asked_again(monkeypatch):
    waited = []
    monkeypatch.setattr(transport.time, "sleep", waited.append)
    answers = iter([problem(503, "busy", **{"retry-after": "2"}), problem(503, "busy", **{"retry-after": "0"}), FINE])
    with scripted(lambda method, path: next(answers)) as server, perikope.connect(server.address, "only") as index:
        assert len(index.search("pump")) == 1
        assert len(server.asked) == 3
    assert waited == [2.0, 0.1]


def test_a_busy_server_is_asked_a_limited_number_of_times(monkeypatch):
    waited = []
    monkeypatch.setattr(transport.time, "sleep", waited.append)
    for retries in (0, 2):
        with always(problem(503, "busy", **{"retry-after": "1"})) as server:
            with perikope.connect(server.address, "only", retries=retries) as index, pytest.raises(ServerError, match="busy") as raised:
                index.search("pump")
            assert (len(server.asked), raised.value.status) == (retries + 1, 503)
    assert waited == [1.0, 1.0]


@pytest.mark.parametrize("headers", [{}, {"retry-after": "soon"}, {"retry-after": "31"}, {"retry-after": "-1"}])
def test_a_server_that_does_not_say_when_is_not_asked_again(headers):
    with always(problem(503, "busy", **headers)) as server, perikope.connect(server.address, "only") as index:
        with pytest.raises(ServerError, match="busy"):
            index.search("pump")
        assert len(server.asked) == 1


def test_changes_are_never_sent_again():
    with always(problem(503, "busy", **{"retry-after": "0"})) as server, perikope.connect(server.address, "only") as index:
        for change in (lambda: index.add({"id": "d"}), lambda: index.delete("d")):
            server.asked.clear()
            with pytest.raises(ServerError, match="busy"):
                change()
            assert len(server.asked) == 1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # httpcore does not close a refused Unix socket
def test_a_server_that_is_not_there(tmp_path):
    for address in (f"http://127.0.0.1:{free_port()}", f"unix:{tmp_path / 'nix'}", "http://no-such-host.invalid"):
        with perikope.connect(address, "only") as index, pytest.raises(ServerError) as raised:
            index.search("pump")
        assert str(raised.value) == f"{address} cannot be reached; start the server with `perikope serve`, or check the address"
        assert raised.value.status == 0

    async def search():
        async with perikope.connect_async(f"http://127.0.0.1:{free_port()}", "only") as index:
            await index.search("pump")

    with pytest.raises(ServerError, match="cannot be reached; start the server"):
        asyncio.run(search())


class Silent:
    """A server that takes connections and then does what a test says with each."""

    def __init__(self, handle):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.handle, self.over = handle, threading.Event()
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        connection, _ = self.listening.accept()
        with connection:
            connection.recv(65536)
            self.handle(connection, self.over)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.listening.close()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda index: index.search("pump"), r"was silent for 0.2 seconds; ask for less, or set a longer timeout$"),
        (lambda index: index.delete("d"), "the change may have been made, so look before you repeat it"),
    ],
    ids=["read", "write"],
)
def test_a_silent_server(ask, words):
    with (
        Silent(lambda connection, over: over.wait(60)) as server,
        perikope.connect(server.address, "only", timeout=0.2) as index,
        pytest.raises(ServerError, match=words),
    ):
        ask(index)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", b"nonsense\r\n\r\n"])
def test_a_connection_that_ends_early(sent):
    with Silent(lambda connection, over: connection.sendall(sent)) as server, perikope.connect(server.address, "only") as index:
        with pytest.raises(ServerError, match="has ended the connection without a complete answer") as raised:
            index.search("pump")
        assert raised.value.__cause__ is None


def test_a_token_is_sent_and_never_shown(caplog):
    caplog.set_level(logging.DEBUG)
    with always(FINE) as server, perikope.connect(server.address, token=f"{SECRET}\n") as index:
        results = index.search("pump")
        assert [headers["authorization"] for _, _, headers, _ in server.asked] == [f"Bearer {SECRET}"] * 2
        shown = [repr(index), repr(vars(index)), repr(results), repr(vars(results)), repr(vars(index._connection)), caplog.text]
    assert [text for text in shown if SECRET in text] == []
    for answer in (problem(401, "the token is not known"), (200, JSON, b"<html>"), problem(500, "failed")):
        with always(answer) as server, perikope.connect(server.address, token=SECRET) as index, pytest.raises(PerikopeError) as raised:
            index.search("pump")
        assert SECRET not in f"{raised.value!s} {raised.value!r} {vars(raised.value)}"
    with perikope.connect(f"http://127.0.0.1:{free_port()}", token=SECRET) as index, pytest.raises(ServerError) as raised:
        index.search("pump")
    assert SECRET not in f"{raised.value!s} {raised.value!r}"


def test_a_token_does_not_follow_a_redirect():
    with always(FINE) as other, always((307, {"location": f"{other.address}/indexes/only/search"}, b"")) as server:
        with perikope.connect(server.address, token=SECRET) as index, pytest.raises(ServerError, match="another address"):
            index.search("pump")
        assert other.asked == []


@pytest.mark.parametrize("token", [f"{SECRET}ü", f"{SECRET}\r\nx: y", f"{SECRET} {SECRET}", 7, " "])
def test_a_token_of_another_form_is_refused_without_being_shown(token):
    with pytest.raises(UsageError, match="the token is not one that") as raised:
        perikope.connect("http://127.0.0.1:1", token=token)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("localhost:8321", "'localhost:8321' is not the address of a server; write http://HOST:PORT"),
        ("ftp://host", "is not the address"), ("http://", "is not the address"), ("http://host:99999", "is not the address"),
        ("http://host:x", "is not the address"), ("http://host/?a=b", "is not the address"), ("", "is not the address"),
        ("http://[::1", "is not the address"), ("http://ho\nst", "is not the address"), ("unix:", "has no path"),
        ("http://user:pa55@host", "no user name and no password"), (7, "must be text"), ("http://" + "x" * 5000 + "?a=b", "…|x{40}"),
    ],
)  # fmt: skip
def test_a_wrong_address_is_named(address, words):
    with pytest.raises(UsageError, match=words) as raised:
        perikope.connect(address)
    assert "pa55" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_settings_are_checked():
    for given, words in (
        ({"timeout": 0}, "timeout must be"),
        ({"timeout": "1"}, "timeout must be a number"),
        ({"retries": -1}, "retries"),
        ({"partial": True}, "for clusters"),
    ):
        with pytest.raises(UsageError, match=words):
            perikope.connect("http://127.0.0.1:1", **given)


def test_a_closed_connection_says_so():
    index = perikope.connect("http://127.0.0.1:1", "only")
    index.close()
    index.close()
    with pytest.raises(UsageError, match=r"the connection to http://127.0.0.1:1 was closed; connect again"):
        index.search("pump")


def test_what_a_server_cannot_take_is_refused_before_it_is_sent(tmp_path):
    patent = tmp_path / "patent.xml"
    patent.write_text("<patent/>")
    recipe = load_recipe("carmel2013")
    with always(FINE) as server, perikope.connect(server.address, "only") as index:
        for query, given, words in (
            (Topic("1", patent="EP1A1"), {"translator": "http://127.0.0.1:9"}, "cannot have the option translator"),
            (Topic("1", patent="EP1A1"), {"translator": lambda text, source, target: text}, "cannot have the option translator"),
            (Topic("1", patent="EP1A1", options={"translator": "http://x"}), {}, "cannot have the option translator"),
            (Topic("1", patent=str(patent)), {}, "is a file of this machine"),
            ("pump", {"recipe": "mine.toml"}, "by its name only"),
            ("pump", {"recipe": recipe}, "by its name only"),
            ("pump", {"recipe": "nix"}, "unknown recipe"),
            ("pump", {"filter": perikope.fetch.filters.parse_filter("a=b")}, "give the condition as text"),
            ("pump", {"options": {"k": 3}}, "options must be SearchOptions"),
            ("pump", {"k": 0}, "k must be"),
            ("pump", {"modle": "x"}, "unknown option 'modle'"),
            ("pump\ud800", {}, "cannot be written as JSON"),
            (Topic("1", "pump", options={"ids": ("a",)}), {"ids": ["b"]}, "a server takes one list"),
            (7, {}, "a text or a topic, not for a value of type int"),
        ):
            with pytest.raises(UsageError, match=words):
                index.search(query, **given)
        with pytest.raises(UsageError, match="a server counts words"):
            index.search("pump").context(tokens=len)
        assert len(server.asked) == 1


def test_files_of_this_machine_are_read_here(tmp_path):
    rules = tmp_path / "synonyms.txt"
    rules.write_text("plane, aeroplane\n")
    with always(FINE) as server, perikope.connect(server.address, "only") as index:
        index.search("pump", synonyms=str(rules), translator=None, model="of_the_server(x=1)")
        assert json.loads(server.asked[0][3]) == {"query": "pump", "synonyms": ["plane, aeroplane"], "model": "of_the_server(x=1)"}


def test_keywords_go_before_the_recipe_and_the_recipe_before_options():
    recipe = load_recipe("carmel2013")
    name, value = next(iter(recipe.options.items()))
    with always(FINE) as server, perikope.connect(server.address, "only") as index:
        options = perikope.SearchOptions(part="claims", offset=2).updated({name: value})
        index.search("pump", recipe="carmel2013", options=options, offset=0)
        sent = json.loads(server.asked[0][3])
    assert sent == {"query": "pump", "recipe": "carmel2013", "part": ["claims"], "offset": 0}


def test_threads_share_the_connections():
    with always(FINE) as server, perikope.connect(server.address) as index:
        found = []
        threads = [threading.Thread(target=lambda: found.append(len(index.search("pump")))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1] * 8


def test_an_asynchronous_search_for_many_queries_can_be_left_early():
    async def first():
        with always(FINE) as server:
            async with perikope.connect_async(server.address) as index:
                async for query, results in index.search_many(["a", "b", "c", "d"], at_once=2):
                    return query, len(results)
        return None

    assert asyncio.run(first()) == ("a", 1)


def test_nothing_imports_httpx_before_a_connection_is_made():
    code = (
        "import sys, perikope; perikope.connect, perikope.RemoteIndex, perikope.AsyncRemoteResults, perikope.Index; "
        "print('httpx' in sys.modules); sys.modules['httpx'] = None\n"
        "try: perikope.connect('http://127.0.0.1:1')\n"
        "except perikope.PerikopeError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "False"
    assert second.startswith("MissingExtra this needs httpx, which is not installed")


def test_a_pause_is_awaited_and_does_not_stop_others():
    answers = {"only": iter([problem(503, "busy", **{"retry-after": "0"}), FINE])}

    async def both():
        began = time.monotonic()
        with scripted(lambda method, path: next(answers["only"])) as server:
            async with perikope.connect_async(server.address, "only") as index:
                return len(await index.search("pump")), len(server.asked), time.monotonic() - began >= 0.1

    assert asyncio.run(both()) == (1, 2, True)
