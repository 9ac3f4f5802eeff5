"""Settings of the test run."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A kernel's first call compiles it: a deadline would measure that. Where a change is judged, the same examples decide every time;
# new ones are looked for while it is made.
settings.register_profile("perikope", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI")))
settings.load_profile("perikope")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real collections, which are not part of the repository; tests that need them skip without them."""
    folder = Path(os.environ.get("PERIKOPE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no collections at {folder}")
    return folder


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: the processes of a test run must collect the same names, and bytes may hold a time."""
    return argname if isinstance(val, bytes) else None
