"""Searching on the page: the box, the hits, filters, grouping, and the address."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import pytest

from tests.page.searching import BOX, RESULT, ask, names, ranked, ready, wait_for_names

QUERY = "magnetic coupling"
CLAIM = (
    "1. A pump comprising a motor, an impeller, an outer ring of magnets on the motor side and an inner ring of magnets on the impeller "
    "side, characterised in that a sensor detects the speed of the inner ring."
)


def test_results_are_passages_with_path_words_and_source(visit, demo):
    page = ready(visit(demo).go(q=QUERY))
    [hit] = ask(demo, "search", query=QUERY, k=1)["hits"]
    first = page.locator(RESULT).first
    assert first.locator(".heading > *").all_text_contents() == hit["path"]
    assert first.locator(".passage").text_content() == hit["text"]
    assert first.locator("mark").all_text_contents() == [hit["text"][start:end] for start, end in hit["highlights"]]
    assert first.locator(".facts li").all_text_contents() == ["EP9130000B1", "21 May 2014", "en", "patents/granted.jsonl"]
    assert names(page) == ranked(demo, query=QUERY)
    assert "best 20 passages" in page.locator("pk-results .status").text_content()


def test_typing_searches_without_enter(visit, demo):
    visited = visit(demo)
    visited.allowed.append("400")  # "de" alone is a stop word of a language of the index
    page = visited.go()
    page.locator(BOX).press_sequentially("descaling", delay=10)
    wait_for_names(page, ranked(demo, query="descaling"))
    assert parse_qs(visited.state()) == {"q": ["descaling"]}


def test_a_word_is_completed(visit, demo):
    visited = visit(demo)
    visited.allowed.append("400")  # "ma" alone is a stop word of a language of the index
    page = visited.go()
    page.locator(BOX).press_sequentially("magnetic coup", delay=10)
    page.get_by_role("option", name="coupling").wait_for()
    page.keyboard.press("ArrowDown")
    assert page.get_by_role("option").first.get_attribute("aria-selected") == "true"
    assert page.locator(BOX).get_attribute("aria-activedescendant") == "suggestion-0"
    page.keyboard.press("Enter")
    assert page.locator(BOX).input_value() == "magnetic coupling "
    wait_for_names(page, ranked(demo, query=QUERY))
    assert page.get_by_role("listbox").is_hidden()


def test_a_misspelt_word_is_corrected(visit, demo):
    page = ready(visit(demo).go(q="magnettic pumpp"))
    page.get_by_role("button", name="magnetic pump").click()
    wait_for_names(page, ranked(demo, query="magnetic pump"))
    assert page.locator(BOX).input_value() == "magnetic pump"


def test_a_mistake_of_a_boolean_query_is_shown_at_its_place(visit, demo):
    page = ready(visit(demo).go(q="magnet AND (ring"))
    assert page.locator(".mirror .wrong").text_content() == "("
    assert page.locator(".mirror").text_content() == page.locator(BOX).input_value()
    assert "not closed" in page.get_by_role("alert").first.text_content()
    assert page.locator(BOX).get_attribute("aria-invalid") == "true"
    page.locator(BOX).press("End")
    page.locator(BOX).press_sequentially(")")
    wait_for_names(page, ranked(demo, query="magnet AND (ring)", syntax="boolean"))
    assert page.locator(".mirror .wrong").count() == 0
    assert page.locator(".reading").text_content() == "Read as a Boolean query."


def test_a_patent_number_is_recognised_and_its_limits_can_be_switched_off(visit, demo):
    page = ready(visit(demo).go(q="EP 9140001 B1"))
    wait_for_names(page, ranked(demo, patent="EP-9140001-B1"))
    page.get_by_label("share a class").uncheck()
    page.get_by_label("were published earlier").uncheck()
    expected = ranked(demo, patent="EP-9140001-B1", code_filter=False, date_limit=False)
    assert expected != ranked(demo, patent="EP-9140001-B1")
    wait_for_names(page, expected)
    page.get_by_role("button", name="Open EP-9140001-B1").click()
    page.wait_for_url("**document=EP-9140001-B1**")


def test_a_pasted_claim_is_recognised(visit, demo):
    page = visit(demo).go()
    page.locator(BOX).fill(CLAIM)
    page.locator(".reading").wait_for()
    assert page.locator(".reading").text_content().startswith("Read as claims")
    wait_for_names(page, ranked(demo, claims=CLAIM))


def test_a_number_that_the_index_does_not_have(visit, demo):
    page = ready(visit(demo).go(q="EP1234567B1"))
    assert "does not have EP1234567B1" in page.locator(".reading").text_content()


# Filters


def test_values_are_counted_and_restrict_the_search(visit, demo):
    visited = visit(demo)
    page = ready(visited.go(q="pump"))
    facet = page.locator("details.facet", has_text="IPC class")
    counts = ask(demo, "facets", query="pump", fields="ipc", level="subclass")["ipc"]["values"]
    facet.locator(".value").first.wait_for()
    shown = dict(zip(facet.locator(".name").all_text_contents(), map(int, facet.locator(".value .count").all_text_contents()), strict=True))
    assert shown == dict(list(counts.items())[: len(shown)])
    facet.get_by_label("F04D").check()
    wait_for_names(page, ranked(demo, query="pump", filter="ipc=F04D"))
    assert parse_qs(visited.state())["filter"] == ["ipc=F04D"]
    # Another value of the same field adds documents; its count is still shown.
    facet.get_by_label("H02K").check()
    wait_for_names(page, ranked(demo, query="pump", filter="ipc=F04D|H02K"))
    page.get_by_role("button", name="Remove the filter IPC class: F04D, H02K").click()
    wait_for_names(page, ranked(demo, query="pump"))


def test_limits_of_dates(visit, demo):
    page = ready(visit(demo).go(q="pump"))
    page.get_by_label("Date: from", exact=True).fill("2014")
    page.get_by_label("Date: from", exact=True).press("Enter")
    wait_for_names(page, ranked(demo, query="pump", filter="date>=2014"))
    page.get_by_label("Date: to", exact=True).fill("2016-06")
    page.get_by_label("Date: to", exact=True).press("Enter")
    wait_for_names(page, ranked(demo, query="pump", filter=["date>=2014", "date<=2016-06"]))


def test_a_bar_of_dates_is_a_limit(visit, demo):
    visited = visit(demo)
    page = ready(visited.go(q="pump"))
    bar = page.get_by_role("button", name="2014: 1 documents")
    bar.click()
    wait_for_names(page, ranked(demo, query="pump", filter="date=2014"))
    assert parse_qs(visited.state())["filter"] == ["date>=2014", "date<=2014"]


def test_a_condition_that_the_page_does_not_write_is_shown_and_removed(visit, demo):
    page = ready(visit(demo).go(q="pump", filter=["kind!=A1", "folder=*"]))
    assert names(page) == ranked(demo, query="pump", filter=["kind!=A1", "folder=*"])
    assert page.locator(".chip").all_text_contents() == ["kind!=A1", "folder=*"]
    page.locator(".chip").first.click()
    wait_for_names(page, ranked(demo, query="pump", filter="folder=*"))


def test_a_wrong_condition_is_said(visit, demo):
    visited = visit(demo)
    visited.allowed.append("400")
    page = ready(visited.go(q="pump", filter="yeer=2010"))
    assert "yeer" in page.locator("pk-results .status").text_content()
    page.locator(".chip").click()
    wait_for_names(page, ranked(demo, query="pump"))


HOSTILE = ["plain", 'say "no"', "a|b", "back\\slash", "*", "a..b", "G06F", "ä ß", "'", "x=y", "<b>", "2010", "\u202egnp"]


@pytest.mark.parametrize("field", ["by", "a b", 'q"uote', "ipc"])
def test_conditions_are_read_by_the_server_as_they_were_written(visit, demo, field):
    from perikope.fetch.filters import parse_filter

    page = visit(demo).go()
    for value in HOSTILE:
        text = page.evaluate(
            "([field, value]) => import('/page/conditions.js').then((one) => one.writeCondition(field, '=', [value]))", [field, value]
        )
        read = page.evaluate("(text) => import('/page/conditions.js').then((one) => one.readCondition(text))", text)
        assert read == {"field": field, "operator": "=", "values": [value]}
        [test] = parse_filter(text).tests
        assert parse_filter(text).field == field
        assert value in str(test).replace('\\"', '"').replace("\\\\", "\\")


# Groups, more hits, neighbours


def test_groups_of_a_document(visit, demo):
    page = ready(visit(demo).go(q="pump"))
    page.get_by_label("Group").select_option("document")
    wait_for_names(page, ranked(demo, query="pump", one_per="document"))
    page.get_by_role("button", name="More from here").first.click()
    first = ranked(demo, query="pump", one_per="document")[0]
    inside = ranked(demo, query="pump", ids=first.partition("#")[0], k=11)
    page.locator(".compact li").first.wait_for()
    assert page.locator(".compact li").count() == len([name for name in inside if name != first])


def test_families_are_collapsed(visit, demo):
    page = ready(visit(demo).go(q="pump"))
    page.get_by_label("Group").select_option("family")
    wait_for_names(page, ranked(demo, query="pump", one_per=["family", "document"]))


def test_more_on_scrolling(visit, demo):
    page = ready(visit(demo).go(q="pump"))
    everything = ranked(demo, query="pump", k=1000)
    assert len(everything) > 40
    while not page.evaluate("document.querySelector('pk-app').search.isComplete"):
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(50)
    wait_for_names(page, everything)
    assert page.get_by_role("button", name="More results").is_hidden()


def test_neighbours_on_demand(visit, demo):
    page = ready(visit(demo).go(q=QUERY))
    [hit] = ask(demo, "search", query=QUERY, k=1)["hits"]
    first = page.locator(RESULT).first
    first.get_by_role("button", name="Show the passages around").click()
    assert [text for text in first.locator(".neighbor").all_text_contents() if text] == [f"Before {hit['before']}", f"After {hit['after']}"]
    first.get_by_role("button", name="Show the passages around").click()
    assert first.locator(".neighbor:visible").count() == 0


# The address


def test_a_link_reopens_the_same_state(visit, demo):
    state = {"q": "pump", "model": "bm25(k1=0.5)", "filter": ["ipc=F04D"], "group": "document"}
    page = ready(visit(demo).go(**state))
    wait_for_names(page, ranked(demo, query="pump", model="bm25(k1=0.5)", filter="ipc=F04D", one_per="document"))
    assert page.locator(BOX).input_value() == "pump"
    assert page.get_by_label("Group").input_value() == "document"


def test_back_and_forward(visit, demo):
    visited = visit(demo)
    page = ready(visited.go(q="pump"))
    page.locator(BOX).fill("impeller")
    page.locator(BOX).press("Enter")
    wait_for_names(page, ranked(demo, query="impeller"))
    page.locator(f"{RESULT} a").first.click()
    page.wait_for_selector("pk-document article")
    page.go_back()
    wait_for_names(page, ranked(demo, query="impeller"))
    page.go_back()
    wait_for_names(page, ranked(demo, query="pump"))
    assert page.locator(BOX).input_value() == "pump"
    page.go_forward()
    wait_for_names(page, ranked(demo, query="impeller"))
    assert page.locator(BOX).input_value() == "impeller"


def test_typing_is_one_step_for_the_back_button(visit, demo):
    visited = visit(demo)
    visited.allowed.append("400")  # "i" is in every text
    page = ready(visited.go(q="pump"))
    steps = page.evaluate("history.length")
    page.locator(BOX).fill("")
    page.locator(BOX).press_sequentially("impeller", delay=160)
    wait_for_names(page, ranked(demo, query="impeller"))
    assert page.evaluate("history.length") == steps + 1


def test_hits_are_exported(visit, demo):
    page = ready(visit(demo).go(q=QUERY))
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = download.value.path().read_text("utf-8").splitlines()
    assert len(lines) >= 21
    assert re.search(r"\.csv$", download.value.suggested_filename)
