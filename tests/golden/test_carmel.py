"""The worked numbers of Carmel 2013 and of the position prior, through the real code."""

import csv
import json
import math

import numpy as np
import pytest

from perikope import cli
from perikope.browse.matches import assemble
from perikope.browse.models import parse_model
from perikope.browse.models.prior import learn_prior
from perikope.index.reader import Statistics
from perikope.query.terms import Query

# Two documents, passages as (first, last) tokens, occurrences by term, 1000 documents in the collection.
PASSAGES = {"A": [(0, 9), (10, 14), (15, 34)], "B": [(0, 7), (8, 19)]}
OCCURRENCES = {"A": {2: 0, 12: 1, 30: 0, 31: 1, 33: 1}, "B": {10: 0}}


def numbers(values):
    return np.array(values, np.int64)


def matches_of(passages, occurrences, query, statistics, scores, **more):
    ranges = [(d, first, last + 1) for d, document in enumerate(passages.values()) for first, last in document]
    documents = len(passages)
    column = {
        "length_of_document": numbers([document[-1][1] + 1 for document in passages.values()]),
        "parent_of_section": numbers([-1] * documents),
        "document_of_section": numbers(range(documents)),
        "title_length_of_section": numbers([0] * documents),
        "title_first_of_section": numbers([0] * documents),
        "title_end_of_section": numbers([0] * documents),
        "document_of_passage": numbers([d for d, _, _ in ranges]),
        "section_of_passage": numbers([d for d, _, _ in ranges]),
        "first_token_of_passage": numbers([first for _, first, _ in ranges]),
        "end_token_of_passage": numbers([end for _, _, end in ranges]),
        "length_of_passage": numbers([end - first for _, first, end in ranges]),
        "term_of_occurrence": np.array([t for o in occurrences.values() for t in o.values()], np.int32),
        "position_of_occurrence": np.array([p for o in occurrences.values() for p in o], np.int32),
        "end_occurrence_of_document": numbers(np.cumsum([len(o) for o in occurrences.values()])),
    }
    return assemble(query, statistics, numbers(range(documents)), np.array(scores), column | more.pop("columns", {}), **more)


@pytest.fixture
def carmel():
    query = Query("t1 t2", ("en:t1", "en:t2"), (1.0, 1.0))
    statistics = Statistics(1000, 100_000, 5000, 100_000, *(np.array([10, 100]) for _ in range(4)))
    return matches_of(PASSAGES, OCCURRENCES, query, statistics, [6.0, 4.0])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("psg", [3.192061, 1.596030, 5.721709, 0.000000, 3.192061]),
        ("psg_doc", [0.563297, 0.551648, 0.581759, 0.360000, 0.383297]),
        ("psg_doc(normalize=document)", [0.570372, 0.555186, 0.594442, 0.360000, 0.460000]),
        ("psg_neighbor", [0.419560, 0.562088, 0.428791, 0.275824, 0.281648]),
        ("plm(sigma=10)", [0.561734, 0.562684, 0.568947, 0.372551, 0.374084]),
        ("plm(kernel=trapezoid,sigma=20)", [0.563995, 0.571647, 0.565940, 0.368042, 0.370376]),
    ],
)
def test_scores(carmel, model, expected):
    assert parse_model(model).score(carmel).values == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("plm(sigma=10)", [133.828070, 139.676508, 178.238080, 77.284741, 86.720798]),
        ("plm(kernel=trapezoid,sigma=20)", [223.638577, 294.961150, 241.771435, 74.949145, 96.708574]),
    ],
)
def test_plm_before_it_is_normalised(carmel, model, expected):
    column = parse_model(model).signals(carmel)["passage"]
    assert [column.explain(passage).children[0].value for passage in range(5)] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("tf", "length", "occurrences", "expected"),
    [(3, 120, 50, 3.669840), (1, 400, 2000, 1.574032)],
)
def test_pl2(tf, length, occurrences, expected):
    query = Query("t", ("en:t",), (1.0,))
    statistics = Statistics(10, 200_000, 1000, 100_000, *(np.array([occurrences]) for _ in range(4)))
    matches = matches_of({"A": [(0, length - 1)]}, {"A": dict.fromkeys(range(tf), 0)}, query, statistics, [1.0])
    assert parse_model("pl2").score(matches).values == pytest.approx([expected], abs=1e-6)


RELEVANT = [5, 6, 7, 8, 9, 10, 11, 13, 15, 16]
RETURNED = [16, 15, 13, 11, 10, 9, 8, 7, 6, 5]
WEIGHTS = [0.312500, 0.400000, 0.538462, 0.727273, 0.900000, 1.111111, 1.375000, 1.857143, 2.500000, 3.200000]


def test_the_prior_is_learned():
    tenths = [[tenth for tenth, count in enumerate(counts) for _ in range(count)] for counts in (RELEVANT, RETURNED)]
    assert learn_prior(*tenths) == pytest.approx(WEIGHTS, abs=1e-6)


def test_the_prior_multiplies_the_scores_of_the_description():
    """Twelve passages of equal score, ten of them the description, each a tenth of it."""
    query = Query("t", ("en:t",), (1.0,))
    statistics = Statistics(1000, 100_000, 5000, 100_000, *(np.array([10]) for _ in range(4)))
    passages = [(5 * i, 5 * i + 4) for i in range(12)]
    matches = matches_of(
        {"A": passages},
        {"A": {first: 0 for first, _ in passages}},
        query,
        statistics,
        [1.0],
        columns={"part_of_passage": numbers([0, *[1] * 10, 2])},
        parts=("abstract", "description", "claims"),
    )
    weights = ",".join(str(a / b) for a, b in zip(RELEVANT, RETURNED, strict=True))
    base = parse_model("psg").score(matches).values
    values = parse_model(f"position_prior(base=psg,weights=[{weights}])").score(matches).values
    assert values / base * 2.5 == pytest.approx([2.5, *(2.5 * weight for weight in WEIGHTS), 2.5], abs=1e-5)
    assert values[[1, 5, 10]] / base[0] * 2.5 == pytest.approx([0.781250, 2.250000, 8.000000], abs=1e-6)


@pytest.mark.parametrize("kernel", ["kernel=gauss,sigma=3", "kernel=trapezoid,sigma=6"])
def test_curves_over_four_paragraphs(tmp_path, capsys, kernel):
    """Figure 1: the second paragraph has no query term, but kernels of its neighbours reach it."""
    paragraphs = ["a b red c d", "e f g h i", "j red k blue l", "m n o p q"]
    documents = [{"id": "d1", "sections": [{"passages": paragraphs}]}, {"id": "d2", "sections": [{"passages": ["red r"]}]}]
    documents += [{"id": f"d{number}", "sections": [{"passages": ["s"]}]} for number in (3, 4)]
    source, table = tmp_path / "made.jsonl", tmp_path / "curves.csv"
    source.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    explain = ["explain", str(tmp_path / "index"), "red blue", "d1#@2", "--model", f"plm({kernel},points=4)", "--json"]
    for command in (
        ["index", str(source), "--to", str(tmp_path / "index"), "--stemmer", "none", "--stopwords", "none"],
        [*explain, "--plot", str(table)],
    ):
        with pytest.raises(SystemExit) as done:
            cli.main(command)
        assert done.value.code == 0, capsys.readouterr()
    head, *rows = csv.reader(table.read_text().splitlines())
    assert (head, len(rows)) == (["token", "'red'", "'blue'", "query"], 20)
    red, blue, query = (np.array(column, float) for column in list(zip(*rows, strict=True))[1:])
    assert query == pytest.approx(red + blue)
    assert blue.max() == blue[13] == pytest.approx(math.log(4))  # the height of a kernel is the idf of its term
    assert red[2] >= math.log(2)
    assert red[7] > 0
    # With as many points as tokens, the score of a passage is the area below the curve of the query.
    shown = capsys.readouterr().out
    nodes = nodes_of(json.loads(shown[shown.index("{") :]))
    plm = next(node for node in nodes if node["label"].startswith("PLM of the passage") and node["operation"] == "sum")
    assert plm["value"] == pytest.approx(query[5:10].sum())


def nodes_of(node):
    yield node
    for child in node.get("children", ()):
        yield from nodes_of(child)
