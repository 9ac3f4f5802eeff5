"""The Ray cluster of all tests here, since its processes take long to start."""

import pytest

from tests.support.nodes import nodes


@pytest.fixture(scope="session")
def ray_nodes():
    with nodes(1) as started:
        yield started
