"""`perikope serve` for tests: its processes load little before they are ready, and know the operations of the tests.

python -m tests.server.program INDEX --port 0
"""

from __future__ import annotations

import sys

import perikope.cli
import perikope.server.pool
import tests.server.preload

if __name__ == "__main__":
    perikope.server.pool.PRELOADED = tests.server.preload.__name__
    sys.argv[1:] = ["serve", *sys.argv[1:]]
    sys.exit(perikope.cli.main())
