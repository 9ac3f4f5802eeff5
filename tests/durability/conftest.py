"""A small index to damage and forge, and the process that reads it."""

import pytest

from tests.durability.probe import Probe, small_index


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A small index with several segments; tests copy it and never change it."""
    folder = tmp_path_factory.mktemp("small") / "index"
    small_index(folder)
    return folder


@pytest.fixture(scope="session")
def probe(small):
    """A process that damages copies of the small index and reads them."""
    probe = Probe(small)
    yield probe
    probe.close()
