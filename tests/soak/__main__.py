"""`python -m tests.soak`: run the stress scenarios and print a summary; the exit code is 1 if one of them fails.

python -m tests.soak                                 all scenarios, about 2 minutes each
python -m tests.soak --scenario kills --seed 7       one scenario, with the seed that an earlier run printed
python -m tests.soak --seconds-per-scenario 20       a short run
python -m tests.soak --reduced                       the fixed number of operations that `make test` tries
python -m tests.soak --prove                         plant every defect; the exit code is 1 if one is not reported
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict

from tests.soak import scenarios
from tests.soak.runner import Outcome, carry_out, table
from tests.soak.scenario import SCENARIOS

SHOWN = 8
"""Failures of a scenario that are printed in full."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen scenarios and print what happened."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that folders are removed
    seed = options.seed if options.seed is not None else random.randrange(1 << 31)
    _say(f"seed {seed}: repeat with --seed {seed}", options)
    outcomes, missed = [], []
    for name in options.scenario or list(SCENARIOS):
        chosen = SCENARIOS[name]
        for planted in list(chosen.defects) if options.prove else [options.defect]:
            outcome = carry_out(chosen, seed, options.seconds_per_scenario, reduced=options.reduced or options.prove, planted=planted)
            reported = bool(planted) and any(chosen.defects[planted].reported in failure for failure in outcome.failures)
            outcomes.append(outcome)
            missed += [f"{name}: {planted}"] if not reported and not outcome.skipped else []
            if options.json:
                sys.stdout.write(json.dumps(asdict(outcome) | {"defect": planted, "reported": reported}) + "\n")
                sys.stdout.flush()
            else:
                _show(outcome, planted)
    if options.prove:
        lines = [*(f"NOT REPORTED  {line}" for line in missed), f"{len(outcomes) - len(missed)} of {len(outcomes)} defects reported"]
        _say("\n".join(lines), options)
        return 1 if missed else 0
    _say(f"\n{table(outcomes)}\n\nwhat was held: start → end; memory in MB, disk in KB; seed {seed}", options)
    for outcome in outcomes:
        notes = [*outcome.notes, *([f"skipped: {outcome.skipped}"] if outcome.skipped else [])]
        _say("\n".join(f"{outcome.scenario}: {line}" for line in notes), options)
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    assert scenarios.MODULES  # importing them registers them
    listed = "\n".join(f"  {name:14} {found.help}" for name, found in SCENARIOS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description="Run the stress scenarios and print a summary. The exit code is 1 if one of them fails.",
        epilog=f"scenarios:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="Seed of everything random. [default: a new one, which is printed]")
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS), metavar="NAME", help="Run this one. May be repeated.")
    parser.add_argument("--seconds-per-scenario", type=float, metavar="N", help="[default: what each scenario declares, mostly 120]")
    parser.add_argument("--reduced", action="store_true", help="Try the fixed, small number of operations that `make test` tries.")
    parser.add_argument("--prove", action="store_true", help="Plant every defect, one by one; the scenario must report each.")
    parser.add_argument("--defect", default="", metavar="NAME", help="Plant one defect of the scenario.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object per scenario instead of a table.")
    return parser.parse_args(arguments)


def _show(outcome: Outcome, planted: str) -> None:
    label = f"{outcome.scenario}{f' with the defect {planted!r}' if planted else ''}"
    sys.stdout.write(f"{label}: {outcome.operations} operations, {len(outcome.failures)} failures, {outcome.seconds:.0f} s\n")
    for failure in outcome.failures[: 1 if planted else SHOWN]:
        sys.stdout.write("".join(f"    {line}\n" for line in failure.splitlines()))
    if len(outcome.failures) > SHOWN:
        sys.stdout.write(f"    … and {len(outcome.failures) - SHOWN} more\n")


def _say(text: str, options: argparse.Namespace) -> None:
    if not options.json and text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
