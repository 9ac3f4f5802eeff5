"""Visits of the page: a window of its own per visit, whose errors fail the test."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from tests.server.support import LiveServer, ServerProcess

PATIENCE = 30_000
"""Milliseconds that a test waits for something that takes milliseconds on an idle machine."""
WIDE, SMALL = (1280, 900), (360, 740)
"""Sizes of windows, in pixels."""
WATCH_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => console.error(
  `security policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


@dataclass
class Visit:
    """A window with the page in it, and what went wrong there."""

    page: Page
    url: str
    """The address of the server, without a path."""
    errors: list[str] = field(default_factory=list)
    """Errors on the console, errors of the program, and breaches of the content security policy."""
    left: list[str] = field(default_factory=list)
    """Requests that left the server."""
    allowed: list[str] = field(default_factory=list)
    """Regular expressions of errors that the test expects."""

    def watch(self) -> None:
        """Note what goes wrong from now on."""
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(f"{error.name}: {error.message}"))
        self.page.on("request", lambda request: self._note_request(request.url))

    def _note_request(self, address: str) -> None:
        if not address.startswith(("data:", "blob:", self.url)):
            self.left.append(address)

    def go(self, **state: str | Sequence[str]) -> Page:
        """Open the address of a state, given by the names of the address, such as `q="pump"`."""
        self.page.goto(f"{self.url}/?{urlencode(state, doseq=True)}" if state else f"{self.url}/")
        return self.page

    def state(self) -> str:
        """The query string of the address, which is the state of the page."""
        return urlsplit(self.page.url).query

    def check(self) -> None:
        """Fail if something went wrong that the test does not expect."""
        unexpected = [error for error in self.errors if not any(re.search(pattern, error) for pattern in self.allowed)]
        assert unexpected == [], f"errors of the page: {unexpected}"
        assert self.left == [], f"the page asked another server: {self.left}"


class Visitor:
    """Opens windows. Each visit has its own storage, as a new user has."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.visits: list[tuple[BrowserContext, Visit]] = []

    def __call__(
        self,
        server: LiveServer | ServerProcess,
        *,
        size: tuple[int, int] = WIDE,
        theme: str = "light",
        language: str = "en",
        **options: Any,
    ) -> Visit:
        """A new window at a server. The page is not loaded yet; `Visit.go` does it."""
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if theme == "dark" else "light",
            locale={"en": "en-GB", "de": "de-DE"}[language], timezone_id="UTC", reduced_motion="reduce",
            accept_downloads=True, **options,
        )  # fmt: skip
        context.set_default_timeout(PATIENCE)
        context.add_init_script(WATCH_VIOLATIONS)
        visit = Visit(context.new_page(), server.url)
        visit.watch()
        self.visits.append((context, visit))
        return visit

    def close(self) -> None:
        """Close all windows."""
        for context, _ in self.visits:
            context.close()

    def check(self) -> None:
        """Fail if something went wrong in a window."""
        for _, visit in self.visits:
            visit.check()


Visiting = Callable[..., Visit]
"""The type of the fixture `visit`."""
