"""The models of Carmel 2013 and Gobeill 2012 equal plain implementations written straight from their formulas."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perikope.browse.models.prior import tenth_of_passage
from perikope.document.segmentation import segmenter
from perikope.document.tree import Kind, TreeBuilder
from perikope.query.terms import parse_query
from perikope.text.analysis import Analyzer, word_spans
from tests.support.collections import WORDS, collections, index_of, plain_document, texts
from tests.support.examples import examples
from tests.support.plain import PlainCollection, min_max

ANALYZER = Analyzer()
queries = (
    st.lists(st.sampled_from([*WORDS, "absent"]), min_size=1, max_size=5).filter(lambda words: set(words) - {"the", "of"}).map(" ".join)
)
cuts = st.lists(st.integers(0, 5), max_size=1)
NORMALIZE = ["candidates", "document", "minmax"]


class Plain:
    """The documents that hold a query term, their passages in reading order, and where everything stands."""

    def __init__(self, documents, text):
        self.collection = PlainCollection(documents, ANALYZER)
        held = {document.labels[i] for document in documents for i in document.spans.language}
        parsed = parse_query(text, ANALYZER, ["en", "fr"] if "fr" in held else ["en"])
        self.query = dict(zip(parsed.terms, parsed.weights, strict=True))
        self.fetched = [d for d in self.collection.documents if set(self.query) & set(d.all_terms)]
        self.passages = {(d.document.id, i): (d, p) for d in self.fetched for i, p in enumerate(d.passages)}
        self.document_score = {d.document.id: self.collection.document_score(self.query, d) for d in self.fetched}

    def terms(self, key):
        d, p = self.passages[key]
        return d.of_span(p)

    def matching(self, scores):
        return {key: value for key, value in scores.items() if set(self.query) & set(self.terms(key))}

    def idf(self, term):
        return math.log(len(self.collection.documents) / self.collection.document_frequency[term])

    def tokens(self, d, span):
        """First and last token of a span."""
        inside = [i for i, at in enumerate(d.starts) if d.document.spans.start[span] <= at < d.document.spans.end[span]]
        return inside[0], inside[-1]

    def mixed(self, passage, normalize, lam):
        if normalize == "minmax":
            first, second = min_max(passage), min_max(self.document_score)
        else:
            of_document = Counter()
            for key, value in passage.items():
                of_document[key[0]] += value
            sums = {key: of_document[key[0]] if normalize == "document" else sum(passage.values()) for key in passage}
            first = {key: value / sums[key] if sums[key] else 0.0 for key, value in passage.items()}
            second = {key: value / sum(self.document_score.values()) for key, value in self.document_score.items()}
        return {key: (1 - lam) * first[key] + lam * second[key[0]] for key in passage}

    def plm(self, kernel, sigma, unit, points):
        scores = {}
        for key, (d, p) in self.passages.items():
            starts, ends = (column.tolist() for column in word_spans(d.document.text))
            left, right = (lambda i: i, lambda i: i) if unit == "token" else (starts.__getitem__, lambda i: ends[i] - 1)  # noqa: B023
            ranges = [self.tokens(d, other) for other in d.passages]
            first, last = self.tokens(d, p)
            first, last = left(first), right(last)
            total = 0.0
            for position, term in enumerate(d.terms):
                if term in self.query:
                    holding = [r for r in ranges if r[0] <= position <= r[1]]
                    a = min([left(r[0]) for r in holding], default=left(position))
                    b = max([right(r[1]) for r in holding], default=left(position))
                    for j in range(points + 1):
                        x = first + j * (last - first) / points
                        if kernel == "gauss":
                            f = math.exp(-((left(position) - x) ** 2) / (2 * sigma**2))
                        else:
                            f = 1.0 if a <= x <= b else max(0.0, 1 - ((a - x) if x < a else (x - b)) / sigma)
                        total += self.idf(term) * f
            scores[key] = total
        return scores


def found(index, query, model):
    return {(hit.document, int(hit.passage[1:]) - 1): hit.score for hit in index.search(query, model=model, k=1000, language="all")}


FILLER = plain_document("z", "Nothing", "To be found.")
"""Holds no query term, so that every term says something."""
segments = st.sampled_from(["markup", "windows:3/2", "windows:4/1"])


@pytest.mark.parametrize("kernel", ["gauss", "trapezoid"])
@pytest.mark.parametrize("unit", ["token", "char"])
@examples(50)
@given(
    documents=collections(),
    query=queries,
    cuts=cuts,
    segment=segments,
    sigma=st.sampled_from([0.01, 1.0, 2.5, 10.0, 500.0, 2000.0, 1e5]),
    points=st.sampled_from([1, 3, 20]),
    lam=st.sampled_from([0.0, 0.9]),
    normalize=st.sampled_from(NORMALIZE),
)
def test_plm(kernel, unit, documents, query, cuts, segment, sigma, points, lam, normalize):
    documents = [segmenter(segment)(document) for document in [*documents, FILLER]]
    plain = Plain(documents, query)
    raw = plain.plm(kernel, sigma, unit, points)
    name = f"plm(kernel={kernel},unit={unit},sigma={sigma},points={points},lam={lam},normalize={normalize})"
    results = found(index_of(documents, cuts), query, name)
    assert set(results) == set(raw)
    if raw:
        # Min-max spreads the differences over 0 to 1, and what is wrong with them too.
        high, low = max(raw.values()), min(raw.values())
        spread = (high - low) / high if normalize == "minmax" and high else 1.0
        # Where all occurrences are out of reach of a Gaussian, it gives 0, not a trace that normalisation turns into 1.
        traces = any(0 < value < 1e-12 for value in raw.values())
        if spread > 1e-6 and not traces:
            assert results == pytest.approx(plain.mixed(raw, normalize, lam), abs=1e-9 / spread)


@pytest.mark.parametrize("kernel", ["gauss", "trapezoid"])
def test_plm_has_the_paper_s_sigma_where_none_is_given(kernel):
    builder = TreeBuilder("d1", title="pump")
    for _ in range(40):
        builder.passage("the pump of a rotor " * 100)
    index = index_of([builder.build(), FILLER])
    sigma = {"gauss": 2000.0, "trapezoid": 1e5}[kernel]
    assert found(index, "pump rotor", f"plm(kernel={kernel})") == found(index, "pump rotor", f"plm(kernel={kernel},sigma={sigma})")
    assert found(index, "pump rotor", f"plm(kernel={kernel})") != found(index, "pump rotor", f"plm(kernel={kernel},sigma={sigma / 2})")


@examples(60)
@given(
    documents=collections(),
    query=queries,
    cuts=cuts,
    neighbors=st.integers(1, 4),
    decay=st.sampled_from([0.5, 0.8, 1.0]),
    sides=st.sampled_from([(0.25, 0.25), (0.5, 0.0), (0.1, 0.6), (0.5, 0.5)]),
    lam=st.sampled_from([0.0, 0.9]),
    normalize=st.sampled_from(NORMALIZE),
)
def test_psg_neighbor(documents, query, cuts, neighbors, decay, sides, lam, normalize):
    plain = Plain(documents, query)
    own = (
        plain.mixed({key: plain.collection.psg(plain.query, plain.terms(key)) for key in plain.passages}, normalize, lam)
        if plain.passages
        else {}
    )
    total = sum(decay**i for i in range(neighbors))
    expected = {}
    for (document, i), value in own.items():
        expected[document, i] = (1 - sum(sides)) * value
        for side, step in zip(sides, (-1, 1), strict=True):
            for k in range(1, neighbors + 1):
                expected[document, i] += side * decay ** (k - 1) / total * own.get((document, i + step * k), 0.0)
    name = f"psg_neighbor(neighbors={neighbors},decay={decay},left={sides[0]},right={sides[1]},lam={lam},normalize={normalize})"
    assert found(index_of(documents, cuts), query, name) == pytest.approx(expected, abs=1e-9)


def statistics_of(plain, counted):
    """Passages, their average length, passages with a term, occurrences of it."""
    if counted == "collection":
        texts = [d.of_span(p) for d, p in plain.collection.passages]
    else:
        texts = [plain.terms(key) for key in plain.passages]
    frequency = Counter(term for text in texts for term in set(text))
    return len(texts), sum(map(len, texts)) / max(len(texts), 1), frequency, Counter(term for text in texts for term in text)


@pytest.mark.parametrize("counted", ["collection", "candidates"])
@examples(40)
@given(documents=collections(), query=queries, cuts=cuts)
def test_bm25_and_pl2(counted, documents, query, cuts):
    plain = Plain(documents, query)
    count, average, frequency, occurrences = statistics_of(plain, counted)
    bm25, pl2 = {}, {}
    for key in plain.matching(plain.passages):
        text, counts = plain.terms(key), Counter(plain.terms(key))
        bm25[key] = plain.collection.bm25(plain.query, text, count, frequency, average)
        pl2[key] = 0.0
        for term, weight in plain.query.items():
            if counts[term]:
                n, f = counts[term] * math.log2(1 + 1.5 * average / len(text)), occurrences[term] / count
                rest = 0.5 * math.log2(2 * math.pi * n) + n * (math.log2(n) - math.log2(math.e))
                pl2[key] += weight / (n + 1) * (n * math.log2(1 / f) + f * math.log2(math.e) + rest)
    index = index_of(documents, cuts)
    assert found(index, query, f"bm25(statistics={counted})") == pytest.approx(bm25, abs=1e-9)
    assert found(index, query, f"pl2(c=1.5,statistics={counted})") == pytest.approx(pl2, abs=1e-9)


@pytest.mark.parametrize("counted", ["collection", "candidates"])
@examples(40)
@given(documents=collections(), query=queries, cuts=cuts)
def test_lm(counted, documents, query, cuts):
    plain = Plain(documents, query)
    occurrences, tokens = plain.collection.occurrences, plain.collection.tokens
    if counted == "candidates":
        occurrences = statistics_of(plain, counted)[3]
        tokens = sum(occurrences.values())
    seen = {term: weight for term, weight in plain.query.items() if occurrences[term]}
    expected = {}
    for key in plain.matching(plain.passages):
        counts, length = Counter(plain.terms(key)), len(plain.terms(key))
        logs = [w * math.log((counts[t] + 50 * occurrences[t] / tokens) / (length + 50)) for t, w in seen.items()]
        expected[key] = math.exp(sum(logs) / sum(seen.values()))
    assert found(index_of(documents, cuts), query, f"lm(mu=50,statistics={counted})") == pytest.approx(expected, abs=1e-9)


@st.composite
def patents(draw, id):
    """Documents with a description among other parts, sometimes none, sometimes in two pieces."""
    builder = TreeBuilder(id, title="pump")
    for part in draw(st.lists(st.sampled_from(["abstract", "description", "description", "claims"]), min_size=1, max_size=4)):
        with builder.span(Kind.SECTION, "sec", part=part):
            if draw(st.booleans()):
                builder.title(draw(texts))
            for text in draw(st.lists(texts, min_size=1, max_size=12)):
                builder.passage(text)
    return builder.build()


@examples(60)
@given(first=patents("d1"), second=patents("d2"), query=queries, weights=st.permutations([0.0, *range(1, 10)]), cuts=cuts)
def test_position_prior(first, second, query, weights, cuts):
    documents = [first, second]
    index = index_of(documents, cuts)
    plain = Plain(documents, query)
    base = "psg_doc(lam=0.5)"
    expected = found(index, query, base)
    for d in plain.fetched:
        inside = [(i, p) for i, p in enumerate(d.passages) if d.document.labels[d.document.spans.part[p]] == "description"]
        ranges = {i: plain.tokens(d, p) for i, p in inside}
        if inside:
            # Only tokens in passages of the description count, not headings or other parts between them.
            own = sorted({token for a, b in ranges.values() for token in range(a, b + 1)})
            for i, (a, b) in ranges.items():
                place = (sum(token < a for token in own) + (b + 1 - a) / 2) / len(own)
                tenth = next(tenth for tenth in range(10) if place < (tenth + 1) / 10 - 1e-12)
                expected[d.document.id, i] *= weights[tenth]
    listed = ",".join(map(str, weights))
    assert found(index, query, f"position_prior(base={base},weights=[{listed}])") == pytest.approx(expected, abs=1e-9)
    assert found(index, query, f"position_prior(base={base})") == found(index, query, base)
    matches = index.search(query, language="all").matches
    assert (tenth_of_passage(matches) >= 0).sum() == sum(
        d.document.labels[d.document.spans.part[p]] == "description" for d in plain.fetched for p in d.passages
    )


def top_section(d, passage):
    """The section right below the document that holds a passage, or None."""
    above = d.ancestors(passage)
    return above[-2] if len(above) > 1 else None


@pytest.mark.parametrize("model", ["first_section", "first_matching_section"])
@examples(60)
@given(documents=collections(), query=queries, cuts=cuts)
def test_first_section(model, documents, query, cuts):
    plain, index = Plain(documents, query), index_of(documents, cuts)
    # The scores of fetch to the last bit: two documents may differ in it alone.
    matches = index.search(query, language="all").matches
    score = {documents[i].id: value for i, value in zip(matches.number_of_document.tolist(), matches.score_of_document, strict=True)}
    expected, rest = [], []
    for d in sorted(plain.fetched, key=lambda d: (-score[d.document.id], d.document.id)):
        sections = {i: top_section(d, p) for i, p in enumerate(d.passages)}
        inside = [section for section in dict.fromkeys(sections.values()) if section is not None]
        if model == "first_matching_section":
            inside = [section for section in inside if set(plain.query) & set(d.of_span(section))] or inside
        chosen = {i for i, section in sections.items() if not inside or section == min(inside)}
        expected += [(d.document.id, i) for i in sections if i in chosen]
        rest += [(d.document.id, i) for i in sections if i not in chosen]
    assert list(found(index, query, model)) == expected + rest


@examples(30)
@given(documents=collections(min_size=2), query=queries)
def test_segments_change_no_bit(documents, query):
    for model in ("plm(sigma=3)", "plm(sigma=2000)", "plm(kernel=trapezoid)", "psg_neighbor", "pl2(statistics=candidates)"):
        assert found(index_of(documents), query, model) == found(index_of(documents, [1]), query, model)


@examples(30)
@given(documents=collections(), query=queries, cuts=cuts, segment=segments)
def test_characters_are_where_the_text_has_them(documents, query, cuts, segment):
    documents = [segmenter(segment)(document) for document in documents]
    matches = index_of(documents, cuts).search(query, language="all").matches
    plain = Plain(documents, query)
    places = matches.characters()
    by_text = []
    for d in sorted(plain.fetched, key=lambda d: [document.id for document in documents].index(d.document.id)):
        by_text += [(at, term) for at, term in zip(d.starts, d.terms, strict=True) if term in plain.query]
    terms = [matches.query.terms[i] for i in matches.term_of_occurrence]
    assert list(zip(places.position_of_occurrence.tolist(), terms, strict=True)) == by_text
    assert (places.first_of_passage <= places.last_of_passage).all()
    assert matches.characters() is places
    assert np.array_equal(matches.tokens().last_of_passage, matches.end_token_of_passage - 1)
