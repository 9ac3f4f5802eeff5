"""How an extra of this package is installed, from where the package itself came."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

PACKAGE = "perikope"


def install_command(extra: str) -> str:
    """The command that installs an extra: from the checkout that the package was installed from, or from PyPI."""
    return f"pip install '{_checkout() or PACKAGE}[{extra}]'"


def _checkout() -> str:
    """The folder that the package was installed from, as pip recorded it; empty if there is none."""
    try:
        recorded = json.loads(distribution(PACKAGE).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    parts = urlsplit(str(recorded.get("url", "")))
    folder = Path(url2pathname(unquote(parts.path)))
    return str(folder) if parts.scheme == "file" and (folder / "pyproject.toml").is_file() else ""
