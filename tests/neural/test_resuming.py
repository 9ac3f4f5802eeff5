"""An update that is stopped continues where it was, and encoding in processes gives the same vectors."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from perikope.core.errors import UsageError  # noqa: E402
from perikope.neural import encoding_workers  # noqa: E402
from perikope.neural.encoder import Encoder  # noqa: E402
from perikope.neural.encoding_workers import EncodingWorkers  # noqa: E402
from perikope.neural.pooled_vectors import encode_pooled, pooled  # noqa: E402
from perikope.neural.stores import update  # noqa: E402
from perikope.neural.stores.making import EncodeOptions, encode_index  # noqa: E402
from perikope.neural.stores.store import VectorStore  # noqa: E402
from perikope.neural.stores.update import update_store  # noqa: E402
from perikope.search.facade import Index  # noqa: E402
from tests.neural.support import tiny_encoder  # noqa: E402
from tests.support.collections import index_of, plain_document  # noqa: E402

DOCUMENTS = [plain_document(f"d{number}", f"Pump {number}", f"Rotor {number} turns.", f"Seal {number}.") for number in range(12)]


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder()


@pytest.fixture(autouse=True)
def one_document_at_a_time(monkeypatch):
    monkeypatch.setattr(update, "_PASSAGES_AT_ONCE", 1)


def make(index, encode, encoder, **options):
    return update_store(index._snapshot, "tiny", encode, encoder.dimension, code="float16", seconds=0.0, **options)


def vectors_of(store, index):
    packed = store.find(index._snapshot, np.arange(len(index)))
    return [document.rows.tobytes() for document in packed.documents], packed.first_vector.tolist()


@pytest.mark.parametrize("stopped_at", [1, 5, 24])
def test_a_stopped_update_continues_and_encodes_nothing_twice(encoder, stopped_at):
    index, encoded = index_of(DOCUMENTS, [4]), []

    def stopping(texts):
        if len(encoded) + len(texts) > stopped_at:
            raise KeyboardInterrupt
        encoded.extend(texts)
        yield from encoder.encode(texts)

    # A sample for the codebooks would be encoded first; float16 needs none.
    if stopped_at < 24:
        with pytest.raises(KeyboardInterrupt):
            make(index, stopping, encoder)
        assert len(encoded) <= stopped_at
        if stopped_at > 1:
            store = VectorStore(index._snapshot.folder / "neural" / "tiny")
            assert 0 < store.documents < len(index)
            assert store.missing(index._snapshot) == len(index) - store.documents
            with pytest.raises(UsageError, match="encoding was stopped"):
                vectors_of(store, index)
    pending = []

    def going(texts):
        encoded.extend(texts)
        yield from encoder.encode(texts)

    store = make(index, going, encoder, on_pending=pending.extend)
    assert sorted(encoded) == sorted(set(encoded))
    assert len(encoded) == 24
    assert len(pending) == 12 - (0 if stopped_at == 24 else stopped_at // 2)
    assert store.missing(index._snapshot) == 0
    whole = make(index_of(DOCUMENTS, [4]), encoder.encode, encoder)
    assert vectors_of(store, index) == vectors_of(whole, index_of(DOCUMENTS, [4]))
    assert len(store.manifest.files) <= 12


PROGRAM = """
import sys, time
from pathlib import Path
from perikope.index.reader import Snapshot
from perikope.neural.stores import update
import numpy as np
update._PASSAGES_AT_ONCE = 1
def encode(texts):
    with open(sys.argv[2], "a") as log:
        for number, text in enumerate(texts):
            log.write(text.replace(chr(10), " ") + chr(10)); log.flush()
            yield number, np.full((1, 4), 0.5, np.float32), np.zeros(1, np.int64)
    time.sleep(float(sys.argv[3]))
update.update_store(Snapshot.open(Path(sys.argv[1])), "mine", encode, 4, code="float16", kind="own", seconds=0.0)
"""


def test_a_killed_process_loses_no_document_that_is_durable(tmp_path):
    with Index.create(tmp_path / "index") as index:
        index.add(DOCUMENTS)
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path / "index"), str(tmp_path / "log")]
    process = subprocess.Popen([*arguments, "0.3"])
    while not (tmp_path / "log").exists() or (tmp_path / "log").read_text().count("\n") < 8:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = (tmp_path / "log").read_text().splitlines()
    subprocess.run([*arguments, "0"], check=True)
    encoded = (tmp_path / "log").read_text().splitlines()
    assert len(set(encoded)) == 24
    # Only the document that was being encoded or written when the process ended is encoded again.
    assert len(encoded) - len(set(encoded)) <= 2 < len(before)


TEXTS = [f"The pump {number} has a rotor. " * (1 + number % 7) for number in range(150)]


@pytest.mark.parametrize("is_pooled", [False, True])
def test_processes_encode_as_this_process_does(monkeypatch, encoder, is_pooled):
    monkeypatch.setattr(encoding_workers, "MANY", 100)
    monkeypatch.setattr(encoding_workers, "TEXTS_AT_ONCE", 16)

    def alone(texts):
        return encode_pooled(encoder, texts) if is_pooled else encoder.encode(texts)

    expected = {number: (vectors, position) for number, vectors, position in alone(TEXTS)}
    with EncodingWorkers(encoder, alone, 2, pooled=is_pooled, runtime="torch") as workers:
        few = list(workers(TEXTS[:3]))
        assert workers._pool is None
        found = {number: (vectors, position) for number, vectors, position in workers(TEXTS)}
        assert workers._pool is not None
        children = list(workers._pool._processes)
    assert len(few) == 3
    assert sorted(found) == list(range(len(TEXTS)))
    for number, (vectors, position) in found.items():
        np.testing.assert_array_equal(position, expected[number][1])
        np.testing.assert_allclose(vectors, expected[number][0], atol=0.05)
    assert [pid for pid in children if _lives(pid)] == []


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_pooled_vectors_do_not_depend_on_the_other_texts_of_a_batch(encoder):
    together = pooled(encoder, TEXTS)
    apart = np.concatenate([pooled(encoder, [text]) for text in TEXTS[:20]])
    np.testing.assert_allclose(together[:20], apart, atol=0.05)
    assert pooled(encoder, []).shape == (0, together.shape[1])


@pytest.mark.parametrize(("workers", "threads"), [(0, 2), (1, 1)])
def test_one_worker_encodes_with_one_thread(tmp_path, encoder, monkeypatch, workers, threads):
    """Threads of one process wait for one another after every layer, which took ten times as long on a busy machine."""
    encoder.save(tmp_path / "tiny")
    seen = []
    original = Encoder.forward

    def forward(self, *arguments):
        seen.append(torch.get_num_threads())
        return original(self, *arguments)

    monkeypatch.setattr(Encoder, "forward", forward)
    torch.set_num_threads(2)
    try:
        encode_index(index_of(DOCUMENTS, [])._snapshot, EncodeOptions(encoder=str(tmp_path / "tiny"), device="cpu", workers=workers))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert set(seen) == {threads}
