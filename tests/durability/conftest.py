"""The small index that is damaged and forged, and the process that looks at it."""

import pytest

from tests.durability.probe import Probe, small_index


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A small index with several segments; to be copied, never changed."""
    folder = tmp_path_factory.mktemp("small") / "index"
    small_index(folder)
    return folder


@pytest.fixture(scope="session")
def probe(small):
    """Harms copies of the small index and looks at them."""
    probe = Probe(small)
    yield probe
    probe.close()
