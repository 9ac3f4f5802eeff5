"""Chromium for the tests, driven by Playwright. Without one of them, tests are skipped with the reason.

Playwright's own browsers are not used: the one of the system is (Debian's package `chromium`), or the one that
`PERIKOPE_CHROMIUM` names.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""The commands under which systems offer the browser."""
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none", "--force-color-profile=srgb")
"""Chromium's sandbox does not work for the root user of a container. The others make pictures equal on all machines."""


def executable() -> str:
    """The path of Chromium; empty if there is none."""
    return os.environ.get("PERIKOPE_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), "")


def missing() -> str:
    """Why there is no browser for the tests; empty if there is one."""
    if find_spec("playwright") is None:
        return "the page is not tested: Playwright is not installed (pip install playwright)"
    if not executable():
        return "the page is not tested: Chromium is not installed (apt-get install chromium), or name it with PERIKOPE_CHROMIUM"
    return ""
