"""Builds, experiments and tuning by tasks of Ray, on two simulated nodes, while processes die; `make test-cluster`."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

# Before Ray is imported, since it reads its settings then.
from tests.support.nodes import why_not_started

if why_not_started():
    pytest.skip(why_not_started(), allow_module_level=True)
pytest.importorskip("ray", reason="clusters on Ray are not tested: ray is not installed (pip install 'perikope[cluster]')")

from functools import partial

from click.testing import CliRunner

from perikope.build.indexing import BuildOptions, build
from perikope.cli.cluster_command import command
from perikope.cli.experiment_command import command as experiment_command
from perikope.cli.tune_command import command as tune_command
from perikope.cluster.ray_workers import RayWorkers
from perikope.cluster.spreading import SpreadBuilding
from perikope.cluster.writer import RECORDS
from perikope.core.errors import PerikopeError, UsageError
from perikope.index import manifest as manifests
from tests.unit.cluster.test_building import lines, runs

SHARDS, FILES, KILLS, PATIENCE = 2, 12, 3, 240.0
MEMORY, BATCH = 200 << 20, 60_000
DRIVER = f"""
import sys
from perikope.build.indexing import BuildOptions
from perikope.cluster.on_ray import join_ray
from perikope.cluster.ray_workers import RayWorkers
from perikope.cluster.spreading import SpreadBuilding
join_ray(sys.argv[1])
SpreadBuilding(RayWorkers()).build_cluster(sys.argv[3], [sys.argv[2]], {SHARDS}, BuildOptions(memory={MEMORY}), batch={BATCH})
"""


@pytest.fixture(scope="module", autouse=True)
def another_node(ray_nodes):
    ray_nodes.add()
    yield
    ray_nodes.kill()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for number in range(FILES):
        (folder / f"{number:02d}.jsonl").write_text(lines(40 * number, 40 * number + 40, "and the valve of the pump " * 40))
    return folder


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def working(ray_nodes):
    """The processes of our nodes that index a batch or finish a shard now."""
    nodes = [ray_nodes._cluster.head_node, *ray_nodes.others]
    raylets = {one.process.pid for node in nodes for one in node.all_processes["raylet"]}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            name = (process / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent in raylets and name.startswith((b"ray::index_batch", b"ray::finish_shard")):
            found.append(int(process.name))
    return found


class Killer(threading.Thread):
    """Kills workers that have something to do, one after the other."""

    def __init__(self, ray_nodes):
        super().__init__(daemon=True)
        self.killed, self._nodes = set(), ray_nodes
        self.stopped = threading.Event()

    def run(self):
        while len(self.killed) < KILLS and not self.stopped.wait(0.02):
            for worker in working(self._nodes)[:1]:
                os.kill(worker, signal.SIGKILL)
                self.killed.add(worker)


def records(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob(f"{RECORDS}/*/batch-*.json")}


def test_a_build_with_a_killed_driver_and_killed_workers_answers_as_an_index(ray_nodes, files, tmp_path):
    folder = tmp_path / "cluster"
    with subprocess.Popen([sys.executable, "-c", DRIVER, ray_nodes.address, str(files), str(folder)]) as driver:
        wait_for(lambda: len(records(folder)) >= 2 or driver.poll() is not None)
        driver.kill()
    assert not (folder / manifests.FILE).exists()
    wait_for(lambda: not working(ray_nodes))  # Ray ends the tasks of a driver that has died
    before = records(folder)
    known = sum(json.loads(path.read_text())["documents"] for path in before)
    assert len(before) >= 2
    killer, seen = Killer(ray_nodes), {}

    class Watching(RayWorkers):
        def run(self, function, calls, memory):
            for answer in super().run(function, calls, memory):
                seen.update(records(folder))
                yield answer

    killer.start()
    report = SpreadBuilding(Watching()).build_cluster(str(folder), [str(files)], SHARDS, BuildOptions(memory=MEMORY), batch=BATCH)
    killer.stopped.set()
    assert len(killer.killed) == KILLS
    assert {path: seen[path] for path in before} == before, "what was indexed before is not indexed again"
    assert report.continued == known < report.documents
    assert (report.documents, report.duplicates) == (40 * FILES, [])
    build(str(tmp_path / "index"), [str(files)])
    assert runs(folder) == runs(tmp_path / "index")


def test_the_commands_build_append_and_compact_on_ray(ray_nodes, files, tmp_path):
    folder, more = str(tmp_path / "cluster"), tmp_path / "more.jsonl"
    more.write_text(lines(30, 50, "valve"))
    on_ray = ["--address", ray_nodes.address, "--memory", "200M"]
    for given in (
        ["build", str(files / "00.jsonl"), "--to", folder, "--shards", str(SHARDS)],
        ["append", folder, str(more), "--replace"],
        ["compact", folder],
    ):
        assert CliRunner().invoke(command, [*given, *on_ray], catch_exceptions=False, standalone_mode=False).return_value == 0
    build(str(tmp_path / "index"), [str(files / "00.jsonl")])
    build(str(tmp_path / "index"), [str(more)], BuildOptions(replace=True))
    assert runs(folder) == runs(tmp_path / "index")
    with pytest.raises(UsageError, match="lower --memory"):
        SpreadBuilding(RayWorkers()).compact(folder, memory=1 << 50)


EXPERIMENT = """
title = "trial"
measures = ["nDCG@10", "MAP(D)"]
[collection]
index = "index"
[topics]
file = "topics.tsv"
judgements = "qrels.txt"
[training]
folds = 2
[[systems]]
name = "tuned"
model = "qsf_v(alpha)"
tune = true
[[systems]]
name = "default"
model = "coverage"
"""


def test_experiments_and_tuning_on_ray_have_the_values_of_this_machine(ray_nodes, tmp_path, monkeypatch):
    (tmp_path / "documents.jsonl").write_text(lines(0, 60))
    build(str(tmp_path / "index"), [str(tmp_path / "documents.jsonl")])
    words = ["rotor seal", "pump", "magnet of the shaft", "seal pump", "shaft", "rotor"]
    (tmp_path / "topics.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(words)))
    judged = [f"{number} 0 d{document}#@{1 + number % 2} 1\n" for number in range(6) for document in range(1 + number, 60, 5)]
    (tmp_path / "qrels.txt").write_text("".join(judged))
    (tmp_path / "trial.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    original, done = RayWorkers.run, []
    monkeypatch.setattr(
        RayWorkers, "run", lambda self, function, calls, memory: (done.append(1), original(self, function, calls, memory))[1]
    )
    run = partial(CliRunner().invoke, catch_exceptions=False, standalone_mode=False)
    on_ray = ["--address", ray_nodes.address]
    for out, given in (("here", ["--workers", "1"]), ("there", on_ray)):
        assert run(experiment_command, ["trial.toml", "--out", out, *given]).return_value == 0
        assert bool(done) == (given is on_ray)
    runs_here = {path.name: path.read_bytes() for path in Path("here/runs").iterdir()}
    assert runs_here == {path.name: path.read_bytes() for path in Path("there/runs").iterdir()}
    assert len(runs_here) == 2
    values = [json.loads(Path(out, "experiment.json").read_text())["sweeps"] for out in ("here", "there")]
    assert values[0] == values[1]
    tune = ["index", "topics.tsv", "qrels.txt", "--model", "qsf_v(alpha)", "--folds", "2", "--json"]
    here, there = (run(tune_command, [*tune, *given]).stdout for given in (["--workers", "1"], on_ray))
    assert json.loads(here) == json.loads(there)
    with pytest.raises(UsageError, match="--workers is for this machine"):
        run(tune_command, [*tune, *on_ray, "--workers", "2"])


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise UsageError("not so")


def test_a_task_that_always_dies_or_fails_is_an_error(ray_nodes, monkeypatch):
    monkeypatch.setattr("perikope.cluster.ray_workers.REPEATED", 1)
    with pytest.raises(PerikopeError, match=r"a\.xml: its process has died 2 times"):
        list(RayWorkers().run(die, [(0, "a.xml", ())], MEMORY))
    with pytest.raises(UsageError, match="not so"):
        list(RayWorkers().run(fail, [(0, "a.xml", ())], MEMORY))
