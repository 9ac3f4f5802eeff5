"""Answers of a cluster whose shards do not all answer: errors, or answers that say what they lack."""

import asyncio
import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from perikope.cli.cluster_command import command
from perikope.cli.run_command import command as run_command
from perikope.cluster.building import append, build_cluster, delete
from perikope.core.errors import ShardError
from perikope.index.shards import shard_of
from perikope.search.facade import Index
from perikope.server.handler import Handler, RequestLimits
from tests.support.cluster import coordinator
from tests.support.collections import index_of
from tests.unit.cluster.test_building import QUERIES, lines

SHARDS = 3
NOTE = "shard 1 of the cluster does not answer: its documents are missing from the results"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("partial")
    (place / "documents.jsonl").write_text(lines(0, 60))
    build_cluster(str(place / "cluster"), [str(place / "documents.jsonl")], SHARDS)
    return place / "cluster"


@pytest.fixture
def folder(built, tmp_path):
    return shutil.copytree(built, tmp_path / "cluster")


@pytest.fixture
def remaining(folder):
    """An index of the documents that are not in shard 1."""
    return index_of([document for document in Index.open(folder).documents() if shard_of(document.id, SHARDS) != 1])


def outcomes(index, **options):
    found = {}
    for query in QUERIES:
        results = index.search(query, k=100, **options)
        names = results.names()
        found[query] = names, [hit.to_dict() for hit in results[:3]], [results.explain(i) for i in range(min(3, len(results)))]
    return found


def test_a_missing_shard_is_an_error_unless_partial_answers_were_chosen(folder):
    index = coordinator(folder)
    index.search("rotor")
    index.shards.down = {1}
    for ask in (
        lambda: index.search("rotor"),
        lambda: index.search("seal").names(),
        lambda: [*index.search_many(["seal"])],
        lambda: coordinator_without(folder).search("rotor"),
        lambda: index.explain("rotor seal", "d0#@1"),
        lambda: index.count(),
    ):
        with pytest.raises(ShardError) as error:
            ask()
        assert error.value.shards == {1}


def coordinator_without(folder, partial=False):
    index = coordinator(folder, partial=partial)
    index.shards.down = {1}
    return index


@pytest.mark.parametrize(
    "options",
    [{}, {"model": "bm25"}, {"model": "qsf_v_title"}, {"expand": "bo1"}, {"browse_expand": "rm3"}, {"documents": 3}, {"elements": True}],
)
def test_a_partial_answer_is_that_of_a_cluster_without_the_documents_of_the_shard(folder, remaining, options):
    for index in (coordinator_without(folder, partial=True), coordinator(folder, partial=True)):
        if not index.shards.down:
            outcomes(index, **options)
            index.shards.down = {1}  # after the snapshot was opened, and terms were counted
        assert outcomes(index, **options) == outcomes(remaining, **options)


def test_a_partial_answer_says_what_it_lacks(folder):
    index = coordinator(folder, partial=True)
    whole = index.search("rotor seal")
    assert (whole.complete, whole.missing_shards, whole.notes) == (True, (), ())
    assert "complete" not in whole.to_dicts()[0]
    index.shards.down = {1}
    found = index.search("rotor seal")
    assert (found.complete, found.missing_shards, found.notes) == (False, (1,), (NOTE,))
    assert NOTE in repr(found)
    assert {key: found.to_dicts()[0][key] for key in ("complete", "missing_shards")} == {"complete": False, "missing_shards": [1]}
    assert asyncio.run(index.asearch("rotor seal")).names() == found.names()
    [(_, again)] = index.search_many(["rotor seal"])
    assert (again.names(), again.missing_shards) == (found.names(), (1,))
    index.shards.down = {0, 1}
    assert index.search("rotor").missing_shards == (0, 1)
    index.shards.down = {0, 1, 2}
    with pytest.raises(ShardError, match="no shard of the cluster answers"):
        index.search("rotor")


def test_what_cannot_say_that_it_is_incomplete_is_an_error(folder):
    index = coordinator_without(folder, partial=True)
    lost = next(f"d{i}" for i in range(60) if shard_of(f"d{i}", SHARDS) == 1)
    found = index.search("rotor seal")
    for ask in (
        lambda: len(index),
        lambda: lost in index,
        lambda: index.get(lost),
        lambda: index.count(),
        lambda: index.suggest("rot"),
        lambda: next(index.documents()),
        lambda: found.rows_of([f"{lost}#@1"]),
    ):
        with pytest.raises(ShardError):
            ask()


def test_a_shard_that_answers_again_is_searched_again(folder, monkeypatch):
    monkeypatch.setattr("perikope.cluster.missing.PROBED_EVERY", 0.0)
    index = coordinator(folder, partial=True)
    expected = outcomes(Index.open(folder))
    index.shards.down = {1, 2}
    assert index.search("rotor").missing_shards == (1, 2)
    index.shards.down = {1}
    assert index.search("rotor").missing_shards == (1,)
    index.shards.down = set()
    assert outcomes(index) == expected


def test_a_missing_shard_is_not_asked_until_it_answers_again(folder):
    index = coordinator_without(folder, partial=True)
    index.search("rotor")
    before = index.shards.rounds
    failed = []
    ask = index.shards.ask
    index.without(frozenset({1})).shards.ask = lambda messages: (failed.extend(m for m in messages if m[0] == 1), ask(messages))[1]
    index.search("seal")
    assert failed == []
    assert index.shards.rounds > before


def test_a_commit_is_shown_while_a_shard_is_missing(folder, tmp_path):
    index = coordinator(folder, partial=True)
    index.search("rotor")
    index.shards.down.add(1)
    (tmp_path / "more.jsonl").write_text(lines(60, 90))
    append(str(folder), [str(tmp_path / "more.jsonl")])
    delete(str(folder), ["d0"])
    assert index.refresh()
    assert not index.refresh()
    left = [document for document in Index.open(folder).documents() if shard_of(document.id, SHARDS) != 1]
    assert outcomes(index) == outcomes(index_of(left))
    index.shards.down.clear()
    index.shards.missing._next_look.clear()
    assert outcomes(index) == outcomes(Index.open(folder))


def answer(handler, operation, **given):
    meta = {"operation": operation, "index": "c", "generation": 1, "method": "POST", "query": "", "seconds": 60}
    facts, content = handler.answer(meta, json.dumps(given).encode())
    return facts, json.loads(content)


@pytest.mark.parametrize("partial", [False, True])
def test_a_server_answers_partially_or_not_at_all(folder, remaining, partial):
    handler = Handler({"c": str(folder)}, RequestLimits(1000, 100))
    handler._open["c"] = 1, coordinator_without(folder, partial=partial)
    facts, search = answer(handler, "search", query="rotor seal", k=20)
    if not partial:
        assert (facts["status"], facts["headers"]) == (503, {"Retry-After": "2"})
        assert "do not answer" in search["detail"]
        return
    assert (facts["status"], facts["missing_shards"]) == (200, [1])
    assert (search["complete"], search["missing_shards"], search["notes"]) == (False, [1], [NOTE])
    assert [(f"{hit['document']}#{hit['passage']}", hit["score"]) for hit in search["hits"]] == remaining.search("rotor seal", k=20).names()
    _, batch = answer(handler, "search-many", queries=["rotor", "seal"])
    assert (batch["complete"], batch["missing_shards"], batch["answers"][0]["answer"]["missing_shards"]) == (False, [1], [1])
    _, context = answer(handler, "context", query="rotor")
    assert (context["complete"], context["notes"]) == (False, [NOTE])
    for operation, given in {
        "count": {},
        "facets": {"query": "rotor", "fields": ["folder"]},
        "explain": {"query": "seal", "passage": "d0#@1"},
    }.items():
        facts, problem = answer(handler, operation, **given)
        assert facts["status"] == 503, operation
        assert "missing_shards" not in facts
        assert problem["status"] == 503


def test_the_command_line_warns_of_missing_shards(folder, monkeypatch):
    pytest.importorskip("ray", reason="clusters on Ray are not tested: ray is not installed (pip install 'perikope[cluster]')")
    from perikope.cluster import on_ray

    monkeypatch.setattr(on_ray, "join_ray", lambda address: None)
    monkeypatch.setattr(on_ray, "find", lambda folder, *, partial, **named: coordinator_without(Path(folder), partial))
    run = partial(CliRunner().invoke, standalone_mode=False)
    found = run(command, ["search", str(folder), "rotor seal", "--partial", "--json", "-k", "3"])
    assert found.exception is None
    assert (found.return_value, found.stderr.splitlines()[0]) == (1, f"perikope: note: {NOTE}")
    assert [json.loads(line)["complete"] for line in found.stdout.splitlines()] == [False] * 3
    nothing = run(command, ["search", str(folder), "absent", "--partial"])
    assert (nothing.return_value, nothing.stdout) == (1, "")
    refused = run(command, ["search", str(folder), "rotor seal"])
    assert isinstance(refused.exception, ShardError)


def test_a_run_on_a_cluster_has_the_bytes_of_one_on_its_folder(folder, monkeypatch, tmp_path):
    pytest.importorskip("ray", reason="clusters on Ray are not tested: ray is not installed (pip install 'perikope[cluster]')")
    from perikope.cluster import on_ray

    down: set[int] = set()

    def find(place, **how):
        index = coordinator(Path(place))
        index.shards.down = down
        return index

    monkeypatch.setattr(on_ray, "join_ray", lambda address: None)
    monkeypatch.setattr(on_ray, "find", find)
    topics, run = tmp_path / "topics.tsv", partial(CliRunner().invoke, standalone_mode=False, catch_exceptions=False)
    topics.write_text("".join(f"{number}\t{query}\n" for number, query in enumerate(QUERIES[:3])))
    for model in ("coverage", "bm25"):
        made = [tmp_path / f"{model}.{kind}" for kind in ("cluster", "folder")]
        assert run(command, ["run", str(folder), str(topics), "--model", model, "--out", str(made[0])]).return_value == 0
        assert run(run_command, [str(folder), str(topics), "--model", model, "--out", str(made[1])]).return_value == 0
        assert made[0].read_bytes() == made[1].read_bytes() != b""
    down.add(1)
    with pytest.raises(ShardError):
        run(command, ["run", str(folder), str(topics), "--out", str(tmp_path / "none.run")])
    assert not (tmp_path / "none.run").exists()
