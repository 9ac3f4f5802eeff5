"""Every model equals its formula on real documents and topics, and explains itself there."""

import itertools
import json
import math

import numpy as np
import pytest

from perikope.browse.models import parse_model
from perikope.browse.models.prior import tenth_of_passage
from perikope.build.indexing import BuildOptions, build
from perikope.evaluation.io.topics import read_topics
from perikope.formats import read
from perikope.query.terms import parse_query
from perikope.search.facade import Index
from tests.support.models import READY
from tests.support.plain import PlainCollection
from tests.support.proximity import PlainInfluence
from tests.support.twins import DECAY, PlainTree, Twins

TOPICS = slice(None, None, 28)
"""Ten of them."""


class Collection:
    """An index, its documents without it, and a search and twins for each topic."""

    def __init__(self, documents, topics, folder):
        build(str(folder), [str(documents)], BuildOptions(stemmer="porter"))
        self.index = Index.open(folder)
        analyzer = self.index._snapshot.analyzer
        self.plain = PlainCollection(list(read([documents])), analyzer)
        trees = [PlainTree(d) for d in self.plain.documents]
        self.topics = []
        for topic in read_topics(topics)[TOPICS]:
            query = parse_query(topic.query, analyzer, ["en"])
            twins = Twins(self.plain, trees, dict(zip(query.terms, query.weights, strict=True)))
            self.topics.append((self.index.search(topic.query, k=1).matches, twins))


@pytest.fixture(scope="module")
def paths(shared_data):
    folder = shared_data / "conditionalqa"
    return folder / "documents.jsonl", folder / "topics.tsv"


@pytest.fixture(scope="module")
def collection(paths, tmp_path_factory):
    return Collection(*paths, tmp_path_factory.mktemp("collection") / "index")


@pytest.fixture(scope="module")
def collection_with_parts(paths, tmp_path_factory):
    """The same with the first section of each document as its abstract, and the others as its description."""
    folder = tmp_path_factory.mktemp("parts")
    with open(folder / "documents.jsonl", "w", encoding="utf-8") as file:
        for line in paths[0].read_text("utf-8").splitlines():
            document = json.loads(line)
            for number, section in enumerate(document["sections"]):
                section["part"] = "description" if number else "abstract"
            file.write(json.dumps(document) + "\n")
    return Collection(folder / "documents.jsonl", paths[1], folder / "index")


def check_explanations(score):
    """Some of them: of the best passage, of the worst and of one between."""
    order = np.argsort(-score.values, kind="stable")
    for row in order[[0, order.size // 2, -1]].tolist():
        nodes = [score.explain(row)]
        assert nodes[0].value == score.values[row]
        while nodes:
            node = nodes.pop()
            assert math.isclose(node.recomputed(), node.value, rel_tol=1e-9, abs_tol=1e-12), node.label
            nodes += node.children


def choices(name, **values):
    """A model with every combination of some parameters."""
    return [(name, dict(zip(values, chosen, strict=True))) for chosen in itertools.product(*values.values())]


CONTENT = {"content": ["lm", "bm25", "psg"], "statistics": ["documents", "passages"]}
COUNTED = {"statistics": ["collection", "candidates"]}
CASES = [
    *choices("bm25", **COUNTED),
    ("bm25", {"k1": 0.6, "b": 0.2}),
    *choices("lm", mu=[100.0, 1000.0], **COUNTED),
    *choices("pl2", c=[1.0, 5.0], **COUNTED),
    ("psg", {}),
    *choices("psg_doc", content=["psg", "bm25", "lm"], normalize=["candidates", "document", "minmax"]),
    ("psg_doc", {"lam": 0.3}),
    *choices("psg_neighbor", neighbors=[1, 2, 7], decay=[0.5, 1.0]),
    *choices("psg_neighbor", content=["bm25", "lm"], normalize=["document", "minmax"], left=[0.1], right=[0.6], lam=[0.5]),
    *choices("plm", kernel=["gauss", "trapezoid"], unit=["token", "char"], sigma=[5.0, 150.0, 2000.0, 1e5]),
    *choices("plm", kernel=["gauss", "trapezoid"], points=[1, 50], sigma=[50.0], lam=[0.2], normalize=["document"]),
    *choices("plm", kernel=["gauss", "trapezoid"]),
    *choices("qsf_v", **CONTENT),
    *choices("qsf_v_title", **CONTENT),
    *choices("qsf_section", aggregate=["average", "maximum"], **CONTENT),
    *choices("qsf_section_propagate", **CONTENT),
    *choices("qsf_section_propagate", aggregate=["average", "maximum"], weight=list(DECAY), sigma=[0.7, 3.0]),
    *choices("qsf_passage_propagate", **CONTENT),
    *choices("qsf_passage_propagate", aggregate=["average", "maximum"], weight=list(DECAY), sigma=[0.7, 3.0, 20.0]),
    *choices("qsf_section_propagate", aggregate=["weighted"], weight=["gauss", "step"], sigma=[0.7, 3.0]),
    *choices("qsf_passage_propagate", aggregate=["weighted"], weight=["gauss", "exponential"], sigma=[1.0, 20.0]),
    ("qsf_passage_propagate", {"mu": 200.0, "alpha": 0.2, "beta": 0.6}),
    *choices("coverage", titles=[0.0, 1.0], neighbors=[0.0, 0.3], document=[0.0, 0.8]),
    ("coverage", {"k1": 0.5, "b": 0.9, "titles": 0.5}),
    ("first_section", {}),
    ("first_matching_section", {}),
]


def written(name, given):
    return f"{name}({','.join(f'{parameter}={value}' for parameter, value in given.items())})"


@pytest.mark.parametrize(("name", "given"), CASES, ids=[written(*case) for case in CASES])
def test_a_model_equals_its_formula(collection, name, given):
    model = parse_model(written(name, given))
    for matches, twins in collection.topics:
        score = model.score(matches)
        assert [twins.fetched[document] for document in twins.document_of_row] == matches.number_of_document[
            matches.document_of_passage
        ].tolist()
        np.testing.assert_allclose(score.values, getattr(twins, name)(**given), rtol=1e-6, atol=1e-9)
        check_explanations(score)


def test_only_a_model_without_context_leaves_passages_out(collection, paths):
    topics = read_topics(paths[1])[TOPICS]
    for topic, (matches, twins) in zip(topics, collection.topics, strict=True):
        for name in READY:
            found = collection.index.search(topic.query, model=name, k=10_000, keep_unmatched=True).ranking.rows
            assert sorted(found.tolist()) == np.flatnonzero(twins.matching | (not parse_model(name).matching_only)).tolist()
        assert 0 < twins.matching.sum() < matches.passages


@pytest.mark.parametrize("base", ["pl2", "qsf_section", "psg_doc"])
def test_position_prior(collection_with_parts, base):
    weights = [0.5, 1.0, 1.5, 0.0, 2.0, 0.1, 3.0, 0.7, 1.2, 0.9]
    model = parse_model(f"position_prior(base={base},weights={weights})")
    for matches, twins in collection_with_parts.topics:
        score = model.score(matches)
        np.testing.assert_allclose(score.values, twins.position_prior(getattr(twins, base)(), weights), rtol=1e-6, atol=1e-9)
        assert set(tenth_of_passage(matches).tolist()) == {-1, *range(10)}
        check_explanations(score)


FUSED = ["bm25", "qsf_section_propagate", "plm", "lm"]


@pytest.mark.parametrize("normalize", ["minmax", "zscore", "sum", "none"])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, -1.0, 0.0]])
def test_fuse(collection, normalize, weights):
    given = f",weights={weights}" if weights else ""
    model = parse_model(f"fuse(models=[{','.join(FUSED)}],normalize={normalize}{given})")
    for matches, twins in collection.topics:
        score = model.score(matches)
        columns = [getattr(twins, name)() for name in FUSED]
        np.testing.assert_allclose(score.values, twins.fuse(columns, normalize, weights), rtol=1e-6, atol=1e-9)
        check_explanations(score)


@pytest.mark.parametrize("k", [0, 60])
def test_rrf(collection, k):
    model = parse_model(f"rrf(models=[{','.join(FUSED)}],k={k})")
    for matches, twins in collection.topics:
        # Where two scores are almost equal, the last bit decides; so expected ranks follow the scores tested above.
        columns = [(one.score(matches).values, one.matching_only) for one in map(parse_model, FUSED)]
        score = model.score(matches)
        np.testing.assert_allclose(score.values, twins.rrf(columns, k), rtol=1e-6, atol=1e-9)
        check_explanations(score)


BOOLEAN = [
    "court AND child",
    "(guardian OR adopt*) AND (court OR parent)",
    "benefit AND NOT child",
    '"special guardian" OR "tax credit"',
    "pay NEAR/5 tax",
    "(apply ADJ/3 court) OR (birth NEAR/8 parents)",
    "(child SAME benefit) AND (claim OR pay*)",
    '(("year of" OR month) AND pay) OR (NOT work AND employer)',
    "income tax allowance",
    "(visa AND (family OR partner)) OR (licence AND driv*)",
]
TAGS = {"h1": 0.6, "h2": 1.3, "li": 1.4, "p": 0.9, "title": 1.5}
PROXIMITY = [
    *choices("prox", k=[3, 200]),
    *choices("prox", shape=["gauss", "cosine", "circle", "rectangle"], k=[10]),
    *choices("prox", titles=[True], logical=[None, ("h1", "p")], k=[20]),
    *choices("prox_h", k=[20], titles=[False, True]),
    *choices("prox_hw", k=[20], logical=[None, ("h1", "h2", "li")]),
]
WEIGHS = {"prox": "none", "prox_h": "height", "prox_hw": "both"}


def written_proximity(name, given):
    parameters = {**given, "titles": str(given.get("titles", False)).lower()}
    if parameters.get("logical"):
        parameters["logical"] = f"[{','.join(parameters['logical'])}]"
    else:
        parameters.pop("logical", None)
    if name != "prox":
        parameters["weights"] = f"tags({','.join(f'{tag}={weight}' for tag, weight in TAGS.items())})"
    return written(name, parameters)


@pytest.mark.parametrize(("name", "given"), PROXIMITY, ids=[written_proximity(*case) for case in PROXIMITY])
def test_proximity_of_boolean_queries(collection, name, given):
    """Of the best three documents of each, as passages, as elements and as a whole."""
    model = parse_model(written_proximity(name, given))
    weights = {} if name == "prox" else TAGS
    influenced = 0
    for text in BOOLEAN:
        plain = {}
        for elements in (False, True, ["h1", "h2", "li"]):
            found = collection.index.search(text, syntax="boolean", model="prox", documents=3, elements=elements)
            matches, tree = found.matches, found.matches.query.boolean
            score, expected = model.score(matches), []
            for candidate, span in zip(matches.document_of_passage.tolist(), matches.span_of_passage.tolist(), strict=True):
                number = int(matches.number_of_document[candidate])
                if number not in plain:
                    d = collection.plain.documents[number]
                    tokens = list(zip(d.terms, d.starts, strict=True))
                    plain[number] = PlainInfluence(d.document, weighs=WEIGHS[name], weights=weights, tokens=tokens, **given)
                expected.append(plain[number].score(tree, span))
            np.testing.assert_allclose(score.values, expected, rtol=1e-6, atol=1e-9)
            check_explanations(score)
            influenced += bool(score.values.any())
    assert influenced > len(BOOLEAN), "most queries hold somewhere"


def test_no_model_is_left_out():
    tested = {name for name, _ in [*CASES, *PROXIMITY]} | {"position_prior", "fuse", "rrf"}
    assert {*READY} - tested == {"learned"}, "which adds up features that these models give"
