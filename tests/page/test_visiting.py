"""The page loads, and the harness notices what goes wrong in it."""

from __future__ import annotations

import pytest


def test_the_page_loads_without_errors(visit, demo):
    page = visit(demo).go()
    assert page.title() == "perikope"
    assert page.locator("pk-app").count() == 1


def test_an_error_of_the_program_is_noticed(visit, demo):
    visited = visit(demo)
    visited.go().evaluate("setTimeout(() => { throw new Error('broken') })")
    visited.page.wait_for_timeout(100)
    with pytest.raises(AssertionError, match="broken"):
        visited.check()
    visited.allowed.append("broken")


def test_a_breach_of_the_security_policy_is_noticed(visit, demo):
    visited = visit(demo)
    visited.go().evaluate("document.body.append(Object.assign(document.createElement('img'), {src: 'https://evil.example/x'}))")
    visited.page.wait_for_timeout(100)
    with pytest.raises(AssertionError, match="security policy"):
        visited.check()
    visited.allowed.append("olicy")
    visited.left.clear()


@pytest.mark.parametrize("server", ["patents", "hostile"])
def test_other_collections_are_served(visit, request, server):
    served = request.getfixturevalue(server)
    page = visit(served).go()
    names = page.evaluate("fetch('/indexes').then((answer) => answer.json())")
    assert names == {"indexes": [server]}
