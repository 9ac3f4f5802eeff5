"""The influence of Boolean queries by the definitions, slowly, and random documents and trees for comparisons."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.query.boolean import And, Near, Not, Or, Phrase, Same, Word

VOCABULARY = ["pump", "rotor", "magnet", "seal", "the"]
texts = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=7).map(" ".join)


@st.composite
def structured_documents(draw, id="d1"):
    """Sections, lists, passages and titles in any order, marks, and text directly in sections."""
    builder = TreeBuilder(id, tag="article", title=draw(st.sampled_from(["", "pump rotor"])))
    builder.passage(draw(texts))
    _fill(draw, builder, 3)
    return builder.build()


def _fill(draw, builder, depth):
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["passage", "passage", "text", "section", "element"]))
        if kind == "passage":
            text = draw(texts)
            words = text.split()
            marks = []
            for tag in draw(st.lists(st.sampled_from(["b", "it"]), max_size=2)):
                first = draw(st.integers(0, len(words) - 1))
                last = draw(st.integers(first, len(words) - 1))
                marks.append((tag, len(" ".join(["", *words[:first]])), len(" ".join(words[: last + 1]))))
            builder.passage(text, draw(st.sampled_from(["p", "item"])), marks=marks)
        elif kind == "text":
            builder.text(f" {draw(texts)}")
        elif depth:
            section = kind == "section"
            with builder.span(Kind.SECTION if section else Kind.ELEMENT, draw(st.sampled_from(["sec", "bdy"])) if section else "list"):
                if section and draw(st.booleans()):
                    builder.title(draw(texts))
                _fill(draw, builder, depth - 1)


words = st.sampled_from([Word((f"en:{word}",)) for word in VOCABULARY] + [Word(("en:seal", "en:magnet")), Word(()), Word(("en:absent",))])
phrases = st.lists(st.one_of(words, words, words, st.none()), min_size=0, max_size=1).flatmap(
    lambda middle: st.tuples(words, words).map(lambda ends: Phrase((ends[0], *middle, ends[1])))
)
nears = st.builds(Near, words, words, st.integers(1, 4), st.booleans())
sames = st.lists(words, min_size=2, max_size=2).map(lambda children: Same(tuple(children)))
leaves = st.one_of(words, words, words, phrases, nears, sames)


def trees():
    def operators(children):
        several = st.lists(children, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), children.map(Not))

    return st.recursive(leaves, operators, max_leaves=5)


class PlainInfluence:
    """Influence on the tokens of one document: those given as (term, start), or all its words as they are."""

    def __init__(
        self, document: Document, *, k, shape="triangle", weighs="none", weights=(), logical=None, titles=False, tokens=None
    ) -> None:
        self.document, self.k, self.shape, self.weighs, self.weights = document, k, shape, weighs, dict(weights)
        self.logical, self.titles = logical, titles
        self.tokens, at = list(tokens or ()), 0
        for word in document.text.split() if tokens is None else ():
            start = document.text.index(word, at)
            at = start + len(word)
            self.tokens.append((f"en:{word}", start))
        spans = document.spans
        self._holding = [[i for i in range(len(spans)) if spans.start[i] <= start < spans.end[i]] for _, start in self.tokens]
        self._sources, self._influence = {}, {}

    def holding(self, token):
        """The spans that hold a token, outermost first."""
        return self._holding[token]

    def is_logical(self, span):
        spans = self.document.spans
        if span == 0:
            return True
        if self.logical is None:
            return spans.kind[span] in (Kind.SECTION, Kind.ELEMENT, Kind.PASSAGE)
        return spans.kind[span] != Kind.MARK and self.tag(span) in self.logical

    def tag(self, span):
        return self.document.labels[self.document.spans.tag[span]]

    def element(self, token):
        """The deepest logical element."""
        return [span for span in self.holding(token) if self.is_logical(span)][-1]

    def weight(self, token):
        weighted = [span for span in self.holding(token) if self.tag(span) in self.weights]
        return self.weights[self.tag(weighted[-1])] if weighted else 1.0

    def titled(self, token):
        titles = [span for span in self.holding(token) if self.document.spans.kind[span] == Kind.TITLE]
        return self.document.spans.parent[titles[-1]] if titles else None

    def curve(self, distance, weight):
        height = 1.0 if self.weighs == "none" else weight
        width = self.k * weight if self.weighs == "both" else self.k
        if width == 0:
            return 0.0
        x = distance / width
        if self.shape == "triangle":
            return height * max(0.0, 1 - x)
        if self.shape == "gauss":
            return height * math.exp(-x * x / 2)
        if self.shape == "cosine":
            return height * (1 + math.cos(math.pi * x)) / 2 if x < 1 else 0.0
        if self.shape == "circle":
            return height * math.sqrt(max(0.0, 1 - x * x))
        return height if x <= 1 else 0.0

    def occurs(self, word, token):
        return self.tokens[token][0] in word.terms

    def occurrences(self, leaf):
        places = range(len(self.tokens))
        if isinstance(leaf, Word):
            return {x for x in places if self.occurs(leaf, x)}
        if isinstance(leaf, Phrase):
            words = [word for word in leaf.words if word is not None]
            found = set()
            for start in places:
                inside = range(start, start + len(leaf.words))
                if inside.stop <= len(self.tokens) and all(
                    word is None or (self.occurs(word, x) and self.element(x) == self.element(start))
                    for word, x in zip(leaf.words, inside, strict=True)
                ):
                    own = [x for x in inside if self.element(x) == self.element(start)]
                    found |= {x for x in own if any(self.occurs(word, x) for word in words)}
            return found
        if isinstance(leaf, Near):
            found = set()
            for one in self.occurrences(leaf.left):
                for other in self.occurrences(leaf.right):
                    near = 0 < (other - one if leaf.ordered else abs(other - one)) <= leaf.distance
                    if near and self.element(one) == self.element(other):
                        between = [x for x in range(min(one, other), max(one, other) + 1) if self.element(x) == self.element(one)]
                        found |= {x for x in between if self.occurs(leaf.left, x) or self.occurs(leaf.right, x)}
            return found
        found = set()
        for passage in self.document.of_kind(Kind.PASSAGE):
            inside = {x for x in places if passage in self.holding(x)}
            each = [inside & self.occurrences(child) for child in leaf.children]
            if all(each):
                found |= set().union(*each)
        return found

    def sources(self, leaf):
        """The occurrences of a leaf with weights, by the span they reach into, and whether the reach is constant."""
        found = {}
        for i in self.occurrences(leaf):
            titled = self.titled(i) if self.titles else None
            found.setdefault((self.element(i) if titled is None else titled, titled is not None), []).append((i, self.weight(i)))
        return found

    def of_leaf(self, leaf, x):
        if leaf not in self._sources:
            self._sources[leaf] = self.sources(leaf)
        sources = self._sources[leaf]
        near = [self.curve(abs(x - i), weight) for i, weight in sources.get((self.element(x), False), ())]
        named = [self.curve(0, weight) for span in self.holding(x) for _, weight in sources.get((span, True), ())]
        return max([0.0, *near, *named])

    def at(self, tree, x):
        match tree:
            case And(children):
                return min(self.at(child, x) for child in children)
            case Or(children):
                return max(self.at(child, x) for child in children)
            case Not(child):
                return max(0.0, 1 - self.at(child, x))
        return self.of_leaf(tree, x)

    def score(self, tree, span):
        if tree not in self._influence:
            self._influence[tree] = [self.at(tree, x) for x in range(len(self.tokens))]
        inside = [x for x in range(len(self.tokens)) if span in self.holding(x)]
        return sum(self._influence[tree][x] for x in inside) / len(inside) if inside else 0.0
