"""The work list: keep, discard, note, export, import, in the browser."""

from __future__ import annotations

import json

import pytest

from tests.page.visiting import SMALL

MOUNT = """async ([hits, states]) => {
  const [{ WorkList }, { Store }, { Api }, texts] = await Promise.all(
    ["worklist", "state", "api", "texts"].map((name) => import(`/page/${name}.js`)));
  await texts.loadLanguage();
  await import("/page/work-list.js");
  const list = new WorkList("demo"), panel = document.createElement("pk-work-list");
  hits.forEach((hit, at) => states[at] && list[states[at]](hit));
  Object.assign(panel, { store: new Store(), api: new Api("demo"), worklist: list });
  const aside = document.createElement("aside");
  aside.setAttribute("aria-label", "panel");
  aside.style.setProperty("max-width", "24rem");
  aside.style.setProperty("padding", "1rem");
  aside.append(panel);
  document.body.replaceChildren(aside);
  window.list = list;
}"""
"""Puts the panel alone on the page, over a list with these hits."""


@pytest.fixture
def opened(visit, demo):
    """Opens the panel with the first hits of a search."""

    def open_panel(*states: str, server=demo, query: str = "magnetic coupling", **options):
        visited = visit(server, permissions=["clipboard-read", "clipboard-write"], **options)
        page = visited.go()
        index = page.evaluate("fetch('/indexes').then((answer) => answer.json())")["indexes"][0]
        hits = page.evaluate("(url) => fetch(url).then((answer) => answer.json())", f"/indexes/{index}/search?query={query}&k=20")["hits"]
        page.evaluate(MOUNT, [hits, list(states)])
        return page, hits

    return open_panel


def test_kept_and_discarded_passages_are_listed(opened):
    page, hits = opened("keep", "discard", "keep")
    assert page.get_by_role("button", name="Kept 2").get_attribute("aria-pressed") == "true"
    assert page.locator(".work-entry").count() == 2
    assert page.locator(".work-entry").first.get_attribute("data-name").endswith(f"#{hits[2]['passage']}")  # the newest first
    page.get_by_role("button", name="Discarded 1").click()
    assert page.locator(".work-entry .work-text").all_text_contents() == [hits[1]["text"]]
    page.get_by_role("button", name="All 3").click()
    assert page.locator(".work-entry").count() == 3


def test_a_second_time_takes_a_decision_back_unless_there_is_a_note(opened):
    page, _ = opened("keep", "keep")
    page.get_by_placeholder("Note").first.fill("read this")
    for _ in range(2):
        page.locator(".work-entry [data-state=keep]").first.click()
    assert page.locator(".work-entry").count() == 0
    page.get_by_role("button", name="All 1").click()
    assert page.locator("textarea").input_value() == "read this"


def test_the_list_is_kept_in_the_browser_and_reaches_other_windows(opened):
    page, hits = opened("keep")
    page.get_by_placeholder("Note").fill("in both windows")
    other = page.context.new_page()
    other.goto(page.url)
    other.evaluate(MOUNT, [hits, []])
    assert other.locator("textarea").input_value() == "in both windows"
    other.locator(".work-entry [data-state=discard]").click()
    page.get_by_role("button", name="Discarded 1").wait_for()


def test_a_note_keeps_the_cursor_while_it_is_written(opened):
    page, _ = opened("keep", "keep")
    page.get_by_placeholder("Note").last.press_sequentially("a longer note")
    assert page.evaluate("list.entries.map((entry) => entry.note)") == ["", "a longer note"]


def test_a_citation_is_copied_with_one_key(opened, patents):
    page, hits = opened("keep", server=patents, query="pump")
    page.locator(".work-entry a").focus()
    page.keyboard.press("c")
    page.get_by_text(f"Copied: {hits[0]['citation']}").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == hits[0]["citation"]
    page.get_by_placeholder("Note").press_sequentially("c")
    assert page.locator("textarea").input_value() == "c"


def test_an_entry_opens_its_document(opened):
    page, hits = opened("keep")
    page.locator(".work-entry a").click()
    assert f"document={hits[0]['document']}" in page.url


def test_what_was_exported_can_be_imported(opened, tmp_path):
    page, _ = opened("keep", "discard", "keep")
    page.get_by_placeholder("Note").first.fill("=1+1")
    with page.expect_download() as started:
        page.get_by_role("button", name="JSON").click()
    assert started.value.suggested_filename == "work-list-demo.json"
    started.value.save_as(tmp_path / "list.json")
    before = page.evaluate("list.entries")
    page.get_by_role("button", name="Remove all").click()
    assert page.evaluate("list.entries") == []
    page.locator("input[type=file]").set_input_files(tmp_path / "list.json")
    page.get_by_text("3 entries were imported.").wait_for()
    assert page.evaluate("list.entries") == before
    assert {entry["state"] for entry in before} == {"keep", "discard"}
    with page.expect_download() as started:
        page.get_by_role("button", name="CSV").click()
    text = started.value.path().read_text("utf-8-sig")
    assert text.startswith("state,note,document,")
    assert "keep,'=1+1," in text


@pytest.mark.parametrize("content", ["no JSON", "{}", '{"kind": "perikope work list", "entries": 3}', "null"])
def test_another_file_is_refused(opened, tmp_path, content):
    page, _ = opened("keep")
    (tmp_path / "other.json").write_text(content)
    page.locator("input[type=file]").set_input_files(tmp_path / "other.json")
    page.get_by_text("other.json is not a work list").wait_for()
    assert page.locator(".work-entry").count() == 1


def test_a_hostile_file_does_nothing(opened, tmp_path):
    page, _ = opened()
    bad = "<img src=x onerror='window.attacked=1'>\u202egnp"
    entries = [
        {"document": bad, "passage": bad, "title": bad, "path": [bad, {"toString": 1}], "text": bad, "state": "keep", "metadata": [1]},
        {"document": "a", "passage": 3}, None, 7, {"document": {"a": 1}, "passage": "b"},
        {"document": "b", "passage": "c", "state": "__proto__", "path": "x", "citation": 5, "metadata": {"__proto__": {"x": 1}}},
    ]  # fmt: skip
    (tmp_path / "list.json").write_text(json.dumps({"kind": "perikope work list", "entries": entries}))
    page.locator("input[type=file]").set_input_files(tmp_path / "list.json")
    page.get_by_text("2 entries were imported.").wait_for()
    page.get_by_role("button", name="All 2").click()
    assert page.evaluate("window.attacked") is None
    assert page.locator(".work-entry img").count() == 0
    assert "\u202e" not in page.locator(".work-entries").inner_text()


def test_removing_can_be_undone(opened):
    page, _ = opened("keep", "keep")
    before = page.evaluate("list.entries")
    page.get_by_role("button", name="Remove", exact=True).first.click()
    assert page.locator(".work-entry").count() == 1
    page.get_by_role("button", name="Undo").click()
    assert page.evaluate("list.entries") == before


def test_a_full_storage_is_said(opened):
    page, _ = opened("keep")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } }")
    page.locator(".work-entry [data-state=discard]").click()
    page.get_by_text("The browser cannot store more.").wait_for()


def test_everything_works_by_keyboard(opened):
    page, _ = opened("keep", "keep")
    page.keyboard.press("Tab")
    seen = []
    for _ in range(30):
        seen.append(page.evaluate("document.activeElement.textContent || document.activeElement.placeholder"))
        page.keyboard.press("Tab")
    assert {"Note", "Keep", "Discard", "Cite", "Remove", "CSV", "XLSX", "JSON", "RIS", "Import a list", "Remove all"} <= set(seen)
    page.locator(".work-entry [data-state=discard]").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.work-entry') !== null"), "the next entry has the focus"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_panel_is_accessible(opened, axe, theme):
    page, _ = opened("keep", "discard", "keep", theme=theme)
    assert axe(page) == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_it_fits_a_small_screen(opened, language):
    page, _ = opened("keep", "keep", size=SMALL, language=language)
    assert page.get_by_role("button", name="Behalten 2" if language == "de" else "Kept 2").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
