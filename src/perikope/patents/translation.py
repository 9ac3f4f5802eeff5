"""Translation of queries into the languages of an index: a protocol, and a client for LibreTranslate servers.

Nothing is translated unless the user requests it: unpublished text must not leave the machine by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from http.client import HTTPException
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from perikope.core.errors import PerikopeError, UsageError

TIMEOUT = 60.0
"""Seconds without an answer after which a request fails. Translating a hundred claims can take this long."""
MAX_BYTES = 1 << 24
"""The longest accepted answer, in bytes; translations of claims are far shorter."""
REMEMBERED = 4096
"""Number of recent translations that a translator remembers."""
_EXCERPT = 200


class TranslationError(PerikopeError):
    """A text could not be translated."""


class Translator(Protocol):
    """A translator of texts: a function with the signature of `__call__`, or an object such as `LibreTranslate`."""

    def __call__(self, text: str, source: str, target: str) -> str:
        """Return a text translated from the language `source` to the language `target`; both are codes such as `de`."""
        ...


class LibreTranslate:
    """A translator that sends texts to a LibreTranslate server (`POST /translate`) at a URL.

    The URL must be http or https, such as `http://localhost:5000`. Redirections are not followed, so that texts go to
    this address only.
    """

    def __init__(self, url: str, *, api_key: str = "", timeout: float = TIMEOUT) -> None:
        try:
            parts = urlsplit(url.strip())
            host = parts.hostname and parts.port != 0
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https"):
            raise UsageError(f"{url!r} is not the address of a translation server; give a URL such as http://localhost:5000")
        path = parts.path.rstrip("/").removesuffix("/translate")
        self.url = f"{parts.scheme}://{parts.netloc}{path}/translate"
        self._api_key = api_key
        self._timeout = timeout
        self._open: Callable[..., Any] = build_opener(_NoRedirection).open
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._ask)

    def __call__(self, text: str, source: str, target: str) -> str:
        """Return the text as the server translates it; a failure raises `TranslationError`. See `Translator`.

        Recent translations are remembered, because an experiment searches with the same patents many times.
        """
        return self._remembered(text, source, target)

    def _ask(self, text: str, source: str, target: str) -> str:
        content = {"q": text, "source": source, "target": target, "format": "text"}
        if self._api_key:
            content["api_key"] = self._api_key
        # A lone surrogate can be written in JSON, but not in UTF-8.
        body = json.dumps(content).encode("ascii")
        request = Request(self.url, body, {"Content-Type": "application/json", "Accept": "application/json"}, method="POST")
        try:
            with self._open(request, timeout=self._timeout) as answer:
                data: bytes = answer.read(MAX_BYTES + 1)
        except HTTPError as error:
            with error:
                raise self._failed(
                    f"the server answers {error.code} {_reason(error)}; check the address, the API key and the languages"
                ) from None
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            reason_given = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason) or type(reason).__name__
            raise self._failed(f"{reason_given}; check the address and that the server runs") from None
        if len(data) > MAX_BYTES:
            raise self._failed(f"the answer is longer than {MAX_BYTES >> 20} MB; check the address, or translate a shorter text")
        translated = _field(data, "translatedText")
        if translated is None:
            raise self._failed("the answer is not a JSON object with translatedText; give the address of a LibreTranslate server")
        return translated

    def _failed(self, why: str) -> TranslationError:
        return TranslationError(f"cannot translate with {self.url}: {why}")

    def __repr__(self) -> str:
        return f"LibreTranslate({self.url!r})"


@lru_cache(maxsize=4)
def libre_translate(url: str, api_key: str = "") -> LibreTranslate:
    """The translator of a server. Calls with the same arguments return the same object, with what it remembers."""
    return LibreTranslate(url, api_key=api_key)


class _NoRedirection(HTTPRedirectHandler):
    """Follows no redirection, so that each one is an `HTTPError`."""

    def redirect_request(self, *details: Any, **more: Any) -> None:
        """Return None, so that the redirection is an error."""
        return


def _reason(error: HTTPError) -> str:
    """The reason of a failed request: the text of `{"error": "…"}` in the answer, else the HTTP reason phrase."""
    try:
        reason_given = _field(error.read(MAX_BYTES), "error")
    except (OSError, HTTPException):
        reason_given = None
    return (reason_given or error.reason or "")[:_EXCERPT]


def _field(data: bytes, name: str) -> str | None:
    """The text under a key of a JSON object; None if the data is not such an object or the value is no text."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, str) else None
