"""An open document: its text, outline, hits and landscape."""

from __future__ import annotations

import re

import pytest

from perikope import Index
from tests.page.reading import large_document, reader, wait_until
from tests.page.visiting import SMALL
from tests.server.support import LiveServer

MANUAL = {"document": "mc8-manual.md", "q": "magnetic coupling"}
TOP = "document.querySelector('pk-document-text .current').getBoundingClientRect().top"


@pytest.fixture
def read(visit):
    """Opens a document: `page = read(server, document=…)`."""

    def opened(server, *, size=None, language="en", **state):
        visited = reader(visit(server, language=language, **({"size": size} if size else {})))
        page = visited.go(**state)
        page.wait_for_selector("pk-document:not([aria-busy]) h1")
        return page

    return opened


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A server over a document of 3,000 passages."""
    folder = tmp_path_factory.mktemp("large") / "index"
    with Index.create(folder) as index:
        index.add([large_document(3000)])
    with LiveServer({"large": folder}) as server:
        yield server


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """A server over two documents, one of which cites the other and refers to itself."""
    folder = tmp_path_factory.mktemp("references")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.md").write_text(
        "# A pump\n\nSee [the rotor](#the-rotor) and [b](b.md), or https://example.org/pumps.\n\n"
        "1. first\n2. second\n   - inner\n\n> quoted\n\n## The rotor\n\nIt turns *fast*. "
        "\U0001f600 The `magnet` is strong.\n\n```python\nif True:\n    magnet()\n```\n\n"
        "| Part | Material |\n|---|---|\n| magnet | steel |\n| hull | |\n",
        "utf-8",
    )
    (folder / "docs" / "b.md").write_text("# B\n\nNothing here.\n", "utf-8")
    from perikope.build.indexing import BuildOptions, build

    build(str(folder / "index"), [str(folder / "docs")], BuildOptions())
    with LiveServer({"references": folder / "index"}) as server:
        yield server


def texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_a_document_has_title_outline_and_marked_words(read, demo):
    page = read(demo, **MANUAL)
    assert page.locator("pk-document h1").inner_text() == "MC-8 circulation pump: operating manual"
    assert "Magnetic coupling" in texts(page, "pk-outline .name")
    assert set(map(str.lower, texts(page, "pk-document-text mark"))) == {"magnetic", "magnets", "coupling"}
    marks = page.locator("pk-document mark[data-hit]").count()
    assert page.locator(".steps .position").inner_text() == f"{marks} matches"


def test_a_passage_of_the_address_is_shown_and_marked(read, demo):
    page = read(demo, **MANUAL, passage="@11")
    current = page.locator("pk-document-text .current")
    assert "The outer ring of magnets" in current.inner_text()
    assert current.get_attribute("aria-current") == "true"
    wait_until(page, f"0 < {TOP} && {TOP} < innerHeight")
    wait_until(page, "document.querySelector('pk-outline [aria-current]')?.innerText.startsWith('What it does')")


def test_tables_are_tables_and_code_is_code(read, references):
    page = read(references, document="a.md", q="magnet")
    assert texts(page, "pk-document-text th") == ["Part", "Material"]
    rows = page.locator("pk-document-text tbody tr")
    assert [rows.nth(number).locator("td").count() for number in range(rows.count())] == [2, 2]
    assert page.locator("pk-document-text td mark").inner_text() == "magnet"
    assert page.locator("pk-document-text pre").text_content() == "if True:\n    magnet()"
    assert page.locator("pk-document-text p code mark").inner_text() == "magnet"
    assert texts(page, "pk-document-text p i") == ["fast"]
    assert texts(page, "pk-document-text .marker") == ["1.", "2.", "•"]
    assert texts(page, "pk-document-text .quote p") == ["quoted"]


def test_references_are_links(read, references):
    page = read(references, document="a.md")
    page.locator("pk-document-text").get_by_role("link", name="the rotor").click()
    assert "passage=" in page.url
    assert page.locator("pk-document-text .current").inner_text() == "The rotor"
    outside = page.locator("pk-document-text a.outside")
    assert outside.get_attribute("href") == "https://example.org/pumps"
    assert outside.get_attribute("rel") == "noopener noreferrer"
    page.locator("details.cites summary").click()
    page.locator("details.cites").get_by_role("link", name="b.md").click()
    wait_until(page, "document.querySelector('pk-document h1')?.innerText === 'B'")
    page.go_back()
    wait_until(page, "document.querySelector('pk-document h1')?.innerText === 'A pump'")


def test_claims_lead_to_the_claims_that_they_cite(read, demo):
    page = read(demo, document="EP-9140001-A1")
    link = page.locator(".claim a.inside").first
    assert re.search(r"claims? \d+", link.inner_text())
    number = re.search(r"\d+", link.inner_text())[0]
    link.click()
    assert page.locator(".current > .place").inner_text() == f"claim {number}"


def test_next_and_previous_hit(read, demo):
    page = read(demo, **MANUAL)
    marks = page.locator("pk-document-text mark[data-hit]")
    for number in (0, 1):
        page.keyboard.press("n")
        page.wait_for_selector("pk-document mark.current")
        assert page.locator("mark.current").inner_text() == marks.nth(number).inner_text()
    assert re.fullmatch(r"\d of \d", page.locator(".steps .position").inner_text())
    page.keyboard.press("p")
    assert page.locator("mark.current").count() == 1
    assert page.evaluate("document.querySelector('mark.current') === document.querySelectorAll('pk-document-text mark[data-hit]')[0]")
    page.get_by_role("button", name="Previous match").click()
    assert page.evaluate("!document.querySelector('pk-document-text mark[data-hit]').classList.contains('current')")


def test_the_outline_leads_to_sections_and_back(read, demo):
    page = read(demo, **MANUAL)
    current = page.locator("pk-document-text .current")
    page.locator("pk-outline a", has_text="Disposal").click()
    assert current.inner_text() == "Disposal"
    first = page.url
    page.locator("pk-outline a", has_text="Safety").click()
    assert current.inner_text() == "Safety"
    assert page.url != first
    page.go_back()
    assert page.url == first
    wait_until(page, "document.querySelector('.current')?.innerText.includes('Remove the magnets')")


def test_the_landscape_is_read_and_clicked(read, demo):
    page = read(demo, **MANUAL)
    page.wait_for_selector("pk-landscape .strip svg .area")
    strip = page.get_by_role("slider", name="Relevance landscape")
    box = strip.bounding_box()
    best = page.evaluate(
        """async () => {
          const asked = "query=magnetic+coupling&document=mc8-manual.md&bins=400&sigma=4";
          const answer = await (await fetch(`/indexes/demo/landscape?${asked}`)).json();
          const best = answer.bins.reduce((one, other) => (other.influence > one.influence ? other : one));
          return { share: (best.start + best.end) / 2 / answer.tokens, passage: best.passage };
        }"""
    )
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + best["share"] * box["height"])
    card = page.locator("pk-landscape .card")
    assert {"Magnetic", "coupling"} <= set(texts(page, "pk-landscape .card mark"))
    assert "Influence" in card.inner_text()
    assert "here" in card.inner_text()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + best["share"] * box["height"])
    page.wait_for_selector("pk-document-text .current")
    assert page.locator("pk-document-text .current").inner_text().endswith("Magnetic coupling")


def test_the_landscape_is_walked_with_keys(read, demo):
    page = read(demo, **MANUAL)
    strip = page.get_by_role("slider", name="Relevance landscape")
    strip.focus()
    page.keyboard.press("End")
    assert "Disposal" in strip.get_attribute("aria-valuetext")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('.current')?.innerText.includes('Remove the magnets')")


def test_the_shares_of_occurrences_add_up_to_the_influence(read, demo):
    page = read(demo, **MANUAL)
    differences = page.evaluate(
        """async () => {
          const { reachingAt } = await import("/page/landscape.js");
          const answer = await (await fetch("/indexes/demo/landscape?query=magnetic+coupling&document=mc8-manual.md&sigma=9")).json();
          const added = (token) => reachingAt(answer, token).reduce((sum, { share }) => sum + share, 0);
          return answer.bins.map((bin) => Math.abs(bin.influence - added(bin.peak)));
        }"""
    )
    assert len(differences) > 100
    assert max(differences) < 1e-9


def test_a_passage_is_cited_and_kept(read, demo):
    page = read(demo, document="EP-9140001-A1", passage="p0006", q="rust")
    page.wait_for_selector(".current")
    page.evaluate(
        """() => {
          window.told = {};
          for (const name of ["cite", "keep"]) document.querySelector("pk-document").addEventListener(name, (event) => {
            event.stopPropagation();
            window.told[name] = event.detail;
          });
        }"""
    )
    page.keyboard.press("c")
    page.locator("pk-document-text .current").hover()
    page.get_by_role("button", name="Keep in the work list").last.click()
    told = page.evaluate("window.told")
    assert told["cite"] == told["keep"]
    assert (told["cite"]["document"], told["cite"]["passage"]) == ("EP-9140001-A1", "p0006")
    assert told["cite"]["citation"] == "EP9140001A1 [0006]"
    hit = page.evaluate("fetch('/indexes/demo/passage?passage=EP-9140001-A1%23p0006').then((answer) => answer.json())")
    assert told["cite"]["path"] == hit["path"]
    assert told["cite"]["text"] == hit["text"]


def test_the_file_of_a_passage_is_shown_if_the_server_shows_files(visit, demo):
    page = reader(visit(demo)).page
    found = {"file": "a.md", "kind": "text", "page": 0, "data": "", "line": 2, "first_line": 1, "text": "# A\nThe outer ring", "lines": 2}
    found["changed"] = False
    page.route("**/original?*", lambda route: route.fulfill(json=found))
    page.goto(f"{demo.url}/?document=mc8-manual.md&passage=%4011")
    page.wait_for_selector(".current")
    assert not page.get_by_role("button", name="Show the file").is_visible()
    page.evaluate("document.querySelector('pk-document').summary = { originals: true }")
    page.locator("pk-document-text .is-passage").nth(2).hover()
    page.get_by_role("button", name="Show the file").click()
    assert page.locator("dialog .here").inner_text() == "The outer ring"


def test_a_large_document_is_made_in_slices(read, large):
    page = read(large, document="large", passage="@1500", q="descaling")
    page.wait_for_selector(".current")
    wait_until(page, f"0 < {TOP} && {TOP} < innerHeight")
    page.wait_for_selector("pk-document-text.complete")
    assert page.locator("pk-document-text .is-passage").count() == 3000
    page.keyboard.press("n")
    page.wait_for_selector("mark.current")
    assert page.evaluate(
        "(() => { const { top } = document.querySelector('mark.current').getBoundingClientRect(); return 0 < top && top < innerHeight; })()"
    )
    wait_until(page, "document.querySelector('pk-outline [aria-current]')?.innerText.startsWith('Section 150')")


def test_slices_away_from_the_window_are_made_later(visit, large):
    page = reader(visit(large)).page
    page.add_init_script("window.requestIdleCallback = () => 0")
    page.goto(f"{large.url}/?document=large&passage=%401500")
    page.wait_for_selector(".current")
    page.wait_for_timeout(300)
    made = page.locator("pk-document-text .is-passage").count()
    assert 30 <= made < 400
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    wait_until(page, "document.querySelector('pk-document-text').innerText.includes('and the descaling')")


def test_a_document_that_is_missing(visit, demo):
    visited = reader(visit(demo))
    visited.allowed.append("404")
    page = visited.go(document="nothing.md")
    assert "nothing.md" in page.locator("pk-document [role=alert]").inner_text()


def test_a_hostile_document_does_nothing(visit, hostile):
    for document in ("notes.md", "page.html", "a/../b?c=d&e#0 \"'<b>", "a/../b?c=d&e#4 \"'<b>"):
        page = reader(visit(hostile)).go(document=document, q="pump")
        page.wait_for_selector("pk-document:not([aria-busy]) h1")
        page.wait_for_selector("pk-document-text.complete")
        assert page.evaluate("window.attacked") is None
        assert page.locator("pk-document :is(script, style, img, iframe, form, input, base, svg[onload])").count() == 0
        addresses = page.locator("pk-document a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
        assert all(re.match(r"/|https?://", address) for address in addresses)
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.locator("pk-document").text_content())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_small_screen(read, demo):
    page = read(demo, size=SMALL, **MANUAL)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not page.locator("pk-outline a").first.is_visible()
    page.get_by_text("Contents").click()
    assert page.locator("pk-outline a").first.is_visible()


def test_german(read, demo):
    page = read(demo, language="de", **MANUAL)
    assert page.locator(".steps .position").inner_text().endswith("Fundstellen")
    assert page.get_by_role("slider", name="Relevanzlandschaft").count() == 1


def test_a_changed_query_marks_other_words_at_the_same_place(read, demo):
    page = read(demo, **MANUAL, passage="@11")
    wait_until(page, f"0 < {TOP}")
    page.evaluate("document.querySelector('pk-app').store.change({ query: 'motor' }, { replace: true })")
    wait_until(page, "[...document.querySelectorAll('pk-document-text mark')].some((mark) => mark.innerText === 'motor')")
    assert "magnets" not in texts(page, "pk-document-text mark")
    assert page.evaluate("scrollY") > 0
