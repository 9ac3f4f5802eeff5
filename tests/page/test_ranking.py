"""Models on the page: sliders that rank again, two models side by side, and bars that tell the truth."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from perikope.browse.models import MODELS
from tests.page.searching import ask, names, ranked, ready, wait_for_names

QUERY = "magnetic coupling"
USABLE = [name for name, model in MODELS.items() if model.is_ready]


def _value(page, parameter: str, value: float) -> None:
    page.locator(f"#parameter-{parameter}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', { bubbles: true })); }", value
    )


def test_the_panel_has_the_parameters_of_the_declaration(visit, demo):
    page = ready(visit(demo).go(q=QUERY, panel="models"))
    [model] = [model for model in ask(demo, "models")["models"] if model["name"] == "coverage"]
    page.locator("pk-models input[type=range]").first.wait_for()
    assert page.locator("pk-models .parameter label").all_text_contents() == [parameter["name"] for parameter in model["parameters"]]
    assert page.locator("pk-models .parameter .help").all_text_contents() == [parameter["help"] for parameter in model["parameters"]]
    assert page.get_by_label("How passages are ranked").input_value() == "coverage"


def test_a_slider_ranks_again_while_it_is_dragged(visit, demo):
    visited = visit(demo)
    page = ready(visited.go(q=QUERY, panel="models"))
    slider = page.locator("#parameter-titles")
    slider.wait_for()
    before, steps = names(page), page.evaluate("history.length")
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 9, box["y"] + box["height"] / 2, steps=12)
    # The button is still down.
    expected = ranked(demo, query=QUERY, model="coverage(titles=0)")
    assert expected != before
    wait_for_names(page, expected)
    page.mouse.up()
    assert page.locator("output").nth(2).text_content() == "0"
    assert parse_qs(visited.state())["model"] == ["coverage(titles=0)"]
    assert page.evaluate("history.length") == steps
    assert page.locator(".moved.up:not(:empty)").count() + page.locator(".moved.down:not(:empty)").count() > 0
    page.get_by_role("button", name="Reset to defaults").click()
    wait_for_names(page, before)
    assert "model" not in parse_qs(visited.state())


def test_a_slider_is_moved_with_keys(visit, demo):
    page = ready(visit(demo).go(q=QUERY, panel="models"))
    page.locator("#parameter-titles").press("Home")
    wait_for_names(page, ranked(demo, query=QUERY, model="coverage(titles=0)"))
    assert page.evaluate("document.activeElement.id") == "parameter-titles"


def test_the_last_value_of_many_is_shown(visit, demo):
    page = ready(visit(demo).go(q=QUERY, panel="models"))
    page.locator("#parameter-titles").wait_for()
    for step in range(20):
        _value(page, "titles", step / 20)
    _value(page, "titles", 0.35)
    wait_for_names(page, ranked(demo, query=QUERY, model="coverage(titles=0.35)"))
    ready(page)
    assert page.locator("pk-result-tools .model-name").text_content() == "coverage(titles=0.35)"


@pytest.mark.parametrize("model", USABLE)
def test_every_model_is_chosen_and_all_ends_of_its_sliders_are_valid(visit, demo, model):
    visited = visit(demo)
    visited.allowed += ["400"] if model == "psg_neighbor" else []
    page = ready(visited.go(q=QUERY, panel="models"))
    page.get_by_label("How passages are ranked").select_option(model)
    page.wait_for_function("(model) => document.querySelector('pk-app').search.answer.model.startsWith(model)", arg=model)
    sliders = page.locator("pk-models input[type=range]")
    for number in range(sliders.count()):
        for end in ("Home", "End"):
            sliders.nth(number).press(end)
            ready(page)
            page.wait_for_timeout(20)
            # The weights of the neighbours before and after have a common limit.
            problem = page.evaluate("document.querySelector('pk-app').search.problem?.message ?? ''")
            assert problem == "" or (model == "psg_neighbor" and "add up to more than 1" in problem)
            assert page.locator("pk-results .status").text_content() == problem or not problem
        page.get_by_role("button", name="Reset to defaults").click()


@pytest.mark.parametrize("model", USABLE)
def test_bars_show_the_parts_of_the_explanation(visit, demo, model):
    page = ready(visit(demo).go(q=QUERY, model=model))
    answer = ask(demo, "search", query=QUERY, model=model, k=20, reasons=True)
    bars = page.evaluate("""() => [...document.querySelectorAll("pk-result pk-score-bar")].map((bar) =>
      [...bar.querySelectorAll(".piece")].map((piece) =>
        [piece.style.getPropertyValue("--color"), Number(piece.style.flexGrow), piece.classList.contains("negative")]))""")
    assert len(bars) == len(answer["hits"])
    for shown, hit, reasons in zip(bars, answer["hits"], answer["reasons"], strict=True):
        tree = ask(demo, "explain", query=QUERY, model=model, passage=f"{hit['document']}#{hit['passage']}")
        assert tree["value"] == pytest.approx(sum(part["value"] for part in reasons["parts"]), rel=1e-9, abs=1e-12)
        whole = sum(abs(part["value"]) for part in reasons["parts"])
        expected = [
            (f"var(--{part['origin']})", abs(part["value"]) / whole, part["value"] < 0)
            for part in sorted(reasons["parts"], key=lambda part: -abs(part["value"]))
            if whole and abs(part["value"]) / whole >= 0.005
        ]
        assert [tuple(piece) for piece in shown] == [
            (color, pytest.approx(share, abs=1e-5), negative) for color, share, negative in expected
        ]


def test_two_models_side_by_side(visit, demo):
    page = ready(visit(demo).go(q=QUERY, panel="models"))
    page.get_by_label("Compare with").select_option("bm25")
    page.locator(".compared-hit").first.wait_for()
    left, right = ranked(demo, query=QUERY, k=60), ranked(demo, query=QUERY, model="bm25", k=60)
    sides = [page.locator(".side").nth(side).locator(".compared-hit") for side in (0, 1)]
    for side, own, other in zip(sides, (left, right), (right, left), strict=True):
        assert [name.replace("%40", "@") for name in side.evaluate_all("(items) => items.map((item) => item.dataset.name)")] == own[:12]
        for name, text in zip(own[:12], side.locator(".move").all_text_contents(), strict=True):
            moved = other.index(name) - own.index(name) if name in other else None
            if moved is None:
                assert ("beyond rank 60" if len(other) >= 60 else "does not find it") in text
            elif moved == 0:
                assert "same rank" in text
            else:
                assert f"{'▲' if moved > 0 else '▼'} {abs(moved)} rank {other.index(name) + 1} " in text
    common = set(left[:12]) & set(right[:12])
    assert page.locator("pk-compare .status").text_content() == f"{len(common)} of the first 12 passages are the same"
    assert page.locator(".links path").count() == len(common)
    page.get_by_role("button", name="Right model").click()
    _value(page, "k1", 0)
    page.wait_for_function("() => document.querySelectorAll('pk-compare .model-name')[1].textContent === 'bm25(k1=0.0)'")
    page.get_by_role("button", name="End the comparison").first.click()
    wait_for_names(page, ranked(demo, query=QUERY))


def test_a_comparison_says_why(visit, demo):
    page = ready(visit(demo).go(q=QUERY, compare="bm25"))
    page.locator(".move", has_text="of the score").first.wait_for()
    first = page.locator(".side").first.locator(".compared-hit").filter(has_text="▲").first
    name = first.get_attribute("data-name").replace("%40", "@")
    shares = []
    for model in ("coverage", "bm25"):
        parts = ask(demo, "reasons", query=QUERY, model=model, passage=name)["parts"]
        whole = sum(abs(part["value"]) for part in parts)
        shares.append({part["origin"]: abs(part["value"]) / whole for part in parts})
    gains = {origin: share - shares[1].get(origin, 0) for origin, share in shares[0].items()}
    best = max(gains, key=gains.get)
    assert f"{best} {shares[0][best]:.0%} of the score, there {shares[1].get(best, 0):.0%}" in first.locator(".move").text_content()
