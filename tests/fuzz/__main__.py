"""`make fuzz`: give damaged files to every reader for FUZZ_SECONDS, and report the readers that fail.

Whatever a file holds, a reader must yield valid documents or raise a `PerikopeError` of one line, in a time that is
linear in the size of the file. Inputs for which a reader does not are stored in `.fuzz/`, and the exit status is 1.

FUZZ_SECONDS=60 FUZZ_SEED=1 FUZZ_ONLY=jats,uspto python -m tests.fuzz
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.fuzzing import Failure, fuzz
from tests.fuzz.targets import targets


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    seed = int(os.environ.get("FUZZ_SEED") or time.time())
    only = os.environ.get("FUZZ_ONLY", "").split(",")
    chosen = [target for target in targets() if only == [""] or target.name in only]
    kept = Path(".fuzz")
    failures: list[Failure] = []
    total = 0
    sys.stdout.write(f"{len(chosen)} readers, {seconds:g} s, seed {seed}\n")
    for target in chosen:
        with tempfile.TemporaryDirectory() as folder:
            # Regular expressions and parsers do not hear of signals: a reader that hangs is shown and ended.
            faulthandler.dump_traceback_later(120 + seconds, exit=True)
            count, found = fuzz(target, Path(folder), seconds / len(chosen), seed)
            faulthandler.cancel_dump_traceback_later()
        total += count
        failures += found
        sys.stdout.write(f"{target.name}: {count} files, {len(found)} failures\n")
        sys.stdout.flush()
    for number, failure in enumerate(failures):
        kept.mkdir(exist_ok=True)
        path = kept / f"{failure.target.replace(' ', '-').replace(',', '')}-{seed}-{number}{failure.suffix}"
        path.write_bytes(failure.data)
        sys.stdout.write(f"\n{path}\n{failure.report}\n")
    sys.stdout.write(f"{total} files, {len(failures)} failures\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
