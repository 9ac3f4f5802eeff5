"""Every model on one query, slowly and straight from its formula: dense arrays and loops over occurrences.

Nothing here is sparse, recursive over distances or shared between models, as it is in the library; only numpy's
arithmetic is the same. A model is a method of `Twins` with the parameters of the model. It returns one value per
passage of the candidates, matching or not.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache, cached_property

import numpy as np

from perikope.document.tree import Kind
from tests.support.plain import PlainCollection, PlainDocument

DECAY = {
    "gauss": lambda x, sigma: np.exp(-x * x / (2 * sigma * sigma)),
    "triangle": lambda x, sigma: np.maximum(0.0, 1 - x / sigma),
    "exponential": lambda x, sigma: np.exp(-x / sigma),
    "inverse": lambda x, sigma: 1 / (1 + x / sigma),
    "step": lambda x, sigma: np.where(x <= sigma, 1.0, 0.0),
}
AGGREGATE = {"average": lambda parts: sum(parts) / len(parts), "maximum": max}
AGGREGATE["weighted"] = AGGREGATE["average"]  # of what has no distance


class PlainTree:
    """The sections and passages of a document, and the edges between its passages."""

    def __init__(self, d: PlainDocument) -> None:
        self.d, self.passages = d, d.passages
        self.above = {span: d.ancestors(span) for span in [*self.passages, *d.document.of_kind(Kind.SECTION)]}
        self.below: dict[int, list[int]] = {}
        for span, above in self.above.items():
            if above:
                self.below.setdefault(above[0], []).append(span)

    @cached_property
    def distances(self):
        """Edges from each passage to each, by the nearest section that holds both."""

        def between(one, other):
            first, second = [one, *self.above[one]], [other, *self.above[other]]
            common = next(span for span in first if span in second)
            return first.index(common) + second.index(common)

        return np.array([[between(one, other) for other in self.passages] for one in self.passages], float)

    def section_score(self, section, score, aggregate):
        """Sim_sec; None of a section without a passage."""
        parts = [score[span] if span in score else self.section_score(span, score, aggregate) for span in self.below.get(section, ())]
        parts = [part for part in parts if part is not None]
        return AGGREGATE[aggregate](parts) if parts else None

    def section_scores(self, score, aggregate):
        """Sim_sec of every section that holds a passage somewhere below."""
        return {s: self.section_score(s, score, aggregate) for s in {s for p in self.passages for s in self.above[p]}}

    def top_section(self, passage):
        """The top section that contains a passage; None for a passage that is in no section."""
        return self.above[passage][-2] if len(self.above[passage]) > 1 else None


def min_max(values):
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high - low > 1e-12 * max(abs(low), abs(high)) else np.zeros(values.size)


class Twins:
    """The documents that contain a term of the query, by number in the collection, and all models on their passages."""

    def __init__(self, plain: PlainCollection, trees: list[PlainTree], query: dict[str, float]) -> None:
        self.plain, self.query, self.terms = plain, query, list(query)
        self.weights = np.array(list(query.values()))
        self.fetched = [number for number, d in enumerate(plain.documents) if set(query) & set(d.all_terms)]
        self.trees = [trees[number] for number in self.fetched]
        self.rows = [(number, p) for number, tree in zip(self.fetched, self.trees, strict=True) for p in tree.passages]
        self.document_of_row = np.repeat(np.arange(len(self.trees)), [len(tree.passages) for tree in self.trees])
        self.fetch_score = np.array([plain.document_score(query, tree.d) for tree in self.trees])

    # What texts hold, and what the collection says of terms.

    @cache  # noqa: B019
    def texts(self, unit):
        """The terms of each passage, passage with titles or document."""
        if unit == "document":
            return [tree.d.all_terms for tree in self.trees]
        read = PlainDocument.with_titles if unit == "passage with titles" else PlainDocument.of_span
        return [read(tree.d, p) for tree in self.trees for p in tree.passages]

    @cache  # noqa: B019
    def counts(self, unit):
        """How often each text holds each term of the query (a row a text), and its length (a column)."""
        texts = self.texts(unit)
        counted = [Counter(text) for text in texts]
        return np.array([[count[t] for t in self.terms] for count in counted], float), np.array([[len(text)] for text in texts], float)

    @cached_property
    def matching(self):
        """Whether each passage holds a term of the query."""
        return self.counts("passage")[0].any(axis=1)

    @cache  # noqa: B019
    def background(self, counted):
        """Numbers of units and tokens, and per term of units with it and occurrences, at one level."""
        if counted == "candidates":
            texts = self.texts("passage")
            holding, occurrences = Counter(t for text in texts for t in set(text)), Counter(t for text in texts for t in text)
        elif counted == "documents":
            texts, holding, occurrences = self.plain.documents, self.plain.document_frequency, self.plain.occurrences
        else:
            texts, holding, occurrences = self.plain.passages, self.plain.passage_frequency, self.plain.passage_occurrences
        by_term = (np.array([of[t] for t in self.terms], float) for of in (holding, occurrences))
        return len(texts), sum(occurrences.values()), *by_term

    @cache  # noqa: B019
    def content(self, unit, content, counted, mu=1000.0, k1=1.2, b=0.75, c=1.0):
        """The score of each text alone."""
        tf, length = self.counts(unit)
        units, tokens, holding, occurrences = self.background(counted)
        if content == "psg":
            return (np.log(tf + 1) * np.log(units / np.maximum(holding, 1))).sum(axis=1)
        if content == "bm25":
            idf = np.log(1 + (units - holding + 0.5) / (holding + 0.5))
            return (self.weights * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / (tokens / units)))).sum(axis=1)
        seen = occurrences > 0
        if content == "lm":
            share = self.weights[seen] / self.weights[seen].sum()
            return np.exp((share * np.log((tf[:, seen] + mu * occurrences[seen] / tokens) / (length + mu))).sum(axis=1))
        total = np.zeros(length.size)
        for row, term in zip(*np.nonzero(tf), strict=True):
            n, f = tf[row, term] * math.log2(1 + c * (tokens / units) / length[row, 0]), occurrences[term] / units
            bits = n * math.log2(1 / f) + f * math.log2(math.e) + 0.5 * math.log2(2 * math.pi * n) + n * (math.log2(n) - math.log2(math.e))
            total[row] += self.weights[term] * bits / (n + 1)
        return total

    # Passages alone.

    def bm25(self, k1=1.2, b=0.75, statistics="collection"):
        return self.content("passage", "bm25", "passages" if statistics == "collection" else statistics, k1=k1, b=b)

    def lm(self, mu=1000.0, statistics="collection"):
        return self.content("passage", "lm", "documents" if statistics == "collection" else statistics, mu)

    def pl2(self, c=1.0, statistics="collection"):
        return self.content("passage", "pl2", "passages" if statistics == "collection" else statistics, c=c)

    def psg(self):
        return self.content("passage", "psg", "documents")

    # Carmel 2013.

    def mixed(self, passage, normalize, lam):
        if normalize == "minmax":
            first, second = min_max(passage), min_max(self.fetch_score)
        else:
            of_document = np.array([passage[self.document_of_row == d].sum() for d in range(len(self.trees))])
            total = of_document[self.document_of_row] if normalize == "document" else np.full(passage.size, passage.sum())
            first = np.divide(passage, total, out=np.zeros(passage.size), where=total != 0)
            above = self.fetch_score - min(self.fetch_score.min(), 0.0)
            second = above / above.sum() if above.sum() else np.zeros(above.size)
        return (1 - lam) * first + lam * second[self.document_of_row]

    def psg_doc(self, content="psg", normalize="candidates", lam=0.9):
        return self.mixed(self.content("passage", content, "documents"), normalize, lam)

    def psg_neighbor(self, neighbors=1, decay=0.5, content="psg", normalize="candidates", left=0.25, right=0.25, lam=0.9):
        own = self.psg_doc(content, normalize, lam)
        share = [decay**i / sum(decay**j for j in range(neighbors)) for i in range(neighbors)]
        score = (1 - left - right) * own
        for row in range(own.size):
            for i in range(neighbors):
                for side, other in ((left, row - i - 1), (right, row + i + 1)):
                    if 0 <= other < own.size and self.document_of_row[other] == self.document_of_row[row]:
                        score[row] += side * share[i] * own[other]
        return score

    def plm(self, kernel="gauss", sigma=None, unit="token", points=20, normalize="candidates", lam=0.9):
        sigma = sigma or {"gauss": 2000.0, "trapezoid": 1e5}[kernel]
        idf = {t: math.log(len(self.plain.documents) / max(self.plain.document_frequency[t], 1)) for t in self.terms}
        values = []
        for tree in self.trees:
            d = tree.d
            first = np.array(d.starts if unit == "char" else range(len(d.terms)))
            last = np.array(d.ends) - 1 if unit == "char" else first
            inside = [d.tokens(p) for p in tree.passages]
            ranges = [(first[tokens.start], last[tokens.stop - 1]) for tokens in inside]
            at = [i for i, term in enumerate(d.terms) if term in self.query]
            weight = np.array([idf[d.terms[i]] for i in at])
            own = [
                next((r for r, tokens in zip(ranges, inside, strict=True) if tokens.start <= i < tokens.stop), (first[i], first[i]))
                for i in at
            ]
            begin, end = (np.array([side[j] for side in own]) for j in (0, 1))
            s, e = np.array(ranges).T[:, :, None]
            x = (s + np.arange(points + 1) * (e - s) / points)[:, :, None]  # by passage, point and occurrence
            if kernel == "gauss":
                f = np.exp(-((first[at] - x) ** 2) / (2 * sigma**2))
            else:
                f = np.maximum(0.0, 1 - np.maximum(0, np.maximum(begin - x, x - end)) / sigma)
            values += (weight * f).sum(axis=(1, 2)).tolist()
        return self.mixed(np.array(values), normalize, lam)

    # Our own default.

    def coverage(self, k1=1.2, b=0.5, titles=1.0, neighbors=0.1, document=0.8):
        """What passage, titles, neighbours and document leave of each term, as one dense matrix per text."""

        def saturated(unit, counted):
            tf, length = self.counts(unit)
            units, tokens, *_ = self.background(counted)
            return tf / (tf + k1 * (1 - b + b * length / (tokens / units)))

        own, titled = self.counts("passage")[0], self.counts("passage with titles")[0]
        beside = np.zeros(own.shape)
        follows = self.document_of_row[1:] == self.document_of_row[:-1]
        beside[1:][follows] += own[:-1][follows]
        beside[:-1][follows] += own[1:][follows]
        idf = [
            np.log(1 + (units - holding + 0.5) / (holding + 0.5))
            for units, _, holding, _ in map(self.background, ("passages", "documents"))
        ]
        share = np.minimum(idf[1] / idf[0], 1)
        left = 1 - saturated("passage", "passages")
        left *= 1 - titles * np.sqrt(share) * (titled > own)
        left *= 1 - neighbors * beside / (beside + k1)
        left *= 1 - document * share * saturated("document", "documents")[self.document_of_row]
        return ((1 - left) * idf[0] * self.weights).sum(axis=1)

    # Albarede 2021.

    def qsf_v(self, mu=1000.0, content="lm", statistics="documents", alpha=0.8):
        return self.qsf("passage", (content, statistics, mu), None, alpha, 1.0)

    def qsf_v_title(self, mu=1000.0, content="lm", statistics="documents", alpha=0.9):
        return self.qsf("passage with titles", (content, statistics, mu), None, alpha, 1.0)

    def qsf(self, unit, chosen, context, alpha, beta):
        own = self.content(unit, *chosen)
        around = np.zeros(own.size) if context is None else np.concatenate([context(tree, score) for tree, score in self.by_document(own)])
        document = min_max(self.content("document", *chosen))[self.document_of_row]
        return alpha * min_max(own) + (1 - alpha) * (beta * document + (1 - beta) * min_max(around))

    def by_document(self, values):
        """Each tree with the values of its passages, by span."""
        for d, tree in enumerate(self.trees):
            yield tree, dict(zip(tree.passages, values[self.document_of_row == d].tolist(), strict=True))

    def qsf_section(self, mu=1000.0, content="lm", statistics="documents", aggregate="average", alpha=0.6, beta=0.1):
        def context(tree, score):
            section = tree.section_scores(score, aggregate)
            return [section[tree.above[p][0]] for p in tree.passages]

        return self.qsf("passage with titles", (content, statistics, mu), context, alpha, beta)

    def qsf_section_propagate(
        self, mu=1000.0, content="lm", statistics="documents", aggregate="average", weight="gauss", sigma=5.0, alpha=0.6, beta=0.3
    ):
        def context(tree, score):
            section = tree.section_scores(score, aggregate)
            contexts = []
            for p in tree.passages:
                weights = [DECAY[weight](x, sigma) for x, _ in enumerate(tree.above[p], 1)]
                given = [section[s] * w for s, w in zip(tree.above[p], weights, strict=True)]
                if aggregate == "weighted":
                    contexts.append(sum(given) / sum(weights) if sum(weights) else 0.0)
                else:
                    contexts.append(AGGREGATE[aggregate](given))
            return contexts

        return self.qsf("passage with titles", (content, statistics, mu), context, alpha, beta)

    def qsf_passage_propagate(
        self, mu=1000.0, content="lm", statistics="documents", aggregate="average", weight="gauss", sigma=5.0, alpha=0.5, beta=0.2
    ):
        def context(tree, score):
            given = np.array(list(score.values())) * DECAY[weight](tree.distances, sigma)
            count = len(tree.passages)
            if count == 1:
                return [0.0]
            others = ~np.eye(count, dtype=bool)
            if aggregate == "maximum":
                return np.where(others, given, -np.inf).max(axis=1)
            weights = np.where(others, DECAY[weight](tree.distances, sigma), 0.0).sum(axis=1)
            divisor = np.where(weights > 0, weights, 1.0) if aggregate == "weighted" else count - 1
            return np.where(others, given, 0.0).sum(axis=1) / divisor

        return self.qsf("passage with titles", (content, statistics, mu), context, alpha, beta)

    # Gobeill 2012, the cheap baselines, and fusion.

    def position_prior(self, base, weights):
        """`base` are the values of another model, `weights` of the tenths."""
        values, row = base.copy(), 0
        for tree in self.trees:
            document = tree.d.document
            inside = [p for p in tree.passages if document.labels[document.spans.part[p]] == "description"]
            own = [token for p in inside for token in range(tree.d.tokens(p).start, tree.d.tokens(p).stop)]
            for p in tree.passages:
                if p in inside:
                    here = tree.d.tokens(p)
                    middle = 2 * sum(token < here.start for token in own) + here.stop - here.start
                    values[row] *= weights[min(10 * middle // (2 * len(own)), 9)]
                row += 1
        return values

    def first_section(self, matching=False):
        apart, values = 1 + self.fetch_score.max() - self.fetch_score.min(), []
        for tree, score in zip(self.trees, self.fetch_score, strict=True):
            sections = sorted({tree.top_section(p) for p in tree.passages} - {None})
            if matching:
                sections = [s for s in sections if set(self.query) & set(tree.d.of_span(s))] or sections
            values += [score + apart * (not sections or tree.top_section(p) == sections[0]) for p in tree.passages]
        return np.array(values)

    def first_matching_section(self):
        return self.first_section(matching=True)

    def fuse(self, columns, normalize="minmax", weights=None):
        """`columns` are the values of other models."""

        def normal(values):
            above = values - values.min()
            by = {"minmax": lambda: min_max(values), "sum": lambda: above / above.sum(), "none": lambda: values}
            return ((values - values.mean()) / values.std()) if normalize == "zscore" else by[normalize]()

        shares = weights or [1 / len(columns)] * len(columns)
        return sum(share * normal(values) for share, values in zip(shares, columns, strict=True))

    def rrf(self, columns, k=60.0):
        """`columns` are pairs: the values of another model, and whether it ranks matching passages alone."""
        ids = [self.plain.documents[number].document.id for number, _ in self.rows]
        score = np.zeros(len(self.rows))
        for values, matching_only in columns:
            ranked = [row for row in range(values.size) if not matching_only or self.matching[row]]
            for rank, row in enumerate(sorted(ranked, key=lambda row: (-values[row], ids[row], row)), 1):
                score[row] += 1 / (k + rank)
        return score
