"""Searches that asyncio programs await: results, concurrency, cancellation, closing and forks."""

import asyncio
import inspect
import os
import threading

import pytest

from perikope.core.errors import UsageError
from perikope.search.facade import Index
from tests.support.collections import index_of, plain_document

QUERIES = ["pump", "valve of a pump", "seal", "rotor valve", "nothing"]


@pytest.fixture
def index():
    texts = ["a pump with a valve", "the rotor of a pump", "a seal", "valve and seal and rotor"]
    return index_of([plain_document(f"d{number}", "Title", text) for number, text in enumerate(texts)], [2])


def rows(results):
    return [(hit.name, hit.score, hit.text) for hit in results]


def test_concurrent_awaits_have_the_results_of_search(index):
    async def all_at_once():
        return await asyncio.gather(*(index.asearch(query, k=3, model="bm25") for query in QUERIES * 8))

    found = asyncio.run(all_at_once())
    assert [rows(one) for one in found] == [rows(index.search(query, k=3, model="bm25")) for query in QUERIES * 8]


def test_signature_and_mistakes_are_those_of_search(index):
    assert inspect.signature(Index.asearch).parameters.keys() == inspect.signature(Index.search).parameters.keys()
    with pytest.raises(UsageError, match="the query is empty"):
        asyncio.run(index.asearch("?"))
    with pytest.raises(UsageError, match="modell"):
        asyncio.run(index.asearch("pump", modell="bm25"))


class Gate:
    """A search that waits until the gate is opened."""

    def __init__(self, index, monkeypatch):
        self.opened, self.begun, self.done = threading.Event(), threading.Semaphore(0), []
        search = index.search

        def slow(query, **given):
            self.begun.release()
            assert self.opened.wait(60)
            results = search(query, **given)
            self.done.append(query)
            return results

        monkeypatch.setattr(index, "search", slow)


def test_event_loop_goes_on_while_a_search_runs(index, monkeypatch):
    gate = Gate(index, monkeypatch)

    async def program():
        task = asyncio.create_task(index.asearch("pump"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
        gate.opened.set()
        return await task

    assert rows(asyncio.run(program())) == rows(index_search(index, "pump"))


def index_search(index, query):
    return Index.search(index, query)


def test_cancelled_await_leaves_the_index_as_it_was(index, monkeypatch):
    gate = Gate(index, monkeypatch)

    async def program():
        tasks = [asyncio.create_task(index.asearch("pump")) for _ in range(50)]
        await asyncio.to_thread(gate.begun.acquire)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        gate.opened.set()
        return await index.asearch("valve")

    assert rows(asyncio.run(program())) == rows(index_search(index, "valve"))
    assert len(gate.done) < 50, "searches that had not begun never run"


def test_many_queries_come_in_order(index):
    async def program():
        return [(query, rows(results)) async for query, results in index.asearch_many(QUERIES * 5, k=2)]

    assert asyncio.run(program()) == [(query, rows(results)) for query, results in index.search_many(QUERIES * 5, k=2)]


def test_iteration_that_ends_early_cancels_the_rest(index, monkeypatch):
    gate = Gate(index, monkeypatch)
    gate.opened.set()

    async def program():
        found = index.asearch_many(["pump"] * 1000)
        async for _ in found:
            break
        await found.aclose()

    asyncio.run(program())
    assert len(gate.done) < 100


def test_index_can_be_awaited_in_several_event_loops_one_after_the_other(index):
    assert {len(asyncio.run(index.asearch("pump"))) for _ in range(3)} == {len(index.search("pump"))}


def test_closed_index_says_so_and_its_threads_end(index):
    asyncio.run(index.asearch("pump"))
    index.close()
    with pytest.raises(UsageError, match="was closed"):
        asyncio.run(index.asearch("pump"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_process_has_threads_of_its_own(index):
    asyncio.run(index.asearch("pump"))
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if len(asyncio.run(asyncio.wait_for(index.asearch("pump"), 60))) == len(index.search("pump")) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
