"""Say what the tests of the page leave out on this machine.

python -m tests.page
"""

from __future__ import annotations

import sys

from tests.page.chromium import missing
from tests.page.tools import missing_tools

if __name__ == "__main__":
    for reason in filter(None, (missing(), missing_tools())):
        sys.stdout.write(f"SKIPPED: {reason}\n")
