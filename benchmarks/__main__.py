"""Speed compared with other engines, in one run: `make bench`. Compare rows with each other, not with other machines.

python -m benchmarks                     startup, search, build, fetch, filters and browse
python -m benchmarks startup search      these only
python -m benchmarks build --help        one of them, with its options; also `memory`, `columns`, `positions`,
                                         `patents`, `formats`, `neural`, `nearest`
python -m benchmarks compare --before PYTHON     whether this installation is slower than that of another interpreter
python -m benchmarks identical --before PYTHON   whether both write the same runs
python -m benchmarks whole --before PYTHON       a whole search on several segments, a first search and a whole run
python -m benchmarks cost INDEX TOPICS   CPU time per query of the default and of other models, as ratios
python -m benchmarks selfmade INDEX TOPICS QRELS  whether self-made topics agree with human judgements; also `adapting`
python -m benchmarks serving INDEX TOPICS        throughput and latency of `perikope serve`
python -m benchmarks cluster             whether a cluster writes the runs of a single index, and bytes per query
python -m benchmarks growth              how an index and a cluster grow with the collection, at the length of patents
python -m benchmarks overload            a served cluster at twice the rate that it sustains
python -m benchmarks page INDEX TOPICS           how fast the page is in a browser
python -m benchmarks zero_shot --judged NAME INDEX TOPICS QRELS …  models without training on several collections
python -m benchmarks pages               conditionalqa from PDF and from JSON Lines; `--pdf FILE …`: time per page
python -m benchmarks words FOLDER        words of files beside those that pandoc, LibreOffice and others find
python -m benchmarks --markdown FILE     adds the tables of build, fetch, browse, memory and columns to a file

Without names, `fetch` measures two of its collections, Evidence Inference and 200,000 short synthetic documents. This
takes some minutes, and more in the first run, which downloads the other engines and builds their indexes.
`fetch --collection all` adds 50,000 long documents, 2.6 million short ones and growth. Its first run takes the better
part of an hour and 17 GB of disk.
"""

import importlib
import sys
from itertools import takewhile

SMALL = ("startup", "search")
LARGE = (
    "build",
    "fetch",
    "filters",
    "browse",
    "memory",
    "columns",
    "positions",
    "patents",
    "formats",
    "neural",
    "nearest",
    "compare",
    "whole",
    "cost",
    "identical",
    "selfmade",
    "adapting",
    "serving",
    "cluster",
    "growth",
    "overload",
    "zero_shot",
    "page",
    "pages",
    "words",
)


def main() -> None:
    names = list(takewhile(lambda argument: argument in SMALL + LARGE, sys.argv[1:]))
    options = sys.argv[1 + len(names) :]
    if options and not names and not options[0].startswith("-"):
        raise SystemExit(f"there is no benchmark {options[0]!r}\n\n{__doc__}")
    names = names or [*SMALL, "build", "fetch", "filters", "browse"]
    if options and (not set(names) & set(LARGE) or (options[0] in ("-h", "--help") and len(names) > 1)):
        raise SystemExit(__doc__)
    if small := [name for name in names if name in SMALL]:
        importlib.import_module("benchmarks.search").main(small)
    for name in names:
        if name in LARGE:
            importlib.import_module(f"benchmarks.{name}").main(options)


if __name__ == "__main__":
    main()
