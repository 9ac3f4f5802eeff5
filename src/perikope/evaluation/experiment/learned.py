"""Tables and figures of what systems learn from judgements: weights of tags, and a prior over positions."""

from __future__ import annotations

import math

from perikope.browse.tags import TagTable
from perikope.evaluation.experiment.extras import ExtraFigure, ExtraTable, Figure, Series
from perikope.evaluation.learning.prior import LearnedPrior

TAGS, PRIOR = "Tag weights", "Prior over positions"
HEAVIEST = 10
"""Number of tags with the largest weights in a table of tags."""
COVERED = 0.02
"""Share of all words that a tag must mark to be in a table of tags, if it is not among the heaviest."""


def tag_table(tags: TagTable) -> ExtraTable:
    """The heaviest tags and those that mark many words, with weight, coverage and number of occurrences.

    The selection is that of Table 2 of Beigbeder, Géry and Largeron 2015.
    """
    heaviest = list(tags.rows)[:HEAVIEST]
    shown = {tag: row for tag, row in tags.rows.items() if tag in heaviest or row.coverage > COVERED}
    rows = []
    for tag, row in shown.items():
        coverage = None if math.isnan(row.coverage) else Figure(row.coverage, f"{100 * row.coverage:.2f}%")
        logical = Figure(float(tag in tags.logical), "X" if tag in tags.logical else "")
        rows.append(
            ("", tag, (Figure(row.weight, f"{row.weight:.2f}"), coverage, logical, Figure(row.occurrences, f"{row.occurrences:,}")))
        )
    how = (
        f"Weights of {len(tags.rows)} tags, learned from {tags.queries} topics. Shown are the {HEAVIEST} heaviest tags and those that mark "
        f"more than {COVERED:.0%} of all words. X: elements with the tag may be results."
    )
    return ExtraTable(TAGS, how, ("weight", "coverage", "logical", "occurrences"), tuple(rows), head="Tag")


def prior_table(prior: LearnedPrior) -> ExtraTable:
    """The share of relevant and of returned passages in each tenth of a description, and the weight of the tenth."""
    relevant, returned = _shares(prior.relevant), _shares(prior.returned)
    rows = tuple(
        ("", str(tenth), (_share(relevant[tenth - 1]), _share(returned[tenth - 1]), Figure(weight, f"{weight:.2f}")))
        for tenth, weight in enumerate(prior.weights, 1)
    )
    how = (
        f"{sum(prior.relevant):,} relevant and {sum(prior.returned):,} returned passages in descriptions, by tenth of the description. "
        "The weight of a tenth is the share of relevant passages divided by the share of returned ones."
    )
    return ExtraTable(PRIOR, how, ("relevant", "returned", "weight"), rows, head="Tenth")


def prior_figure(prior: LearnedPrior) -> ExtraFigure:
    """The distribution of relevant and of returned passages over the tenths of descriptions.

    This is Figure 2 of Gobeill and Ruch 2012.
    """
    series = tuple(
        Series(name, tuple((float(tenth), 100 * share) for tenth, share in enumerate(_shares(counts), 1)))
        for name, counts in (("judged relevant", prior.relevant), ("returned by the search", prior.returned))
    )
    caption = "Share of passages in each tenth of the description: those that are judged relevant, and those that the search returns."
    return ExtraFigure(
        "Passages by position in the description", "tenth of the description", "passages in percent", series, caption, "bars"
    )


def _shares(counts: tuple[int, ...]) -> list[float]:
    return [count / max(sum(counts), 1) for count in counts]


def _share(share: float) -> Figure:
    return Figure(share, f"{100 * share:.1f}%")
