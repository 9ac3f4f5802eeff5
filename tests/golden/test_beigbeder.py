"""The worked example of Beigbeder, Géry and Largeron 2015 (Figures 5 to 10) and weights of tags, by commands."""

import csv
import json
import math
import re

import pytest

from perikope import cli
from perikope.browse.tags import KIND, tag_table, weigh
from perikope.index.saved_tables import read_table

# Figure 5. Words count from 0: the title is 0 to 2, the first paragraph 3 to 26, the second 27 to 31.
PARAGRAPH = (
    "The Handel House Museum was the home of the German born baroque composer George Frideric Handel. "
    "He composed works such as The Messiah there."
)
HANDEL = {
    "id": "d1",
    "title": "Handel House Museum",
    "sections": [
        {
            "tag": "bdy",
            "passages": [
                {"text": PARAGRAPH, "marks": [["b", 4, 23], ["it", PARAGRAPH.index("The Messiah"), PARAGRAPH.index(" there")]]},
                "The house has been restored...",
            ],
        }
    ],
}
WEIGHTS = "weights=tags(title=1.5,b=1.4,p=0.9)"
FIRST, SECOND = "d1#/document[1]/bdy[1]/p[1]", "d1#/document[1]/bdy[1]/p[2]"
BODY, ARTICLE = "d1#/document[1]/bdy[1]", "d1#/document[1]"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handel")
    (folder / "handel.jsonl").write_text(json.dumps(HANDEL), encoding="utf-8")
    with pytest.raises(SystemExit):
        cli.main(["index", str(folder / "handel.jsonl"), "--to", str(folder / "index"), "--stemmer", "none", "--stopwords", "none"])
    return folder / "index"


@pytest.fixture
def scores(index, capsys):
    def search(query, model, *options):
        with pytest.raises(SystemExit):
            cli.main(["search", str(index), query, "--syntax", "boolean", "--model", model, "--json", *options, "--elements"])
        hits = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return {f"{hit['document']}#{hit['passage']}": hit["score"] for hit in hits}

    return search


@pytest.mark.parametrize(
    ("query", "model", "expected"),
    [
        ("composer AND museum", "prox(k=7)", 0.035714),
        ("composer AND museum", f"prox_h(k=7,{WEIGHTS})", 0.040476),
        ("composer AND museum", f"prox_hw(k=7,{WEIGHTS})", 0.075000),
        ("composer OR museum", "prox(k=7)", 0.511905),
        ("composer OR museum", f"prox_h(k=7,{WEIGHTS})", 0.580357),
        ("composer OR museum", f"prox_hw(k=7,{WEIGHTS})", 0.617262),
        # At 0 where a weight above 1 would make 1 less the influence negative.
        ("composer AND NOT museum", "prox(k=7)", 0.291667),
        ("composer AND NOT museum", f"prox_h(k=7,{WEIGHTS})", 0.262500),
        ("composer AND NOT museum", f"prox_hw(k=7,{WEIGHTS})", 0.233333),
    ],
)
def test_the_first_paragraph(scores, query, model, expected):
    assert scores(query, model)[FIRST] == pytest.approx(expected, abs=1e-6)


def test_an_occurrence_does_not_reach_into_other_elements(scores):
    found = scores("composer OR museum", "prox(k=7)", "--keep-unmatched")
    assert found == pytest.approx({ARTICLE: 0.464286, BODY: 0.423645, FIRST: 0.511905, SECOND: 0.0}, abs=1e-6)
    assert SECOND not in scores("composer OR museum", "prox(k=7)")


def test_the_best_element_without_those_that_overlap_it(scores):
    assert list(scores("composer AND museum", "prox(k=7)", "--no-overlap", "--group-by-document=fetch")) == [FIRST]
    assert list(scores("composer AND handel AND restored", "prox(k=7)", "--no-overlap", "--keep-unmatched")) == [ARTICLE]
    assert scores("composer AND handel AND restored", "prox(k=7)", "--no-overlap") == {}


def test_explanation(index, capsys):
    with pytest.raises(SystemExit):
        cli.main(["explain", str(index), "composer AND museum", FIRST, "--syntax", "boolean", "--model", f"prox_hw(k=7,{WEIGHTS})"])
    shown = capsys.readouterr().out
    first, _, shown = shown.partition("\n")
    assert first == "from: passage 100 % ('composer', 'museum')"
    assert shown.startswith("0.0750  mean influence of the query  [0.0417 × …]\n  1.8000  influence added up over 24 tokens")
    assert "1.4000  weight of <b>" in shown
    assert "'composer' at 15 in <p>, 3 away" in shown


@pytest.mark.parametrize(
    ("model", "highest"), [("prox(k=7)", 2 / 7), (f"prox_h(k=7,{WEIGHTS})", 0.9 * 3 / 7), (f"prox_hw(k=7,{WEIGHTS})", 3.3 / 7)]
)
def test_curves_of_influence(index, tmp_path, model, highest):
    """Figures 6, 7 and 9: the influence of both words and of the query on each token of the document."""
    for file in ("influence.csv", "influence.svg"):
        plot = ["--plot", str(tmp_path / file)]
        with pytest.raises(SystemExit) as done:
            cli.main(["explain", str(index), "composer AND museum", FIRST, "--syntax", "boolean", "--model", model, "--elements", *plot])
        assert done.value.code == 0
    head, *rows = list(csv.reader((tmp_path / "influence.csv").read_text().splitlines()))
    assert head == ["token", "'composer'", "'museum'", "('composer' AND 'museum')"]
    assert [int(row[0]) for row in rows] == list(range(32))
    values = {int(token): tuple(map(float, row)) for token, *row in rows}
    assert all(query == min(composer, museum) for composer, museum, query in values.values())
    if model == "prox(k=7)":
        assert values[15][0] == values[6][1] == 1.0
        assert [round(7 * values[token][2], 9) for token in range(8, 14)] == [0.0, 1.0, 2.0, 2.0, 1.0, 0.0]
    assert max(query for *_, query in values.values()) == pytest.approx(highest)
    if model == "prox(k=7)":  # 'museum' is in the title, too, and does not reach the paragraph from there
        assert values[2][1] == 1.0
        assert values[3][1] == pytest.approx(4 / 7)
    drawing = (tmp_path / "influence.svg").read_text()
    assert "The result is shaded: 24 of the 32 tokens" in drawing
    curves = re.findall(r'class="curve (c\d)" d="[^"]*"><title>([^<]*)<', drawing)
    assert curves == [("c3", "&#x27;museum&#x27;"), ("c2", "&#x27;composer&#x27;"), ("c1", "(&#x27;composer&#x27; AND &#x27;museum&#x27;)")]


def test_a_model_without_curves_has_no_plot(index, tmp_path, capsys):
    with pytest.raises(SystemExit) as done:
        cli.main(["explain", str(index), "museum", FIRST, "--model", "bm25", "--elements", "--plot", str(tmp_path / "x.svg")])
    assert done.value.code == 2
    assert "the model has no curves to plot; use prox" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_weights_of_tags():
    # Relevant and marked, relevant, marked, all: 40 + 160 relevant and 500 + 9300 other tokens; 0 + 50, 500 + 9450.
    first, second = weigh(40, 200, 540, 10_000), weigh(0, 50, 500, 10_000)
    assert (first, second, (first + second) / 2) == pytest.approx((3.955349, 0.196843, 2.076096), abs=1e-6)
    assert weigh(200, 200, 10_000, 10_000) == 1.0


def test_the_published_table():
    table = tag_table(read_table("beigbeder2015", KIND))
    assert len(table.rows) == 36
    assert table.logical == ("article", "bdy", "col", "entry", "list", "p", "reflist", "row", "sec", "ss1", "ss2", "table")
    assert (table.weights["article"], table.weights["direction"], table.weights["title"]) == (1.0, 31.35, 0.14)
    assert math.isclose(table.rows["sec"].coverage, 0.6986)
    assert table.rows["p"].occurrences == 19_745_936
    assert list(table.weights.values()) == sorted(table.weights.values(), reverse=True)
