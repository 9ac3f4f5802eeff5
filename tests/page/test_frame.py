"""The frame of the page: keys, colours, languages, indexes, tokens, small screens, errors, and hostile documents."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from perikope.server.gate import Gate, Token, allowed_hosts
from tests.page.searching import BOX, RESULT, ask, names, ranked, ready, wait_for_names
from tests.page.visiting import SMALL
from tests.server.support import LiveServer

FILES = Path(__file__).parents[2] / "src" / "perikope" / "page" / "files"
QUERY = "magnetic coupling"
STATES = {
    "start": {},
    "hits": {"q": QUERY},
    "model": {"q": QUERY, "panel": "models"},
    "comparison": {"q": QUERY, "compare": "bm25"},
    "filters": {"q": "pump", "filter": ["ipc=F04D", "date>=2012"], "group": "document"},
    "mistake": {"q": "magnet AND (ring"},
    "patent": {"q": "EP9140001B1"},
    "nothing": {"q": "xyzzyplugh"},
    "keys": {"q": QUERY, "panel": "keys"},
}


def _opened(visited, state):
    page = ready(visited.go(**state))
    if "compare" in state:
        page.locator(".compared-hit").first.wait_for()
    if state.get("panel") == "models":
        page.locator("pk-models select").first.wait_for()
    page.wait_for_load_state("networkidle")
    return page


@pytest.fixture(scope="module")
def folder(demo: LiveServer) -> Path:
    """The index of the demo."""
    return demo.app.served.by_name["demo"].folder


@pytest.fixture(scope="module")
def several(folder):
    """A server with two indexes."""
    with LiveServer({"first": folder, "second": folder}) as server:
        yield server


@pytest.fixture(scope="module")
def closed(folder):
    """A server on which reading needs a token."""
    token = Token("page", hashlib.sha256(b"open-sesame").digest(), {"read": frozenset(["demo"]), "write": frozenset()})
    gate = Gate(allowed_hosts("127.0.0.1", (), is_socket=False), tokens=(token,), open_reading=False)
    with LiveServer({"demo": folder}, gate) as server:
        yield server


# Keys


def test_a_whole_session_by_keyboard(visit, demo):
    visited = visit(demo, permissions=["clipboard-read", "clipboard-write"])
    visited.allowed.append("400")  # "ma" alone is a stop word of a language of the index
    page = visited.go()
    page.locator("pk-app.landing .contents").wait_for()
    page.keyboard.press("/")
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    wait_for_names(page, ranked(demo, query=QUERY))
    page.keyboard.press("Escape")  # leaves the box
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.hit.rank") == 2
    page.keyboard.press("s")
    assert page.locator(RESULT).nth(1).get_attribute("data-kept") == "keep"
    page.keyboard.press("c")
    page.locator(".toast", has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "mc8-manual.md#@11"
    page.keyboard.press("e")
    page.locator("pk-explanation").wait_for()
    page.keyboard.press("Escape")
    page.locator("pk-explanation").wait_for(state="detached")
    assert page.evaluate("document.activeElement.hit.rank") == 2
    page.keyboard.press("Enter")
    page.locator("pk-document article").wait_for()
    page.keyboard.press("Escape")
    page.locator("pk-document").wait_for(state="detached")
    assert page.evaluate("document.activeElement.hit.rank") == 2
    page.keyboard.press("g")
    wait_for_names(page, ranked(demo, query=QUERY, one_per="document"))
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.closest('.facet') !== null")
    page.keyboard.press("m")
    page.locator("pk-models").wait_for()


def test_the_list_of_keys_has_all_keys(visit, demo):
    page = ready(visit(demo).go(q=QUERY))
    page.keyboard.press("?")
    shown = page.locator("dialog.keys dt").all_text_contents()
    declared = page.evaluate("import('/page/keys.js').then(({ KEYS, keyLabel }) => KEYS.map(({ keys }) => keys.map(keyLabel).join('')))")
    assert sorted(shown) == sorted(declared)
    assert "" not in page.locator("dialog.keys dd").all_text_contents()
    page.keyboard.press("Escape")
    page.locator("dialog.keys").wait_for(state="detached")
    assert "panel" not in page.url


def test_no_two_keys_of_a_place_are_the_same(visit, demo):
    page = visit(demo).go()
    declared = page.evaluate(
        "import('/page/keys.js').then(({ KEYS }) => KEYS.flatMap(({ keys, where }) => keys.map((key) => [where, key])))"
    )
    for place in ("results", "document"):
        keys = [key for where, key in declared if where in (place, "everywhere")]
        assert len(keys) == len(set(keys))


def test_letters_in_the_box_are_no_commands(visit, demo):
    page = ready(visit(demo).go(q="pump"))
    page.locator(BOX).press("End")
    page.keyboard.type(" mwt?gf", delay=5)
    assert page.locator(BOX).input_value() == "pump mwt?gf"
    assert "panel" not in page.url


# Colours, languages, indexes, tokens


def test_the_chosen_colours_stay(visit, demo):
    page = ready(visit(demo).go(q=QUERY))
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    ready(page)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    assert page.get_by_role("button", name="Dark colours").is_visible()


def test_german(visit, demo):
    page = ready(visit(demo, language="de").go(q=QUERY))
    assert page.evaluate("document.documentElement.lang") == "de"
    assert "Die besten 20 Passagen" in page.locator("pk-results .status").text_content()
    assert page.locator(".facts").first.locator("li").nth(1).text_content() == "21. Mai 2014"
    assert re.search(r"^(Passage|Überschriften) \d+\s%$", page.locator(".main-origin").first.text_content())
    page.get_by_label("Sprache").select_option("en")
    page.get_by_label("Language").wait_for()
    ready(page)
    assert "best 20 passages" in page.locator("pk-results .status").text_content()


def test_one_of_several_indexes_is_chosen(visit, several):
    visited = visit(several)
    page = ready(visited.go(q=QUERY))
    page.get_by_label("Index").select_option("second")
    wait_for_names(page, ranked(several, "second", query=QUERY))
    assert "index=second" in visited.state()
    page.reload()
    ready(page)
    assert page.get_by_label("Index").input_value() == "second"


def test_a_token_is_asked_for(visit, closed):
    visited = visit(closed)
    visited.allowed.append("401|403")
    page = visited.go(q=QUERY)
    page.get_by_role("textbox", name="Token").fill("wrong")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    page.get_by_role("textbox", name="Token").fill("open-sesame")
    page.get_by_role("button", name="Continue").click()
    page.locator(RESULT).first.wait_for()
    assert len(names(page)) == 20
    assert page.evaluate("JSON.stringify(localStorage)").count("sesame") == 0
    page.reload()
    page.locator(RESULT).first.wait_for()
    assert page.locator("dialog").count() == 0


def test_a_server_that_is_gone(visit, demo):
    visited = visit(demo)
    visited.allowed.append("ERR_FAILED|Failed to load")
    page = ready(visited.go(q="pump"))
    page.route("**/indexes/**", lambda route: route.abort())
    page.locator(BOX).fill("impeller")
    page.get_by_text("The server does not answer").wait_for()
    page.unroute("**/indexes/**")
    page.get_by_role("button", name="Try again").click()
    wait_for_names(page, ranked(demo, query="impeller"))
    assert page.get_by_text("The server does not answer").is_hidden()


def test_all_programs_of_the_start_are_asked_for_at_once():
    """Without the list in `index.html`, a browser would find them one level of imports after the other."""
    found, waiting = set(), ["app.js"]
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += re.findall(r'^import (?:[^;"]* from )?"\./([^"]+)";', (FILES / name).read_text("utf-8"), re.MULTILINE)
    listed = re.findall(r'rel="modulepreload" href="/page/([^"]+)"', (FILES / "index.html").read_text("utf-8"))
    assert sorted(listed) == sorted(found - {"app.js"})


# For everyone


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_nothing_serious_is_in_the_way(visit, demo, axe, state, theme):
    page = _opened(visit(demo, theme=theme), STATES[state])
    assert axe(page) == []


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("state", STATES)
def test_a_small_screen(visit, demo, state, language):
    page = _opened(visit(demo, size=SMALL, language=language), STATES[state])
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALL[0]
    outside = page.evaluate(
        """(width) => [...document.querySelectorAll("button, a, input, select, h3, p")].filter((one) => {
      const box = one.getBoundingClientRect();
      const isShown = box.width && one.checkVisibility({ opacityProperty: true }) && !one.closest(".unseen, .skip");
      return isShown && (box.right > width + 1 || box.left < -1);
    }).map((one) => one.outerHTML.slice(0, 80))""",
        SMALL[0],
    )
    assert outside == []


def test_hostile_documents_do_nothing(visit, hostile):
    page = ready(visit(hostile).go(q="pump", group="document"))
    for button in page.get_by_role("button", name="More from here").all()[:3]:
        button.click()
    for button in page.get_by_role("button", name="Show the passages around").all()[:5]:
        button.evaluate("(one) => one.click()")
    page.wait_for_load_state("networkidle")
    assert len(names(page)) >= 9
    assert page.evaluate("window.attacked") is None
    assert page.locator("pk-app").is_visible()
    assert page.locator("main script, main style, main img, main iframe, main form, main svg:not(.icon)").count() == 0
    assert all(
        href.startswith(("/", "#")) for href in page.locator("a").evaluate_all("(links) => links.map((one) => one.getAttribute('href'))")
    )
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\u0007]", page.locator("body").inner_text())
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_hostile_values_are_filters_like_others(visit, hostile):
    page = ready(visit(hostile).go(q="pump"))
    authors = ask(hostile, "values", "hostile", field="author")
    assert len(authors) >= 7
    for author in authors:
        page.evaluate(
            """(author) => import("/page/conditions.js").then(({ withValues }) =>
          document.querySelector("pk-app").store.change({ filters: withValues([], "author", [author]) }))""",
            author,
        )
        page.wait_for_function(
            """(author) => {
              const items = [...document.querySelectorAll(".result")];
              return items.length && items.every((item) => item.hit.metadata.author === author);
            }""",
            arg=author,
        )
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\u0007]", page.locator(".chip").text_content())
    assert page.evaluate("window.attacked") is None
