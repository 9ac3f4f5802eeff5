"""Tools from npm that check the page: the compiler of TypeScript, and axe. `make page-tools` installs them here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

HERE = Path(__file__).parent
TOOLS = HERE / "node_modules"
AXE = TOOLS / "axe-core" / "axe.min.js"


def missing_tools() -> str:
    """Why there are no tools; empty if there are."""
    if AXE.is_file() and (TOOLS / ".bin" / "tsc").exists() and shutil.which("node"):
        return ""
    return "types and accessibility of the page are not checked: TypeScript and axe are not installed (make page-tools; needs npm)"


def serious_problems(page: Page) -> list[str]:
    """What axe finds on a page: one line per problem that is serious or critical."""
    # A script of the page could not be added, because the content security policy forbids it.
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations)")
    serious = [problem for problem in found if problem["impact"] in ("serious", "critical")]
    return [f"{problem['id']}: {problem['help']}: {node['html'][:200]}" for problem in serious for node in problem["nodes"]]
