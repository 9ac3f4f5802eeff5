"""Models that propagate relevance equal the formulas of Albarede et al. 2021, computed for each pair of passages."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.models import parse_model
from perikope.document.tree import Kind
from perikope.query.terms import parse_query
from perikope.text.analysis import Analyzer
from tests.support.collections import WORDS, collections, index_of
from tests.support.examples import examples
from tests.support.plain import PlainCollection, min_max

ANALYZER = Analyzer()
QUERIES = (
    st.lists(st.sampled_from([*WORDS, "absent"]), min_size=1, max_size=5).filter(lambda words: set(words) - {"the", "of"}).map(" ".join)
)
DECAY = {
    "gauss": lambda x, sigma: math.exp(-x * x / (2 * sigma * sigma)),
    "triangle": lambda x, sigma: max(0.0, 1 - x / sigma),
    "exponential": lambda x, sigma: math.exp(-x / sigma),
    "inverse": lambda x, sigma: 1 / (1 + x / sigma),
    "step": lambda x, sigma: 1.0 if x <= sigma else 0.0,
}
AGGREGATE = {"average": lambda parts: sum(parts) / len(parts), "maximum": max}
AGGREGATE["weighted"] = AGGREGATE["average"]  # of what has no distance


@st.composite
def models(draw):
    """A model with its parameters, and the parameters by name."""
    name = draw(st.sampled_from(["qsf_v", "qsf_v_title", "qsf_section", "qsf_section_propagate", "qsf_passage_propagate"]))
    declared = {**parse_model(name).definition.shape, **parse_model(name).definition.weights}
    choices = {
        "mu": st.sampled_from([10.0, 1000.0]),
        "content": st.sampled_from(["lm", "bm25", "psg"]),
        "statistics": st.sampled_from(["documents", "passages"]),
        "aggregate": st.sampled_from(["average", "maximum"] + ["weighted"] * name.endswith("propagate")),
        "weight": st.sampled_from(list(DECAY)),
        "sigma": st.sampled_from([0.05, 0.5, 1.0, 2.0, 3.0, 5.0]),
        "alpha": st.sampled_from([0.0, 0.5, 0.6, 0.9]),
        "beta": st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    }
    given = {parameter: draw(choices[parameter]) for parameter in declared}
    return name, given


def content(plain, query, terms, *, content, statistics, mu):
    """A text's own score, straight from its formula."""
    by_document = statistics == "documents"
    units = len(plain.documents if by_document else plain.passages)
    holding = plain.document_frequency if by_document else plain.passage_frequency
    occurrences = plain.occurrences if by_document else plain.passage_occurrences
    tokens = sum(occurrences.values())
    counts = Counter(terms)
    if content == "psg":
        return sum(math.log(counts[t] + 1) * math.log(units / max(holding[t], 1)) for t in query if counts[t])
    if content == "bm25":
        return plain.bm25(query, terms, units, holding, tokens / units)
    seen = {t: w for t, w in query.items() if occurrences[t]}
    return math.exp(
        sum(w / sum(seen.values()) * math.log((counts[t] + mu * occurrences[t] / tokens) / (len(terms) + mu)) for t, w in seen.items())
    )


def distance(document, first, second):
    """Edges between two passages, or a passage and a section, in the tree of sections and passages."""
    above, other = ([span, *document.ancestors(span)] for span in (first, second))
    common = next(span for span in above if span in other)
    return above.index(common) + other.index(common)


def section_score(document, section, score, aggregate):
    """Sim_sec; None of a section without a passage."""
    passages = [p for p in document.passages if document.ancestors(p)[0] == section]
    sections = [s for s in document.document.of_kind(Kind.SECTION) if document.ancestors(s)[:1] == [section]]
    parts = [score[p] for p in passages] + [section_score(document, s, score, aggregate) for s in sections]
    parts = [part for part in parts if part is not None]
    return AGGREGATE[aggregate](parts) if parts else None


def context(name, document, passage, score, given):
    """What reaches a passage from its section, the sections above or the other passages, before it is normalised."""
    aggregate = given["aggregate"]
    above = document.ancestors(passage)
    if name == "qsf_section":
        return section_score(document, above[0], score, aggregate)
    if name == "qsf_section_propagate":
        parts = [(section_score(document, section, score, aggregate), distance(document, passage, section)) for section in above]
    else:
        parts = [(score[other], distance(document, passage, other)) for other in document.passages if other != passage]
    weights = [DECAY[given["weight"]](x, given["sigma"]) for _, x in parts]
    products = [value * weight for (value, _), weight in zip(parts, weights, strict=True)]
    if aggregate == "weighted":
        return sum(products) / sum(weights) if sum(weights) else 0.0
    return AGGREGATE[aggregate](products) if parts else 0.0


def plain_scores(documents, text, name, given):
    plain = PlainCollection(documents, ANALYZER)
    held = {document.labels[i] for document in documents for i in document.spans.language}
    parsed = parse_query(text, ANALYZER, ["en", "fr"] if "fr" in held else ["en"])
    query = dict(zip(parsed.terms, parsed.weights, strict=True))
    fetched = [d for d in plain.documents if set(query) & set(d.all_terms)]
    shape = {parameter: given[parameter] for parameter in ("content", "statistics", "mu")}
    own, around = {}, {}
    for d in fetched:
        texts = {p: d.of_span(p) if name == "qsf_v" else d.with_titles(p) for p in d.passages}
        score = {p: content(plain, query, terms, **shape) for p, terms in texts.items()}
        for number, p in enumerate(d.passages):
            own[d.document.id, number] = score[p]
            around[d.document.id, number] = context(name, d, p, score, given) if "aggregate" in given else 0.0
    if not own:
        return {}
    whole = min_max({d.document.id: content(plain, query, d.all_terms, **shape) for d in fetched})
    own, around = min_max(own), min_max(around)
    alpha, beta = given["alpha"], given.get("beta", 1.0)
    return {key: alpha * own[key] + (1 - alpha) * (beta * whole[key[0]] + (1 - beta) * around[key]) for key in own}


@examples(200)
@given(documents=collections(), query=QUERIES, model=models(), cuts=st.lists(st.integers(0, 5), max_size=1))
def test_a_model_equals_its_formula(documents, query, model, cuts):
    name, given = model
    written = f"{name}({','.join(f'{parameter}={value}' for parameter, value in given.items())})"
    results = index_of(documents, cuts).search(query, model=written, k=1000, language="all")
    found = {(hit.document, int(hit.passage[1:]) - 1): hit.score for hit in results}
    assert found == pytest.approx(plain_scores(documents, query, name, given), abs=1e-6)


def check(node):
    assert math.isclose(node.recomputed(), node.value, rel_tol=1e-9, abs_tol=1e-12), node.label
    for child in node.children:
        check(child)


@examples(60)
@given(documents=collections(max_size=2), query=QUERIES, model=models())
def test_every_parent_of_every_explanation_follows_from_its_children(documents, query, model):
    name, given = model
    written = f"{name}({','.join(f'{parameter}={value}' for parameter, value in given.items())})"
    score = index_of(documents).search(query, model=written).score
    for passage in range(score.values.size):
        assert score.explain(passage).value == score.values[passage]
        check(score.explain(passage))
