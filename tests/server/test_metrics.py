"""Numbers for Prometheus."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from perikope import Index
from perikope.server.metrics import Metrics
from tests.server.support import ROOT, LiveServer, web

GROWING = {"perikope_refused", "perikope_process_killed", "perikope_process_restarts"}
"""Numbers that only grow."""


def _families(server: LiveServer) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(web.get(f"{server.url}/metrics").text)}


def test_numbers_that_only_grow_are_counters(live: LiveServer) -> None:
    families = _families(live)
    assert families.keys() >= GROWING
    for name in GROWING:
        assert families[name].type == "counter"
        assert {sample.name for sample in families[name].samples} == {f"{name}_total"}
    live.app.pool.counts.refused += 3
    assert [sample.value for sample in _families(live)["perikope_refused"].samples] == [3]
    kinds = {sample.labels["kind"] for sample in families["perikope_process_restarts"].samples}
    assert kinds == {"reader", "writer"}


def test_the_generation_is_that_of_answers(tmp_path: Path) -> None:
    with Index.create(tmp_path / "index") as index:
        for number in range(3):
            index.add({"id": f"d{number}", "passages": ["a magnetic pump"]})
            index.commit()
    with LiveServer({"small": tmp_path / "index"}) as server:
        for number in range(2):
            with Index.open(tmp_path / "index") as index:
                index.add({"id": f"e{number}", "passages": ["a magnetic pump"]})
            (sample,) = _families(server)["perikope_index_generation"].samples
            answer = web.get(f"{server.url}/indexes/small/search?query=pump&k={number + 1}").json()
            assert sample.value == answer["generation"] >= 4 + number


def test_the_documentation_names_numbers_that_exist(live: LiveServer) -> None:
    web.get(f"{live.url}/indexes/small/search?query=pump")
    text = web.get(f"{live.url}/metrics").text
    for name in set(re.findall(r"`(perikope_[a-z_]+)`", (ROOT / "docs" / "serving.md").read_text())):
        assert re.search(rf"^{name}(_bucket)?[ {{]", text, re.M) or f"# HELP {name} " in text, name


def test_a_counter_without_a_label() -> None:
    metrics = Metrics()
    metrics.count("perikope_things", "Things.", lambda: {"": 2})
    assert b"perikope_things_total 2.0" in metrics.text()
