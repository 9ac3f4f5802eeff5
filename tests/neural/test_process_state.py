"""The state of the process stays as the program has set it: threads, random state, permissions, output."""

from __future__ import annotations

import json
import os
import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.evaluation.experiment.jobs import run_jobs  # noqa: E402
from perikope.evaluation.experiment.outcome import VALUES  # noqa: E402
from perikope.evaluation.experiment.plan import load_plan  # noqa: E402
from perikope.evaluation.experiment.prepared import PREPARED  # noqa: E402
from perikope.evaluation.experiment.running import prepare_experiment  # noqa: E402
from perikope.neural.devices import keeping_random_state  # noqa: E402
from perikope.neural.encoder import Encoder  # noqa: E402
from perikope.neural.encoder_weights import save_weights  # noqa: E402
from perikope.neural.models import encode_query, open_store, query_vectors  # noqa: E402
from perikope.neural.stores.making import EncodeOptions, encode_index  # noqa: E402
from tests.neural.support import tiny_encoder, write_experiment  # noqa: E402
from tests.support.collections import index_of, plain_document  # noqa: E402


@pytest.fixture
def two_threads():
    """Torch with two threads, as a program would set it."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def threads_elsewhere() -> tuple[int, bool]:
    """The number of threads of torch in a new thread, and whether MKL uses two threads in the whole process."""
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    information = torch.__config__.parallel_info()
    return seen[0], "mkl_get_max_threads() : 2" in information or "mkl_get_max_threads" not in information


@pytest.mark.usefixtures("two_threads")
def test_a_query_takes_one_thread_and_leaves_others_their_own(monkeypatch):
    encoder = tiny_encoder()
    inside = []
    forward = Encoder.forward

    def observed(self, tokens, mask):
        inside.append((torch.get_num_threads(), threads_elsewhere()))
        return forward(self, tokens, mask)

    monkeypatch.setattr(Encoder, "forward", observed)
    encode_query(encoder, "magnet rotor")
    assert inside == [(1, (2, True))]
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_a_pooled_query_takes_one_thread_and_leaves_others_their_own(tmp_path, monkeypatch):
    tiny_encoder().save(tmp_path / "tiny")
    index = index_of([plain_document("d1", "Pump", "A magnet drives the rotor.")], [1])
    encode_index(index.snapshot, EncodeOptions(encoder=str(tmp_path / "tiny"), pooled=True))
    inside = []
    monkeypatch.setattr(
        "perikope.neural.pooled_vectors.pooled",
        lambda *_, **__: inside.append((torch.get_num_threads(), threads_elsewhere())) or torch.zeros(1, 16).numpy(),
    )
    query_vectors(index.snapshot, open_store(index.snapshot, "dense", "pooled"), "magnet")
    assert inside == [(1, (2, True))]


def test_threads_that_search_at_the_same_time_find_the_same():
    encoder = tiny_encoder()
    texts = ["magnet rotor", "the pump keeps water", "a valve opens when cold"] * 10
    alone = [encode_query(encoder, text) for text in texts]
    same: dict[int, list[bool]] = {}

    def search(number: int) -> None:
        same[number] = [bool((encode_query(encoder, text) == wanted).all()) for text, wanted in zip(texts, alone, strict=True)]

    threads = [threading.Thread(target=search, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == {number: [True] * len(texts) for number in range(4)}


def test_weights_may_be_read_by_those_who_may_read_other_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the mask of the process is changed"))
    (tmp_path / "other").touch()
    save_weights({"own": torch.zeros(2)}, tmp_path / "weights")
    assert (tmp_path / "weights").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "weights"]


def test_a_seed_of_ours_is_not_the_callers():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    with keeping_random_state(torch.device("cpu")):
        torch.manual_seed(1)
        torch.rand(7)
    assert torch.equal(torch.rand(3), wanted)


def test_an_encoder_is_loaded_without_a_trace(tmp_path, monkeypatch, capfd):
    from transformers.utils import logging

    for change in ("disable_progress_bar", "enable_progress_bar"):
        monkeypatch.setattr(logging, change, lambda: pytest.fail("progress bars of the program are switched"))
    before = torch.get_rng_state()
    plain = Encoder.load(precision="float32")
    plain.save(tmp_path / "saved")
    saved = Encoder.load(str(tmp_path / "saved"), precision="float32")
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")
    for other in (saved, Encoder.load(precision="float32")):
        assert all(torch.equal(value, other.state_dict()[name]) for name, value in plain.state_dict().items())


@pytest.fixture
def prepared(tmp_path):
    """A prepared folder of one ranker that is trained, and one that is not."""
    prepare_experiment(load_plan(str(write_experiment(tmp_path))), tmp_path / "out", workers=1)
    path = tmp_path / "out" / PREPARED
    content = json.loads(path.read_text("utf-8"))
    content["plan"]["systems"] = [system for system in content["plan"]["systems"] if system["name"] in ("untrained", "context")]
    path.write_text(json.dumps(content), "utf-8")
    return tmp_path / "out"


def test_jobs_leave_the_random_state_alone(prepared):
    before = torch.get_rng_state()
    assert run_jobs(prepared, device="cpu") == []
    assert torch.equal(torch.get_rng_state(), before)


def test_a_job_that_fails_is_told_to_the_caller_and_nothing_is_printed(prepared, monkeypatch, capfd):
    def fail(*_, **__):
        raise RuntimeError("out of\nmemory")

    monkeypatch.setattr("perikope.neural.ranker_job.Trainer.run", fail)
    (failure,) = run_jobs(prepared, device="cpu")
    assert str(failure) == "context.1: RuntimeError: out of memory"
    assert failure.report.startswith(f"{failure}\nTraceback (most recent call last):")
    assert failure.traceback.rstrip().endswith("RuntimeError: out of\nmemory")
    assert [path.name for path in (prepared / VALUES).iterdir()] == ["untrained.1.json"]
    assert capfd.readouterr() == ("", "")


def test_a_mistake_of_the_user_is_told_without_a_traceback_and_nothing_is_printed(prepared, capfd):
    content = json.loads((prepared / PREPARED).read_text("utf-8"))
    content["plan"]["encoder"] = str(prepared / "none")
    (prepared / PREPARED).write_text(json.dumps(content), "utf-8")
    failures = run_jobs(prepared, device="cpu")
    assert {failure.name for failure in failures} == {"untrained.1", "context.1"}
    assert all("there is no encoder" in failure.message and not failure.traceback for failure in failures)
    assert capfd.readouterr() == ("", "")
