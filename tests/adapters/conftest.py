"""One index for all adapters, in a folder and on a server."""

from pathlib import Path

import pytest

import perikope as pk
from tests.support.serving import served

DOCUMENTS = [
    {
        "id": "kx 200",
        "title": "KX-200 heat pump",
        "metadata": {"year": 2020, "makers": ["Ada", "Bob"]},
        "passages": ["It heats water."],
        "sections": [
            {
                "title": "Care",
                "passages": ["Vacuum the filter monthly."],
                "sections": [
                    {
                        "title": "Descaling",
                        "passages": [{"id": "often", "text": "Every three months."}, "Use citric acid.", "Rinse the pump."],
                    }
                ],
            }
        ],
    },
    {"id": "lv40", "title": "LV-40 drain pump", "metadata": {"year": 2010}, "passages": ["Descaling is not needed.", "Lint settles here."]},
    {"id": "faq", "title": "Questions", "metadata": {"year": 2015}, "passages": ["Which pump do I need?"]},
]
QUERY = "descaling of the heat pump"


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("adapters") / "manuals"
    with pk.Index.create(folder) as index:
        index.add(DOCUMENTS)
    return folder


@pytest.fixture(scope="session")
def address(folder) -> str:
    with served(folder) as address:
        yield address
