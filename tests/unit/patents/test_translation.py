"""The adapter against servers on this machine: one that translates, and those that do not."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from perikope.core.errors import UsageError
from perikope.patents import translation
from perikope.patents.translation import LibreTranslate, TranslationError


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


WORDS = {"eine": "a", "pumpe": "pump", "mit": "with", "rotor": "rotor"}


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *details):
        """Nothing: that somebody did not wait for the answer is what is tested."""


@contextmanager
def server(answer):
    """A local server; `answer(path, content)` returns status, headers and body. Yields its address and its requests."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, content))
            status, headers, body = answer(self.path, content)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *details):
            pass

    running = _Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", asked
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def word_by_word(path, content):
    words = [WORDS.get(word.lower(), word) for word in content["q"].split()]
    return 200, {"Content-Type": "application/json"}, json.dumps({"translatedText": " ".join(words)}).encode()


def always(body, status=200, **headers):
    return lambda path, content: (status, headers, body)


@pytest.mark.parametrize("suffix", ["", "/", "/translate", "/translate/"])
def test_a_text_is_translated(suffix):
    with server(word_by_word) as (address, asked):
        assert LibreTranslate(address + suffix)("Eine Pumpe mit Rotor", "de", "en") == "a pump with rotor"
    assert asked == [("/translate", {"q": "Eine Pumpe mit Rotor", "source": "de", "target": "en", "format": "text"})]


def test_a_server_below_a_path_and_a_key():
    with server(word_by_word) as (address, asked):
        LibreTranslate(f"{address}/tools", api_key="k7")("Pumpe", "de", "en")
    assert asked == [("/tools/translate", {"q": "Pumpe", "source": "de", "target": "en", "format": "text", "api_key": "k7"})]


def test_a_key_is_not_shown():
    translator = LibreTranslate("http://localhost:5000", api_key="k7")
    assert repr(translator) == "LibreTranslate('http://localhost:5000/translate')"


@pytest.mark.parametrize("text", ["Kühlmittel für die Pumpe", "ポンプ", "half \ud800 a character", 'quotes " and \\ and \n lines'])
def test_any_text_arrives_as_it_is(text):
    with server(always(b'{"translatedText": "x"}')) as (address, asked):
        LibreTranslate(address)(text, "de", "en")
    assert asked[0][1]["q"] == text


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (always(b'{"error": "de is not supported"}', 400), "400 de is not supported"),
        (always(b"<html>", 503), "503 Service Unavailable"),
        (always(b"<html>it works</html>"), "not a JSON object with translatedText"),
        (always(b'{"translatedText": 7}'), "not a JSON object with translatedText"),
        (always(b'["a pump"]'), "not a JSON object with translatedText"),
        (always(b"[" * 100_000), "not a JSON object with translatedText"),
        (always(b"\xff\xfe\x00"), "not a JSON object with translatedText"),
        (always(b"", 302, Location="http://127.0.0.1:9/translate"), "302"),
        (always(b"", 307, Location="file:///etc/hostname"), "307"),
    ],
)
def test_an_answer_that_is_none_is_an_error_with_the_address(answer, complaint):
    with server(answer) as (address, _), pytest.raises(TranslationError) as raised:
        LibreTranslate(address)("Pumpe", "de", "en")
    assert complaint in str(raised.value)
    assert f"{address}/translate" in str(raised.value)


def test_an_answer_without_end_is_not_read(monkeypatch):
    monkeypatch.setattr(translation, "MAX_BYTES", 1000)
    with server(always(b" " * 1001)) as (address, _), pytest.raises(TranslationError, match="longer than"):
        LibreTranslate(address)("Pumpe", "de", "en")


def test_a_server_that_is_silent():
    def slow(path, content):
        time.sleep(0.5)
        return word_by_word(path, content)

    with server(slow) as (address, _), pytest.raises(TranslationError, match="timed out"):
        LibreTranslate(address, timeout=0.05)("Pumpe", "de", "en")


def test_a_server_that_is_not_there():
    with server(word_by_word) as (address, _):
        pass
    with pytest.raises(TranslationError, match="refused; check the address"):
        LibreTranslate(address)("Pumpe", "de", "en")


@pytest.mark.parametrize(
    "url", ["", "localhost:5000", "file:///etc/hostname", "ftp://host/", "http://", "http://[::1", "http://host:99999", "https:///x"]
)
def test_an_address_that_is_none(url):
    with pytest.raises(UsageError, match="not the address of a translation server"):
        LibreTranslate(url)
