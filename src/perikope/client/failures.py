"""Problems that a server answers with, and answers that cannot be read, as errors."""

from __future__ import annotations

from http import HTTPStatus

from perikope.client.address import ServerAddress
from perikope.core.checked_json import parse_json
from perikope.core.errors import NotFound, PerikopeError, ServerError, UnreadableQuery, UsageError
from perikope.search.views import printable

_OK, _REDIRECTS = 200, range(300, 400)


def check_status(address: ServerAddress, status: int, body: bytes) -> None:
    """Raise the error for an answer that is not a success."""
    if status == _OK:
        return
    detail = _detail(body)
    if status in _REDIRECTS:
        raise ServerError(f"{address} sends requests to another address; connect to that one", status)
    if not detail:
        raise ServerError(f"{address} answers {_in_words(status)} {_ADVICE}", status)
    if status == HTTPStatus.BAD_REQUEST:
        raise UsageError(detail) if (place := _place(body)) is None else UnreadableQuery(detail, *place)
    if status == HTTPStatus.NOT_FOUND:
        raise NotFound(detail)
    raise ServerError(f"{address} answers {_in_words(status)}: {detail}", status)


_ADVICE = "without a reason that can be read; check that the address is that of `perikope serve`"


def unreadable(address: ServerAddress, status: int) -> PerikopeError:
    """The error for an answer that no server of this version sends."""
    return ServerError(
        f"the answer of {address} cannot be read; check that the address is that of `perikope serve`, and that its version is the same",
        status,
    )


def _detail(body: bytes) -> str:
    """What a problem says, as one line; empty if the body is no problem."""
    try:
        content = parse_json(body)
    except ValueError:
        return ""
    detail = content.get("detail") if isinstance(content, dict) else None
    return " ".join(printable(detail).split()) if isinstance(detail, str) else ""


def _place(body: bytes) -> tuple[int, int] | None:
    """The characters of the query that a problem names: start and end. None if it names none."""
    content = parse_json(body)
    assert isinstance(content, dict)  # since it has a detail
    start, end = content.get("start"), content.get("end")
    return (start, end) if isinstance(start, int) and isinstance(end, int) else None


def _in_words(status: int) -> str:
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)
