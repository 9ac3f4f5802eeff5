"""Settings of the test run."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.examples import scaled

SHARED_DATA = Path(os.environ.get("PERIKOPE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""The folder of the real collections."""

# The first call of a kernel compiles it, which a deadline would measure. With CI set, the same examples decide every
# time; without it, each run tries new ones.
settings.register_profile(
    "perikope",
    max_examples=scaled(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("perikope")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real collections, which are not part of the repository; tests that need them skip without them."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no collections at {SHARED_DATA}")
    return SHARED_DATA


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a parameter of type bytes by its argument: all test processes must collect the same names."""
    return argname if isinstance(val, bytes) else None
