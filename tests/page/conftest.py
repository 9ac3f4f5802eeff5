"""Fixtures of the tests of the page.

visit       opens a window: `page = visit(demo).go(q="pump")`. A test fails if its page has an error on the console,
            breaks the content security policy, or asks another server.
demo        a server over the documents of `perikope demo`
patents     a server over the patents of the shared data, if they are present
hostile     a server over documents that attack the page
evidence    `perikope serve` over Evidence Inference, if it is present and PERIKOPE_PAGE_SPEED is set
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from perikope.build.indexing import BuildOptions, build
from tests.page.chromium import ARGUMENTS, executable, missing
from tests.page.hostile import write_hostile
from tests.page.tools import missing_tools, serious_problems
from tests.page.visiting import Visiting, Visitor
from tests.server.support import LiveServer, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="package")
def browser() -> Iterator[object]:
    """Chromium. It ends with the tests of this folder, since Playwright occupies the event loop of the thread."""
    if reason := missing():
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable(), args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def visit(browser: object) -> Iterator[Visiting]:
    """Opens windows. After the test, it checks that nothing went wrong in them."""
    visitor = Visitor(browser)  # type: ignore[arg-type]
    yield visitor
    visitor.close()
    visitor.check()


@pytest.fixture(scope="package")
def axe() -> Callable[[Page], list[str]]:
    """Finds what people with disabilities stumble over on a page: one line per serious problem."""
    if reason := missing_tools():
        pytest.skip(reason)
    return serious_problems


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server over the documents of `perikope demo`."""
    from perikope.evaluation.demo import write_example

    folder = tmp_path_factory.mktemp("demo")
    write_example(folder / "example")
    build(str(folder / "index"), [str(folder / "example" / "docs")], BuildOptions())
    with LiveServer({"demo": folder / "index"}) as server:
        yield server


@pytest.fixture(scope="package")
def patents(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Iterator[LiveServer]:
    """A server over the patents of the shared data."""
    if not (shared_data / "patents").is_dir():
        pytest.skip(f"no patents at {shared_data}")
    index = tmp_path_factory.mktemp("patents") / "index"
    build(str(index), [str(shared_data / "patents")], BuildOptions())
    with LiveServer({"patents": index}) as server:
        yield server


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server over documents that attack the page."""
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile(folder / "index", folder / "files")
    with LiveServer({"hostile": folder / "index"}) as server:
        yield server


@pytest.fixture(scope="package")
def evidence(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Iterator[ServerProcess]:
    """`perikope serve` over Evidence Inference, for measurements. Indexing takes about a minute."""
    if not os.environ.get("PERIKOPE_PAGE_SPEED"):
        pytest.skip("the speed of the page is measured with PERIKOPE_PAGE_SPEED=1 only")
    if not (shared_data / "evidence-inference" / "documents.jsonl.gz").is_file():
        pytest.skip(f"no Evidence Inference at {shared_data}")
    index = tmp_path_factory.mktemp("evidence") / "index"
    build(str(index), [str(shared_data / "evidence-inference" / "documents.jsonl.gz")], BuildOptions())
    with ServerProcess(f"evidence={index}") as server:
        yield server


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Repeat a test that fails once: a busy machine may stop a browser for seconds. A second failure counts.

    A test that passes only then is named in the report by its section `repeated`.
    """
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        reasons = "\n".join(report.longreprtext for report in reports if report.failed)
        item._initrequest()  # type: ignore[attr-defined]
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        for report in reports:
            report.sections.append(("repeated", reasons))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
