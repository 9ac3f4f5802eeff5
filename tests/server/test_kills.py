"""Kill -9 of readers, of the writer and of the fork server under load: no wrong answer, no lost change, no pause."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perikope import Index
from tests.server.support import TOKEN, ServerProcess, is_alive, wait_until
from tests.support.examples import scaled

BATCH = 3
"""Documents that are added at a time."""
MOST_BATCHES = 150
"""All passages of so many batches are returned by one search."""
PAUSE = 0.05
"""Seconds between two changes."""
PASSAGES = 2
"""Passages of every document. Each names its document, and all of them contain the word that is searched for."""


def _document(id: str, version: int) -> dict[str, Any]:
    return {"id": id, "passages": [f"magnetic version{version} passage{number} of {id}" for number in range(PASSAGES)]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills") / "index"
    with Index.create(folder) as index:
        index.add([_document(f"batch0-{number}", 0) for number in range(BATCH)])
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, tokens: Path) -> Iterator[ServerProcess]:
    """A server with two readers. The tests use it in their order; the last one ends it."""
    arguments = ["--workers", "2", "--tokens", str(tokens), "--cache", "0", "--timeout", "100"]
    with ServerProcess(f"small={folder}", *arguments) as server:
        yield server


class _Load:
    """Clients that search and one that writes, until they are stopped. What is wrong is kept."""

    def __init__(self, server: ServerProcess, clients: int) -> None:
        self.server, self.wrong, self.answers, self.acknowledged, self.statuses = server, [], 0, 0, {}  # type: ignore[var-annotated]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._search) for _ in range(clients)] + [threading.Thread(target=self._write)]
        self.written = 0
        """The last batch that was sent, whether it was acknowledged or not."""

    def __enter__(self) -> _Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _search(self) -> None:
        with self.server.client() as client:
            while not self._stop.is_set():
                before = self.acknowledged
                answer = client.get("/indexes/small/search", params={"query": "magnetic", "k": 1000, "model": "bm25"})
                self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
                if answer.status_code != 200:
                    self.wrong.append(answer.text)
                    continue
                self._check(answer.json()["hits"], before)
                self.answers += 1

    def _check(self, hits: list[dict[str, Any]], before: int) -> None:
        """All batches up to the last one of some commit are there as a whole, and no document has two versions."""
        versions: dict[str, set[str]] = {}
        counts: dict[str, int] = {}
        for hit in hits:
            id = hit["document"]
            versions.setdefault(id, set()).add(hit["text"].split()[1])
            counts[id] = counts.get(id, 0) + 1
            if not hit["text"].endswith(f" of {id}"):
                self.wrong.append(hit)
        batches = sorted({int(id.partition("-")[0].removeprefix("batch")) for id in counts})
        last = batches[-1] if batches else -1
        expected = {f"batch{batch}-{number}": PASSAGES for batch in range(last + 1) for number in range(BATCH)}
        if counts != expected or any(len(found) != 1 for found in versions.values()):
            self.wrong.append(
                f"{len(hits)} hits up to batch {last}; too few or too many: {dict(counts.items() ^ expected.items())}, {versions}"
            )
        if last < before:
            self.wrong.append(f"batch {before} was acknowledged before the search, but the last one found is {last}")

    def _write(self) -> None:
        with self.server.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            while not self._stop.is_set() and self.written < MOST_BATCHES:
                self.written += 1
                # The documents of the batch, and a new version of an earlier one.
                documents = [_document(f"batch{self.written}-{number}", 0) for number in range(BATCH)]
                documents.append(_document(f"batch{random.randrange(self.written)}-0", self.written))
                answer = client.post("/indexes/small/documents", json={"documents": documents, "replace": True})
                self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
                if answer.status_code != 200 or answer.json()["added"] != len(documents):
                    self.wrong.append(answer.text)
                    return
                self.acknowledged = self.written
                self._stop.wait(PAUSE)


def test_kills_under_load(server: ServerProcess, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Readers and the writer are killed again and again, until each kind has ended several times."""
    least = scaled(4)
    pauses = []
    with _Load(server, 3) as load:
        while min(_restarts(server)) < least and load.acknowledged < MOST_BATCHES and not load.wrong:
            done, acknowledged = load.answers, load.acknowledged
            _kill(random.choice(server.processes()["forked"]))
            began = time.monotonic()
            wait_until(lambda done=done: load.answers > done or load.wrong)
            pauses.append(time.monotonic() - began)
            # A request that loses three processes is refused, so every client gets an answer before the next kill.
            wait_until(lambda done=done: load.answers > done + 6 or load.wrong)
            wait_until(lambda acknowledged=acknowledged: load.acknowledged > acknowledged or load.wrong)
    assert not load.wrong, load.wrong[:2]
    assert set(load.statuses) == {200}
    assert min(_restarts(server)) >= least
    assert len(Index.open(folder)) == BATCH * (load.written + 1)
    with capsys.disabled():
        print(f"\n{len(pauses)} kills, {load.answers} right answers; longest time to the next one: {max(pauses) * 1000:.0f} ms")  # noqa: T201


def _restarts(server: ServerProcess) -> list[float]:
    """How many readers, and how many writers have been replaced."""
    return [server.metric(f'perikope_process_restarts_total{{kind="{kind}"}}') for kind in ("reader", "writer")]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_all_readers_are_killed_at_once(server: ServerProcess) -> None:
    """A request that comes in this moment is answered."""
    with server.client() as client:
        for _ in range(5):
            before = server.processes()["forked"]
            for pid in before:
                _kill(pid)
            assert client.get("/indexes/small/search?query=magnetic").status_code == 200
        # Processes that end while nobody asks for anything are replaced, too.
        for pid in server.processes()["forked"]:
            _kill(pid)
        wait_until(lambda: len(server.processes()["forked"]) == 2)
        wait_until(lambda: client.get("/ready").status_code == 200)


def test_readers_are_replaced_after_the_fork_server_was_killed(server: ServerProcess) -> None:
    """It is started again. In the end, the server ends all of its processes."""
    with server.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        (old,), readers = server.processes()["forkserver"], server.processes()["forked"]
        _kill(old)
        assert client.get("/indexes/small/search?query=magnetic").status_code == 200, "the readers live on"
        wait_until(lambda: server.processes()["forkserver"] not in ([], [old]))
        for pid in readers:
            _kill(pid)
        assert client.get("/indexes/small/search?query=magnetic").status_code == 200
        answer = client.post("/indexes/small/documents", json={"documents": [_document("late", 1)]})
        assert answer.json()["added"] == 1
        assert client.get("/indexes/small/document?document=late").status_code == 200
    assert len(server.processes()["forked"]) >= 2
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    wait_until(lambda: not any(map(is_alive, server.known)))
