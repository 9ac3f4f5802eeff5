"""Names of parameters, and refusals that name what is wrong."""

from __future__ import annotations

import errno
import re
from typing import Any

import pytest

from perikope.server.handler import refused
from perikope.service.operations import READ, load_operations
from tests.server.support import LiveServer, check_problem, web

NEEDED = {"passage": "pumps#@1", "document": "pumps", "fields": ["year"], "field": "year", "query": "pump", "queries": ["pump"]}
"""Values of options without which some operations do nothing."""
WRONG: list[Any] = ["zz(", -5, ["x=", "[["], {"a": "b"}, "", None, 1e9, True]
"""Values, each of which many options refuse."""


def test_one_name_has_one_meaning() -> None:
    """A document is given as `document`, and a passage as `passage`, in every operation."""
    by_name: dict[str, set[str]] = {}
    for operation in load_operations().values():
        for option in operation.parameters.values():
            by_name.setdefault(option.name, set()).add(option.help)
    assert not {"id", "name"} & by_name.keys()
    assert len(by_name["document"]) == len(by_name["passage"]) == 1


@pytest.mark.parametrize("operation", [o for o in load_operations().values() if o.permission == READ], ids=lambda operation: operation.name)
def test_refusals_name_the_option(operation: Any, live: LiveServer) -> None:
    """Every option gets values of every kind. Whatever is refused, the message has the name of the option."""
    needed = {name: value for name, value in NEEDED.items() if name in operation.parameters}
    with live.client() as client:
        for option in operation.parameters:
            for value in WRONG:
                given = {**needed, option: value}
                path = f"/indexes/small/{operation.name}".rstrip("/")
                answer = client.post(path, json=given) if "POST" in operation.methods else client.get(path, params=given)
                # A condition may leave out the document of the passage. Files are not shown by this server.
                is_other = "was not fetched" in answer.text or "does not show the files" in answer.text
                if answer.status_code != 200 and not is_other:
                    assert re.search(rf"\b{option}\b", answer.json()["detail"]), (given, answer.text)


@pytest.mark.parametrize("text", ["k=abc", "k=k", "k=-1", "rescore_weight=x", "documents=many", "must_match=maybe", "model=bm52"])
def test_refusals_of_query_strings_name_the_option(live: LiveServer, text: str) -> None:
    detail = check_problem(web.get(f"{live.url}/indexes/small/search?query=pump&{text}"), 400)
    assert re.search(rf"\b{text.partition('=')[0]}\b", re.sub("'.*?'", "", detail)), detail


@pytest.mark.parametrize("scheme", ["Basic", "Digest", "Token"])
def test_other_schemes_are_told_to_use_a_bearer_token(live: LiveServer, scheme: str) -> None:
    answer = web.get(f"{live.url}/indexes/small/search?query=pump", headers={"Authorization": f"{scheme} dXNlcjpwYXNz"})
    assert "bearer token" in check_problem(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EROFS, "Read-only file system"), "the index cannot be written"),
        (OSError(errno.ENOSPC, "No space left on device"), "the index cannot be written"),
        (PermissionError(errno.EACCES, "Permission denied"), "the server lacks a permission"),
        (OSError(errno.EIO, "Input/output error"), "the index cannot be read"),
        (ZeroDivisionError(), "the server failed"),
    ],
)
def test_an_error_of_the_system_says_what_cannot_be_done(error: Exception, said: str) -> None:
    facts, answer = refused(error, {})
    assert facts["status"] == 500
    assert said in answer.decode()
