"""Errors as answers: `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

TYPE = "application/problem+json"
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer."""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""The content security policy of the page: nothing inline, and nothing from elsewhere."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request was not answered as asked."""

    type: str
    """`about:blank`: the status says what kind of problem it is."""
    title: str
    """The name of the status."""
    status: int
    """The status of the answer."""
    detail: str
    """What is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class QueryProblem(Problem):
    """Why a Boolean query cannot be read."""

    start: int
    """The first character of the query that is wrong; the length of the query if something is missing at its end."""
    end: int
    """The end of the characters that are wrong (exclusive)."""


class Refusal(Exception):
    """A request that is answered with a problem."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, place: tuple[int, int] | None = None) -> None:
        """`place` has the start and the end of the characters of the query that are wrong, if they are known."""
        super().__init__(detail)
        self.status, self.detail, self.headers, self.place = status, detail, dict(headers or {}), place

    @property
    def body(self) -> bytes:
        """The problem as JSON."""
        return problem_body(self.status, self.detail, self.place)

    @property
    def message(self) -> bytes:
        """The whole answer as it is sent, for a request that cannot be read. The connection ends with it."""
        body = self.body
        headers = {**SECURITY_HEADERS, "content-type": TYPE, "content-length": str(len(body)), **self.headers, "connection": "close"}
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            *(f"{name.lower()}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def problem_body(status: int, detail: str, place: tuple[int, int] | None = None) -> bytes:
    """A problem as JSON."""
    facts = "about:blank", HTTPStatus(status).phrase, status, detail
    content: Any = Problem(*facts) if place is None else QueryProblem(*facts, *place)
    return orjson.dumps(content)
