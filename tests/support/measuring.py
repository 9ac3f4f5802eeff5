"""Random judgements and runs: few names and many ties, some only in float32; few characters, most in two ranges."""

from hypothesis import strategies as st

from perikope.evaluation.io.inex import Extract, RelevantText

NAMES = [f"{document}#{passage}" for document in ("A", "B", "C", "D") for passage in ("1", "2", "/x[3]", "@10")]
TIED_SCORES = [-3.5, -1.0, 0.0, 1e-9, 0.5, 1.0, 1.0 + 1e-9, 1.0 + 1e-7, 2.0, 16777216.0, 16777217.0]
GRADES = [-2, -1, 0, 0, 1, 1, 2, 3]
QUERIES = ["q1", "q2", "q3", "q4"]

judged = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(GRADES), min_size=1)
judgements = st.dictionaries(st.sampled_from(QUERIES), judged, min_size=1)
ranked = st.lists(st.sampled_from(NAMES), unique=True)
scores = st.sampled_from(TIED_SCORES) | st.floats(-1e6, 1e6, allow_nan=False)
runs = st.dictionaries(st.sampled_from([*QUERIES, "unjudged"]), st.dictionaries(st.sampled_from(NAMES), scores))

Texts = dict[str, RelevantText]

places = st.integers(0, 40)
lengths = st.integers(0, 12)


def relevant_text(ranges: list[tuple[int, int]]) -> RelevantText:
    """Relevant text as a judge may have marked it: overlapping, adjacent and empty ranges in any order."""
    return RelevantText(tuple(ranges), sum(length for _, length in ranges), 60, -1)


def apart(results: list[Extract]) -> list[Extract]:
    """The results without those that share a character with an earlier one, those of one document side by side."""
    seen: set[tuple[str, int]] = set()
    kept = []
    for result in results:
        characters = {(result.document, place) for place in range(result.start, result.end)}
        if not characters & seen:
            seen |= characters
            kept.append(result)
    order = list(dict.fromkeys(result.document for result in kept))
    return sorted(kept, key=lambda result: order.index(result.document))


texts = st.dictionaries(st.sampled_from("ABC"), st.lists(st.tuples(places, lengths), max_size=5).map(relevant_text), min_size=1)
stretches = st.lists(st.builds(Extract, st.sampled_from("ABCD"), places, lengths, st.just(1.0)), max_size=12)
in_context = stretches.map(apart)

INPUTS = {"names": (ranked, judged), "characters": (stretches, texts), "context": (in_context, texts)}
"""Results and judgements of one query, for measures of each level."""
