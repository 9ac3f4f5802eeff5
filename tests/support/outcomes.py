"""Made-up outcomes of experiments, seeded: many systems, long names, sweeps, all kinds of tuning."""

import random
from itertools import product

from perikope.evaluation.experiment.outcome import Outcome, Sweep, SystemOutcome
from perikope.evaluation.tuning.outcome import FoldOutcome, TuningOutcome

MEASURES = ("MAP(D)", "nDCG@10", "MRR", "P@10", "Recall@100", "PRES@100")
NAMES = (
    "bm25", "lm", "pl2", "psg", "psg_doc", "psg_neighbor", "plm (Gaussian)", "plm (trapezoid)", "prox", "prox_h", "prox_hw", "qsf_v",
    "qsf_section", "qsf_section_title", "qsf_path, weights of all sections from the root to the passage", "position_prior", "rrf",
    "fuse, linear", "LambdaMART", "a_run_of_another_system-2023-final-v2",
)  # fmt: skip


def make_outcome(
    systems: int = 20,
    topics: int = 60,
    sweeps: tuple[str, ...] = ("10 documents fetched",),
    measures: tuple[str, ...] = MEASURES,
    seed: int = 1,
) -> Outcome:
    """An outcome whose later systems are better in the mean, with noise."""
    draw = random.Random(seed)
    difficulty = {f"q{number}": draw.betavariate(0.7, 1.4) for number in range(topics)}
    return Outcome(
        "Passages of clinical trials",
        "Every lexical model of the papers, tuned on training topics.\n\nReported on others.",
        {"perikope": "0.1.0", "Python": "3.11.2", "index": "3f9a" * 16, "seed": str(seed)},
        measures,
        tuple(
            Sweep(label, tuple(_system(draw, number, systems, difficulty, measures, place) for number in range(systems)))
            for place, label in enumerate(sweeps)
        ),
    )


def _system(
    draw: random.Random, number: int, systems: int, difficulty: dict[str, float], measures: tuple[str, ...], sweep: int
) -> SystemOutcome:
    gain = 0.25 * number / max(systems - 1, 1) + 0.05 * sweep

    def value(easy: float) -> float:
        return 0.0 if draw.random() < 0.1 else min(1.0, max(0.0, easy * (0.7 + gain) + draw.gauss(gain / 2, 0.08)))

    values = {measure: {qid: value(easy) for qid, easy in difficulty.items()} for measure in measures}
    falls = 1 + draw.random()
    curve = tuple((0.5 + gain) * (1 - point / 100) ** falls if point < 95 else 0.0 for point in range(101))
    name = NAMES[number] if number < len(NAMES) else f"system {number + 1}"
    settings = f"model {name.split()[0]}(alpha=0.3, beta=0.7); documents {10 + 40 * sweep}; fetch pl2"
    tuned = {3: _line, 6: _random, 11: _three, 12: _surface, 13: _surface}.get(number)
    notes = ("a run that was there already", "3 topics are not in it and count 0") if number == 19 else ()
    return SystemOutcome(name, settings, values, curve, tuned(draw) if tuned else None, notes)


def _tuned(draw: random.Random, parameters: tuple[str, ...], settings: list[tuple[object, ...]], folds: int = 0) -> TuningOutcome:
    ideal = settings[len(settings) // 3]

    def distance(a: object, b: object) -> float:
        return abs(a - b) / (a + b + 1) if isinstance(a, float) and isinstance(b, float) else float(a != b)

    scores = tuple(0.4 - 0.1 * sum(map(distance, one, ideal)) + draw.gauss(0, 0.001) for one in settings)
    best = dict(zip(parameters, settings[scores.index(max(scores))], strict=True))
    return TuningOutcome(
        parameters,
        tuple(settings),
        scores,
        best,
        "MAP(D)",
        tuple(FoldOutcome(best, 0.4, 0.38 + 0.01 * fold, 12) for fold in range(folds)),
        60,
    )


def _line(draw: random.Random) -> TuningOutcome:
    return _tuned(draw, ("mu",), [(value,) for value in (100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)])


def _random(draw: random.Random) -> TuningOutcome:
    return _tuned(draw, ("sigma", "base.mu"), [(draw.uniform(1, 500), draw.uniform(1, 5000)) for _ in range(60)])


def _three(draw: random.Random) -> TuningOutcome:
    steps = [step / 10 for step in range(11)]
    return _tuned(draw, ("alpha", "beta", "norm"), list(product(steps, steps, ("minmax", "sum", "none"))))


def _surface(draw: random.Random) -> TuningOutcome:
    steps = [step / 20 for step in range(21)]
    return _tuned(draw, ("alpha", "beta"), list(product(steps, steps)), folds=5)
