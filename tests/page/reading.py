"""Helpers of the tests that read documents: a host for the components, and a large document."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perikope.service.operations import load_operations
from tests.page.visiting import PATIENCE, Visit

if TYPE_CHECKING:
    from playwright.sync_api import Page

FILES = Path(__file__).parents[2] / "src" / "perikope" / "page" / "files"
HOST = """
import { Api } from "./api.js";
import { Store } from "./state.js";
import { loadLanguage } from "./texts.js";
await loadLanguage();
await Promise.all([import("./document-view.js"), import("./explanation-view.js")]);
const store = new Store(), api = new Api(store.state.index || (await (await fetch("/indexes")).json()).indexes[0]);
const app = Object.assign(document.querySelector("pk-app"), { store, api });
const main = app.appendChild(document.createElement("main"));
const show = () => {
  for (const [tag, shown] of [["pk-document", store.state.document], ["pk-explanation", store.state.explained]]) {
    const present = main.querySelector(tag);
    if (present && !shown) present.remove();
    if (!present && shown) main.append(Object.assign(document.createElement(tag), { store, api }));
  }
};
store.addEventListener("change", show);
show();
const keys = { n: "nextHit", p: "previousHit", e: "explain", c: "cite" };
addEventListener("keydown", (event) => keys[event.key] && document.dispatchEvent(new CustomEvent("command", { detail: keys[event.key] })));
"""
"""An app that shows documents and explanations only. It is used while `app.js` is none, and never sent to users."""
REASONS = {
    "score": 5.0,
    "parts": [
        {"origin": "titles", "value": 3.0, "words": {"magnetic": 2.0, "coupling": 1.0}},
        {"origin": "passage", "value": 1.5, "words": {"magnetic": 1.5}},
        {"origin": "neighbors", "value": -0.5, "words": {}},
    ],
}
"""An answer of the operation `reasons`."""


def reader(visit: Visit, reasons: dict[str, Any] | None = None) -> Visit:
    """The visit, with the host if the page has no app, and with an answer for `reasons` if it is given or needed."""
    if "customElements.define" not in (FILES / "app.js").read_text("utf-8"):
        visit.page.route("**/page/app.js", lambda route: route.fulfill(body=HOST, content_type="text/javascript"))
    if reasons is not None or "reasons" not in load_operations():
        answer = json.dumps(reasons or REASONS)
        visit.page.route("**/reasons?*", lambda route: route.fulfill(body=answer, content_type="application/json"))
    return visit


def wait_until(page: Page, expression: str) -> None:
    """Wait until an expression is true in the page. Playwright's own function breaks the content security policy."""
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def large_document(passages: int) -> dict[str, Any]:
    """A document with many passages in sections of 20, as a line of JSON Lines has it."""
    words = ["rotor", "magnet", "coupling", "shaft", "seal", "water", "condenser", "lime", "interval"]
    text = [" ".join(words[(number * 7 + at * 5) % len(words)] for at in range(40)) for number in range(passages)]
    sections = [{"title": f"Section {first // 20 + 1}", "passages": text[first : first + 20]} for first in range(0, passages, 20)]
    sections[-1]["passages"][-1] += " and the descaling"
    return {"id": "large", "title": "A large manual", "sections": sections}
