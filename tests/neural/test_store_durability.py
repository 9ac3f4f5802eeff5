"""Stores with an encoder, and folders of encoders and rankers: faults of the disk, and damage of their files."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.core.errors import InputError, PerikopeError, UsageError  # noqa: E402
from perikope.neural.encoder import Encoder  # noqa: E402
from perikope.neural.hgat import HGAT  # noqa: E402
from perikope.neural.saved import SavedRanker, load_ranker, save_ranker  # noqa: E402
from perikope.neural.stores.check import check_stores  # noqa: E402
from perikope.neural.stores.store import VectorStore  # noqa: E402
from perikope.search.facade import Index  # noqa: E402
from tests.durability import harms  # noqa: E402
from tests.durability.faulty_disk import FAULTS, FaultyDisk  # noqa: E402
from tests.durability.history import make_commit  # noqa: E402
from tests.durability.probe import Probe  # noqa: E402
from tests.neural import encoder_store  # noqa: E402
from tests.neural.encoder_store import ENCODER, STORE, encode, is_complete, look, make, problems  # noqa: E402
from tests.neural.support import tiny_encoder  # noqa: E402

SEED = int(os.environ.get("PERIKOPE_SEED", "20"))
THOROUGH = "PERIKOPE_SOAK" in os.environ


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "index"
    make(folder)
    return folder


@pytest.fixture(scope="module")
def probe(made):
    probe = Probe(made, encoder_store.__name__)
    yield probe
    probe.close()


@pytest.fixture
def disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # costs time, and no power is lost here
    return FaultyDisk(monkeypatch)


def flips(folder: Path, names: list[str]) -> list[dict[str, object]]:
    chance = random.Random(SEED)
    jobs = []
    for name in names:
        size = (folder / name).stat().st_size
        places = sorted(chance.sample(range(size), min(size, 200 if THOROUGH else 6)))
        jobs += [{"do": "flip", "file": name, "at": at, "mask": chance.choice([0xFF, 1 << chance.randrange(8)])} for at in places]
    return jobs


def test_a_flipped_byte_of_the_encoder_is_found(made, probe):
    whole = look(made)
    encoder = VectorStore(made / "neural" / STORE).encoder
    names = [path.relative_to(made).as_posix() for path in sorted(encoder.iterdir())]
    count = 0
    for job, outcome in probe.run(flips(made, names)):
        count += 1
        assert outcome["check"], (SEED, job, outcome)
        assert "is a damaged store of vectors" in outcome["look refused"], (SEED, job, outcome)
    assert count > 20
    assert look(made) == whole


@pytest.mark.parametrize("fault", FAULTS)
def test_any_operation_of_the_first_encoding_may_fail(tmp_path, disk, fault):
    """An encoder that a stopped encoding has left is not used for vectors of another encoder."""
    index = Index.create(tmp_path / "index")
    make_commit(index, 1)
    for seed in (1, 2):
        tiny_encoder(seed=seed).save(tmp_path / f"{ENCODER}-{seed}")
    # Loading encoders takes long: each fault meets some of the operations, and all faults together meet all of them.
    for number in itertools.count(*([0] if THOROUGH else [list(FAULTS).index(fault), len(FAULTS)])):
        shutil.rmtree(index.folder / "neural", ignore_errors=True)
        disk.arm(number, **FAULTS[fault])
        try:
            encode(index, str(tmp_path / f"{ENCODER}-1"))
        except (PerikopeError, OSError):
            assert disk.failed
        finally:
            disk.mend()
        where = f"operation {number}: {disk.failed}"
        assert problems(index.folder) == [], where
        if not is_complete(index.folder):
            encode(index, str(tmp_path / f"{ENCODER}-2"))
            expected = 2
        else:
            expected = 1
        weights, wanted = load(VectorStore(index.folder / "neural" / STORE).encoder), load(tmp_path / f"{ENCODER}-{expected}")
        # Encoders may be kept in bfloat16.
        assert all(torch.allclose(weights[name], wanted[name], atol=0.05) for name in wanted), where
        other = load(tmp_path / f"{ENCODER}-{3 - expected}")
        assert not all(torch.allclose(weights[name], other[name], atol=0.05) for name in other), where
        encode(index)
        assert check_stores(index.folder).unknown_files == (), where
        if not disk.failed:
            break
    assert number > 15


def refusal(call) -> str:
    """The message of the error that a call raises; empty if it succeeds."""
    try:
        call()
    except PerikopeError as error:
        return str(error)
    return ""


def test_damaged_folders_of_encoders_are_refused_in_one_line(tmp_path):
    original = tmp_path / "original"
    tiny_encoder().save(original)
    whole = harms.content_of(original)
    folder = tmp_path / "encoder"
    folder.mkdir()
    small = [name for name in whole if not name.endswith(".safetensors")]
    refused = 0
    jobs = flips(original, small)
    jobs += [{"do": "cut", "file": name, "length": len(data) // 2} for name, data in whole.items()]
    jobs += [{"do": "put", "file": name, "data": data} for name in small for data in ("", "[]", "{}", "null", "[" * 100_000, "\udcff")]
    for job in jobs:
        harms.restore(folder, whole)
        harms.do(folder, job)
        said = refusal(lambda: list(Encoder.load(str(folder), device="cpu", precision="float32").encode(["the pump keeps water", "a."])))
        refused += bool(said)
        assert said.count("\n") <= 1, job
        assert len(said) < 700, job
    assert refused > len(jobs) // 4


IMPOSSIBLE = [
    {"hidden_size": 1 << 40},
    {"vocab_size": 1 << 23, "hidden_size": 1 << 22},
    {"num_hidden_layers": 10**9},
    {"intermediate_size": 1 << 24},
    {"max_position_embeddings": 1 << 24},
    {"num_attention_heads": 0},
    {"hidden_size": "wide"},
    {"model_type": "no such model"},
    {"hidden_size": -16},
]


@pytest.mark.parametrize("values", IMPOSSIBLE)
@pytest.mark.parametrize("is_saved", [True, False])
def test_impossible_sizes_are_refused_before_anything_is_allocated(tmp_path, values, is_saved):
    tiny_encoder().save(tmp_path)
    if not is_saved:
        (tmp_path / "perikope-encoder.json").unlink()
        weights = {name: value for name, value in load(tmp_path).items() if name != "linear.weight"}
        save(weights, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    with pytest.raises(PerikopeError):
        Encoder.load(str(tmp_path), device="cpu")


def load(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def save(weights, folder):
    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors")


def ranker(seed: int) -> SavedRanker:
    torch.manual_seed(seed)
    return SavedRanker(tiny_encoder(seed=seed), HGAT(8, 2, 1))


@pytest.mark.parametrize("settings", [{"layers": 10**8}, {"dimension": 1 << 22}, {"positions": 1 << 60}, {"heads": 0}, {"relations": 5}])
def test_impossible_settings_of_graph_attention_are_refused(tmp_path, settings):
    save_ranker(tmp_path, ranker(1))
    (tmp_path / "ranker.json").unlink()  # as in a folder of an earlier version, without hashes
    path = tmp_path / "context.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "settings": {**content["settings"], **settings}}))
    with pytest.raises(PerikopeError, match="train the ranker again"):
        load_ranker(tmp_path, device="cpu")


@pytest.mark.parametrize("fault", FAULTS if THOROUGH else ["full", "failing"])
def test_a_ranker_that_replaces_another_is_saved_completely_or_refused(tmp_path, disk, fault):
    save_ranker(tmp_path / "first", ranker(1))
    old, new = (weights_of(ranker(seed)) for seed in (1, 2))
    loaded: list[list[float]] = []
    kept = 0
    for number in itertools.count():
        folder = Path(shutil.copytree(tmp_path / "first", tmp_path / f"ranker-{number}"))
        disk.arm(number, **FAULTS[fault])
        try:
            save_ranker(folder, ranker(2))
        except (PerikopeError, OSError):
            assert disk.failed
        finally:
            disk.mend()
        said = refusal(lambda: loaded.append(weights_of(load_ranker(folder, device="cpu", precision="float32"))))  # noqa: B023
        assert "was not saved completely" in said if said else loaded[-1] in (old, new)
        kept += not said and loaded[-1] == old
        save_ranker(folder, ranker(2))
        assert weights_of(load_ranker(folder, device="cpu", precision="float32")) == new
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
        if not disk.failed:
            break
    assert kept > 3
    assert number > 10


def weights_of(ranker: SavedRanker) -> list[float]:
    parameters = [*ranker.encoder.state_dict().values(), *ranker.context.state_dict().values()]
    return [float(value.float().sum()) for value in parameters]


def test_a_ranker_with_a_wrong_byte_is_refused(tmp_path):
    save_ranker(tmp_path / "first", ranker(1))
    whole = harms.content_of(tmp_path / "first")
    (tmp_path / "harmed").mkdir()
    for job in flips(tmp_path / "first", list(whole)):
        harms.restore(tmp_path / "harmed", whole)
        harms.do(tmp_path / "harmed", job)
        with pytest.raises((InputError, UsageError)):
            load_ranker(tmp_path / "harmed", device="cpu")
