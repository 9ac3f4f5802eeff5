"""Small indexes to damage and forge, one with a store of vectors and a learned table, and processes that read them."""

import pytest

from tests.durability.attachments import small_attachments
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


@pytest.fixture(scope="session")
def attached(tmp_path_factory):
    """A small index with a store of vectors and a learned table; tests copy it and never change it."""
    folder = tmp_path_factory.mktemp("attached") / "index"
    small_attachments(folder)
    return folder


@pytest.fixture(scope="session")
def attached_probe(attached):
    """A process that damages store and table of copies of that index and reads them."""
    probe = Probe(attached, "tests.durability.attachments")
    yield probe
    probe.close()
