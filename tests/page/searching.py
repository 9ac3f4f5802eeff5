"""Helpers of the tests that search on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.server.support import LiveServer

RESULT, BOX = "pk-results .result", "#search-box"


def ready(page: Page) -> Page:
    """The page when its search is done and the index is known."""
    page.wait_for_function("""() => {
      const app = document.querySelector("pk-app");
      return app?.search && !app.search.isRunning && (app.search.answer || app.search.problem || !app.store.state.query);
    }""")
    return page


def names(page: Page) -> list[str]:
    """The passages of the shown hits, in their order."""
    return page.evaluate("[...document.querySelectorAll('pk-results .result')].map((item) => `${item.hit.document}#${item.hit.passage}`)")


def wait_for_names(page: Page, expected: list[str]) -> None:
    """Wait until these passages are shown, in this order."""
    page.wait_for_function(
        """(expected) => {
          const hits = [...document.querySelectorAll("pk-results .result")].map((item) => item.hit);
          return JSON.stringify(hits.map((hit) => `${hit.document}#${hit.passage}`)) === JSON.stringify(expected);
        }""",
        arg=expected,
    )


def ask(server: LiveServer, operation: str, index: str = "demo", **options: Any) -> Any:
    """The answer of the server itself."""
    with server.client() as client:
        answer = client.get(f"/indexes/{index}/{operation}", params=options)
        assert answer.status_code == 200, answer.text
        return answer.json()


def ranked(server: LiveServer, index: str = "demo", **options: Any) -> list[str]:
    """The passages that a search finds, best first."""
    return [f"{hit['document']}#{hit['passage']}" for hit in ask(server, "search", index, **{"k": 20, **options})["hits"]]
