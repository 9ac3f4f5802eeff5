"""Speed beside the peers, in one run: `make bench`. Figures are for comparing rows, not for other machines.

python -m benchmarks                     startup, search and build
python -m benchmarks startup search      these only
python -m benchmarks build --help        one of them, with its options; also `memory`, `columns`, `positions`
python -m benchmarks --markdown FILE     adds the tables of build, memory and columns to a file
"""

import importlib
import sys
from itertools import takewhile

SMALL = ("startup", "search")
LARGE = ("build", "memory", "columns", "positions")


def main() -> None:
    names = list(takewhile(lambda argument: argument in SMALL + LARGE, sys.argv[1:]))
    options = sys.argv[1 + len(names) :]
    names = names or [*SMALL, "build"]
    if options and (not set(names) & set(LARGE) or (options[0] in ("-h", "--help") and len(names) > 1)):
        raise SystemExit(__doc__)
    if small := [name for name in names if name in SMALL]:
        importlib.import_module("benchmarks.search").main(small)
    for name in names:
        if name in LARGE:
            importlib.import_module(f"benchmarks.{name}").main(options)


if __name__ == "__main__":
    main()
