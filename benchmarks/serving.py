"""Throughput and latency of `perikope serve`, beside the library without HTTP and a FastAPI endpoint over tantivy.

    python -m benchmarks serving INDEX TOPICS [--seconds N] [--clients 1 16 64] [--models bm25 best] [--soak MINUTES]

INDEX is copied, since a writer adds a document every second while requests run. Everything speaks to loopback. The load
generator runs on the same cores; its own CPU is stated. All answers are compared in number, the last ones also in
content with the library.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.common import SCRATCH, Table, publish

K = 10
TOKEN = "benchmark"
AGED = 30
"""Commits before anything is measured, so that the library and the server search equally many segments."""


def queries_of(path: Path) -> list[str]:
    """The texts of a file of topics in TSV."""
    lines = path.read_text("utf-8").splitlines()
    return [line.partition("\t")[2].strip() for line in lines if line.partition("\t")[2].strip()]


# The library without HTTP


def _search_all(arguments: tuple[str, str, list[str], float]) -> int:
    """Search and encode for some seconds in one process; returns the number of answers.

    They have what an answer of the server has: hits, notes, and corrections of words that no document contains.
    """
    import orjson

    from perikope.search.facade import Index

    folder, model, queries, seconds = arguments
    index = Index.open(folder)
    list(index.search(queries[0], model=model, k=K))
    ends, number = time.perf_counter() + seconds, 0
    while time.perf_counter() < ends:
        index.refresh()
        results = index.search(queries[number % len(queries)], model=model, k=K)
        orjson.dumps({"hits": list(results), "notes": results.notes, "suggestions": dict(results.suggestions.words)})
        number += 1
    return number


def age(folder: str) -> None:
    """Commit as often as an index needs to have as many small segments as it will have under a stream of commits."""
    for number in range(AGED):
        _commit(folder, number)


def _commit_every_second(folder: str, stop: threading.Event) -> None:
    number = 0
    while not stop.wait(1.0):
        number += 1
        _commit(folder, number)


def _commit(folder: str, number: int) -> None:
    from perikope.search.facade import Index

    with Index.open(folder) as index:
        index.add({"id": f"added-{number % 50}", "title": "Added", "passages": [f"A document, number {number}."]}, replace=True)


@contextmanager
def committing_without_http(folder: str) -> Iterator[None]:
    """A thread that commits a document every second, as the client of the server does."""
    stop = threading.Event()
    thread = threading.Thread(target=_commit_every_second, args=(folder, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def library(folder: str, model: str, queries: list[str], seconds: float, processes: int) -> float:
    """Answers per second of the library in as many processes as the server has."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:  # a thread may be running
        divided = [(folder, model, queries[number::processes], seconds) for number in range(processes)]
        list(pool.map(_search_all, [(folder, model, queries[:5], 0.1)] * processes))
        return sum(pool.map(_search_all, divided)) / seconds


# Servers


@contextmanager
def server(index: Path, *options: str) -> Iterator[tuple[int, int]]:
    """A running server: its port and its process id."""
    import hashlib

    tokens = index.parent / "tokens.toml"
    tokens.write_text(f'[tokens.load]\nsha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"\nwrite = ["*"]\n')
    with running("serve", f"bench={index}", "--tokens", str(tokens), *options) as started:
        yield started


@contextmanager
def running(*command: str) -> Iterator[tuple[int, int]]:
    """A running command of perikope that serves on a free port: its port and its process id."""
    program = [sys.executable, "-m", "perikope", *command, "--port", "0", "--no-access-log"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield int(line.partition("127.0.0.1:")[2].split()[0]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def committing(port: int) -> Iterator[list[int]]:
    """A client that adds a document every second; yields the numbers of documents it was told."""
    stop, told = threading.Event(), []

    def add() -> None:
        number = 0
        while not stop.wait(1.0):
            number += 1
            document = {"id": f"added-{number % 50}", "title": "Added", "passages": [f"A document that was added, number {number}."]}
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/indexes/bench/documents", json.dumps({"documents": [document], "replace": True}).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
            )  # fmt: skip
            with urllib.request.urlopen(request, timeout=60) as answer:
                told.append(json.load(answer)["documents"])

    thread = threading.Thread(target=add)
    thread.start()
    try:
        yield told
    finally:
        stop.set()
        thread.join()


@contextmanager
def peer(index: Path, folder: Path, processes: int) -> Iterator[int]:
    """A running FastAPI endpoint over tantivy, with the same passages."""
    from benchmarks.peers import python

    interpreter = python("tantivy")
    subprocess.run(
        [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "fastapi", "uvicorn[standard]"], check=True
    )
    lines = folder / "peer.jsonl"
    if not lines.exists():
        _write_passages(index, lines)
    port = _free_port()
    command = [str(interpreter), "peer_server.py", str(port), str(lines), str(processes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/search?query=pump", timeout=5).read()
                break
            except OSError:
                time.sleep(0.2)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write_passages(folder: Path, target: Path) -> None:
    """Every passage of an index as a line of JSON, with what a hit has."""
    from perikope.document.tree import Kind
    from perikope.search.facade import Index

    with target.open("w", encoding="utf-8") as file:
        for document in Index.open(folder).documents():
            spans = [i for i in range(len(document.spans)) if document.spans.kind[i] == Kind.PASSAGE]
            texts = [document.text_of(i) for i in spans]
            for number, text in enumerate(texts):
                record = {"document": document.id, "passage": str(number), "title": document.title, "path": document.title, "text": text}
                around = {"before": texts[number - 1] if number else "", "after": texts[number + 1] if number + 1 < len(texts) else ""}
                file.write(json.dumps({**record, **around}) + "\n")


def load(port: int, paths: Path, **options: object) -> dict:
    """Run the load generator in a process of its own."""
    arguments = [
        str(value) for name, given in options.items() for value in (f"--{name}", *(given if isinstance(given, tuple) else [given]))
    ]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", str(port), str(paths), *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def held(pid: int) -> tuple[int, float]:
    """Open files and memory (MB) of a process and its descendants."""
    pids, files, memory = [pid], 0, 0.0
    for parent in pids:
        # A child belongs to the thread that started it.
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):
                pids += map(int, children.read_text().split())
    for each in pids:
        try:
            files += len(os.listdir(f"/proc/{each}/fd"))
            memory += int(Path(f"/proc/{each}/smaps_rollup").read_text().partition("Pss:")[2].split()[0]) / 1024
        except OSError:
            continue
    return files, memory


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f}"


COLUMNS = ("", "clients", "answers/s", "p50 ms", "p99 ms", "bytes", "p99 × answers/s ÷ clients", "refused", "CPU of load")


def row(name: str, result: dict) -> list[str]:
    refused = sum(count for status, count in result["statuses"].items() if status != "200")
    bound = result["p99"] * result["per_second"] / result["clients"]
    asked = f"{result['rate']:.0f}/s" if result["rate"] else str(result["clients"])
    times = (milliseconds(result["p50"]), milliseconds(result["p99"]))
    relative = "–" if result["rate"] else f"{bound:.2f}"
    return [name, asked, f"{result['per_second']:.1f}", *times, f"{result['bytes']:,.0f}", relative, str(refused), f"{result['cpu']:.2f}"]


def measure(index: Path, queries: list[str], model: str, clients: Sequence[int], seconds: float, folder: Path) -> Table:
    processes = len(os.sched_getaffinity(0))
    table = Table(f"Serving with {model}, {processes} cores, {seconds:.0f} s each, a commit every second", COLUMNS)
    paths = folder / f"paths-{model}"
    paths.write_text("\n".join(f"/indexes/bench/search?{urlencode({'query': query, 'model': model, 'k': K})}" for query in queries))
    age(str(index))
    alone = library(str(index), model, queries, seconds, processes)
    table.rows.append(["library, no HTTP, no commits", str(processes), f"{alone:.1f}", "", "", "", "", "", ""])
    with committing_without_http(str(index)):
        beside = library(str(index), model, queries, seconds, processes)
    table.rows.append(["library, no HTTP", str(processes), f"{beside:.1f}", "", "", "", "", "", ""])
    with server(index, "--cache", "0", "--max-query", "100000") as (port, pid):
        load(port, paths, clients=4, seconds=2)
        before = held(pid)
        with committing(port) as told:
            results = {number: load(port, paths, clients=number, seconds=seconds) for number in clients}
            for result in results.values():
                table.rows.append(row("perikope serve", result))
            best = max(result["per_second"] for result in results.values())
            table.rows.append(row("… open loop, 70 %", load(port, paths, rate=0.7 * best, clients=64, seconds=2 * seconds)))
            table.rows.append(row("… open loop, 200 %", twice := load(port, paths, rate=2 * best, clients=256, seconds=seconds)))
        after = held(pid)
    table.notes.append(
        f"server / library: {best / beside:.2f} at the best number of clients, {best / alone:.2f} of the library without commits; "
        f"{len(told)} commits acknowledged while it ran"
    )
    table.notes.append(
        f"at twice saturation: refused in {milliseconds(twice['refused_p50'])} ms (median), {milliseconds(twice['refused_p99'])} (99 %)"
    )
    table.notes.append(
        f"open files {before[0]} → {after[0]}, memory {before[1]:.0f} → {after[1]:.0f} MB (all processes, shared pages once)"
    )
    return table


def measure_peer(index: Path, queries: list[str], clients: Sequence[int], seconds: float, folder: Path) -> Table:
    processes = len(os.sched_getaffinity(0))
    table = Table(f"FastAPI over tantivy (BM25), {processes} processes, no commits", COLUMNS)
    paths = folder / "paths-peer"
    paths.write_text("\n".join(f"/search?{urlencode({'query': query, 'k': K})}" for query in queries))
    with peer(index, folder, processes) as port:
        load(port, paths, clients=4, seconds=2)
        for number in clients:
            table.rows.append(row("FastAPI + tantivy", load(port, paths, clients=number, seconds=seconds)))
    return table


def soak(index: Path, queries: list[str], minutes: float, folder: Path) -> Table:
    """Memory and descriptors over a long run, with commits."""
    table = Table(
        f"{minutes:g} minutes with 16 clients, the default model and a commit every second",
        ("minute", "answers/s", "files", "MB", "failed"),
    )
    paths = folder / "paths-soak"
    paths.write_text("\n".join(f"/indexes/bench/search?{urlencode({'query': query, 'k': K})}" for query in queries))
    with server(index, "--max-query", "100000") as (port, pid), committing(port) as told:
        for minute in range(int(minutes)):
            result = load(port, paths, clients=16, seconds=60, seed=minute)
            failed = sum(count for status, count in result["statuses"].items() if status != "200")
            files, memory = held(pid)
            table.rows.append([str(minute + 1), f"{result['per_second']:.1f}", str(files), f"{memory:.0f}", str(failed)])
    table.notes.append(f"{len(told)} commits acknowledged")
    return table


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks serving", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("topics", type=Path)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--models", nargs="+", default=["bm25", "best"])
    parser.add_argument("--soak", type=float, default=0, metavar="MINUTES")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--markdown")
    options = parser.parse_args(arguments)
    queries = queries_of(options.topics)
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as temporary:
        folder = Path(temporary)
        index = folder / "index"
        shutil.copytree(options.index, index)
        tables = [measure(index, queries, model, options.clients, options.seconds, folder) for model in options.models]
        if not options.no_peer:
            tables.append(measure_peer(index, queries, options.clients, options.seconds, folder))
        if options.soak:
            tables.append(soak(index, queries, options.soak, folder))
        publish(tables, options.markdown)
