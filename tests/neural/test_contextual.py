"""Stores of passage vectors in context: contents, when documents are encoded again, and explanations of scores."""

import json
from typing import get_args

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from click.testing import CliRunner  # noqa: E402

from perikope.cli import encode_command  # noqa: E402
from perikope.core.errors import UsageError  # noqa: E402
from perikope.formats import read  # noqa: E402
from perikope.neural.graph import read_graph  # noqa: E402
from perikope.neural.hgat import HGAT, VARIANTS, LateFusion  # noqa: E402
from perikope.neural.models import Variant  # noqa: E402
from perikope.neural.nearest import nearest_documents  # noqa: E402
from perikope.neural.saved import SavedRanker, load_ranker, save_ranker  # noqa: E402
from perikope.neural.stores.making import EncodeOptions, encode_index  # noqa: E402
from perikope.neural.stores.manifest import CONTENT  # noqa: E402
from perikope.neural.stores.store import VectorStore  # noqa: E402
from perikope.neural.training import ContextRanker  # noqa: E402
from perikope.neural.triples import read_texts  # noqa: E402
from perikope.search.facade import Index  # noqa: E402
from tests.neural.support import tiny_encoder  # noqa: E402

DOCUMENTS = [
    {
        "id": "d1",
        "title": "Pump",
        "cites": ["d2"],
        "sections": [
            {"id": "s1", "title": "The rotor", "passages": ["A magnet drives the rotor.", {"id": "p2", "text": "Cold water!"}]},
            {"id": "s2", "passages": [{"text": "The seal keeps the fluid inside.", "refs": ["p2"]}, "The valve opens."]},
        ],
    },
    {"id": "d2", "title": "Valve", "passages": ["The valve opens.", "A magnet closes the valve when the pump stops."]},
    {"id": "d3", "title": "Heat", "passages": ["Warm water."]},
]
FORMS = [
    {"variant": "BASE", "residual": True},
    {"variant": "BASE", "residual": True, "normalize_output": True, "layers": 1},
    {"variant": "NO_LB"},
    {"variant": "LB", "normalize_output": True},
    {"variant": "NO_LB_NS", "late_fusion": True},
    {"variant": "NS", "residual": True, "late_fusion": True},
]


def ranker_of(variant="BASE", late_fusion=False, layers=2, **options) -> SavedRanker:
    torch.manual_seed(3)
    context = HGAT.variant(variant, dimension=8, heads=2, layers=layers, positions=180, **options)
    for name, parameter in context.named_parameters():
        if "out_proj" in name or "weight" in name:
            torch.nn.init.normal_(parameter, std=0.7)
    return SavedRanker(tiny_encoder(), context.eval(), LateFusion() if late_fusion else None, heading_path=True)


def written(path, documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), "utf-8")
    return path


def add(index, path, documents, **options):
    index.add(read([written(path, documents)]), **options)
    index.commit()


@pytest.fixture
def index(tmp_path):
    index = Index.create(tmp_path / "index")
    for number, document in enumerate(DOCUMENTS):
        add(index, tmp_path / f"{number}.jsonl", [document])
    return index


@pytest.fixture
def saved(tmp_path):
    def save(**options):
        save_ranker(tmp_path / "ranker", ranker_of(**options))
        return tmp_path / "ranker"

    return save


def make_store(index, folder, **options):
    return encode_index(index._snapshot, EncodeOptions(encoder=str(folder), **{"code": "float16", **options}))


def scores_in_training(index, folder, query):
    """The scores of the ranker in training, by `document#passage`."""
    ranker, texts = load_ranker(folder, precision="float32"), read_texts(index._snapshot)
    graphs = [read_graph(index._snapshot, index._snapshot.find_document(document)) for document in texts.documents]
    context = ContextRanker(ranker.encoder, texts.written(heading_path=True), texts, graphs, ranker.context, ranker.fusion)
    values = context.score_all([query], np.arange(len(texts.names)))[0]
    return dict(zip(texts.names, values.tolist(), strict=True))


def nodes(node):
    yield node
    for child in node.children:
        yield from nodes(child)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(f"{value}" for value in form.values()))
def test_scores_are_those_of_training_and_are_explained_by_neighbours(index, saved, form):
    folder = saved(**form)
    make_store(index, folder)
    wanted = scores_in_training(index, folder, "magnet water")
    results = index.search("magnet water", model="hgat", k=100)
    assert len(results) == 7
    scale = max(1.0, *(abs(value) for value in wanted.values()))
    for name, score in results.names():
        assert score == pytest.approx(wanted[name], abs=0.02 * scale)  # queries and passages may be encoded in bfloat16
    for number, (name, score) in enumerate(results.names()):
        node = results.explain(number)
        assert node.value == score, name
        for part in nodes(node):
            assert part.recomputed() == pytest.approx(part.value, rel=1e-9, abs=1e-9), part.label
        lost = [part for part in nodes(node) if part.label.startswith("lost by the code")]
        assert len(lost) == 1
        assert abs(lost[0].value) < 0.02 * scale
        reasons = results.reasons(number)
        assert sum(part.value for part in reasons.parts) == pytest.approx(score, rel=1e-9, abs=1e-9)
        assert {"sections", "neighbors"} & {part.origin for part in reasons.parts}, name
    labels = {part.label for part in nodes(index.explain("magnet water", "d1#@1", model="hgat"))}
    assert any(label.startswith("through structural from section /document[1]/sec[1] 'The rotor'") for label in labels), labels
    assert any(label.startswith("through order_i from passage p2") for label in labels), labels
    assert any("'magnet' ~ " in label for label in labels)
    assert any(label.startswith("through self from itself") for label in labels) == ("NS" not in form["variant"])


@pytest.mark.parametrize("code", ["float16", "int8", "residual"])
def test_a_code_keeps_lengths(index, saved, code):
    folder = saved(variant="NO_LB_NS", late_fusion=True)
    store = make_store(index, folder, code=code)
    ranker, snapshot = load_ranker(folder), index._snapshot
    graph = read_graph(snapshot, snapshot.find_document("d2"))
    texts = ["Valve", "Valve. The valve opens.", "Valve. A magnet closes the valve when the pump stops."]
    with torch.inference_mode():
        tokens, mask = ranker.encoder.passages(texts, full=False)
        inside, inside_mask = ranker.context(graph, tokens.float(), mask)
    for matrix, wanted in (("vectors", inside), (CONTENT, tokens[1:])):
        packed = store.find(snapshot, np.array([snapshot.find_document("d2")]), matrix)
        for passage in range(2):
            plain = wanted[passage][inside_mask[passage]].float().numpy()
            unpacked = packed.vectors(passage)[0]
            assert unpacked.shape == plain.shape
            np.testing.assert_allclose(np.linalg.norm(unpacked, axis=1), np.linalg.norm(plain, axis=1), rtol=0.03)
    assert {name: book.bytes_per_vector for name, book in store.codebooks.items()}.keys() == {"vectors", "content"}


def test_a_document_is_encoded_again_when_its_graph_changes(index, saved, tmp_path):
    folder = saved()
    make_store(index, folder)
    assert VectorStore.open(index.folder, "hgat").missing(index._snapshot) == 0
    seal, *rest = DOCUMENTS[0]["sections"][1]["passages"]
    changes = [
        # The cited document gets another title: it and the document that cites it have changed.
        ({**DOCUMENTS[1], "title": "Other"}, 2),
        # One reference less, with the same words.
        ({**DOCUMENTS[0], "sections": [DOCUMENTS[0]["sections"][0], {"id": "s2", "passages": [seal["text"], *rest]}]}, 1),
        # Another title of a section.
        ({**DOCUMENTS[0], "sections": [{**DOCUMENTS[0]["sections"][0], "title": "Rotor"}, DOCUMENTS[0]["sections"][1]]}, 1),
        ({**DOCUMENTS[0], "cites": []}, 1),
    ]
    for number, (document, missing) in enumerate(changes):
        add(index, tmp_path / f"change{number}.jsonl", [document], replace=True)
        opened = VectorStore.open(index.folder, "hgat")
        assert opened.missing(index._snapshot) == missing, number
        with pytest.raises(UsageError, match=r"perikope encode .* --name hgat"):
            index.search("magnet water", model="hgat")
        assert make_store(index, folder).missing(index._snapshot) == 0
        assert len(index.search("magnet water", model="hgat")) > 0
    index.compact()
    assert VectorStore.open(index.folder, "hgat").missing(index._snapshot) == 0


def test_a_document_that_is_cited_comes_later(index, saved, tmp_path):
    add(index, tmp_path / "citing.jsonl", [{"id": "d4", "title": "Seal", "cites": ["d5"], "passages": ["A seal."]}])
    folder = saved()
    make_store(index, folder)
    add(index, tmp_path / "cited.jsonl", [{"id": "d5", "title": "Fluid", "passages": ["The fluid."]}])
    assert VectorStore.open(index.folder, "hgat").missing(index._snapshot) == 2


def test_documents_are_found_by_vectors_in_context(index, saved):
    make_store(index, saved())
    nearest = nearest_documents(index, "magnet", "hgat")
    results = index.search("magnet", model="hgat", also_nearest="hgat", k=100)
    best: dict[str, float] = {}
    for hit in results:
        best[hit.document] = max(hit.score, best.get(hit.document, -np.inf))
    assert set(nearest) == set(best)
    assert [nearest[id] for id in best] == pytest.approx([*best.values()], abs=1e-6)


def test_the_variant_is_that_of_the_store(index, saved):
    assert {*get_args(Variant)} == {"", *VARIANTS}
    make_store(index, saved(variant="NO_LB"), name="mine")
    assert len(index.search("magnet", model='hgat(store="mine",variant="NO_LB")')) > 0
    with pytest.raises(UsageError, match="made with the variant NO_LB, not BASE"):
        index.search("magnet", model='hgat(store="mine",variant="BASE")')
    with pytest.raises(UsageError, match=r"is of kind context, not tokens; rank with hgat\(store=mine\)"):
        index.search("magnet", model="colbert(store=mine)")


def test_a_store_is_brought_up_to_date_as_it_was_made(index, saved, tmp_path):
    folder = saved(variant="NO_LB_NS", late_fusion=True)
    run = CliRunner()
    options = ["--encoder", str(folder), "--name", "mine", "--code", "int8"]
    done = run.invoke(encode_command.command, [str(index.folder), *options], catch_exceptions=False)
    assert "3 documents" in done.output
    add(index, tmp_path / "new.jsonl", [{"id": "d9", "title": "Seal", "passages": ["A seal."]}])
    done = run.invoke(encode_command.command, [str(index.folder), "--name", "mine"], catch_exceptions=False)
    assert "4 documents" in done.output
    store = VectorStore.open(index.folder, "mine")
    assert store.facts["variant"] == "NO_LB_NS"
    assert store.codebook.code == "int8"
    torch.manual_seed(9)
    save_ranker(folder, ranker_of(variant="NO_LB_NS", late_fusion=True, residual=True))
    with pytest.raises(UsageError, match="made differently"):
        run.invoke(encode_command.command, [str(index.folder), *options], catch_exceptions=False)


def test_a_store_of_pooled_vectors(index, tmp_path):
    encoder = tiny_encoder()
    encoder.save(tmp_path / "tiny")
    store = encode_index(index._snapshot, EncodeOptions(encoder=str(tmp_path / "tiny"), pooled=True))
    assert (store.name, store.kind, store.tokens) == ("dense", "pooled", 7)
    results = index.search("magnet water", model="vectors", k=100)

    def plain(text):
        batch = encoder.tokenizer([text], return_tensors="pt")
        with torch.inference_mode():
            mean = encoder.transformer(**{name: batch[name] for name in ("input_ids", "attention_mask")}).last_hidden_state[0].mean(0)
        return (mean / mean.norm()).numpy()

    for name, score in results.names():
        text = {"d3#@1": "Heat. Warm water.", "d2#@1": "Valve. The valve opens."}.get(name)
        if text:
            assert score == pytest.approx(float(plain("magnet water") @ plain(text)), abs=0.02)
    fused = index.search("magnet water", model="fuse(models=[qsf_v_title,vectors])", k=100)
    assert len(fused) == len(results)
    with pytest.raises(UsageError, match="leave out --dimension"):
        encode_index(index._snapshot, EncodeOptions(pooled=True, dimension=8))


def test_a_store_keeps_its_dimension(index, tmp_path):
    tiny_encoder().save(tmp_path / "tiny")
    options = {"encoder": str(tmp_path / "tiny"), "name": "tiny"}
    assert encode_index(index._snapshot, EncodeOptions(**options)).codebook.dimension == 8
    assert encode_index(index._snapshot, EncodeOptions(**options, dimension=8)).codebook.dimension == 8
    for dimension in (0, 4):
        with pytest.raises(UsageError, match="have 8 values"):
            encode_index(index._snapshot, EncodeOptions(**options, dimension=dimension))
