"""`perikope serve` for tests: its processes load little before they are ready, and know the operations of the tests.

python -m tests.server.program INDEX --port 0
"""

from __future__ import annotations

import os
import sys

import perikope.cli
import perikope.server.pool
import tests.server.preload

if __name__ == "__main__":
    os.environ["PERIKOPE_TEST_HELD"] = os.environ.get("PERIKOPE_TEST_HOLD", "")  # for the processes that are started from here
    perikope.server.pool.PRELOADED = tests.server.preload.__name__
    sys.argv[1:] = ["serve", *sys.argv[1:]]
    sys.exit(perikope.cli.main())
