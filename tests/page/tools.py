"""Tools from npm that check the page: the compiler of TypeScript, and axe. `make page-tools` installs them here."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
TOOLS = HERE / "node_modules"
AXE = TOOLS / "axe-core" / "axe.min.js"


def missing_tools() -> str:
    """Why there are no tools; empty if there are."""
    if AXE.is_file() and (TOOLS / ".bin" / "tsc").exists():
        return ""
    return "types and accessibility of the page are not checked: TypeScript and axe are not installed (make page-tools; needs npm)"
