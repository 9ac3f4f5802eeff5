"""The server behaves as its OpenAPI document says: schemathesis sends what the document allows, and what it forbids.

Every answer must have a declared status, a declared type of content and the declared schema. No answer is a 5xx. By
default, few examples are tried, and the same ones every time. To try more of them:

    PERIKOPE_EXAMPLES=20 python -m pytest tests/server/test_schema.py -n 0
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig

from tests.server.support import PATIENCE, TOKEN, ServerProcess
from tests.support.examples import SCALE

EXAMPLES = max(4, round(16 * SCALE))
"""Examples per operation."""
KEPT_TRUE = {"patent": "EP-900100-A1", "passage": "pumps#@1", "id": "pumps"}
"""Names that the index has. Random names would only show that they are unknown."""


@pytest.fixture(scope="module")
def api(process: ServerProcess) -> Any:
    config = SchemathesisConfig.from_dict({"headers": {"Authorization": f"Bearer {TOKEN}"}, "request-timeout": PATIENCE})
    return schemathesis.openapi.from_url(f"{process.url}/openapi.json", config=config)


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
def test_the_server_does_as_it_says(case: schemathesis.Case) -> None:
    case.call_and_validate(timeout=PATIENCE)


def test_the_document_is_openapi(api: Any) -> None:
    api.validate()
    assert api.config is not None
    assert len(list(api.get_all_operations())) > 15
