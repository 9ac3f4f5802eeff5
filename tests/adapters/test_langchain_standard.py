"""LangChain's own standard tests of retrievers. They are run without the plugins that they are made for."""

import asyncio
import inspect

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_tests")

from langchain_tests.integration_tests import RetrieversIntegrationTests as Tests

from perikope.adapters.langchain import PerikopeRetriever

NAMES = [name for name in dir(Tests) if name.startswith("test_") and name != "test_no_overrides_DO_NOT_OVERRIDE"]


class Ours(Tests):
    """What LangChain tests."""

    def __init__(self, folder):
        self.folder = folder

    retriever_constructor = PerikopeRetriever
    retriever_query_example = "pump"

    @property
    def retriever_constructor_params(self):
        return {"index": self.folder}


del Tests


@pytest.mark.parametrize("name", NAMES)
def test_the_standard_holds(name, folder):
    test = getattr(Ours(folder), name)
    given = {"retriever": PerikopeRetriever(folder)} if "retriever" in inspect.signature(test).parameters else {}
    done = test(**given)
    if inspect.isawaitable(done):
        asyncio.run(done)


def test_there_are_standard_tests():
    assert len(NAMES) >= 4
