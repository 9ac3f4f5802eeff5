"""Translation of a query into a language of the index: a protocol, and an adapter for LibreTranslate servers.

Nothing is translated unless the user asks for it: unpublished text must not leave the machine by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from perikope.core.errors import PerikopeError, UsageError

TIMEOUT = 60.0
"""Seconds without an answer after which a request fails; a hundred claims take a small machine a while."""
MAX_BYTES = 1 << 24
"""The longest answer that is read, in bytes; no translation of claims is longer."""
_EXCERPT = 200


class TranslationError(PerikopeError):
    """A text could not be translated."""


class Translator(Protocol):
    """A function with this signature, or an object such as `LibreTranslate`."""

    def __call__(self, text: str, source: str, target: str) -> str:
        """Translate a text from the language `source` to the language `target`; both are codes such as `de`."""
        ...


class LibreTranslate:
    """A server with LibreTranslate's `POST /translate`, by its address: `http://localhost:5000`.

    Only http and https are used, and redirections are not followed, so that the text goes to the given address only.
    """

    def __init__(self, url: str, *, api_key: str = "", timeout: float = TIMEOUT) -> None:
        try:
            parts = urlsplit(url.strip())
            host = parts.hostname and parts.port != 0
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https"):
            raise UsageError(f"{url!r} is not the address of a translation server; write it as http://localhost:5000")
        path = parts.path.rstrip("/").removesuffix("/translate")
        self.url = f"{parts.scheme}://{parts.netloc}{path}/translate"
        self._api_key = api_key
        self._timeout = timeout
        self._open: Callable[..., Any] = build_opener(_NoRedirection).open

    def __call__(self, text: str, source: str, target: str) -> str:
        """See `Translator`."""
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
                raise self._failed(f"it answers {error.code} {_reason(error)}") from None
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            reason_given = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason) or type(reason).__name__
            raise self._failed(f"{reason_given}; check the address, and whether the server runs") from None
        if len(data) > MAX_BYTES:
            raise self._failed(f"its answer is longer than {MAX_BYTES >> 20} MB")
        translated = _field(data, "translatedText")
        if translated is None:
            raise self._failed("its answer is not one of LibreTranslate's, an object with translatedText")
        return translated

    def _failed(self, why: str) -> TranslationError:
        return TranslationError(f"cannot translate with {self.url}: {why}")

    def __repr__(self) -> str:
        return f"LibreTranslate({self.url!r})"


class _NoRedirection(HTTPRedirectHandler):
    """Turns every redirection into an error."""

    def redirect_request(self, *details: Any, **more: Any) -> None:
        """Follow no redirection."""
        return


def _reason(error: HTTPError) -> str:
    """The reason that a server gives for an error: `{"error": "…"}`, or the reason phrase of HTTP."""
    try:
        reason_given = _field(error.read(MAX_BYTES), "error")
    except (OSError, HTTPException):
        reason_given = None
    return (reason_given or error.reason or "")[:_EXCERPT]


def _field(data: bytes, name: str) -> str | None:
    """A text in a JSON object, or None."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, str) else None
