"""Random judgements and runs: few names, many ties, some of them only in float32."""

from hypothesis import strategies as st

NAMES = [f"{document}#{passage}" for document in ("A", "B", "C", "D") for passage in ("1", "2", "/x[3]", "@10")]
TIED_SCORES = [-3.5, -1.0, 0.0, 1e-9, 0.5, 1.0, 1.0 + 1e-9, 1.0 + 1e-7, 2.0, 16777216.0, 16777217.0]
GRADES = [-2, -1, 0, 0, 1, 1, 2, 3]
QUERIES = ["q1", "q2", "q3", "q4"]

judged = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(GRADES), min_size=1)
judgements = st.dictionaries(st.sampled_from(QUERIES), judged, min_size=1)
ranked = st.lists(st.sampled_from(NAMES), unique=True)
scores = st.sampled_from(TIED_SCORES) | st.floats(-1e6, 1e6, allow_nan=False)
runs = st.dictionaries(st.sampled_from([*QUERIES, "unjudged"]), st.dictionaries(st.sampled_from(NAMES), scores))
